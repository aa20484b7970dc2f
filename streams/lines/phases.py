"""Which phase a worker is in, as far as its lines say."""

from __future__ import annotations

import re

START_UP, DOWNLOAD, TRAIN, EVALUATION, CHECKPOINT, SHUTDOWN = (
    "start-up",
    "download",
    "train",
    "evaluation",
    "checkpoint",
    "shutdown",
)

_SAVED = re.compile(
    r"successfully (?:saved|loaded) checkpoint|saved checkpoint|checkpoint (?:saved|done)", re.IGNORECASE
)
_SAVING = re.compile(r"(?:saving|writing|loading) checkpoint", re.IGNORECASE)
_EVALUATED = re.compile(r"validation loss at|evaluation (?:done|finished)|eval(?:uation)? loss[ :=]", re.IGNORECASE)
_EVALUATING = re.compile(r"(?:starting|running|begin) (?:evaluation|validation)", re.IGNORECASE)
_DOWNLOADING = re.compile(r"\bdownloading\b", re.IGNORECASE)
_FINISHED = re.compile(r"training (?:finished|is done|completed|complete)\b|after training is done", re.IGNORECASE)


_TURNS = (
    (_FINISHED, SHUTDOWN),
    (_SAVED, TRAIN),
    (_EVALUATED, TRAIN),
    (_SAVING, CHECKPOINT),
    (_EVALUATING, EVALUATION),
)


_WORDS = ("checkpoint", "validation", "eval", "training")
"""One of these is in every line that turns the phase; looking for them first is much cheaper."""


def phase_after(line: str, current: str, iteration: int | None) -> str:
    """The phase once the worker has printed this line (its first 400 characters count)."""
    head = line[:400]
    plain = head.casefold()
    if any(word in plain for word in _WORDS):
        for pattern, phase in _TURNS:
            if pattern.search(head):
                return phase
    if iteration is not None:
        return TRAIN
    if _DOWNLOADING.search(head) and current in ("", START_UP):
        return DOWNLOAD
    return current or START_UP


def says_finished(line: str) -> bool:
    """Whether the line says that training came to its own end."""
    return "training" in line[:400].casefold() and _FINISHED.search(line, 0, 400) is not None
