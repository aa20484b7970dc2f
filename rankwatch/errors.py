"""What ends a command with one line for the user and exit code 2."""

from __future__ import annotations

from producers.recording import UnreadableRecording
from schemas.ports import LogError
from sinks.errors import SinkError
from streams.library.record import LibraryError
from streams.log.archive import ArchiveError
from streams.log.kafka_settings import KafkaSettingsError
from streams.silencing import SilenceError
from streams.snapshots import SnapshotError


class UsageError(Exception):
    """An argument that cannot be used; the message says what would do."""


KNOWN = (
    UsageError,
    UnreadableRecording,
    LibraryError,
    SilenceError,
    SinkError,
    ArchiveError,
    LogError,
    KafkaSettingsError,
    SnapshotError,
    OSError,
)
"""Errors that a command expects: their message is all that the user sees."""
