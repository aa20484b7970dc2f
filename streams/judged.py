"""What could be judged of a run: which ranks are known, and which of their numbers were read.

That nothing was found means little where nothing could be: no rank known, no iteration, no timer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from schemas.identity import Identity
from schemas.packs import SeriesPack
from schemas.ports import Log
from schemas.results import Gauges, Series
from streams.detectors.job_drift import common_of
from streams.numerics import is_scale, kind_of
from streams.timers import kind_of_timer

SHOWN = 4
"""Names of timers that a line has room for."""
_KINDS = ("loss", "gradient norm", "loss scale", "pace")


class _Window(msgspec.Struct):
    """What of a window is asked for; the rest is not decoded."""

    identity: Identity
    iteration: int | None = None
    series: list[Series] = []
    series_pack: SeriesPack | None = None
    stacks: list[msgspec.Raw] = []
    collectives: list[msgspec.Raw] = []
    operations: list[msgspec.Raw] = []
    sketches: list[msgspec.Raw] = []
    timelines: list[msgspec.Raw] = []
    gauges: list[msgspec.Raw] = []
    gauge_columns: Gauges = Gauges()
    gauge_pack: dict[str, msgspec.Raw] = {}

    @property
    def names(self) -> list[str]:
        """The names of its series."""
        return [one.name for one in self.series] if self.series_pack is None else self.series_pack.names.names

    @property
    def firsts(self) -> Iterator[int]:
        """The first iteration of each."""
        if self.series_pack is not None:
            return (first for first, _, _, _ in self.series_pack.spans())
        return (one.iterations[0] for one in self.series if one.iterations)

    @property
    def layers(self) -> dict[str, bool]:
        """What there is of the worker besides its lines."""
        return {
            "stacks": bool(self.stacks),
            "collectives": bool(self.collectives or self.operations),
            "profiles": bool(self.sketches or self.timelines),
            "metrics": bool(self.gauges or self.gauge_columns.names or self.gauge_pack),
        }


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """How many ranks are known, and of how many of them iterations, timers of own work and other ``layers`` were read.

    ``iterations`` are the first and the last, null where none was read, ``nobodys`` if workers without a rank told any;
    ``timers`` are their names, ``series`` what else of training was read.
    """

    ranks: int
    iterating: int
    timed: int
    layers: dict[str, int]
    iterations: list[int] | None
    nobodys: bool
    timers: list[str]
    series: list[str]


def judged(log: Log) -> Judged:
    """What the windows of a log tell of all jobs in it."""
    ranks, iterating, timed = (set[tuple[str, str]]() for _ in range(3))
    layers: dict[str, set[tuple[str, str]]] = {}
    steps: set[int] = set()
    names: set[str] = set()
    nobodys = False
    for window in _windows(log):
        identity = window.identity
        who = identity.job, identity.worker
        if window.iteration is not None:
            steps.add(window.iteration)
            steps.update(window.firsts)
        names.update(window.names)
        if identity.rank is None:
            nobodys = nobodys or window.iteration is not None
            continue
        ranks.add(who)
        if window.iteration is not None:
            iterating.add(who)
        if any(map(_is_timer, window.names)):
            timed.add(who)
        for layer, seen in window.layers.items():
            if seen:
                layers.setdefault(layer, set()).add(who)
    kinds = {_kind_of(name) for name in names}
    return Judged(
        ranks=len(ranks),
        iterating=len(iterating),
        timed=len(timed),
        layers={layer: len(found) for layer, found in sorted(layers.items())},
        iterations=[min(steps), max(steps)] if steps else None,
        nobodys=nobodys,
        timers=sorted(filter(_is_timer, names)) if timed else [],
        series=[kind for kind in _KINDS if kind in kinds],
    )


def _windows(log: Log) -> Iterator[_Window]:
    for partition in range(log.partitions("windows")):
        for entry in log.read("windows", partition, 0, log.end("windows", partition)):
            if entry.headers["schema"] == "window":
                yield msgspec.json.decode(entry.value, type=_Window)


def _is_timer(name: str) -> bool:
    return kind_of_timer(name) in ("own", "mixed")


def _kind_of(name: str) -> str:
    if is_scale(name):
        return "loss scale"
    kind = kind_of(name)
    if kind in ("loss", "gradient"):
        return "loss" if kind == "loss" else "gradient norm"
    return "pace" if common_of(name) else ""


def said(one: Judged) -> str:
    """The same in one sentence."""
    who = "no rank is known" if not one.ranks else f"{one.ranks} rank{'s' if one.ranks > 1 else ''} known"
    found = [who, *_told(one)]
    if one.iterations is None:
        found.append("no iteration was read, so neither pace nor numerics could be judged")
    if not one.timers:
        found.append("no timers of ranks' own work, so none could be found to be slow by them")
    return "; ".join(found)


def _told(one: Judged) -> Iterator[str]:
    if one.iterations is not None:
        first, last = one.iterations
        whose = _of(one.iterating, one.ranks) if one.iterating else " of a worker whose rank is not known"
        yield f"iterations {first}-{last}{whose}"
    if one.series:
        yield ", ".join(one.series)
    if one.timers:
        yield f"timers {_listed(one.timers)}{_of(one.timed, one.ranks)}"
    if one.layers:
        yield ", ".join(f"{layer}{_of(count, one.ranks)}" for layer, count in one.layers.items())


def _of(some: int, all_of_them: int) -> str:
    return "" if some == all_of_them else f" of {some} rank{'' if some == 1 else 's'}"


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    rest = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def as_json(one: Judged) -> dict[str, Any]:
    """The same as plain values."""
    plain: dict[str, Any] = msgspec.to_builtins(one)
    return plain
