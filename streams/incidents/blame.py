"""Whom the evidence supports: a pure decision over an incident's anomalies, with the reason it returns.

Order of blame (detectors.md section 3): a hang that stood before the first error is blamed by its stacks and
collectives; else errors of a rank's own and deaths, never cascades. What comes after the symptom supports nobody.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from schemas.results import Anomaly, Area, Suspect, Symptom, Verdict

SECOND = 1_000_000_000
STANDSTILL = frozenset({"no_iteration", "stack_minority", "collective_laggard"})
"""Detectors that speak only while the job stands still."""
FAILURES = frozenset({"own_error", "own_death", "vanished", "rank_fault"})
"""Grounds that say of a rank that it failed of its own."""
_MAY_PASS = frozenset({"own_error", "cascade", "unplaced_error", "rank_fault", "node_fault"})
"""Grounds of what a job may live through."""
CONTEXT_NS = 600 * SECOND
"""How long before a symptom a fault of a node may lie and still have to do with it."""
EXACT_NS = 10 * SECOND
"""A word of a node that is dated less exactly does not outweigh what another rank prints at about that time."""


class Reason(Enum):
    """Why blame decided as it did."""

    OUTSIDE_COMMUNICATION = "one stands outside communication while its peers wait"
    NEVER_ENQUEUED = "one never enqueued what its group waits for"
    NEVER_COMPLETED = "one has not completed what all its peers have, so its own device has stopped"
    MISMATCHED = "one enqueued another operation than its peers at the same place of their group"
    OUT_OF_ORDER = "one left out a collective and went on to the next, unlike its peers in both groups"
    SOURCES_DISAGREE = "stacks and collectives point at different ranks"
    NOBODY_APART = "the job stands still and nothing observed tells the ranks apart"
    NOTHING_OBSERVED = "the job stands still and neither stacks nor dumps of it were observed"
    NO_PEERS = "one failed by an error of its own, but no peer was observed to hold it against"
    OWN_ERROR = "one failed by an error of its own, the others by its loss"
    OWN_DEATH = "one died by a signal that nobody here had sent"
    RANK_FAULT = "its node reported a fault of its GPU or process, no later than its peers lost it"
    NODE_FAULT = "a node reported a fault, and nothing tells which rank it hit"
    ONE_NODE = "all that failed of their own are on one node"
    ALL_ALIKE = "all ranks fail alike; no rank is to blame"
    SEVERAL_CANDIDATES = "several failed of their own at the same time"
    UNPLACED = "an error was printed by a worker whose rank is not known, and nothing shows that it came later"
    SURVIVED = "its iterations went on after the error"
    PENDING_PEERS = "its peers' reaction has not been seen yet"
    ONLY_CASCADES = "only errors that a lost peer causes were seen"
    SILENT_ONE = "all others report a lost or late peer, one says nothing"
    VANISHED = "one shows no life while its node and its peers do"
    SLOW_AND_CHANGED = "one is slower than its peers and than its own past"
    SLOW_KNOWN_LAYOUT = "one is slower than peers of its role and stage"
    SLOW_UNKNOWN_LAYOUT = "one is slower than others, but roles and stages are not known"
    MANY_SLOW = "too many are slow for one to be at fault"
    OWN_SERIES = "its own series showed it before the reduction"
    AFTER_REDUCTION = "a reduction has spread it to all ranks before it was seen"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What blame must know besides the anomalies. ``members`` maps rank to node; ``now`` is the window's end.

    ``iterated`` is when an iteration was last reported, ``step_ns`` how long one takes, ``silence_ns`` how long none
    must come for a standstill, ``exited`` has the times of ends with a failure, ``living`` who showed life within the
    last window, ``unobserved`` whose node's producer is silent as well, ``expected`` is how many ranks there should be.
    """

    members: dict[int, str]
    now: int
    window_ns: int
    knows_layout: bool
    iterated: int | None = None
    step_ns: int = 0
    silence_ns: int = 8 * SECOND
    exited: dict[int, int] = {}
    living: list[int] = []
    unobserved: list[int] = []
    finished: bool = False
    expected: int | None = None

    def survived(self, failure: Anomaly, anomalies: list[Anomaly]) -> bool:
        """Whether the job, or the rank, went on after an error.

        Iterations came when none could have been under way any more, while the rank had not ended; training came to
        its own end; or the rank was seen waiting with its peers after an iteration that followed the error.
        """
        if failure.grounds not in _MAY_PASS:
            return False
        ranks = {suspect.rank for suspect in failure.suspects if suspect.rank is not None}
        ends = [self.exited[rank] for rank in ranks if rank in self.exited]
        if self.finished and not ends:
            return True
        waiting = {
            rank
            for one in anomalies
            if one.detector in STANDSTILL and one.onset >= failure.onset and one.end > failure.end
            for rank in one.victims
        }
        if ranks and ranks <= waiting:
            return True
        if self.iterated is None or any(end <= self.iterated for end in ends):
            return False
        return self.iterated > failure.onset + _inexactness(failure) + margin_ns(self.step_ns)


