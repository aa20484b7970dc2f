"""A rank's verified drift (timer_drift in the rank stage) as a finding of the job: one rank's, or everybody's.

Space decides who, time decides whether and when: a shift that few peers share points at those few and supports a
spatial finding; a shift that most share is the job's and names nobody. A timer that only one rank prints has no peers,
and a rank whose timer is back where it was has not shifted.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Drift
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.stall import over
from streams.timers import kind_of_timer, plain_timer
from streams.view import AttemptView


class TimerShiftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``few``: up to which share of their role's ranks that print the timer a shift is theirs and not the job's."""

    few: float = 0.25

    def __post_init__(self) -> None:
        require(self, shares=("few",))


class TimerShiftState(msgspec.Struct, kw_only=True):
    """Drifts so far, by timer and rank; the ranks that print the timer at all, in order."""

    drifts: dict[str, dict[int, Drift]] = {}
    reporters: dict[str, list[int]] = {}


@register
class TimerShift(JobDetector[TimerShiftConfig, TimerShiftState]):
    """Holds each own-work drift against what the peers' timers did."""

    name = "timer_shift"
    grounds = frozenset({"own_shift", "shared_shift"})
    config_type = TimerShiftConfig
    state_type = TimerShiftState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for each timer that shifted in this window; information, it never pages by itself."""
        fresh: dict[str, set[int]] = {}
        self._remember(window)
        for summary in window.summaries:
            for drift in summary.drifts:
                if summary.identity.rank is None or kind_of_timer(drift.metric) != "own":
                    continue
                drifts = self.state.drifts.setdefault(drift.metric, {})
                if drift.after < drift.before:
                    # It is back where it was, maybe within the window in which it shifted.
                    drifts.pop(summary.identity.rank, None)
                    fresh.get(drift.metric, set()).discard(summary.identity.rank)
                else:
                    drifts[summary.identity.rank] = drift
                    fresh.setdefault(drift.metric, set()).add(summary.identity.rank)
        if over(view):
            return []
        return [
            self._finding(view, window, timer, sorted(fresh[timer]))
            for timer in sorted(fresh)
            if fresh[timer] and self._has_peers(timer)
        ]

    def _remember(self, window: AttemptWindow) -> None:
        for timer, told in window.series.items():
            if kind_of_timer(timer) == "own":
                known, seen = self.state.reporters.get(timer, []), set(told.ranks)
                if not seen <= set(known):
                    self.state.reporters[timer] = sorted(seen.union(known))

    def _has_peers(self, timer: str) -> bool:
        return len(self.state.reporters.get(timer, [])) > 1

    def _finding(self, view: AttemptView, window: AttemptWindow, timer: str, ranks: list[int]) -> Anomaly:
        drifts = self.state.drifts[timer]
        reporters = len({*self.state.reporters[timer], *drifts} & view.of_their_roles(drifts))
        own = len(drifts) <= max(1, self.config.few * reporters)
        first = min((drifts[rank] for rank in ranks), key=lambda drift: drift.time)
        suspects = [view.suspect(rank, 0.6, _why(drifts[rank])) for rank in ranks] if own else []
        return self.anomaly(
            window,
            timer,
            onset=first.time,
            axis="time",
            layer="metric",
            symptom="slowdown",
            area="compute" if own else "workload",
            grounds="own_shift" if own else "shared_shift",
            severity="info",
            text=f"{timer} of {said_ranks(ranks)} shifted from {first.before:.1f} to {first.after:.1f} "
            f"over {first.steps} steps",
            peers=f"{len(drifts)} of {reporters} ranks shifted so far",
            iteration=first.iteration,
            phase=view.phase,
            suspects=suspects,
            metric=plain_timer(timer),
        )


def _why(drift: Drift) -> str:
    return f"{drift.metric} {drift.after / drift.before:.2f} times its own past since iteration {drift.iteration}"
