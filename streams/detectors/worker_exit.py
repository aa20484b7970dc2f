"""Workers' ends as launchers report them (crash): who was killed, who was only told to go.

A launcher names the first failure *it* saw, on its node; over all nodes only the kind of an end tells: a death by a
signal that nobody here had sent is a rank's own, SIGTERM after another's failure is not. Ends with an exit code are
judged by what ranks printed; where nobody printed why, they are told and blame nobody, since who lost a peer ends so as
well. One that ends with success while training goes on for the others leaves them waiting: that is told once the job
stands still, and taken back should one that was thought gone be seen again.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Exit, Stop
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.member import Member
from streams.stall import SECOND, StallRule, stall_of
from streams.stops import FAILED_NS, TOLD_CODES
from streams.view import AttemptView

T = TypeVar("T")

GONE_WINDOWS = 2
"""How many windows after the job stood still a process must be missed at the latest."""
GONE = "its process is gone from its node, which still sees others, without a word of its own"
MOST_TOLD = 32
"""Different ends that one finding tells."""
TOGETHER_NS = 60 * SECOND
"""Ends with an exit code that lie closer together are told together: launchers of other nodes see them later."""
_CODED = re.compile(r"failed \(exitcode: |Exited with exit code ")
_OWN_SIGNALS = frozenset({"SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT"})


class WorkerExitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``stop_slack_s``: ends this long before the owner's stop still belong to it."""

    stop_slack_s: float = 5.0
    stall: StallRule = StallRule()

    def __post_init__(self) -> None:
        require(self, above_0=("stop_slack_s",))


class WorkerExitState(msgspec.Struct, kw_only=True):
    """Ranks whose end has been reported, ranks that printed any fatal line, ranks that are said to have left.

    Those are of the standstill that began at ``since``. ``alone`` are the nodes whose agents were told to end alone.
    ``worded`` is the end of the latest window in which anybody printed a fatal line, 0 where none did.
    """

    alone: list[str] = []
    reported: list[int] = []
    printed: list[int] = []
    left: list[int] = []
    since: int = 0
    worded: int = 0


class _End(msgspec.Struct, frozen=True):
    """The ``earliest`` time of a process's end (ns), and how that is known."""

    earliest: int
    how: str
    score: float


