"""What a predefined template is: a line of the field under an id that never changes.

To add one, put an entry into the module of its family and a sample of it into ``tests/predefined_samples.py``. Facts
are looked up by folded lines, so numbers are ``\\d{1,N}``, never fixed digits.
"""

from __future__ import annotations

import re

import msgspec

from schemas.results import Area, CausalRole, Layer, Symptom


class Predefined(msgspec.Struct, frozen=True, kw_only=True):
    """A predefined template; entries are tried in order and the first that matches counts.

    ``lines`` are searched in a line without a traceback, so they are whole phrases that nobody says in passing; each
    begins with a letter, which makes the search for all of them at once cheap. ``error`` is searched in the closing
    line of a traceback. Their named groups are what is extracted, and those of ``more``, each
    searched in the same text. ``name`` is the family that people see. A *candidate* may be a cause, a *cascade* is
    what victims print, a *confirmation* supports what else is known, *advice* only tells what to do; the last two are
    no trouble by themselves, so what commonly passes by itself is a confirmation. ``coded`` entries have an id for
    each code; ``each`` stands for many texts, so that a job's template is told by its signature, too.
    """

    id: str
    name: str
    role: CausalRole
    area: Area
    symptom: Symptom = "crash"
    layer: Layer = "log"
    lines: tuple[re.Pattern[str], ...] = ()
    error: re.Pattern[str] | None = None
    more: tuple[re.Pattern[str], ...] = ()
    action: str = ""
    coded: bool = False
    each: bool = False

    @property
    def fatal(self) -> bool:
        """Whether it means trouble by itself."""
        return self.role in ("candidate", "cascade")
