"""Writes the newest file of a spool, frame behind frame, and begins another when it has grown long enough."""

from __future__ import annotations

import contextlib
import errno
import os

from producers.outgoing.folder import Folder
from producers.outgoing.frames import HEADER, Segment, frame


class SegmentWriter:
    """``active`` is the file that still grows, null before the first frame and after ``roll``."""

    def __init__(self, folder: Folder, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._file = -1
        self.active: Segment | None = None
        self.next = 1

    def write(self, body: bytes, events: int) -> None:
        """Write one frame into the active file, a new one if need be. Raises OSError; then the file is as before."""
        active = self._room_for(HEADER + len(body))
        data = frame(body, active.records, active.events)
        try:
            if os.pwrite(self._file, data, active.size) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            # The next frame is written over what came of this one; should we die before, it must not be found.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, active.size)
            raise
        active.size += len(data)
        active.records += 1
        active.events += events

    def roll(self) -> None:
        """Write no more into the active file."""
        if self.active is not None:
            os.close(self._file)
            self.active = None

    def _room_for(self, length: int) -> Segment:
        active = self.active
        if active is None or (active.size and active.size + length > self._segment_bytes):
            self.roll()
            # A number whose file could not be made is not used again.
            number, self.next = self.next, self.next + 1
            active, self._file = self._folder.create(number)
            self.active = active
        return active
