"""Hangs, crashes and faults of nodes: one story, whose symptom is whichever stood first.

A hang that stood before the first error is blamed by its stacks and collectives; else errors of a rank's own and
deaths, never cascades. What comes after the symptom supports nobody.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly
from streams.incidents.decision import Base, Decision, Reason, merged, ranks_of
from streams.incidents.hang import hang
from streams.incidents.situation import SECOND, STANDSTILL, Situation

FAILURES = frozenset({"own_error", "own_death", "vanished", "rank_fault"})
"""Grounds that say of a rank that it failed of its own."""
CONTEXT_NS = 600 * SECOND
"""How long before a symptom a fault of a node may lie and still have to do with it."""
EXACT_NS = 10 * SECOND
"""A word of a node that is dated less exactly does not outweigh what another rank prints at about that time."""


def faults_alone(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Nodes report faults, and nothing else is seen."""
    base = Base.of(anomalies, anomalies[0], symptom=anomalies[0].symptom)
    survived = all(situation.survived(one, anomalies) for one in anomalies)
    dated = [one for one in anomalies if one.severity != "info"]
    reason = Reason.SURVIVED if survived else Reason.NODE_FAULT
    return placed(base.nobody(reason, area=anomalies[0].area), dated)


_UNEXPLAINED = frozenset(
    {
        Reason.ONLY_CASCADES,
        Reason.SILENT_ONE,
        Reason.NOBODY_APART,
        Reason.NOTHING_OBSERVED,
        Reason.NONE_COMPLETED,
        Reason.ONE_UNOBSERVED,
        Reason.NODE_FAULT,
    }
)


def at_its_place(decision: Decision, faults: list[Anomaly]) -> Decision:
    """Where nobody is named and nothing explains why, a fault that a node reported before says where to look."""
    before = [
        one
        for one in faults
        if one.severity != "info"
        and decision.onset - CONTEXT_NS <= one.onset <= decision.onset + one.precision_ns + 2 * SECOND
    ]
    if not before or decision.reason not in _UNEXPLAINED:
        return decision
    named = msgspec.structs.replace(decision, reason=Reason.NODE_FAULT, area=before[0].area, verdict="ambiguous")
    return placed(named, before)


def placed(decision: Decision, faults: list[Anomaly]) -> Decision:
    """The decision with the nodes and devices that these findings point at."""
    places = {(one.node, one.device or ""): one for fault in faults for one in fault.suspects}
    return msgspec.structs.replace(decision, places=[places[key] for key in sorted(places)])


