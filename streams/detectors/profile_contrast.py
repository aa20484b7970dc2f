"""Profiles against healthy jobs (cross-job): functions that are slower than in all of them, new, or gone.

It supports an incident and never opens one: another run does other work, and a difference accuses nobody.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.library.healthy_contrast import HealthyContrast
from streams.library.profiles import Difference, How, Profiled, differences, summed_up
from streams.profiles import called, said_seconds
from streams.view import AttemptView


class ProfileContrastConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``shown``: how many functions of each kind a finding lists; ``most_functions``: how many are told at all."""

    shown: int = 5
    most_functions: int = 500

    def __post_init__(self) -> None:
        require(self, above_0=("shown", "most_functions"))


class ProfileContrastState(msgspec.Struct, kw_only=True):
    """What was told already, as *how|kind|name*."""

    told: list[str] = []


@register
class ProfileContrast(JobDetector[ProfileContrastConfig, ProfileContrastState]):
    """Tells each function once, in the window whose profiles first show it to differ."""

    name = "profile_contrast"
    supporting = True
    config_type = ProfileContrastConfig
    state_type = ProfileContrastState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding of each kind of difference in a window that brings profiles; they name nobody."""
        contrast = window.contrast
        profiled = [one for one in window.summaries if one.sketches and one.identity.rank is not None]
        if contrast is None or not contrast.profiled or not profiled:
            return []
        here = summed_up(one.sketches[-1] for one in profiled)
        told = set(self.state.told)
        fresh = [one for one in differences(here, contrast.profiled, contrast.functions) if _name(one) not in told]
        fresh = fresh[: self.config.most_functions - len(self.state.told)]
        self.state.told += [_name(one) for one in fresh]
        ranks = [one.identity.rank for one in profiled if one.identity.rank is not None]
        kinds = {how: [one for one in fresh if one.how == how] for how in get_args(How)}
        return [
            self.anomaly(
                window,
                f"{how} {contrast.library}",
                onset=min(one.sketches[-1].captured for one in profiled),
                axis="cross-job",
                layer="profile",
                symptom="slowdown",
                area="unknown",
                grounds=f"{how}_functions",
                severity="info",
                text=self._text(how, found),
                peers=_compared(ranks, here, contrast),
                iteration=view.clock.iteration,
                phase=view.phase,
                library=contrast.library,
            )
            for how, found in kinds.items()
            if found
        ]

    def _text(self, how: How, found: list[Difference]) -> str:
        more = f" and {len(found) - self.config.shown} more" if len(found) > self.config.shown else ""
        return f"{_WORDS[how]}: {'; '.join(_said(one) for one in found[: self.config.shown])}{more}"


_WORDS: dict[How, str] = {
    "slower": "slower than in any healthy job",
    "new": "new, or small in every healthy job",
    "gone": "gone, or small here",
}


def _name(one: Difference) -> str:
    return f"{one.how}|{'|'.join(one.key)}"


def _said(one: Difference) -> str:
    here, there = (_amount(value, seconds=one.seconds) for value in (one.here, one.there))
    told = {"slower": f"{here} ({there})", "new": f"{here} ({there} at most)", "gone": f"{there} ({here} at most)"}
    return f"{called(*one.key)} {told[one.how]}"


def _amount(value: float, *, seconds: bool) -> str:
    return said_seconds(value) if seconds else f"{value:.1%}"


def _compared(ranks: list[int], here: Profiled, contrast: HealthyContrast) -> str:
    alike = [job for job in contrast.profiled if job.recorded == here.recorded]
    count = sum(job.profiled for job in alike)
    others = len(contrast.profiled) - len(alike)
    aside = f"; {others} recorded other kinds of calls and were not compared" if others else ""
    jobs = f"{len(alike)} healthy job{'s' if len(alike) != 1 else ''}"
    longest = max(job.step_s for job in alike)
    steps = f"; a step takes {said_seconds(here.step_s)} here, {said_seconds(longest)} at most there"
    told = steps if here.step_s and longest else ""
    return f"profiled: {said_ranks(ranks)} here, {count} in {jobs}{told}{aside}"
