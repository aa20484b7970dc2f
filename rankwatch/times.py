"""Times on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from rankwatch.errors import UsageError

_EPOCH = re.compile(r"\d{9,11}(?:\.\d{1,9})?")
_START = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str) -> int:
    """Nanoseconds UTC of ISO 8601 or Unix seconds; a time without a zone is UTC. Raises UsageError."""
    if _EPOCH.fullmatch(text):
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + int(part.ljust(9, "0") or "0")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time; write 2026-11-29T12:00:00Z or Unix seconds") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _START) // timedelta(microseconds=1) * 1000
