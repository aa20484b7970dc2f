"""What on-call staff do not want to be paged for, for a while: a versioned record of its own."""

from __future__ import annotations

from typing import Literal

from schemas.results import Record

Kind = Literal["maintenance", "known", "test", "other"]
"""Why: planned work on what is silenced, a fault that is known and worked on, a job that is to fail, or else."""


class Matcher(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What one label of an incident has to be, or must not be where ``negated``.

    ``pattern``: in the value a ``*`` stands for any characters and a ``?`` for one; all others for themselves.
    """

    label: str
    value: str
    negated: bool = False
    pattern: bool = False

    @property
    def text(self) -> str:
        """As people write it: ``node=gpu3``, ``team!=speech``, ``job=~bench-*``."""
        sign = ("!~" if self.pattern else "!=") if self.negated else ("=~" if self.pattern else "=")
        return f"{self.label}{sign}{self.value}"


class Silence(Record, frozen=True, omit_defaults=True, kw_only=True):
    """From ``starts`` until before ``ends`` (ns) incidents page nobody that fit all ``matchers``; hangs always do.

    ``id`` stays the same, ``number`` counts the versions under it. A version only changes what is to come, so the
    latest one also tells what was silenced before it.
    """

    id: str
    number: int
    matchers: list[Matcher]
    starts: int
    ends: int
    created_by: str
    comment: str = ""
    kind: Kind = "maintenance"

    @property
    def label(self) -> str:
        """How results name it: ``3f9c2a7715d0be44 2``."""
        return f"{self.id} {self.number}"

    @property
    def text(self) -> str:
        """What it is about, as people write it."""
        return ", ".join(matcher.text for matcher in self.matchers)
