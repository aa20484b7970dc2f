"""The table of who printed what in a window."""

from __future__ import annotations

from detection_support import JOB, closed, identity, printed, summary

from streams.attempt_window import AttemptWindow
from streams.printed import Printed
from streams.templates import TemplateBook, TemplateState

READ, BAR = "shard 1 is read", "4%|▌   | 12/300 [00:12<01:20, 3.2it/s]"


def window(start: float, said: dict[int, dict[str, int]], **fields: str) -> AttemptWindow:
    counted = {
        rank: sorted((printed(text, start + 1 + rank, count=count) for text, count in lines.items()), key=str)
        for rank, lines in said.items()
    }
    who = {rank: identity(rank, **fields) for rank in said}
    return closed([summary(rank, start, who=who[rank], signatures=counted[rank]) for rank in said], start)


def tables(*windows: AttemptWindow, limit: int = 1000) -> list[Printed]:
    book = TemplateBook(TemplateState(), JOB, limit)
    found = []
    members: set[int] = set()
    for one in windows:
        book.learn(one.summaries)
        found.append(book.printed(one.attempt, one.summaries, members))
        members |= {summary.identity.rank for summary in one.summaries if summary.identity.rank is not None}
        book.note(one.attempt, found[-1])
    return found


def test_ranks_are_columns_lines_are_rows_and_what_was_printed_before_is_marked() -> None:
    first, second = tables(window(0, {0: {READ: 2}, 2: {READ: 5}}), window(10, {2: {READ: 1, "up": 1}, 3: {READ: 4}}))
    assert (first.ranks, [line.text for line in first.lines]) == ([0, 2], ["shard <NUM> is read"])
    assert (first.counts.tolist(), first.before.tolist()) == ([[2, 5]], [[False, False]])
    rows = {line.text: row for row, line in enumerate(second.lines)}
    assert second.ranks == [0, 2, 3]
    assert second.counts[rows["shard <NUM> is read"]].tolist() == [0, 1, 4]
    assert second.before[rows["shard <NUM> is read"]].tolist() == [True, True, False]
    assert second.counts[rows["up"]].tolist() == [0, 1, 0]
    assert second.lines[rows["up"]].first == second.lines[rows["shard <NUM> is read"]].first


def test_lines_of_one_template_come_together_whichever_came_first() -> None:
    said = {0: {"loading part blk_7 of the data set": 1}, 1: {"loading part rdd_2_9 of the data set": 2}}
    (table,) = tables(window(0, said))
    assert len(table.lines) == 2
    (line,) = table.by_template().lines
    assert table.by_template().counts.tolist() == [[1, 2]]
    assert line.template in {one.template for one in table.lines}
    assert line.first == min(one.first for one in table.lines)


def test_columns_can_be_chosen() -> None:
    (table,) = tables(window(0, {rank: {READ: rank + 1} for rank in range(4)}))
    part = table.of([3, 1, 9])
    assert (part.ranks, part.counts.tolist()) == ([1, 3], [[2, 4]])


def test_who_ever_printed_a_kind_of_chatter_is_known_while_it_is_printed() -> None:
    first, second, third = tables(window(0, {1: {BAR: 1}}), window(10, {0: {BAR: 1}}), window(20, {0: {READ: 1}}))
    assert [one.printers for one in (first, second, third)] == [{"progress": [1]}, {"progress": [0, 1]}, {}]
    assert first.lines[0].chatter == "progress"


def test_lines_without_a_template_and_of_no_rank_are_left_out() -> None:
    (table,) = tables(window(0, {0: {READ: 1, "another line altogether": 1}}), limit=1)
    assert len(table.lines) == 1
    node = summary(0, 0, who=identity(None, node="node00"), signatures=[printed(READ, 1)])
    (nobody,) = tables(closed([node], 0))
    assert (nobody.ranks, nobody.lines, nobody.counts.shape) == ([], [], (0, 0))


def test_the_table_does_not_depend_on_the_order_of_summaries() -> None:
    one = window(0, {0: {READ: 2}, 1: {READ: 5, "up": 1}, 2: {BAR: 3}})
    other = closed(list(reversed(one.summaries)), 0)
    (left,), (right,) = tables(one), tables(other)
    assert (left.lines, left.counts.tolist(), left.printers) == (right.lines, right.counts.tolist(), right.printers)
