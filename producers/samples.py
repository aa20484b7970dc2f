"""Stack samples out of files of their own: whose they are, when they were taken, and what process it was.

They become rows like those around ``py-spy dump --json``, so that disputes, owners and events treat both alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from producers.inputs import Unused
from producers.rows import Fields, Row, Rows
from producers.times import HOUR, dated, from_seconds, possible
from schemas.events import MAIN_THREAD, TimeSource

MOST_BYTES = 64 * 1024 * 1024
MOST_SAMPLES = 100_000
MOST_FRAMES = 1_000
UNTIMED = "nothing tells when the stacks were taken; they count from the beginning of the job"
_TOOL = re.compile(r"py[-_]?spy|pystack|stack|faulthandler|gdb|py[-_]?bt|callstack", re.IGNORECASE)
_RANK = re.compile(r"(?:^|[^A-Za-z])(?:global_?)?rank[-_=]?(\d{1,7})(?!\d)", re.IGNORECASE)
_PID = re.compile(r"(?:^|[^A-Za-z])pid[-_=]?(\d{1,10})(?!\d)", re.IGNORECASE)
_ATTEMPT = re.compile(r"attempt[-_](\d{1,9})")
_DATE = re.compile(
    r"(?<!\d)(?P<year>20\d\d)-?(?P<month>\d\d)-?(?P<day>\d\d)[T_-](?P<hour>\d\d)[:-]?(?P<minute>\d\d)[:-]?"
    r"(?P<second>\d\d)(?!\d)"
)
_UNIX = re.compile(r"(?<!\d)([12]\d{9})(?:\.(\d{1,6}))?(?!\d)")
_OUTERMOST = frozenset({"<module>", "_run_module_as_main"})
_OUTERMOST_NATIVE = frozenset({"_start", "main"})
_LOADER = re.compile(r"torch/utils/data/_utils/worker\.py$")
_LAUNCHER = re.compile(r"torch/distributed/(?:elastic/agent/|launcher/api\.py|run\.py$)")
_WRITER = re.compile(r"(?:async_ckpt|filesystem_async|async_utils|FileSystemWriter)", re.IGNORECASE)
_CHILD = frozenset({"spawn_main", "_launch", "_bootstrap", "_process_worker"})


class Thread(msgspec.Struct):
    """A thread as a tool shows it: frames as py-spy's JSON has them, innermost first.

    ``named`` if the tool knows the names that Python gives to threads, ``cut`` if faulthandler left out the outermost.
    """

    name: str = ""
    id: int | None = None
    label: str = ""
    active: bool | None = None
    frames: list[Fields] = []
    named: bool = False
    cut: bool = False


class Sample(msgspec.Struct):
    """One look at one process, with what the file itself says of it; ``time`` in ns, ``error`` why it failed.

    ``more`` if the process has threads that are not shown.
    """

    line: int
    pid: int | None = None
    rank: int | None = None
    node: str = ""
    process_type: str = ""
    parent: int | None = None
    time: int | None = None
    error: str = ""
    threads: list[Thread] = []
    more: bool = False


class Dumped(msgspec.Struct, frozen=True):
    """The samples of a file, how many of its lines are no part of them, and what could not be read."""

    file: str
    samples: list[Sample]
    strange: int = 0
    unused: list[Unused] = []


class _Named(msgspec.Struct, frozen=True):
    """What the path of a file says."""

    rank: int | None
    pid: int | None
    attempt: str
    time: int | None


def said_time(text: str) -> int | None:
    """A time (ns) that stands alone, as a date or in Unix seconds."""
    if moment := dated(text):
        return moment.time if possible(moment.time) else None
    if found := _UNIX.fullmatch(text):
        return from_seconds(float(found.group()))
    return None


def named(file: str) -> bool:
    """Whether a file's name, or that of its folder, shows that it is a stack, and the name whose."""
    folder, _, name = file.rpartition("/")
    words = f"{folder.rpartition('/')[2]}/{name}"
    said = _named(file)
    return _TOOL.search(words) is not None and (said.rank is not None or said.pid is not None)


def empty(file: str) -> Dumped:
    """What a file without content says."""
    return Dumped(file, [Sample(line=0, error="the file is empty")])


