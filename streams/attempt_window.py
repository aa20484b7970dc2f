"""One closed window of an attempt: what its ranks did in it, and what their nodes and the platform tell of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from schemas.jobs import JobDescription
from schemas.results import Exit, Fatal, HardwareChange, PlatformAlert, Stop, Window
from streams.device_gauges import with_devices
from streams.gauges import GaugeTable, gauge_table
from streams.library.healthy_contrast import HealthyContrast
from streams.printed import NOTHING_PRINTED, Printed
from streams.series_table import Reports, series_table

T = TypeVar("T")


class Fault(msgspec.Struct, frozen=True):
    """What a node's kernel or system reports, and the rank whose process or GPU it speaks of, null where unknown."""

    node: str
    fatal: Fatal
    rank: int | None = None

    @property
    def device(self) -> str:
        """The PCI id, or what else the line calls the device; empty where it names none."""
        return self.fatal.values.get("pci") or self.fatal.values.get("device", "")


class Changed(msgspec.Struct, frozen=True):
    """A change of a node's hardware, and the rank that is known to use the device, null where none or several do."""

    node: str
    change: HardwareChange
    rank: int | None = None


class Alarm(msgspec.Struct, frozen=True):
    """What the platform tells, the node that it is of, and the rank that is known to use the device, or null.

    The node is empty where it is of a switch or a storage.
    """

    node: str
    alert: PlatformAlert
    rank: int | None = None


class AttemptWindow(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One closed window of an attempt: its ranks' summaries in canonical order, and the node side mapped to ranks.

    ``exits`` and ``sightings`` are (rank, what), ``unplaced`` are (node, error of a worker whose rank is not known),
    ``faults`` what the nodes' own logs report, ``hardware`` what changed of their devices, ``nodes`` the summaries of
    those that have gauges, ``alarms`` what the platform has told of their places of late, ``switches`` those that nodes
    hang under, ``users`` the rank that alone is known to use a device, by node and PCI id; ``heard`` is
    when one of those workers last reported an iteration, ``nobodys`` what they print, as one worker's window, and
    ``nobodys_layout`` what they have said of the layout;
    ``stopped`` is when it was said that the job ends, ``stops`` are such words with their nodes, ``launchers`` the
    nodes whose launchers printed; ``unavailable`` is set where a partition was left out. ``printed`` is who printed
    what, as one table; ``contrast``
    what tells the attempt from healthy jobs so far, null where no library of those is known. ``by_rank`` are the
    summaries once more; ``described`` is what is known of the job so far.
    """

    job: str
    attempt: str
    start: int
    end: int
    summaries: list[Window]
    exits: list[tuple[int, Exit]] = []
    sightings: list[tuple[int, int]] = []
    node_life: list[tuple[str, int]] = []
    unplaced: list[tuple[str, Fatal]] = []
    faults: list[Fault] = []
    hardware: list[Changed] = []
    alarms: list[Alarm] = []
    switches: dict[str, str] = {}
    nodes: list[Window] = []
    users: dict[tuple[str, str], int] = {}
    heard: int | None = None
    nobodys: Window | None = None
    nobodys_layout: dict[str, int] = {}
    described: JobDescription | None = None
    stopped: int | None = None
    stops: list[tuple[str, Stop]] = []
    launchers: list[str] = []
    unavailable: bool = False
    contrast: HealthyContrast | None = None
    printed: Printed = NOTHING_PRINTED
    by_rank: dict[int | None, list[Window]] = {}

    def __post_init__(self) -> None:
        found: dict[int | None, list[Window]] = {}
        for summary in self.summaries:
            found.setdefault(summary.identity.rank, []).append(summary)
        msgspec.structs.force_setattr(self, "by_rank", found)

    @cached_property
    def gauges(self) -> GaugeTable:
        """What was sampled on all ranks, as matrices, with what their nodes tell of their devices."""
        return gauge_table(with_devices(self.summaries, self.nodes, self.users) if self.users else self.summaries)

    @cached_property
    def series(self) -> dict[str, Reports]:
        """Each rank's series, by their names in order."""
        return series_table(self.summaries)

    @cached_property
    def of_job(self) -> dict[str, Reports]:
        """The same with what is only known to be the job's, under ``NOBODY``; for whom nobody is named by it."""
        told = series_table([self.nobodys]) if self.nobodys is not None else {}
        return dict(sorted({**told, **self.series}.items())) if told else self.series

    def once(self, what: Hashable, view: object, find: Callable[[], T]) -> T:
        """What ``find`` finds out of the window and the attempt's view, found once however many ask for it."""
        known = self._found.get(what)
        if known is None or known[0] is not view:
            known = self._found[what] = (view, find())
        found: T = known[1]
        return found

    @cached_property
    def _found(self) -> dict[Hashable, tuple[object, Any]]:
        return {}

    def of(self, rank: int) -> list[Window]:
        """The rank's summaries in this window."""
        return self.by_rank.get(rank, [])
