"""Which phase a worker is in, as far as its lines say.

A phase is told by what a framework says when it begins or ends one, at the beginning of a message: the same words in
the middle of a sentence tell nothing.
"""

from __future__ import annotations

import re

from streams.lines.signature import peel

START_UP, DOWNLOAD, TRAIN, EVALUATION, CHECKPOINT, SHUTDOWN = (
    "start-up",
    "download",
    "train",
    "evaluation",
    "checkpoint",
    "shutdown",
)
QUIET_PHASES = frozenset({CHECKPOINT, EVALUATION})
"""Phases in which no iteration is to be expected for a while."""

_BEGINNING = r"(?:^|[\[\]:>)*|✨⏰-][ \t]{0,8})"
"""Where a message begins: at the line's own beginning, or behind what loggers write in front of it."""

_NO_SENTENCE = r"(?![ ](?:is|was|will|can|has|may|must|should|does|exists|not|every|interval|failed|takes|took)\b)"


def _begins(words: str) -> re.Pattern[str]:
    return re.compile(f"{_BEGINNING}(?:{words})", re.IGNORECASE | re.VERBOSE)


_FINISHED = _begins(
    r"""(?:after[ ])?training[ ](?:finished|is[ ]done|completed|complete)\b
      | process[ ]group[ ]destroyed
      | exiting[ ]program[ ](?:at[ ]iteration[ ]\d{1,12}|after[ ][\d.]{1,24}[ ]minutes)
      | `?trainer\.fit`?[ ]stopped:
      | ["']?final[ ]validation[ ]metrics:
      | \{["']train_runtime["']:"""
)
_SAVED = _begins(
    rf"""successfully[ ](?:saved|loaded)[ ]checkpoint
      | saved[ ]checkpoint{_NO_SENTENCE}
      | checkpoint[ ](?:saved|done)\b
      | finished[ ](?:saving|loading)[ ]the[ ]checkpoint
      | checkpoint[ ]\S{{1,200}}[ ]is[ ]ready[ ]now!
      | random[ ]states[ ]saved[ ]in[ ]
      | deleting[ ]older[ ]checkpoint[ ]\["""
)
_SAVING = _begins(
    rf"""(?:saving|writing|loading)[ ](?:the[ ]|model[ ])?checkpoint\b{_NO_SENTENCE}
      | saving[ ]a[ ]full[ ]checkpoint[ ]
      | saving[ ]current[ ]state[ ]to[ ]
      | checkpoint[ ]\S{{1,200}}[ ]is[ ]about[ ]to[ ]be[ ]saved!
      | local_global_step_folder:"""
)
_SAVING_PARTS = re.compile(r"\[Torch\] Saving \S{1,300}\.\.\.$")
_EVALUATED = _begins(
    r"""validation[ ]loss[ ]at
      | evaluation[ ](?:done|finished|completed)\b
      | ["']?initial[ ]validation[ ]metrics:
      | \{["']eval_\w{1,80}["']:"""
)
_EVALUATED_LOSS = re.compile(r"\beval(?:uation)? loss[ ]?[:=]", re.IGNORECASE)
_EVALUATING = _begins(
    rf"""(?:starting|running|begin)[ ](?:evaluation|validation|prediction)\b{_NO_SENTENCE}
      | validation:[ ]iteration[ ]\d{{1,12}}/\d{{1,12}}
      | (?:validation|validating|sanity[ ]checking|evaluating)(?:[ ]dataloader[ ]\d{{1,6}})?:[ ]{{1,4}}\d{{1,3}}%\|"""
)
_TRAINING = _begins(
    r"""running[ ]training[ ]\*
      | training[ ]starts[ ]at[ ]step[ ]\d{1,12}
      | before[ ]the[ ]start[ ]of[ ]training[ ]step\]"""
)
_DOWNLOADING = re.compile(
    r"(?<!not )(?<!skip )(?<!skipping )(?<!without )(?<!before )\bdownloading\b(?! (?:is|was|disabled|skipped)\b)"
    r"|\bfetching \d{1,9} files:",
    re.IGNORECASE,
)

_TURNS = (
    (_FINISHED, SHUTDOWN),
    (_SAVED, TRAIN),
    (_EVALUATED, TRAIN),
    (_EVALUATED_LOSS, TRAIN),
    (_SAVING, CHECKPOINT),
    (_SAVING_PARTS, CHECKPOINT),
    (_EVALUATING, EVALUATION),
    (_TRAINING, TRAIN),
)


LONGEST = 400
"""Characters of a line that count."""

_WORDS = (
    *("checkpoint", "validat", "eval", "training", "trainer.fit", "train_runtime", "saved", "saving "),
    *("exiting program", "process group", "sanity checking", "step_folder", "prediction"),
)
"""One of these is in every line that turns the phase; looking for them first is much cheaper."""


def phase_after(
    current: str,
    iteration: int | None,
    *,
    turn: str,
    downloads: bool,
    reports: bool = True,
    since: int | None = None,
) -> str:
    """The phase once a worker has printed a line: ``turn_of`` it and whether it ``downloads``, and its iteration.

    A line that only speaks of an iteration and ``reports`` no number of it may well be about a checkpoint. What is
    reported late of an iteration up to ``since``, behind which a quiet phase was told to begin, does not end that.
    """
    if turn:
        return turn
    quiet = current in QUIET_PHASES
    late = quiet and since is not None and iteration is not None and iteration <= since
    if iteration is not None and (reports or not quiet) and not late:
        return TRAIN
    if downloads and current in ("", START_UP):
        return DOWNLOAD
    return current or START_UP


def turn_of(line: str) -> str:
    """The phase that a line by itself says has begun, or nothing; ``SHUTDOWN`` where training came to its own end."""
    head = line[:LONGEST]
    plain = head.casefold()
    if any(word in plain for word in _WORDS):
        message = peel(head)
        for pattern, phase in _TURNS:
            if pattern.search(message):
                return phase
    return ""


def downloads(line: str) -> bool:
    """Whether the line says that something is being downloaded."""
    return _DOWNLOADING.search(line, 0, LONGEST) is not None
