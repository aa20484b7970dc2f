"""Trouble in the lines of a node: its kernel's and its system's, and those of workers whose rank is not known."""

from __future__ import annotations

import msgspec

from schemas.events import Log
from schemas.identity import Identity
from schemas.results import Fatal
from streams.lines.fatal import fatal_of, follow
from streams.stages.fatals import Fatals

_PASSES_ON = ("launcher", "sampler")
"""Whose errors are those of others, or of nobody's training."""
_SCHEDULER = "slurm."
"""Templates of what a scheduler says itself, whoever passes it on."""


def trains(identity: Identity, event: Log) -> bool:
    """Whether a line is of a worker, though nobody knows of which."""
    return (event.process_type or identity.process_type) == "trainer"


def passes_on(identity: Identity, event: Log, fatal: Fatal | None) -> bool:
    """Whether who prints a line only passes on what others have said, or says nothing of training."""
    kind = event.process_type or identity.process_type
    return kind in _PASSES_ON and (fatal is None or not fatal.template.startswith(_SCHEDULER))


def take(fatals: Fatals, identity: Identity, event: Log, *, ended: bool = False) -> None:
    """Adds what is fatal about a line that may be.

    What an error of a worker was raised under is not known, so it counts as if training had begun. Once training has
    ``ended`` peers go away, and that a worker has lost them is no trouble.
    """
    kind = event.process_type or identity.process_type
    fatal = fatal_of(event, trained=True)
    if passes_on(identity, event, fatal):
        return
    if fatal is None:
        follow(fatals.kept, event.text)
    elif not (ended and kind == "trainer" and fatal.role == "cascade"):
        fatals.add(msgspec.structs.replace(fatal, process_type=kind))
