"""One stage at a log: what was passed over is read, what came twice is not, and the order at a window boundary."""

from __future__ import annotations

import msgspec
import pytest
from runner_support import (
    BAD,
    BAD_TICK,
    CONFIG,
    GOOD,
    TICK,
    Recorded,
    Scripted,
    entries,
    notice,
    offsets,
    runner,
    unreadable,
)
from sink_support import late, window

from schemas.codec import encode
from schemas.ports import TooLargeError
from schemas.results import Snapshot
from streams.config import StreamConfig
from streams.log.memory import MemoryLog
from streams.runner import PoisonError, Runner
from streams.snapshots import MemorySnapshots, SnapshotError
from streams.stages.outputs import Output


def test_entries_that_the_transport_passed_over_are_read_from_the_log() -> None:
    recorded = Recorded()
    found = entries(*[GOOD] * 600, log=recorded.log)
    made, stage = runner(recorded)
    made.take("logs", 0, [*found[:3], found[300], *found[590:]])
    assert offsets(stage) == list(range(600))
    assert (made.counts.entries, made.counts.gone) == (600, 0)
    assert next(call for call in recorded.calls if call.startswith("read")) == "read logs 3"


def test_a_stage_without_a_snapshot_begins_with_the_log_wherever_the_transport_does() -> None:
    recorded = Recorded()
    found = entries(*[GOOD] * 10, log=recorded.log)
    made, stage = runner(recorded)
    made.take("logs", 0, found[7:])
    assert offsets(stage) == list(range(10))


def test_entries_that_the_log_did_not_keep_are_counted_and_it_goes_on_behind_them() -> None:
    recorded = Recorded()
    found = entries(*[GOOD] * 40, log=recorded.log)
    made, stage = runner(recorded)
    made.take("logs", 0, found[:2])
    recorded.gone_before = 10
    made.take("logs", 0, found[20:22])
    assert offsets(stage) == [0, 1, *range(10, 22)]
    assert made.counts.gone == 8
    recorded.gone_before = 30
    made.take("logs", 0, found[30:])
    assert offsets(stage) == [0, 1, *range(10, 22), *range(30, 40)]
    assert made.counts.gone == 16


def test_what_was_gone_before_a_stage_began_is_not_missed() -> None:
    recorded = Recorded()
    found = entries(*[GOOD] * 9, log=recorded.log)
    recorded.gone_before = 4
    made, stage = runner(recorded)
    made.take("logs", 0, found[6:])
    assert (offsets(stage), made.counts.gone) == ([4, 5, 6, 7, 8], 0)
    recorded.gone_before = 9
    made, stage = runner(recorded)
    made.take("logs", 0, found[6:])
    assert (offsets(stage), made.counts.gone) == ([6, 7, 8], 0)


def test_entries_that_come_twice_are_taken_in_once_also_behind_a_gap_that_was_filled() -> None:
    recorded = Recorded()
    found = entries(*[GOOD] * 9, log=recorded.log)
    made, stage = runner(recorded)
    made.take("logs", 0, [found[0], found[0], found[5], found[3], found[5], found[1]])
    made.take("logs", 0, found)
    assert offsets(stage) == list(range(9))
    assert made.counts.entries == 9
    assert made.counts.bytes == 9 * len(GOOD)


def test_topics_are_told_apart() -> None:
    recorded = Recorded()
    made, stage = runner(recorded)
    made.take("logs", 0, entries(GOOD, GOOD, log=recorded.log))
    made.take("metrics", 0, entries(GOOD, topic="metrics", log=recorded.log))
    assert (offsets(stage), offsets(stage, "metrics")) == ([0, 1], [0])


@pytest.mark.parametrize(
    ("values", "at"),
    [
        ([BAD] * 4, 3),
        ([BAD, TICK, BAD, TICK, TICK, BAD, BAD], 6),
        ([BAD, BAD, BAD, GOOD, BAD, BAD, BAD, TICK, GOOD], None),
        ([GOOD, BAD, BAD, BAD, BAD], 4),
        ([BAD_TICK] * 4, 3),
        ([BAD, BAD_TICK, TICK, BAD, BAD_TICK], 4),
    ],
    ids=["in a row", "ticks between", "a good one between", "after a good one", "unreadable ticks", "of both kinds"],
)
def test_more_unreadable_records_in_a_row_than_the_limit_stop_it(values: list[bytes], at: int | None) -> None:
    recorded = Recorded()
    made, _ = runner(recorded, most_poison=3)
    found = entries(*values)
    if at is None:
        made.take("logs", 0, found)
        return
    made.take("logs", 0, found[:at])
    reason = f"4 records in a row of topic logs, partition 0 cannot be read; the last, at offset {at}: no JSON"
    with pytest.raises(PoisonError, match=rf"^{reason}\..* --most-poison 0$"):
        made.take("logs", 0, found[at:])
    letters = [letter.offset for letter in recorded.said("dead-letters", "dead_letter")]
    assert len(letters) == 4 and at in letters, "what stops it is in its topic, too"
    assert recorded.calls[-1] == "flush"


def test_each_place_has_a_limit_of_its_own_and_none_may_be_set() -> None:
    recorded = Recorded()
    made, _ = runner(recorded, most_poison=3)
    made.take("logs", 0, entries(BAD, BAD, BAD))
    made.take("metrics", 0, entries(BAD, BAD, BAD, topic="metrics"))
    assert made.counts.dead_letters == 6
    made, _ = runner(Recorded(), most_poison=0)
    made.take("logs", 0, entries(*[BAD] * 500))
    assert made.counts.dead_letters == 500


