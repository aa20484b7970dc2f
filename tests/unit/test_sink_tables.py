"""How answers are printed."""

from __future__ import annotations

import json
from datetime import date

import pytest

from sinks.query import iso_utc
from sinks.tables import format_json_lines, format_table, format_tsv

COLUMNS = ["name", "count", "share", "ranks", "ok"]
ROWS = [
    ["a\tb\n\x1b[31mred", 1, 0.5, [1, None], True],
    ["日本", 1000, float("nan"), [], False],
    [None, None, None, None, None],
]


def test_a_table_is_aligned_and_holds_nothing_that_a_terminal_obeys() -> None:
    assert format_table(COLUMNS, ROWS) == (
        "name               count  share  ranks     ok\n"
        "-----------------  -----  -----  --------  -----\n"
        "a\\tb\\n\\x1b[31mred      1    0.5  [1,null]  true\n"
        "日本                1000    nan  []        false\n"
        "NULL                NULL   NULL  NULL      NULL\n"
    )


def test_wide_cells_end_in_an_ellipsis() -> None:
    assert format_table(["text"], [["x" * 50]], max_width=10).splitlines()[-1] == "x" * 9 + "…"


def test_a_table_without_rows_or_columns() -> None:
    assert format_table(["a", "bb"], []) == "a  bb\n-  --\n"
    assert format_table([], []) == ""


def test_tsv_escapes_and_tells_null_from_empty() -> None:
    assert format_tsv(["a", "b"], [["x\ty\n\\", None], ["", date(2025, 11, 29)]]) == (
        "a\tb\nx\\ty\\n\\\\\t\\N\n\t2025-11-29\n"
    )


def test_json_lines_are_valid_json() -> None:
    lines = [json.loads(line) for line in format_json_lines(COLUMNS, ROWS).splitlines()]
    assert lines[0] == dict(zip(COLUMNS, ROWS[0], strict=True))
    assert lines[1]["share"] is None


def test_json_lines_can_do_with_ascii() -> None:
    text = format_json_lines(["a"], [["\u20ac \U0001f600"]], ascii_only=True)
    assert text == '{"a":"\\u20ac \\ud83d\\ude00"}\n'
    assert json.loads(text) == {"a": "\u20ac \U0001f600"}


@pytest.mark.parametrize(
    ("ticks", "digits", "text"),
    [
        (0, 9, "1970-01-01T00:00:00.000000000Z"),
        (-1, 3, "1969-12-31T23:59:59.999Z"),
        (1_764_417_600, 0, "2025-11-29T12:00:00Z"),
        (2**63 - 1, 9, "2262-04-11T23:47:16.854775807Z"),
    ],
)
def test_times_are_iso_utc(ticks: int, digits: int, text: str) -> None:
    assert iso_utc(ticks, digits) == text
