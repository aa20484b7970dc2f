"""Who is hardly ever seen waiting (slowness): for jobs whose ranks print no timers.

Ranks that train together wait for the slowest, so that samples of stacks show most of them in communication now and
then, and the slow one at its own work; where waiting costs no CPU, it uses more than they do. Samples are few: a rank
must wait more seldom than the tenth of its peers that waits least, by more than chance would have it (Chernoff's bound
on a binomial, P <= exp(-n KL)). By themselves they name nobody; a change against the rank's own past and the CPU do.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.results import Anomaly, Area
from streams.attempt_window import AttemptWindow
from streams.busy_columns import BusyColumns, BusyRows
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.innocence import GROUNDS_OF_BUSY, grounds_of_busy
from streams.lines.phases import QUIET_PHASES
from streams.robust import Array, median_of, middle_of
from streams.stall import over
from streams.timers import kind_of_timer
from streams.view import AttemptView

Counts = npt.NDArray[np.int64]


class BusyOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Of the last ``windows`` in which the job got on; up to ``history`` of them are remembered.

    A rank needs ``samples`` of its main thread; peers must be seen waiting in a share of ``waiting`` of theirs.
    ``odds`` bounds how seldom chance may single somebody out. ``cpu`` is the ratio to the peers' median that counts,
    ``mads`` its distance in deviations with a ``floor`` of a share of the median.
    """

    windows: int = 12
    history: int = 36
    samples: int = 12
    waiting: float = 0.4
    odds: float = 1e6
    cpu: float = 1.2
    mads: float = 5.0
    floor: float = 0.02
    least_peers: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("windows", "samples", "odds", "cpu", "mads", "floor"), shares=("waiting",))
        if self.history < 2 * self.windows:
            raise ValueError("busy_outlier: 2 * windows <= history must hold")


class BusyOutlierState(msgspec.Struct, kw_only=True):
    """What ranks were seen at in the last windows."""

    rows: BusyRows = msgspec.field(default_factory=BusyRows)


class _Busy(msgspec.Struct, frozen=True, kw_only=True):
    """One rank that is hardly ever seen waiting, beside its peers."""

    rank: int
    waits: int
    samples: int
    loads: int
    peers: float
    cpu: float
    peers_cpu: float
    since: int | None


