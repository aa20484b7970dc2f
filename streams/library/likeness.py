"""How alike two jobs are, facet by facet, by what is known of them before anything goes wrong.

A job is held against those like it, since another model or framework prints and takes something else. A facet is alike
by the share of the names told of both that have equal values; of numbers of ranks and nodes the smaller over the larger
counts, of versions how far they agree. A facet of which one of the two tells nothing is unknown: it makes the answer
less certain, and no less or more alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from schemas.jobs import HIDDEN, JobDescription

Settings = dict[str, dict[str, str]]
"""Names and values by facet."""

FRAMEWORK, SCALE, VERSIONS = "framework", "scale", "versions"

WEIGHTS: dict[str, int] = {
    # They decide which lines there are, and most of what a step does.
    FRAMEWORK: 4,
    "model": 4,
    # They decide who waits for whom, and how much each rank does.
    "layout": 3,
    SCALE: 3,
    # They change a step, and few lines.
    "hyperparameters": 2,
    "flags": 2,
    VERSIONS: 2,
    # Each commit is another one, paths are everybody's own, and most variables change nothing.
    "code": 1,
    "data": 1,
    "launch": 1,
    "environment": 1,
}
"""What a facet weighs: by how much it changes what a job prints and how long its steps take."""

DECIDES_STEP = (FRAMEWORK, "model", "layout", SCALE, "hyperparameters", "flags")
"""Facets in which jobs must be alike for the durations of their steps to be held against each other."""

SET_OR_NOT = frozenset({"hyperparameters", "flags", "environment"})
"""Facets in which a name that is not told is not set; in all others it may only not have been told."""

DIGITS = 12
"""By so many digits numbers are compared; whole ones of more, such as seeds, by all of them."""

WHOLE = sum(WEIGHTS.values())
SHOWN = 3

_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
_RELEASE = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?")


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """How alike two jobs are.

    ``total`` is that of all facets that both tell of, by their weights, 0 where there are none, and ``certainty`` what
    share of all weights those have. ``facets`` has them one by one; ``reasons`` say what differs most, in words.
    """

    total: float
    certainty: float
    facets: dict[str, float]
    reasons: list[str]

    @property
    def unknown(self) -> list[str]:
        """The facets of which one of the two tells nothing, in order of their weights."""
        return [name for name in WEIGHTS if name not in self.facets]


class Described(msgspec.Struct, frozen=True):
    """A description as it is compared: values in one form by facet, and what of it is not known for certain.

    ``raw`` are the values as they were told. ``hidden`` are names, as *facet.name*, whose value differs between
    workers or holds a secret; ``cut`` facets with more names than there was room for, so that a name that is not there
    is unknown.
    """

    settings: Settings
    hidden: frozenset[str]
    cut: frozenset[str]
    raw: Settings

    def tells(self, facet: str, name: str) -> bool:
        """Whether it is known which value the name has in the job, or that it has none."""
        values = self.settings.get(facet)
        if not values or name in self.hidden or f"{facet}.{name}" in self.hidden:
            return False
        return name in values or (facet in SET_OR_NOT and facet not in self.cut)


def described(description: JobDescription | None) -> Described:
    """What is known of a job, by facet, the heaviest first; facets of which nothing is known are left out.

    The command is left out, whose words are in other facets, and so are labels, which say whose a job is.
    """
    if description is None:
        return Described({}, frozenset(), frozenset(), {})
    told = description.facets
    world = {} if description.world_size is None else {"world_size": str(description.world_size)}
    told = {
        **told,
        FRAMEWORK: {FRAMEWORK: description.framework} if description.framework else {},
        SCALE: {**told.get(SCALE, {}), **world},
    }
    raw = {name: dict(sorted(told[name].items())) for name in WEIGHTS if told.get(name)}
    return Described(
        settings={name: {key: plain(value) for key, value in values.items()} for name, values in raw.items()},
        hidden=frozenset(
            (
                *description.differing,
                *description.scattered,
                *(
                    f"{facet}.{name}"
                    for facet, values in raw.items()
                    for name, value in values.items()
                    if HIDDEN in value
                ),
            )
        ),
        cut=frozenset(description.cut),
        raw=raw,
    )


def plain(value: str) -> str:
    """A value as it is compared: numbers by what they are, words without case."""
    text = value.strip()
    if text.isdecimal() and len(text) > DIGITS:
        return text
    if _NUMBER.fullmatch(text):
        return f"{float(text):.{DIGITS}g}"
    return text.casefold()


def likeness(here: JobDescription | None, there: JobDescription | None) -> Likeness:
    """How alike the two are; the order of the two changes nothing but the words."""
    return alike(described(here), described(there))


def alike(here: Described, there: Described) -> Likeness:
    """The same of descriptions that were read before."""
    facets: dict[str, float] = {}
    reasons: list[tuple[float, str]] = []
    for name, weight in WEIGHTS.items():
        names = comparable(name, here, there)
        if not names:
            continue
        own, other = here.settings[name], there.settings[name]
        values = {key: _alike(name, own.get(key), other.get(key)) for key in names}
        facets[name] = _rounded(sum(values.values()) / len(values))
        differing = [key for key, value in values.items() if value < 1]
        if differing:
            told = [
                said_difference(key, here.raw[name].get(key), there.raw[name].get(key)) for key in differing[:SHOWN]
            ]
            more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
            reasons.append((weight * (1 - facets[name]), f"{name}: {', '.join(told)}{more}"))
    known = sum(WEIGHTS[name] for name in facets)
    total = sum(WEIGHTS[name] * value for name, value in facets.items()) / known if known else 0.0
    reasons.sort(key=lambda one: (-one[0], one[1]))
    return Likeness(
        total=_rounded(total), certainty=_rounded(known / WHOLE), facets=facets, reasons=[text for _, text in reasons]
    )


def comparable(facet: str, here: Described, there: Described) -> list[str]:
    """The names of a facet that can be compared, sorted; none where one of the two tells nothing of it."""
    names = here.settings.get(facet, {}).keys() | there.settings.get(facet, {}).keys()
    return sorted(name for name in names if here.tells(facet, name) and there.tells(facet, name))


def said_difference(name: str, here: str | None, there: str | None) -> str:
    """``tp 4 here, 8 there``."""
    own, other = (value if value is not None else "none" for value in (here, there))
    return f"{name} {own} here, {other} there"


def _alike(facet: str, here: str | None, there: str | None) -> float:
    if here is None or there is None:
        return 0.0
    if here == there:
        return 1.0
    return _BY_FACET.get(facet, _unlike)(here, there)


def _unlike(here: str, there: str) -> float:
    return 0.0


def _by_size(here: str, there: str) -> float:
    """The smaller number over the larger."""
    if not (_NUMBER.fullmatch(here) and _NUMBER.fullmatch(there)):
        return 0.0
    small, large = sorted((float(here), float(there)))
    return min(small / large, 0.99) if small > 0 and large < float("inf") else 0.0


def _by_release(here: str, there: str) -> float:
    """Versions of one minor release are nearly alike, of one major release half."""
    own, other = _RELEASE.match(here), _RELEASE.match(there)
    if own is None or other is None or own[1] != other[1]:
        return 0.0
    return 0.9 if own[2] == other[2] else 0.5


_BY_FACET: dict[str, Callable[[str, str], float]] = {SCALE: _by_size, VERSIONS: _by_release}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
