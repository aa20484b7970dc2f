"""What a worker says of records that became dead letters."""

from __future__ import annotations

from streams_support import CONFIG, at

from rankwatch.letters import QUIET_LOOKS, DeadLetters
from schemas.codec import headers
from streams.live import LiveStages
from streams.log.memory import MemoryLog
from streams.snapshots import MemorySnapshots

WHERE = "could not be used; see topic p.dead-letters, or the table dead_letters, for the reason"


def spoil(log: MemoryLog, live: LiveStages, count: int) -> None:
    """So many records that nobody can read."""
    for _ in range(count):
        log.append("logs", b"job|0", b"{", headers("log"), at(4), 0)
    since = live.next_offsets()["logs", 0]
    live.take([(("logs", 0), log.read("logs", 0, since, count))])


def test_the_first_is_told_at_once_and_the_others_once_a_minute_together() -> None:
    log = MemoryLog(1)
    live = LiveStages("rank", log, MemorySnapshots(), CONFIG)
    letters = DeadLetters([live], "p.dead-letters")
    assert letters.look() == ""
    live.own({0})
    assert letters.look() == ""
    spoil(log, live, 1)
    assert letters.look() == f"1 record {WHERE}"
    spoil(log, live, 2)
    assert {letters.look() for _ in range(QUIET_LOOKS - 1)} == {""}
    spoil(log, live, 3)
    assert letters.look() == f"5 records {WHERE}"
    assert {letters.look() for _ in range(2 * QUIET_LOOKS)} == {""}
    spoil(log, live, 1)
    assert letters.look() == f"1 record {WHERE}"


def test_counts_that_begin_anew_with_an_assignment_are_counted_on() -> None:
    log = MemoryLog(1)
    live = LiveStages("rank", log, MemorySnapshots(), CONFIG)
    letters = DeadLetters([live], "p.dead-letters")
    live.own({0})
    spoil(log, live, 3)
    assert letters.look().startswith("3 records ")
    live.own(set())
    live.own({0})
    live.take([(("logs", 0), log.read("logs", 0, 0, 2))])
    assert [said for _ in range(QUIET_LOOKS) if (said := letters.look())] == [f"2 records {WHERE}"]
