"""Stacks in text files of their own: py-spy, pystack, faulthandler, gdb's ``bt``, ``py-bt`` and ``py-bt-full``.

What is read is put into the shape of py-spy's JSON, so that every tool is understood alike: one sample a process, its
threads with their frames innermost first. Sources: py-spy's src/dump.rs, pystack's traceback_formatter.py, CPython's
Python/traceback.c and Tools/gdb/libpython.py, gdb's manual on backtraces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from producers.inputs import Unused
from producers.lines import read_lines
from producers.readers.plain import is_other
from producers.samples import MOST_BYTES, MOST_SAMPLES, Dumped, Sample, Thread, named, said_time
from producers.scan import Source
from producers.stacktext import FAULT_HEAD, FAULT_MORE, SPY_HEAD

_SOURCE = "    "
"""How the lines begin that show a frame's source."""
_LEAST_SHARE = 90
"""Percent of lines that must be those of a stack, so that a text is one rather than a log with stacks in it."""
_PYSTACK_HEAD = re.compile(
    r"Traceback for thread (?P<id>\d{1,10})(?: \((?P<name>[^)\n]{0,100})\))? \[(?P<status>[^\]\n]{0,100})\]"
    r" \(most recent call last\):"
)
_GDB_HEAD = re.compile(
    r"Thread \d{1,6} \((?:Thread 0x[0-9a-f]{1,16} \()?LWP (?P<id>\d{1,10})\)?(?: \"(?P<name>[^\"\n]{0,100})\")?\):"
)
_PY_BT = "Traceback (most recent call first):"
_FRAME = re.compile(
    r" {2}(?: {2}\((?P<kind>[A-Za-z]{1,10})\) )?File \"(?P<file>[^\"\n]{1,1000})\", line (?P<line>\d{1,9}|\?\?\?),? in"
    r" (?P<function>[^\n]{1,1000})"
)
_FULL_FRAME = re.compile(
    r"#\d{1,5} {1,4}(?:\([^)\n]{1,40}\) ?)?Frame 0x[0-9a-f]{1,16}, for file (?P<file>[^\n]{1,1000}?),"
    r" line (?P<line>\d{1,9}), in (?P<function>[^\s(]{1,300})(?: |$)"
)
_NATIVE_FRAME = re.compile(r"#(?P<number>\d{1,5}) {1,4}(?:0x[0-9a-f]{1,16} in )?(?=[^\s])")
_NUMBER = re.compile(r"#(\d{1,5}) ")
_BUILT_IN = re.compile(r" {2}<built-in (?:method|function) (?P<function>[^\s>]{1,200})[ >]")
_PROCESS = re.compile(r"Process (?P<pid>\d{1,10}): ")
_PARENT = re.compile(r"Parent Process (?P<pid>\d{1,10}): ")
_ATTACHED = re.compile(r"(?:Attaching to process|\[Inferior 1 \(process) (?P<pid>\d{1,10})\b")
_RANK = re.compile(r"[=#*\[ -]{0,40}(?:RANK|Rank|rank)[ :=_-]{0,3}(?P<rank>\d{1,7})[=#*\]: -]{0,40}")
_PAIR = re.compile(
    r"\b(?P<key>rank|pid|node|host|hostname|process_type|time|timestamp|captured) ?[:=] ?"
    r"(?P<value>\d{4}-\d\d-\d\d[ T][0-9:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?|[^\s,;]{1,200})"
)
_AROUND = re.compile(r"[#\s,;=*-]{0,200}")
_FAILED = re.compile(
    r"(?:Error: |ERROR: |\U0001f480 |\U0001f6a8 |ptrace: |Could not attach to process|py-spy: |pystack: |gdb: |"
    r"Unable to locate python frame|Failed to |Permission denied|No such process|Operation not permitted)"
)
_BESIDE = re.compile(
    r"(?:Python v\d|Timeout \(\d|Extension modules: |(?:#\d{1,5} {1,4})?\(unable to read python frame information\)|"
    r"\[New (?:LWP|Thread) |\[Thread debugging using |"
    r"Using host libthread_db |\[Inferior |\[Current thread is |warning: |0x[0-9a-f]{1,16} in |"
    r"[-=_]{3,200}$|\(frame information optimized out\)|\(gdb\) |Unable to read information on python frame| {8})"
)


_HEADS = (SPY_HEAD, FAULT_HEAD, _PYSTACK_HEAD, _GDB_HEAD)


class _Open(msgspec.Struct):
    """The thread that is being read; ``reverse`` if it is printed outermost first, ``cut`` if its outermost are not."""

    id: str
    name: str = ""
    active: bool | None = None
    frames: list[dict[str, object]] = []
    reverse: bool = False
    of_spy: bool = False
    of_fault: bool = False
    cut: bool = False
    latest: int = -1

    def closed(self) -> Thread:
        return Thread(
            name=self.name,
            id=int(self.id) if self.id.isdecimal() else None,
            label=self.id,
            active=self.active,
            frames=self.frames[::-1] if self.reverse else self.frames,
            named=self.of_spy,
            cut=self.cut and self.of_fault,
        )


