"""Log files: their records with the times that they print, and notes on what had to be mended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low

import msgspec

from producers.clocks import settle, stamped, written
from producers.envelopes.evidence import OWN, Form
from producers.envelopes.unwrap import unwrapped
from producers.grouping import Record, clipped, group
from producers.inputs import Unused
from producers.lines import LIMIT, Line, read_lines
from producers.scan import Source
from producers.times import APART, SECOND, SOME_YEAR, Moment, dated, possible, printed, reported
from schemas.text import iteration_of

_LOGGERS = re.compile(r"\[?[VDIWECF](?:\d{3,4} \d\d:\d\d:\d\d| [A-Za-z]{1,64}\.cpp:)")
_SAMPLED = 200


class LogFile(msgspec.Struct, frozen=True):
    """A log file that was read: ``moments`` and ``iterations`` stand beside ``records``, null where nothing is told.

    ``teed`` if labels like ``[rank3]:`` stand before all that workers print, so that torchrun put them there and their
    numbers are local ranks; ``logged`` if PyTorch's loggers have put such a label before a line. ``node`` is where it
    was written and ``job`` whose it is, as far as its envelope and its name say. ``by_second`` if its envelope tells
    times no finer. ``shifted`` is by how much (ns) its times were set back.
    """

    file: str
    records: list[Record]
    unused: list[Unused]
    moments: list[Moment | None] = []
    iterations: list[int | None] = []
    teed: bool = False
    logged: bool = False
    node: str = ""
    job: str = ""
    by_second: bool = False
    shifted: int = 0

    def first(self) -> int | None:
        """The first printed time."""
        return next((moment.time for moment in self.moments if moment is not None), None)

    def last(self) -> int | None:
        """The last of the times."""
        return max((moment.time for moment in self.moments if moment is not None), default=None)


def read_log(source: Source, forms: Sequence[Form] = OWN) -> LogFile:
    """The logical records of a file in envelopes of these forms, not yet timed. Raises OSError."""
    notes = Notes(source.file)
    records = group(notes.noted(unwrapped(notes.read(read_lines(source.path)), forms)))
    long = [record for record in records if len(record.text) > LIMIT]
    notes.unused += [
        Unused(source.file, record.line, f"record of {record.lines} lines cut to {LIMIT}") for record in long
    ]
    if long:
        records = [msgspec.structs.replace(record, text=clipped(record.text)) for record in records]
    return LogFile(source.file, records, notes.all(), teed=notes.teed, logged=notes.logged)


class Notes:
    """What had to be mended in the lines of a file, and what their labels are."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.unused: list[Unused] = []
        self.teed = False
        self.logged = False
        self._invalid: list[int] = []
        self._torn: list[int] = []
        self._nuls: list[tuple[int, int]] = []

    def read(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Looks at lines as they stand in the file."""
        for line in lines:
            if line.invalid:
                self._invalid.append(line.number)
            if line.nuls:
                self._nuls.append((line.number, line.nuls))
            yield line

    def noted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Looks at lines out of their envelopes; blank ones go."""
        for line in lines:
            if line.cut:
                self.unused.append(Unused(self._file, line.number, f"line of {line.size} bytes cut to {LIMIT}"))
            if line.torn:
                self._torn.append(line.number)
            self.teed = self.teed or is_teed(line)
            # Without a blank behind the label, which those have that others put there.
            self.logged = self.logged or (len(line.wrap.labels) == 1 and of_logger(line.text))
            if line.text.strip():
                yield line

    def all(self) -> list[Unused]:
        """All notes."""
        found = list(self.unused)
        if self._invalid:
            found.append(Unused(self._file, self._invalid[0], "invalid UTF-8, replaced", len(self._invalid)))
        if self._nuls:
            count = sum(count for _, count in self._nuls)
            found.append(Unused(self._file, self._nuls[0][0], "NUL bytes removed", count))
        if self._torn:
            reason = "envelope cut off or never ended; what it held is kept"
            found.append(Unused(self._file, self._torn[0], reason, len(self._torn)))
        return found


def is_teed(line: Line) -> bool:
    """Whether torchrun's tee put the outer label of a line there, and PyTorch cannot have.

    PyTorch labels the lines of its loggers, and those of a traceback with a blank behind the label.
    """
    labels = line.wrap.labels
    if not labels or labels[0][0] != "rank":
        return bool(labels)
    if len(labels) > 1:
        return not line.wrap.spaced
    return not (line.text.startswith(" ") or not line.text.strip() or of_logger(line.text))


def of_logger(text: str) -> bool:
    """Whether one of PyTorch's own loggers wrote a line; these print the global rank before it."""
    return _LOGGERS.match(text) is not None


def labelled(log: LogFile) -> LogFile:
    """The log with its labels back in front of single lines."""
    records = [
        msgspec.structs.replace(record, text=record.prefix + record.text)
        if record.shape in ("line", "stack")
        else record
        for record in log.records
    ]
    return msgspec.structs.replace(log, records=records)


def reference_of(logs: list[LogFile]) -> int | None:
    """The median of times with a year, over some lines of all logs; null if none of them names a year."""
    times: list[int] = []
    for log in logs:
        for record in log.records[:: max(1, len(log.records) // _SAMPLED)]:
            moment = dated(record.text) or (reported(record.text) if record.shape == "failure" else None)
            moment = moment or (None if record.stamp is None else stamped(record.stamp))
            if moment is not None and possible(moment.time):
                times.append(moment.time)
    return median_low(times) if times else None


def _believable(time: int, reference: int | None) -> bool:
    return possible(time) and (reference is None or abs(time - reference) <= APART)


def timed(log: LogFile, reference: int | None) -> LogFile:
    """The log with the times that its records print, as far as they can be believed.

    ``reference`` (ns) is a time in the middle of the recording, null if nothing in it names a year.
    """
    moments: list[Moment | None] = []
    impossible: list[int] = []
    for record in log.records:
        near = record.stamp if record.stamp is not None else SOME_YEAR if reference is None else reference
        moment = printed(record.text, near)
        if moment is None and record.shape == "failure":
            moment = reported(record.text)
        if record.stamp is not None:
            moment = written(moment, record.stamp)
            moment = msgspec.structs.replace(moment, precision=SECOND) if log.by_second else moment
        if moment is not None and not _believable(moment.time, reference):
            impossible.append(record.line)
            moment = None
        moments.append(moment)
    settled, jumps = settle(moments)
    unused = list(log.unused)
    if impossible:
        reason = "printed time cannot be, or lies a month from the others; timed by its neighbours"
        unused.append(Unused(log.file, impossible[0], reason, len(impossible)))
    leaps = [at for at, moment in enumerate(moments) if moment is not None and settled[at] is None]
    if leaps:
        reason = "printed time leaps ahead and comes back; timed by its neighbours"
        unused.append(Unused(log.file, log.records[leaps[0]].line, reason, len(leaps)))
    if jumps:
        at = jumps[0][0]
        length = max(back for _, back in jumps)
        reason = f"clock went back {-(-length // SECOND)} s; lines re-timed"
        unused.append(Unused(log.file, log.records[at].line, reason, len(jumps)))
    iterations = [iteration_of(record.text.partition("\n")[0]) for record in log.records]
    return msgspec.structs.replace(log, unused=unused, moments=settled, iterations=iterations)
