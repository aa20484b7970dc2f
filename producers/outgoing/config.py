"""Settings of the outgoing side: frozen, validated once, units in the names."""

from __future__ import annotations

import msgspec

SECOND = 1_000_000_000


class OutgoingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How events are batched and how much may wait where.

    ``batch_age_s``, ``batch_bytes``: when a batch goes out, counted from its first event, encoded, uncompressed.
    ``open_batches``, ``open_bytes``: how much may wait in batches that are not due; beyond it the oldest goes early.
    ``record_bytes``: the largest value that the log takes; an event that needs more is cut or a dead letter.
    ``letter_bytes``: how much of a value a dead letter keeps.
    ``inbox_bytes``: what callers may put between two pumps; beyond it the oldest is dropped.
    ``flight_bytes``, ``flight_records``: what is held in memory until it is safe, sent or about to be.
    ``lane_records``: how many records of one topic and key may be with the transport at once. With one they arrive in
    order whatever fails; with more, one that fails may arrive behind its followers.
    ``unspooled_s``: how long a record may be in memory only, which is what a killed process loses; with 0, everything
    that is not safe at the end of a pump is on disk.
    ``retry_s``: how long nothing is sent after a failure.
    ``spool_bytes``, ``segment_bytes``: the size of the disk spool and of its files; the oldest file is dropped whole.
    """

    batch_age_s: float = 1.0
    batch_bytes: int = 200_000
    open_batches: int = 2_000
    open_bytes: int = 8_000_000
    record_bytes: int = 900_000
    letter_bytes: int = 64_000
    inbox_bytes: int = 16_000_000
    flight_bytes: int = 32_000_000
    flight_records: int = 1_000
    lane_records: int = 1
    unspooled_s: float = 2.0
    retry_s: float = 1.0
    spool_bytes: int = 1_000_000_000
    segment_bytes: int = 8_000_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value < 0 or (value == 0 and name not in ("unspooled_s", "retry_s")):
                raise ValueError(f"{name} must be above 0, not {value}")
        for name in ("batch_age_s", "unspooled_s", "retry_s"):
            if not getattr(self, name) <= 3600:
                raise ValueError(f"{name} must be at most 3600, not {getattr(self, name)}")
        self._at_most("batch_bytes", self.record_bytes, "record_bytes")
        self._at_most("letter_bytes", (self.record_bytes - 4_096) // 2, "half of record_bytes less 4096")
        for name in ("inbox_bytes", "flight_bytes", "segment_bytes"):
            self._at_most("record_bytes", getattr(self, name) - 4_096, f"{name} less 4096")
        self._at_most("segment_bytes", self.spool_bytes // 2, "half of spool_bytes")

    def _at_most(self, name: str, bound: int, said: str) -> None:
        if getattr(self, name) > bound:
            raise ValueError(f"{name} must be at most {said} ({bound}), not {getattr(self, name)}")

    @property
    def batch_age_ns(self) -> int:
        """Age at which a batch is due, in nanoseconds."""
        return int(self.batch_age_s * SECOND)

    @property
    def unspooled_ns(self) -> int:
        """Longest time in memory only, in nanoseconds."""
        return int(self.unspooled_s * SECOND)

    @property
    def retry_ns(self) -> int:
        """Pause after a failure, in nanoseconds."""
        return int(self.retry_s * SECOND)
