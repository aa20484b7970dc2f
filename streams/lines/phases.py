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


LONGEST = 400
"""Characters of a line that count."""

_WORDS = ("checkpoint", "validation", "eval", "training")
"""One of these is in every line that turns the phase; looking for them first is much cheaper."""


def phase_after(current: str, iteration: int | None, *, turn: str, downloads: bool) -> str:
    """The phase once a worker has printed a line: ``turn_of`` it and whether it ``downloads``, and its iteration."""
    if turn:
        return turn
    if iteration is not None:
        return TRAIN
    if downloads and current in ("", START_UP):
        return DOWNLOAD
    return current or START_UP


def turn_of(line: str) -> str:
    """The phase that a line by itself says has begun, or nothing; ``SHUTDOWN`` where training came to its own end."""
    head = line[:LONGEST]
    plain = head.casefold()
    if any(word in plain for word in _WORDS):
        for pattern, phase in _TURNS:
            if pattern.search(head):
                return phase
    return ""


def downloads(line: str) -> bool:
    """Whether the line says that something is being downloaded."""
    return _DOWNLOADING.search(line, 0, LONGEST) is not None
