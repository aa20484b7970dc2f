"""Hangs, crashes and faults of nodes: one story, whose symptom is whichever stood first.

A hang that stood before the first error is blamed by its stacks and collectives; else errors of a rank's own and
deaths, never cascades. What comes after the symptom supports nobody.
"""

from __future__ import annotations

import msgspec

from schemas.measures import measure_of
from schemas.results import Anomaly
from streams.hardware import PORT_UP
from streams.incidents.crash import EXIT_CODE, OF_FAILURE, crash, exit_codes, first_of, only_cascades
from streams.incidents.decision import LOSSES, LOST, Base, Decision, Reason, placed, ranks_of, victims_of
from streams.incidents.hang import gainsaid, hang
from streams.incidents.situation import COLLECTED_NS, HARDWARE_STATE, SECOND, STANDSTILL, Situation, came_before

FAILURES = frozenset(OF_FAILURE)
"""Grounds that say of a rank that it failed of its own."""
GROUNDS = FAILURES | {"cascade", "told_to_end", "unplaced_error", "unplaced_besides", "node_fault", EXIT_CODE}
"""Grounds that say that somebody has failed, or has lost who has."""
CONTEXT_NS = 750 * SECOND
"""How long before a symptom a fault of a node may lie and still have to do with it: watchdogs wait ten minutes."""


