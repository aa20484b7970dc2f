"""Which storage the lines of a node complain of, by the name that its client gives to it.

Sources: names of Lustre targets (``<file system>-OST<number>`` and ``-MDT``), Storage Scale and NFS messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.fleet import StorageComplaint
from schemas.results import Window
from streams.lines.predefined import spoken_line

_KINDS = {
    "lustre.evicted": "Lustre {}",
    "lustre.connection_lost": "Lustre {}",
    "gpfs.membership_lost": "GPFS cluster {}",
    "nfs.not_responding": "NFS server {}",
}
"""Templates that say that storage is gone and name it."""
_LUSTRE_TARGET = re.compile(r"(?P<name>\S{1,40}?)-(?:OST|MDT)[0-9a-f]{4}")
MOST_OF_A_WINDOW = 256


def storage_of(template: str, target: str) -> str:
    """The storage that a line of a predefined template names by ``target``; empty where it is no name of one.

    >>> storage_of("lustre.connection_lost", "scratch-OST0003-osc-ffff9e0c1a2b"), storage_of("nfs.responding", "nas1")
    ('Lustre scratch', '')
    """
    kind = _KINDS.get(template)
    if kind is None or not target:
        return ""
    if template.startswith("lustre."):
        named = _LUSTRE_TARGET.match(target)
        return kind.format(named["name"]) if named else ""
    return kind.format(target.strip("'\""))


def complaints_of(summaries: Iterable[Window]) -> list[StorageComplaint]:
    """What the nodes' own lines complain of in a window, each storage once a node, in canonical order."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for summary in summaries:
        if summary.identity.rank is not None or not summary.identity.node:
            continue
        for line in summary.signatures:
            if line.predefined not in _KINDS:
                continue
            spoken = spoken_line(line.example)
            storage = storage_of(line.predefined, spoken.values.get("target", "")) if spoken else ""
            if storage:
                key = (storage, summary.identity.node)
                first, last = spans.get(key, (line.first, line.last))
                spans[key] = min(first, line.first), max(last, line.last)
    return [
        StorageComplaint(storage=storage, node=node, first=first, last=last)
        for (storage, node), (first, last) in sorted(spans.items())[:MOST_OF_A_WINDOW]
    ]
