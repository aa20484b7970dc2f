"""Logs of JSON rows: whose each row is, at which iteration, and what is nobody's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from producers.readers import json_log
from producers.recording import read_recording
from schemas.events import Log
from streams.lines.series import readings_of

Fields = dict[str, Any]


def at(second: int) -> str:
    return f"2026-11-30T17:00:{second:02d}.500Z"


def step(rank: int, number: int, **more: Any) -> Fields:
    return {"timestamp": at(number), "event": "step", "rank": rank, "step": number, "forward_time": 0.31} | more


def said(folder: Path, files: dict[str, list[Fields | str]]) -> list[tuple[int | None, str, int | None, str]]:
    """Rank, node, iteration and event of each line."""
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return [
        (
            arrival.batch.identity.rank,
            arrival.batch.identity.node,
            event.iteration,
            json.loads(event.text).get("event", "") if event.text.endswith("}") else event.text,
        )
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Log)
    ]


STARTED = {"timestamp": at(0), "event": "init", "rank": 3, "local_rank": 1, "host": "n0", "world_size": 8}
STRAGGLER = {"timestamp": at(9), "event": "straggler", "rank": 5, "step": 2, "forward_time": 0.9}
PEER = {"timestamp": at(9), "event": "peer timed out", "rank": 5}
OWN = {"timestamp": at(9), "event": "checkpoint saved"}


@pytest.mark.parametrize(
    ("row", "rank"),
    [(STARTED, 3), (OWN, 3), (OWN | {"rank": 3}, 3), (PEER, None), (STRAGGLER, None), ("{broken", 3), ("no JSON", 3)],
)
def test_what_names_no_other_rank_is_of_the_one_that_writes_the_file(
    tmp_path: Path, row: Fields | str, rank: int | None
) -> None:
    found = said(tmp_path, {"a.jsonl": [step(3, 1), step(3, 2), row]})
    name = row if isinstance(row, str) else row["event"]
    assert [one[0] for one in found if one[3] == name] == [rank]
    assert [(one[0], one[2]) for one in found if one[3] == "step"] == [(3, 1), (3, 2)]


@pytest.mark.parametrize(
    ("row", "rank"),
    [
        (STARTED, 3),
        (OWN, None),
        (OWN | {"rank": 3}, None),
        (PEER, None),
        (STRAGGLER, None),
        (STARTED | {"rank": 7}, None),
    ],
)
def test_of_several_writers_only_steps_and_introductions_are_theirs(
    tmp_path: Path, row: Fields, rank: int | None
) -> None:
    steps = [step(one, number) for number in (1, 2) for one in (3, 5)]
    found = said(tmp_path, {"a.jsonl": [*steps, row]})
    assert [one[0] for one in found if one[3] == row["event"]] == [rank]
    assert sorted((one[0], one[2]) for one in found if one[3] == "step") == [(3, 1), (3, 2), (5, 1), (5, 2)]


def test_the_node_is_the_one_that_all_its_rows_name(tmp_path: Path) -> None:
    rows: list[Fields | str] = [STARTED, step(3, 1), step(3, 2, host="n0"), PEER | {"host": "n1"}]
    assert {one[:2] for one in said(tmp_path, {"a.jsonl": rows}) if one[0] is not None} == {(3, "n0")}


def test_numbers_that_files_of_two_folders_have_at_once_are_no_ranks(tmp_path: Path) -> None:
    rows: list[Fields | str] = [step(0, 1), step(0, 2)]
    assert {one[0] for one in said(tmp_path, {"n0/a.jsonl": rows, "n1/a.jsonl": rows})} == {None}


@pytest.mark.parametrize(
    ("more", "is_log"),
    [
        ({}, True),
        ({"rank": -1}, False),
        ({"rank": "3"}, False),
        ({"rank": True}, False),
        ({"rank": 1 << 40}, False),
        ({"step": None}, False),
        ({"step": 1.5}, False),
        ({"forward_time": "0.3"}, False),
        ({"timestamp": "yesterday"}, False),
        ({"timestamp": 1_796_000_000.5}, True),
        ({"pid": 17}, False),
    ],
)
def test_rows_without_rank_step_number_and_time_are_no_log(more: Fields, is_log: bool) -> None:
    assert json_log.recognised([step(3, 1) | more, step(3, 2) | more]) is is_log


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("forward_time", "forward_time_s"),
        ("data_seconds", "data_s"),
        ("fwd_ms", "fwd_ms"),
        ("loss", "loss"),
        ("tokens_per_sec", "tokens_per_sec"),
        ("local_rank", ""),
    ],
)
def test_names_tell_units(name: str, told: str) -> None:
    line = json.dumps({"step": 10, name: 1.5})
    assert [one.name for one in readings_of(line)] == ([told] if told else [])
