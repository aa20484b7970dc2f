"""What blame decides: whom the evidence supports, how surely, and for which reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum

import msgspec

from schemas.results import Anomaly, Area, Severity, Suspect, Symptom, Verdict

LOST = frozenset({"cascade"})
"""Grounds that say whom the failure of another has befallen by their own words."""
LOSSES = LOST | {"told_to_end"}
"""Grounds that say whom it has befallen by whatever is known."""


class Reason(Enum):
    """Why blame decided as it did."""

    OUTSIDE_COMMUNICATION = "one stands outside communication while its peers wait"
    NEVER_ENQUEUED = "one never enqueued what its group waits for"
    NEVER_COMPLETED = "one has not completed what all its peers have, so its own device has stopped"
    NEVER_STARTED = "one's device has not begun what those of all its peers have"
    MISMATCHED = "one enqueued another operation than its peers at the same place of their group"
    UNMATCHED = "ranks of one group wait at one place in different operations, and no majority tells who is wrong"
    OUT_OF_ORDER = "one left out a collective and went on to the next, unlike its peers in both groups"
    PROCESS_STOPPED = "one's process is stopped by a signal while its peers wait"
    LEFT_EARLY = "one has ended without an error of its own while its peers wait for it"
    NONE_COMPLETED = "all ranks have joined what their groups wait for, and it is not completed"
    DIFFERENT_COLLECTIVES = "groups wait for each other's ranks, and nothing tells who took them in another order"
    FEW_AHEAD = "some wait for what others have not come to, and it cannot be told who is behind and who ahead"
    ONE_UNOBSERVED = "all that were observed wait in communication, and one could not be observed"
    OUTSIDE_BY_DESIGN = "only ranks of another role or stage stand outside communication, as they may by design"
    SOURCES_DISAGREE = "what was observed points at different ranks"
    NOBODY_APART = "the job stands still and nothing observed tells the ranks apart"
    NOTHING_OBSERVED = "the job stands still and neither stacks nor dumps of it were observed"
    MEMORY_GROWS = "its memory grows without end, and that of its peers does not"
    MEMORY_OF_ALL_GROWS = "memory grows without end, and nothing tells that it is one rank's alone"
    DEVICE_MEMORY_GROWS = "memory of a device grows without end, and nothing tells which rank uses it"
    NO_PEERS = "one failed by an error of its own, but no peer was observed to hold it against"
    OWN_ERROR = "one failed by an error of its own, the others by its loss"
    FAILED_BESIDE = "one failed by an error of its own while the job already stood still for another"
    OWN_DEATH = "one died by a signal that nobody here had sent"
    RANK_FAULT = "its node reported a fault of its GPU or process, no later than its peers lost it"
    NODE_FAULT = "a node reported a fault, and nothing tells which rank it hit"
    ONE_NODE = "all that failed of their own are on one node"
    ALL_ALIKE = "all ranks fail alike; no rank is to blame"
    SEVERAL_CANDIDATES = "several failed of their own, and which of them was first is not known"
    UNPLACED = "an error was printed by a worker whose rank is not known, and nothing shows that it came later"
    SURVIVED = "the job went on after the error"
    PENDING_PEERS = "one failed of its own, and its peers have not been seen to lose it yet"
    ONLY_CASCADES = "only errors that a lost peer causes were seen"
    EXIT_CODE = "workers failed with an exit code, and nothing was seen that tells why or who was first to fail"
    CAUGHT = "one printed an error that it had caught, and lived on"
    SILENT_BEFORE = "one printed an error, and another had shown no life since before that, unlike its peers"
    LOST_AS_WELL = "one printed an error as it lost a peer, and another, which may be that peer, says nothing"
    SILENT_ONE = "all others report a lost or late peer, one says nothing"
    VANISHED = "one shows no life while its node and its peers do"
    SLOW_AND_CHANGED = "one is slower than its peers and than its own past"
    SLOW_KNOWN_LAYOUT = "one is slower than peers of its role and stage"
    SLOW_UNKNOWN_LAYOUT = "one is slower than others, but roles and stages are not known"
    SLOW_PLACE = "all ranks of one place are slower than their own past, and nobody else is"
    BUSY_AND_CHANGED = "one is hardly ever seen waiting any more, while its peers mostly wait"
    BUSY = "one is hardly ever seen waiting and uses more CPU, while peers of its role and stage mostly wait"
    BUSY_ALONE = "one is hardly ever seen waiting while its peers mostly wait, as it always was"
    SLOW_FIRST_RANK = "only ranks that may do more than others by design, as rank 0 does, are slower, and always were"
    SLOW_OTHER_WORK = "only ranks that execute other things than most are slower, as those of another pipeline stage do"
    SLOW_NODE = "all that were observed of a node are slower than others, and always were, as an older node is"
    SLOW_EXPERTS = "one is slower where it may hold experts, to which more may be sent"
    SLOW_UNWITNESSED = "one's forward takes longer, in which it may wait for others, and nobody times waiting for it"
    SLOW_UNSEEN = "one is slower than its peers, and too little was observed of the other stages of its replica"
    SLOW_BUT_WAITS = "one works longer than its peers and waits longer too, so others hold it up as well"
    SLOW_OR_WAITS = "one's own timers are longer, and another's leave as much of its steps open, for which it may wait"
    SLOW_WITHIN_GROUP = (
        "a group is slow within a timer in which its ranks wait for each other, and nothing tells for whom"
    )
    SLOW_STAGE = "all ranks of one stage or expert group are slow, as they may be by design"
    SLOW_REPLICA = "all stages of one replica are slow, as with longer inputs"
    ROTATING = "the slow rank moves from one to another, as with inputs of different lengths"
    SLOWER_THAN_ALIKE = "it was slow from its beginning on: healthy jobs alike in all that decides a step are faster"
    SLOWER_THAN_LIKE = "healthy jobs like it are faster from the beginning on, but not alike in all that decides a step"
    JOB_SLOWER = "the job takes longer than before, and no timing observed tells the ranks apart"
    LITTLE_APART = "the job takes longer than before, and what tells ranks apart explains too little of it"
    LED_WITHIN = (
        "the job takes longer than before, and one holds it up first within a timer in which it may wait for others"
    )
    NO_LONGER_APART = "the job takes longer than before, and ranks that stood apart no longer do"
    OTHER_INPUTS = "all ranks' own work takes longer by one factor, as with larger inputs or other settings"
    PORT_SLOWER = "a port of a node has fallen to a lower rate"
    MANY_SLOW = "too many are slow for one to be at fault"
    FUNCTION_APART = "a function takes longer on one than on others, and too little was profiled to judge by it"
    FUNCTION_NOT_TIMED = "a function takes longer on one than on others, and timers of all ranks' own work show nobody"
    FUNCTION_SHIFT = "steps take longer than in an earlier profile, and a function that has become slower explains it"
    WHAT_IF_WORKERS = "steps would be about as fast as the job can be if these workers computed like their peers"
    WHAT_IF_STAGES = "pipeline stages differ in work, and no worker of a stage stands apart"
    WHAT_IF_ONE_REPLICA = "a pipeline stage takes longest, and there is no replica of it to compare with"
    WHAT_IF_LENGTHS = "microbatches differ in sequence length, and no worker stays slow"
    WHAT_IF_VARIATION = "work takes now longer, now shorter on the same worker, and no worker stays slow"
    WHAT_IF_COMMUNICATION = (
        "communication takes longer than it usually does, and no worker computes longer than its peers"
    )
    WHAT_IF_UNSEEN = "workers wait for communication, or for replicas of which too little was traced"
    WHAT_IF_SEVERAL = "what slows steps down has several causes, and none explains most of it"
    OWN_SERIES = "its own series showed it before the reduction"
    OWN_ALONE = "its own series alone shows it, and its peers go on without it"
    OTHERS_GO_ON = "only some ranks show it, and the others go on without it"
    AFTER_REDUCTION = "a reduction has spread it to all ranks before it was seen"
    ONE_REPORT = "a single report shows it so far, and whether it stays is not known"
    TRAINING_AS_SUCH = "what was printed is of the whole job, and nothing tells a rank that began it"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision and its reason; ``places`` are nodes and devices to look at where no rank is named.

    ``among`` are the ranks that it concerns where nobody of them is named, empty for all. ``severity`` is that of what
    the decision rests on, null where it rests on all that was found.
    """

    symptom: Symptom
    area: Area
    verdict: Verdict
    reason: Reason
    onset: int
    iteration: int | None
    suspects: list[Suspect]
    victims: list[int]
    places: list[Suspect] = []
    among: list[int] = []
    severity: Severity | None = None


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What all decisions of one incident share."""

    symptom: Symptom
    onset: int
    iteration: int | None
    victims: list[int]
    severity: Severity | None = None

    @classmethod
    def of(cls, anomalies: list[Anomaly], first: Anomaly, *, symptom: Symptom) -> Base:
        """What the decision rests on: symptom as given, onset and iteration of ``first``, victims of all."""
        victims = sorted({rank for one in anomalies for rank in one.victims})
        return cls(
            symptom=symptom,
            onset=first.onset,
            iteration=first.iteration,
            victims=victims,
        )

    @classmethod
    def on(cls, rests: list[Anomaly], first: Anomaly, *, symptom: Symptom) -> Base:
        """As ``of``, where the decision rests on these alone: what else was found makes it no worse."""
        base = cls.of(rests, first, symptom=symptom)
        return msgspec.structs.replace(base, severity=worst(rests))

    def nobody(self, reason: Reason, *, area: Area = "unknown", among: Sequence[Suspect] = ()) -> Decision:
        """Ambiguous: no rank is named. What the evidence leans to stays in its text."""
        decision = self._decision("ambiguous", reason, [], area)
        concerned = sorted({one.rank for one in among if one.rank is not None})
        return msgspec.structs.replace(decision, among=concerned) if concerned else decision

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
            severity=self.severity,
        )


_SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


def worst(anomalies: Sequence[Anomaly]) -> Severity:
    """The worst severity of these."""
    return min((one.severity for one in anomalies), key=_SEVERITIES.index)


def latest_of(anomalies: Sequence[Anomaly]) -> Anomaly:
    """The latest of these by its window; what an incident began with does not stand in order of time."""
    return max(anomalies, key=lambda one: (one.end, one.id))


def earliest_of(anomalies: Sequence[Anomaly]) -> Anomaly:
    """Of the earliest window of these what began first."""
    return min(anomalies, key=lambda one: (one.end, one.onset, one.id))


def placed(decision: Decision, faults: list[Anomaly]) -> Decision:
    """The decision with the places of these faults to look at; whose they are is not said."""
    told = [msgspec.structs.replace(one, rank=None) for fault in faults for one in fault.suspects]
    places = {(one.node, one.device or ""): one for one in told}
    return msgspec.structs.replace(decision, places=[places[key] for key in sorted(places)])


def merged(anomalies: list[Anomaly]) -> list[Suspect]:
    """Each rank once, with its best-scored reason, highest score first."""
    best: dict[int | None, Suspect] = {}
    for one in anomalies:
        for suspect in one.suspects:
            if suspect.rank not in best or suspect.score > best[suspect.rank].score:
                best[suspect.rank] = suspect
    return sorted(best.values(), key=lambda suspect: (-suspect.score, suspect.rank is None, suspect.rank or 0))


def victims_of(anomalies: Iterable[Anomaly], grounds: Collection[str]) -> set[int]:
    """The ranks that findings on such grounds call victims."""
    return {rank for one in anomalies if one.grounds in grounds for rank in one.victims}


def most(others: AbstractSet[int | None], found: AbstractSet[int | None]) -> bool:
    """Whether more than half of the others are among those found."""
    return 2 * len(others & found) > len(others)


def ranks_of(suspects: list[Suspect]) -> set[int | None]:
    """The ranks of these, null among them for a place without one."""
    return {suspect.rank for suspect in suspects}
