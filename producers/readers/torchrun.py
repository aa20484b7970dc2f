"""Per-rank logs of torchrun: ``[<node>/]<run>_<8 characters>/attempt_<n>/<local rank>/{stdout,stderr}.log``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from producers.logfile import LogFile
from producers.scan import Source
from producers.workers import NO_RUN

T = TypeVar("T")

_ATTEMPT = re.compile(r"attempt_(.+)", re.DOTALL)
_MOST_ATTEMPT = 32
_RUN = re.compile(r"(.+)_[A-Za-z0-9_]{8}$")
ERROR = "error"
_STREAMS = {"stdout.log": "stdout", "stderr.log": "stderr", "error.json": ERROR}
_RANK = re.compile(r"\[(?:\S{1,64} )?rank ?(\d{1,7})\]|\brank=(\d{1,7}) (?:local_rank|pid)=")
_HEAD = 400
_HOST = re.compile(r"\bhost=([\w.-]{1,253})")
_PID = re.compile(r"\bpid=(\d{1,9})\b")
_ROLE = re.compile(r"\bworker started role=([\w-]{1,64})")


class Place(msgspec.Struct, frozen=True, order=True):
    """Where torchrun put a log: ``parent`` is the folder above the run's, which may be named after the node."""

    run: str
    parent: str
    folder: str
    attempt: str
    local_rank: int
    stream: str


class Said(msgspec.Struct, frozen=True):
    """What the text of a worker's logs says of it; null or empty where it says nothing, or not always the same."""

    rank: int | None = None
    host: str = ""
    pid: int | None = None
    role: str = ""


def place(source: Source) -> Place | None:
    """Where a file stands in torchrun's layout, null if it is in no such place."""
    parts = source.parts
    if len(parts) < 3 or parts[-1] not in _STREAMS or not parts[-2].isdecimal() or len(parts[-2]) > 9:
        return None
    attempt = _ATTEMPT.fullmatch(parts[-3])
    if not attempt:
        return None
    above = parts[:-3]
    run = _RUN.match(above[-1]) if above else None
    return Place(
        run=run.group(1) if run else NO_RUN,
        parent=above[-2] if run and len(above) > 1 else "",
        folder="/".join(above),
        attempt=_attempt(attempt.group(1)),
        local_rank=int(parts[-2]),
        stream=_STREAMS[parts[-1]],
    )


def _attempt(text: str) -> str:
    """A plain number without zeros in front, anything else as it stands, within bounds."""
    return str(int(text)) if text.isdecimal() and len(text) <= 9 else text[:_MOST_ATTEMPT]


def said(logs: Iterable[LogFile]) -> Said:
    """What the logs of one worker say of it."""
    ranks: Counter[int] = Counter()
    hosts: Counter[str] = Counter()
    pids: Counter[int] = Counter()
    roles: Counter[str] = Counter()
    for record in (record for log in logs for record in log.records):
        head = record.prefix + record.text[:_HEAD]
        if "rank" in head and (found := _RANK.search(head)):
            ranks[int(found.group(1) or found.group(2))] += 1
        if "=" in head:
            hosts.update(_HOST.findall(head)[:1])
            pids.update(int(pid) for pid in _PID.findall(head)[:1])
            roles.update(_ROLE.findall(head)[:1])
    return Said(
        rank=_agreed(ranks),
        host=_agreed(hosts) or "",
        pid=_agreed(pids),
        role=_agreed(roles) or "",
    )


def ranks_named(log: LogFile) -> set[int]:
    """All ranks that the lines of a log name as their own."""
    heads = (record.prefix + record.text[:_HEAD] for record in log.records)
    found = (_RANK.search(head) for head in heads if "rank" in head)
    return {int(one.group(1) or one.group(2)) for one in found if one}


def _agreed(found: Counter[T]) -> T | None:
    """What nearly all lines say; a worker may speak of others now and then."""
    value, count = found.most_common(1)[0] if found else (None, 0)
    return value if count * 10 >= found.total() * 9 else None


def nodes(places: Iterable[Place], hosts: dict[str, str], known: set[str]) -> dict[str, str]:
    """The node of every run folder.

    The folder above it, if that is known for a node or if several such folders hold runs of one job; else the host
    that its logs name; else the only known node, if the folder above it is not named like another of its kind; else
    that folder, if its name is not one of logs in general.
    """
    folders = {place.folder: place for place in places}
    parents: dict[str, set[str]] = {}
    for where in folders.values():
        parents.setdefault(where.run, set()).add(where.parent)
    return {folder: _node(where, hosts, known, parents[where.run]) for folder, where in sorted(folders.items())}


_DIGITS = re.compile(r"\d+")
_GENERAL = {"log", "logs", "out", "output", "outputs", "run", "runs", "torchelastic", "tmp", "train", "training"}


def _node(where: Place, hosts: dict[str, str], known: set[str], parents: set[str]) -> str:
    if where.parent and (where.parent in known or len(parents) > 1):
        return where.parent
    if host := hosts.get(where.folder):
        return host
    if len(known) == 1 and _DIGITS.sub("0", min(known)) != _DIGITS.sub("0", where.parent):
        return min(known)
    return "" if where.parent.lower() in _GENERAL else where.parent
