"""Known-fatal lines and tracebacks (crash, memory): whose error is its own, and whose only passes one on.

Everybody prints errors once one rank is gone; a cascade ("connection closed by peer", a collective's timeout) makes a
victim, whatever its level and however early it was printed. Confirmations and advice raise nothing.
"""

from __future__ import annotations

import msgspec

from schemas.identity import rank_runs, said_ranks, shortened
from schemas.results import Anomaly, Fatal, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.troubles import beside, of_the_stop
from streams.view import AttemptView

MOST_RUNS = 8
"""Ranks without a line are named while they are so few runs without a gap."""


class FatalLinesConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed this long before the owner's stop still belongs to it: cascades, errors of a rank's own.

    A cascade that comes within ``follows_s`` behind an error of a rank's own follows that, not the stop.
    """

    stop_slack_s: float = 5.0
    own_slack_s: float = 1.0
    follows_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("stop_slack_s", "own_slack_s", "follows_s"))


class FatalLinesState(msgspec.Struct, kw_only=True):
    """When a rank last printed an error of its own (ns); incidents remember all else."""

    own: int | None = None


@register
class FatalLines(JobDetector[FatalLinesConfig, FatalLinesState]):
    """Reports candidates one by one and cascades together."""

    name = "fatal_lines"
    grounds = frozenset({"own_error", "cascade"})
    config_type = FatalLinesConfig
    state_type = FatalLinesState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each candidate's signature, and one for all cascades of the window."""
        before, finished = self._own_before(view, window), view.finished and not _waits_for_its_end(view, window)
        found = [
            (summary.identity.rank, fatal)
            for summary in window.summaries
            for fatal in summary.fatals
            if summary.identity.rank is not None and not self._after_the_end(view, fatal, before, finished=finished)
        ]
        by_signature: dict[str, list[tuple[int, Fatal]]] = {}
        for rank, fatal in found:
            if fatal.role == "candidate":
                by_signature.setdefault(fatal.signature, []).append((rank, fatal))
        cascades = [(rank, fatal) for rank, fatal in found if fatal.role == "cascade"]
        lost: dict[int, int] = {}
        for rank, fatal in cascades:
            lost[rank] = min(fatal.time, lost.get(rank, fatal.time))
        anomalies = [self._candidate(view, window, group, lost) for _, group in sorted(by_signature.items())]
        return [*anomalies, self._cascade(view, window, cascades)] if cascades else anomalies

    def _own_before(self, view: AttemptView, window: AttemptWindow) -> int | None:
        """When a rank printed an error of its own that is no part of a stop: the first in this window, or the last."""
        found = [
            fatal.time
            for summary in window.summaries
            for fatal in summary.fatals
            if fatal.role == "candidate" and not of_the_stop(fatal, view.stopped, self.config.own_slack_s)
        ]
        before = self.state.own
        self.state.own = max(found, default=before)
        follows = before is not None and window.start - before <= int(self.config.follows_s * 1e9)
        return before if follows else min(found, default=None)

    def _after_the_end(self, view: AttemptView, fatal: Fatal, own: int | None, *, finished: bool) -> bool:
        """Whether the line belongs to an end: the owner's stop, or peers that go away once training is done.

        An error of a rank's own before the stop is no part of it, nor is what others lose by that: launchers stop each
        other after a failure, and people a job that has failed.
        """
        loses = fatal.role == "cascade" and (own is None or fatal.time < own)
        slack = self.config.stop_slack_s if loses else self.config.own_slack_s
        return of_the_stop(fatal, view.stopped, slack) or (finished and fatal.role == "cascade")

    def _candidate(
        self, view: AttemptView, window: AttemptWindow, group: list[tuple[int, Fatal]], lost: dict[int, int]
    ) -> Anomaly:
        """The finding for a signature; its victims had ``lost`` a peer before they printed it (ns)."""
        first = min((fatal for _, fatal in group), key=lambda fatal: fatal.time)
        ranks = sorted({rank for rank, _ in group})
        return self.anomaly(
            window,
            first.signature,
            onset=first.time,
            precision_ns=first.precision_ns,
            axis="space",
            layer="hardware" if first.area == "hardware" else "log",
            symptom=first.symptom,
            area=first.area,
            grounds="own_error",
            severity="critical",
            text=f"{said_ranks(ranks)}: {first.text}{beside(first)}",
            peers=f"{len(ranks)} of {len(view.members)} observed ranks printed it",
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[self._suspect(view, rank, fatal, group) for rank, fatal in _first_by_rank(group)],
            victims=[rank for rank, fatal in _first_by_rank(group) if lost.get(rank, fatal.time) < fatal.time],
            templates=[first.signature],
        )

    def _suspect(self, view: AttemptView, rank: int, first: Fatal, group: list[tuple[int, Fatal]]) -> Suspect:
        """The rank; its error is a caught one where it printed none from where a program begins."""
        caught = all("caught_in" in fatal.values for other, fatal in group if other == rank)
        why = f"its own error, none that a lost peer causes: {shortened(first.text, 200)}"
        return view.suspect(rank, 0.9, why, "caught" if caught else "")

    def _cascade(self, view: AttemptView, window: AttemptWindow, group: list[tuple[int, Fatal]]) -> Anomaly:
        first = min((fatal for _, fatal in group), key=lambda fatal: fatal.time)
        ranks = sorted({rank for rank, _ in group})
        symptom = "hang" if all(fatal.symptom == "hang" for _, fatal in group) else "crash"
        whose = "its" if len(ranks) == 1 else "their"
        return self.anomaly(
            window,
            "cascade",
            onset=first.time,
            precision_ns=first.precision_ns,
            axis="space",
            layer="log",
            symptom=symptom,
            area=first.area,
            grounds="cascade",
            severity="critical",
            text=f"{said_ranks(ranks)} lost {whose} peers or waited in vain: {shortened(first.text, 200)}",
            peers=_without(view, ranks),
            iteration=view.clock.iteration,
            phase=view.phase,
            victims=ranks,
        )


def _without(view: AttemptView, ranks: list[int]) -> str:
    """Who printed no such line, by name where they are written in few runs."""
    others = view.members.keys() - set(ranks)
    count = f"{len(others)} of {len(view.members)}"
    few = 0 < len(rank_runs(others)) <= MOST_RUNS
    who = f"{said_ranks(others)}, {count}," if few else f"{count} ranks"
    return f"{who} printed none of it in that window"


def _first_by_rank(group: list[tuple[int, Fatal]]) -> list[tuple[int, Fatal]]:
    first: dict[int, Fatal] = {}
    for rank, fatal in group:
        if rank not in first or fatal.time < first[rank].time:
            first[rank] = fatal
    return sorted(first.items())


def _waits_for_its_end(view: AttemptView, window: AttemptWindow) -> bool:
    """Whether most ranks that have not ended have waited in vain: of peers that go away at the end only few do."""
    waited = {one.identity.rank for one in window.summaries if any(_waited(fatal) for fatal in one.fatals)}
    left = {rank for rank, member in view.members.items() if member.exit is None}
    return len(left & waited) > len(left) / 2


def _waited(fatal: Fatal) -> bool:
    return fatal.role == "cascade" and fatal.symptom == "hang"
