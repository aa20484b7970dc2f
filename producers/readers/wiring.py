"""Which switch each node hangs under: Slurm's topology, labels of Kubernetes' nodes, rows ``{node, switch}``.

Sources: the manual pages of topology.conf and scontrol; labels that Kubernetes and NVIDIA's Topograph document. A path
has the uppermost switch first (``s0.leaf3``), as SLURM_TOPOLOGY_ADDR does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from producers.hostlists import MOST_NODES, nodes_of
from producers.inputs import Unused
from producers.jsonstream import head_of
from producers.lines import read_lines
from producers.rows import MOST_ARRAY_BYTES, Fields, parse, printable, values
from producers.scan import Source

MOST_LEVELS = 8
MOST_SWITCHES = 16_384
_SHARE = 50
_LONGEST = 65_536
_HEAD = 4_096
_SWITCH = re.compile(r"\s{0,40}SwitchName=(?P<name>[\w.:@+-]{1,120})(?=\s|$)", re.IGNORECASE)
_NODES = re.compile(r"\bNodes=(\S{1,60000})", re.IGNORECASE)
_BELOW = re.compile(r"\bSwitches=(\S{1,60000})", re.IGNORECASE)
_NODE_LIST = re.compile(r"\s*\{[^\x00]{0,2000}?\"kind\"\s*:\s*\"(?:Node|NodeList|List)\"")
_LEVELS = (
    "network.topology.nvidia.com/core",
    "network.topology.nvidia.com/datacenter",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/block",
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "topology.kubernetes.io/rack",
    "rack",
    "spine",
    "leaf",
    "switch",
)
"""Labels that tell a switch or what stands for one, the uppermost first."""
_TIER = re.compile(r"network\.topology\.nvidia\.com/tier-(\d)")
"""Tier 0 is the nearest to the node."""


class Wiring(msgspec.Struct, frozen=True):
    """The paths of nodes, by file and in order of its lines, and what could not be read."""

    file: str
    paths: list[tuple[int, str, str]]
    unused: list[Unused] = []


def fits(fields: Fields) -> bool:
    """Whether a row tells where a node hangs, and nothing else."""
    known = {"node", "hostname", "ts", "time", "cluster", "labels", "rack", "spine", "leaf", "switch"}
    told = isinstance(fields.get("switch"), str) or bool(_path_of(fields))
    return isinstance(fields.get("node"), str) and told and fields.keys() <= known


def recognised(source: Source, texts: Sequence[str]) -> bool:
    """Whether a file is Slurm's topology, or a list of Kubernetes' nodes. Raises OSError."""
    shown = [text for text in texts if text.strip() and not text.lstrip().startswith("#")]
    named = sum(_SWITCH.match(text) is not None for text in shown)
    if named and named * 100 >= _SHARE * len(shown):
        return True
    return _NODE_LIST.match(head_of(source.path, _HEAD)) is not None and bool(_listed(source))


def read(source: Source) -> Wiring:
    """The wiring that a file of text tells. Raises OSError."""
    listed = _listed(source) if _NODE_LIST.match(head_of(source.path, _HEAD)) else []
    if listed:
        return Wiring(source.file, listed)
    nodes: dict[str, tuple[int, str]] = {}
    above: dict[str, str] = {}
    for line in read_lines(source.path, _LONGEST):
        named = _SWITCH.match(line.text)
        if named is None or len(above) + len(nodes) > 4 * MOST_SWITCHES:
            continue
        name = named["name"]
        for node in _listed_in(_NODES, line.text) if _BELOW.search(line.text) is None else ():
            nodes[node] = line.number, name
        for switch in _listed_in(_BELOW, line.text):
            if switch != name:
                above.setdefault(switch, name)
    return Wiring(source.file, [(number, node, _path(leaf, above)) for node, (number, leaf) in nodes.items()])


def read_rows(source: Source) -> Wiring:
    """The wiring that rows tell. Raises OSError."""
    found: list[tuple[int, str, str]] = []
    unused: list[Unused] = []
    for number, value in values(source.path):
        if isinstance(value, ValueError):
            unused.append(Unused(source.file, number, str(value)))
        elif isinstance(value, dict) and fits(value) and len(found) < MOST_NODES:
            found.append((number, printable(value["node"]), _path_of(value)))
        else:
            unused.append(Unused(source.file, number, "not a row like the others of this file"))
    return Wiring(source.file, found, unused)


def _listed_in(pattern: re.Pattern[str], text: str) -> Iterable[str]:
    found = pattern.search(text)
    return nodes_of(found.group(1)) if found else ()


def _path(leaf: str, above: dict[str, str]) -> str:
    """A switch with all above it; a circle ends where it closes."""
    parts = [leaf]
    while (upper := above.get(parts[-1])) is not None and upper not in parts and len(parts) < MOST_LEVELS:
        parts.append(upper)
    return ".".join(_part(part) for part in reversed(parts))


def _path_of(fields: Fields) -> str:
    """The path that a row or labels tell: a path of its own, or the levels that are named."""
    labels = fields.get("labels")
    told = {**fields, **labels} if isinstance(labels, dict) else fields
    switch = told.get("switch")
    if isinstance(switch, str) and "." in switch:
        return ".".join(_part(part) for part in switch.split(".")[-MOST_LEVELS:] if part)
    tiers = sorted(((int(found[1]), key) for key in told if (found := _TIER.fullmatch(key))), reverse=True)
    levels = [*(key for _, key in tiers), *_LEVELS]
    parts = [_part(told[level]) for level in levels if isinstance(told.get(level), str) and told[level]]
    return ".".join(dict.fromkeys(parts[-MOST_LEVELS:]))


def _part(name: str) -> str:
    """A switch as a part of a path: a dot would end it."""
    return printable(name[:120]).replace(".", "_")


def _listed(source: Source) -> list[tuple[int, str, str]]:
    """Node and path of each node of Kubernetes in a file; empty where it is no list of those."""
    if source.size > MOST_ARRAY_BYTES:
        return []
    with source.path.open("rb") as file:
        raw = file.read(MOST_ARRAY_BYTES)
    try:
        value = parse(raw)
    except ValueError:
        return []
    return list(_of_nodes(value))[:MOST_NODES]


def _of_nodes(value: Any) -> Iterator[tuple[int, str, str]]:
    items = value.get("items", [value]) if isinstance(value, dict) else []
    for number, item in enumerate(items if isinstance(items, list) else [], 1):
        told = item.get("metadata") if isinstance(item, dict) and item.get("kind") == "Node" else None
        name, labels = (told.get("name"), told.get("labels")) if isinstance(told, dict) else (None, None)
        if isinstance(name, str) and isinstance(labels, dict) and (path := _path_of(labels)):
            yield number, printable(name), path
