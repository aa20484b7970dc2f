"""The order of lines during a stall (hang): who stopped in the common sequence while its peers went on.

While the job trains, ranks repeat the same lines in the same order. Once it stands still, the last line of one that is
behind says what it did last, and the next line of its peers what it has not come to. Evidence beside other findings; it
names nobody, since buffers hold lines back and a rank that is one step ahead is as innocent as those behind it.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Window
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.contrast import few_of, observed
from streams.detectors.registry import JobDetector, register
from streams.printed import LONGEST_TEXT
from streams.sequences import Pair, Standing, at_start, front_of, in_loop
from streams.stall import Stall, StallRule, stall_of
from streams.view import AttemptView

KEPT_PAIRS = 40
MOST_LINES = 512


class LogSequenceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as standing still. Groups of fewer than ``least_peers`` are not compared, and no more than
    ``few`` of one are behind: else the others are ahead.
    """

    stall: StallRule = StallRule()
    least_peers: int = 4
    few: float = 0.25

    def __post_init__(self) -> None:
        require(self, above_0=("least_peers",), shares=("few",))


class Tail(msgspec.Struct, kw_only=True):
    """The numbers of a rank's latest lines and their iterations, columns of equal length."""

    lines: list[int] = []
    iterations: list[int | None] = []

    @property
    def pairs(self) -> list[Pair]:
        """Both together."""
        return list(zip(self.lines, self.iterations, strict=True))

    def turn(self, iteration: int | None) -> set[int]:
        """The lines that were printed in that iteration."""
        return {line for line, other in self.pairs if other == iteration}

    def add(self, pairs: list[Pair]) -> None:
        """Take later lines in; the oldest go."""
        self.lines += [line for line, _ in pairs]
        self.iterations += [iteration for _, iteration in pairs]
        del self.lines[:-KEPT_PAIRS], self.iterations[:-KEPT_PAIRS]


class LogSequenceState(msgspec.Struct, kw_only=True):
    """``lines`` are signatures and their masked texts by number; ``tails`` the latest lines of each rank."""

    lines: list[tuple[str, str]] = []
    tails: dict[int, Tail] = {}


@register
class LogSequence(JobDetector[LogSequenceConfig, LogSequenceState]):
    """Contrasts how far ranks have come in the lines that all of them print."""

    name = "log_sequence"
    supporting = True
    config_type = LogSequenceConfig
    state_type = LogSequenceState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a group and window, and only during a stall."""
        self._remember(window)
        stall = stall_of(view, window, self.config.stall)
        if stall is None or window.unavailable:
            return []
        known = {rank: self.state.tails[rank].pairs for rank in observed(view, window) if rank in self.state.tails}
        found = []
        for group in view.peer_groups():
            tails = {rank: known[rank] for rank in group if rank in known}
            standing = at_start(tails) if stall.iteration is None else in_loop(tails)
            if standing is not None and len(standing.at) >= self.config.least_peers:
                found += self._contrast(view, window, stall, standing)
        return found

    def _remember(self, window: AttemptWindow) -> None:
        if len(self.state.lines) >= MOST_LINES:
            self._make_room()
        numbers = {signature: number for number, (signature, _) in enumerate(self.state.lines)}
        for summary in window.summaries:
            rank = summary.identity.rank
            if rank is not None and summary.tail:
                tail = self.state.tails.setdefault(rank, Tail())
                tail.add(self._new_pairs(summary, tail, numbers))

    def _make_room(self) -> None:
        """Forget the lines that no tail has any more, as those of a talkative start; the others are numbered anew."""
        used = sorted({line for tail in self.state.tails.values() for line in tail.lines})
        number = {line: place for place, line in enumerate(used)}
        self.state.lines = [self.state.lines[line] for line in used]
        for tail in self.state.tails.values():
            tail.lines = [number[line] for line in tail.lines]

    def _new_pairs(self, summary: Window, tail: Tail, numbers: dict[str, int]) -> list[Pair]:
        """The window's pairs by number of line; what its first turn has in common with the last one is known."""
        last = tail.iterations[-1] if tail.iterations else None
        known: set[int] | None = None
        found: list[Pair] = []
        for place, iteration in summary.tail:
            if not 0 <= place < len(summary.signatures):
                continue
            counted = summary.signatures[place]
            number = numbers.get(counted.signature)
            if number is None:
                if len(numbers) >= MOST_LINES:
                    continue
                number = numbers[counted.signature] = len(numbers)
                self.state.lines.append((counted.signature, counted.masked[:LONGEST_TEXT]))
            if iteration == last:
                known = tail.turn(last) if known is None else known
                if number in known:
                    continue
            found.append((number, iteration))
        return found

    def _contrast(self, view: AttemptView, window: AttemptWindow, stall: Stall, standing: Standing) -> list[Anomaly]:
        front = front_of(standing)
        if front is None:
            return []
        behind = sorted(rank for rank, place in standing.at.items() if place < front)
        if not behind or len(behind) > few_of(len(standing.at), self.config.few):
            return []
        furthest = min(behind, key=lambda rank: (standing.at[rank], rank))
        return [
            self.anomaly(
                window,
                f"behind|{behind[0]}",
                onset=stall.since,
                axis="space",
                layer="log",
                symptom="hang",
                area="unknown",
                grounds="behind_in_sequence",
                severity="info",
                text=self._said(standing, behind, furthest),
                peers=self._went_on(standing, furthest, front),
                iteration=stall.iteration,
                phase=stall.phase,
                unobserved=sorted(view.expected - set(standing.at)),
            )
        ]

    def _said(self, standing: Standing, behind: list[int], furthest: int) -> str:
        iteration, done = standing.at[furthest]
        more = f" ({said_ranks(behind)} are behind)" if len(behind) > 1 else ""
        when = f" in iteration {iteration}" if iteration else ""
        if not done:
            return f"rank {furthest} printed none of its usual lines{when}{more}"
        return f'the last line of rank {furthest}{when} is "{self._text(standing, done - 1)}"{more}'

    def _went_on(self, standing: Standing, furthest: int, front: tuple[int, int]) -> str:
        ahead = [rank for rank, place in standing.at.items() if place >= front]
        line = self._text(standing, standing.at[furthest][1] % len(standing.order))
        return f'{said_ranks(ahead)} went on to "{line}"'

    def _text(self, standing: Standing, place: int) -> str:
        return self.state.lines[standing.order[place]][1]