def _named(file: str) -> _Named:
    parts = file.split("/")[::-1]
    rank, pid = _RANK.search(parts[0]), _PID.search(parts[0])
    attempts = [found.group(1) for part in parts if (found := _ATTEMPT.search(part))]
    times = [time for part in parts if (time := _time_in(part)) is not None]
    return _Named(
        int(rank.group(1)) if rank else None,
        int(pid.group(1)) if pid else None,
        attempts[0] if attempts else "",
        times[0] if times else None,
    )


def told_time(file: str) -> int | None:
    """The time (ns) that a file's name tells, or that of the innermost folder whose name tells one."""
    return _named(file).time


def _time_in(name: str) -> int | None:
    if found := _DATE.search(name):
        date, clock = "-".join(found.group(1, 2, 3)), ":".join(found.group(4, 5, 6))
        return said_time(f"{date} {clock}")
    found = _UNIX.search(name)
    return from_seconds(float(found.group())) if found else None


def rows_of(
    dumped: Dumped, captures: Sequence[Row], nodes: Iterable[str], span: Callable[[str], tuple[int, int]]
) -> Rows:
    """The rows of a file; ``captures`` are what a table says of it, ``span`` is that of the job of a file.

    A time is taken from the text, else from a table, else from the file's name. Where nothing tells it, a sample was
    taken at some time between the beginning and the end, and must not be held against a standstill.
    """
    name = _named(dumped.file)
    unused = list(dumped.unused)
    if dumped.strange:
        unused.append(Unused(dumped.file, 0, "lines that are no part of a stack", dumped.strange))
    captured = max(captures, key=lambda row: row.time, default=None)
    shared = captured.time if captured else name.time
    about = _about(dumped, captured, name, nodes)
    beginning: tuple[int, int] | None = None
    rows, untimed = [], 0
    for sample in _latest(dumped, unused):
        fields = _fields(sample, about, unused)
        # A table speaks of the whole file, so it cannot tell one sample of a process from the next.
        time = sample.time or shared
        source: TimeSource = "captured"
        precision = 0
        if time is None:
            start, end = beginning = beginning or span(dumped.file)
            time, source, precision = start, "inferred", min(max(end - start, 0), HOUR)
            untimed += 1
        rows.append(Row(sample.line, time, fields, source, precision))
    if untimed:
        unused.append(Unused(dumped.file, 0, UNTIMED, untimed))
    return Rows(dumped.file, rows, unused)


def _latest(dumped: Dumped, unused: list[Unused]) -> list[Sample]:
    """The samples, of those of one process without times of their own only the last: nobody knows how far apart."""
    kept: dict[object, Sample] = {}
    for at, sample in enumerate(dumped.samples):
        said = sample.threads or sample.error or sample.pid is not None or sample.rank is not None
        if not said and len(dumped.samples) > 1:
            continue
        _own_process(sample)
        key = (sample.node, sample.rank, sample.pid)
        kept[at if sample.time is not None else key] = sample
    found = sorted(kept.values(), key=lambda sample: sample.line)
    lost = sum(1 for sample in dumped.samples if sample.threads) - sum(1 for sample in found if sample.threads)
    if lost > 0:
        unused.append(Unused(dumped.file, 0, "earlier samples of a process, without times", lost))
    return found


def _own_process(sample: Sample) -> None:
    """Who runs the script is the main thread, and its id that of the process.

    Where its outermost frames are left out it is the last that faulthandler prints: CPython goes from the youngest
    thread to the first.
    """
    last = sample.threads[-1] if sample.threads and not sample.more else None
    if last is not None and last.cut and not any(_is_main(thread) for thread in sample.threads):
        last.name = MAIN_THREAD
    for thread in sample.threads:
        if thread.named:
            if thread.name == MAIN_THREAD and sample.pid is None:
                sample.pid = thread.id
            thread.name = thread.name or f"thread {thread.label}".strip()
            continue
        if _is_main(thread):
            thread.name = MAIN_THREAD
            sample.pid = sample.pid if sample.pid is not None else thread.id
        thread.name = thread.name or f"thread {thread.label}".strip()


def _is_main(thread: Thread) -> bool:
    if not thread.frames:
        return False
    scripts = [frame for frame in thread.frames if is_python(str(frame.get("filename")))]
    if scripts:
        return str(scripts[-1].get("name")) in _OUTERMOST
    return str(thread.frames[-1].get("name")) in _OUTERMOST_NATIVE


def is_python(file: str) -> bool:
    """Whether a frame of a file is one of Python's."""
    return file.endswith(".py") or (file.startswith("<") and file != "<built-in>")