def test_a_record_that_its_topic_does_not_take_becomes_a_dead_letter_that_says_so() -> None:
    recorded = Recorded(most_bytes=600)
    made, stage = runner(recorded)
    large = Output(topic="windows", key="job1", record=window(), time=70)
    small = Output(topic="notices", key="job1", record=notice("a"), time=70)
    stage.to_close = [[large, small]]
    assert made.close()
    size = len(encode(large.record))
    [letter] = recorded.said("dead-letters", "dead_letter")
    assert letter == unreadable(
        "windows", -1, 70, f"a record of {size} bytes is more than topic windows takes", b"job1", b""
    )
    assert recorded.said("notices", "notice") == [notice("a")]
    assert made.counts.dead_letters == 1
    assert recorded.calls == ["dead-letters", "notices", "flush", "save 1"]


def test_of_a_dead_letter_that_is_too_large_all_but_its_bytes_is_kept() -> None:
    recorded = Recorded(most_bytes=600)
    made, _ = runner(recorded)
    made.take("logs", 0, entries(BAD + b"x" * 900))
    [letter] = recorded.said("dead-letters", "dead_letter")
    assert letter.reason == "no JSON; its 903 bytes are too many and stay where they were"
    assert (letter.topic, letter.partition, letter.offset, letter.key, letter.value) == ("logs", 0, 0, b"k", b"")


def test_a_state_that_is_too_large_to_be_written_down_is_told_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(snapshot: Snapshot) -> None:
        raise TooLargeError("a record of 70 bytes is more than topic snapshots takes")

    recorded = Recorded()
    made, stage = runner(recorded)
    stage.to_close = [[Output(topic="notices", key="j", record=notice(name), time=1)] for name in ("a", "b", "c")]
    with monkeypatch.context() as patched:
        patched.setattr(recorded, "save", refuses)
        assert made.close_all() and made.save() is None
    [letter] = recorded.said("dead-letters", "dead_letter")
    assert (letter.topic, letter.partition, letter.offset, letter.key) == ("snapshots", 0, 3, b"rank|0")
    assert letter.reason.endswith(
        "reads again what came since: a record of 70 bytes is more than topic snapshots takes"
    )
    assert made.counts.dead_letters == 1
    # Once it fits again it is written down.
    stage.to_close = [[]]
    assert made.close_all() and made.save() == {"logs|0": 0, "metrics|0": 0}


def test_the_order_is_emissions_then_flush_then_snapshot_at_each_boundary() -> None:
    recorded = Recorded()
    made, stage = runner(recorded)
    stage.to_close = [[Output(topic="notices", key="j", record=notice(name), time=1)] for name in ("a", "b")]
    assert made.close()
    assert recorded.calls == ["notices", "flush", "save 1", "notices", "flush", "save 2"]


def test_several_windows_may_share_one_snapshot_and_its_offsets_are_returned() -> None:
    recorded = Recorded()
    made, stage = runner(recorded)
    made.take("logs", 0, entries(GOOD, GOOD, log=recorded.log))
    stage.to_close = [[Output(topic="notices", key="j", record=notice(name), time=1)] for name in ("a", "b")]
    assert made.close_all()
    assert made.save() == {"logs|0": 2, "metrics|0": 0}
    assert recorded.calls == ["notices", "notices", "flush", "save 2"]
    assert made.counts.windows == 2


def test_where_nothing_closed_nothing_is_saved_and_nothing_may_be_let_go_of() -> None:
    recorded = Recorded()
    made, _ = runner(recorded)
    made.take("logs", 0, entries(GOOD, BAD, log=recorded.log))
    assert not made.close_all()
    assert not made.close()
    assert recorded.calls == ["dead-letters"]


def test_without_a_store_windows_close_and_no_offset_is_safe() -> None:
    made, stage = runner(Recorded(), store=False)
    stage.to_close = [[]]
    assert made.close_all() and made.save() is None
    assert stage.closed == 1


def test_it_begins_from_the_snapshot_of_its_own_configuration_only() -> None:
    store, stage = MemorySnapshots(), Scripted()
    store.save(stage.written())
    Runner(stage, MemoryLog(1), CONFIG, store=store)
    assert stage.restored == b"0"
    with pytest.raises(SnapshotError, match=r"^the snapshot of rank 0 was written under another configuration or "):
        Runner(Scripted(), MemoryLog(1), StreamConfig(window_s=5), store=store)
    store.save(msgspec.structs.replace(stage.written(), state=msgspec.Raw(b'"no number"')))
    with pytest.raises(SnapshotError, match=r"^the snapshot of rank 0 cannot be read: "):
        Runner(Scripted(), MemoryLog(1), CONFIG, store=store)


def test_what_outputs_say_of_things_not_used_is_counted() -> None:
    made, stage = runner(Recorded())
    dropped = window(dropped={"log": 3, "retimed": 2})
    stage.to_close = [
        [Output(topic="late", key="k", record=late(), time=1)],
        [Output(topic="windows", key="k", record=dropped, time=1)] * 2,
    ]
    made.close()
    assert made.counts.late_events == 4
    assert made.counts.dropped == {"log": 6, "retimed": 4}
    for size in (0, 1_000, 1_001, 10**6, 10**6 + 1):
        made.counts.entry(size)
    assert made.counts.sizes == {1_000: 2, 10_000: 1, 1_000_000: 1, 0: 1}
