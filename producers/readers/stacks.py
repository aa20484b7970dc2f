"""Stack samples: py-spy's ``--json`` threads in rows ``{ts, node, rank, process_type, pid, threads}``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from producers.observations import Observation, arrivals
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, printable, read_rows
from producers.scan import Source
from schemas.events import Frame, Stack

_MOST_FRAMES = 1_000


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
        identity = owners.identity(table.file, row)
        found.extend(Observation(identity, arrival, event, table.file, row.line) for event in stacks(row))
    return found


def stacks(row: Row) -> list[Stack]:
    """The events of one sample, frames outermost first."""
    threads = row.fields.get("threads")
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
                process_type=row.text("process_type") or "trainer",
                pid=row.integer("pid") or 0,
                # Threads are told apart by name; pools give many the same one.
                thread=name if names[name] == 1 else f"{name} #{names[name]}",
                frames=[_frame(frame) for frame in reversed(thread["frames"][:_MOST_FRAMES])],
                active=active if isinstance(active, bool) else None,
            )
        )
    return found


def _failed(row: Row, reason: str) -> Stack:
    process_type = row.text("process_type") or "trainer"
    return Stack(time=row.time, process_type=process_type, pid=row.integer("pid") or 0, failure=reason[:1_000])


def _name(thread: Fields) -> str:
    name = thread.get("thread_name")
    if isinstance(name, str) and name:
        return printable(name)
    return printable(f"thread {thread.get('os_thread_id') or thread.get('thread_id') or ''}".strip())[:200]


def _frame(frame: Any) -> Frame:
    if not isinstance(frame, dict):
        return Frame(function="?", file="?")
    line = frame.get("line")
    return Frame(
        function=printable(str(frame.get("name") or "?")),
        file=printable(str(frame.get("filename") or frame.get("short_filename") or "?")),
        line=line if isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 2**31 else 0,
    )
