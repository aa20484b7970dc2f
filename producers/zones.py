"""Nodes whose printed times lie whole quarters of an hour apart at the same iterations: their clocks show other zones.

Ranks that train together report an iteration within a step of each other, so where all iterations that two nodes
report lie apart by one and the same number of quarters, it is the zone that does. What most nodes print counts, of
equally many what lies nearest to the first time that needs no zone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from producers.inputs import Unused
from producers.logfile import LogFile
from producers.readers.torchrun import Place, said
from producers.times import SECOND
from producers.timing import printed_iterations

QUARTER = 900 * SECOND
WIDEST = 26 * 4
"""Zones lie at most so many quarters of an hour apart."""
NEAR = 10 * SECOND
"""Within so much of each other nodes report an iteration."""
LEAST = 5
"""Iterations that two nodes must both report."""
Logs = Sequence[tuple[Place, LogFile]]


def in_one_zone(ranks: Logs, anchor: int | None) -> tuple[list[tuple[Place, LogFile]], list[Unused]]:
    """The logs with their times in one zone for each attempt, and a note for each node whose ranks were set right.

    ``anchor`` (ns) is the first time of the recording that needs no zone, null if there is none.
    """
    attempts: dict[tuple[str, str], dict[str, dict[int, int]]] = defaultdict(dict)
    for place, log in ranks:
        nodes = attempts[place.run, place.attempt]
        if len(nodes.get(place.folder, ())) < LEAST:
            nodes[place.folder] = dict(printed_iterations(log))
    ahead: dict[tuple[str, str, str], int] = {}
    for attempt, nodes in sorted(attempts.items()):
        apart = _ahead(nodes, anchor)
        if any(apart.values()) and not _are_several([one for one in ranks if (one[0].run, one[0].attempt) == attempt]):
            ahead.update({(*attempt, folder): quarters for folder, quarters in apart.items()})
    moved = [(place, _earlier(log, ahead.get((place.run, place.attempt, place.folder), 0))) for place, log in ranks]
    told: dict[tuple[str, str, str], str] = {}
    for place, log in ranks:
        told.setdefault((place.run, place.attempt, place.folder), log.file)
    return moved, [Unused(told[key], 0, _said(quarters)) for key, quarters in ahead.items() if quarters]


def _are_several(ranks: Logs) -> bool:
    """Whether folders hold the same ranks: they are runs of one name, as of torchrun's default one, and no nodes."""
    held: dict[str, set[int]] = defaultdict(set)
    for place, log in ranks:
        rank = said([log]).rank
        held[place.folder].update([] if rank is None else [rank])
    return len(set[int]().union(*held.values())) < sum(map(len, held.values()))


def _ahead(nodes: dict[str, dict[int, int]], anchor: int | None) -> dict[str, int]:
    """By how many quarters of an hour nodes are ahead of what counts; none where only one of them can be compared."""
    told = {folder: times for folder, times in sorted(nodes.items()) if len(times) >= LEAST}
    if len(told) < 2:
        return {}
    first = next(iter(told.values()))
    quarters = {folder: apart for folder, times in told.items() if (apart := _apart(times, first)) is not None}
    if not any(quarters.values()):
        return {}
    counts = Counter(quarters.values())
    starts = {
        apart: min(min(told[folder].values()) for folder in quarters if quarters[folder] == apart) for apart in counts
    }
    right = min(counts, key=lambda apart: (-counts[apart], abs(starts[apart] - (anchor or starts[0])), apart))
    return {folder: apart - right for folder, apart in quarters.items()}


def _apart(times: dict[int, int], others: dict[int, int]) -> int | None:
    """By how many quarters of an hour all common iterations lie behind the others, null where they do not."""
    found = [time - others[iteration] for iteration, time in times.items() if iteration in others]
    if len(found) < LEAST:
        return None
    quarters = round(found[0] / QUARTER)
    if abs(quarters) > WIDEST or any(abs(one - quarters * QUARTER) > NEAR for one in found):
        return None
    return quarters


def _earlier(log: LogFile, quarters: int) -> LogFile:
    if not quarters:
        return log
    moments = [
        msgspec.structs.replace(moment, time=moment.time - quarters * QUARTER)
        if moment is not None and moment.source != "captured"
        else moment
        for moment in log.moments
    ]
    return msgspec.structs.replace(log, moments=moments, shifted=quarters * QUARTER)


def _said(quarters: int) -> str:
    hours, minutes = divmod(15 * abs(quarters), 60)
    amount = " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
    side = "ahead of" if quarters > 0 else "behind"
    what = "at the same iterations; taken for another zone and set right"
    return f"times of this node's ranks are {amount} {side} others' {what}"