def standstill(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Hangs and crashes are one story: whichever stood first is the symptom."""
    stalls = [one for one in anomalies if one.detector in STANDSTILL]
    failures = [one for one in anomalies if one.grounds in FAILURES]
    own = [one for one in failures if not situation.survived(one, anomalies)]
    unplaced = [one for one in _unplaced(anomalies) if not situation.survived(one, anomalies)]
    if stalls and not _explained(stalls[0], [*own, *unplaced], situation):
        return hang(anomalies, stalls, [*own, *unplaced])
    untouched = [one for one in own if not _lost_before(one, anomalies) and not _late(one, anomalies)]
    if unplaced and not (untouched and all(_after(one, _first(untouched)) for one in unplaced)):
        first = _first([*unplaced, *untouched])
        return Base.of(anomalies, first, symptom=first.symptom).nobody(Reason.UNPLACED, area=first.area)
    if untouched:
        return _uncontradicted(_crash(anomalies, untouched, situation), stalls, untouched, situation)
    gone_on = [one for one in [*failures, *_unplaced(anomalies)] if situation.survived(one, anomalies)]
    if gone_on and not own:
        return Base.of(anomalies, gone_on[0], symptom=gone_on[0].symptom).nobody(Reason.SURVIVED)
    return _cascades(anomalies, situation)


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


def _first(failures: list[Anomaly]) -> Anomaly:
    return min(failures, key=lambda one: (one.onset, one.id))


def _lost_before(failure: Anomaly, anomalies: list[Anomaly]) -> bool:
    """Whether all whom a failure names had reported the loss of a peer in a window before: then it is clean-up."""
    lost = {rank for one in anomalies if one.grounds == "cascade" and one.end < failure.end for rank in one.victims}
    return bool(failure.suspects) and all(suspect.rank in lost for suspect in failure.suspects)


def _late(failure: Anomaly, anomalies: list[Anomaly]) -> bool:
    """Whether a fault that a node reported is no cause, since peers had lost somebody before.

    A GPU does not fall off its bus because a job ends; what programs do wrong they may do while they are torn down, so
    that must have come first for certain.
    """
    if failure.grounds != "rank_fault":
        return False
    lost = [one for one in anomalies if one.grounds == "cascade"]
    if failure.area == "code":
        return any(failure.onset + failure.precision_ns > one.onset - one.precision_ns for one in lost)
    return any(failure.onset - failure.precision_ns > one.onset + one.precision_ns for one in lost)


def _explained(stall: Anomaly, failures: list[Anomaly], situation: Situation) -> bool:
    """Whether a failure came before the silence was long enough to mean anything: then it is why nothing comes."""
    failed = min((one.onset - one.precision_ns for one in failures), default=None)
    return failed is not None and failed < stall.onset + situation.silence_ns


def _uncontradicted(
    decision: Decision, stalls: list[Anomaly], failures: list[Anomaly], situation: Situation
) -> Decision:
    """A decision on failures, unless they may as well have come after a standstill in which others stand apart."""
    if not stalls or any(one.onset + one.precision_ns < stalls[0].onset + situation.silence_ns for one in failures):
        return decision
    apart = ranks_of([suspect for one in stalls for suspect in one.suspects])
    if not decision.suspects or not apart or apart & ranks_of(decision.suspects):
        return decision
    return msgspec.structs.replace(decision, verdict="ambiguous", reason=Reason.SOURCES_DISAGREE, suspects=[])


def _crash(anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> Decision:
    first = _first(failures)
    together = [one for one in failures if not _after(one, first)]
    # What a node says of a GPU or of memory is no consequence of what others print at about that time.
    told = [one for one in together if one.grounds == "rank_fault" and one.area != "code"]
    told = [one for one in told if one.precision_ns <= EXACT_NS]
    cause, suspects = (_first(told), merged(told)) if len(merged(told)) == 1 else (first, merged(together))
    base = Base.of(anomalies, first, symptom=cause.symptom)
    ranks = sorted({suspect.rank for suspect in suspects if suspect.rank is not None})
    alike = [one for one in failures if one.grounds == first.grounds and one.templates == first.templates]
    alike_ranks = {suspect.rank for one in alike for suspect in one.suspects}
    if len(alike_ranks) > 1 and len(alike_ranks) >= 0.9 * len(situation.members):
        return base.everybody(Reason.ALL_ALIKE, area=first.area)
    if len(situation.members) == 1 and situation.expected != 1:
        return base.nobody(Reason.NO_PEERS, area=cause.area)
    if len(ranks) == 1:
        reacted = [one for one in anomalies if one.grounds in ("cascade", "told_to_end")]
        # A process that raised and lives on has not failed yet; one that is silent for a window has, unless it is its
        # node's producer that is silent.
        unknown = ranks[0] in situation.living or ranks[0] in situation.unobserved
        waited = situation.now >= first.end + situation.window_ns and not unknown
        if not reacted and not waited and len(situation.members) > 1:
            return base.nobody(Reason.PENDING_PEERS)
        return base.named(_CRASH_REASON[cause.grounds], suspects, area=cause.area)
    nodes = {situation.members.get(rank, "") for rank in ranks}
    on_node = [rank for rank, node in situation.members.items() if node in nodes]
    if len(nodes) == 1 and nodes != {""} and len(on_node) < len(situation.members) and len(ranks) == len(on_node):
        return base.named(Reason.ONE_NODE, suspects, area=first.area)
    return base.nobody(Reason.SEVERAL_CANDIDATES, area=first.area)


def _after(one: Anomaly, first: Anomaly) -> bool:
    """Whether ``one`` certainly came after ``first``; within their precision, and two seconds, there is no order."""
    return one.onset - one.precision_ns > first.onset + first.precision_ns + 2 * SECOND


_CRASH_REASON = {
    "own_error": Reason.OWN_ERROR,
    "own_death": Reason.OWN_DEATH,
    "vanished": Reason.VANISHED,
    "rank_fault": Reason.RANK_FAULT,
}


def _cascades(anomalies: list[Anomaly], situation: Situation) -> Decision:
    cascades = [one for one in anomalies if one.grounds == "cascade"]
    base = Base.of(anomalies, (cascades or anomalies)[0], symptom=(cascades or anomalies)[0].symptom)
    if cascades and all(situation.survived(one, anomalies) for one in cascades):
        return base.nobody(Reason.SURVIVED)
    reported = {rank for one in cascades for rank in one.victims}
    silent = sorted(set(situation.members) - reported)
    observed = not set(silent) & set(situation.unobserved)
    if len(silent) == 1 and observed and len(reported) >= 3 and situation.now >= base.onset + 2 * situation.window_ns:
        return base.nobody(Reason.SILENT_ONE)
    return base.nobody(Reason.ONLY_CASCADES)
