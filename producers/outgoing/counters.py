"""What became of records on their way out, counted."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class DropReason(StrEnum):
    """Why a record will not reach its topic."""

    INBOX_FULL = "inbox full"
    SPOOL_FULL = "spool full"
    SPOOL_FAILED = "spool failed"
    DAMAGED = "damaged"
    TOO_LARGE = "too large"
    REFUSED = "refused"
    CLOSED = "closed"


def _zeros() -> dict[DropReason, int]:
    return dict.fromkeys(DropReason, 0)


class Counters(msgspec.Struct, kw_only=True):
    """Counts since the start of this boot; readable from any thread, since each has one writer at a time.

    ``failed_records``: failures after which a record is sent again, one for each try. ``recovered_records``: read
    from what an earlier boot left. ``spooled_records``: written to disk. A dropped record may still arrive if it was
    with the transport when its file had to go; what was damaged counts as at least one record and one event.
    """

    put_records: int = 0
    put_events: int = 0
    sent_records: int = 0
    sent_events: int = 0
    failed_records: int = 0
    spooled_records: int = 0
    recovered_records: int = 0
    letters: int = 0
    dropped_records: dict[DropReason, int] = msgspec.field(default_factory=_zeros)
    dropped_events: dict[DropReason, int] = msgspec.field(default_factory=_zeros)

    def drop(self, reason: DropReason, records: int, events: int) -> None:
        """Count what is lost."""
        self.dropped_records[reason] += records
        self.dropped_events[reason] += events
