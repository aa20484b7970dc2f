"""Missing workers: a rank that shows no life any more while its peers do, or that never came.

Missing is evidence, and a missing rank is not a healthy one; but a dead process alone may have ended well, so a finding
supports an incident that something else opens. And where the node's own producer is silent the rank is
unobserved, not missing, and where the window was closed without a partition nothing is said. A rank that prints no
iterations and is not sampled is not missed either: in many frameworks one rank prints for all. Who is sampled seldom is
missed once two samples of it should have come, and that a rank prints no more means nothing where most do not.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.member import Member
from streams.stall import over
from streams.view import AttemptView


class MissingWorkersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A rank is missing after ``windows`` windows without life, or two of the pauses between its samples, whichever is
    longer; one that never came after ``arrival_windows``.

    Nothing is said unless a share of ``living`` ranks shows life: where all are silent nobody stands apart.
    """

    windows: int = 2
    arrival_windows: int = 30
    living: float = 0.5

    def __post_init__(self) -> None:
        require(self, above_0=("windows", "arrival_windows"), shares=("living",))


class MissingWorkersState(msgspec.Struct, kw_only=True):
    """Ranks reported so far; each is reported once."""

    reported: list[int] = []


@register
class MissingWorkers(JobDetector[MissingWorkersConfig, MissingWorkersState]):
    """Contrasts each rank's last sign of life with its peers'."""

    name = "missing_workers"
    grounds = frozenset({"vanished", "unobserved"})
    config_type = MissingWorkersConfig
    state_type = MissingWorkersState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for the ranks that became missing in this window."""
        if window.unavailable or over(view) or not view.members:
            return []
        limit = window.end - self.config.windows * (window.end - window.start)
        living = [
            rank for rank, member in view.members.items() if member.last_life > limit or _may_come(member, window)
        ]
        if len(living) < self.config.living * len(view.members):
            return []
        # Whose end is reported, or was asked for, is not missing.
        ended = {rank for rank, one in view.members.items() if one.exit is not None or one.requested is not None}
        silent = sorted(set(view.members) - ended - set(living))
        printing = sum((member.last_log or 0) > limit for member in view.members.values())
        lines_go_on = printing >= self.config.living * len(view.members)
        gone = [rank for rank in silent if _is_heard_of(view, rank, window, lines_go_on=lines_go_on)]
        never = sorted(view.expected - set(view.members)) if self._all_should_be_there(view, window) else []
        reported = set(self.state.reported)
        fresh = [rank for rank in [*gone, *never] if rank not in reported]
        self.state.reported = sorted(reported.union(fresh))
        watched = [rank for rank in fresh if rank in view.members and self._watched(view, rank, limit)]
        return [self._finding(view, window, fresh, watched, living)] if fresh else []

    def _all_should_be_there(self, view: AttemptView, window: AttemptWindow) -> bool:
        return window.end - view.first > self.config.arrival_windows * (window.end - window.start)

    def _watched(self, view: AttemptView, rank: int, limit: int) -> bool:
        """Whether the process was seen dead while its node still reports. No samples alone is no sign of death."""
        return view.members[rank].zombie is not None and view.node_life.get(view.node_of(rank), 0) > limit

    def _producers_said(self, view: AttemptView, window: AttemptWindow, fresh: list[int]) -> str:
        """Whether their nodes' producers live, where any was ever heard: else it may be only these that are silent."""
        limit = window.end - self.config.windows * (window.end - window.start)
        heard = {node: view.node_life[node] > limit for node in map(view.node_of, fresh) if node in view.node_life}
        said = ""
        for lives, one, several in ((True, "lives", "live"), (False, "is silent as well", "are silent as well")):
            nodes = sorted(node for node, life in heard.items() if life is lives)
            whose = f"producer{'s' if len(nodes) > 1 else ''} of {', '.join(nodes)}"
            said += f"; the {whose} {several if len(nodes) > 1 else one}" if nodes else ""
        return said

    def _finding(
        self, view: AttemptView, window: AttemptWindow, fresh: list[int], watched: list[int], living: list[int]
    ) -> Anomaly:
        peers = len(view.members.keys() - set(fresh))
        text = f"{said_ranks(fresh)} without a sign of life while {len(living)} of {peers} peers do"
        text += self._producers_said(view, window, fresh)
        last = [view.members[rank].last_life for rank in fresh if rank in view.members]
        why = "its process was seen dead, its node still reports"
        suspects = [view.suspect(rank, 0.7, why, "early_exit") for rank in watched]
        return self.anomaly(
            window,
            "missing",
            onset=min(last, default=window.start),
            precision_ns=window.end - window.start,
            axis="space",
            layer="platform",
            symptom="crash",
            area="unknown",
            grounds="vanished" if watched else "unobserved",
            severity="info",
            text=text,
            peers=f"{said_ranks(living)} live",
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=suspects,
            unobserved=[rank for rank in fresh if rank not in watched],
        )


def _may_come(member: Member, window: AttemptWindow) -> bool:
    """Whether a rank that is sampled regularly, and was not seen dead, need not have been sampled again yet."""
    regular = [one for one in (member.samples, member.sightings) if one.earlier]
    return member.zombie is None and any(not one.overdue(window.end) for one in regular)


def _is_heard_of(view: AttemptView, rank: int, window: AttemptWindow, *, lines_go_on: bool) -> bool:
    """Whether the rank's silence says something: it was seen dead, or misses what it always showed before.

    Those are samples, sightings by its node, and its own iterations where others' lines go on.
    """
    member = view.members[rank]
    overdue = member.samples.overdue(window.end) or member.sightings.overdue(window.end)
    return member.zombie is not None or overdue or (lines_go_on and rank in view.clock.reached)
