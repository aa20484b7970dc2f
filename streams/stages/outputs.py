"""What a stage returns: records and where they go. A step returns; it never sends."""

from __future__ import annotations

import msgspec


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A record for a topic; ``partition`` only where it must reach one whatever its key.

    ``value`` are the record's bytes where somebody had to see them already; they are not made twice.
    """

    topic: str
    key: str
    record: msgspec.Struct
    time: int
    value: bytes = b""
    partition: int | None = None
