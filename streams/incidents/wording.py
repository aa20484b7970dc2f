"""An incident in words: what happened, since which iteration, and why blame decided so."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.results import Scope, Suspect, Symptom
from streams.incidents.decision import Decision, Reason
from streams.incidents.scope import said_place


def said_symptom(symptom: Symptom, reason: str, scope: Scope) -> str:
    """What happened in a word: what a job lived through was neither a hang nor a crash of it."""
    if reason != Reason.SURVIVED.value:
        return symptom
    return "fault" if scope.nodes else "error"


def said_reason(reason: str, suspects: Sequence[Suspect]) -> str:
    """The reason in words: what is said of one is said of each where there are several."""
    return f"each of these {reason.removeprefix('one ')}" if len(suspects) > 1 and reason.startswith("one ") else reason


def since_iteration(symptom: Symptom, iteration: int | None) -> str:
    """The iteration in words: the last one done before a standstill, the first one that is slow or no number."""
    if iteration is None:
        return ""
    if symptom in ("slowdown", "numerics"):
        return f"from iteration {iteration} on"
    return f"after iteration {iteration}"


def said_decision(decision: Decision, scope: Scope) -> str:
    """The whole decision in one line."""
    where = said_place(scope)
    what = said_symptom(decision.symptom, decision.reason.value, scope)
    head = f"{what} {since_iteration(decision.symptom, decision.iteration)}".rstrip()
    reason = said_reason(decision.reason.value, decision.suspects)
    return f"{head}: {where} ({decision.verdict}; {reason})"
