"""Slow collectives (slowness): for whom the ranks of a group wait, whose transfers take longer, which link is slow.

Durations of operations, by group, kind and size, as NCCL's inspector and flight recorders that were told to time them
give them; ``streams.delays`` has the rules. Evidence beside other findings: who joins last has been computing, loading
or waiting in another group, so it is where to look and not yet to blame.
"""

from __future__ import annotations

from statistics import median

import msgspec

from schemas.results import Anomaly, Area, OperationTimes
from streams.again import forget_oldest, is_due
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.delays import Cell, DelayBounds, Hot, Joined, Slow, hot_of, joined, slow_of, waits_for_all
from streams.detectors.registry import JobDetector, register
from streams.stall import over
from streams.view import AttemptView

MOST_KINDS = 128
MOST_PENDING = 65_536
"""Durations of operations that are not judged yet; more where as many operations as are compared have more ranks."""
MOST_CELLS = 16_384
CELLS_A_RANK = 4
"""Of all matrices together, each end of a pair for itself: as two neighbours make in a pipeline of very many ranks."""
KEPT_WAITS = 9
_ANEW = 1_000
"""Numbers so far below those that were judged are counted anew."""


class CollectiveDelayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``bounds`` say what matters, ``history`` how many operations are kept.

    An operation counts where ``reporting`` of the group's ranks tell how long it took.
    What still holds ``again_s`` later is told again.
    """

    bounds: DelayBounds = DelayBounds()
    reporting: float = 0.9
    history: int = 60
    again_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("history", "again_s"), shares=("reporting",))
        if self.history < 2 * self.bounds.operations:
            raise ValueError(f"history must be {2 * self.bounds.operations} operations or more, not {self.history}")


class Pending(msgspec.Struct):
    """An operation that further ranks may still report: the window and time in which it was first seen, durations."""

    end: int
    time: int
    durations: dict[int, int] = {}


class KindState(msgspec.Struct, kw_only=True):
    """Operations of one kind and size in one group: those to be judged, those that were, up to which number.

    ``members`` is how many ranks the group has, as far as it is known.
    """

    pending: dict[int, Pending] = {}
    judged: list[Joined] = []
    judged_to: int = -1
    latest: int = 0
    members: int = 0


class PairState(msgspec.Struct, kw_only=True):
    """The last durations of sends and of receives in one group, of one size, by ``sender|receiver``."""

    sends: dict[str, list[int]] = {}
    receives: dict[str, list[int]] = {}
    time: int = 0


class CollectiveDelayState(msgspec.Struct, kw_only=True):
    """Kinds and pairs by ``group|operation|size``, and the ends of the windows in which something was told last.

    ``left_out`` counts by reason what was not compared.
    """

    kinds: dict[str, KindState] = {}
    pairs: dict[str, PairState] = {}
    told: dict[str, int] = {}
    left_out: dict[str, int] = {}


@register
class CollectiveDelay(JobDetector[CollectiveDelayConfig, CollectiveDelayState]):
    """Contrasts the durations of collectives, and of sends and receives, within each group."""

    name = "collective_delay"
    supporting = True
    config_type = CollectiveDelayConfig
    state_type = CollectiveDelayState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding of each kind a window: that of the group which loses most time."""
        for summary in window.summaries:
            rank = summary.identity.rank
            if rank is not None:
                for operations in summary.operations:
                    self._take(rank, operations, window.end)
        judged = [key for key, kind in sorted(self.state.kinds.items()) if self._judge(kind, window.end)]
        moved = [key for key, pair in sorted(self.state.pairs.items()) if pair.time == window.end]
        slow: dict[str, Slow] = {}
        hot: dict[str, Hot] = {}
        if not over(view):
            bounds = self.config.bounds
            slow = {key: found for key in judged if (found := slow_of(self.state.kinds[key].judged, bounds))}
            hot = {key: one for key in moved if (one := hot_of(_matrix(self.state.pairs[key]), bounds))}
        # Only now, so that what all have told by the end of a window is looked at, however much it is.
        self._forget_kinds()
        self._forget_operations()
        self._forget_pairs(len(view.members))
        return [*self._slow(view, window, slow), *self._hot(view, window, hot)]

    def _take(self, rank: int, one: OperationTimes, end: int) -> None:
        operation = one.operation.lower()
        key = f"{one.group}|{one.operation}|{one.size}"
        if waits_for_all(operation):
            kind = self.state.kinds.setdefault(key, KindState())
            if one.sequences and max(one.sequences) < kind.judged_to - _ANEW:
                self._leave_out("operations", len(kind.pending))
                kind = self.state.kinds[key] = KindState()
            kind.latest, kind.members = end, max(kind.members, one.members)
            for sequence, duration, time in zip(one.sequences, one.durations, one.times, strict=True):
                if sequence > kind.judged_to or sequence in kind.pending:
                    kind.pending.setdefault(sequence, Pending(end, time)).durations[rank] = duration
                else:
                    self._leave_out("late", 1)
        elif one.peer is not None and operation in ("send", "recv"):
            pair = self.state.pairs.setdefault(f"{one.group}|{one.size}", PairState())
            sends = operation == "send"
            cell = f"{rank}|{one.peer}" if sends else f"{one.peer}|{rank}"
            found = (pair.sends if sends else pair.receives).setdefault(cell, [])
            found += one.durations
            del found[:-KEPT_WAITS]
            pair.time = end

    def _leave_out(self, reason: str, count: int) -> None:
        if count:
            self.state.left_out[reason] = self.state.left_out.get(reason, 0) + count

    def _forget_kinds(self) -> None:
        """Groups of which nothing was heard for longest go; what was compared of them is not left out."""
        kinds, least = self.state.kinds, self.config.bounds.operations
        for key in sorted(kinds, key=lambda one: (kinds[one].latest, one))[: max(0, len(kinds) - MOST_KINDS)]:
            gone = kinds.pop(key)
            self._leave_out("operations", len(gone.pending) + (len(gone.judged) if len(gone.judged) < least else 0))

    def _forget_operations(self) -> None:
        """The oldest go, but never so many that too few are left to compare."""
        kinds = self.state.kinds
        waiting = [
            (one.time, key, sequence, len(one.durations))
            for key, kind in kinds.items()
            for sequence, one in kind.pending.items()
        ]
        ranks = max((count for *_, count in waiting), default=0)
        left = sum(count for *_, count in waiting) - max(MOST_PENDING, self.config.bounds.operations * ranks)
        for _, key, sequence, count in sorted(waiting):
            if left <= 0:
                break
            del kinds[key].pending[sequence]
            self._leave_out("operations", 1)
            left -= count

    def _forget_pairs(self, ranks: int) -> None:
        """Matrices of which nothing was heard for longest go, of several the largest.

        Whole ones: of a slow sender whose other cells were cut away, one that is left looks like a slow link.
        """
        pairs = self.state.pairs
        cells = {key: len(pair.sends) + len(pair.receives) for key, pair in pairs.items()}
        left = sum(cells.values()) - max(MOST_CELLS, CELLS_A_RANK * ranks)
        for key in sorted(pairs, key=lambda one: (pairs[one].time, -cells[one], one)):
            if left <= 0 and len(pairs) <= MOST_KINDS:
                break
            del pairs[key]
            self._leave_out("pairs", cells[key])
            left -= cells[key]

    def _judge(self, kind: KindState, end: int) -> bool:
        """Judge the operations that no rank reports any more; returns whether there were any.

        One that some of the ranks do not report is left out, since who is not heard may be the last.
        """
        seen = max((len(one.durations) for one in kind.pending.values()), default=0)
        most = max(seen, kind.members, max((one.ranks for one in kind.judged), default=0))
        ready = sorted(
            sequence
            for sequence, one in kind.pending.items()
            if one.end < end or 0 < kind.members <= len(one.durations)
        )
        for sequence in ready:
            one = kind.pending.pop(sequence)
            kind.judged_to = max(kind.judged_to, sequence)
            found = joined(sequence, one.time, one.durations, self.config.bounds)
            if found is not None and found.ranks >= self.config.reporting * most:
                kind.judged.append(found)
            else:
                self._leave_out("incomplete", 1)
        kind.judged = sorted(kind.judged, key=lambda one: one.sequence)[-self.config.history :]
        return bool(ready)

    def _slow(self, view: AttemptView, window: AttemptWindow, slow: dict[str, Slow]) -> list[Anomaly]:
        found = []
        for kind in ("joins_last", "last_rotates", "slow_transfer"):
            own = {key: one for key, one in slow.items() if one.kind == kind}
            if own:
                key = max(own, key=lambda one: (own[one].now - own[one].usual, one))
                text, peers = _said(key, own[key])
                text += _besides(self.state.left_out, "operations", "incomplete", "late")
                found += self._told(view, window, key, own[key].kind, own[key].since, text, peers)
        return found

    def _hot(self, view: AttemptView, window: AttemptWindow, hot: dict[str, Hot]) -> list[Anomaly]:
        found = []
        if hot:
            key = max(hot, key=lambda one: (hot[one].now - hot[one].usual, one))
            text, peers = _drawn(key, hot[key])
            text += _besides(self.state.left_out, "pairs")
            found += self._told(view, window, key, hot[key].kind, window.start, text, peers)
        return found

    def _told(
        self, view: AttemptView, window: AttemptWindow, key: str, grounds: str, onset: int, text: str, peers: str
    ) -> list[Anomaly]:
        """The finding, unless it was told not long ago."""
        subject = f"{grounds}|{key}"
        if not is_due(self.state.told, subject, window.end, self.config.again_s):
            return []
        forget_oldest(self.state.told)
        return [
            self.anomaly(
                window,
                subject,
                onset=min(onset, window.end - 1),
                axis="time" if grounds == "slow_transfer" else "space",
                layer="collective",
                symptom="slowdown",
                area=_AREAS.get(grounds, "network"),
                grounds=grounds,
                severity="info",
                text=text,
                peers=peers,
                iteration=view.clock.iteration,
                phase=view.phase,
            )
        ]


