"""Gauges of devices as those of the ranks that use them: what a node tells of a GPU is compared like a rank's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.results import Gauge, Window, gauges_of
from streams.lines.devices import pci_of

_NO_AMOUNTS = frozenset({"bits", "code", "state"})
"""Units of what is no amount: a code is neither more nor less than another."""


def with_devices(
    summaries: Sequence[Window], nodes: Sequence[Window], users: Mapping[tuple[str, str], int]
) -> list[Window]:
    """The summaries of ranks, with the gauges that nodes tell of devices which one rank alone is known to use.

    ``users`` is that rank by node and PCI id. Of what a rank tells itself nothing is replaced, and a rank of which
    nothing is heard in this window has nothing to be compared.
    """
    found: dict[int, list[Gauge]] = {}
    for node in nodes:
        owners = _owners(node, users)
        if not owners:
            continue
        for gauge in node.measured:
            rank = owners.get(gauge.device or "")
            if rank is not None and gauge.unit not in _NO_AMOUNTS:
                found.setdefault(rank, []).append(gauge)
    return [
        _with(summary, found.get(rank) if (rank := summary.identity.rank) is not None else None)
        for summary in summaries
    ]


def without_devices(nodes: Sequence[Window], users: Mapping[tuple[str, str], int]) -> list[Window]:
    """What is left of the nodes' gauges: amounts of what no one rank is known to use."""
    found = []
    for node in nodes:
        owners = _owners(node, users)
        kept = [one for one in node.measured if one.unit not in _NO_AMOUNTS and (one.device or "") not in owners]
        found.append(msgspec.structs.replace(node, gauge_columns=gauges_of(kept), gauges=[]))
    return found


def _owners(node: Window, users: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """The rank that uses a device, by its name, where one alone is known to."""
    owners = {device: users.get((node.identity.node, pci_of(device))) for device in set(node.measured.devices)}
    return {device: rank for device, rank in owners.items() if rank is not None}


def _with(summary: Window, more: list[Gauge] | None) -> Window:
    if not more:
        return summary
    return msgspec.structs.replace(summary, gauge_columns=gauges_of([*more, *summary.measured]), gauges=[])
