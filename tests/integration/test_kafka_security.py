"""Login over TLS from a client.properties file, for every command; and what is said where it does not work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka_pipeline import folded, free_address, pipeline, run_all, stored_everything, until
from kafka_rows import differences, expected_rows, shown_at
from kafka_support import PASSWORD, USER, Broker
from streams_support import JUDGED, said

from producers.recording import read_recording
from rankwatch import diagnose
from rankwatch.demo import bundled_recording

pytestmark = pytest.mark.xdist_group("kafka")
TOPICS = ("windows", *JUDGED)


def properties(broker: Broker, password: str = PASSWORD) -> dict[str, str]:
    """As Java's tools take them."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bootstrap.servers": broker.secure,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.authority),
    }


def written(file: Path, settings: dict[str, str]) -> Path:
    file.write_text("# for tests\n" + "".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def test_the_whole_pipeline_runs_over_tls_with_a_login(broker: Broker, tmp_path: Path) -> None:
    file = written(tmp_path / "client.properties", properties(broker))
    dsn, address = f"chdb://{tmp_path / 'db'}", free_address()
    with bundled_recording() as folder, pipeline("", tmp_path, partitions=2, config=file) as live:
        # What the pipeline has made is there already: both say the same to the cluster.
        create = ["topics", "create", "--partitions", "2", "--ticks", "publisher"]
        assert run_all({"create": create}, *live.where)["create"] == (0, "nothing to do\n")
        recording = read_recording(folder)
        expected = folded(said(diagnose.run(recording).log, TOPICS))
        rows = expected_rows(recording, tmp_path / "expected")
        running = [live.start("worker"), live.start("sink", "--clickhouse", dsn, "--listen", address)]
        assert run_all({"publish": ["publish", str(folder)]}, *live.where)["publish"][0] == 0
        assert live.until_said(expected) == expected
        until(lambda: stored_everything(address, sum(map(len, rows.values()))), live.printed)
        for process in running:
            process.terminate()
        assert [process.wait(30) for process in running] == [0, 0], live.printed()
        assert differences(rows, shown_at(dsn)) == []


def test_what_does_not_fit_is_said_in_one_line_without_secrets(broker: Broker, tmp_path: Path) -> None:
    right, secret = properties(broker), "not-the-pass-word"
    no_authority = {name: value for name, value in right.items() if not name.startswith("ssl.")}
    cases: dict[str, tuple[dict[str, str], str]] = {
        "wrong password": (properties(broker, secret), "refuses the login: "),
        "no authority": (no_authority, "no TLS connection to Kafka at "),
        "authority missing": (right | {"ssl.truststore.location": str(tmp_path / "no.pem")}, "there is no file "),
        "no TLS where there must be": ({"bootstrap.servers": broker.secure}, "cannot reach Kafka at "),
        "TLS where there is none": (right | {"bootstrap.servers": broker.address}, "connecting to a PLAINTEXT broker"),
        "no such login": (right | {"sasl.mechanism": "SCRAM-SHA-256"}, "refuses the login: "),
    }
    commands = {}
    for number, (name, (settings, _)) in enumerate(cases.items()):
        file = written(tmp_path / f"{number}.properties", settings)
        command = (["topics", "check"], ["worker"], ["sink", "--clickhouse", f"chdb://{tmp_path / 'db'}"])[number % 3]
        commands[name] = [*command, "--kafka-config", str(file)]
    began = time.monotonic()
    for name, (code, printed) in run_all(commands).items():
        assert (code, printed.count("\n")) == (2, 1), f"{name}: {printed}"
        assert printed.startswith("rankwatch: ") and cases[name][1] in printed, f"{name}: {printed}"
        assert secret not in printed and PASSWORD not in printed
    assert time.monotonic() - began < 25
