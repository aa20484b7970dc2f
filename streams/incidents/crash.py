"""Crashes: which of several failures came first, whether it is certain, and whom that names.

Order is known only where the times at which two may have been do not overlap. What a node reports of a GPU or a process
says more than what ranks print at about that time, but a fault need not reach the program: a job that goes on was not
stopped by it, and a rank that outlives another did not fail first for certain.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from schemas.results import Anomaly, Suspect
from streams.incidents.decision import LOSSES, LOST, Base, Decision, Reason, merged, most, placed, ranks_of, victims_of
from streams.incidents.hang import hang
from streams.incidents.situation import (
    COLLECTED_NS,
    HARDWARE_STATE,
    SECOND,
    STANDSTILL,
    TOGETHER_NS,
    Situation,
    came_before,
    earliest,
    latest,
)
from streams.regular_lines import REACHES_NS
from streams.rhythm import Rhythm

EXIT_CODE = "exit_code"
"""Grounds that say that ranks ended with an exit code and nobody printed why."""
RESTART_NS = 300 * SECOND
"""Within so long a launcher that begins anew has ended its other workers, met with those of other nodes and begun."""
EXACT_NS = 10 * SECOND
"""A word of a node that is dated less exactly does not outweigh what another rank prints at about that time."""


def first_of(failures: list[Anomaly]) -> Anomaly:
    """The failure that is dated first; that it was the first is not said."""
    return min(failures, key=lambda one: (one.onset, one.id))


def crash(anomalies: list[Anomaly], failures: list[Anomaly], late: list[Anomaly], situation: Situation) -> Decision:
    """The decision over failures of ranks' own, of which there must be one, among an incident's anomalies.

    ``late`` are those that came after peers were lost: no causes, but who outlived them was not lost before.
    """
    first = first_of(failures)
    together = [one for one in failures if not any(came_before(other, one) for other in failures)]
    # What a node says of a GPU or of memory is no consequence of what others print at about that time.
    told = [one for one in together if one.grounds == "rank_fault" and one.area != "code"]
    outweighs = len(merged(told)) == 1 and all(_inexact(one) <= EXACT_NS for one in told)
    candidates = told if outweighs else together
    cause, suspects = first_of(candidates), merged(candidates)
    base = Base.of(anomalies, first, symptom=cause.symptom)
    if _all_alike(first, failures, situation):
        return base.everybody(Reason.ALL_ALIKE, area=first.area)
    if len(situation.members) == 1 and situation.expected != 1:
        return base.nobody(Reason.NO_PEERS, area=cause.area)
    if _outlived(candidates, anomalies, [*failures, *late], situation):
        return base.nobody(Reason.SEVERAL_CANDIDATES, area=first.area)
    if _lost_a_peer(candidates, anomalies, failures, situation):
        return placed(only_cascades(anomalies, situation), candidates)
    if len(ranks_of(suspects)) == 1:
        return _one(base, cause, suspects, anomalies, failures, situation)
    return _several(base, candidates, situation)


def _one(
    base: Base,
    cause: Anomaly,
    suspects: list[Suspect],
    anomalies: list[Anomaly],
    failures: list[Anomaly],
    situation: Situation,
) -> Decision:
    """One that was the first for certain: named once its peers, or the job's silence, show that it has failed."""
    of_its_own = situation.beside and cause.grounds == "own_error"
    reason = Reason.FAILED_BESIDE if of_its_own else OF_FAILURE[cause.grounds]
    named = base.named(reason, suspects, area=cause.area)
    if cause.grounds == "own_error" and (doubt := _doubted(cause, anomalies, failures, situation)):
        return base.nobody(doubt, area=cause.area)
    # What another rank may have printed at about that time need not have come yet.
    settled = situation.now >= cause.onset + TOGETHER_NS
    if len(situation.members) == 1 or (settled and _reacted(cause, anomalies, situation)):
        return named
    rank = suspects[0].rank
    if _may_go_on(rank, cause, failures, situation):
        pending = msgspec.structs.replace(base.nobody(Reason.PENDING_PEERS), severity="warning")
        return placed(pending, [cause]) if cause.grounds == "rank_fault" else pending
    waited = _waited(rank, cause, situation) or _stands_still(rank, cause, anomalies, situation)
    waited = waited or _held_up(cause, anomalies)
    return named if waited else base.nobody(Reason.PENDING_PEERS)


