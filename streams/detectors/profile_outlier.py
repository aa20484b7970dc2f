"""Profiles against each other (slowness): functions that hold more of a rank's step than of others'.

The statistic is EROICA's (arXiv 2506.08528): a share of the critical path over 1 % and an excess over median + 5 MAD of
peers of the same role and stage; the order of explanation is SysOM-AI's (GPU, then CPU, then system). A profile is one
look at a job. So it singles a rank out only beside four peers or more, when most of several steps show the same, and
when the rank waits less in collectives than they do; all else is told and names nobody. Nor is anybody named whose
whole replica takes longer, who may always have done more by design, or who executes other things than peers of whom
nothing tells the stages.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Severity, Sketch
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.kept_profiles import KeptProfiles, kept, unfolded
from streams.lines.phases import QUIET_PHASES
from streams.profile_innocence import Slow, guilty
from streams.profiles import (
    Excess,
    Peers,
    abridged,
    alike,
    explained,
    own_s,
    said_seconds,
    slower_than_before,
    span_s,
    totals,
)
from streams.robust import Bounds
from streams.stall import over
from streams.state import written
from streams.view import AttemptView

SECOND = 1_000_000_000
PEERS = "its peers' median"
WORKLOAD = ("many_slow_functions", "slow_functions_of_replica")
KEPT_FUNCTIONS, KEPT_EARLIER = 20, 10
"""Of a present profile, and of an earlier one that later ones are held against."""


class ProfileOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``bounds`` and ``share`` make a function stand out, ``impact`` is the least excess as a share of a step.

    Profiles taken within ``together_s`` of each other show the job at one time; those of fewer than ``steps`` steps, or
    without ``peers`` peers, single nobody out: they are worth a warning only from ``apart_ratio`` and ``apart_impact``
    on. More than a share of ``rotating`` ranks at once is workload. Within ``settle_s`` of a window's end the profiles
    of more ranks may still come. A step that takes ``growth`` times an earlier one has become slow, and what explains
    a ``part`` of it is told. Who is slower on one stage, and by a share of ``elsewhere`` as much on another one of its
    replica, has longer inputs.
    """

    bounds: Bounds = Bounds()
    share: float = 0.01
    impact: float = 0.1
    together_s: float = 120.0
    settle_s: float = 2.0
    steps: int = 5
    peers: int = 4
    apart_ratio: float = 1.5
    apart_impact: float = 0.2
    rotating: float = 0.25
    growth: float = 1.1
    part: float = 0.5
    elsewhere: float = 1 / 3

    def __post_init__(self) -> None:
        above_0 = (
            "impact",
            "together_s",
            "settle_s",
            "steps",
            "peers",
            "apart_ratio",
            "apart_impact",
            "growth",
            "part",
        )
        require(self, above_0=above_0, shares=("share", "rotating", "elsewhere"))


class ProfileOutlierState(msgspec.Struct, kw_only=True):
    """The profiles of the present time by rank, and each rank's with the shortest steps before it."""

    latest: dict[int, Sketch] = {}
    before: dict[int, Sketch] = {}