@register
class BusyOutlier(JobDetector[BusyOutlierConfig, BusyOutlierState]):
    """Contrasts how often main threads wait, and what CPU they use, within peer groups."""

    name = "busy_outlier"
    grounds = GROUNDS_OF_BUSY
    config_type = BusyOutlierConfig
    state_type = BusyOutlierState

    def __init__(self, config: BusyOutlierConfig | None = None) -> None:
        super().__init__(config)
        self._columns = BusyColumns(BusyRows())

    def snapshot(self) -> msgspec.Raw:
        """The state as JSON, columns packed."""
        self.state.rows = self._columns.written()
        return super().snapshot()

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a state that ``snapshot`` wrote."""
        super().restore(raw)
        self._columns = BusyColumns(self.state.rows)

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, of the one rank that stands apart."""
        if over(view) or not _gets_on(view, window):
            return []
        self._columns.take(view, window, self.config.history)
        if 3 * len(self._columns.starts) < self.config.windows:
            return []
        for last in (self.config.windows, self.config.history):
            found = [one for group in view.peer_groups() for one in self._busy(group, last)]
            # Of several each may be busy by what is its part, as in a stage that nobody knows of.
            if found:
                return [self._finding(view, window, found[0])] if len(found) == 1 else []
        return []

    def _busy(self, group: list[int], last: int) -> list[_Busy]:
        """Who of a group waits more seldom in the last windows than nearly all of its peers do, by more than chance."""
        columns, config = self._columns, self.config
        places = columns.places(group)
        counts = columns.samples(last)[places]
        totals = counts.sum(axis=1)
        known = totals >= config.samples
        if np.count_nonzero(known) <= config.least_peers:
            return []
        shares = np.where(known, counts[:, 0] / np.maximum(totals, 1), np.nan)
        middle = float(median_of(shares))
        if middle < config.waiting:
            return []
        found = []
        cpu = columns.cpu(last)[places]
        ordered = np.sort(shares[known])
        tenth = (len(ordered) - 2) // 10
        for at in np.flatnonzero(known & (shares < middle / 2)).tolist():
            # The tenth of its peers that waits least, itself left out.
            least = float(ordered[tenth + 1 if shares[at] <= ordered[tenth] else tenth])
            if not _rarer(counts[at, 0], totals[at], least, config.odds * len(places)):
                continue
            found.append(
                _Busy(
                    rank=columns.ranks[places[at]],
                    waits=int(counts[at, 0]),
                    samples=int(totals[at]),
                    loads=int(counts[at, 1]),
                    peers=float(median_of(np.delete(shares, at))),
                    cpu=float(cpu[at]),
                    peers_cpu=self._outdone(cpu, at),
                    since=self._since(places[at]),
                )
            )
        return found

    def _outdone(self, cpu: Array, at: int) -> float:
        """The CPU of the peers that this one exceeds by enough; NaN where it does not, or none is known."""
        others = np.delete(cpu, at)
        others = others[np.isfinite(others)]
        if len(others) < self.config.least_peers or not np.isfinite(cpu[at]):
            return float("nan")
        middle, spread = (float(one[0]) for one in middle_of(others, self.config.floor))
        beyond = cpu[at] > max(self.config.cpu * middle, middle + self.config.mads * spread)
        return middle if beyond else float("nan")

    def _since(self, place: int) -> int | None:
        """The window from which the rank waits more seldom than before, null where it always did.

        The cut is where two shares explain its samples best.
        """
        waits, totals = (column[:, place] for column in self._columns.waits())
        best, cut = 0.0, 0
        for at in range(1, len(waits)):
            before, after = totals[:at].sum(), totals[at:].sum()
            if min(before, after) < self.config.samples:
                continue
            earlier, later = waits[:at].sum() / before, waits[at:].sum() / after
            gain = float(before * _divergence(earlier, waits.sum() / totals.sum())) + float(
                after * _divergence(later, waits.sum() / totals.sum())
            )
            if later < earlier and gain > best:
                best, cut = gain, at
        if best < float(np.log(self.config.odds)):
            return None
        return self._columns.starts[cut]

    def _finding(self, view: AttemptView, window: AttemptWindow, one: _Busy) -> Anomaly:
        more = bool(np.isfinite(one.peers_cpu))
        changed = one.since is not None
        grounds = grounds_of_busy(view, one.rank, timed=_has_timers(window), changed=changed, busier=more)
        text = f"rank {one.rank} was seen waiting in {one.waits} of {one.samples} samples"
        peers = f"its peers in {one.peers:.0%} of theirs"
        if more:
            text += f", with {one.cpu:.0f} % CPU"
            peers += f", with {one.peers_cpu:.0f} % CPU"
        return self.anomaly(
            window,
            "job",
            onset=self._columns.starts[0] if one.since is None else one.since,
            precision_ns=window.end - window.start,
            axis="space",
            layer="stack",
            symptom="slowdown",
            area=_area(one),
            grounds=grounds,
            severity="info" if grounds == "busy_alone" else "warning",
            text=text,
            peers=peers,
            phase=view.phase,
            suspects=[view.suspect(one.rank, 0.6, f"{text}, {peers}")],
            victims=sorted(set(view.members) - {one.rank}),
        )


def _gets_on(view: AttemptView, window: AttemptWindow) -> bool:
    """Whether the job trains: while it stands still others look for who is apart, and who saves waits for storage."""
    if view.iterated is None or view.phase in QUIET_PHASES:
        return False
    return view.iterated > window.start - 2 * (view.clock.step_ns or 0)


def _has_timers(window: AttemptWindow) -> bool:
    """Whether half of the ranks say how long their own work takes."""
    own = [told.flat.places for name, told in window.series.items() if kind_of_timer(name) == "own"]
    return bool(own) and 2 * len(np.unique(np.concatenate(own))) >= len(window.summaries)


def _area(one: _Busy) -> Area:
    return "data" if 2 * one.loads > one.samples - one.waits else "compute"


def _rarer(waits: int, samples: int, share: float, odds: float) -> bool:
    """Whether so few waits of so many samples have less than one chance in ``odds`` where a share is expected."""
    seen = waits / samples
    return seen < share and samples * _divergence(seen, share) > float(np.log(odds))


def _divergence(seen: float, expected: float) -> float:
    """Kullback and Leibler's divergence of two binomial shares, in nats."""
    found = 0.0
    for one, other in ((seen, expected), (1 - seen, 1 - expected)):
        if one > 0:
            found += one * float(np.log(one / max(other, 1e-12)))
    return found