class _Reader:
    """Takes the lines of a file one after the other."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.known = 0
        self.unknown = 0
        self._sample: Sample | None = None
        self._thread: _Open | None = None

    def take(self, number: int, text: str) -> None:
        """One line that is not blank."""
        text = text.rstrip()
        if self._head(number, text) or self._frame(number, text) or self._beside(number, text):
            self.known += 1
        else:
            self.unknown += 1

    def finish(self, whole: bool) -> list[Sample]:
        """The samples; of a file that was cut off, a thread printed outermost first lacks what matters."""
        cut = not whole and self._thread is not None and self._thread.reverse
        if cut and self._thread is not None and self._sample is not None:
            self._thread = None
            self._sample.error = self._sample.error or "the text ends within a stack"
        self._close()
        if not whole and self._sample is not None:
            self._sample.more = True
        return self.samples[:MOST_SAMPLES]

    def _close(self) -> None:
        if self._thread is not None and self._sample is not None and self._thread.frames:
            self._sample.threads.append(self._thread.closed())
        self._thread = None

    def _process(self, number: int, taken: bool) -> Sample:
        """The sample that a line speaks of: a new one where the one before is ``taken``."""
        self._close()
        if self._sample is None or taken or self._sample.threads:
            self._sample = Sample(line=number)
            self.samples.append(self._sample)
        return self._sample

    def _begin(self, number: int, thread: _Open) -> bool:
        self._close()
        if self._sample is None:
            self._process(number, False)
        self._thread = thread
        return True

    def _head(self, number: int, text: str) -> bool:
        if text.startswith(" "):
            return False
        for head in _HEADS:
            if found := head.fullmatch(text):
                return self._begin(number, _opened(head, found))
        if text == "..." and self._sample is not None:
            # It prints a hundred threads, and the main one last.
            self._sample.more = True
            return True
        if text == _PY_BT:
            alone = self._thread is None or bool(self._thread.frames)
            return self._begin(number, _Open("", frames=[])) if alone else True
        if text.startswith("Traceback (most recent call last)"):
            # An exception's, not a sample.
            self._close()
        return False

    def _frame(self, number: int, text: str) -> bool:
        # A line of source may look like a frame of py-spy's.
        of_spy = self._thread is not None and self._thread.of_spy
        frame = _spied(text) if of_spy else _frame_of(text)
        if frame is None:
            return False
        if found := _NUMBER.match(text):
            self._number(number, int(found.group(1)))
        if self._thread is None:
            return False
        self._thread.frames.append(frame)
        return True

    def _number(self, line: int, number: int) -> None:
        """Gdb counts a thread's frames; where it looks at one thread only, no line stands before them."""
        if self._thread is None or number <= self._thread.latest:
            self._begin(line, _Open("", frames=[]))
        if self._thread is not None:
            self._thread.latest = number

    def _beside(self, number: int, text: str) -> bool:
        within = self._thread is not None and not self._thread.of_spy
        if within and (text.startswith(_SOURCE) or FAULT_MORE.fullmatch(text)):
            self._cut(text)
            return True
        if found := _PROCESS.match(text):
            pid, before = int(found["pid"]), self._sample
            self._process(number, before is not None and before.pid not in (None, pid)).pid = pid
            return True
        if found := _PARENT.match(text):
            if self._sample is not None:
                self._sample.parent = int(found["pid"])
            return True
        if found := _ATTACHED.match(text):
            return self._attached(number, int(found["pid"]))
        if found := _RANK.fullmatch(text):
            before = self._sample
            self._process(number, before is not None and before.rank is not None).rank = int(found["rank"])
            return True
        if text.startswith("Timeout (") and self._sample is not None and (self._sample.threads or self._thread):
            before = self._sample
            again = self._process(number, True)
            again.rank, again.pid, again.node = before.rank, before.pid, before.node
        return self._told(number, text) or self._failed(number, text) or _BESIDE.match(text) is not None

    def _cut(self, text: str) -> None:
        """Faulthandler shows the innermost hundred frames of a thread."""
        if self._thread is not None and text == "  ...":
            self._thread.cut = True

    def _attached(self, number: int, pid: int) -> bool:
        """Gdb says at the end, too, whom it looked at."""
        if self._sample is not None and self._sample.pid in (None, pid):
            self._sample.pid = pid
        else:
            self._process(number, self._sample is not None).pid = pid
        return True

    def _told(self, number: int, text: str) -> bool:
        """Lines that somebody put before a stack: when it was taken, and of whom."""
        pairs = list(_PAIR.finditer(text)) if len(text) < 500 and not text.startswith(" ") else []
        time = said_time(text.strip("#=*- []")) if len(text) < 60 else None
        if not (pairs and _AROUND.fullmatch(_PAIR.sub("", text))) and time is None:
            return False
        keys = {pair["key"] for pair in pairs} | ({"time"} if time is not None else set())
        before = self._sample
        taken = before is not None and any(getattr(before, key) is not None for key in keys & {"rank", "pid", "time"})
        sample = self._process(number, taken)
        for pair in pairs:
            _tell(sample, pair["key"], pair["value"])
        if time is not None:
            sample.time = time
        return True

    def _failed(self, number: int, text: str) -> bool:
        if not _FAILED.match(text):
            return False
        sample = self._sample if self._sample is not None and not self._sample.error else self._process(number, False)
        sample.error = sample.error or text[:1_000]
        return True


