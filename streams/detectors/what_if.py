"""What a training step loses and whose doing it is (slowness), by playing it again from the timings of all operations.

Formulas and their source are in ``streams/whatif.py``. Somebody is named only if fixing them wins back most of what the
step loses, and they compute longer than the replicas of their own stage in most steps. A worker that is slow keeps the
whole pipeline waiting; the others are its victims. Varying lengths, stages with more work and replicas that take longer
on several stages are nobody's fault.
"""

from __future__ import annotations

import msgspec

from schemas.events import Timeline
from schemas.results import Anomaly, Area, Severity, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.places import is_by_position
from streams.segments import check_segments
from streams.view import AttemptView
from streams.whatif import Player, WhatIf, what_if
from streams.whatif_cause import Cause, Limits, Slow, cause_of, slow_workers
from streams.whatif_tensor import NoTrace, Place
from streams.whatif_words import peers_said, said, why

_AREAS: dict[Cause, Area] = {
    Cause.WORKERS: "compute",
    Cause.STAGES: "workload",
    Cause.REPLICA: "workload",
    Cause.LENGTHS: "workload",
    Cause.COMMUNICATION: "network",
    Cause.BETWEEN: "data",
}

SECOND = 1_000_000_000


class WhatIfConfig(msgspec.Struct, frozen=True, kw_only=True):
    """At least ``steps`` are judged at once; ``critical`` is from which S on a slow worker is critical.

    A step that not all workers have traced is waited for ``patience_windows``; of what waits ``pending_operations``
    are kept. Steps that come within ``together_s`` of each other show the job at one time.
    """

    limits: Limits = Limits()
    critical: float = 1.2
    steps: int = 3
    patience_windows: int = 3
    together_s: float = 600.0
    pending_operations: int = 200_000

    def __post_init__(self) -> None:
        require(self, above_0=("steps", "patience_windows", "together_s", "pending_operations"))
        if self.critical < self.limits.slowdown:
            raise ValueError("what_if: critical must not lie below the slowdown from which a job is slow")


class WhatIfState(msgspec.Struct, kw_only=True):
    """Timelines that are not judged yet by step and rank, and when (ns) the first of a step came.

    ``dropped`` counts the steps that were not judged since the last finding: too old, or too much.
    """

    pending: dict[int, dict[int, Timeline]] = {}
    since: dict[int, int] = {}
    dropped: int = 0


class _Judged(msgspec.Struct, frozen=True):
    """Played steps, what they tell, and the traced ranks by (stage, replica) index."""

    result: WhatIf
    slow: Slow
    ranks: dict[Place, list[int]]


