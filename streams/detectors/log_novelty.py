"""Templates against healthy jobs (cross-job): what none of them prints, and what they print and this job does not.

Those are the jobs of the library that are like this one, or, where none is, all. The difference to a pool of successful
jobs' log events is L4's (arXiv 2503.20263). It supports an incident and never opens one: that a line is new does not
say that it is bad, nor that who prints it is at fault. Lines keep the order of their first sight, since cascades come
after their cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.identity import said_ranks, shortened
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.library.healthy_contrast import HealthyContrast, NovelTemplate
from streams.view import AttemptView

SHOWN_TEXT = 120
SHOWN_JOBS = 3


class LogNoveltyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``shown``: how many templates a finding quotes; ``most_templates``: how many of an attempt are told at all."""

    shown: int = 3
    most_templates: int = 2000

    def __post_init__(self) -> None:
        require(self, above_0=("shown", "most_templates"))


class LogNoveltyState(msgspec.Struct, kw_only=True):
    """Ids of the templates that were told already, as they were then."""

    novel: list[str] = []
    absent: list[str] = []


@register
class LogNovelty(JobDetector[LogNoveltyConfig, LogNoveltyState]):
    """Tells each template once, in the window in which it came to be novel or missed."""

    name = "log_novelty"
    supporting = True
    config_type = LogNoveltyConfig
    state_type = LogNoveltyState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding of novel templates and one of absent ones; information that names nobody."""
        if window.contrast is None:
            return []
        found = [self._novel(view, window, window.contrast), self._absent(view, window, window.contrast)]
        return [one for one in found if one is not None]

    def _novel(self, view: AttemptView, window: AttemptWindow, contrast: HealthyContrast) -> Anomaly | None:
        told = set(self.state.novel)
        fresh = self._fresh(self.state.novel, [one.id for one in contrast.novel if told.isdisjoint(one.ids)])
        novel = [one for one in contrast.novel if one.id in fresh]
        if not novel:
            return None
        # What no job at all prints says more than what some outside the baseline print.
        novel = sorted(novel, key=lambda one: bool(one.elsewhere))
        quoted = [f"{_quoted(one.text)} (by {_printers(one)})" for one in novel[: self.config.shown]]
        return self._finding(
            view,
            window,
            "novel_templates",
            onset=min(one.first for one in novel),
            templates=[one.id for one in novel],
            text=f"{_count(novel)} that no {_kind(contrast)} prints: {self._listed(quoted, novel)}",
            peers=f"printed by none of {_jobs(contrast)}",
            library=contrast.library,
        )

    def _absent(self, view: AttemptView, window: AttemptWindow, contrast: HealthyContrast) -> Anomaly | None:
        fresh = self._fresh(self.state.absent, [one.id for one in contrast.absent])
        absent = [one for one in contrast.absent if one.id in fresh]
        if not absent:
            return None
        quoted = [_quoted(one.text) for one in absent[: self.config.shown]]
        return self._finding(
            view,
            window,
            "absent_templates",
            onset=absent[0].first_seen,
            templates=[one.id for one in absent],
            text=f"not seen so far: {_count(absent)} that {_kind(contrast)}s print: {self._listed(quoted, absent)}",
            peers=f"printed by nearly all ranks of {_jobs(contrast)}",
            library=contrast.library,
        )

    def _fresh(self, told: list[str], ids: list[str]) -> set[str]:
        """Those that were not told yet; from now on they are."""
        known = set(told)
        fresh = [id_ for id_ in ids if id_ not in known][: self.config.most_templates - len(told)]
        told += fresh
        return set(fresh)

    def _listed(self, quoted: list[str], templates: Sequence[object]) -> str:
        return ", ".join(quoted) + (" and others" if len(templates) > self.config.shown else "")

    def _finding(self, view: AttemptView, window: AttemptWindow, grounds: str, **said: Any) -> Anomaly:
        return self.anomaly(
            window,
            f"{grounds} {said['library']}",
            axis="cross-job",
            layer="log",
            # A symptom has to be said, though lines alone show none; most that are new tell of failures.
            symptom="crash",
            area="unknown",
            grounds=grounds,
            severity="info",
            iteration=view.clock.iteration,
            phase=view.phase,
            **said,
        )


def _quoted(text: str) -> str:
    return f"'{shortened(text, SHOWN_TEXT)}'"


def _count(templates: Sequence[object]) -> str:
    return f"{len(templates)} template{'s' if len(templates) > 1 else ''}"


def _jobs(contrast: HealthyContrast) -> str:
    return f"{contrast.jobs} {_kind(contrast)}{'s' if contrast.jobs != 1 else ''}"


def _kind(contrast: HealthyContrast) -> str:
    return "like healthy job" if contrast.choice.like else "healthy job"


def _printers(one: NovelTemplate) -> str:
    """Who prints it here, and which jobs outside the baseline do."""
    others = f"; outside the baseline printed by {', '.join(one.elsewhere[:SHOWN_JOBS])}" if one.elsewhere else ""
    return f"{said_ranks(one.ranks)}{others}"
