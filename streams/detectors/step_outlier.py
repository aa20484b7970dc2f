"""Same-stage robust outlier (slowness): a rank whose own work takes longer than its peers', step after step.

Per step and timer of own work: above ``ratio`` times the peers' median and, with enough peers, above median + k MAD
(MAD floor 1 % of the median, detectors.md section 3.2). A verdict needs ``share`` of the last ``steps`` steps and an
excess that matters to the step. Waiting is never compared: the culprit waits least.
"""

from __future__ import annotations

import msgspec
import numpy as np

from schemas.results import Anomaly, Area, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.robust import Bounds, contrast
from streams.stall import over
from streams.timers import kind_of_timer, scale_ns
from streams.view import AttemptView, AttemptWindow


class StepOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``bounds`` make a step stand out; ``share`` of the last ``steps`` must.

    ``impact`` is the excess as a share of the whole step, ``critical`` the impact that is critical. The first
    ``warm_up_steps`` do not count. More than a share of ``rotating`` ranks at once is workload. A rank that has not
    reported for ``patience_windows`` windows is not waited for.
    """

    bounds: Bounds = Bounds()
    steps: int = 20
    share: float = 0.5
    impact: float = 0.1
    critical: float = 0.2
    warm_up_steps: int = 5
    history_steps: int = 200
    rotating: float = 0.25
    patience_windows: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("impact", "critical", "patience_windows"), shares=("share", "rotating"))
        if not 2 <= self.steps <= self.history_steps:
            raise ValueError("step_outlier: 2 <= steps <= history_steps must hold")


class Flag(msgspec.Struct, frozen=True, array_like=True):
    """One step of one rank: how it stood against its peers."""

    iteration: int
    time: int
    ratio: float
    excess: float
    value: float
    median: float
    flagged: bool


class StepOutlierState(msgspec.Struct, kw_only=True):
    """Values by timer, iteration and rank that are not judged yet; judged steps by timer and rank.

    ``began`` is the first iteration of each timer, from which warm-up counts; ``judged_to`` the last one judged;
    ``reporters`` each rank's latest iteration and the window in which it reported it.
    """

    pending: dict[str, dict[int, dict[int, tuple[float, int]]]] = {}
    judged: dict[str, dict[int, list[Flag]]] = {}
    judged_to: dict[str, int] = {}
    began: dict[str, int] = {}
    reporters: dict[str, dict[int, tuple[int, int]]] = {}


@register
class StepOutlier(JobDetector[StepOutlierConfig, StepOutlierState]):
    """Contrasts own-work timers within peer groups, per step."""

    name = "step_outlier"
    config_type = StepOutlierConfig
    state_type = StepOutlierState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a timer and window; the slow ranks of one timer stand in it together."""
        self._collect(window)
        found = []
        judged = [timer for timer in sorted(self.state.pending) if self._judge(view, window, timer)]
        if over(view):
            return []
        for timer in judged:
            slow = self._slow(view, timer)
            if slow:
                found.append(self._finding(view, window, timer, slow))
        return found

    def _collect(self, window: AttemptWindow) -> None:
        for summary in window.summaries:
            rank = summary.identity.rank
            for series in summary.series:
                if rank is None or kind_of_timer(series.name) != "own":
                    continue
                self._begin_anew(series.name, rank, series.iterations[0])
                steps = self.state.pending.setdefault(series.name, {})
                for iteration, time, value in zip(series.iterations, series.times, series.values, strict=True):
                    if value is not None and iteration > self.state.judged_to.get(series.name, -1):
                        steps.setdefault(iteration, {})[rank] = (value, time)
                latest = (series.iterations[-1], window.end)
                self.state.reporters.setdefault(series.name, {})[rank] = latest

    def _begin_anew(self, timer: str, rank: int, iteration: int) -> None:
        """Steps counted anew (an epoch, a rollback): the first rank to go back ends what was counted before."""
        reporters = self.state.reporters.get(timer, {})
        if rank in reporters and iteration <= reporters[rank][0]:
            for memory in (self.state.pending, self.state.judged, self.state.judged_to, self.state.began):
                memory.pop(timer, None)
            self.state.reporters[timer] = {}

    def _reported_by_all(self, timer: str, window: AttemptWindow) -> int:
        """Up to which iteration nearly all ranks have reported; who has been silent for long is not waited for."""
        patience = self.config.patience_windows * (window.end - window.start)
        reporters = self.state.reporters.get(timer, {})
        newest = sorted(step for step, end in reporters.values() if end > window.end - patience)
        return newest[len(newest) // 10] if newest else -1

    def _judge(self, view: AttemptView, window: AttemptWindow, timer: str) -> bool:
        """Judge the steps that all reporting ranks have reported, as a [step, rank] matrix per peer group.

        Returns whether there were any.
        """
        pending = self.state.pending[timer]
        low = self._reported_by_all(timer, window)
        for iteration in sorted(pending)[: -self.config.history_steps]:
            # So far behind that nobody will wait for it any more.
            del pending[iteration]
        ready = [iteration for iteration in sorted(pending) if iteration <= low]
        if not ready:
            return False
        warm = self.state.began.setdefault(timer, ready[0]) + self.config.warm_up_steps
        counted = [iteration for iteration in ready if iteration >= warm]
        judged = self.state.judged.setdefault(timer, {})
        for group in view.peer_groups():
            self._judge_group(group, counted, pending, judged)
        for iteration in ready:
            del pending[iteration]
        self.state.judged_to[timer] = ready[-1]
        return True

    def _judge_group(
        self,
        group: list[int],
        iterations: list[int],
        pending: dict[int, dict[int, tuple[float, int]]],
        judged: dict[int, list[Flag]],
    ) -> None:
        ranks = [rank for rank in group if any(rank in pending[iteration] for iteration in iterations)]
        if len(ranks) < 2 or not iterations:
            return
        values = np.array([[pending[step].get(rank, (np.nan, 0))[0] for rank in ranks] for step in iterations])
        flags, ratio, center = contrast(values, self.config.bounds)
        for column, rank in enumerate(ranks):
            history = judged.setdefault(rank, [])
            for row, iteration in enumerate(iterations):
                if rank in pending[iteration]:
                    value, time = pending[iteration][rank]
                    excess = value - float(center[row, column])
                    history.append(
                        Flag(
                            iteration,
                            time,
                            float(ratio[row, column]),
                            excess,
                            value,
                            float(center[row, column]),
                            bool(flags[row, column]),
                        )
                    )
            del history[: -self.config.history_steps]

    def _slow(self, view: AttemptView, timer: str) -> dict[int, list[Flag]]:
        """Ranks that stand out in enough of their last steps and by enough of the step."""
        step = view.clock.step_ns
        slow = {}
        for rank, history in sorted(self.state.judged[timer].items()):
            last = history[-self.config.steps :]
            flagged = self._flagged(history)
            if step is None or len(last) < self.config.steps or len(flagged) < self.config.share * len(last):
                continue
            if self._impact(timer, flagged, step) >= self.config.impact:
                slow[rank] = history
        return slow

    def _impact(self, timer: str, flagged: list[Flag], step: int) -> float:
        return float(np.median([flag.excess for flag in flagged])) * scale_ns(timer) / step

    def _finding(self, view: AttemptView, window: AttemptWindow, timer: str, slow: dict[int, list[Flag]]) -> Anomaly:
        onset = min((self._onset(history) for history in slow.values()), key=lambda flag: flag.time)
        judged = len(self.state.judged[timer])
        rotating = len(slow) > max(1, self.config.rotating * judged)
        suspects = [] if rotating else [self._suspect(view, timer, rank, slow[rank]) for rank in slow]
        step = view.clock.step_ns or 1
        flags = {rank: self._flagged(history) for rank, history in slow.items()}
        impact = max(self._impact(timer, found, step) for found in flags.values())
        changed = all(self._changed(history) for history in slow.values())
        worst = max(slow, key=lambda rank: (slow[rank][-1].ratio, -rank))
        return self.anomaly(
            window,
            timer,
            onset=onset.time,
            axis="space",
            layer="metric",
            symptom="slowdown",
            area="workload" if rotating else _area(timer),
            grounds="many_slow" if rotating else "slow_and_changed" if changed else "slow_against_peers",
            severity="critical" if impact >= self.config.critical else "warning",
            text=f"{timer} of rank {worst} {_middle(flags[worst], 'value'):.1f}, "
            f"{_middle(flags[worst], 'ratio'):.2f} times its peers' median "
            f"in {len(flags[worst])} of the last {self.config.steps} steps",
            peers=f"peers' median {_middle(flags[worst], 'median'):.1f}; {impact:.0%} of a step",
            iteration=onset.iteration,
            phase=view.phase,
            suspects=suspects,
            victims=sorted(set(view.members) - set(slow)),
        )

    def _flagged(self, history: list[Flag]) -> list[Flag]:
        return [flag for flag in history[-self.config.steps :] if flag.flagged]

    def _suspect(self, view: AttemptView, timer: str, rank: int, history: list[Flag]) -> Suspect:
        flagged = self._flagged(history)
        why = (
            f"own work {timer} {_middle(flagged, 'ratio'):.2f} times its peers' median, {len(flagged)} of "
            f"{min(len(history), self.config.steps)} steps"
        )
        return view.suspect(rank, round(min(0.99, 0.5 + len(flagged) / (2 * self.config.steps)), 2), why)

    def _onset(self, history: list[Flag]) -> Flag:
        """The step from which the rank keeps standing out.

        A jump is dated by half its height, which noise does not reach; a slow trend by where it leaves its peers.
        """
        low = 1 + (self.config.bounds.ratio - 1) / 2
        height = _middle(history[-self.config.steps :], "ratio")
        start = _run_start([flag.ratio > low for flag in history])
        half = _run_start([flag.ratio > max(low, (1 + height) / 2) for flag in history])
        return history[half if half - start <= 5 else start]

    def _changed(self, history: list[Flag]) -> bool:
        """Whether the rank's own work takes longer than its own past: ten steps or more before, none standing out."""
        onset = self._onset(history).iteration
        before = [flag for flag in history if flag.iteration < onset][-10:]
        after = [flag for flag in history if flag.iteration >= onset][-self.config.steps :]
        if len(before) < 10 or sum(flag.flagged for flag in before) > 2:
            return False
        return _middle(after, "value") >= self.config.bounds.ratio * _middle(before, "value")


def _run_start(above: list[bool]) -> int:
    """Where the run begins that reaches the end: going back while most of ten stand out, then on to its first."""
    at = len(above)
    while at > 0 and sum(above[max(0, at - 10) : at]) >= min(10, at) * 0.6:
        at -= 1
    for start in range(max(0, at - 10), len(above)):
        run = above[start : start + 5]
        if above[start] and sum(run) >= 0.6 * len(run):
            return start
    return len(above) - 1


def _middle(flags: list[Flag], field: str) -> float:
    return float(np.median([getattr(flag, field) for flag in flags]))


def _area(timer: str) -> Area:
    return "data" if any(word in timer for word in ("data", "load", "fetch", "token", "collate")) else "compute"