@register
class WhatIfDetector(JobDetector[WhatIfConfig, WhatIfState]):
    """Plays traced steps again."""

    name = "what_if"
    grounds = frozenset({*(cause.value for cause in Cause), "what_if_by_place", "not_played"})
    config_type = WhatIfConfig
    state_type = WhatIfState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding, once enough steps are traced."""
        self._collect(window)
        self._forget(window)
        ready = [step for step in sorted(self.state.pending) if self._complete(view, window, step)]
        taken = {step: self.state.pending.pop(step) for step in ready} if len(ready) >= self.config.steps else {}
        self._bound()
        if not taken:
            return []
        onset = min(one.time for found in taken.values() for one in found.values())
        dropped, self.state.dropped = self.state.dropped, 0
        try:
            judged = self._played(view, taken)
        except NoTrace as reason:
            segmented = any(_members(found) for found in taken.values())
            step = view.clock.iteration if segmented else min(taken)
            return [self._not_played(view, window, onset, step, str(reason))]
        cause = cause_of(judged.result, judged.slow, self.config.limits, _unseen(view, judged.result))
        return [] if cause is None else [self._finding(view, window, judged, cause, onset, dropped)]

    def _collect(self, window: AttemptWindow) -> None:
        for summary in window.summaries:
            rank = summary.identity.rank
            for timeline in summary.timelines:
                if rank is not None and timeline.iteration is not None:
                    self.state.pending.setdefault(timeline.iteration, {})[rank] = timeline
                    self.state.since.setdefault(timeline.iteration, window.end)

    def _complete(self, view: AttemptView, window: AttemptWindow, step: int) -> bool:
        """Whether all workers of the layout have traced a step, or nobody is waited for any more.

        What nobody told the time of lies in one file, with all that there is.
        """
        found = self.state.pending[step]
        workers = _members(found) or view.layout.get("pp", 0) * view.layout.get("dp", 0)
        if workers and len({_place(view, rank, found[rank]) for rank in found} - {None}) >= workers:
            return True
        patience = self.config.patience_windows * (window.end - window.start)
        inferred = all(one.time_source == "inferred" for one in found.values())
        return inferred or window.end >= self.state.since[step] + patience

    def _forget(self, window: AttemptWindow) -> None:
        """Drop whole steps that came too long ago to show what later ones show."""
        oldest = window.end - int(self.config.together_s * SECOND)
        for step in [step for step in self.state.pending if self.state.since[step] < oldest]:
            self._drop(step)

    def _drop(self, step: int) -> None:
        del self.state.pending[step], self.state.since[step]
        self.state.dropped += 1

    def _bound(self) -> None:
        """Forget the steps that came first beyond what there is room for."""
        room = self.config.pending_operations
        for step in sorted(self.state.pending, key=lambda one: (self.state.since[one], one), reverse=True):
            room -= sum(len(one.operations) for one in self.state.pending[step].values())
            if room < 0:
                self._drop(step)
        self.state.since = {step: self.state.since[step] for step in sorted(self.state.pending)}

    def _played(self, view: AttemptView, taken: dict[int, dict[int, Timeline]]) -> _Judged:
        """The steps played again. Raises NoTrace where too few can be."""
        ranks: dict[Place, set[int]] = {}
        steps: dict[int, dict[Place, Timeline]] = {}
        for step, found in taken.items():
            for rank in sorted(found):
                place = _place(view, rank, found[rank])
                if place is not None and not found[rank].left_out:
                    steps.setdefault(step, {}).setdefault(place, found[rank])
                    ranks.setdefault(place, set()).add(rank)
        player = Player(steps)
        segments = [one for found in taken.values() for one in found.values() if one.members]
        if segments:
            check_segments(player.trace, segments)
        result = what_if(player)
        if len(result.steps) < self.config.steps:
            raise NoTrace(f"only {len(result.steps)} of {len(taken)} steps fit together")
        at = {
            (stage, replica): sorted(ranks[result.replicas[replica], result.stages[stage]])
            for stage in range(len(result.stages))
            for replica in range(len(result.replicas))
        }
        group_of = {rank: number for number, group in enumerate(view.peer_groups()) for rank in group}
        groups = {place: group_of.get(own[0], -1) for place, own in at.items()}
        return _Judged(result, slow_workers(player, result, self.config.limits, groups), at)

    def _finding(
        self, view: AttemptView, window: AttemptWindow, judged: _Judged, cause: Cause, onset: int, dropped: int
    ) -> Anomaly:
        """Of several traced ranks of a worker nobody can say which is slow: they wait for each other."""
        result, slow, ranks = judged.result, judged.slow, judged.ranks
        places = slow.places if cause is Cause.WORKERS else []
        score = round(min(0.99, max(slow.gain, 0.5)), 2)
        suspects = [
            view.suspect(ranks[place][0], score, why(result, slow, place)) for place in places if len(ranks[place]) == 1
        ]
        # What a rank does between collectives may be its duty; a forward pass is none.
        by_place = result.by_rank and bool(suspects) and is_by_position(view, _ranks_of(suspects), view.members)
        if result.by_rank and not by_place:
            suspects = [one for one in suspects if not is_by_position(view, _ranks_of([one]), view.members)]
        blamed = _ranks_of(suspects)
        slow_in = [at for at in range(len(result.steps)) if any(slow.flagged[place][at] for place in places)]
        return self.anomaly(
            window,
            "steps",
            onset=onset,
            axis="space",
            layer="profile",
            symptom="slowdown",
            # Own time between collectives may be kernels or a late CPU.
            area="unknown" if result.by_rank and cause is Cause.WORKERS else _AREAS.get(cause, "unknown"),
            grounds="what_if_by_place" if by_place else cause.value,
            severity=self._severity(result, cause),
            text=said(result, cause, slow, ranks, view.layout.get("tp", 1), _unseen(view, result))
            + (f"; {dropped} traced steps before these were not played" if dropped else ""),
            peers=peers_said(result, cause, slow),
            # Profilers number steps by themselves.
            iteration=view.clock.iteration if result.by_rank else result.steps[slow_in[0] if slow_in else 0],
            phase=view.phase,
            suspects=suspects,
            victims=sorted({rank for own in ranks.values() for rank in own} - blamed) if blamed else [],
        )

    def _severity(self, result: WhatIf, cause: Cause) -> Severity:
        """What passes between operations may be work that was not timed; it explains slowness that others find.

        So does what a few profiled steps lose to nobody's doing: a healthy job loses some as well.
        """
        if cause is Cause.BETWEEN or (result.by_rank and cause is not Cause.WORKERS):
            return "info"
        return "critical" if cause is Cause.WORKERS and result.slowdown >= self.config.critical else "warning"

    def _not_played(
        self, view: AttemptView, window: AttemptWindow, onset: int, step: int | None, reason: str
    ) -> Anomaly:
        return self.anomaly(
            window,
            "not played",
            onset=onset,
            axis="space",
            layer="profile",
            symptom="slowdown",
            area="unknown",
            grounds="not_played",
            severity="info",
            text=f"the traced steps cannot be played again: {reason}",
            iteration=step,
            phase=view.phase,
        )


def _unseen(view: AttemptView, result: WhatIf) -> int:
    """How many replicas of the layout are not in the played steps."""
    known = 0 if result.by_rank else view.layout.get("dp", 0) - len(result.replicas)
    return max(known, result.replicas_aside)


def _ranks_of(suspects: list[Suspect]) -> set[int]:
    return {one.rank for one in suspects if one.rank is not None}


def _members(found: dict[int, Timeline]) -> int:
    """How many ranks the segments of a step are of; 0 where its operations are none."""
    return max((one.members for one in found.values()), default=0)


def _place(view: AttemptView, rank: int, timeline: Timeline) -> Place | None:
    """Replica and pipeline stage of a rank, null where its coordinates are not known; of several stages the first.

    Of ranks that join the same collectives each is a replica.
    """
    if timeline.members:
        return rank, 0
    at = view.coordinates(rank)
    dp, pp = at.get("dp"), at.get("pp", 0)
    pp = min(pp, default=0) if isinstance(pp, list) else pp
    return (dp, pp) if isinstance(dp, int) else None
