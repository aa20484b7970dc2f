"""Times on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from rankwatch.errors import UsageError

_UNIX = re.compile(r"(-?)(\d{1,7}|\d{9,20})(?:\.(\d+))?", re.ASCII)
"""Not of eight digits: those are a day, 20261129."""

_MILLISECONDS = 13
"""Digits of Unix time in milliseconds, from 2001 to 2286."""

_START = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _AFTER_LAST = 0, (datetime(2201, 1, 1, tzinfo=UTC) - _START) // timedelta(seconds=1) * 1_000_000_000


def parse_time(text: str) -> int:
    """Nanoseconds UTC of ISO 8601, Unix seconds or, with 13 digits, milliseconds; without a zone it is UTC.

    Raises UsageError for what is no time, and for times outside the years 1970 to 2200.
    """
    unix = _UNIX.fullmatch(text)
    time = _of_iso(text) if unix is None else _of_unix(unix[1], unix[2], unix[3] or "")
    if not _FIRST <= time < _AFTER_LAST:
        raise UsageError(f"{text!r} lies outside the years 1970 to 2200; write 2026-11-29T12:00:00Z or Unix seconds")
    return time


def _of_unix(sign: str, whole: str, part: str) -> int:
    places = 6 if len(whole) == _MILLISECONDS else 9
    time = int(f"{whole}{part[:places].ljust(places, '0')}")
    return -time if sign else time


def _of_iso(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time; write 2026-11-29T12:00:00Z or Unix seconds") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _START) // timedelta(microseconds=1) * 1000
