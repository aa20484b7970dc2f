"""Open windows beyond a bound stay in the log: what is read back is what was there, and not much else is read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from streams_support import SECOND

from schemas.codec import encode, headers
from schemas.identity import Identity
from schemas.ports import Entry
from schemas.results import Window
from streams.log.memory import MemoryLog
from streams.stages.summaries import NEAR, READ_LIMIT, Summaries

WINDOWS, PARTS, RANKS = 40, 5, 8


class Backlog:
    """A windows partition that parts of a job filled one after another, so that each window lies in several places."""

    def __init__(self, gone_before: int = 0) -> None:
        self.log = MemoryLog(1)
        self.read = 0
        self.gone_before = gone_before
        self.summaries = Summaries(self._read)
        for part in range(PARTS):
            for number in range(WINDOWS):
                for rank in range(RANKS):
                    self._append(f"{part}-{number}-{rank}", number)

    def _append(self, name: str, number: int) -> None:
        who = Identity(job="job", node="node", rank=0)
        window = Window(id=name, identity=who, start=number * SECOND, end=(number + 1) * SECOND)
        self.log.append("windows", b"job", encode(window), headers("window"), 0)
        (entry,) = self.log.read("windows", 0, self.log.end("windows", 0) - 1, 1)
        self.summaries.add(entry, window)

    def _read(self, offset: int, limit: int) -> Sequence[Entry]:
        found = self.log.read("windows", 0, max(offset, self.gone_before), limit)
        self.read += len(found)
        return found

    def names(self, number: int) -> set[str]:
        return {f"{part}-{number}-{rank}" for part in range(PARTS) for rank in range(RANKS)}


@pytest.mark.parametrize("windows_held", [0, 1, 3, WINDOWS])
def test_each_window_comes_back_whole_and_hardly_anything_else_is_read(windows_held: int) -> None:
    backlog = Backlog()
    size = backlog.summaries.held_bytes // WINDOWS
    most = size * windows_held + size // 2
    backlog.summaries.bound(most)
    assert backlog.summaries.held_bytes <= max(most, 2 * size)
    for number in range(WINDOWS):
        found, lost = backlog.summaries.pop((number + 1) * SECOND)
        assert ({one.id for one in found}, lost) == (backlog.names(number), 0)
        assert backlog.summaries.held_bytes <= most + 2 * size
        backlog.summaries.bound(most)
    assert backlog.read <= WINDOWS * PARTS * (RANKS + NEAR)
    assert len(backlog.summaries) == backlog.summaries.held_bytes == 0


def test_what_the_log_has_no_more_is_counted_as_lost() -> None:
    backlog = Backlog(gone_before=WINDOWS * RANKS + 4)
    backlog.summaries.bound(1)
    backlog.summaries.pop(SECOND)
    found, lost = backlog.summaries.pop(2 * SECOND)
    assert (len(found), lost) == ((PARTS - 1) * RANKS, RANKS)
    assert READ_LIMIT > RANKS


def test_without_a_way_to_read_back_all_stays() -> None:
    backlog = Backlog()
    kept = Summaries()
    for entry in backlog.log.read("windows", 0, 0, 100):
        kept.add(entry, Window(id=str(entry.offset), identity=Identity(job="j", node="n"), start=0, end=entry.offset))
    kept.bound(1)
    assert kept.count == 100
    assert kept.first_offset == 0
    assert [len(found) for found, _ in (kept.pop(5), kept.pop(5))] == [1, 0]
