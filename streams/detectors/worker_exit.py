"""Workers' ends as launchers report them (crash): who was killed, who was only told to go.

A launcher names the first failure *it* saw, on its node; over all nodes only the kind of an end tells: a death by a
signal that nobody here had sent is a rank's own, SIGTERM after another's failure is not. Ends with an exit code are
judged by what the rank printed. One that ends with success while training goes on for the others leaves them waiting:
that is told once the job stands still.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Exit
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.stall import SECOND, StallRule, stall_of
from streams.view import AttemptView, AttemptWindow

GONE_WINDOWS = 2
_OWN_SIGNALS = frozenset({"SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT"})


class WorkerExitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``stop_slack_s``: ends this long before the owner's stop still belong to it."""

    stop_slack_s: float = 5.0
    stall: StallRule = StallRule()

    def __post_init__(self) -> None:
        require(self, above_0=("stop_slack_s",))


class WorkerExitState(msgspec.Struct, kw_only=True):
    """Ranks whose end has been reported, ranks that printed any fatal line, ranks that were said to have left."""

    reported: list[int] = []
    printed: list[int] = []
    left: list[int] = []


class _End(msgspec.Struct, frozen=True):
    """The ``earliest`` time of a process's end (ns), and how that is known."""

    earliest: int
    how: str
    score: float


@register
class WorkerExit(JobDetector[WorkerExitConfig, WorkerExitState]):
    """Reports deaths by a signal, and ends that nothing in the rank's own logs explains."""

    name = "worker_exit"
    config_type = WorkerExitConfig
    state_type = WorkerExitState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for the window's own deaths, one for the requested ends."""
        for summary in window.summaries:
            if summary.fatals and summary.identity.rank is not None:
                self.state.printed = sorted({*self.state.printed, summary.identity.rank})
        ended = {
            rank: member.exit
            for rank, member in sorted(view.members.items())
            if member.exit is not None and member.exit.code != 0 and rank not in self.state.reported
        }
        self.state.reported = sorted({*self.state.reported, *ended})
        if view.stopped is not None:
            slack = int(self.config.stop_slack_s * 1e9)
            ended = {rank: one for rank, one in ended.items() if one.time < view.stopped - slack}
        killed = {rank: one for rank, one in ended.items() if self._own(view, rank, one)}
        told = sorted(rank for rank, one in ended.items() if one.signal == "SIGTERM")
        found = [self._killed(view, window, killed)] if killed else []
        found += [self._told(view, window, told, ended)] if told else []
        return [*found, *self._early(view, window)]

    def _early(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """Those that ended without a word of an error, or that training was done, before the job stood still."""
        stall = stall_of(view, window, self.config.stall)
        if stall is None or window.unavailable:
            return []
        # The job stands still some time after its latest iteration: when the next one would have come.
        late = stall.since + 2 * max(stall.step, SECOND)
        ends = _ended_well(view) | _seen_no_more(view, window)
        left = {
            rank: end
            for rank, end in sorted(ends.items())
            if end.earliest <= late and view.members[rank].finished is None and rank not in self.state.printed
        }
        fresh = sorted(set(left) - set(self.state.left))
        if not fresh or 2 * len(left) >= len(view.members):
            return []
        self.state.left = sorted(left)
        first = min(left.values(), key=lambda end: end.earliest)
        return [
            self.anomaly(
                window,
                "left",
                onset=first.earliest,
                precision_ns=late - stall.since,
                axis="space",
                layer="platform",
                symptom="hang",
                area="unknown",
                grounds="left_early",
                severity="critical" if stall.critical else "warning",
                text="; ".join(f"rank {rank}: {end.how}" for rank, end in left.items()),
                peers=f"{len(view.members) - len(left)} of {len(view.members)} observed ranks have not ended so",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[
                    view.suspect(rank, end.score, f"{end.how}, while its peers wait", "early_exit")
                    for rank, end in left.items()
                ],
            )
        ]

    def _own(self, view: AttemptView, rank: int, end: Exit) -> bool:
        requested = view.members[rank].requested
        if requested is not None and requested <= end.time + 1_000_000_000 and end.signal in ("SIGTERM", "SIGKILL"):
            return False
        if end.signal == "SIGABRT" and view.members[rank].last_log is None:
            # A watchdog aborts its own process; without the rank's log nobody can tell that from a fault of its own.
            return False
        return end.signal in _OWN_SIGNALS and rank not in self.state.printed

    def _killed(self, view: AttemptView, window: AttemptWindow, killed: dict[int, Exit]) -> Anomaly:
        first = min(killed.values(), key=lambda one: one.time)
        said = ", ".join(f"rank {rank} ended by {one.signal}" for rank, one in killed.items())
        why = "ended by {}, which no launcher had sent, without a word in its own log"
        suspects = [view.suspect(rank, 0.9, why.format(one.signal)) for rank, one in killed.items()]
        return self.anomaly(
            window,
            "killed",
            onset=first.time,
            precision_ns=1_000_000_000,
            axis="space",
            layer="platform",
            symptom="crash",
            area="unknown",
            grounds="own_death",
            severity="critical",
            text=said,
            peers=f"{len(killed)} of {len(view.members)} observed ranks ended so",
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=suspects,
        )

    def _told(self, view: AttemptView, window: AttemptWindow, told: list[int], ended: dict[int, Exit]) -> Anomaly:
        return self.anomaly(
            window,
            "told",
            onset=min(ended[rank].time for rank in told),
            axis="space",
            layer="platform",
            symptom="crash",
            area="unknown",
            grounds="told_to_end",
            severity="info",
            text=f"{said_ranks(told)} ended by launchers after a failure elsewhere",
            iteration=view.clock.iteration,
            phase=view.phase,
            victims=told,
        )


def _ended_well(view: AttemptView) -> dict[int, _End]:
    """Ranks of which a launcher reports success."""
    ends = {rank: member.exit for rank, member in view.members.items()}
    how = "its process ended with code 0 before training was done"
    return {rank: _End(end.time, how, 0.8) for rank, end in ends.items() if end is not None and end.code == 0}


def _seen_no_more(view: AttemptView, window: AttemptWindow) -> dict[int, _End]:
    """Ranks that show no life since their node saw their process last, though it still sees another's.

    Of a node that sees nobody any more nothing is known.
    """
    length = window.end - window.start
    limit = window.end - GONE_WINDOWS * length
    seeing = {member.identity.node for member in view.members.values() if (member.sighted or 0) > limit}
    found = {}
    for rank, member in view.members.items():
        seen = member.sighted
        if seen is None or max(seen, member.last_life) > limit or member.identity.node not in seeing:
            continue
        # Who shows life long after its node last saw it is one whose process the node does not know.
        if member.last_life > seen + length:
            continue
        if member.exit is None and member.requested is None and member.identity.node:
            earliest = max(seen - length, member.last_log or 0)
            how = "its process is gone from its node, which still sees others, without a word of its own"
            found[rank] = _End(earliest, how, 0.7)
    return found