def margin_ns(step: int) -> int:
    """How long after an error an iteration that was under way may still be reported."""
    return 2 * max(step, SECOND)


def _inexactness(trouble: Anomaly) -> int:
    """How far off a trouble may be when it is held against iterations and stalls (ns); cascades are taken as printed.

    Many ranks print those, and the first of all is not far off.
    """
    return 0 if trouble.grounds == "cascade" else trouble.precision_ns


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision and its reason; ``places`` are nodes and devices to look at where no rank is named."""

    symptom: Symptom
    area: Area
    verdict: Verdict
    reason: Reason
    onset: int
    iteration: int | None
    suspects: list[Suspect]
    victims: list[int]
    places: list[Suspect] = []


def decide(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision over an incident's anomalies, in order of their windows; there must be at least one."""
    symptom = anomalies[0].symptom
    if symptom == "slowdown":
        return _slowdown(anomalies, situation)
    if symptom == "numerics":
        return _numerics(anomalies)
    faults = [one for one in anomalies if one.grounds == "node_fault"]
    if len(faults) == len(anomalies):
        return _faults(anomalies, situation)
    return _at_its_place(_standstill(anomalies, situation), faults)


def _faults(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Nodes report faults, and nothing else is seen."""
    base = _Base.of(anomalies, anomalies[0], symptom=anomalies[0].symptom)
    if all(situation.survived(one, anomalies) for one in anomalies):
        return base.nobody(Reason.SURVIVED)
    dated = [one for one in anomalies if one.severity != "info"]
    return _placed(base.nobody(Reason.NODE_FAULT, area=anomalies[0].area), dated)


_UNEXPLAINED = frozenset(
    {Reason.ONLY_CASCADES, Reason.SILENT_ONE, Reason.NOBODY_APART, Reason.NOTHING_OBSERVED, Reason.NODE_FAULT}
)


def _at_its_place(decision: Decision, faults: list[Anomaly]) -> Decision:
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
    return _placed(named, before)


def _placed(decision: Decision, faults: list[Anomaly]) -> Decision:
    places = {(one.node, one.device or ""): one for fault in faults for one in fault.suspects}
    return msgspec.structs.replace(decision, places=[places[key] for key in sorted(places)])


def _standstill(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Hangs and crashes are one story: whichever stood first is the symptom."""
    stalls = [one for one in anomalies if one.detector in STANDSTILL]
    failures = [one for one in anomalies if one.grounds in FAILURES]
    own = [one for one in failures if not situation.survived(one, anomalies)]
    unplaced = [one for one in _unplaced(anomalies) if not situation.survived(one, anomalies)]
    if stalls and not _explained(stalls[0], [*own, *unplaced], situation):
        return _hang(anomalies, stalls, [*own, *unplaced])
    untouched = [one for one in own if not _lost_before(one, anomalies) and not _late(one, anomalies)]
    if unplaced and not (untouched and all(_after(one, _first(untouched)) for one in unplaced)):
        first = _first([*unplaced, *untouched])
        return _Base.of(anomalies, first, symptom=first.symptom).nobody(Reason.UNPLACED, area=first.area)
    if untouched:
        return _crash(anomalies, untouched, situation)
    gone_on = [one for one in [*failures, *_unplaced(anomalies)] if situation.survived(one, anomalies)]
    if gone_on and not own:
        return _Base.of(anomalies, gone_on[0], symptom=gone_on[0].symptom).nobody(Reason.SURVIVED)
    return _cascades(anomalies, situation)


def _unplaced(anomalies: list[Anomaly]) -> list[Anomaly]:
    """Errors of nobody known, without those that a rank is known to have printed as well (in another file)."""
    known = {signature for one in anomalies if one.grounds == "own_error" for signature in one.templates}
    return [one for one in anomalies if one.grounds == "unplaced_error" and not known & set(one.templates)]


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


def _hang(anomalies: list[Anomaly], stalls: list[Anomaly], failures: list[Anomaly]) -> Decision:
    # What is seen once ranks fail or leave shows them leaving, not whom they had waited for.
    troubles = [*failures, *(one for one in anomalies if one.grounds == "cascade")]
    trouble = min((one.onset - _inexactness(one) for one in troubles), default=None)
    first = stalls[0].end
    before = [one for one in stalls if trouble is None or one.end <= max(trouble, first)]
    stacks = [one for one in before if one.detector == "stack_minority"]
    groups = [one for one in before if one.detector == "collective_laggard"]
    base = _Base.of(anomalies, stalls[0], symptom="hang")
    outside = stacks[-1].suspects if stacks else []
    if groups and groups[-1].grounds in _WHATEVER_STACKS_SAY and not outside:
        return base.named(_WHATEVER_STACKS_SAY[groups[-1].grounds], groups[-1].suspects, area=groups[-1].area)
    behind = _behind(groups[-1], stacks) if groups else []
    area = stacks[-1].area if stacks else "unknown"
    if outside and behind and not _ranks(outside) & _ranks(behind):
        return base.nobody(Reason.SOURCES_DISAGREE)
    if outside:
        return base.named(Reason.OUTSIDE_COMMUNICATION, outside, area=area)
    if behind:
        return base.named(Reason.NEVER_ENQUEUED, behind, area=area)
    return base.nobody(Reason.NOBODY_APART) if stacks or groups else base.unseen()


_WHATEVER_STACKS_SAY = {
    "out_of_order": Reason.OUT_OF_ORDER,
    "mismatched": Reason.MISMATCHED,
    "never_completed": Reason.NEVER_COMPLETED,
}
"""Grounds of dumps of ranks that wait in communication like all others, so that no stack strikes them out."""


def _behind(group: Anomaly, stacks: list[Anomaly]) -> list[Suspect]:
    """The laggards that nothing shows waiting.

    A dump does not show every wait (a blocking send, a store); a stack inside communication strikes a laggard out.
    Where dumps show no sends, only the one that is left when stacks have struck out all others counts.
    """
    if group.grounds in _WHATEVER_STACKS_SAY:
        return group.suspects
    waiting = set(stacks[-1].victims) if stacks else set()
    left = [suspect for suspect in group.suspects if suspect.rank not in waiting]
    if group.grounds == "perhaps_waiting" and (len(left) != 1 or len(left) == len(group.suspects)):
        return []
    return left


def _ranks(suspects: list[Suspect]) -> set[int | None]:
    return {suspect.rank for suspect in suspects}


def _crash(anomalies: list[Anomaly], failures: list[Anomaly], situation: Situation) -> Decision:
    first = _first(failures)
    together = [one for one in failures if not _after(one, first)]
    # What a node says of a GPU or of memory is no consequence of what others print at about that time.
    told = [one for one in together if one.grounds == "rank_fault" and one.area != "code"]
    told = [one for one in told if one.precision_ns <= EXACT_NS]
    cause, suspects = (_first(told), _merged(told)) if len(_merged(told)) == 1 else (first, _merged(together))
    base = _Base.of(anomalies, first, symptom=cause.symptom)
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
    base = _Base.of(anomalies, (cascades or anomalies)[0], symptom=(cascades or anomalies)[0].symptom)
    if cascades and all(situation.survived(one, anomalies) for one in cascades):
        return base.nobody(Reason.SURVIVED)
    reported = {rank for one in cascades for rank in one.victims}
    silent = sorted(set(situation.members) - reported)
    observed = not set(silent) & set(situation.unobserved)
    if len(silent) == 1 and observed and len(reported) >= 3 and situation.now >= base.onset + 2 * situation.window_ns:
        return base.nobody(Reason.SILENT_ONE)
    return base.nobody(Reason.ONLY_CASCADES)


def _slowdown(anomalies: list[Anomaly], situation: Situation) -> Decision:
    spatial = [one for one in anomalies if one.grounds in ("slow_and_changed", "slow_against_peers", "many_slow")]
    latest = [one for one in spatial if one.end == spatial[-1].end]
    begun = [one for one in spatial if one.end == spatial[0].end]
    base = _Base.of(anomalies, min(begun, key=lambda one: (one.onset, one.id)), symptom="slowdown")
    if any(one.grounds == "many_slow" for one in latest):
        return base.nobody(Reason.MANY_SLOW, area="workload")
    strongest = max(latest, key=lambda one: (len(one.suspects) == 1, one.suspects[0].score, one.id))
    # Space cancels time: a shift that turned out to be everybody's supports nobody.
    shifts = [one for one in anomalies if one.grounds in ("own_shift", "shared_shift")]
    own = shifts and max(shifts, key=lambda one: (one.end, one.grounds)).grounds == "own_shift"
    shifted = {suspect.rank for one in shifts for suspect in one.suspects} if own else set()
    ranks = _ranks(strongest.suspects)
    area: Area = strongest.area
    if any(one.grounds == "slow_and_changed" for one in latest) or ranks <= shifted:
        return base.named(Reason.SLOW_AND_CHANGED, strongest.suspects, area=area)
    if situation.knows_layout:
        return base.named(Reason.SLOW_KNOWN_LAYOUT, strongest.suspects, area=area)
    return base.nobody(Reason.SLOW_UNKNOWN_LAYOUT, area=area)


def _numerics(anomalies: list[Anomaly]) -> Decision:
    base = _Base.of(anomalies, anomalies[0], symptom="numerics")
    # Steps that were skipped beside it say nothing of who began.
    telling = [one for one in anomalies if one.grounds != "overflow"] or anomalies
    latest = max(telling, key=lambda one: (one.end, one.id))
    if latest.suspects:
        return base.named(Reason.OWN_SERIES, latest.suspects, area=latest.area)
    return base.nobody(Reason.AFTER_REDUCTION)


class _Base(msgspec.Struct, frozen=True, kw_only=True):
    """What all decisions of one incident share."""

    symptom: Symptom
    onset: int
    iteration: int | None
    victims: list[int]

    @classmethod
    def of(cls, anomalies: list[Anomaly], first: Anomaly, *, symptom: Symptom) -> _Base:
        victims = sorted({rank for one in anomalies for rank in one.victims})
        return cls(
            symptom=symptom,
            onset=first.onset,
            iteration=first.iteration,
            victims=victims,
        )

    def nobody(self, reason: Reason, *, area: Area = "unknown") -> Decision:
        """Ambiguous: no rank is named. What the evidence leans to stays in its text."""
        return self._decision("ambiguous", reason, [], area)

    def unseen(self) -> Decision:
        """Unavailable: what would tell the ranks apart was not observed."""
        return self._decision("unavailable", Reason.NOTHING_OBSERVED, [], "unknown")

    def everybody(self, reason: Reason, *, area: Area) -> Decision:
        """Supported, of the whole job: no rank is named."""
        return self._decision("supported", reason, [], area)

    def named(self, reason: Reason, suspects: list[Suspect], *, area: Area) -> Decision:
        """Supported: these ranks are named."""
        return self._decision("supported", reason, suspects, area)

    def _decision(self, verdict: Verdict, reason: Reason, suspects: list[Suspect], area: Area) -> Decision:
        named = {suspect.rank for suspect in suspects}
        return Decision(
            symptom=self.symptom,
            area=area,
            verdict=verdict,
            reason=reason,
            onset=self.onset,
            iteration=self.iteration,
            suspects=suspects,
            victims=[rank for rank in self.victims if rank not in named],
        )


def _merged(anomalies: list[Anomaly]) -> list[Suspect]:
    """Each rank once, with its best-scored reason, highest score first."""
    best: dict[int | None, Suspect] = {}
    for one in anomalies:
        for suspect in one.suspects:
            if suspect.rank not in best or suspect.score > best[suspect.rank].score:
                best[suspect.rank] = suspect
    return sorted(best.values(), key=lambda suspect: (-suspect.score, suspect.rank is None, suspect.rank or 0))
