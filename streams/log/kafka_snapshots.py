"""Snapshots in the compacted topic: each stage's lies in the partition with its number."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from schemas.codec import CodecError, decode, encode, headers
from schemas.results import Snapshot
from schemas.topics import MIB
from streams.log.kafka import KafkaLog
from streams.snapshots import SnapshotError

PACKED_FROM = 16 * MIB
"""Snapshots of so many bytes are packed: what very many ranks are known for says mostly the same of each."""
MOST_UNPACKED = 1024 * MIB
FIRST_STEP = 16
"""Entries to look at first, and in memory at once: one may have tens of megabytes."""


class KafkaSnapshots:
    """Keeps the latest snapshot of each stage and partition in the log's ``snapshots`` topic."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log

    def save(self, snapshot: Snapshot) -> None:
        """Replace the stage's snapshot; on return the cluster has it.

        Raises TooLargeError where the topic does not take it, and LogError.
        """
        self._log.append(
            "snapshots",
            _key(snapshot.stage, snapshot.partition),
            _packed(encode(snapshot)),
            headers("snapshot"),
            snapshot.end,
            snapshot.partition % self._log.partitions("snapshots"),
        )
        self._log.flush()

    def load(self, stage: str, partition: int) -> Snapshot | None:
        """The latest snapshot, or null if there is none or it was deleted by an empty record.

        The newest lie at the end: it is read backwards, in steps that grow. Raises SnapshotError for one that cannot be
        read, and LogError.
        """
        place = partition % self._log.partitions("snapshots")
        begin, until = self._log.begin("snapshots", place), self._log.end("snapshots", place)
        step = FIRST_STEP
        while until > begin:
            since = max(begin, until - step)
            value = self._last(place, since, until, _key(stage, partition))
            if value is not None:
                return _decoded(value, stage, partition) if value else None
            until, step = since, step * 4
        return None

    def forget(self, stages: Iterable[str], partitions: int) -> None:
        """Delete the snapshots of these stages: they begin anew, with what their topics still hold. Raises LogError."""
        for stage in stages:
            for number in range(partitions):
                place = number % self._log.partitions("snapshots")
                self._log.append("snapshots", _key(stage, number), b"", headers("snapshot"), 0, place)
        self._log.flush()

    def _last(self, place: int, since: int, until: int, key: bytes) -> bytes | None:
        """The value of the last entry with this key in a range of offsets."""
        found: bytes | None = None
        while since < until:
            entries = self._log.read("snapshots", place, since, min(FIRST_STEP, until - since))
            if not entries:
                break
            for entry in entries:
                if entry.key == key and entry.offset < until:
                    found = entry.value
            since = entries[-1].offset + 1
        return found


def _key(stage: str, partition: int) -> bytes:
    return f"{stage}|{partition}".encode()


def _packed(value: bytes) -> bytes:
    return zlib.compress(value, 1) if PACKED_FROM <= len(value) <= MOST_UNPACKED else value


def _unpacked(value: bytes) -> bytes:
    """What was packed; JSON as it is. Raises CodecError for what cannot be unpacked or would fill the memory."""
    if value.startswith(b"{"):
        return value
    unpack = zlib.decompressobj()
    try:
        found = unpack.decompress(value, MOST_UNPACKED)
    except zlib.error as error:
        raise CodecError(f"neither JSON nor packed: {error}") from None
    if not unpack.eof:
        raise CodecError("it is cut short or too large")
    return found


def _decoded(value: bytes, stage: str, partition: int) -> Snapshot:
    try:
        snapshot: Snapshot = decode("snapshot", _unpacked(value))
    except CodecError as error:
        raise SnapshotError(f"the snapshot of {stage} {partition} cannot be read: {error}") from None
    return snapshot
