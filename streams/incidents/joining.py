"""To which open incident a finding belongs, as a pure decision with its reason: one fault is one incident.

Two faults must not hide each other, and what follows from a fault must not look like a second one: the error of a
victim, the cascade of a crash, another detector on the same. So a second incident of a family is opened only where time
and place show another fault; where that is not certain a finding joins, and the evidence says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from schemas.results import Anomaly
from streams.incidents.blame import GROWTH
from streams.incidents.slowness import GROUNDS, Weight
from streams.incidents.standstill import FAILURES
from streams.slow_together import apart_ns

STANDSTILL, SLOWDOWN, MEMORY = "standstill", "slowdown", "memory"
MOST_OPEN = 24
"""Open incidents of an attempt; what would open one more joins the latest of its family, if there is one."""


class Why(Enum):
    """Why a finding joins an incident, opens one, or does neither."""

    FIRST = "no incident of its kind is open"
    LIVED_THROUGH = "the job has gone on since what is open, which is of another place"
    SLOW_LATER = "it is of other ranks on other nodes that have become slow long after, and both still are"
    NOT_ITS_MEMORY = "memory of one grows, and nothing of that rank has failed"
    ITS_MEMORY = "memory of a rank that has failed grew before"
    ITS_RANKS = "it is of ranks that the incident is about"
    ITS_PLACE = "it is of a place that the incident is about"
    OF_ITS_KIND = "what shows together is one story unless time and place show two"
    OF_THE_FIRST = "it tells no ranks, so it is of the incident that began first"
    NO_ROOM = "too many incidents are open"
    CONTEXT = "information opens nothing"


OPENS = frozenset({Why.FIRST, Why.LIVED_THROUGH, Why.SLOW_LATER, Why.NOT_ITS_MEMORY})
"""Reasons for which a finding opens an incident."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is open: ``ranks`` and ``nodes`` are those that it is about, ``named`` whether blame names these ranks.

    ``passed``: the job has gone on for a while after all of it. ``beside``: it is another fault within a standstill.
    ``onset`` is in ns.
    """

    family: str
    onset: int
    ranks: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()
    named: bool = False
    passed: bool = False
    beside: bool = False


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What else the window shows: ranks that ``failed`` of their own, and those that are found ``slow``.

    ``window_ns`` is how long a window lasts, ``step_ns`` a step.
    """

    window_ns: int
    step_ns: int = 0
    failed: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()


class Joining(msgspec.Struct, frozen=True):
    """The decision: the place of the incident among those that are open, null where it joins none, and why."""

    why: Why
    into: int | None = None


def family_of(anomaly: Anomaly) -> str:
    """Hangs, crashes and what memory does to processes are one family; memory that only grows is one of its own."""
    if anomaly.grounds in GROWTH:
        return MEMORY
    return STANDSTILL if anomaly.symptom in ("hang", "crash", "memory") else anomaly.symptom