class _About(msgspec.Struct, frozen=True):
    """What the table and the name say of a file, and what its samples say of one another.

    ``alone`` if it holds one sample; ``ranked`` if its text names ranks; ``parents`` are the ranks of its processes.
    """

    file: str
    rank: int | None
    pid: int | None
    node: str
    process_type: str
    attempt: str
    alone: bool
    ranked: bool
    parents: dict[int, int | None]


def _about(dumped: Dumped, captured: Row | None, name: _Named, nodes: Iterable[str]) -> _About:
    rank = captured.integer("rank") if captured else None
    pid = captured.integer("pid") if captured else None
    return _About(
        file=dumped.file,
        rank=name.rank if rank is None else rank,
        pid=name.pid if pid is None else pid,
        node=(captured.text("node") if captured else "") or _node(dumped.file, nodes),
        process_type=captured.text("process_type") if captured else "",
        attempt=name.attempt,
        alone=len(dumped.samples) == 1,
        ranked=any(one.rank is not None for one in dumped.samples),
        parents={one.pid: one.rank for one in dumped.samples if one.pid is not None},
    )


def _fields(sample: Sample, about: _About, unused: list[Unused]) -> dict[str, Any]:
    rank = sample.rank if about.ranked else about.rank
    if rank is None and sample.parent is not None:
        rank = about.parents.get(sample.parent)
    if about.alone and None not in (sample.rank, about.rank) and sample.rank != about.rank:
        note = f"sources disagree: rank {about.rank} by the file's name or a table, rank {sample.rank} by its text"
        unused.append(Unused(about.file, sample.line, note))
        rank = None
    threads = [_thread(thread, about.file, sample.line, unused) for thread in _once(sample.threads)]
    fields: dict[str, Any] = {
        "rank": rank,
        "node": sample.node or about.node,
        "pid": about.pid if sample.pid is None and about.alone else sample.pid,
        "parent": sample.parent,
        "attempt": about.attempt,
        "process_type": sample.process_type or about.process_type or process_type_of(threads),
        "threads": threads,
    }
    if sample.error and not threads:
        fields["error"] = sample.error
    return {key: value for key, value in fields.items() if value is not None}


def _once(threads: list[Thread]) -> list[Thread]:
    """Gdb may print a thread twice, once as C sees it; Python's frames say more."""
    kept: dict[object, Thread] = {}
    for at, thread in enumerate(threads):
        key = at if thread.id is None or thread.named else ("id", thread.id)
        before = kept.get(key)
        if before is None or not any(is_python(str(frame.get("filename"))) for frame in before.frames):
            kept[key] = thread
    return list(kept.values())


def _thread(thread: Thread, file: str, line: int, unused: list[Unused]) -> Fields:
    if len(thread.frames) > MOST_FRAMES:
        note = f"a stack of {len(thread.frames)} frames; the innermost {MOST_FRAMES} are kept"
        unused.append(Unused(file, line, note))
    return {
        "thread_name": thread.name,
        "os_thread_id": thread.label,
        "active": thread.active,
        "frames": thread.frames[:MOST_FRAMES],
    }


def _node(file: str, nodes: Iterable[str]) -> str:
    """The only known node that a path names, as a folder or as a part of the file's name."""
    *folders, name = file.split("/")
    words = {*folders, *re.split(r"[_.=]", name), *re.split(r"[_.=-]", name)}
    found = [node for node in sorted(set(nodes)) if node in words]
    return found[0] if len(found) == 1 else ""


def process_type_of(threads: Sequence[Any]) -> str:
    """What a process is, by its main thread's frames: loaders and writers are children that run nothing else."""
    for thread in threads:
        frames = thread.get("frames") if isinstance(thread, dict) else None
        if not isinstance(frames, list) or thread.get("thread_name") not in (MAIN_THREAD, None, ""):
            continue
        shown = [frame for frame in frames if isinstance(frame, dict)]
        files = [str(frame.get("filename") or frame.get("short_filename")) for frame in shown]
        names = [str(frame.get("name")).rpartition(".")[2] for frame in shown]
        if any(_LOADER.search(file) for file in files) or "_worker_loop" in names:
            return "dataloader"
        if any(_LAUNCHER.search(file) for file in files) and not _CHILD & set(names):
            return "launcher"
        if _CHILD & set(names) and any(_WRITER.search(text) for text in files + names):
            return "checkpoint_writer"
    return "trainer"
