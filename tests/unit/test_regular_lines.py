"""Lines that come in a rhythm: when their going on shows that a job has lived through a fault."""

from __future__ import annotations

import numpy as np
import pytest

from streams.printed import NOTHING_PRINTED, Line, Printed
from streams.regular_lines import MOST_REGULAR, Regular, going_on, regular_until, went_on, with_printed

S = 1_000_000_000


def printed(*lines: tuple[str, float], chatter: str = "") -> Printed:
    rows = [Line(name, name, chatter, name, int(time * S), int(time * S)) for name, time in lines]
    counts = np.ones((len(rows), 1), dtype=np.int64)
    return Printed(ranks=[0], lines=rows, counts=counts, before=counts > 1)


def known(**kinds: list[float]) -> dict[str, Regular]:
    """The kinds of lines by the seconds at which they came, each in a window of its own."""
    found: dict[str, Regular] = {}
    for time, name in sorted((time, name) for name, times in kinds.items() for time in times):
        found = with_printed(found, printed((name, time)))
    return found


def every(pause: float, until: float, since: float = 0) -> list[float]:
    return [since + pause * n for n in range(int((until - since) / pause) + 1)]


@pytest.mark.parametrize(
    ("kinds", "on"),
    [
        ({"step": every(10, 180)}, True),
        # Not for long enough; and no rhythm is known.
        ({"step": every(10, 150)}, False),
        ({"step": [90, 180]}, False),
        ({}, False),
        # Heartbeats go on in a job that hangs.
        ({"step": every(10, 110), "heartbeat": every(10, 300)}, False),
        # What had stopped before, or comes seldom, is not waited for; what began later says nothing.
        ({"step": every(10, 180), "loading": every(10, 60)}, True),
        ({"step": every(10, 180), "checkpoint": every(350, 50, -1001), "late": every(10, 180, 130)}, True),
        ({"retry": every(10, 300, 110)}, False),
        # One evaluation after the fault takes nothing back.
        ({"step": [*every(10, 180), 500, 510]}, True),
        # Slow lines have to come once more than may have been on its way.
        ({"step": every(80, 160)}, False),
        ({"step": every(80, 240)}, False),
        ({"step": every(30, 210)}, True),
    ],
)
def test_all_that_came_regularly_has_to_come_again(kinds: dict[str, list[float]], on: bool) -> None:
    assert went_on(regular_until(known(**kinds), 100 * S), 100 * S) is on


@pytest.mark.parametrize(("now", "on"), [(119, True), (125, False)])
def test_lines_that_are_overdue_do_not_go_on(now: int, on: bool) -> None:
    lines = regular_until(known(step=every(10, 100), heartbeat=every(20, 120)), 90 * S)
    assert going_on(lines, now * S) is on
    assert not going_on([], now * S)


def test_chatter_is_no_sign_and_memory_is_bounded() -> None:
    assert with_printed({}, NOTHING_PRINTED) == {}
    assert with_printed({}, printed(("a", 1), chatter="nccl")) == {}
    many = with_printed(known(old=[1]), printed(*((f"{n:04}", 2) for n in range(MOST_REGULAR))))
    assert len(many) == MOST_REGULAR and "old" not in many