@register
class WorkerExit(JobDetector[WorkerExitConfig, WorkerExitState]):
    """Reports deaths by a signal, and ends that nothing in the rank's own logs explains."""

    name = "worker_exit"
    grounds = frozenset({"own_death", "told_to_end", "left_early", "exit_code"})
    config_type = WorkerExitConfig
    state_type = WorkerExitState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for the window's own deaths, one for the requested ends."""
        fatal = {one.identity.rank for one in window.summaries if one.fatals and one.identity.rank is not None}
        printed, reported = fatal.union(self.state.printed), set(self.state.reported)
        ended = {
            rank: member.exit
            for rank, member in sorted(view.members.items())
            if member.exit is not None and member.exit.code != 0 and rank not in reported
        }
        self.state.printed = sorted(printed)
        if any(one.fatals for one in window.summaries):
            self.state.worded = window.end
        self.state.reported = sorted(reported.union(ended))
        if view.stopped is not None:
            slack = int(self.config.stop_slack_s * 1e9)
            ended = {rank: one for rank, one in ended.items() if one.time < view.stopped - slack}
        killed = {rank: one for rank, one in ended.items() if _own(view, rank, one) and rank not in printed}
        lone = {rank: one for rank, one in ended.items() if rank not in printed and _told_alone(view, rank, one)}
        told = sorted(rank for rank, one in ended.items() if one.signal == "SIGTERM" and rank not in lone)
        killed = dict(sorted({**killed, **lone}.items()))
        found = [self._killed(view, window, killed)] if killed else []
        found += [self._told(view, window, told, ended)] if told else []
        if not killed:
            found += self._unexplained(view, window, ended, self._words(view, window))
        return [*found, *self._alone(view, window), *self._early(view, window, printed)]

    def _words(self, view: AttemptView, window: AttemptWindow) -> list[Stop]:
        """What launchers say in this window of workers that ended with an exit code, also of those of no known rank."""
        slack = int(self.config.stop_slack_s * 1e9)
        told = [
            stop
            for node, stop in window.stops
            if stop.word == "task"
            and _CODED.search(stop.said) is not None
            and stop.time < view.stops.agents.get(node, stop.time + 1)
            and (view.stopped is None or stop.time < view.stopped - slack)
        ]
        return sorted(told, key=lambda stop: (stop.time, stop.said))

    def _unexplained(
        self, view: AttemptView, window: AttemptWindow, ended: dict[int, Exit], words: list[Stop]
    ) -> list[Anomaly]:
        """Failures that are told by exit codes alone, with those that were told shortly before; ``ended`` are new.

        Where nobody knows whose ends they are, the ``words`` of launchers tell them.
        """
        fresh = [one.time for rank, one in ended.items() if _by_code(view, rank, one)]
        since = min([*fresh, *(stop.time for stop in words)], default=None)
        if view.finished or since is None or (self.state.worded and since <= self.state.worded + FAILED_NS):
            return []
        if not fresh:
            within, unknown = max(SECOND, words[0].precision_ns), "it is not known whose ends they are"
            return [self._coded(view, window, since, within, words[0].said, unknown)]
        ends = {
            rank: member.exit
            for rank, member in sorted(view.members.items())
            if member.exit is not None
            and _by_code(view, rank, member.exit)
            and min(fresh) - TOGETHER_NS <= member.exit.time <= max(fresh)
        }
        onset = min(one.time for one in ends.values())
        first = {rank: one for rank, one in ends.items() if one.time <= onset + SECOND}
        later = len(ends) - len(first)
        said = f"{_said_codes(first)} first, as far as launchers tell; why was not seen in any log"
        said += f"; {later} more ended with an exit code later" if later else ""
        peers = f"{len(ends)} of {len(view.members)} observed ranks ended with an exit code other than 0"
        return [self._coded(view, window, onset, SECOND, said, peers)]

    def _coded(
        self, view: AttemptView, window: AttemptWindow, onset: int, within: int, said: str, peers: str
    ) -> Anomaly:
        return self._crash(
            view,
            window,
            "coded",
            onset=onset,
            precision_ns=within,
            grounds="exit_code",
            severity="critical",
            text=said,
            peers=peers,
        )

    def _crash(self, view: AttemptView, window: AttemptWindow, subject: str, **fields: Any) -> Anomaly:
        """A finding on ends of processes."""
        return self.anomaly(
            window,
            subject,
            axis="space",
            layer="platform",
            symptom="crash",
            area="unknown",
            iteration=view.clock.iteration,
            phase=view.phase,
            **fields,
        )

    def _alone(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """The ranks of nodes whose agents were told to end while others live on: drained, or killed from outside."""
        fresh = {node: time for node, time in view.stops.lone.items() if node and node not in self.state.alone}
        self.state.alone = sorted({*self.state.alone, *fresh})
        ranks = {rank: fresh[node] for rank in sorted(view.members) if (node := view.node_of(rank)) in fresh}
        if not ranks:
            return []
        nodes = ", ".join(sorted(fresh))
        why = "the launcher on its node was told to end from outside, those of other nodes were not"
        return [
            self._crash(
                view,
                window,
                f"alone|{nodes}",
                onset=min(ranks.values()),
                precision_ns=SECOND,
                grounds="own_death",
                severity="critical",
                text=f"the launcher on {nodes} was told to end from outside and took {said_ranks(ranks)} along",
                peers=f"launchers that were heard and not told: {len(set(view.stops.launchers) - set(fresh))}",
                suspects=[view.suspect(rank, 0.8, why) for rank in ranks],
            )
        ]

    def _early(self, view: AttemptView, window: AttemptWindow, printed: set[int]) -> list[Anomaly]:
        """Those that ended without a word of an error, or that training was done, before the job stood still.

        Said whenever it changes; the latest word counts.
        """
        stall = stall_of(view, window, self.config.stall)
        if stall is None or window.unavailable:
            return []
        if stall.since != self.state.since:
            self.state.since, self.state.left = stall.since, []
        # The job stands still some time after its latest iteration: when the next one would have come.
        late = stall.since + 2 * max(stall.step, SECOND)
        ends = _ended_well(view) | _seen_no_more(view, window, late)
        left = {
            rank: end
            for rank, end in sorted(ends.items())
            if end.earliest <= late and view.members[rank].finished is None and rank not in printed
        }
        if 2 * len(left) >= len(view.members):
            left = {}
        before, self.state.left = self.state.left, sorted(left)
        if before == self.state.left:
            return []
        back = sorted(set(before) - set(left))
        said = _together({rank: end.how for rank, end in left.items()}, ": ")
        said += [f"{said_ranks(back)} no longer thought to have ended early"] if back else []
        return [
            self.anomaly(
                window,
                "left",
                onset=min((end.earliest for end in left.values()), default=stall.since),
                precision_ns=late - stall.since,
                axis="space",
                layer="platform",
                symptom="hang",
                area="unknown",
                grounds="left_early",
                severity=("critical" if stall.critical else "warning") if left else "info",
                text="; ".join(said),
                peers=f"{len(view.members) - len(left)} of {len(view.members)} observed ranks have not ended so",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[
                    view.suspect(rank, end.score, f"{end.how}, while its peers wait", "early_exit")
                    for rank, end in left.items()
                ],
            )
        ]

    def _killed(self, view: AttemptView, window: AttemptWindow, killed: dict[int, Exit]) -> Anomaly:
        first = min(killed.values(), key=lambda one: one.time)
        said = ", ".join(_together({rank: f"ended by {one.signal}" for rank, one in killed.items()}, " "))
        why = "ended by {}, which no launcher had sent, without a word in its own log"
        suspects = [view.suspect(rank, 0.9, why.format(one.signal)) for rank, one in killed.items()]
        return self._crash(
            view,
            window,
            "killed",
            onset=first.time,
            precision_ns=1_000_000_000,
            grounds="own_death",
            severity="critical",
            text=said,
            peers=f"{len(killed)} of {len(view.members)} observed ranks ended so",
            suspects=suspects,
        )

    def _told(self, view: AttemptView, window: AttemptWindow, told: list[int], ended: dict[int, Exit]) -> Anomaly:
        return self._crash(
            view,
            window,
            "told",
            onset=min(ended[rank].time for rank in told),
            grounds="told_to_end",
            severity="info",
            text=f"{said_ranks(told)} ended by launchers after a failure elsewhere",
            victims=told,
        )


def _together(told: dict[int, str], between: str) -> list[str]:
    """What is told of ranks, of those of whom the same is told at once; of what differs as much as people read."""
    ranks = _alike(told)
    said = [f"{said_ranks(who)}{between}{what}" for what, who in list(ranks.items())[:MOST_TOLD]]
    others = [rank for who in list(ranks.values())[MOST_TOLD:] for rank in who]
    return [*said, f"{said_ranks(others)} likewise"] if others else said


def _alike(told: dict[int, T]) -> dict[T, list[int]]:
    """The ranks by what is told of them."""
    ranks: dict[T, list[int]] = {}
    for rank, what in told.items():
        ranks.setdefault(what, []).append(rank)
    return ranks


def _own(view: AttemptView, rank: int, end: Exit) -> bool:
    """Whether nobody here asked for the end, as far as that can be known."""
    requested = view.members[rank].requested
    if requested is not None and requested <= end.time + 1_000_000_000 and end.signal in ("SIGTERM", "SIGKILL"):
        return False
    if end.signal == "SIGABRT" and view.members[rank].last_log is None:
        # A watchdog aborts its own process; without the rank's log nobody can tell that from a fault of its own.
        return False
    return end.signal in _OWN_SIGNALS


def _by_code(view: AttemptView, rank: int, end: Exit) -> bool:
    """Whether a launcher saw a rank fail with an exit code, before training was done and without being told to end."""
    member = view.members[rank]
    asked = member.requested is not None and member.requested <= end.time + SECOND
    return (end.code or 0) > 0 and end.code not in TOLD_CODES and not asked and member.finished is None


def _said_codes(ends: dict[int, Exit]) -> str:
    """Who ended with which exit code, by code."""
    by_code = _alike({rank: one.code or 0 for rank, one in ends.items()})
    return ", ".join(f"{said_ranks(ranks)} ended with exit code {code}" for code, ranks in sorted(by_code.items()))


def _told_alone(view: AttemptView, rank: int, end: Exit) -> bool:
    """Whether SIGTERM ended a rank to which its launcher, by its own words, did not send it.

    A launcher that closes its workers tells of each that still lives to whom it sends what: who is not among them had
    ended before. Nobody else may have been told to end: schedulers send it to launchers and ranks alike.
    """
    member, stops = view.members[rank], view.stops
    if end.signal != "SIGTERM" or member.requested is not None:
        return False
    others = [view.members[other] for other in stops.ranks if other != rank and other in view.members]
    unasked = any(other.requested is None for other in others)
    if unasked or stops.job is not None or stops.step is not None or stops.agents or stops.saving:
        return False
    mates = [one for other, one in view.members.items() if other != rank and one.identity.node == member.identity.node]
    return any(one.requested is not None and one.requested >= end.time for one in mates)


def _ended_well(view: AttemptView) -> dict[int, _End]:
    """Ranks of which a launcher reports success."""
    ends = {rank: member.exit for rank, member in view.members.items()}
    how = "its process ended with code 0 before training was done"
    return {rank: _End(end.time, how, 0.8) for rank, end in ends.items() if end is not None and end.code == 0}


def _seen_no_more(view: AttemptView, window: AttemptWindow, late: int) -> dict[int, _End]:
    """Ranks that their node's rounds, which regularly listed them with others, leave out since ``late`` or so.

    Whoever anything shows alive since is not gone, its node only does not know its process. Of an end that may have
    come long after the job stood still, it is not known whether it is why.
    """
    length = window.end - window.start
    on_node: dict[str, list[Member]] = {}
    for member in view.members.values():
        on_node.setdefault(member.identity.node, []).append(member)
    return {
        rank: _End(_last_shown(member, length), GONE, 0.7)
        for rank, member in view.members.items()
        if member.exit is None
        and member.requested is None
        and member.identity.node
        and member.last_life < member.rounds.lost <= late + GONE_WINDOWS * length
        and any(_lists_without(other, member) for other in on_node[member.identity.node])
    }


def _lists_without(other: Member, member: Member) -> bool:
    """Whether their node has seen ``other`` alone for longer than it ever took to see both again."""
    return member.rounds.left_out(other.rounds) and member.sightings.overdue(other.sightings.last)


def _last_shown(member: Member, length: int) -> int:
    """The time (ns) before which the process did not end; sightings and measurements are told by window."""
    shown = [member.sightings.last - length, member.last_log or 0, *(span.last for span in member.spans.values())]
    return max(*shown, member.last_life if member.last_life > member.sightings.last else 0)
