"""What tells an attempt from the healthy jobs of a library: templates that only it prints, and those that it lacks."""

from __future__ import annotations

import msgspec

from schemas.library import HealthyJob, LearnedFunction
from schemas.results import SuspiciousTemplate
from streams.library.choice import Choice


class NovelTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template that no job of the baseline prints: the ids that it had, the present one last.

    ``first`` is its first time, ``elsewhere`` the ids of the other jobs of the library that print it.
    """

    ids: list[str]
    text: str
    first: int
    ranks: list[int]
    elsewhere: list[str] = []

    @property
    def id(self) -> str:
        """Its present id."""
        return self.ids[-1]


class HealthyContrast(msgspec.Struct, frozen=True, kw_only=True):
    """What tells an attempt so far from its baseline, ``jobs`` healthy jobs of a library whose version ``library`` is.

    ``novel``: what none of those prints, in order of first lines; ``absent``: what nearly all ranks of those print and
    no rank of the attempt. ``functions`` are what the profiles of those show, as far as they have any; the jobs that
    have are ``profiled``. ``choice`` is which jobs of the library these are, and why;
    ``rates`` how many lines a rank and iteration like jobs print, by the template's id here.
    """

    library: str
    jobs: int
    novel: list[NovelTemplate]
    absent: list[SuspiciousTemplate]
    functions: list[LearnedFunction] = []
    profiled: list[HealthyJob] = []
    choice: Choice = Choice(like=False, baseline=[], jobs=[])
    rates: dict[str, list[float]] = {}
