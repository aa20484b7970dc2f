"""Which of the platform's alarms are handed to which attempt of a job, by the nodes that it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.results import PlatformAlert

Placed = tuple[str, PlatformAlert]
"""An alarm and the node that it is of, empty for one of a switch or a storage."""

MOST_REMEMBERED = 256


def remembered(known: Sequence[Placed], told: Sequence[Placed], oldest: int) -> list[Placed]:
    """What is remembered of a job's alarms, in order of time: the latest, those from ``oldest`` on or still firing.

    A node may be told of before anybody is known to run on it, and what fires may outlast an attempt.
    """
    if not known and not told:
        return []
    over = {_name(node, one) for node, one in (*known, *told) if one.status == "resolved"}
    kept = [
        (node, one)
        for node, one in (*known, *told)
        if one.time >= oldest or (one.status == "firing" and _name(node, one) not in over)
    ]
    return sorted(kept, key=lambda placed: (placed[1].time, placed[0], placed[1].name, placed[1].text))[
        -MOST_REMEMBERED:
    ]


def of_places(known: Sequence[Placed], places: set[str] | None) -> list[Placed]:
    """The alarms of these nodes, with those of switches and storage; all where the nodes are not known."""
    return [placed for placed in known if places is None or placed[0] in places]


def switches_of(told: Sequence[tuple[str, str]], known: Mapping[str, str], most: int) -> dict[str, str]:
    """The switch of each node that tells one, the latest word counts; of no more than ``most`` nodes."""
    if not told:
        return dict(known)
    found = {**known, **dict(told)}
    return {node: found[node] for node in sorted(found)[:most]}


def of_nodes(switches: Mapping[str, str], places: set[str] | None) -> dict[str, str]:
    """The switches of these nodes; of all where the nodes are not known."""
    return {node: switch for node, switch in switches.items() if places is None or node in places}


def _name(node: str, alert: PlatformAlert) -> tuple[object, ...]:
    return node, alert.name, alert.device, alert.switch, alert.storage, alert.since
