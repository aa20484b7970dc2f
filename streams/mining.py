"""Templates as a function of the set of masked texts: whoever saw them, in whatever order, has the same.

Two rules over the forms of the set (``streams/lines/form.py``) find words that are variables: where a variable stands
in the same place of an otherwise equal form, and where more than ``MANY`` words do. Drain3 then joins long forms that
differ in a word or two. Its clusters depend on the order in which it is fed, so it is fed all forms anew, sorted,
whenever there is one more; that is seldom, once a job has printed what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig

from streams.lines.form import WILD, joined

MANY = 5
"""Different words in one place beyond which it is a variable's. A state has fewer names (started, paused, stopped)."""
ENOUGH = 3
"""Other words that a form must have to be known by them."""
SIMILARITY = 0.9
"""Drain's: so many of a form's words must be those of a template."""
DEPTH = 4
"""Drain's: of its tree."""
SHORTEST, LONGEST = 10, 64
"""Words between blanks of what is fed to Drain: of fewer none may differ, and of more the comparing takes its time."""
PLACES = 32
"""The first words of a form that may turn out to be variables."""

_WORD = re.compile(r"[A-Za-z_][\w.$-]{0,4096}(?:<\*>)?|<\*>")


def templates_of(forms: Iterable[str]) -> dict[str, str]:
    """The template of each form."""
    known = sorted(set(forms))
    generalised = _generalised(known)
    clusters = _clusters(sorted(set(generalised.values())))
    return {form: clusters[generalised[form]] for form in known}


class _Place:
    """A word of a form: where it stands, and the form with a variable in its place."""

    def __init__(self, form: str, found: re.Match[str]) -> None:
        self.start, self.end = found.span()
        self.word = found[0]
        around = form[: self.start] + WILD + form[self.end :]
        self.around = joined(around) if WILD in form[max(self.start - 6, 0) : self.end + 6] else around


def _generalised(forms: list[str]) -> dict[str, str]:
    places = {form: [_Place(form, found) for found in islice(_WORD.finditer(form), PLACES)] for form in forms}
    words: dict[str, set[str]] = {}
    for found in places.values():
        for place in found:
            words.setdefault(place.around, set()).add(place.word)
    return {form: _without_variables(form, found, words) for form, found in places.items()}


def _without_variables(form: str, places: list[_Place], words: dict[str, set[str]]) -> str:
    constant = sum(place.word != WILD for place in places)
    if constant <= ENOUGH:
        return form
    pieces, at = [], 0
    for place in places:
        others = words[place.around]
        if WILD in others or len(others) > MANY:
            pieces += [form[at : place.start], WILD]
            at = place.end
    return joined("".join([*pieces, form[at:]]))


def _clusters(texts: list[str]) -> dict[str, str]:
    """Drain's template of each text."""
    miner = _miner()
    fed = [text for text in texts if SHORTEST <= text.count(" ") + 1 <= LONGEST]
    of = {text: int(miner.add_log_message(text)["cluster_id"]) for text in fed}
    found = {text: miner.drain.id_to_cluster[cluster].get_template() for text, cluster in of.items()}
    return {text: found.get(text, text) for text in texts}


def _miner() -> TemplateMiner:
    config = TemplateMinerConfig()
    config.drain_sim_th = SIMILARITY
    config.drain_depth = DEPTH
    config.profiling_enabled = False
    return TemplateMiner(config=config)
