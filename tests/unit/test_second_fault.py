"""Which finding in a standstill that names somebody is another fault, with the reason, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from blame_table import cascade, error, fault, others, outside, stall
from detection_support import anomaly, at, situation

from schemas.results import Anomaly
from streams.incidents.blame import decide
from streams.incidents.second_fault import SECOND, Second, second_fault

HUNG = [stall(), outside(5)]
"""The job stands still from second 9 on, since rank 5 is outside communication."""
UNTOLD = [stall()]
CRASHED = [error(5), cascade(*others(2, 5))]
BAD = error(2, 62, text="rank 2: ValueError: bad shard 7")
GPU = fault(2, 62)
PLACE = msgspec.structs.replace(GPU, grounds="node_fault")
OF_TWO = msgspec.structs.replace(BAD, suspects=[*BAD.suspects, *error(7).suspects])
KILLED = fault(2, 62, area="memory")
GONE: dict[str, Any] = {"exited": {2: at(63)}}


def told_to_end(*ranks: int, onset: float) -> Anomaly:
    return anomaly("told_to_end", [], ranks, start=onset // 10 * 10, onset=onset, subject="told")


def judged(found: Anomaly, standing: Sequence[Anomaly], beside: Sequence[Anomaly], now: float, **known: Any) -> Second:
    among = [*standing, found, *beside]
    known_of = situation(now=now, **known)
    return second_fault(found, among, among[0].id, decide(list(among), known_of), known_of)


@pytest.mark.parametrize(
    ("found", "standing", "beside", "now", "known", "why"),
    [
        # What another node reports of itself.
        (GPU, HUNG, [], 70, {}, Second.OF_ANOTHER_NODE),
        (PLACE, HUNG, [], 70, {}, Second.OF_ANOTHER_NODE),
        (KILLED, HUNG, [], 70, {}, Second.OF_ANOTHER_NODE),
        (KILLED, CRASHED, [], 70, {}, Second.OF_ANOTHER_NODE),
        (KILLED, HUNG, [cascade(2, start=60, onset=63)], 70, {}, Second.REACTED),
        (GPU, HUNG, [cascade(2, start=60, onset=61)], 70, {}, Second.OF_ANOTHER_NODE),
        (KILLED, HUNG, [told_to_end(2, onset=61)], 70, {}, Second.REACTED),
        (KILLED, HUNG, [cascade(*others(2), start=60, onset=61)], 70, {}, Second.OF_ANOTHER_NODE),
        (fault(2, 62, area="code"), HUNG, [], 70, {}, Second.REACTED),
        (fault(2, 62, area="network"), HUNG, [], 70, {}, Second.REACTED),
        (fault(2, 62, severity="info"), HUNG, [], 70, {}, Second.OTHER_GROUNDS),
        (fault(4, 62), HUNG, [], 70, {}, Second.ITS_PLACE),
        (fault(None, 62), HUNG, [], 70, {}, Second.ITS_PLACE),
        (GPU, UNTOLD, [], 70, {}, Second.NOBODY_NAMED),
        (GPU, [], HUNG, 70, {}, Second.ITS_FIRST),
        # Who fails while all wait.
        (BAD, HUNG, [], 80, GONE, Second.BEFORE_ANY_LOSS),
        (BAD, HUNG, [], 80, {"living": [0]}, Second.BEFORE_ANY_LOSS),
        (BAD, HUNG, [], 80, {}, Second.LIVES_ON),
        (BAD, HUNG, [cascade(*others(2, 5), start=60, onset=66)], 80, GONE, Second.BEFORE_ANY_LOSS),
        (BAD, HUNG, [anomaly("own_death", [2], start=60, onset=63, subject="d")], 80, GONE, Second.BEFORE_ANY_LOSS),
        (BAD, HUNG, [], 70, GONE, Second.LIVES_ON),
        (BAD, HUNG, [], 80, {"living": [2]}, Second.LIVES_ON),
        (BAD, HUNG, [], 80, {"living": [0], "unobserved": [2]}, Second.LIVES_ON),
        (BAD, HUNG, [], 140, GONE, Second.LIVES_ON),
        (BAD, HUNG, [cascade(2, start=60, onset=66)], 80, GONE, Second.LIVES_ON),
        (BAD, UNTOLD, [], 80, GONE, Second.NOBODY_NAMED),
        (BAD, CRASHED, [], 80, GONE, Second.NOT_LATER),
        (error(4, 62), HUNG, [], 80, {}, Second.ITS_PLACE),
        # What follows from the standstill.
        (BAD, HUNG, [cascade(*others(2, 5), start=60, onset=61)], 80, GONE, Second.REACTED),
        (BAD, HUNG, [cascade(*others(2, 5), start=60, onset=63)], 80, GONE, Second.REACTED),
        (BAD, HUNG, [told_to_end(0, onset=63)], 80, GONE, Second.REACTED),
        (BAD, HUNG, [error(7, 61, "b")], 80, GONE, Second.REACTED),
        (BAD, HUNG, [error(5, 50, "b")], 80, GONE, Second.REACTED),
        (BAD, HUNG, [anomaly("own_death", [7], start=60, onset=63, subject="d")], 80, GONE, Second.REACTED),
        (BAD, HUNG, [anomaly("unplaced_error", start=60, onset=63)], 80, GONE, Second.REACTED),
        (OF_TWO, HUNG, [], 80, GONE, Second.REACTED),
        (error(2, 62, text="TimeoutError: no step for 60 s"), HUNG, [], 80, GONE, Second.OF_WAITING),
        (error(2, 62, text="RuntimeError: rank 2 is stuck"), HUNG, [], 80, GONE, Second.OF_WAITING),
        (error(2, 62, text="OSError: Bad file; Connection closed by peer"), HUNG, [], 80, GONE, Second.OF_WAITING),
        (anomaly("own_death", [2], start=60, onset=62), HUNG, [], 80, GONE, Second.OTHER_GROUNDS),
        (cascade(2, start=60), HUNG, [], 80, GONE, Second.OTHER_GROUNDS),
        (anomaly("vanished", [2], start=60), HUNG, [], 80, GONE, Second.OTHER_GROUNDS),
    ],
)
def test_which_is_another_fault(
    found: Anomaly, standing: Sequence[Anomaly], beside: Sequence[Anomaly], now: float, known: Any, why: Second
) -> None:
    assert judged(found, standing, beside, now, **known) is why
    assert (why in SECOND) == (why in (Second.OF_ANOTHER_NODE, Second.BEFORE_ANY_LOSS))
