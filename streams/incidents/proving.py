"""Whether two incidents of an attempt prove one, as a pure decision with its reason, and which of them goes on.

What only limps is part of what stops; what a crash only tells of is the fault. Ids never change: one of the two says
of which other it is part, and goes on by itself again where what blame says later shows two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from schemas.results import Anomaly, Incident
from streams.incidents.decision import Reason, ranks_of
from streams.incidents.joining import MEMORY, SLOWDOWN, STANDSTILL
from streams.incidents.situation import SECOND
from streams.incidents.standstill import CONTEXT_NS

NUMERICS = "numerics"
_TELLS_OF_NUMBERS = re.compile(
    r"\bnan\b|\bnan/inf\b|\bnon-?finite\b|\bnot finite\b|\binf(?:inity)?\b|isnan|isfinite", re.I
)


class Proof(Enum):
    """Why two incidents are one."""

    SLOW_THEN_STANDS = "who was slow until then is whom the job now waits for, or who has failed"
    GREW_THEN_FAILED = "memory of a rank grew, and that rank has failed"
    GREW_THEN_ENDED = "memory grew, and something has failed for want of memory at its place"
    NUMBERS_THEN_FAILED = "what failed says that numbers are not finite, as they were before"
    FAULT_THEN_FAILED = "hardware reported a fault, and who failed shortly after was on it"
    SAME_RANKS = "all whom the one names are named by the other"
    SAME_REASON = "both name nobody for one reason"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An incident as it stands: its family, what blame says now, what it rests on, and when it last showed (ns).

    ``first`` is the end of the window in which it began to be one, its id tells it from others.
    """

    id: str
    family: str
    says: Incident
    anomalies: Sequence[Anomaly]
    shown: int
    first: int


class One(msgspec.Struct, frozen=True):
    """The decision: ``merged`` proved to be part of ``stays``, and why; ``earlier``: the onset of both is the first."""

    merged: str
    stays: str
    why: Proof
    earlier: bool = False


def one_of(one: Told, other: Told, near_ns: int) -> One | None:
    """What makes the two incidents one, or null; ``near_ns`` is how far apart one change may be dated."""
    for before, after in ((one, other), (other, one)):
        for family, later, proves, earlier in _RULES:
            if (before.family, after.family) == (family, later):
                why = proves(before, after, near_ns)
                if why is Proof.NUMBERS_THEN_FAILED:
                    return One(after.id, before.id, why)
                if why is not None:
                    return One(before.id, after.id, why, earlier)
    return _alike(*sorted((one, other), key=_order)) if one.family == other.family else None


def merged(told: Sequence[Told], near_ns: int, kept: Mapping[str, One] | None = None) -> dict[str, One]:
    """Which incidents proved to be part of which others, by their ids; of a chain each points at its end.

    ``kept`` is what had proved to be so and still is: that goes before what would prove it the other way round.
    """
    found: dict[str, One] = dict(kept or {})
    for at, one in enumerate(told):
        for other in told[at + 1 :]:
            proof = one_of(one, other, near_ns)
            if proof is not None and proof.merged not in found and _end(found, proof.stays) != proof.merged:
                found[proof.merged] = proof
    return {name: msgspec.structs.replace(proof, stays=_end(found, proof.stays)) for name, proof in found.items()}


def _end(found: dict[str, One], name: str) -> str:
    while name in found:
        name = found[name].stays
    return name


def _order(one: Told) -> tuple[int, str]:
    """The earlier first: by what never changes, so that which of two stays does not either."""
    return one.first, one.id


def _ranks(one: Told) -> set[int | None]:
    return ranks_of(one.says.suspects) - {None}


def _slow_then_stands(slow: Told, stands: Told, near_ns: int) -> Proof | None:
    """Supported names of both, the later among the earlier, which lasted until then."""
    named = _ranks(stands)
    if not named or not named <= _ranks(slow):
        return None
    lasted = slow.says.onset <= stands.says.onset <= slow.shown + near_ns
    return Proof.SLOW_THEN_STANDS if lasted else None


def _grew_then_failed(grew: Told, failed: Told, near_ns: int) -> Proof | None:
    named, ended = _ranks(grew), failed.says.onset + near_ns >= grew.says.onset
    if named and _ranks(failed):
        return Proof.GREW_THEN_FAILED if _ranks(failed) <= named and ended else None
    nodes = {one.node for one in failed.says.suspects} | set(failed.says.scope.nodes)
    here = not grew.says.scope.nodes or bool(nodes & set(grew.says.scope.nodes))
    return Proof.GREW_THEN_ENDED if failed.says.area == "memory" and here and ended else None


def _numbers_then_failed(numbers: Told, failed: Told, near_ns: int) -> Proof | None:
    """The error on which the crash rests says so itself, no earlier than they were seen."""
    if failed.says.symptom != "crash" or numbers.says.severity == "info":
        return None
    named, others = _ranks(numbers), _ranks(failed)
    if named and others and not named & others:
        return None
    errors = [one for one in failed.anomalies if one.grounds in ("own_error", "unplaced_error", "unplaced_besides")]
    first = min(errors, key=lambda one: (one.onset, one.id), default=None)
    if first is None or not _TELLS_OF_NUMBERS.search(first.text):
        return None
    return Proof.NUMBERS_THEN_FAILED if numbers.says.onset <= first.onset + near_ns else None


def _alike(stays: Told, other: Told) -> One | None:
    """Two of one family; what the job has lived through is only part of what it has not where hardware is broken.

    Where each names somebody whom the other does not, both stay: no suspect is lost.
    """
    for fault, failed in ((stays, other), (other, stays)):
        if fault.family == STANDSTILL and (found := _fault_then_failed(fault, failed)):
            return One(fault.id, failed.id, found)
    if Reason.SURVIVED.value in (stays.says.reason, other.says.reason):
        return None
    named, others = _ranks(stays), _ranks(other)
    if others and others <= named:
        return One(other.id, stays.id, Proof.SAME_RANKS, earlier=True)
    if named and named < others:
        return One(stays.id, other.id, Proof.SAME_RANKS, earlier=True)
    same = not named and not others and stays.says.reason == other.says.reason
    return One(other.id, stays.id, Proof.SAME_REASON, earlier=True) if same and _same_place(stays, other) else None


def _same_place(one: Told, other: Told) -> bool:
    nodes, others = set(one.says.scope.nodes), set(other.says.scope.nodes)
    return not nodes or not others or bool(nodes & others)


_MAY_BE_OF_IT = ("hardware", "network", "unknown")
"""Areas of failures that a fault of hardware may be behind."""


def _fault_then_failed(fault: Told, failed: Told) -> Proof | None:
    """A fault of hardware that named nobody, and on its node who failed within the time that watchdogs wait.

    An error that says of itself what it is of, the program or its data, is a story of its own.
    """
    if fault.says.suspects or fault.says.area != "hardware" or failed.says.area not in _MAY_BE_OF_IT:
        return None
    nodes = {one.node for one in failed.says.suspects}
    within = fault.says.onset - 2 * SECOND <= failed.says.onset <= fault.shown + CONTEXT_NS
    return Proof.FAULT_THEN_FAILED if within and nodes & set(fault.says.scope.nodes) else None


_RULES = (
    (SLOWDOWN, STANDSTILL, _slow_then_stands, True),
    (MEMORY, STANDSTILL, _grew_then_failed, False),
    (NUMERICS, STANDSTILL, _numbers_then_failed, False),
)
