"""What each rank printed so far."""

from __future__ import annotations

import msgspec
import numpy as np
from detection_support import JOB, new_view, speaking

from streams.past import Past
from streams.printed import Printed
from streams.templates import TemplateBook, TemplateState

READ, WARN = "shard 1 is read", "UserWarning: pin memory is slow"


def tables(*said: dict[str, dict[int, int]], ranks: int = 4) -> list[Printed]:
    book, view, found = TemplateBook(TemplateState(), JOB, 1000), new_view(), []
    for number, lines in enumerate(said):
        window = speaking(10.0 * number, lines, ranks=range(ranks))
        book.learn(window.summaries)
        told = book.printed("0", window.summaries, view.members)
        found.append(told.by_template())
        view.update(window)
        book.note("0", told)
    return found


def taken(past: Past, table: Printed, apart: tuple[str, int] | None = None, most: int = 64) -> None:
    marks = np.zeros(table.counts.shape, dtype=np.bool_)
    if apart is not None:
        marks[[line.text for line in table.lines].index(apart[0]), apart[1]] = True
    past.take(table, marks, 0.2, most)


def mean(past: Past, table: Printed, text: str) -> list[float]:
    found: list[float] = past.of(table)[[line.text for line in table.lines].index(text)].tolist()
    return found


def test_the_first_windows_count_alike_and_later_ones_by_their_weight() -> None:
    past, said = Past(), tables({WARN: {0: 2}}, {WARN: {0: 4, 1: 3}}, *[{WARN: {0: 3}}] * 8, {WARN: {0: 13}})
    for table in said[:2]:
        taken(past, table)
    assert mean(past, said[1], WARN) == [3.0, 1.5, 0.0, 0.0]
    for table in said[2:]:
        taken(past, table)
    assert mean(past, said[-1], WARN)[0] == 5.0


def test_what_stands_apart_is_no_part_of_it() -> None:
    past, (first, second) = Past(), tables({WARN: {0: 2, 1: 2}}, {WARN: {0: 50, 1: 4}})
    taken(past, first)
    taken(past, second, (WARN, 0))
    assert mean(past, second, WARN)[:2] == [2.0, 3.0]


def test_new_ranks_and_templates_have_none_and_what_is_not_followed_is_not_known() -> None:
    past, (first, second) = Past(), tables({READ: {0: 9}, WARN: {0: 1}}, {READ: {0: 9}, WARN: {0: 1}, "up": {2: 1}})
    taken(past, first.of([0, 1]), most=2)
    assert sorted(past.of(second).sum(axis=1).tolist()) == [0.0, 0.0, 9.0, 20.0]
    known = {line.text: marks.tolist() for line, marks in zip(second.lines, past.known(second, 1), strict=True)}
    assert known["up"] == [True, True, False, False]
    assert known[WARN] == [False, True, False, False]
    assert known["shard <NUM> is read"] == [True, True, False, False]
    assert not past.known(second, 2).any()
    taken(past, second)
    assert (past.ranks, past.seen) == ([0, 1, 2, 3], [2, 2, 1, 1])


def test_beyond_its_room_what_is_printed_least_goes_unless_it_stands_apart() -> None:
    past, (table,) = Past(), tables({READ: {0: 9}, WARN: {0: 1}, "up": {2: 2}})
    taken(past, table, ("up", 2), most=2)
    assert [line.text for line in table.lines if line.template in past.means] != []
    kept = {line.text for line in table.lines if line.template in past.means}
    assert kept == {"up", "step <NUM> took <DUR>"}
    again = msgspec.json.decode(msgspec.json.encode(past), type=Past)
    assert again == past
