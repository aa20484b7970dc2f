"""Stacks in JSON files of their own: py-spy's array of threads, and arrays of the frames of one thread.

The frames of the latter are ``CFrame{file, func, ip, lineno}`` and ``PyFrame{file, func, lineno, locals}``, innermost
first, as FLAME and probing write them.
"""

from __future__ import annotations

from producers.inputs import Unused
from producers.rows import Fields, is_array, printable, sample, values
from producers.samples import MOST_BYTES, Dumped, Sample, Thread, named
from producers.scan import Source

_PARTIAL = "lto_priv"
"""In the names of parts into which link-time optimisation cuts a function."""


def read(source: Source) -> Dumped | None:
    """The samples of a file, null if it holds something else. Raises OSError."""
    if not is_array(source.path):
        return None
    if source.size > MOST_BYTES:
        return _too_large(source)
    rows: list[Fields] = []
    unused: list[Unused] = []
    for number, value in values(source.path):
        if isinstance(value, dict):
            rows.append(value)
        else:
            unused.append(Unused(source.file, number, str(value) if isinstance(value, ValueError) else "no object"))
    if not rows and unused and named(source.file):
        return Dumped(source.file, [Sample(line=1, error=unused[0].reason)], 0, unused)
    if rows and all(_is_thread(row) for row in rows):
        return Dumped(source.file, _threads(rows), 0, unused)
    if rows and all(_frame_in(row) is not None for row in rows):
        frames = [frame for row in rows if (frame := _frame(row)) is not None]
        return Dumped(source.file, [Sample(line=1, threads=[Thread(frames=frames)] if frames else [])], 0, unused)
    return None


def _too_large(source: Source) -> Dumped | None:
    """What a file says that is too large, if it holds stacks or is called so: a sample that failed."""
    rows = sample(source.path)
    stacks = all(_is_thread(row) or _frame_in(row) is not None for row in rows) if rows else named(source.file)
    reason = f"stacks of {source.size} bytes, more than {MOST_BYTES}; left aside"
    found = Dumped(source.file, [Sample(line=1, error=reason)], 0, [Unused(source.file, 0, reason)])
    return found if stacks else None


def _is_thread(row: Fields) -> bool:
    return {"pid", "frames"} <= row.keys() and bool({"thread_id", "os_thread_id"} & row.keys())


def _threads(rows: list[Fields]) -> list[Sample]:
    samples: dict[object, Sample] = {}
    for number, row in enumerate(rows, 1):
        pid = row["pid"] if isinstance(row["pid"], int) and not isinstance(row["pid"], bool) else None
        sample = samples.setdefault(pid, Sample(line=number, pid=pid))
        sample.parent = _parent(row) or sample.parent
        name, active, frames = row.get("thread_name"), row.get("active"), row["frames"]
        thread = row.get("os_thread_id") or row.get("thread_id")
        sample.threads.append(
            Thread(
                name=printable(name)[:200] if isinstance(name, str) else "",
                id=thread if isinstance(thread, int) else None,
                label=printable(str(thread))[:20],
                active=active if isinstance(active, bool) else None,
                frames=[frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else [],
                named=True,
            )
        )
    return list(samples.values())


def _parent(row: Fields) -> int | None:
    info = row.get("process_info")
    parent = info.get("parent") if isinstance(info, dict) else None
    pid = parent.get("pid") if isinstance(parent, dict) else None
    return pid if isinstance(pid, int) and not isinstance(pid, bool) else None


def _frame_in(row: Fields) -> Fields | None:
    """The fields of a frame, which may lie under its kind."""
    for kind in ("CFrame", "PyFrame"):
        if isinstance(row.get(kind), dict):
            row = row[kind]
    return row if {"file", "func", "lineno"} <= row.keys() else None


def _frame(row: Fields) -> Fields | None:
    frame = _frame_in(row)
    if frame is None or _PARTIAL in str(frame["func"]):
        return None
    return {"name": frame["func"], "filename": frame["file"], "line": frame["lineno"]}
