"""Where stages write down their state: in memory, or in files that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from schemas.codec import CodecError, decode, encode
from schemas.results import Snapshot


class SnapshotStore(Protocol):
    """Keeps the latest snapshot of each stage and partition."""

    def save(self, snapshot: Snapshot) -> None:
        """Replace the stage's snapshot; on return it is safe."""

    def load(self, stage: str, partition: int) -> Snapshot | None:
        """The latest snapshot, or null."""


class MemorySnapshots:
    """Snapshots in memory, encoded, so that nothing is shared with the stage that wrote them."""

    def __init__(self) -> None:
        self._saved: dict[tuple[str, int], bytes] = {}

    def save(self, snapshot: Snapshot) -> None:
        """Replace the stage's snapshot."""
        self._saved[snapshot.stage, snapshot.partition] = encode(snapshot)

    def load(self, stage: str, partition: int) -> Snapshot | None:
        """The latest snapshot, or null."""
        saved = self._saved.get((stage, partition))
        return None if saved is None else decode("snapshot", saved)


class SnapshotError(ValueError):
    """A snapshot file that cannot be read; the message names it."""


class FileSnapshots:
    """One file a stage and partition under ``root``; written beside, synced, then renamed over the old one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def _path(self, stage: str, partition: int) -> Path:
        return self._root / f"{stage}-{partition}.json"

    def save(self, snapshot: Snapshot) -> None:
        """Replace the stage's snapshot; on return it is on disk."""
        path = self._path(snapshot.stage, snapshot.partition)
        beside = path.with_suffix(".tmp")
        with beside.open("wb") as file:
            file.write(encode(snapshot))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(self._root, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def load(self, stage: str, partition: int) -> Snapshot | None:
        """The latest snapshot, or null. Raises SnapshotError for a damaged file."""
        path = self._path(stage, partition)
        if not path.exists():
            return None
        try:
            snapshot: Snapshot = decode("snapshot", path.read_bytes())
        except CodecError as error:
            raise SnapshotError(f"{path}: {error}") from None
        return snapshot
