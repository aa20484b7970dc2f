"""Tables of capture times: the nearest one speaks of a file, and a file costs no look through all rows."""

from __future__ import annotations

import pytest

from producers.captures import Captures
from producers.rows import Row, Rows


def table(file: str, *named: str) -> Rows:
    return Rows(file, [Row(at, at, {"file": name}) for at, name in enumerate(named, 1)], [])


TABLES = [
    table("when.jsonl", "rank_3", "a/rank_4", "b/rank_3"),
    table("a/when.jsonl", "rank_3", "x", "rank_3"),
    table("a/more.jsonl", "rank_3", "deep/rank_3"),
]


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("rank_3", [("when.jsonl", 1)]),
        ("c/rank_3", [("when.jsonl", 1)]),
        ("b/rank_3", [("when.jsonl", 1), ("when.jsonl", 3)]),
        ("a/rank_3", [("a/when.jsonl", 1), ("a/when.jsonl", 3), ("a/more.jsonl", 1)]),
        ("a/deep/rank_3", [("a/when.jsonl", 1), ("a/when.jsonl", 3), ("a/more.jsonl", 1), ("a/more.jsonl", 2)]),
        ("a/rank_4", [("when.jsonl", 2)]),
        ("ab/rank_4", []),
    ],
)
def test_the_nearest_tables_speak_of_a_file(file: str, found: list[tuple[str, int]]) -> None:
    rows = Captures(TABLES, lambda _one, _other: True).of(file)
    assert [(one.file, row.line) for row in rows for one in TABLES if any(row is own for own in one.rows)] == found


def test_a_table_of_another_job_does_not_count() -> None:
    rows = Captures(TABLES, lambda one, _: not one.startswith("a/")).of("a/rank_3")
    assert [row is TABLES[0].rows[0] for row in rows] == [True]


def test_each_file_costs_its_own_rows_alone() -> None:
    asked: list[str] = []

    def beside(_one: str, other: str) -> bool:
        asked.append(other)
        return True

    files = [f"rank_{number}" for number in range(2_000)]
    captures = Captures([table("when.jsonl", *files)], beside)
    assert [row.line for file in files for row in captures.of(file)] == [*range(1, 2_001)]
    assert asked == files