def _opened(head: re.Pattern[str], found: re.Match[str]) -> _Open:
    spied = head is SPY_HEAD
    active = found["status"] == "active" if spied else None
    thread = _Open(found["id"], found["name"] or "", active, [], reverse=head is _PYSTACK_HEAD, of_spy=spied)
    thread.of_fault = head is FAULT_HEAD
    return thread


def _tell(sample: Sample, key: str, value: str) -> None:
    if key in ("rank", "pid") and value.isdecimal() and value.isascii() and len(value) <= 10:
        setattr(sample, key, int(value))
    elif key in ("node", "host", "hostname"):
        sample.node = value[:253]
    elif key == "process_type":
        sample.process_type = value[:64]
    elif key in ("time", "timestamp", "captured"):
        sample.time = said_time(value) or sample.time


def _frame_of(text: str) -> dict[str, object] | None:
    """One frame as py-spy's JSON has it."""
    if found := _FRAME.fullmatch(text):
        return _python(found) if found["kind"] in (None, "Python") else _library(found)
    if text.startswith("#"):
        if found := _FULL_FRAME.match(text):
            return _python(found)
        return _native(text)
    if found := _BUILT_IN.match(text):
        return {"name": found["function"], "filename": "<built-in>"}
    return None


def _python(found: re.Match[str]) -> dict[str, object]:
    line = found["line"]
    return {"name": found["function"], "filename": found["file"], "line": int(line) if line.isdecimal() else 0}


def _library(found: re.Match[str]) -> dict[str, object]:
    """Pystack puts the library behind a native function."""
    frame = _python(found)
    function, _, library = found["function"].rpartition(" (")
    if function and library.endswith(")"):
        frame["name"] = function
        frame["filename"] = found["file"] if "?" not in found["file"] else library[:-1]
    return frame


def _native(text: str) -> dict[str, object] | None:
    """``#3  0x00007f… in name (arguments) at file.cpp:29``, or ``from /lib/name.so``."""
    found = _NATIVE_FRAME.match(text)
    if found is None:
        return None
    call, _, place = text[found.end() :].rpartition(" at ")
    if not call:
        call, _, place = text[found.end() :].rpartition(" from ")
    call = call or place
    name = call.partition(" (")[0]
    if name == call and not call.endswith(")"):
        return None
    file, _, line = place.rpartition(":")
    if file and line.isdecimal() and line.isascii() and len(line) < 10:
        return {"name": name[:500], "filename": file[:1_000], "line": int(line)}
    return {"name": name[:500], "filename": place[:1_000] if place != call else "?"}


def _spied(text: str) -> dict[str, object] | None:
    if not text.startswith("    ") or text[4:5] in ("", " ", "(") or not text.endswith(")"):
        return None
    name, _, place = text[4:-1].rpartition(" (")
    if not name or not place or '"' in place:
        return None
    file, _, line = place.rpartition(":")
    if file and line.isdecimal() and line.isascii() and len(line) < 10:
        return {"name": name[:500], "filename": file[:1_000], "line": int(line)}
    return {"name": name[:500], "filename": place[:1_000]}


def _recognised(source: Source, texts: Sequence[str]) -> bool:
    """Whether sampled lines are those of stacks and hardly anything else, or of a sample that failed.

    What died with a fatal error is left to the logs: there the error counts for more than the stack.
    """
    if is_other(source.file) or any("Fatal Python error: " in text for text in texts):
        return False
    reader = _Reader()
    # The last line may have been cut off.
    for number, text in enumerate(texts[:-1], 1):
        if text.strip():
            reader.take(number, text)
    samples = reader.finish(True)
    if reader.known * 100 < _LEAST_SHARE * (reader.known + reader.unknown):
        return False
    if any(sample.threads for sample in samples):
        return True
    # A process that has only just begun, or is about to end, has no frames.
    return named(source.file) and any(sample.error or sample.pid is not None for sample in samples)


def read(source: Source, texts: Sequence[str]) -> Dumped | None:
    """The samples of a file, null if the sampled lines are of something else. Raises OSError."""
    if not _recognised(source, texts):
        return None
    reader = _Reader()
    unused: list[Unused] = []
    for line in read_lines(source.path):
        if line.offset >= MOST_BYTES or len(reader.samples) > MOST_SAMPLES:
            unused.append(Unused(source.file, line.number, "too many stacks; from here on they are left aside"))
            break
        reader.take(line.number, line.text)
    with source.path.open("rb") as file:
        file.seek(-1, 2)
        whole = file.read(1) == b"\n"
    return Dumped(source.file, reader.finish(whole), reader.unknown, unused)
