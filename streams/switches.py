"""Switches of a cluster as paths, the uppermost first (``s0.leaf3``): which nodes hang under which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LONGEST = 256


def parts_of(path: str) -> list[str]:
    """The switches of a path, the uppermost first."""
    return [part for part in path.split(".") if part]


def above(path: str) -> list[str]:
    """The paths of all switches of a path, the uppermost first.

    >>> above("s0.leaf3")
    ['s0', 's0.leaf3']
    """
    parts = parts_of(path)
    return [".".join(parts[: number + 1]) for number in range(len(parts))]


def path_of_address(address: str) -> str:
    """The switches in SLURM_TOPOLOGY_ADDR, ``s0.leaf3.node042``: all but the node at its end."""
    return ".".join(parts_of(address[:LONGEST])[:-1])


def under(path: str, switch: str) -> bool:
    """Whether what has this path hangs under a switch, told by its name or by its path."""
    parts, told = parts_of(path), parts_of(switch)
    if not parts or not told:
        return False
    return switch in parts or any(parts[at : at + len(told)] == told for at in range(len(parts)))


def shared(paths: Iterable[str]) -> str:
    """The path of the lowest switch above all of these; empty where there is none, or one of them is not known."""
    listed = [parts_of(path) for path in paths]
    if not listed:
        return ""
    common = []
    for level in zip(*listed, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return ".".join(common)


def only_under(switches: Mapping[str, str], nodes: Iterable[str], among: Iterable[str]) -> str:
    """The lowest switch above all these nodes, where others ``among`` whom they are do not hang under it; else empty.

    All nodes of a job under one switch tell nothing of the switch, nor do fewer than two nodes, nor those of which the
    switch of only some is known.
    """
    told = sorted(set(nodes))
    others = sorted(set(among) - set(told))
    if len(told) < 2 or not others or not all(switches.get(node) for node in (*told, *others)):
        return ""
    path = shared(switches[node] for node in told)
    if not path or any(_hangs(switches[node], path) for node in others):
        return ""
    return path


def _hangs(path: str, above: str) -> bool:
    own, told = parts_of(path), parts_of(above)
    return own[: len(told)] == told
