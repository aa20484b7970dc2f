"""Lines that mean trouble by themselves, and whether they name a cause or only pass one on.

A *cascade* is what victims print: their peer went away or did not come. It never outranks a candidate. A chain of
errors that holds a cascade is one: a handler that wraps the loss of a peer does not make it the rank's own.
"""

from __future__ import annotations

import re

import msgspec

from schemas.events import Frame, Log
from schemas.identity import shortened
from schemas.results import Area, CausalRole, Fatal, Symptom
from streams.lines.signature import peel, shape, signature_of
from streams.lines.traceback import Traceback, has_traceback, parse_chain
from streams.stacks import activity_of

_LONGEST = 4096


class Rule(msgspec.Struct, frozen=True):
    """What an error or a line means; rules are tried in order and the first that matches counts.

    ``error`` is searched in the closing line of a traceback, ``line`` in a line without one. The latter must be told
    from lines that only speak of trouble, so it holds whole phrases, or is absent.
    """

    name: str
    role: CausalRole
    symptom: Symptom
    area: Area
    error: re.Pattern[str]
    line: re.Pattern[str] | None = None


RULES: tuple[Rule, ...] = (
    Rule(
        "collective_timeout",
        "cascade",
        "hang",
        "network",
        re.compile(r"Timed out waiting \d{1,12} ?ms for (?:send|recv)|collective operation timeout"),
        re.compile(
            r"Timed out waiting \d{1,12} ?ms for (?:send|recv)|Watchdog caught collective operation timeout"
            r"|failure detected by watchdog at work sequence id"
        ),
    ),
    Rule(
        "peer_lost",
        "cascade",
        "crash",
        "network",
        re.compile(
            r"Connection (?:closed|reset) by peer|Connection(?:Reset|Refused|Aborted)Error|Broken ?[Pp]ipe"
            r"|[Ss]ocket closed|ncclRemoteError|NCCL communicator was aborted|Socket Timeout|^EOFError"
            r"|failed to (?:recv|send), got 0 bytes|pair closure|connectFullMesh"
        ),
        re.compile(
            r"Connection closed by peer \[|ncclRemoteError|NCCL communicator was aborted"
            r"|failed to (?:recv|send), got 0 bytes"
        ),
    ),
    Rule(
        "terminated",
        "cascade",
        "crash",
        "unknown",
        re.compile(r"SignalException|got signal: (?:15|2)\b|^KeyboardInterrupt|killed by signal: Terminated"),
    ),
    Rule(
        "out_of_memory",
        "candidate",
        "memory",
        "memory",
        re.compile(
            r"CUDA out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory|^MemoryError"
            r"|killed by signal: Killed"
        ),
        re.compile(r"invoked oom-killer|Out of memory: Killed process|CUDA out of memory\. Tried to allocate"),
    ),
    Rule(
        "gpu_hardware",
        "candidate",
        "crash",
        "hardware",
        re.compile(r"uncorrectable ECC error|fallen off the bus|Double Bit ECC|hardware failure"),
        re.compile(r"NVRM: Xid |fallen off the bus|uncorrectable ECC error encountered"),
    ),
    Rule(
        "process_group",
        "cascade",
        "crash",
        "network",
        re.compile(r"DistBackendError|DistNetworkError|DistStoreError|NCCL error"),
        re.compile(r"terminate called after throwing an instance of 'c\d{1,3}::Dist"),
    ),
)

_ANY_LINE = re.compile("|".join(rule.line.pattern for rule in RULES if rule.line is not None))
"""Whether any rule speaks of a line at all: almost none does, and one search says so."""

_DATA = re.compile(r"DataLoader|[Dd]ataset|\bshard|\bsampler|\btokeniz", re.ASCII)
_CHECKPOINT = re.compile(r"checkpoint|ckpt", re.IGNORECASE)
_CONFIGURATION = re.compile(r"config|argument|yaml|hyperparam", re.IGNORECASE)


def speaks_of_trouble(text: str) -> bool:
    """Whether a record may be fatal; few are, and only these need a closer look."""
    return has_traceback(text) or _ANY_LINE.search(_said(text)) is not None


def _said(text: str) -> str:
    return peel(text.split("\n", 1)[0][:_LONGEST])


def fatal_of(event: Log, *, trained: bool) -> Fatal | None:
    """What is fatal about a record, or null. ``trained`` says whether the worker has done an iteration yet."""
    chain = parse_chain(event.text)
    if not chain:
        said = _said(event.text)
        if not _ANY_LINE.search(said):
            return None
        spoken = next(rule for rule in RULES if rule.line is not None and rule.line.search(said))
        return _fatal(event, spoken, said, "")
    rules = [_rule_of(traceback) for traceback in chain]
    passed_on = next((rule for rule in rules if rule is not None and rule.role == "cascade"), None)
    last, rule = chain[-1], passed_on or rules[-1]
    if rule is None:
        area = _area_of(last, event.text[:_LONGEST], trained)
        rule = Rule("exception", "candidate", "crash", area, _CONFIGURATION)
    return _fatal(event, rule, last.error, last.exception)


def _rule_of(traceback: Traceback) -> Rule | None:
    for rule in RULES:
        if rule.error.search(traceback.error):
            return rule
    return _IN_COLLECTIVE if in_communication(traceback) else None


# What a collective raises is mostly the loss of a peer; taking it for a cause would name a victim.
_IN_COLLECTIVE = Rule("in_collective", "cascade", "crash", "network", re.compile(r"(?!)"))


def in_communication(traceback: Traceback) -> bool:
    """Whether the error was raised inside a collective call."""
    frame = Frame(traceback.function, traceback.file, traceback.line)
    return activity_of([frame]) == "communication"


def _area_of(traceback: Traceback, text: str, trained: bool) -> Area:
    places = " ".join(traceback.files)
    if _DATA.search(traceback.error) or "torch/utils/data" in places:
        return "data"
    if _CHECKPOINT.search(traceback.error):
        return "checkpoint"
    if not trained and (traceback.exception in ("KeyError", "ArgumentError") or _CONFIGURATION.search(text)):
        return "configuration"
    return "code"


def _fatal(event: Log, rule: Rule, text: str, exception: str) -> Fatal:
    return Fatal(
        time=event.time,
        precision_ns=event.precision_ns,
        rule=rule.name,
        role=rule.role,
        symptom=rule.symptom,
        area=rule.area,
        text=shortened(text, 500),
        exception=exception,
        signature=signature_of(shape(event.text)),
    )
