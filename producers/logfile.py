"""Log files: their records with the times that they print, their level, and notes on what had to be mended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median_low

import msgspec

from producers.clocks import settle
from producers.grouping import Record, clipped, group
from producers.inputs import Unused
from producers.lines import LIMIT, Line, read_lines
from producers.scan import Source
from producers.times import APART, SECOND, SOME_YEAR, Moment, dated, possible, printed, reported
from schemas.text import iteration_of

_LETTERS = {"V": "DEBUG", "D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "CRITICAL", "F": "CRITICAL"}
_LETTER = re.compile(r"(?:\[[A-Za-z_]{1,32}\d{1,6}\]: ?)?\[?([VDIWECF])(?:\d{3,4} \d\d:\d\d:\d\d| [A-Za-z]+\.cpp:)")
_WORD = re.compile(r"(?:^|[\[(|\s])(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)(?=[\])|:\s]|$)")
_SAMPLED = 200
_SAME = {"WARN": "WARNING", "FATAL": "CRITICAL"}


class LogFile(msgspec.Struct, frozen=True):
    """A log file that was read: ``moments`` and ``iterations`` stand beside ``records``, null where nothing is told."""

    file: str
    records: list[Record]
    unused: list[Unused]
    moments: list[Moment | None] = []
    iterations: list[int | None] = []

    def first(self) -> int | None:
        """The first printed time."""
        return next((moment.time for moment in self.moments if moment is not None), None)

    def last(self) -> int | None:
        """The last of the times."""
        return max((moment.time for moment in self.moments if moment is not None), default=None)


def level_of(text: str) -> str:
    """The level in the usual places at the head of a line, empty if there is none."""
    head = text[:120]
    if letter := _LETTER.match(head):
        return _LETTERS[letter.group(1)]
    word = _WORD.search(head.partition("\n")[0])
    return _SAME.get(word.group(1), word.group(1)) if word else ""


def read_log(source: Source) -> LogFile:
    """The logical records of a file, not yet timed. Raises OSError."""
    unused: list[Unused] = []
    invalid: list[int] = []
    nuls: list[tuple[int, int]] = []

    def noted() -> Iterator[Line]:
        for line in read_lines(source.path):
            if line.cut:
                unused.append(Unused(source.file, line.number, f"line of {line.size} bytes cut to {LIMIT}"))
            if line.invalid:
                invalid.append(line.number)
            if line.nuls:
                nuls.append((line.number, line.nuls))
            if line.text.strip():
                yield line

    records = group(noted())
    long = [record for record in records if len(record.text) > LIMIT]
    unused += [Unused(source.file, record.line, f"record of {record.lines} lines cut to {LIMIT}") for record in long]
    if invalid:
        unused.append(Unused(source.file, invalid[0], "invalid UTF-8, replaced", len(invalid)))
    if nuls:
        unused.append(Unused(source.file, nuls[0][0], "NUL bytes removed", sum(count for _, count in nuls)))
    if long:
        records = [msgspec.structs.replace(record, text=clipped(record.text)) for record in records]
    return LogFile(source.file, records, unused)


def reference_of(logs: list[LogFile]) -> int | None:
    """The median of times with a year, over some lines of all logs; null if none of them names a year."""
    times: list[int] = []
    for log in logs:
        for record in log.records[:: max(1, len(log.records) // _SAMPLED)]:
            moment = dated(record.text) or (reported(record.text) if record.shape == "failure" else None)
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
        moment = printed(record.text, SOME_YEAR if reference is None else reference)
        if moment is None and record.shape == "failure":
            moment = reported(record.text)
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
