"""Whether an incident is a former one that shows again, with the reason, and when one is over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import S, anomaly, at
from incident_support import told

from schemas.results import Suspect
from streams.incidents.decision import Decision, Reason
from streams.incidents.flaps import AGAIN, MOST_RESTED, Again, again, reopened, rested
from streams.incidents.opened import KEPT_SUPPORT, KEPT_TAKEN, Open
from streams.incidents.resolution import Course, Resolution, resolution_of

QUIET = 60 * S


def former(family: str, *ranks: int, reason: Reason = Reason.OUTSIDE_COMMUNICATION, **fields: Any) -> Open:
    """An incident that last showed at second 100 and was over at 120."""
    says = told(
        "a", family, ranks, reason=reason, symptom="hang" if family == "standstill" else "slowdown", **fields
    ).says
    said = {"published": at(120), "status": "resolved", "resolution": Resolution.ITERATES.value}
    shown = anomaly("no_iteration", start=90)
    reasons = [Reason.NOTHING_OBSERVED.value, reason.value]
    return Open(
        first="a", family=family, anomalies=[shown], latest=msgspec.structs.replace(says, **said), reasons=reasons
    )


def decided(
    *ranks: int, symptom: Any = "hang", reason: Reason = Reason.OUTSIDE_COMMUNICATION, place: str = ""
) -> Decision:
    return Decision(
        symptom=symptom,
        area="unknown",
        verdict="supported",
        reason=reason,
        onset=0,
        iteration=None,
        suspects=[Suspect(rank=rank, node="", score=0.9, why="") for rank in ranks],
        victims=[],
        places=[Suspect(rank=None, node=place, score=0.5, why="")] if place else [],
    )


HANG, SLOW = former("standstill", 5), former("slowdown", 5)
NODE = former("standstill", reason=Reason.NODE_FAULT, nodes=["node01"])


@pytest.mark.parametrize(
    ("decision", "one", "onset", "now", "why"),
    [
        (decided(5), HANG, 130, 150, Again.SAME_RANKS),
        (decided(5, 6), HANG, 130, 150, Again.SAME_RANKS),
        (decided(9), HANG, 130, 150, Again.OTHER_RANKS),
        (decided(5), HANG, 330, 340, Again.SAME_RANKS),
        (decided(5), HANG, 330, 350, Again.TOO_LATE),
        # What began before it was said to be over never was.
        (decided(5), HANG, 110, 350, Again.SAME_RANKS),
        (decided(5, symptom="crash"), HANG, 130, 150, Again.OTHER_KIND),
        (decided(5), SLOW, 130, 150, Again.OTHER_KIND),
        # Before it was known who, it was said of the former one as well.
        (decided(reason=Reason.NOTHING_OBSERVED), HANG, 130, 150, Again.SAME_REASON),
        (decided(reason=Reason.NONE_COMPLETED), HANG, 130, 150, Again.OTHER_REASON),
        (decided(reason=Reason.NODE_FAULT, place="node01"), NODE, 130, 150, Again.SAME_REASON),
        (decided(reason=Reason.NODE_FAULT, place="node02"), NODE, 130, 150, Again.OTHER_REASON),
    ],
)
def test_whether_it_is_a_former_one(decision: Decision, one: Open, onset: int, now: int, why: Again) -> None:
    new = Open(first="b", family="standstill", anomalies=[anomaly("no_iteration", start=now - 10, onset=onset)])
    assert again(new, decision, one, at(now), QUIET) is why
    assert (why in AGAIN) == why.name.startswith("SAME")


@pytest.mark.parametrize(("rank", "why"), [(2, Again.SAME_RANKS), (3, Again.OTHER_RANKS)])
def test_while_nobody_is_named_it_is_asked_whom_findings_are_about(rank: int, why: Again) -> None:
    pending = decided(symptom="crash", reason=Reason.PENDING_PEERS)
    one = former("standstill", reason=Reason.PENDING_PEERS)
    assert one.latest is not None
    one.latest = msgspec.structs.replace(one.latest, symptom="crash")
    one.anomalies = [anomaly("rank_fault", [2], start=90)]
    new = Open(first="b", family="standstill", anomalies=[anomaly("own_error", [rank], start=140)])
    assert again(new, pending, one, at(150), QUIET) is why


def test_what_a_job_got_over_stands_beside_what_shows_again_and_what_is_slow_goes_on() -> None:
    new = Open(first="b", family="standstill", anomalies=[anomaly("no_iteration", start=140)])
    over = reopened(HANG, new, at(150))
    assert (over.first, over.flaps, over.lull, over.quiet) == ("a", 1, 50 * S, 0)
    assert (over.anomalies, over.took) == (new.anomalies, HANG.anomalies)
    slow = reopened(SLOW, new, at(150))
    assert (slow.anomalies, slow.took) == ([*SLOW.anomalies, *new.anomalies], [])
    for _ in range(100):
        over = reopened(over, new, at(150))
    assert len(over.took) <= KEPT_TAKEN


def test_what_was_over_by_a_word_that_the_job_outlives_was_never_over() -> None:
    stopped = former("standstill", 5)
    assert stopped.latest is not None
    said = {"status": "resolved", "resolution": Resolution.STOPPED.value}
    stopped.latest = msgspec.structs.replace(stopped.latest, **said)
    assert rested([], [stopped], at(120), 10 * S, QUIET) == [stopped]
    new = Open(first="b", family="standstill", anomalies=[anomaly("no_iteration", start=290, onset=90)])
    assert again(new, decided(5), stopped, at(300), QUIET) is Again.SAME_RANKS
    goes_on = reopened(stopped, new, at(300))
    assert (goes_on.first, goes_on.flaps, goes_on.lull) == ("a", 0, 0)
    assert goes_on.anomalies == [*stopped.anomalies, *new.anomalies]


@pytest.mark.parametrize("resolution", [Resolution.STOPPED, Resolution.ITERATES])
def test_however_often_it_shows_again_what_backs_it_is_bounded(resolution: Resolution) -> None:
    one = former("standstill", 5)
    assert one.latest is not None
    one.latest = msgspec.structs.replace(one.latest, resolution=resolution.value)
    first = anomaly("own_series", start=90)
    one.support = [first]
    backing = [anomaly("slow_and_changed", start=140 + number) for number in range(3)]
    for _ in range(20):
        new = Open(first="b", family="standstill", anomalies=[anomaly("no_iteration", start=140)], support=backing)
        one = reopened(one, new, at(150))
    assert len(one.support) == KEPT_SUPPORT
    # The first of every ground stays: verdicts rest on it.
    assert one.support[0] == first and one.support[-1] == backing[-1]


def test_few_are_remembered_and_only_those_whose_job_goes_on() -> None:
    dead = former("standstill", 1)
    dead.latest = told("b", "standstill", [1]).says
    kept = rested([], [dead, HANG], at(120), 10 * S, QUIET)
    assert kept == [HANG]
    assert len(rested(kept, [SLOW] * 20, at(120), 10 * S, QUIET)) == MOST_RESTED
    assert rested(kept, [], at(4000), 10 * S, QUIET) == []


STANDS = Course(stands=True, quiet_ns=10 * S, patience_ns=QUIET, window_ns=10 * S)
LIMPS = msgspec.structs.replace(STANDS, stands=False)


@pytest.mark.parametrize(
    ("course", "changes", "why"),
    [
        (STANDS, {}, None),
        (STANDS, {"progressed": True}, Resolution.ITERATES),
        (STANDS, {"progressed": True, "quiet_ns": 0}, None),
        (STANDS, {"progressed": True, "restarted": True}, Resolution.RESTARTED),
        (STANDS, {"progressed": True, "restarted": True, "flaps": 2, "lull_ns": QUIET}, Resolution.RESTARTED),
        (STANDS, {"progressed": True, "restarted": True, "quiet_ns": 0}, None),
        (STANDS, {"restarted": True}, None),
        (LIMPS, {"progressed": True, "restarted": True}, None),
        (STANDS, {"survived": True}, Resolution.GOES_ON),
        (STANDS, {"survived": True, "quiet_ns": 0}, None),
        (STANDS, {"quiet_ns": 900 * S}, None),
        (STANDS, {"ended": True}, Resolution.ENDED),
        (STANDS, {"ended": True, "quiet_ns": 0}, None),
        (STANDS, {"ended": True, "superseded": True, "quiet_ns": 0}, Resolution.SUPERSEDED),
        (STANDS, {"superseded": True, "stopped": Resolution.STOPPED}, Resolution.STOPPED),
        (LIMPS, {"progressed": True}, None),
        (LIMPS, {"quiet_ns": QUIET}, Resolution.QUIET),
        (LIMPS, {"quiet_ns": QUIET, "lull_ns": QUIET}, None),
        (LIMPS, {"quiet_ns": 2 * QUIET, "lull_ns": QUIET}, Resolution.QUIET),
        (LIMPS, {"superseded": True}, Resolution.SUPERSEDED),
        # What has come back several times.
        (STANDS, {"progressed": True, "flaps": 1, "lull_ns": QUIET}, Resolution.ITERATES),
        (STANDS, {"progressed": True, "flaps": 2, "lull_ns": QUIET}, None),
        (STANDS, {"progressed": True, "flaps": 2, "lull_ns": QUIET, "quiet_ns": 2 * QUIET}, Resolution.ITERATES),
        (STANDS, {"progressed": True, "flaps": 9, "lull_ns": 10**18, "quiet_ns": QUIET}, Resolution.ITERATES),
        (STANDS, {"ended": True, "flaps": 9, "lull_ns": QUIET}, Resolution.ENDED),
    ],
)
def test_why_it_is_over(course: Course, changes: dict[str, Any], why: Resolution | None) -> None:
    assert resolution_of(msgspec.structs.replace(course, **changes)) is why