def joined(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining:
    """Where the finding belongs among what is ``held``, in the order in which it began."""
    found = _RULES.get(family_of(anomaly), _of_its_family)(anomaly, held, beside)
    if found.why not in OPENS:
        return found
    if anomaly.severity == "info":
        return Joining(Why.CONTEXT)
    same = [at for at, one in enumerate(held) if one.family == family_of(anomaly)]
    return Joining(Why.NO_ROOM, same[-1]) if same and len(held) >= MOST_OPEN else found


def beside_of(anomalies: Sequence[Anomaly], step_ns: int) -> Beside:
    """What a window's findings show together; there must be one."""
    return Beside(
        window_ns=anomalies[0].end - anomalies[0].start,
        step_ns=step_ns,
        failed=frozenset(rank for one in anomalies if one.grounds in FAILURES for rank in ranks_in([one])),
        slow=frozenset(rank for one in anomalies if singles_out(one) for rank in ranks_in([one])),
    )


def ranks_in(anomalies: Sequence[Anomaly]) -> frozenset[int]:
    """The ranks that these suspect."""
    return frozenset(one.rank for found in anomalies for one in found.suspects if one.rank is not None)


def nodes_in(anomalies: Sequence[Anomaly]) -> frozenset[str]:
    """The nodes of those that these suspect, as far as they are known."""
    return frozenset(one.node for found in anomalies for one in found.suspects if one.node)


def singles_out(anomaly: Anomaly) -> bool:
    """Whether a contrast of how long work takes singles out ranks, and by more than information."""
    ground = GROUNDS.get(anomaly.grounds)
    return ground is not None and ground.weight > Weight.NOBODY and anomaly.severity != "info"


def _of_its_family(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining:
    same = [at for at, one in enumerate(held) if one.family == family_of(anomaly)]
    return Joining(Why.OF_ITS_KIND, same[-1]) if same else Joining(Why.FIRST)


def _standing(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining:
    """What stops a job makes everything else stop or fail: only what a job has lived through is another story."""
    own = [at for at, one in enumerate(held) if one.family == STANDSTILL]
    going = [at for at in own if not held[at].passed]
    # Which of what comes is of another fault is asked of the standstill, once more is known of it.
    going = [at for at in going if not held[at].beside] or going
    if going:
        return Joining(Why.OF_ITS_KIND, going[-1])
    found = _whose_memory_grew(anomaly, held, beside) or _at_its_place(anomaly, held, own)
    if found is not None:
        return found
    if own:
        return Joining(Why.OF_ITS_KIND, own[-1]) if anomaly.severity == "info" else Joining(Why.LIVED_THROUGH)
    return Joining(Why.NOT_ITS_MEMORY if any(one.family == MEMORY for one in held) else Why.FIRST)


def _whose_memory_grew(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining | None:
    """What fails is of the memory that grew; what tells nobody is of a failure that the window shows beside it."""
    ranks = ranks_in([anomaly]) or beside.failed
    grown = [at for at, one in enumerate(held) if one.family == MEMORY and one.ranks & ranks]
    return Joining(Why.ITS_MEMORY, grown[-1]) if grown and anomaly.severity != "info" else None


def _at_its_place(anomaly: Anomaly, held: Sequence[Held], own: Sequence[int]) -> Joining | None:
    ranks, nodes = ranks_in([anomaly]), nodes_in([anomaly])
    for at in reversed(own):
        if ranks & held[at].ranks:
            return Joining(Why.ITS_RANKS, at)
        if nodes & held[at].nodes:
            return Joining(Why.ITS_PLACE, at)
    return None


def _growing(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining:
    """Memory that grows beside what stands still or fails is of it, unless that names others."""
    same = [at for at, one in enumerate(held) if one.family == MEMORY]
    if same:
        return Joining(Why.OF_ITS_KIND, same[-1])
    ranks = ranks_in([anomaly])
    own = [at for at, one in enumerate(held) if one.family == STANDSTILL and not one.passed]
    for at in reversed(own):
        if ranks & held[at].ranks:
            return Joining(Why.ITS_RANKS, at)
        if anomaly.severity == "info" or not ranks or not held[at].named:
            return Joining(Why.OF_ITS_KIND, at)
    return Joining(Why.NOT_ITS_MEMORY if own else Why.FIRST)


def _slow(anomaly: Anomaly, held: Sequence[Held], beside: Beside) -> Joining:
    """Ranks are slow beside others that still are, on other nodes and long after: then neither explains the other."""
    own = [at for at, one in enumerate(held) if one.family == SLOWDOWN]
    if not own:
        return Joining(Why.FIRST)
    ranks, nodes = ranks_in([anomaly]), nodes_in([anomaly])
    for at in own:
        if ranks & held[at].ranks:
            return Joining(Why.ITS_RANKS, at)
    if not ranks:
        return Joining(Why.OF_THE_FIRST, own[0])
    near = [at for at in own if not _is_another(anomaly, nodes, held[at], beside)]
    if not near and singles_out(anomaly):
        return Joining(Why.SLOW_LATER)
    return Joining(Why.OF_ITS_KIND, (near or own)[0])


def _is_another(anomaly: Anomaly, nodes: frozenset[str], one: Held, beside: Beside) -> bool:
    """Whether ranks of other nodes have become slow long after those that this one names, and these still are."""
    if not one.named or not one.ranks & beside.slow or not nodes or nodes & one.nodes:
        return False
    return anomaly.onset - one.onset > apart_ns(beside.step_ns, beside.window_ns)


_RULES = {STANDSTILL: _standing, MEMORY: _growing, SLOWDOWN: _slow}
