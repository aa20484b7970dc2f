"""The form of a masked text: what is left of a line once every word that holds a variable is one ``<*>``.

Masks keep apart what a reader wants to tell apart (``blk_<NUM>``, ``rdd_<NUM>_<NUM>``); which of them one line of a
program prints is a matter of chance. A form is a pure function of the masked text, so two jobs that print the same
have the same forms whatever else they print.
"""

from __future__ import annotations

import re

from streams.lines.signature import MASKS

WILD = "<*>"

_IN_WORD = r"""[^\s=:,;()\[\]{}"'<>|]"""
_ANY = "|".join(MASKS)
# From the beginning of a word only: to try from each of its characters would be quadratic.
_VARIABLE_WORD = re.compile(
    rf"(?<!{_IN_WORD})(?P<before>{_IN_WORD}{{0,4096}})<(?P<mask>{_ANY})>(?P<behind>(?:{_IN_WORD}|<(?:{_ANY})>){{0,4096}})"
)
_EMPTY = re.compile(r"(?<= )\(\)")
_RUN = re.compile(r"(?<![A-Za-z])<\*>(?:[ :,./@+-]{1,3}<\*>|\(<\*>\)|\[<\*>\])+")
_ROUNDS = 3


def form_of(masked: str) -> str:
    """The form of a masked text: ``Received block <*> of size <*> from <*>``.

    Letters with one number behind are a name with an index, of which only the index varies (``fp<*>``, ``eth<*>``).
    Variables one behind another are one, since lists have any length; an empty pair of brackets holds one that is
    empty; so many blanks as are wanted count as one.
    """
    wild = _VARIABLE_WORD.sub(_wild, " ".join(masked.split()))
    return joined(_EMPTY.sub(f"({WILD})", wild))


def _wild(found: re.Match[str]) -> str:
    before = found["before"]
    indexed = found["mask"] == "NUM" and not found["behind"] and before.isascii() and before.isalpha()
    return before + WILD if indexed else WILD


def joined(form: str) -> str:
    """The form with variables one behind another as one."""
    for _ in range(_ROUNDS):
        form = _RUN.sub(WILD, form)
    return form
