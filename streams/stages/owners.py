"""Whose the processes and devices of a node are, so that what the node says of them can be said of a rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.results import Fatal, Window
from streams.view import AttemptView

Owner = tuple[str, int]
"""Attempt and rank."""


def processes_of(views: Mapping[str, AttemptView], ranked: Mapping[str, list[Window]]) -> dict[tuple[str, int], Owner]:
    """Who runs under which process id, by node and id.

    Two that claim one id (containers) both lose it: nobody beats either.
    """
    found: dict[tuple[str, int], Owner] = {}
    contested = set()
    for place, owner in _claims(views, ranked):
        if found.setdefault(place, owner) != owner:
            contested.add(place)
    for place in contested:
        del found[place]
    return found


def _claims(
    views: Mapping[str, AttemptView], ranked: Mapping[str, list[Window]]
) -> Iterator[tuple[tuple[str, int], Owner]]:
    """Node and process id, and who runs under it by what was seen or said."""
    for name, view in views.items():
        for rank, member in view.members.items():
            pid = member.main_pid
            if pid is not None:
                yield (member.identity.node, pid), (name, rank)
    for name, rank, summary in _summaries(ranked):
        for pid, kind in summary.announced:
            if kind == "trainer":
                yield (summary.identity.node, pid), (name, rank)


def devices_of(
    views: Mapping[str, AttemptView], ranked: Mapping[str, list[Window]]
) -> dict[tuple[str, str, str], set[int]]:
    """Which ranks use which device, by attempt, node and PCI id: what their own lines told, else what they sampled.

    A line of a rank says what it computes on, a sample only what it can see. So who has told a device uses no other by
    sampling it, and what others sample of a device that somebody told is his. Who samples more than one device may do
    so for its whole node, and uses none by that.
    """
    told: dict[Owner, set[tuple[str, str]]] = {}
    sampled: dict[Owner, set[tuple[str, str]]] = {}
    for name, view in views.items():
        for rank, member in view.members.items():
            node = member.identity.node
            told.setdefault((name, rank), set()).update((node, device) for device in member.devices)
            sampled.setdefault((name, rank), set()).update((node, device) for device in member.sampled_devices)
    for name, rank, summary in _summaries(ranked):
        node = summary.identity.node
        told.setdefault((name, rank), set()).update((node, device) for device in summary.devices)
        sampled.setdefault((name, rank), set()).update((node, device) for device in summary.sampled_devices)
    found = _users(told)
    guessed = {
        owner: places
        for owner, places in sampled.items()
        if not told[owner] and len({device for _, device in places}) == 1
    }
    for place, ranks in _users(guessed).items():
        found.setdefault(place, ranks)
    return found


def _users(places_of: Mapping[Owner, set[tuple[str, str]]]) -> dict[tuple[str, str, str], set[int]]:
    """The ranks by attempt, node and device."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for (name, rank), places in places_of.items():
        for node, device in places:
            found.setdefault((name, node, device), set()).add(rank)
    return found


def _summaries(ranked: Mapping[str, list[Window]]) -> Iterator[tuple[str, int, Window]]:
    for name, summaries in ranked.items():
        for summary in summaries:
            if summary.identity.rank is not None:
                yield name, summary.identity.rank, summary


def rank_of(
    attempt: str,
    node: str,
    fatal: Fatal,
    processes: Mapping[tuple[str, int], Owner],
    devices: Mapping[tuple[str, str, str], set[int]],
) -> int | None:
    """The rank whose process or GPU a line of its node speaks of, null where none, several or different ones do.

    What a program did wrong is that of the process that the line names, whoever else uses the GPU.
    """
    pid, device = fatal.values.get("pid"), fatal.values.get("pci")
    owner = processes.get((node, int(pid))) if pid and node else None
    by_pid = {owner[1]} if owner is not None and owner[0] == attempt else set()
    by_device = devices.get((attempt, node, device), set()) if device and node else set()
    if owner is not None or (pid and fatal.area == "code"):
        agreed = by_pid if not by_device or by_pid <= by_device else set()
    else:
        agreed = by_device
    return next(iter(agreed)) if len(agreed) == 1 else None


def users_of(attempt: str, devices: Mapping[tuple[str, str, str], set[int]]) -> dict[tuple[str, str], int]:
    """The rank that alone is known to use a device, by node and PCI id."""
    return {
        (node, device): next(iter(ranks))
        for (name, node, device), ranks in devices.items()
        if name == attempt and len(ranks) == 1
    }
