"""Gauges of devices as those of the ranks that use them: what a node tells of a GPU is compared like a rank's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec

from schemas.results import Gauges, Window
from streams.lines.devices import pci_of

Words = tuple[str, ...]
Taker = Callable[[Sequence[Any]], tuple[Any, ...]]
Merged = tuple[list[str], list[str], Taker]
"""Names and devices in order, and what takes the rows in that order."""
_OTHERS = tuple(name for name in Gauges.__struct_fields__ if name not in ("names", "devices"))
_NO_AMOUNTS = frozenset({"bits", "code", "state"})
"""Units of what is no amount: a code is neither more nor less than another."""


def with_devices(
    summaries: Sequence[Window], nodes: Sequence[Window], users: Mapping[tuple[str, str], int]
) -> list[Window]:
    """The summaries of ranks, with the gauges that nodes tell of devices which one rank alone is known to use.

    ``users`` is that rank by node and PCI id. Of what a rank tells itself nothing is replaced, and a rank of which
    nothing is heard in this window has nothing to be compared.
    """
    found: dict[int, list[tuple[Gauges, Taker]]] = {}
    for node in nodes:
        owners = _owners(node, users)
        if owners:
            measured = node.measured
            for rank, rows in _rows_of(measured, owners).items():
                found.setdefault(rank, []).append((measured, _taker(rows)))
    merged: dict[tuple[Words, Words], Merged] = {}
    given = []
    for summary in summaries:
        told = [] if summary.identity.rank is None else found.get(summary.identity.rank, [])
        columns = _merged(told, summary.measured, merged) if told else None
        given.append(
            msgspec.structs.replace(summary, gauge_columns=columns, gauges=[], gauge_pack=None) if columns else summary
        )
    return given


def without_devices(nodes: Sequence[Window], users: Mapping[tuple[str, str], int]) -> list[Window]:
    """What is left of the nodes' gauges: amounts of what no one rank is known to use."""
    found = []
    for node in nodes:
        owners, measured = _owners(node, users), node.measured
        rows = [
            at
            for at, (device, unit) in enumerate(zip(measured.devices, measured.units, strict=True))
            if unit not in _NO_AMOUNTS and device not in owners
        ]
        kept = Gauges(**{name: [getattr(measured, name)[at] for at in rows] for name in Gauges.__struct_fields__})
        found.append(msgspec.structs.replace(node, gauge_columns=kept, gauges=[], gauge_pack=None))
    return found


def _owners(node: Window, users: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """The rank that uses a device, by its name, where one alone is known to."""
    owners = {device: users.get((node.identity.node, pci_of(device))) for device in set(node.measured.devices)}
    return {device: rank for device, rank in owners.items() if rank is not None}


def _rows_of(measured: Gauges, owners: Mapping[str, int]) -> dict[int, list[int]]:
    """Where the amounts stand that are a rank's, by rank."""
    found: dict[int, list[int]] = {}
    for at, (device, unit) in enumerate(zip(measured.devices, measured.units, strict=True)):
        if device in owners and unit not in _NO_AMOUNTS:
            found.setdefault(owners[device], []).append(at)
    return found


def _merged(told: Sequence[tuple[Gauges, Taker]], own: Gauges, merged: dict[tuple[Words, Words], Merged]) -> Gauges:
    """The rows that nodes tell and a rank's own, sorted; of those of one name and device the last counts.

    Most ranks are told the same of devices that are called the same, so ``merged`` keeps where each row goes.
    """

    def column(name: str) -> Words:
        parts = [take(getattr(source, name)) for source, take in told]
        return tuple(chain(*parts, getattr(own, name)))

    key = column("names"), column("devices")
    if key not in merged:
        place = {pair: at for at, pair in enumerate(zip(*key, strict=True))}
        pairs = sorted(place)
        order = _taker([place[pair] for pair in pairs])
        merged[key] = [name for name, _ in pairs], [device for _, device in pairs], order
    names, devices, take = merged[key]
    others: dict[str, Any] = {name: take(column(name)) for name in _OTHERS}
    return Gauges(names=names, devices=devices, **others)


def _taker(rows: Sequence[int]) -> Taker:
    """Takes these rows out of a column; one of ten thousand ranks may not cost a loop."""
    return itemgetter(*rows) if len(rows) > 1 else lambda column: tuple(column[at] for at in rows)
