"""Lines that mean trouble by themselves, and whether they name a cause or only pass one on.

A *cascade* is what victims print: their peer went away or did not come. It never outranks a candidate.
"""

from __future__ import annotations

import re

import msgspec

from schemas.events import Frame, Log
from schemas.results import Area, CausalRole, Fatal, Symptom
from streams.lines.signature import peel, shape, signature_of
from streams.lines.traceback import Traceback, parse_traceback
from streams.stacks import activity_of


class Rule(msgspec.Struct, frozen=True):
    """A pattern with what it means; rules are tried in order and the first that matches counts."""

    name: str
    pattern: re.Pattern[str]
    role: CausalRole
    symptom: Symptom
    area: Area


def _rule(name: str, pattern: str, role: CausalRole, symptom: Symptom, area: Area) -> Rule:
    return Rule(name, re.compile(pattern), role, symptom, area)


RULES: tuple[Rule, ...] = (
    _rule(
        "collective_timeout",
        r"Timed out waiting \d+ ?ms for (?:send|recv)|Watchdog caught collective operation timeout"
        r"|collective operation timeout|wait(?:ing)? timeout after \d+",
        "cascade",
        "hang",
        "network",
    ),
    _rule(
        "peer_lost",
        r"Connection (?:closed|reset) by peer|Connection(?:Reset|Refused|Aborted)Error|Broken ?[Pp]ipe|[Ss]ocket closed"
        r"|[Rr]emote (?:worker|process)|ncclRemoteError|NCCL communicator was aborted|Socket Timeout|EOFError"
        r"|failed to (?:recv|send), got 0 bytes|pair closure|connectFullMesh",
        "cascade",
        "crash",
        "network",
    ),
    _rule(
        "terminated",
        r"SignalException|got signal: (?:15|2)\b|KeyboardInterrupt|killed by signal: Terminated",
        "cascade",
        "crash",
        "unknown",
    ),
    _rule(
        "out_of_memory",
        r"CUDA out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory|MemoryError"
        r"|invoked oom-killer|Out of memory: Killed process|killed by signal: Killed",
        "candidate",
        "memory",
        "memory",
    ),
    _rule(
        "gpu_hardware",
        r"uncorrectable ECC error|NVRM: Xid|fallen off the bus|Double Bit ECC|hardware failure",
        "candidate",
        "crash",
        "hardware",
    ),
    _rule(
        "process_group",
        r"DistBackendError|DistNetworkError|DistStoreError|NCCL error|ProcessGroup\w+ .{0,80}(?:abort|timeout)",
        "cascade",
        "crash",
        "network",
    ),
)

_DATA = re.compile(r"DataLoader|[Dd]ataset|\bshard|\bsampler|\btokeniz", re.ASCII)
_CHECKPOINT = re.compile(r"checkpoint|ckpt", re.IGNORECASE)
_CONFIGURATION = re.compile(r"config|argument|yaml|hyperparam", re.IGNORECASE)


def _area_of(traceback: Traceback, text: str, trained: bool) -> Area:
    places = " ".join(traceback.files)
    if _DATA.search(traceback.error) or "torch/utils/data" in places:
        return "data"
    if _CHECKPOINT.search(traceback.error):
        return "checkpoint"
    if not trained and (traceback.exception in ("KeyError", "ArgumentError") or _CONFIGURATION.search(text)):
        return "configuration"
    return "code"


def fatal_of(event: Log, *, trained: bool) -> Fatal | None:
    """What is fatal about a record, or null. ``trained`` says whether the worker has done an iteration yet."""
    traceback = parse_traceback(event.text)
    said = traceback.error if traceback else peel(event.text.split("\n", 1)[0])
    for rule in RULES:
        if rule.pattern.search(said):
            return _fatal(event, rule.name, rule.role, rule.symptom, rule.area, traceback)
    if traceback is None:
        return None
    if in_communication(traceback):
        # What a collective raises is mostly the loss of a peer; taking it for a cause would name a victim.
        return _fatal(event, "in_collective", "cascade", "crash", "network", traceback)
    return _fatal(event, "exception", "candidate", "crash", _area_of(traceback, event.text, trained), traceback)


def in_communication(traceback: Traceback) -> bool:
    """Whether the error was raised inside a collective call."""
    frame = Frame(traceback.function, traceback.file, traceback.line)
    return activity_of([frame]) == "communication"


def _fatal(
    event: Log, rule: str, role: CausalRole, symptom: Symptom, area: Area, traceback: Traceback | None
) -> Fatal | None:
    text = traceback.error if traceback else peel(event.text.split("\n", 1)[0])
    return Fatal(
        time=event.time,
        precision_ns=event.precision_ns,
        rule=rule,
        role=role,
        symptom=symptom,
        area=area,
        text=text[:500],
        exception=traceback.exception if traceback else "",
        signature=signature_of(shape(event.text)),
    )
