"""To which open incident a finding belongs, with the reason: one fault is one incident, and hides no other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from detection_support import S, anomaly, at

from schemas.results import Anomaly
from streams.incidents.joining import MOST_OPEN, OPENS, Beside, Held, Joining, Why, beside_of, joined

HANG = Held(family="standstill", onset=at(0), ranks=frozenset({5}), nodes=frozenset({"node02"}), named=True)
NOBODY = Held(family="standstill", onset=at(0))
PASSED = Held(family="standstill", onset=at(0), ranks=frozenset({0}), nodes=frozenset({"node00"}), passed=True)
GROWS = Held(family="memory", onset=at(0), ranks=frozenset({1}), nodes=frozenset({"node00"}), named=True)
SLOW = Held(family="slowdown", onset=at(0), ranks=frozenset({3}), nodes=frozenset({"node01"}), named=True)
UNTOLD = Held(family="slowdown", onset=at(0))
NAN = Held(family="numerics", onset=at(0), ranks=frozenset({2}), named=True)

LATE = {"start": 1200, "onset": 1195}
"""Twenty minutes later."""


@pytest.mark.parametrize(
    ("found", "beside", "held", "why", "into"),
    [
        # Nothing is open, or nothing of its kind.
        (anomaly("no_iteration"), [], [], Why.FIRST, None),
        (anomaly("cascade", [], [1, 2]), [], [], Why.FIRST, None),
        (anomaly("own_series", [6]), [], [SLOW], Why.FIRST, None),
        (anomaly("outside_communication", [6], **LATE), [], [NAN], Why.FIRST, None),
        (anomaly("own_error", [3], **LATE), [], [SLOW], Why.FIRST, None),
        (anomaly("told_to_end", [3]), [], [], Why.CONTEXT, None),
        (anomaly("own_shift", [3]), [], [HANG], Why.CONTEXT, None),
        # What follows from a hang or a crash is of it, whoever prints it and whenever.
        (anomaly("cascade", [], [0, 1]), [], [HANG], Why.OF_ITS_KIND, 0),
        (anomaly("own_error", [6], **LATE), [], [HANG], Why.OF_ITS_KIND, 0),
        (anomaly("own_death", [7], **LATE), [], [PASSED, HANG, SLOW], Why.OF_ITS_KIND, 1),
        (anomaly("node_fault", [7]), [], [NOBODY], Why.OF_ITS_KIND, 0),
        (anomaly("told_to_end", [3]), [], [HANG], Why.OF_ITS_KIND, 0),
        # A job that has gone on since did not fail of that.
        (anomaly("own_error", [6], **LATE), [], [PASSED], Why.LIVED_THROUGH, None),
        (anomaly("no_iteration", **LATE), [], [PASSED], Why.LIVED_THROUGH, None),
        (anomaly("cascade", [], [0, 1], **LATE), [], [PASSED], Why.LIVED_THROUGH, None),
        (anomaly("own_error", [0], **LATE), [], [PASSED], Why.ITS_RANKS, 0),
        (anomaly("rank_fault", [1], **LATE), [], [PASSED], Why.ITS_PLACE, 0),
        (anomaly("told_to_end", [3]), [], [PASSED], Why.OF_ITS_KIND, 0),
        # Memory that grows of one, and others that fail.
        (anomaly("memory_growth", [1]), [], [], Why.FIRST, None),
        (anomaly("memory_growth", [2]), [], [GROWS], Why.OF_ITS_KIND, 0),
        (anomaly("memory_growth", [1]), [], [HANG], Why.NOT_ITS_MEMORY, None),
        (anomaly("memory_growth", [5]), [], [HANG], Why.ITS_RANKS, 0),
        (anomaly("memory_growth", [1]), [], [NOBODY], Why.OF_ITS_KIND, 0),
        (anomaly("memory_growth_of_all"), [], [HANG], Why.OF_ITS_KIND, 0),
        (anomaly("memory_growth", [1], severity="info"), [], [HANG], Why.OF_ITS_KIND, 0),
        (anomaly("own_error", [6]), [], [GROWS], Why.NOT_ITS_MEMORY, None),
        (anomaly("no_iteration"), [], [GROWS], Why.NOT_ITS_MEMORY, None),
        (anomaly("own_death", [1]), [], [GROWS], Why.ITS_MEMORY, 0),
        (anomaly("cascade", [], [0, 2]), [anomaly("own_death", [1])], [GROWS], Why.ITS_MEMORY, 0),
        (anomaly("cascade", [], [0, 2]), [anomaly("own_death", [6])], [GROWS], Why.NOT_ITS_MEMORY, None),
        # Ranks that are slow, beside others.
        (anomaly("slow_and_changed", [3], **LATE), [], [SLOW], Why.ITS_RANKS, 0),
        (anomaly("slow_and_changed", [11], **LATE), [anomaly("slow_and_changed", [3])], [SLOW], Why.SLOW_LATER, None),
        (anomaly("slow_and_changed", [11], **LATE), [], [SLOW], Why.OF_ITS_KIND, 0),
        (anomaly("slow_and_changed", [11], onset=50), [anomaly("slow_and_changed", [3])], [SLOW], Why.OF_ITS_KIND, 0),
        (anomaly("slow_and_changed", [2], **LATE), [anomaly("slow_and_changed", [3])], [SLOW], Why.OF_ITS_KIND, 0),
        (anomaly("slow_and_changed", [11], **LATE), [anomaly("slow_and_changed", [3])], [UNTOLD], Why.OF_ITS_KIND, 0),
        (anomaly("own_shift", [11], **LATE), [anomaly("slow_and_changed", [3])], [SLOW], Why.OF_ITS_KIND, 0),
        (anomaly("rotating", **LATE), [anomaly("slow_and_changed", [3])], [UNTOLD, SLOW], Why.OF_THE_FIRST, 0),
        (anomaly("job_shift", **LATE), [], [NAN, SLOW], Why.OF_THE_FIRST, 1),
        # Numbers that are not finite are on all ranks sooner or later.
        (anomaly("own_series", [6], **LATE), [], [NAN], Why.OF_ITS_KIND, 0),
        (anomaly("after_reduction", **LATE), [], [NAN], Why.OF_ITS_KIND, 0),
    ],
)
def test_where_a_finding_belongs(
    found: Anomaly, beside: Sequence[Anomaly], held: Sequence[Held], why: Why, into: int | None
) -> None:
    assert joined(found, held, beside_of([found, *beside], S)) == Joining(why, into)


def test_of_too_many_the_next_joins_the_latest_of_its_kind() -> None:
    passed = [PASSED] * (MOST_OPEN - 1)
    other = Beside(window_ns=10 * S)
    found = anomaly("own_error", [6], **LATE)
    assert joined(found, [*passed], other).why is Why.LIVED_THROUGH
    assert joined(found, [*passed, PASSED], other) == Joining(Why.NO_ROOM, MOST_OPEN - 1)
    # No slowdown may swallow a crash.
    assert joined(found, [SLOW] * MOST_OPEN, other).why is Why.FIRST


def test_what_opens_an_incident_is_never_information() -> None:
    for grounds in ("own_error", "memory_growth", "slow_and_changed", "own_series"):
        found = anomaly(grounds, [6], severity="info", **LATE)
        assert joined(found, [PASSED], beside_of([found], S)).why not in OPENS
