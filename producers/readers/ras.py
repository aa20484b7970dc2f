"""Reports of NCCL's RAS service, as ``ncclras`` prints them: how many operations each rank of a communicator launched.

Source: NCCL's src/ras/client_support.cc, as JSON and as text. Text tells counts only where they differ, and names only
the few ranks whose count is rare. Of collectives the counts of all kinds together are the place in the order of the
program; sends and receives are left out. Whether anything launched is completed is not told. A rank is told by its
place in the communicator, the process and the address of its node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from producers.captures import Captures
from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.rows import Fields, printable
from producers.scan import Source
from producers.times import dated, possible
from schemas.events import Collective, TimeSource
from schemas.identity import MOST_RANKS, rank_ranges, shortened

MOST_BYTES = 64 * 1024 * 1024
MOST_REPORTS = 1_000
MOST_COUNTS = 1 << 19
"""Of a text, by communicator, kind and rank: a line of it may stand for as many ranks as a communicator has."""
MOST_SAID = 200
UNTIMED = "nothing tells when NCCL's RAS was asked; a table {file, captured} would"
_JSON = '"communicators_count"'
_TEXT = "Communicators..."
_BETWEEN_SOME = frozenset({"Send", "Recv", "SendRecv"})

_GROUP = re.compile(r" {0,20}(\d{1,9}) {1,20}\d{1,9} {1,20}\d{1,9} {1,20}[\d-]{1,20} {1,20}(\d{1,9}) ")
_HEAD = re.compile(r"#(?P<group>\d{1,9})-\d{1,9} \((?P<id>[0-9a-f]{1,16})\) (?P<error>[A-Z]{1,20})")
_KIND = re.compile(r" {2}Communicator ranks have different (\w{1,40}) operation counts")
_COUNT = re.compile(r" {2}(\d{1,9}) ranks have (?:launched up to operation (\d{1,18})|not launched any operations)")
_MEMBER = re.compile(
    r" {2}Rank (?P<place>\d{1,9})"
    r"(?P<own> has (?:launched up to operation (?P<count>\d{1,18})|not launched any operations))? -- "
    r"(?:GPU [^\n]{1,100}? managed by process (?P<pid>\d{1,10}) on node (?P<host>\S{1,100}))?"
)


class Member(msgspec.Struct, frozen=True):
    """A rank of a communicator: how many collectives it has launched, and its process, as far as it is told."""

    count: int
    host: str = ""
    pid: int = 0


class Communicator(msgspec.Struct, frozen=True):
    """A communicator: its ``members`` by place, and the places of those that gave no answer."""

    id: str
    size: int
    members: dict[int, Member]
    missing: list[int] = []


class Report(msgspec.Struct, frozen=True):
    """One answer of the service; ``time`` (ns) as it states it, by the clock of its node and taken for UTC."""

    communicators: list[Communicator]
    time: int | None = None


class Reports(msgspec.Struct, frozen=True):
    """The reports of a file and what could not be read."""

    file: str
    reports: list[Report]
    unused: list[Unused] = []


def read(source: Source, texts: Sequence[str]) -> Reports | None:
    """The reports of a file, null if its first lines show something else. Raises OSError."""
    head = texts[:40]
    is_json = any(_JSON in text for text in head)
    if not is_json and not any(text.startswith(_TEXT) for text in head):
        return None
    if source.size > MOST_BYTES:
        reason = f"reports of NCCL's RAS of {source.size} bytes, more than {MOST_BYTES}; left aside"
        return Reports(source.file, [], [Unused(source.file, 0, reason)])
    text = source.path.read_bytes().decode("utf-8", "replace")
    if not is_json:
        report, left_out = _of_text(text)
        beyond = f"{left_out} communicators of a report of NCCL's RAS beyond {MOST_COUNTS} counts of ranks; left aside"
        return Reports(source.file, [report], [Unused(source.file, 0, beyond)] if left_out else [])
    reports, broken = _of_json(text)
    return Reports(source.file, reports, [Unused(source.file, 0, "invalid JSON")] if broken else [])


def _of_json(text: str) -> tuple[list[Report], bool]:
    """The reports, one object behind the other, and whether what follows them is broken."""
    decoder, at, found = json.JSONDecoder(), text.find("{"), list[Report]()
    while at >= 0 and len(found) < MOST_REPORTS:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, True
        listed = value.get("communicators") if isinstance(value, dict) else None
        if isinstance(listed, list):
            moment = dated(str(value.get("timestamp"))[:40])
            time = moment.time if moment and possible(moment.time) else None
            found.append(Report([one for part in listed if (one := _communicator(part))], time))
        at = text.find("{", end)
    return found, False


def _communicator(value: Any) -> Communicator | None:
    if not isinstance(value, dict):
        return None
    members: dict[int, Member] = {}
    for one in _objects(value.get("ranks")):
        place, counts = _whole(one.get("rank")), one.get("collective_counts")
        if place is None or not isinstance(counts, dict):
            continue
        launched = [_whole(count) or 0 for kind, count in counts.items() if kind not in _BETWEEN_SOME]
        members[place] = Member(min(sum(launched), 2**62), _text(one.get("host")), _whole(one.get("pid")) or 0)
    missing = sorted(
        place for one in _objects(value.get("missing_ranks")) if (place := _whole(one.get("rank"))) is not None
    )
    size = _whole(value.get("size"))
    return (
        None if size is None or size >= MOST_RANKS else Communicator(_text(value.get("hash")), size, members, missing)
    )


def _objects(value: Any) -> list[Fields]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None


def _text(value: Any) -> str:
    return printable(value[:100]) if isinstance(value, str) else ""


class _Kind(msgspec.Struct):
    """Counts of one kind of operation: those of ranks by place, and how many ranks share one without being named."""

    counts: dict[int, Member] = {}
    groups: list[tuple[int, int]] = []
    named: dict[int, int] = {}


class _Section(msgspec.Struct):
    """What the text says of one communicator."""

    id: str
    size: int
    kinds: dict[str, _Kind] = {}
    missing: set[int] = set()

    @property
    def counted(self) -> list[_Kind]:
        """The kinds of collectives, by name."""
        return [kind for name, kind in sorted(self.kinds.items()) if name not in _BETWEEN_SOME]


def _of_text(text: str) -> tuple[Report, int]:
    """The last report in a text: it holds no time, so of several nobody can tell which is of when.

    Returns it with how many communicators were too large for what there is room for.
    """
    sizes: dict[int, int] = {}
    sections: dict[str, _Section] = {}
    section: _Section | None = None
    error, kind, count = "", "", 0
    for line in text[text.rfind(_TEXT) :].splitlines():
        if found := _HEAD.fullmatch(line):
            section = sections.setdefault(found["id"], _Section(found["id"], sizes.get(int(found["group"]), 0)))
            error, kind = found["error"], ""
        elif section is None:
            if found := _GROUP.match(line):
                sizes[int(found.group(1))] = int(found.group(2))
        elif found := _KIND.match(line):
            kind = found.group(1)
            section.kinds.setdefault(kind, _Kind())
        elif kind and (found := _COUNT.match(line)):
            count = int(found.group(2) or 0)
            section.kinds[kind].groups.append((int(found.group(1)), count))
        elif found := _MEMBER.match(line):
            _place(section, error, kind, count, found)
    room, fitting = MOST_COUNTS, list[_Section]()
    for _, one in sorted(sections.items()):
        needed = one.size * len(one.counted)
        if needed <= room:
            room -= needed
            fitting.append(one)
    return Report([_summed(one) for one in fitting]), len(sections) - len(fitting)


def _place(section: _Section, error: str, kind: str, count: int, found: re.Match[str]) -> None:
    place = int(found["place"])
    if kind:
        own = int(found["count"] or 0) if found["own"] else count
        section.kinds[kind].counts[place] = Member(own, found["host"] or "", int(found["pid"] or 0))
        if not found["own"]:
            section.kinds[kind].named[count] = section.kinds[kind].named.get(count, 0) + 1
    elif error == "INCOMPLETE":
        section.missing.add(place)


def _summed(section: _Section) -> Communicator:
    """Kinds of which nothing is told are the same at all ranks, so sums differ as the ranks do."""
    size = section.size if section.size < MOST_RANKS else 0
    kinds = [_all_counts(kind, size, section.missing) for kind in section.counted]
    places = set.intersection(*(set(kind) for kind in kinds)) if kinds else set()
    members = {}
    for place in sorted(places):
        told = [kind[place] for kind in kinds]
        process = next((one for one in told if one.pid), told[0])
        members[place] = Member(sum(one.count for one in told), process.host, process.pid)
    return Communicator(f"0x{section.id}", size, members, sorted(section.missing))


def _all_counts(kind: _Kind, size: int, missing: set[int]) -> dict[int, Member]:
    """The count of each place; those whom no line names share the only count of which not all are named."""
    rest = [place for place in range(size) if place not in kind.counts and place not in missing]
    open_ = [(ranks, count) for ranks, count in kind.groups if kind.named.get(count, 0) != ranks]
    if len(open_) != 1 or open_[0][0] != len(rest):
        return kind.counts
    return kind.counts | dict.fromkeys(rest, Member(open_[0][1]))


def observe(
    found: Sequence[Reports], captures: Captures, owners: Owners, span: tuple[int, int]
) -> Iterable[Observation | Unused]:
    """How far each rank is in each communicator, for those whose rank and time are known; notes on the others.

    ``span`` is the time of the recording's other files: a stated time outside is of another zone.
    """
    for reports in found:
        captured = max((row.time for row in captures.of(reports.file)), default=None)
        for number, report in enumerate(reports.reports):
            time = captured if captured is not None and len(reports.reports) == 1 else report.time
            within = time is not None and (captured is not None or span[0] <= time <= span[1])
            if time is None or not within:
                yield Unused(reports.file, 0, UNTIMED)
                continue
            source: TimeSource = "captured" if captured is not None else "printed"
            yield from _placed(reports.file, report, owners, time, source, number)


def _placed(
    file: str, report: Report, owners: Owners, time: int, source: TimeSource, number: int
) -> Iterable[Observation | Unused]:
    ranks = _Ranks(file, report, owners)
    for one in report.communicators:
        if one.missing:
            places = shortened(rank_ranges(one.missing), MOST_SAID)
            yield Unused(file, 0, f"no answer to NCCL's RAS from places {places} of {one.id}")
        told = {place: ranks.at(one, place) for place in sorted(one.members)}
        if any(rank is None for rank in told.values()):
            yield Unused(file, 0, f"nothing tells which ranks belong to communicator {one.id}")
            continue
        for place, rank in told.items():
            if rank is not None:
                launched = Collective(
                    time=time,
                    time_source=source,
                    group=f"communicator {one.id} as RAS counts",
                    sequence=one.members[place].count,
                    operation="operation",
                    state="enqueued",
                    tool="ras",
                )
                yield Observation(owners.of_rank(file, rank, time), time, launched, file, number)


class _Ranks:
    """The ranks of a report: their places in a communicator of all ranks, and so those of their processes elsewhere.

    A communicator in which a process has another id than the rank at its place is known to have tells nothing.
    """

    def __init__(self, file: str, report: Report, owners: Owners) -> None:
        home = owners.home(file)
        world, pids = owners.world(home), owners.pids(home)
        self._whole: set[str] = set()
        self._processes: dict[tuple[str, int], int] = {}
        for one in report.communicators:
            known = all(not member.pid or pids.get(at, member.pid) == member.pid for at, member in one.members.items())
            if not one.size or one.size != world or not known:
                continue
            self._whole.add(one.id)
            for place, member in one.members.items():
                if member.pid:
                    self._processes.setdefault((member.host, member.pid), place)

    def at(self, one: Communicator, place: int) -> int | None:
        """The rank at a place, or null."""
        if one.id in self._whole and place < one.size:
            return place
        member = one.members[place]
        return self._processes.get((member.host, member.pid)) if member.pid else None