def faults_alone(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Nodes report faults, and nothing else is seen."""
    base = Base.of(anomalies, anomalies[0], symptom=anomalies[0].symptom)
    survived = all(situation.survived(one, anomalies) for one in anomalies)
    dated = [one for one in anomalies if one.severity != "info"]
    if survived:
        return _gone_on(base, dated or anomalies, situation)
    return placed(base.nobody(Reason.NODE_FAULT, area=anomalies[0].area), dated)


_UNEXPLAINED = frozenset(
    {
        Reason.ONLY_CASCADES,
        Reason.SILENT_ONE,
        Reason.NOBODY_APART,
        Reason.NOTHING_OBSERVED,
        Reason.NONE_COMPLETED,
        Reason.ONE_UNOBSERVED,
        Reason.NODE_FAULT,
        Reason.EXIT_CODE,
    }
)


def at_its_place(decision: Decision, faults: list[Anomaly]) -> Decision:
    """Where nobody is named and nothing explains why, a fault that a node reported before says where to look."""
    before = shortly_before(decision, faults)
    if not before or decision.reason not in _UNEXPLAINED:
        return decision
    named = msgspec.structs.replace(decision, reason=Reason.NODE_FAULT, area=before[0].area, verdict="ambiguous")
    return placed(named, before)


def shortly_before(decision: Decision, faults: list[Anomaly]) -> list[Anomaly]:
    """The faults that may have come before, and have to do with it."""
    since = decision.onset - CONTEXT_NS
    return [
        one
        for one in faults
        if one.severity != "info" and since <= one.onset <= decision.onset + one.precision_ns + 2 * SECOND
    ]


def _gone_on(base: Base, passed: list[Anomaly], situation: Situation) -> Decision:
    """Nobody is named for what the job lived through; broken hardware stays a warning of its place.

    A GPU or memory that failed once fails again, whoever uses it next, and a port that does not work yet is of no use;
    what a program did wrong, or a port that came back, is over.
    """
    faults = [one for one in passed if one.grounds in ("rank_fault", "node_fault")]
    broken = [one for one in faults if one.area == "hardware" or _is_down(one, situation)]
    decision = base.nobody(Reason.SURVIVED, area=(broken or passed)[0].area)
    if any(one.severity != "info" for one in broken):
        decision = msgspec.structs.replace(decision, severity="warning")
    return placed(decision, broken or [one for one in passed if one.grounds == "node_fault"])


def _is_down(fault: Anomaly, situation: Situation) -> bool:
    """Whether a fault is a port that by its sampled state went down and has not been found to work since."""
    measure = measure_of(fault.metric) if fault.detector == HARDWARE_STATE else None
    works = [situation.working.get((one.node, one.device or ""), 0) for one in fault.suspects]
    return measure is not None and measure.kind in PORT_UP and all(time < fault.onset for time in works)


def standstill(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Hangs and crashes are one story: whichever stood first is the symptom."""
    # What an incident began with, and what it took up from before it, do not stand in order of time.
    anomalies = sorted(anomalies, key=lambda one: one.end)
    stalls = _of_one_standstill([one for one in anomalies if one.detector in STANDSTILL])
    failures = [one for one in anomalies if one.grounds in FAILURES]
    own = [one for one in failures if not situation.survived(one, anomalies)]
    unplaced = [one for one in _unplaced(anomalies) if not situation.survived(one, anomalies)]
    if stalls and not _explained(stalls[0], [*own, *unplaced], situation):
        hung = _without_killed(hang(anomalies, stalls, [*own, *unplaced]), own, anomalies)
        coded = [one for one in anomalies if one.grounds == EXIT_CODE]
        # Of processes that have ended nothing comes any more; that is no hang, unless it shows who held the others up.
        ended = _explained(stalls[0], coded, situation) and not (hung.suspects or own or unplaced)
        return exit_codes(coded, anomalies, situation) if ended else hung
    untouched = [one for one in own if not _is_late(one, own, anomalies, situation)]
    if unplaced and not all(any(came_before(own, one) for own in untouched) for one in unplaced):
        first = first_of([*unplaced, *untouched])
        return Base.of(anomalies, first, symptom=first.symptom).nobody(Reason.UNPLACED, area=first.area)
    if untouched:
        late = [one for one in own if one not in untouched]
        decision = crash(anomalies, untouched, late, situation)
        return _uncontradicted(decision, anomalies, stalls, untouched, situation)
    gone_on = [one for one in [*failures, *_unplaced(anomalies)] if situation.survived(one, anomalies)]
    lost = [one for one in anomalies if one.grounds == "cascade" and not situation.survived(one, anomalies)]
    if gone_on and not own and not lost:
        return _gone_on(Base.of(anomalies, gone_on[0], symptom=gone_on[0].symptom), gone_on, situation)
    return only_cascades(anomalies, situation)


def _without_killed(decision: Decision, failures: list[Anomaly], anomalies: list[Anomaly]) -> Decision:
    """A hang is not what killed a rank that died by a signal that nobody had sent, without the loss of a peer."""
    lost = victims_of(anomalies, LOSSES)
    killed = ranks_of([suspect for one in failures if one.grounds == "own_death" for suspect in one.suspects]) - lost
    victims = [rank for rank in decision.victims if rank not in killed]
    return msgspec.structs.replace(decision, victims=victims)


def _of_one_standstill(stalls: list[Anomaly]) -> list[Anomaly]:
    """Those of the present standstill: what was found before the iteration that it began with is of an earlier one."""
    return [one for one in stalls if one.end > stalls[-1].onset]


def _unplaced(anomalies: list[Anomaly]) -> list[Anomaly]:
    """Errors of nobody known, without those that a rank is known to have printed as well (in another file).

    Where they were printed more often than by ranks that are known, somebody else has printed them, too.
    """
    known = {signature for one in anomalies if one.grounds == "own_error" for signature in one.templates}
    return [
        one
        for one in anomalies
        if one.grounds == "unplaced_besides" or (one.grounds == "unplaced_error" and not known & set(one.templates))
    ]


def _is_late(failure: Anomaly, failures: list[Anomaly], anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether a failure is no cause, since peers had lost somebody before."""
    if failure.grounds == "rank_fault":
        return _is_late_fault(failure, anomalies)
    if failure.grounds == "own_error" and _follows_a_death(failure, failures):
        return True
    return _is_clean_up(failure, failures, anomalies, situation)


def _is_clean_up(failure: Anomaly, failures: list[Anomaly], anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether peers had lost somebody before all that a failure names: then that was another.

    Those who reported a loss in a window before have not begun it. Of an error that came later for certain nobody was
    lost, unless all others are known to have lost a peer or to have been told to end: then it is who was lost, whose
    traceback came late. Nor is it the first word of a rank of which more is known.
    """
    ranks = ranks_of(failure.suspects)
    cascades = [one for one in anomalies if one.grounds == "cascade"]
    before = victims_of((one for one in cascades if one.end < failure.end), LOST)
    if ranks and ranks <= before:
        return True
    if failure.grounds != "own_error" or not any(came_before(one, failure) for one in cascades):
        return False
    if any(ranks <= ranks_of(one.suspects) and one.onset < first_of(cascades).onset for one in failures):
        return False
    others = situation.members.keys() - ranks
    return ranks <= victims_of(cascades, LOST) or not others <= victims_of(anomalies, LOSSES)


def _follows_a_death(failure: Anomaly, failures: list[Anomaly]) -> bool:
    """Whether all who printed an error had lost a peer by their own logs before, and another is known to have died.

    Unless it died later for certain: then they had lost somebody else.
    """
    ranks = ranks_of(failure.suspects)
    deaths = [one for one in failures if one.grounds == "own_death" and not ranks_of(one.suspects) & ranks]
    return bool(ranks) and ranks <= set(failure.victims) and any(not came_before(failure, one) for one in deaths)


def _is_late_fault(failure: Anomaly, anomalies: list[Anomaly]) -> bool:
    """Whether a fault that a node reported is no cause, since peers had lost somebody before.

    A GPU does not fall off its bus because a job ends; what programs do wrong they may do while they are torn down, so
    that must have come first for certain. What is sampled may be older by as much as its exporter lags.
    """
    lost = [one for one in anomalies if one.grounds == "cascade"]
    if failure.area == "code":
        return any(failure.onset + failure.precision_ns > one.onset - one.precision_ns for one in lost)
    lag = COLLECTED_NS if failure.detector == HARDWARE_STATE else 0
    return any(failure.onset - failure.precision_ns - lag > one.onset + one.precision_ns for one in lost)


def _explained(stall: Anomaly, failures: list[Anomaly], situation: Situation) -> bool:
    """Whether a failure came before the silence was long enough to mean anything: then it is why nothing comes."""
    failed = min((one.onset - one.precision_ns for one in failures), default=None)
    return failed is not None and failed < stall.onset + situation.silence_ns


def _uncontradicted(
    decision: Decision,
    anomalies: list[Anomaly],
    stalls: list[Anomaly],
    failures: list[Anomaly],
    situation: Situation,
) -> Decision:
    """A decision on failures, unless they may as well have come after a standstill that shows somebody else.

    What came before the last iteration, or has ended a process before anybody stood apart, is why the others do.
    """
    if not stalls or any(_stopped_it(one, stalls[0], situation) for one in failures):
        return decision
    blamed = ranks_of(decision.suspects) or ranks_of([suspect for one in failures for suspect in one.suspects])
    if decision.reason not in _ONE_BLAMED or not gainsaid(blamed, anomalies, stalls):
        return decision
    return msgspec.structs.replace(decision, verdict="ambiguous", reason=Reason.SOURCES_DISAGREE, suspects=[])


_ONE_BLAMED = frozenset({*OF_FAILURE.values(), Reason.ONE_NODE, Reason.PENDING_PEERS})
"""Reasons of decisions that name who failed, or will."""


def _stopped_it(failure: Anomaly, stall: Anomaly, situation: Situation) -> bool:
    """Whether a failure came before the standstill for certain, and not only before it was long enough to be one."""
    ranks = ranks_of(failure.suspects)
    ended = any(situation.exited.get(-1 if rank is None else rank, stall.end) < stall.end for rank in ranks)
    return ended or failure.onset + failure.precision_ns < stall.onset