_AREAS: dict[str, Area] = {"joins_last": "unknown", "last_rotates": "workload"}
_LEFT_OUT = {
    "operations": "{} operations for which there was no room",
    "incomplete": "{} that too few ranks reported",
    "late": "{} reports of what was judged before",
    "pairs": "{} ends of pairs for which there was no room",
}


def _matrix(pair: PairState) -> dict[Cell, float]:
    """The wait of each pair: the lesser of both ends' usual durations, since who comes first waits for the other."""
    cells: dict[Cell, float] = {}
    for cell in sorted(pair.sends.keys() | pair.receives.keys()):
        sender, receiver = (int(rank) for rank in cell.split("|"))
        cells[sender, receiver] = min(median(own[cell]) for own in (pair.sends, pair.receives) if cell in own)
    return cells


def _besides(left_out: dict[str, int], *reasons: str) -> str:
    """What was not compared so far, as the end of a sentence."""
    told = [_LEFT_OUT[reason].format(left_out[reason]) for reason in reasons if reason in left_out]
    return f"; not compared: {', '.join(told)}" if told else ""


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms"


def _said(key: str, one: Slow) -> tuple[str, str]:
    group, operation, _ = key.rsplit("|", 2)
    where = f"{operation} of group {group}"
    if one.kind == "joins_last":
        return (
            f"rank {one.rank} is the last to join {one.share:.0%} of the last operations {where}",
            f"the others take {_ms(one.now)} for them, it takes {_ms(one.usual)}",
        )
    if one.kind == "last_rotates":
        return (
            f"the ranks wait for one another in {one.share:.0%} of the last operations {where}, each time for another",
            f"most take {_ms(one.now)}, the last takes {_ms(one.usual)}",
        )
    return (
        f"transfers of {where} take all ranks {_ms(one.now)}",
        f"{_ms(one.usual)} before, {one.now / one.usual:.2f} times as long now",
    )


def _drawn(key: str, hot: Hot) -> tuple[str, str]:
    (sender, receiver), *_ = hot.cells
    said = {
        "hot_link": f"what rank {sender} sends to rank {receiver}",
        "hot_pair": f"what rank {sender} sends to rank {receiver}",
        "slow_sender": f"whatever rank {sender} sends, to {len(hot.cells)} ranks,",
        "slow_receiver": f"whatever rank {receiver} receives, from {len(hot.cells)} ranks,",
    }[hot.kind]
    group = key.rsplit("|", 1)[0]
    return f"{said} takes {_ms(hot.now)} or more in group {group}", f"{_ms(hot.usual)} is usual between other ranks"
