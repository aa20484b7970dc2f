"""Collectives out of flight-recorder dumps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from producers.captures import Captures
from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.readers.dumps import Dump, Group, Status, created, integer, text
from producers.rows import Fields, Row
from schemas.events import Collective, TimeSource
from schemas.identity import rank_ranges
from schemas.ids import stable_id

_KEPT = 50
_MOST_KEPT = 200
_LONGEST_RANKS = 60
_LONGEST_TIMEOUT_MS = 86_400_000
_TRAILING_NUMBER = re.compile(r"(\d{1,9})\D{0,8}$")
_PAIR = re.compile(r"(?:->|<-)(\d{1,7})$")
State = Literal["enqueued", "started", "completed"]
Shared = tuple[str, tuple[int, ...]]


def notes(dump: Dump) -> list[Unused]:
    """What of the dump could not be read."""
    found = [Unused(dump.file, 0, "entries without a sequence number", dump.skipped)] if dump.skipped else []
    if dump.entries and not any(created(entry) for entry in dump.entries):
        found.append(Unused(dump.file, 0, "no entry has a time; used only if a table gives the capture time"))
    return found


class _Capture(msgspec.Struct, frozen=True):
    """Whose a dump is and when it was taken (ns), null where a table does not say it."""

    rank: int | None
    time: int | None


class _Beside(msgspec.Struct):
    """What the dumps of one folder, which were taken of one job at about one time, say together.

    ``numbered`` are the groups that go by a number at any of their ranks, ``sending`` those in which some send to one
    another: there a count is each pair's own. ``time`` is when such a dump was taken where no table says it: a rank
    dumps when what waits longest has run into its timeout, and not before the last that any of them shows.
    """

    numbered: dict[str, set[Shared]] = msgspec.field(default_factory=lambda: defaultdict(set))
    sending: set[Shared] = msgspec.field(default_factory=set)
    expires: int | None = None
    latest: int = 0

    @property
    def time(self) -> int:
        return max(self.expires or 0, self.latest)

    def learn(self, dump: Dump) -> None:
        """Take in one of the folder's dumps."""
        for number, group in dump.numbers.items():
            self.numbered[number].add(group.shared)
        for entry in dump.entries:
            if entry.get("is_p2p") is True:
                self.sending.add(dump.group_of(entry).shared)
            began = created(entry)
            self.latest = max(self.latest, began)
            timeout = integer(entry.get("timeout_ms")) or 0
            if began and 0 < timeout <= _LONGEST_TIMEOUT_MS and _state(entry) != "completed":
                expires = began + timeout * 1_000_000
                self.expires = min(expires, self.expires or expires)


def observe(dumps: Sequence[Dump], captures: Captures, owners: Owners) -> Iterable[Observation]:
    """The last operations of every group, all that are not completed, and how far the rank had come in each group.

    All is observed when the dump was captured.
    """
    folders: dict[str, _Beside] = defaultdict(_Beside)
    for dump in dumps:
        folders[_folder(dump.file)].learn(dump)
    for dump in dumps:
        yield from _observe(dump, folders[_folder(dump.file)], captures, owners)


def _observe(dump: Dump, beside: _Beside, captures: Captures, owners: Owners) -> Iterable[Observation]:
    capture = _capture(dump.file, captures.of(dump.file))
    time = capture.time or beside.time
    if not time:
        return
    source: TimeSource = "captured" if capture.time else "inferred"
    identity = owners.of_rank(dump.file, capture.rank, time)
    events = [
        *(_event(entry, dump.group_of(entry), time, source) for entry in _kept(dump)),
        *_told(dump, capture.rank, beside, time, source),
    ]
    for place, event in enumerate(events):
        yield Observation(identity, time, event, dump.file, place)


def _told(dump: Dump, rank: int | None, beside: _Beside, time: int, source: TimeSource) -> Iterable[Collective]:
    """What the statuses say: entries may show only what is not completed, or no operation of a group at all."""
    for number, status in dump.statuses.items():
        group = _numbered(dump, number, rank, beside)
        if group is not None and group.shared not in beside.sending:
            yield from _status(status, group, time, source)