@register
class ProfileOutlier(JobDetector[ProfileOutlierConfig, ProfileOutlierState]):
    """Contrasts sketches within peer groups and with earlier ones of the same rank."""

    name = "profile_outlier"
    grounds = frozenset(
        {
            "many_slow_functions",
            "function_apart",
            "function_shift",
            "slow_function",
            "slow_function_and_changed",
            "slow_functions_of_replica",
            "slow_kernel_by_place",
            "slow_function_by_design",
            "slow_function_of_other_work",
            "slow_function_unseen",
        }
    )
    config_type = ProfileOutlierConfig
    state_type = ProfileOutlierState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding over ranks and one over time in a window that brings profiles."""
        fresh = [
            (sketch, summary.identity.rank)
            for summary in window.summaries
            if summary.identity.rank is not None and summary.phase not in QUIET_PHASES
            for sketch in summary.sketches
        ]
        shifted: dict[int, tuple[Sketch, Sketch]] = {}
        oldest = min((one.captured for one in self.state.latest.values()), default=None)
        for sketch, rank in sorted(fresh, key=lambda one: (one[0].captured, one[1] or 0)):
            if oldest is None or sketch.captured - oldest > int(self.config.together_s * SECOND):
                self._pass(sorted(self.state.latest))
                oldest = sketch.captured
            if rank is not None and (before := self._take(rank, sketch)):
                shifted[rank] = before, sketch
        if not fresh or over(view):
            return []
        found = [self._over_ranks(view, window), self._over_time(view, window, shifted)]
        return [one for one in found if one is not None]

    def snapshot(self) -> msgspec.Raw:
        """The state as JSON; ranks share the names of functions."""
        return written(kept({"latest": self.state.latest, "before": self.state.before}))

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a state that ``snapshot`` wrote."""
        found = msgspec.json.decode(raw, type=KeptProfiles)
        self.state = ProfileOutlierState(latest=unfolded(found, "latest"), before=unfolded(found, "before"))

    def _take(self, rank: int, sketch: Sketch) -> Sketch | None:
        """Remember a profile; returns the earlier one that it can be held against."""
        self._pass([rank])
        self.state.latest[rank] = abridged(sketch, KEPT_FUNCTIONS)
        before = self.state.before.get(rank)
        if before is None or before.inferred or sketch.inferred or not _recorded_alike(before, sketch):
            return None
        return before

    def _pass(self, ranks: list[int]) -> None:
        """Earlier profiles now; the one with the shortest steps is what later ones of the rank are held against."""
        for rank in ranks:
            sketch = self.state.latest.pop(rank, None)
            if sketch is None or not sketch.steps:
                continue
            before = self.state.before.get(rank)
            if before is None or not _recorded_alike(before, sketch) or span_s(sketch) < span_s(before):
                self.state.before[rank] = abridged(sketch, KEPT_EARLIER)

    def _over_ranks(self, view: AttemptView, window: AttemptWindow) -> Anomaly | None:
        comparable = alike(self.state.latest)
        groups = [[rank for rank in group if rank in comparable] for group in view.peer_groups()]
        peers = [Peers({rank: comparable[rank] for rank in group}) for group in groups if group]
        slow = [one for group in peers for one in self._slow(group)]
        if not slow:
            return None
        many = len(slow) > max(1, self.config.rotating * len(comparable))
        settled = self._settled(view, window)
        singled = [one for one in slow if self._tells(one) and settled] if not many else []
        grounds = "many_slow_functions" if many else "function_apart"
        if singled:
            singled, grounds = guilty(view, peers, singled, self.config.bounds, self.config.elsewhere)
        worst = max(singled or slow, key=lambda one: (one.impact, -one.rank))
        suspects = [
            view.suspect(one.rank, round(min(0.9, 0.5 + one.impact), 2), _why(one.why))
            for one in sorted(singled, key=lambda one: (-one.impact, one.rank))
        ]
        return self.anomaly(
            window,
            "ranks",
            onset=max(min(one.captured for one in comparable.values()), 0),
            axis="space",
            layer="profile",
            symptom="slowdown",
            area="workload" if grounds in WORKLOAD else worst.why.area,
            grounds=grounds,
            severity=self._severity(worst, many=many, singled=bool(singled)),
            text=f"{_said(worst)}, {worst.why.times(PEERS)}"
            + (f"; {len(slow)} of {len(comparable)} profiled ranks stand out like this" if len(slow) > 1 else ""),
            peers=_compared(worst),
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=suspects,
            victims=sorted(set(comparable) - {one.rank for one in slow}) if singled else [],
            unobserved=sorted(set(view.members) - set(comparable)),
        )

    def _severity(self, worst: Slow, *, many: bool, singled: bool) -> Severity:
        if many:
            return "info"
        apart = worst.why.ratio >= self.config.apart_ratio and worst.impact >= self.config.apart_impact
        return "warning" if singled or (apart and worst.steps >= self.config.steps) else "info"

    def _tells(self, one: Slow) -> bool:
        return len(one.group.ranks) > self.config.peers and one.steps >= self.config.steps

    def _settled(self, view: AttemptView, window: AttemptWindow) -> bool:
        """Whether all profiles of this time that are to be expected have come."""
        known = self.state.latest
        if len(known) >= max([len(view.members), *(one.world_size or 0 for one in known.values())]):
            return True
        newest = max(one.captured for one in known.values())
        return newest <= window.end - int(self.config.settle_s * SECOND)

    def _slow(self, group: Peers) -> list[Slow]:
        """The ranks of a peer group whose own work takes longer, by a function of it or as a whole."""
        standing_out = group.slower(self.config.bounds, self.config.share)
        steps = min((group.sketches[rank].steps for rank in group.ranks), default=0)
        found = []
        for rank in sorted(standing_out):
            sketch = group.sketches[rank]
            others, own, step = group.others(rank)
            excess, waits = own_s(sketch) - own, totals(sketch)["collective"]
            # Who holds up the others has the shortest collective; one that waits as long as they do is no culprit.
            waits_less = waits < others["collective"] or others["collective"] <= self.config.share * step
            if step <= 0 or excess < self.config.impact * step or not waits_less:
                continue
            why = explained(sketch, others, standing_out[rank], self.config.part)
            changed = self._has_changed(rank, sketch, why)
            found.append(Slow(rank, why, excess / step, steps, group, changed, waits, others["collective"]))
        return found

    def _has_changed(self, rank: int, sketch: Sketch, why: Excess) -> bool:
        before = self.state.before.get(rank)
        if before is None or why.function is None or before.steps < self.config.steps:
            return False
        earlier = slower_than_before(sketch, before, self.config.bounds, self.config.share)
        return any((one.kind, one.name) == (why.kind, why.name) for one in earlier)

    def _over_time(
        self, view: AttemptView, window: AttemptWindow, shifted: dict[int, tuple[Sketch, Sketch]]
    ) -> Anomaly | None:
        """Steps that take longer than in an earlier profile, where functions of a rank's own explain it."""
        found: list[tuple[float, int, Excess, Sketch, Sketch]] = []
        for rank, (before, sketch) in sorted(shifted.items()):
            grown = span_s(sketch) - span_s(before)
            own = own_s(sketch) - own_s(before)
            longer = sketch.steps and span_s(sketch) >= self.config.growth * span_s(before)
            if not longer or own < self.config.part * grown:
                continue
            slower = slower_than_before(sketch, before, self.config.bounds, self.config.share)
            if slower:
                why = explained(sketch, totals(before), slower, self.config.part)
                found.append((own / span_s(before), rank, why, before, sketch))
        if not found:
            return None
        _, rank, why, before, sketch = max(found, key=lambda one: (one[0], -one[1]))
        also = [one[1] for one in found if one[1] != rank]
        enough = min(before.steps, sketch.steps) >= self.config.steps
        return self.anomaly(
            window,
            "time",
            onset=min(sketch.captured for _, _, _, _, sketch in found),
            axis="time",
            layer="profile",
            symptom="slowdown",
            area=why.area,
            grounds="function_shift",
            severity="warning" if enough else "info",
            text=f"{why.name} of rank {rank} holds {said_seconds(why.own)} of a step{_calls(why)}, "
            f"{why.times('what it held in an earlier profile')}; a step takes {said_seconds(span_s(sketch))} "
            f"instead of {said_seconds(span_s(before))}",
            peers=f"{said_ranks(also)} likewise" if also else "no other profiled rank shows the like",
            iteration=view.clock.iteration,
            phase=view.phase,
        )


def _recorded_alike(one: Sketch, other: Sketch) -> bool:
    return (one.world_size, one.recorded) == (other.world_size, other.recorded)


def _said(one: Slow) -> str:
    return (
        f"{one.why.name} of rank {one.rank} holds {said_seconds(one.why.own)} of a step on the critical path"
        f"{_calls(one.why)}"
    )


def _compared(one: Slow) -> str:
    peers = said_ranks(rank for rank in one.group.ranks if rank != one.rank)
    return (
        f"{peers}, which hold a median of {said_seconds(one.peers_wait)} of a step in collectives; rank {one.rank} "
        f"holds {said_seconds(one.waits)} there"
    )


def _why(why: Excess) -> str:
    return f"{why.name} holds {said_seconds(why.own)} of a step, {why.times(PEERS)}"


def _calls(why: Excess) -> str:
    """Calls of the function, where it is one."""
    one = why.function
    if one is None:
        return ""
    return f" ({one.share:.0%} of all time; {one.count} calls of {said_seconds(one.mean)} on average)"
