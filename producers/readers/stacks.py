"""Stack samples: py-spy's ``--json`` threads in rows ``{ts, node, rank, process_type, pid, threads}``.

What other tools wrote into files of their own has become such rows (``producers/samples.py``).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from producers.observations import Observation, arrivals
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, printable, read_rows
from producers.samples import MOST_FRAMES, process_type_of
from producers.scan import Source
from producers.stacktext import ADDRESS
from producers.workers import Worker
from schemas.events import Frame, Stack
from schemas.identity import Identity


def fits(fields: Fields) -> bool:
    """Whether a row is a stack sample, or says why there is none."""
    # Samples of processes count their threads under the same name.
    sampled = any(name.endswith(("_percent", "_bytes", "_switches", "status")) for name in fields)
    return "pid" in fields and (isinstance(fields.get("threads"), list) or ("process_type" in fields and not sampled))


def read(source: Source) -> Rows:
    """The samples of a file. Raises OSError."""
    return read_rows(source, fits)


def observe(table: Rows, owners: Owners) -> list[Observation]:
    """A stack event for every thread of every sample; a sample that failed is one event with its reason."""
    found: list[Observation] = []
    for row, arrival in arrivals(table.rows):
        identity, time = _whose(owners, table.file, row)
        placed = msgspec.structs.replace(row, time=time)
        if identity.rank is not None and row.text("process_type") == "trainer" and row.integer("pid") is None:
            placed = _with_pid(placed, owners.find(table.file, placed))
        latest = max(arrival, time)
        found.extend(Observation(identity, latest, event, table.file, row.line) for event in stacks(placed))
    return found


def _whose(owners: Owners, file: str, row: Row) -> tuple[Identity, int]:
    """Whose a sample is, and its time (ns): one that nothing tells is no earlier than the worker's start.

    Ranks are numbered anew when a job starts over, so a rank without a time is several workers' then.
    """
    pid, parent, rank = row.integer("pid"), row.integer("parent"), row.integer("rank")
    if rank is None and parent is not None and owners.find(file, row) is None:
        row = msgspec.structs.replace(row, fields=row.fields | {"pid": parent})
    if row.source != "inferred":
        return owners.identity(file, row), row.time
    worker = owners.find(file, row)
    if worker is None or rank is None:
        return owners.identity(file, row), _no_earlier(row.time, worker)
    same = owners.of_attempts(file, rank, row.text("node"))
    if worker.pid == pid and sum(one.pid == pid for one in same) == 1:
        return owners.identity(file, row), _no_earlier(row.time, worker)
    stated = [one for one in same if one.attempt == row.text("attempt")] or same
    if len(stated) != 1:
        reason = f"nothing tells which of the workers that were rank {rank} it is"
        return Identity(job=worker.job, node=row.text("node"), rank_reason=reason), row.time
    time = _no_earlier(row.time, stated[0])
    return owners.identity(file, msgspec.structs.replace(row, time=time)), time


def _with_pid(row: Row, worker: Worker | None) -> Row:
    """Some tools do not say which process they looked at; a rank's trainer is that of its worker."""
    if worker is None or worker.pid is None:
        return row
    return msgspec.structs.replace(row, fields=row.fields | {"pid": worker.pid})


def _no_earlier(time: int, worker: Worker | None) -> int:
    return time if worker is None or worker.start is None else max(time, worker.start)


def stacks(row: Row) -> list[Stack]:
    """The events of one sample, frames outermost first."""
    threads = row.fields.get("threads")
    process_type = row.text("process_type") or process_type_of(threads if isinstance(threads, list) else [])
    failure = row.fields.get("error")
    if failure or not isinstance(threads, list) or not threads:
        return [_failed(row, printable(str(failure)) if failure else "the sample holds no threads")]
    found = []
    names: Counter[str] = Counter()
    for thread in threads:
        if not isinstance(thread, dict) or not isinstance(thread.get("frames"), list):
            found.append(_failed(row, "a thread without frames"))
            continue
        name = _name(thread)
        names[name] += 1
        active = thread.get("active")
        found.append(
            Stack(
                time=row.time,
                time_source=row.source,
                precision_ns=row.precision,
                process_type=process_type,
                pid=row.integer("pid") or 0,
                # Threads are told apart by name; pools give many the same one.
                thread=name if names[name] == 1 else f"{name} #{names[name]}",
                frames=[_frame(frame) for frame in reversed(thread["frames"][:MOST_FRAMES])],
                active=active if isinstance(active, bool) else None,
            )
        )
    return found


def _failed(row: Row, reason: str) -> Stack:
    process_type = row.text("process_type") or "trainer"
    return Stack(
        time=row.time,
        time_source=row.source,
        precision_ns=row.precision,
        process_type=process_type,
        pid=row.integer("pid") or 0,
        failure=reason[:1_000],
    )


def _name(thread: Fields) -> str:
    name = thread.get("thread_name")
    if isinstance(name, str) and name:
        return printable(name)
    return printable(f"thread {thread.get('os_thread_id') or thread.get('thread_id') or ''}".strip())[:200]


def _frame(frame: Any) -> Frame:
    if not isinstance(frame, dict):
        return Frame(function="?", file="?")
    line = frame.get("line")
    name = printable(str(frame.get("name") or "?"))
    return Frame(
        function="?" if ADDRESS.fullmatch(name) else name,
        file=printable(str(frame.get("filename") or frame.get("short_filename") or "?")),
        line=line if isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 2**31 else 0,
    )
