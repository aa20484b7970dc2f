"""What torchrun's agent of a node prints: signals it sends, workers that failed, and its own end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from producers.lines import LIMIT
from producers.logfile import LogFile
from producers.scan import Source
from producers.times import Moment, dated, possible

_HEAD_BYTES = 1024 * 1024
_MARKS = re.compile(
    rb"^(?:\[[A-Za-z_]{1,32}\d{1,6}\]: ?)?\[?[VDIWEC]\d{3,4} \d\d:\d\d:\d\d\.\d{6}[^\n]{0,400}"
    rb"(?:torch/distributed/(?:elastic|run|launcher)|\[c10d\])"
    rb"|^torch\.distributed\.elastic\.[\w.]{1,200}(?:Error|Exception)\b"
    rb"|^[^\n=]{0,100}={20,200}\n[^\n]{1,300} FAILED\n[^\n-]{0,100}-{20,200}\n[^\n]{0,100}(?:Failures:|Root Cause)",
    re.MULTILINE,
)
_FAILED = re.compile(r"failed \(exitcode: -?\d{1,4}\) local_rank: (\d{1,6}) \(pid: (\d{1,9})\)")
_PIDS = re.compile(r"(?:Sending process |\(pid: )(\d{1,9})")
_ENTRY = re.compile(
    r"time {0,12}: (\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)\n(?:[^\n]{0,400}\n){0,2}?"
    r"(?: {0,8}rank {0,12}: (\d{1,7}) \(local_rank: (\d{1,6})\)\n)?"
    r" {0,8}exitcode {0,12}: [^\n(]{0,20}\(pid: (\d{1,9})\)"
)


class Exit(msgspec.Struct, frozen=True):
    """A process's end as its launcher reports it, in nanoseconds; the ranks are null where it tells none."""

    pid: int
    time: int
    precise: bool
    local_rank: int | None = None
    rank: int | None = None


def recognised(source: Source) -> bool:
    """Whether a text file is a launcher's log, by its first MiB and its last 64 KiB. Raises OSError."""
    with source.path.open("rb") as file:
        if _MARKS.search(file.read(_HEAD_BYTES).replace(b"\0", b"")):
            return True
        if source.size <= _HEAD_BYTES:
            return False
        file.seek(max(_HEAD_BYTES, source.size - LIMIT))
        return bool(_MARKS.search(file.read(LIMIT).replace(b"\0", b"")))


def speaks(log: LogFile) -> bool:
    """Whether a launcher wrote lines of a log."""
    return any(_MARKS.search(record.text.encode("utf-8", "replace")) for record in log.records)


def node_of(file: str, known: Iterable[str], mentioned: str) -> str:
    """The node of a launcher's log.

    A known node at the end of the file's name; else the node of the processes that it mentions; else what stands
    behind the last underscore, for nothing else names an agent's node.
    """
    stem = file.rpartition("/")[2].rpartition(".")[0] or file.rpartition("/")[2]
    named = [node for node in known if node and re.search(rf"(?:^|[_.-]){re.escape(node)}$", stem)]
    if named:
        return max(named, key=lambda node: (len(node), node))
    return mentioned or (stem.rpartition("_")[2] if "_" in stem else "")


def pids(log: LogFile) -> list[int]:
    """The processes that a launcher's log mentions, in order."""
    return [int(pid) for record in log.records for pid in _PIDS.findall(record.text)]


def exits(log: LogFile, moments: Sequence[Moment | None]) -> dict[int, Exit]:
    """Ends of processes by id. The line at the moment counts before the report, which is only by the second."""
    found: dict[int, Exit] = {}
    for record, moment in zip(log.records, moments, strict=True):
        failed = _FAILED.findall(record.text) if moment else []
        entries = [Exit(int(pid), moment.time, True, int(local)) for local, pid in failed] if moment else []
        if record.shape == "failure":
            entries += [
                Exit(int(pid), when.time, False, int(local) if local else None, int(rank) if rank else None)
                for clock, rank, local, pid in _ENTRY.findall(record.text)
                if (when := dated(clock)) and possible(when.time)
            ]
        for entry in entries:
            known = found.get(entry.pid, entry)
            better = entry if entry.precise and not known.precise else known
            # The line at the moment tells no rank, the report does.
            rank = entry.rank if known.rank is None else known.rank
            found[entry.pid] = msgspec.structs.replace(better, rank=rank)
    return found
