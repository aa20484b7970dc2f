"""How far a rank has come in each group by what its watchdog prints, as the states that a dump would give."""

from __future__ import annotations

import msgspec

from schemas.identity import Identity
from schemas.results import CollectiveState
from streams.lines.watchdog import SENDING, Group, GroupProgress, told_in

MOST_GROUPS = 64
_MS = 1_000_000


class _Seen(msgspec.Struct):
    """What the lines of one group have told so far."""

    group: Group
    time: int
    enqueued: int | None = None
    completed: int = -1
    failed: int = -1
    work: tuple[str, str, int] = ("", "", 0)


class Watched:
    """Takes a worker's lines in order of time; ``left_out`` counts those of further groups than there is room for.

    A line that names the operation and no group is of the one whose failure at that number is told next; of many the
    last ones wait for that, and ``operations_left_out`` counts the others.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.operations_left_out = 0
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._loose: dict[int, tuple[str, str, int]] = {}

    def take(self, text: str, time: int) -> None:
        """Take in a line that may tell of a group."""
        told = told_in(text)
        if told is None:
            return
        work = (told.operation, told.size, time - told.waited_ms * _MS if told.waited_ms else 0)
        if told.group is None:
            if told.operation:
                self._wait_for_group(told.failed, work)
            return
        key = (told.group.number, told.group.about)
        if key not in self._seen and len(self._seen) >= MOST_GROUPS:
            self.left_out += 1
            return
        seen = self._seen.setdefault(key, _Seen(told.group, time))
        seen.time = time
        self._learn(seen, told, work)

    def _wait_for_group(self, number: int, work: tuple[str, str, int]) -> None:
        self._loose.pop(number, None)
        self._loose[number] = work
        if len(self._loose) > MOST_GROUPS:
            del self._loose[next(iter(self._loose))]
            self.operations_left_out += 1

    def _learn(self, seen: _Seen, told: GroupProgress, work: tuple[str, str, int]) -> None:
        if told.enqueued is not None:
            seen.enqueued, seen.completed = told.enqueued, told.completed
        if told.failed >= 0:
            if seen.failed < 0 or told.failed < seen.failed:
                seen.failed, seen.work = told.failed, ("", "", 0)
            known = work if told.operation else self._loose.get(told.failed)
            if known is not None and told.failed == seen.failed:
                seen.work = known

    def states(self, identity: Identity) -> list[CollectiveState]:
        """The states of all groups whose counts were told, by name."""
        found = [_state(seen, identity) for seen in self._seen.values() if seen.enqueued is not None]
        return sorted(found, key=lambda one: one.group)


def _state(seen: _Seen, identity: Identity) -> CollectiveState:
    enqueued = -1 if seen.enqueued is None else seen.enqueued
    outstanding = enqueued > seen.completed
    # Numbers begin at 1; -1 is what a group says of which nothing was completed yet.
    oldest = min(max(seen.completed, 0) + 1, enqueued) if outstanding else -1
    operation, size, since = seen.work
    failed = outstanding and seen.completed < seen.failed <= enqueued
    return CollectiveState(
        group=_name(seen.group, identity, operation),
        captured=seen.time,
        ranks=[],
        last_enqueued=enqueued,
        last_completed=seen.completed,
        operation="",
        enqueued_at=0,
        outstanding=outstanding,
        oldest=seen.failed if failed else oldest,
        oldest_operation=operation if failed else "",
        oldest_shape=size if failed else "",
        oldest_at=since if failed else 0,
        printed=True,
    )


def _name(group: Group, identity: Identity, operation: str) -> str:
    """The group's name, the same at all ranks only for the default group; never one that a dump would give it.

    A place there that is not the rank says that it is the default group of some ranks only.
    """
    if group.default and group.place == identity.rank and operation not in SENDING:
        return f"{identity.group or 'default_pg'} as printed"
    return f"{group.number}({group.about}) as printed by rank {identity.rank}"