def _numbered(dump: Dump, number: str, rank: int | None, beside: _Beside) -> Group | None:
    """Which group a number means, by the peers of the rank that go by it; null where they do not agree."""
    known = dump.numbers.get(number)
    if known is not None:
        return known
    own = {group.shared: group for group in dump.groups.values()}
    peers = [own[shared] for shared in beside.numbered.get(number, ()) if shared in own and rank in shared[1]]
    return peers[0] if len(peers) == 1 else None


def _status(status: Status, group: Group, time: int, source: TimeSource) -> Iterable[Collective]:
    # Numbers begin with 1: a completed 0 says that the rank has begun nothing.
    reached: list[tuple[int, State]] = [(max(status.completed, 0), "completed")]
    if status.enqueued > status.completed:
        reached.append((status.enqueued, "enqueued"))
    for sequence, state in reached:
        yield Collective(
            time=time,
            time_source=source,
            group=_name(group),
            ranks=list(group.ranks),
            sequence=sequence,
            operation="",
            state=state,
        )


def _capture(file: str, rows: Sequence[Row]) -> _Capture:
    """A table speaks of the files beside and below it, the nearest one counts; the rank ends the file's name else."""
    name = file.rpartition("/")[2]
    trailing = _TRAILING_NUMBER.search(name)
    rank = int(trailing.group(1)) if trailing else None
    best: int | None = None
    for row in rows:
        stated = row.integer("rank")
        rank = rank if stated is None else stated
        best = row.time if best is None else max(best, row.time)
    return _Capture(rank, best)


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _name(group: Group) -> str:
    """A group's name, the same at all its ranks: a rank's own number for it only where its members are not known."""
    if not group.ranks:
        return f"{group.name}:{group.description}"
    ranks = rank_ranges(group.ranks)
    if len(ranks) > _LONGEST_RANKS:
        ranks = f"{len(group.ranks)} ranks from {min(group.ranks)}, {stable_id(ranks)[:6]}"
    return f"{group.description or group.name}:{ranks}"


def _kept(dump: Dump) -> list[Fields]:
    groups: dict[Group, list[Fields]] = defaultdict(list)
    for entry in dump.entries:
        groups[dump.group_of(entry)].append(entry)
    kept: list[Fields] = []
    for _, own in sorted(groups.items(), key=lambda item: item[0]):
        first = len(own) - _KEPT
        chosen = [entry for at, entry in enumerate(own) if at >= first or _state(entry) != "completed"]
        kept.extend(chosen[-_MOST_KEPT:])
    return kept


def _state(entry: Fields) -> State:
    if entry.get("retired") is True or entry.get("time_discovered_completed_ns") or entry.get("state") == "completed":
        return "completed"
    return "started" if entry.get("state") == "started" else "enqueued"


def _sizes(value: object) -> list[list[int]]:
    rows = value if isinstance(value, list | tuple) else []
    return [
        [size for size in row if isinstance(size, int) and 0 <= size < 2**62]
        for row in rows
        if isinstance(row, list | tuple)
    ]


def _event(entry: Fields, group: Group, time: int, source: TimeSource) -> Collective:
    dtypes = entry.get("input_dtypes")
    point_to_point = entry.get("is_p2p") is True
    sequence = integer(entry.get("p2p_seq_id")) if point_to_point else None
    library, _, operation = text(entry.get("profiling_name")).rpartition(":")
    return Collective(
        time=time,
        time_source=source,
        group=_name(group),
        ranks=list(group.ranks),
        sequence=max(integer(entry["collective_seq_id"]) or 0, 0) if sequence is None else max(sequence, 0),
        operation=operation,
        library=library,
        state=_state(entry),
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        dtype=text(dtypes[0]) if isinstance(dtypes, list | tuple) and dtypes else "",
        created=created(entry),
        point_to_point=point_to_point,
        duration=_duration(entry.get("duration_ms")),
        peer=_peer(entry, group) if point_to_point else None,
    )


def _duration(value: object) -> int:
    """How long an operation took (ns), where the recorder was told to time them; 0 where it was not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_TIMEOUT_MS:
        return 0
    return round(value * 1_000_000)


def _peer(entry: Fields, group: Group) -> int | None:
    """The rank that an operation sends to or receives from; its name has the places of both in the group."""
    found = _PAIR.search(text(entry.get("profiling_name")))
    place = int(found.group(1)) if found else len(group.ranks)
    return group.ranks[place] if place < len(group.ranks) else None
