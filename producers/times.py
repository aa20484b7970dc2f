"""Printed times, in the forms in which training logs print them. All are UTC unless they say otherwise."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from schemas.events import TimeSource

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = int((datetime(2000, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * SECOND
LATEST = int((datetime(2101, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * SECOND
"""Times outside of [EARLIEST, LATEST) cannot be."""
APART = 31 * 24 * HOUR
"""How far from the median of a recording a time may lie; one stray row must not stretch it over years."""
SOME_YEAR = EARLIEST + 182 * 24 * HOUR
"""The reference where nothing names a year: the middle of the first possible one."""

_CLOCK = r"(?P<clock>\d\d:\d\d:\d\d)"
_RANK = r"(?:\[[A-Za-z_]{1,32}\d{1,6}\]: ?)?"
# Up to three short groups may stand before the date: a rank, a level, a logger, a pod.
_LEAD = r"\s{0,16}(?:(?:\[[^\]\d][^\]]{0,80}\]:?|\([^)]{0,80}\)|[A-Z]{4,8}:?)\s{1,4}){0,3}(?:datetime:\s{0,4})?"
_FULL = re.compile(
    _RANK + _LEAD + r"\[?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[ T_]" + _CLOCK + r"(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_TORCH = re.compile(_RANK + r"[VDIWEC](?P<date>\d{3,4}) " + _CLOCK + r"\.(?P<fraction>\d{6}) {1,8}\d+ \S")
_NATIVE = re.compile(_RANK + r"\[[VDIWEC](?P<date>\d{3,4}) " + _CLOCK + r"\.\d{9} [^\s\]]+\]")
_REPORT = re.compile(r"^ {0,8}time {0,12}: (\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)$", re.MULTILINE)


class Moment(msgspec.Struct, frozen=True, gc=False):
    """A time in nanoseconds UTC, where it is from, and how far from it the truth may lie."""

    time: int
    source: TimeSource = "printed"
    precision: int = 0


def possible(time: int) -> bool:
    """Whether a time lies in the years 2000 to 2100."""
    return EARLIEST <= time < LATEST


def from_seconds(value: Any) -> int | None:
    """Unix seconds as nanoseconds, by the microsecond; null if it is not a number or lies outside 2000 to 2100."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        time = round(value * 1_000_000) * 1_000
    except (OverflowError, ValueError):
        return None
    return time if possible(time) else None


def dated(text: str) -> Moment | None:
    """The time that a line begins with, if it names the year; not checked for being possible."""
    found = _FULL.match(text)
    if not found:
        return None
    year, month, day = (int(part) for part in re.split("[-/]", found["date"]))
    fraction = found["fraction"] or ""
    base = _at(year, month, day, found["clock"])
    if base is None:
        return None
    offset = _zone(found["zone"] or "Z")
    return Moment(base - offset + int((fraction + "0" * 9)[:9]), "printed", 10 ** (9 - len(fraction)))


def printed(text: str, reference: int) -> Moment | None:
    """The time that a line begins with; a form without a year gets the one that lies nearest to ``reference``.

    The C++ loggers of PyTorch print nine digits that are not those of the second they stand behind, so whole seconds
    are kept.
    """
    if moment := dated(text):
        return moment
    if found := _TORCH.match(text):
        base = _nearest(int(found["date"]), found["clock"], reference)
        return None if base is None else Moment(base + int(found["fraction"]) * 1_000, "printed", 1_000)
    if found := _NATIVE.match(text):
        base = _nearest(int(found["date"]), found["clock"], reference)
        return None if base is None else Moment(base, "printed", SECOND)
    return None


def reported(text: str) -> Moment | None:
    """The latest time in a failure report of torchrun, by the second."""
    times = [moment.time for clock in _REPORT.findall(text) if (moment := dated(clock)) and possible(moment.time)]
    return Moment(max(times), "printed", SECOND) if times else None


def year_of(time: int) -> int:
    """The year of a time in nanoseconds."""
    return (_EPOCH + timedelta(seconds=time // SECOND)).year


def _nearest(date: int, clock: str, reference: int) -> int | None:
    year = year_of(reference)
    # Four years either way, so that a 29 February always finds one.
    found = [_at(candidate, date // 100, date % 100, clock) for candidate in range(year - 4, year + 5)]
    return min((time for time in found if time is not None), key=lambda time: abs(time - reference), default=None)


def _at(year: int, month: int, day: int, clock: str) -> int | None:
    days = _days(year, month, day)
    hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:])
    # A leap second counts as the first of the next minute.
    if days is None or hour > 23 or minute > 59 or second > 60:
        return None
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * SECOND


@lru_cache(maxsize=4_096)
def _days(year: int, month: int, day: int) -> int | None:
    try:
        return (datetime(year, month, day, tzinfo=UTC) - _EPOCH).days
    except ValueError:
        return None


def _zone(zone: str) -> int:
    if zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3_600 + int(zone[-2:]) * 60
    return (-seconds if zone[0] == "-" else seconds) * SECOND
