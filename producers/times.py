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
_FRACTION = r"(?:[.,](?P<fraction>\d{1,9}))?"
_RANK = r"(?:\[[A-Za-z_]{1,32}\d{1,6}\]: ?)?"
# Up to three short groups may stand before the date: a rank, a level, a logger, a pod, what dmesg -x says.
_LEAD = (
    r"\s{0,16}(?:(?:\[[^\]\d][^\]]{0,80}\]:?|\([^)]{0,80}\)|[A-Z]{4,8}:?|[a-z]{3,8} {0,4}:[a-z]{2,6} {0,4}:)\s{0,4})"
    r"{0,3}(?:\[NeMo [A-Z] |datetime:\s{0,4})?"
)
_FULL = re.compile(
    _RANK
    + _LEAD
    + r"\[?(?P<date>\d{4}[-/]\d\d[-/]\d\d)[ T_]"
    + _CLOCK
    + _FRACTION
    + r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_JSON = re.compile(
    r"\{[^\n]{0,400}?\"(?:timestamp|asctime|time|ts|@timestamp)\": ?\"(?P<date>\d{4}-\d\d-\d\d)[ T]"
    + _CLOCK
    + _FRACTION
    + r"(?P<zone>Z|[+-]\d\d:?\d\d)?\""
)
_GLOG_YEAR = re.compile(_RANK + r"[VDIWECF](?P<date>\d{8}) " + _CLOCK + r"\.(?P<fraction>\d{6}) {1,8}\d{1,10} \S")
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: at for at, name in enumerate(_NAMES, 1)}
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_DAY = " {1,2}(?P<day>\\d{1,2}) "
# dmesg -T and Storage Scale, with the year at the end.
_CTIME = re.compile(
    r"\[?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) " + _MONTH + _DAY + _CLOCK + _FRACTION + r" (?P<year>\d{4})(?:\]|:|$)"
)
# Fabric manager, with the year in the middle.
_MIDDLE = re.compile(r"\[" + _MONTH + _DAY + r"(?P<year>\d{4}) " + _CLOCK + r"\]")
_SYSLOG = re.compile(_MONTH + _DAY + _CLOCK + _FRACTION + r" [\w.-]{1,253} [^\s:]{1,128}:")
_TORCH = re.compile(_RANK + r"[VDIWECF](?P<date>\d{4}) " + _CLOCK + r"\.(?P<fraction>\d{6}) {1,8}\d{1,10} \S")
_NATIVE = re.compile(_RANK + r"\[[VDIWECF](?P<date>\d{3,4}) " + _CLOCK + r"\.\d{9} [^\s\]]{1,200}\]")
_VLLM = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<month>\d\d)-(?P<day>\d\d) "
    + _CLOCK
    + r" (?:\[[^\]]{1,200}\]|[^\s\]]{1,200}\])"
)
_CANCELLED = re.compile(r"\bCANCELLED AT (?P<date>\d{4}-\d\d-\d\d)T" + _CLOCK + r"(?![\d.])")
_REPORT = re.compile(r"^ {0,8}time {0,12}: (\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)$", re.MULTILINE)


_MOST_WORDS = 1_000


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
    if found := _FULL.match(text) or (text.startswith("{") and _JSON.match(text)) or None:
        year, month, day = (int(part) for part in re.split("[-/]", found["date"]))
        return _moment(_at(year, month, day, found["clock"]), found["fraction"], found["zone"])
    if found := _GLOG_YEAR.match(text):
        date = int(found["date"])
        return _moment(_at(date // 10_000, date // 100 % 100, date % 100, found["clock"]), found["fraction"])
    if found := _CTIME.match(text):
        return _moment(
            _at(int(found["year"]), _MONTHS[found["month"]], int(found["day"]), found["clock"]), found["fraction"]
        )
    if found := _MIDDLE.match(text):
        return _moment(_at(int(found["year"]), _MONTHS[found["month"]], int(found["day"]), found["clock"]), "")
    return None


def _moment(base: int | None, fraction: str | None, zone: str | None = None) -> Moment | None:
    if base is None:
        return None
    digits = fraction or ""
    return Moment(base - _zone(zone or "Z") + int((digits + "0" * 9)[:9]), "printed", 10 ** (9 - len(digits)))


def printed(text: str, reference: int) -> Moment | None:
    """The time that a line begins with; a form without a year gets the one that lies nearest to ``reference``.

    The C++ loggers of PyTorch print nine digits that are not those of the second they stand behind, so whole seconds
    are kept. Seconds since boot, as the kernel's ring buffer has them, are no time.
    """
    if moment := dated(text):
        return moment
    if found := _TORCH.match(text):
        date = int(found["date"])
        return _moment(_nearest(date // 100, date % 100, found["clock"], reference), found["fraction"])
    if found := _NATIVE.match(text):
        date = int(found["date"])
        return _moment(_nearest(date // 100, date % 100, found["clock"], reference), "")
    if found := _VLLM.match(text):
        return _moment(_nearest(int(found["month"]), int(found["day"]), found["clock"], reference), "")
    if found := _SYSLOG.match(text):
        month = _MONTHS[found["month"]]
        return _moment(_nearest(month, int(found["day"]), found["clock"], reference), found["fraction"])
    return None


def reported(text: str) -> Moment | None:
    """The latest time in a failure report of torchrun, by the second."""
    times = [moment.time for clock in _REPORT.findall(text) if (moment := dated(clock)) and possible(moment.time)]
    return Moment(max(times), "printed", SECOND) if times else None


def cancelled(text: str) -> Moment | None:
    """When a job or step was ended, in Slurm's words, by the second and by the node's clock.

    >>> cancelled("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-29T18:16:10 ***").time
    1795976170000000000
    """
    found = _CANCELLED.search(text[:_MOST_WORDS])
    if found is None:
        return None
    year, month, day = (int(part) for part in found["date"].split("-"))
    return _moment(_at(year, month, day, found["clock"]), "")


def year_of(time: int) -> int:
    """The year of a time in nanoseconds."""
    return (_EPOCH + timedelta(seconds=time // SECOND)).year


def _nearest(month: int, day: int, clock: str, reference: int) -> int | None:
    year = year_of(reference)
    # Four years either way, so that a 29 February always finds one.
    found = [_at(candidate, month, day, clock) for candidate in range(year - 4, year + 5)]
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
