"""Copies of what the kernel tells of InfiniBand and RoCE ports: ``…/infiniband/<device>/ports/<n>/<file>``.

Source: the kernel's Documentation/ABI/stable/sysfs-class-infiniband. A file holds one value: ``state`` (``4: ACTIVE``),
``phys_state`` (``5: LinkUp``), ``rate`` (``400 Gb/sec (4X NDR)``), and one file a counter below ``counters`` and
``hw_counters``; what else lies there (addresses, keys, firmware) measures nothing. The part of the path before
``sys/class/infiniband`` may name the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from producers.inputs import Unused
from producers.measured import Measured, Sample
from producers.samples import told_time
from producers.scan import Source
from schemas.measures import KERNELS_PORT

_PLACE = re.compile(
    r"(?:(?P<before>.{1,2000})/)?infiniband/(?P<device>[\w.-]{1,64})/ports/(?P<port>\d{1,4})/"
    r"(?:(?P<state>state|phys_state|rate|link_layer)|(?:hw_)?counters/(?P<counter>[a-z]\w{0,80}))"
)
_BESIDE = re.compile(
    r"(?:(?P<before>.{1,2000})/)?infiniband/(?P<device>[\w.-]{1,64})/"
    r"(?:ports/\d{1,4}/[\w./-]{1,200}|board_id|fw_ver|hca_type|hw_rev|node_(?:desc|guid|type)|sys_image_guid)"
)
_TREE = re.compile(r"(?:.{1,2000}/)?infiniband(?=/[\w.-]{1,64}/ports/)")
_ABOVE = re.compile(r"(?:^|/)(?:sys|class|devices|pci[0-9a-f:.]+|[0-9a-f]{4}:[0-9a-f:.]+)(?=/|$)")
_WHOLE = re.compile(r"\s{0,8}(\d{1,20})\s{0,8}")
_STATE = re.compile(r"\s{0,8}(\d{1,4}): [A-Za-z_ ]{1,40}\s{0,8}")
_RATE = re.compile(r"\s{0,8}(\d{1,6}(?:\.\d{1,3})?) Gb/sec\b[^\n]{0,80}\s{0,8}")
_MEASURE_NOTHING = frozenset({"", "link_layer", "lifespan"})
MOST_BYTES = 4_096


class Place(msgspec.Struct, frozen=True):
    """What the path of a file says; ``name`` is empty where it measures nothing."""

    before: str
    device: str
    name: str
    counter: bool


def place(source: Source) -> Place | None:
    """What the path says, null where it is none of a port's."""
    found = _PLACE.fullmatch(source.file)
    if found is None:
        other = _BESIDE.fullmatch(source.file)
        return Place(other["before"] or "", other["device"], "", counter=False) if other else None
    name = found["state"] or found["counter"]
    return Place(found["before"] or "", f"{found['device']}:{found['port']}", name, found["state"] is None)


def read(source: Source, where: Place) -> Measured:
    """The value of a file; one without a value says why. Raises OSError."""
    named = _named(where.before)
    if where.name in _MEASURE_NOTHING:
        return Measured(source.file, [], [], named)
    with source.path.open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8", "replace")
    pattern = _WHOLE if where.counter else _RATE if where.name == "rate" else _STATE
    found = pattern.fullmatch(text)
    if found is None:
        return Measured(source.file, [], [Unused(source.file, 1, "not the value of a port")], named)
    name = f"{KERNELS_PORT}{where.name}"
    sample = Sample(1, None, "", where.device, name, float(found.group(1)), counter=where.counter)
    return Measured(source.file, [sample], [], named)


def _named(before: str) -> str:
    """The folders above the kernel's own that are no times; where several nodes' copies lie, one is a node's name."""
    parts = [part for part in _ABOVE.sub("", before).split("/") if part and told_time(f"{part}/x") is None]
    return "/".join([*parts, "infiniband"])


def as_trees(measured: Iterable[Measured]) -> list[Measured]:
    """The values of ports put together, one for each folder ``infiniband``: a copy is taken at once, of one node."""
    trees: dict[str, list[Measured]] = {}
    others = []
    for one in measured:
        found = _TREE.match(one.file)
        if found is not None and one.folders:
            trees.setdefault(found.group(), []).append(one)
        else:
            others.append(one)
    return others + [_tree(file, found) for file, found in trees.items()]


def _tree(file: str, found: list[Measured]) -> Measured:
    samples = [sample for one in found for sample in one.samples]
    numbered = [msgspec.structs.replace(sample, line=number) for number, sample in enumerate(samples, 1)]
    return Measured(file, numbered, [note for one in found for note in one.unused], found[0].folders)
