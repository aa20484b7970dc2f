"""Snapshots in the compacted topic: each stage's lies in the partition with its number."""

from __future__ import annotations

from schemas.codec import CodecError, decode, encode, headers
from schemas.results import Snapshot
from streams.log.kafka import KafkaLog
from streams.snapshots import SnapshotError

FIRST_STEP = 16


class KafkaSnapshots:
    """Keeps the latest snapshot of each stage and partition in the log's ``snapshots`` topic."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log

    def save(self, snapshot: Snapshot) -> None:
        """Replace the stage's snapshot; on return the cluster has it. Raises LogError."""
        self._log.append(
            "snapshots",
            _key(snapshot.stage, snapshot.partition),
            encode(snapshot),
            headers("snapshot"),
            snapshot.end,
            snapshot.partition % self._log.partitions("snapshots"),
        )
        self._log.flush()

    def load(self, stage: str, partition: int) -> Snapshot | None:
        """The latest snapshot, or null. Raises SnapshotError for one that cannot be read, and LogError.

        The newest lie at the end: it is read backwards, in steps that grow.
        """
        place = partition % self._log.partitions("snapshots")
        begin, until = self._log.begin("snapshots", place), self._log.end("snapshots", place)
        step = FIRST_STEP
        while until > begin:
            since = max(begin, until - step)
            entries = self._log.read("snapshots", place, since, until - since)
            for entry in reversed(entries):
                if entry.key == _key(stage, partition) and entry.offset < until:
                    return _decoded(entry.value, stage, partition)
            until, step = since, step * 4
        return None


def _key(stage: str, partition: int) -> bytes:
    return f"{stage}|{partition}".encode()


def _decoded(value: bytes, stage: str, partition: int) -> Snapshot:
    try:
        snapshot: Snapshot = decode("snapshot", value)
    except CodecError as error:
        raise SnapshotError(f"the snapshot of {stage} {partition} cannot be read: {error}") from None
    return snapshot
