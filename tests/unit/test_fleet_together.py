"""Whether two incidents of different jobs may be one failure: each answer with its reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fleet_support import at, crashed, reported, told

from streams.fleet.seen import Seen
from streams.fleet.together import Counts, Together, Told, alike, begun_together, counts, is_own, together
from streams.incidents.decision import Reason
from streams.incidents.resolution import Resolution

STOPPED = {"status": "resolved", "resolution": Resolution.STOPPED.value}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, Counts.YES),
        ({"severity": "warning"}, Counts.YES),
        ({"status": "resolved", "resolution": Resolution.ITERATES.value}, Counts.YES),
        ({"status": "resolved", "resolution": Resolution.SUPERSEDED.value}, Counts.YES),
        ({"severity": "info"}, Counts.INFORMATION),
        ({"severity": "info", "merged_into": "other"}, Counts.MERGED),
        ({**STOPPED, "published": at(150)}, Counts.STOPPED),
        ({**STOPPED, "published": at(100 + 3600)}, Counts.YES),
        ({"status": "resolved", "resolution": Resolution.PREEMPTED.value}, Counts.STOPPED),
        ({"status": "resolved", "resolution": Resolution.OUT_OF_TIME.value}, Counts.STOPPED),
        ({"status": "resolved", "resolution": Resolution.PREEMPTED.value, "published": at(3700)}, Counts.YES),
    ],
    ids=str,
)
def test_what_counts(changes: dict[str, Any], reason: Counts) -> None:
    assert counts(reported(**changes)) is reason


ERROR = {"symptom": "crash", "area": "code", "errors": ["e1"]}

TABLE: dict[str, tuple[Told, Told, Together]] = {
    "two hangs at once": (told("a"), told("b"), Together.YES),
    "a job and itself": (told("a"), told("a", incident="other"), Together.ONE_JOB),
    "hangs two minutes apart": (told("a"), told("b", 219), Together.YES),
    "hangs further apart": (told("a"), told("b", 221), Together.APART_IN_TIME),
    "crashes are dated better": (crashed("a"), crashed("b", 161), Together.APART_IN_TIME),
    "slow jobs are dated worse": (
        told("a", symptom="slowdown", area="compute"),
        told("b", 399, symptom="slowdown", area="compute"),
        Together.YES,
    ),
    "scheduled there once the other had failed": (crashed("a"), crashed("b", 150, since=140), Together.NOT_THERE),
    "began just before": (crashed("a"), crashed("b", 150, since=120), Together.YES),
    "one hangs, one crashes": (told("a"), crashed("b"), Together.NOT_ALIKE),
    "data and checkpoint": (told("a"), told("b", area="checkpoint"), Together.NOT_ALIKE),
    "one area is not known": (told("a"), told("b", area="unknown"), Together.YES),
    "a broken GPU stops one and crashes the other": (
        told("a", area="hardware"),
        crashed("b", area="hardware"),
        Together.YES,
    ),
    "hardware and network": (told("a", area="hardware"), told("b", area="network"), Together.NOT_ALIKE),
    "an error of a job's own beside a death": (crashed("a"), crashed("b", **ERROR), Together.NOT_ALIKE),
    "two errors of their own": (
        crashed("a", **ERROR),
        crashed("b", **{**ERROR, "errors": ["e2"]}),
        Together.OWN_CAUSES,
    ),
    "one error in both": (crashed("a", **ERROR), crashed("b", **{**ERROR, "errors": ["e2", "e1"]}), Together.YES),
}


@pytest.mark.parametrize("name", TABLE)
def test_whether_two_may_be_one(name: str) -> None:
    first, other, reason = TABLE[name]
    assert together(first, other) is reason
    assert together(other, first) is reason


def test_every_reason_is_reached() -> None:
    assert {reason for _, _, reason in TABLE.values()} == set(Together)


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({"area": "code"}, True),
        ({"area": "configuration"}, True),
        ({"area": "workload"}, True),
        ({"symptom": "numerics", "area": "unknown"}, True),
        ({"symptom": "memory", "area": "memory", "reason": Reason.OWN_ERROR.value}, True),
        ({"symptom": "memory", "area": "memory", "reason": Reason.MEMORY_GROWS.value}, True),
        ({"symptom": "memory", "area": "memory", "reason": Reason.RANK_FAULT.value}, False),
        ({"symptom": "crash", "area": "data", "reason": Reason.OWN_ERROR.value}, True),
        ({"symptom": "crash", "area": "unknown", "reason": Reason.OWN_ERROR.value}, True),
        ({"symptom": "crash", "area": "hardware", "reason": Reason.OWN_ERROR.value}, False),
        ({"symptom": "crash", "area": "unknown", "reason": Reason.OWN_DEATH.value}, False),
        ({"area": "data"}, False),
        ({"area": "unknown"}, False),
        ({"area": "hardware"}, False),
    ],
    ids=str,
)
def test_what_jobs_bring_along(changes: dict[str, Any], own: bool) -> None:
    assert is_own(reported(**changes)) is own


@pytest.mark.parametrize("seed", range(4))
def test_of_many_incidents_those_are_found_that_began_together_and_are_alike(seed: int) -> None:
    """As asked of each pair; also where a time is none that any clock tells."""
    draw = np.random.default_rng(seed)
    many: list[Told] = []
    for number in range(120):
        second = float(draw.integers(100, 400))
        symptom = str(draw.choice(["hang", "crash", "slowdown"]))
        area = str(draw.choice(["data", "unknown", "network", "hardware", "code"]))
        since = float(draw.choice([0.0, second - 20, second + 40]))
        job = f"j{draw.integers(0, 60)}"
        many.append(told(job, second, incident=f"i{number}", symptom=symptom, area=area, since=since))
    many.append(told("odd", 100, onset=1 << 70, started=-(1 << 70)))
    seen = Seen(incidents=many)
    for one in many:
        wanted = [
            other.key
            for other in seen.counting
            if begun_together(one, other) is Together.YES and alike(one.incident, other.incident)
        ]
        assert [other.key for other in seen.begun_alike(one)] == wanted
    assert max(len(seen.begun_alike(one)) for one in many) > 5