def _doubted(cause: Anomaly, anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> Reason | None:
    """Why an error that was the first for certain need not be why the job fails, or null."""
    if _held_up(cause, anomalies):
        return None
    if _silent_beside(cause, anomalies, failures, situation):
        return Reason.LOST_AS_WELL
    if _silent_before(cause, anomalies, failures, situation):
        return Reason.SILENT_BEFORE
    return Reason.CAUGHT if _caught(cause, anomalies, failures, situation) else None


def _held_up(cause: Anomaly, anomalies: list[Anomaly]) -> bool:
    """Whether the job's standstill shows that peers wait for who failed, and for nobody else.

    Dumps that alone do not tell whether one waits unseen agree with what it printed.
    """
    stalls = [one for one in anomalies if one.detector in STANDSTILL and one.end >= cause.end]
    dumps = [one for one in stalls if one.detector == "collective_laggard"]
    told = ranks_of(hang(anomalies, stalls, []).suspects or merged(dumps[-1:])) if stalls else set()
    return bool(told) and told <= ranks_of(cause.suspects)


def _caught(cause: Anomaly, anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> bool:
    """Whether all errors that its rank is known for were caught, and its process was seen since, a window later.

    Not where most peers have lost somebody at once: what they report much later has other causes.
    """
    ranks = ranks_of(cause.suspects)
    by_then = latest(cause) + situation.window_ns
    soon = victims_of((one for one in anomalies if one.onset <= by_then), LOSSES)
    others = situation.members.keys() - ranks
    if most(others, soon):
        return False
    kinds = {suspect.kind for one in failures for suspect in one.suspects if suspect.rank in ranks}
    lived = [situation.watched.get(-1 if rank is None else rank, 0) for rank in ranks]
    return kinds == {"caught"} and all(time > by_then for time in lived)


def _silent_before(cause: Anomaly, anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> bool:
    """Whether somebody of whom no word is known has shown no life since before the error, and most others have since.

    Who is gone by then may have failed first, and the error be of its loss.
    """
    others = situation.members.keys() - ranks_of([*cause.suspects, *merged(failures)])
    told = victims_of(anomalies, LOSSES)
    gone = [rank for rank in situation.lapsed if rank in others - told and situation.seen[rank] < earliest(cause)]
    later = {rank for rank in others if situation.seen.get(rank, 0) > latest(cause)}
    return bool(gone) and most(others, later)


def _reacted(cause: Anomaly, anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether peers have lost who failed.

    Most of them must have where it lives on and may have caught its error, or is seen to wait with them: what some of
    them print has other causes. Whom launchers have told to end speaks neither way there: those act on ends of others.
    """
    lost = victims_of(anomalies, LOST)
    told = victims_of(anomalies, LOSSES) - lost
    ranks = ranks_of(cause.suspects)
    if not _lives_on(ranks, cause, situation) or not (_may_have_caught(cause, situation) or _waits(cause, anomalies)):
        return bool(lost | told)
    return most(situation.members.keys() - ranks - told, lost)


def _lives_on(ranks: AbstractSet[int | None], cause: Anomaly, situation: Situation) -> bool:
    """Whether ranks show life, or did for a window after what they are blamed for, and nobody does any more.

    The silence of all says nothing of one.
    """
    if situation.living:
        return ranks <= set(situation.living)
    lived = latest(cause) + situation.window_ns
    return all(rank is not None and situation.seen.get(rank, 0) > lived for rank in ranks)


def _may_have_caught(cause: Anomaly, situation: Situation) -> bool:
    """Whether it is an error of a process that is looked at and whose end is not known.

    Not where the attempt was ended within a window of the error: then nobody could see it live on, nor most peers lose
    it.
    """
    looked_at = {rank for rank, time in situation.watched.items() if time and rank not in situation.exited}
    at_once = situation.ended is not None and situation.ended <= latest(cause) + situation.window_ns
    return cause.grounds == "own_error" and ranks_of(cause.suspects) <= looked_at and not at_once


def _waits(cause: Anomaly, anomalies: list[Anomaly]) -> bool:
    """Whether all whom it names are seen to wait with their peers in its window or later."""
    stalls = [one for one in anomalies if one.detector in STANDSTILL and one.end >= cause.end]
    return any(ranks_of(cause.suspects) <= set(one.victims) for one in stalls)


def _silent_beside(cause: Anomaly, anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> bool:
    """Whether who failed has lost a peer as well, and another is silent, who may be that peer.

    Unless it has failed before any peer was lost for certain, and is not seen to wait since. Who shows life later than
    that was not lost, and of whose node nothing is heard nothing is known. Who was never heard of may be that peer
    whenever it failed.
    """
    cascades = [one for one in anomalies if one.grounds == "cascade"]
    if not ranks_of(cause.suspects) <= victims_of(cascades, LOST):
        return False
    if situation.unheard:
        return True
    if came_before(cause, first_of(cascades)) and not _waits(cause, anomalies):
        return False
    lost = victims_of(anomalies, LOSSES)
    alive = situation.living if situation.now - situation.window_ns >= cause.end else []
    return bool(silent_of(lost | ranks_of(merged(failures)) | set(alive), situation))


def silent_of(heard: AbstractSet[int | None], situation: Situation) -> list[int]:
    """The ranks that are not among those heard of, without those whose nodes are silent as well."""
    return [rank for rank in situation.members if rank not in heard and rank not in situation.unobserved]


ENOUGH_LOST = 3
"""Of fewer who report a loss the silent one may as well be slow to do so."""


def _inexact(one: Anomaly) -> int:
    """How far off it may be when it is held against what is printed (ns)."""
    return one.precision_ns + (COLLECTED_NS if one.detector == HARDWARE_STATE else 0)


OF_FAILURE = {
    "own_error": Reason.OWN_ERROR,
    "own_death": Reason.OWN_DEATH,
    "vanished": Reason.VANISHED,
    "rank_fault": Reason.RANK_FAULT,
}
"""Why one is named that failed first, by the grounds that say that it failed."""


def _all_alike(first: Anomaly, failures: list[Anomaly], situation: Situation) -> bool:
    alike = [one for one in failures if one.grounds == first.grounds and one.templates == first.templates]
    ranks = {suspect.rank for one in alike for suspect in one.suspects}
    return len(ranks) > 1 and len(ranks) >= 0.9 * len(situation.members)


def _several(base: Base, candidates: list[Anomaly], situation: Situation) -> Decision:
    """Several that may each have been the first: named only where they are all of one node, among others, and alike.

    What befalls a node does the same to its ranks; of one that was killed and one that printed an error either may be
    a victim.
    """
    first, suspects = first_of(candidates), merged(candidates)
    ranks = {suspect.rank for suspect in suspects if suspect.rank is not None}
    nodes = {situation.members.get(rank, "") for rank in ranks}
    on_node = [rank for rank, node in situation.members.items() if node in nodes]
    whole = len(nodes) == 1 and nodes != {""} and len(on_node) < len(situation.members) and len(ranks) == len(on_node)
    if whole and any(ranks <= ranks_of(merged(alike)) for alike in _alike(candidates)):
        return base.named(Reason.ONE_NODE, suspects, area=first.area)
    return base.nobody(Reason.SEVERAL_CANDIDATES, area=first.area, among=suspects if whole else ())


def _alike(failures: list[Anomaly]) -> list[list[Anomaly]]:
    """Those that say the same: of one kind, and errors with the same text."""
    found: dict[tuple[str, ...], list[Anomaly]] = {}
    for one in failures:
        found.setdefault((one.grounds, *(one.templates if one.grounds == "own_error" else ())), []).append(one)
    return list(found.values())


def _waited(rank: int | None, cause: Anomaly, situation: Situation) -> bool:
    """Whether long enough was waited for the peers' reaction.

    A process that raised and lives on has not failed yet; one that is silent for a window has, unless it is its node's
    producer that is silent.
    """
    unknown = _lives_on({rank}, cause, situation) or rank in situation.unobserved
    return situation.now >= cause.end + situation.window_ns and not unknown


def _stands_still(rank: int | None, cause: Anomaly, anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether the job has long stood still since an error after which its rank, alive or not, has not said a word.

    A process that has raised may live on until it is torn down. Not where the rank is seen to wait with its peers, nor
    where the error is dated so that what it said may have come before or after it.
    """
    if cause.grounds != "own_error" or _inexact(cause) > EXACT_NS or _waits(cause, anomalies):
        return False
    stalls = [one for one in anomalies if one.detector == "no_iteration" and one.onset <= latest(cause) + TOGETHER_NS]
    stood = max((one.end for one in stalls), default=0) >= cause.end + situation.quiet_ns
    spoke = situation.spoke.get(-1 if rank is None else rank, Rhythm()).last
    return stood and spoke <= latest(cause) + TOGETHER_NS and rank not in situation.unobserved


def _may_go_on(rank: int | None, fault: Anomaly, failures: list[Anomaly], situation: Situation) -> bool:
    """Whether a passing fault or error is all that is known against a rank that may go on, in a job that may.

    Then it warns of a place: it pages, and names, once anything has stopped. A process that its node has killed for
    want of memory does not go on; one that has caught its error is not known to have failed at all.
    """
    if rank in situation.exited or not all(_passing(one, situation) for one in [fault, *failures]):
        return False
    return fault.grounds == "own_error" or situation.may_go_on(fault, rank)


def _passing(candidate: Anomaly, situation: Situation) -> bool:
    """Whether what is known against a rank need not have ended it.

    What its node reports need not reach the program, unless it is that it was killed; and who prints on as before after
    an error has caught it.
    """
    if candidate.grounds == "rank_fault":
        return candidate.area != "memory"
    return candidate.grounds == "own_error" and _printed_on(candidate, situation)


def _printed_on(candidate: Anomaly, situation: Situation, reach_ns: int = 2 * SECOND) -> bool:
    """Whether those whom it names printed on as before: later than it may have been, and than what was on its way."""
    by_then = max(latest(candidate), candidate.onset + reach_ns)
    told = [situation.repeated.get(one.rank, 0) if one.rank is not None else 0 for one in candidate.suspects]
    return all(time >= by_then for time in told)


def _outlived(
    candidates: list[Anomaly], anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation
) -> bool:
    """Whether those against whom only passing faults and errors are known lived on until others failed of their own.

    Who speaks after another has failed, or says that it has lost a peer, and prints no further error of its own before,
    is not known to have failed first; nor is who printed on as before for longer than a fault takes to reach the
    program, if anything at all is known against another since.
    """
    if not all(_passing(one, situation) for one in candidates):
        return False
    ranks = ranks_of(merged(candidates))
    if _outlasted(candidates, situation):
        later = [one for one in failures if not ranks_of(one.suspects) & ranks]
        if any(came_before(mine, one) for one in later for mine in candidates):
            return True
    shown = [one for one in failures if not _passing(one, situation)]
    own = [one for one in shown if ranks_of(one.suspects) & ranks]
    others = [one for one in shown if not ranks_of(one.suspects) & ranks]
    return any(
        all(came_before(one, mine) for mine in own) and all(_lived(rank, one, anomalies, situation) for rank in ranks)
        for one in others
    )


def _outlasted(candidates: list[Anomaly], situation: Situation) -> bool:
    """Whether those whom they name printed on as before for longer than a fault takes to reach the program.

    Where iterations are printed these tell it: what else is printed may be a heartbeat.
    """
    return situation.iterated is None and all(_printed_on(one, situation, REACHES_NS) for one in candidates)


def _lived(rank: int | None, failure: Anomaly, anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether a rank is seen to have lived when another failed."""
    lost = [one for one in anomalies if one.grounds == "cascade" and rank in one.victims]
    spoke = situation.spoke.get(-1 if rank is None else rank, Rhythm()).last > latest(failure) + 2 * SECOND
    return spoke or any(not came_before(one, failure) for one in lost)


def _lost_a_peer(
    candidates: list[Anomaly], anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation
) -> bool:
    """Whether those against whom only passing faults and errors are known printed on as before, then lost a peer.

    Who fails prints that, and not as its last word that somebody else has. Who printed on for longer than a fault takes
    to reach the program has lost nobody by it, whoever reports that.
    """
    ranks = ranks_of(merged(candidates))
    own = [one for one in failures if ranks_of(one.suspects) & ranks]
    lost = victims_of(anomalies, LOST)
    passing = all(_passing(one, situation) for one in own) and all(_printed_on(one, situation) for one in candidates)
    return passing and (ranks <= lost or (bool(lost) and _outlasted(candidates, situation)))


def only_cascades(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision where nobody is known to have failed of its own."""
    cascades = [one for one in anomalies if one.grounds == "cascade"]
    base = Base.of(anomalies, (cascades or anomalies)[0], symptom=(cascades or anomalies)[0].symptom)
    coded = [one for one in anomalies if one.grounds == EXIT_CODE]
    if coded and not cascades:
        return exit_codes(coded, anomalies, situation)
    if cascades and all(situation.survived(one, anomalies) for one in cascades):
        return base.nobody(Reason.SURVIVED)
    reported = victims_of(cascades, LOST)
    silent = set(situation.members) - reported
    waited = situation.now >= base.onset + 2 * situation.window_ns
    if len(silent) == 1 and silent_of(reported, situation) and len(reported) >= ENOUGH_LOST and waited:
        return base.nobody(Reason.SILENT_ONE)
    return base.nobody(Reason.ONLY_CASCADES)


def exit_codes(coded: list[Anomaly], anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision where exit codes are all that tells of a failure; who has lost a peer ends with one as well.

    A job that trained, and that its launcher has begun anew since, has lived through it.
    """
    base = Base.of(anomalies, first_of(coded), symptom="crash")
    if all(situation.survived(one, anomalies) for one in coded):
        return base.nobody(Reason.SURVIVED)
    decision = base.nobody(Reason.EXIT_CODE)
    began = situation.superseded
    anew = began is not None and situation.iterated is not None and began <= base.onset + RESTART_NS
    return msgspec.structs.replace(decision, severity="info") if anew else decision
