"""What README.md tells people to type is understood, and its SQL is answered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankwatch import live
from rankwatch.cli import parser, run
from rankwatch.demo import bundled_recording
from rankwatch.diagnose import diagnose, store

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")


def commands(document: str) -> list[list[str]]:
    """The words behind ``rankwatch`` of every command line in the fenced blocks."""
    lines = [line for block in BLOCK.findall(document) for line in block.splitlines()]
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("rankwatch ")]
    return [words[1:] for words in found]


def spans(document: str) -> list[str]:
    """Our commands and flags between backticks in the prose; other programs have flags of their own."""
    return [span for span in SPAN.findall(BLOCK.sub("", document)) if span.startswith(("--", "rankwatch "))]


COMMANDS = commands(README)
QUERIES = [words[1] for words in COMMANDS if words[0] == "sql"]
FLAGS = sorted({flag for span in spans(README) for flag in re.findall(r"(?<!\S)--[a-z-]+", span)})


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database that holds the bundled recording."""
    place = f"chdb://{tmp_path_factory.mktemp('readme') / 'clickhouse'}"
    with bundled_recording() as folder:
        assert store(diagnose(folder), place, kind="demo")["logs"] > 0
    yield place


def test_commands_are_found_in_blocks_and_flags_in_prose() -> None:
    document = 'see `--here N` and `other --json`\n\n```\nrankwatch sql "SELECT 1"  # why\nmake\n```\nand ```x```\n'
    assert commands(document) == [["sql", "SELECT 1"]]
    assert spans(document) == ["--here N"]
    assert len(QUERIES) >= 3
    assert "--clickhouse" in FLAGS


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_line_is_understood(words: list[str]) -> None:
    assert parser().parse_args(words).command == words[0]


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_of_the_prose_belongs_to_a_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for command in (*live.COMMANDS, "diagnose", "stacks", "demo", "sql", "migrate", "library learn", "library import"):
        with pytest.raises(SystemExit):
            parser().parse_args([*command.split(), "--help"])
        helps.append(capsys.readouterr().out)
    assert any(re.search(rf"^\s+{re.escape(flag)}\b", text, re.MULTILINE) for text in helps)


@pytest.mark.parametrize("sql", QUERIES)
def test_every_query_is_answered(sql: str, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["sql", sql, "--clickhouse", database])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    assert shown.out.splitlines()[1].startswith("---")


def test_the_incident_is_in_the_first_answer(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", QUERIES[0], "--clickhouse", database]) == 0
    assert "hang" in capsys.readouterr().out


def test_addresses_of_servers_are_placeholders() -> None:
    found = [word for words in COMMANDS for word in words if word.startswith(("http://", "https://"))]
    assert found and all("USER:PASSWORD@HOST" in address for address in found)
