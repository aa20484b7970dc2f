"""The commands of a running pipeline where there is none: each says in one line what is missing, and soon."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

COMMANDS = ("topics create", "topics check", "publish {folder}", "worker", "sink --clickhouse chdb://{folder}/db")
SOON_S = 15.0
BUSY_S = 30.0
"""What the machine may take besides: it is shared with other tests."""


def rankwatch(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "RANKWATCH_"))}
    words = command.format(folder=folder).split()
    done = subprocess.run(
        [sys.executable, "-m", "rankwatch", *words, *more],
        capture_output=True,
        text=True,
        env={**surroundings, "XDG_DATA_HOME": str(folder)},
        check=False,
        timeout=SOON_S + BUSY_S,
    )
    assert "Traceback (most recent call last)" not in done.stderr
    return done


def refusal(command: str, folder: Path, *more: str) -> str:
    """The one line that it says; it ends with 2."""
    done = rankwatch(command, folder, *more)
    assert (done.returncode, done.stdout) == (2, ""), done
    [line] = done.stderr.splitlines()
    assert line.startswith("rankwatch: ")
    return line.removeprefix("rankwatch: ")


@pytest.fixture(scope="module")
def closed() -> Iterator[str]:
    """An address at which nobody listens, nor will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_without_an_address_each_says_how_to_give_one(command: str, tmp_path: Path) -> None:
    assert refusal(command, tmp_path).startswith("no Kafka address: give --kafka HOST:PORT, or bootstrap.servers in ")


@pytest.mark.parametrize("command", ["topics check", "sink --clickhouse chdb://{folder}/db"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read {file}: no such file or directory"),
        (b"bootstrap.servers\n", "{file}, line 1: no NAME=VALUE"),
        (b"\x7fELF\x00\x01\xff\xfe\n\x00", "{file}, line 1: no NAME=VALUE"),
        (b"bootstrap.servers=b:1\nno.such.setting=1", 'Kafka settings: No such configuration property: "no.such.set'),
    ],
    ids=["no file", "no settings", "binary", "unknown setting"],
)
def test_a_file_that_cannot_be_used_is_named(command: str, content: bytes | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    assert refusal(command, tmp_path, "--kafka-config", str(file)).startswith(reason.format(file=file))


def test_a_cluster_that_cannot_be_reached_is_one_line_within_seconds(closed: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    with ThreadPoolExecutor() as side_by_side:
        lines = [side_by_side.submit(refusal, command, tmp_path, "--kafka", closed) for command in COMMANDS]
        nameless = side_by_side.submit(refusal, "topics check", tmp_path, "--kafka", "no-such-host.invalid:9")
    assert time.monotonic() - begun < SOON_S + BUSY_S
    for command, line in zip(COMMANDS, lines, strict=True):
        said = line.result()
        assert said.startswith(f"cannot reach Kafka at {closed}: ") and said.endswith("Connection refused"), command
    assert nameless.result().startswith("cannot reach Kafka at no-such-host.invalid:9: Failed to resolve ")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("worker --listen 9100", "--listen '9100' is no address; give HOST:PORT, or :PORT for all"),
        (
            "sink --clickhouse chdb://{folder}/db --listen host:x",
            "--listen 'host:x' is no address; give HOST:PORT, or :PORT for all",
        ),
        ("sink --clickhouse none", "sink needs a database: give --clickhouse DSN"),
        ("sink --clickhouse mysql://host", "unknown kind of ClickHouse address 'mysql://host'; known: "),
        ("topics check --topic-prefix a/b", "topic prefix 'a/b': only letters, digits, '.', '_' and '-'"),
        (
            "feed --topic-prefix recorded",
            "topic prefix 'recorded': it has to end in '.', '-' or '_', as in 'recorded.'",
        ),
        ("topics forget --ticks publisher", "topics forget has no use for --ticks"),
        ("topics check --retention-days 3", "topics check has no use for --retention-days"),
    ],
)
def test_what_is_wrong_with_a_command_is_said_before_anybody_is_waited_for(
    command: str, reason: str, closed: str, tmp_path: Path
) -> None:
    assert refusal(command, tmp_path, "--kafka", closed).startswith(reason)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--patience-s nan", "argument --patience-s: 'nan' is no number of seconds from 0.1 to 86400"),
        ("--patience-s -1", "argument --patience-s: '-1' is no number"),
        ("--session-s 0", "argument --session-s: '0' is no number"),
        ("--session-s soon", "argument --session-s: 'soon' is no number"),
        ("--most-poison -5", "argument --most-poison: '-5' is no whole number of at least 0"),
        ("--most-poison 1.5", "argument --most-poison: '1.5' is no whole number"),
        ("--memory-mb 0", "argument --memory-mb: '0' is no whole number of at least 1"),
        ("--stage none", "argument --stage: invalid choice"),
    ],
)
def test_numbers_that_a_worker_cannot_use_are_refused(words: str, reason: str, tmp_path: Path) -> None:
    done = rankwatch(f"worker --kafka b:1 {words}", tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "--partitions 1000000",
            "'1000000' is no whole number from 1 to 1000: in each window every partition reports ",
        ),
        (f"--partitions {'9' * 5000}", "is no whole number from 1 to 1000: "),
        ("--partitions 0", "'0' is no whole number from 1 to 1000: "),
        ("--replication 99999", "'99999' is no whole number from 1 to 100"),
        ("--retention-days 99999999999999", "'99999999999999' is no whole number from 1 to 36500"),
    ],
)
def test_numbers_that_topics_cannot_have_are_refused(words: str, reason: str, tmp_path: Path) -> None:
    done = rankwatch(f"topics create --kafka b:1 {words}", tmp_path)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert f"argument {words.partition(' ')[0]}: " in said and reason in said


@pytest.mark.parametrize("command", ["topics", "publish", "worker", "sink", "feed"])
def test_help_shows_examples_of_the_command(command: str, tmp_path: Path) -> None:
    done = rankwatch(command, tmp_path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    examples = done.stdout.partition("\nexamples:\n")[2].splitlines()
    assert len(examples) >= 2
    assert all(line.startswith(f"  rankwatch {command}") for line in examples if line)
    assert "--kafka HOST:PORT" in done.stdout
