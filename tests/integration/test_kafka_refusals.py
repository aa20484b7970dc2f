"""What does not let a command begin is said in one line, without secrets, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka_admin import deleted, widened
from kafka_login import properties, written
from kafka_pipeline import free_address, pipeline, run_all
from kafka_support import PASSWORD, Broker

from schemas.ports import LogError
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import kafka_settings

pytestmark = pytest.mark.xdist_group("kafka")
SECRET = "not-the-pass-word"

Cases = dict[str, tuple[list[str], str]]
"""A command by what is wrong, and what it has to say."""


def unreachable(tmp_path: Path) -> Cases:
    address = free_address()
    reason = f"cannot reach Kafka at {address}: "
    return {
        "nobody there, topics": (["topics", "create", "--kafka", address], reason),
        "nobody there, publish": (["publish", str(tmp_path), "--kafka", address], reason),
        "nobody there, worker": (["worker", "--kafka", address], reason),
        "nobody there, sink": (["sink", "--clickhouse", f"chdb://{tmp_path / 'db'}", "--kafka", address], reason),
    }


def logins(broker: Broker, tmp_path: Path) -> Cases:
    right = properties(broker)
    no_authority = {name: value for name, value in right.items() if not name.startswith("ssl.")}
    settings: dict[str, tuple[dict[str, str], str]] = {
        "wrong password": (properties(broker, SECRET), "refuses the login: "),
        "no authority": (no_authority, f"no TLS connection to Kafka at {broker.secure}: "),
        "authority missing": (right | {"ssl.truststore.location": str(tmp_path / "no.pem")}, "there is no file "),
        "no TLS where there must be": (
            {"bootstrap.servers": broker.secure},
            "as a port does that speaks TLS; see security.protocol",
        ),
        "TLS where there is none": (
            right | {"bootstrap.servers": broker.address},
            "the port seems not to speak TLS; see security.protocol",
        ),
        "no such login": (right | {"sasl.mechanism": "SCRAM-SHA-256"}, "refuses the login: "),
    }
    return {
        name: (["worker", "--kafka-config", str(written(tmp_path / f"{number}.properties", given))], said)
        for number, (name, (given, said)) in enumerate(settings.items())
    }


def test_each_command_that_cannot_begin_says_why_in_one_line(broker: Broker, tmp_path: Path) -> None:
    cases = unreachable(tmp_path) | logins(broker, tmp_path)
    commands = {name: command for name, (command, _) in cases.items()}
    began = time.monotonic()
    for name, (code, printed) in run_all(commands, wait_s=120).items():
        assert (code, printed.count("\n")) == (2, 1), f"{name}: {printed}"
        assert printed.startswith("rankwatch: ") and cases[name][1] in printed, f"{name}: {printed}"
        assert SECRET not in printed and PASSWORD not in printed
    assert time.monotonic() - began < 90, "ten seconds, and what ten processes on two cores need to start"


def test_a_login_that_is_refused_is_not_waited_for(broker: Broker, tmp_path: Path) -> None:
    file = written(tmp_path / "client.properties", properties(broker, SECRET))
    log = KafkaLog(kafka_settings(file=file))
    began = time.monotonic()
    with pytest.raises(LogError, match="refuses the login"):
        log.partition_counts()
    assert time.monotonic() - began < 8
    log.close()


def test_whoever_starts_on_topics_that_do_not_fit_names_them(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        deleted(live, "stamped.logs")
        widened(live, "windows", 3)
        commands = {
            "worker": ["worker"],
            "publish": ["publish", str(tmp_path)],
            "sink": ["sink", "--clickhouse", f"chdb://{tmp_path / 'db'}"],
        }
        prefix = live.settings.prefix
        for code, printed in run_all(commands, *live.where).values():
            assert code == 2
            assert printed == (
                f"rankwatch: topic {prefix}stamped.logs is missing; "
                f"`rankwatch topics create --topic-prefix {prefix}` makes it; "
                f"topic {prefix}windows has 3 partitions, the deployment 2\n"
            )
