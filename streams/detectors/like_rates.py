"""How often lines come, against healthy jobs like this one (cross-job): many more of a kind, or many fewer.

It supports an incident and never opens one: a line that comes twice as often says that something is done twice as
often, and not by whose fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from schemas.identity import shortened
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.library.rates import RatePace, lines_of
from streams.view import AttemptView

How = Literal["more", "fewer"]
SHOWN_TEXT = 100


class LikeRatesConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``ratio``: how many times as often, or as rarely, as in any like job; in the median of the last ``samples``, and
    in all of them by half of that. ``shown`` templates are quoted, ``most_told`` are told at all.
    """

    ratio: float = 2.0
    samples: int = 4
    shown: int = 3
    most_told: int = 200

    def __post_init__(self) -> None:
        require(self, above_0=("samples", "shown", "most_told"))
        if self.ratio <= 1:
            raise ValueError("ratio must be above 1")


class LikeRatesState(msgspec.Struct, kw_only=True):
    """The rates so far, and what was told already, as *how|template*."""

    pace: RatePace = msgspec.field(default_factory=RatePace)
    told: list[str] = []


@register
class LikeRates(JobDetector[LikeRatesConfig, LikeRatesState]):
    """Tells each template once, when its rate has come to differ."""

    name = "like_rates"
    supporting = True
    config_type = LikeRatesConfig
    state_type = LikeRatesState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding of what comes more often, and one of what comes more rarely; they name nobody."""
        contrast, pace = window.contrast, self.state.pace
        if contrast is None:
            return []
        told = [one.iteration for one in window.summaries if one.iteration is not None]
        table = window.printed
        ranks = np.count_nonzero(table.counts, axis=1).tolist()
        counts = table.counts.sum(axis=1).tolist()
        lines = lines_of(
            (line.template, count, printing)
            for line, count, printing in zip(table.lines, counts, ranks, strict=True)
            if count and not line.chatter
        )
        if not pace.take(lines, len(window.by_rank), max(told, default=None)) or not contrast.rates:
            return []
        texts = {line.template: line.text for line in table.lines}
        found: dict[How, list[str]] = {"more": [], "fewer": []}
        for name, rates in sorted(pace.rates.items()):
            how = self._differs(rates[-self.config.samples :], contrast.rates.get(name, []))
            if (
                how is not None
                and f"{how}|{name}" not in self.state.told
                and len(self.state.told) < self.config.most_told
            ):
                self.state.told = [*self.state.told, f"{how}|{name}"]
                found[how].append(name)
        return [
            self._finding(view, window, how, [self._said(name, texts, contrast.rates[name]) for name in names])
            for how, names in found.items()
            if names
        ]

    def _differs(self, here: Sequence[float], there: Sequence[float]) -> How | None:
        """Whether a template comes more often than in all like jobs, or more rarely; null where it does not."""
        if len(here) < self.config.samples or not there:
            return None
        ratio, halfway = self.config.ratio, 1 + (self.config.ratio - 1) / 2
        if median(here) >= ratio * max(there) and min(here) >= halfway * max(there):
            return "more"
        if median(here) <= min(there) / ratio and max(here) <= min(there) / halfway:
            return "fewer"
        return None

    def _said(self, name: str, texts: dict[str, str], there: Sequence[float]) -> str:
        here = median(self.state.pace.rates[name][-self.config.samples :])
        quoted = f"'{shortened(texts[name], SHOWN_TEXT)}'" if name in texts else f"template {name}"
        return f"{quoted} {here:.3g} times a rank and iteration ({median(there):.3g})"

    def _finding(self, view: AttemptView, window: AttemptWindow, how: How, said: list[str]) -> Anomaly:
        more = f" and {len(said) - self.config.shown} more" if len(said) > self.config.shown else ""
        contrast = window.contrast
        many = sum(bool(job.pace) for job in contrast.choice.baseline) if contrast else 0
        return self.anomaly(
            window,
            how,
            onset=window.start,
            axis="cross-job",
            layer="log",
            symptom="slowdown",
            area="unknown",
            grounds=f"{how}_lines",
            severity="info",
            text=f"lines come {_WORDS[how]} than in any like healthy job: {'; '.join(said[: self.config.shown])}{more}",
            peers=f"in brackets the median of {many} like healthy job{'s' if many != 1 else ''}",
            iteration=view.clock.iteration,
            phase=view.phase,
            library=contrast.library if contrast else "",
        )


_WORDS: dict[How, str] = {"more": "more often", "fewer": "more rarely"}
