"""Timelines on their way to the job stage: columns that fit together, bounded in bytes, counted where cut."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import CONFIG, put, records, run, tick, values_of

from schemas import codec, results
from schemas.codec import encode
from schemas.events import Batch, Timeline
from schemas.identity import Identity
from streams.log.memory import MemoryLog
from streams.stages.timelines import MOST_BYTES, Timelines

SECOND = 1_000_000_000


def timeline(step: int | None, count: int = 3, **changes: Any) -> Timeline:
    columns = {"operations": [0] * count, "starts": list(range(count)), "durations": [5] * count}
    return msgspec.convert(
        {"time": SECOND, "iteration": step, "names": ["forward-compute"]} | columns | changes, Timeline
    )


def test_a_window_carries_its_workers_timelines_in_order_of_their_steps() -> None:
    log = MemoryLog(1)
    told = [timeline(3), timeline(1), timeline(2)]
    put(log, Batch(producer="p", boot="b", seq=1, identity=Identity(job="j", node="n", rank=0), events=told))
    tick(log, 12.5)
    run(log, CONFIG)
    window = next(one for one in records(log, "windows") if isinstance(one, results.Window))
    assert [one.iteration for one in window.timelines] == [1, 2, 3]
    assert window.dropped == {}
    (batch,) = [codec.decode("timeline", value) for value in values_of(log, "stamped.timelines")]
    assert sorted(one.iteration for one in batch.events) == [1, 2, 3]


def test_of_more_than_there_is_room_for_the_last_steps_are_kept_and_the_others_counted() -> None:
    found = Timelines()
    size = len(encode(timeline(1, 20_000)))
    for step in (5, 1, 4, 2, 3, 6, 8, 7):
        found.take(timeline(step, 20_000))
    kept = [one.iteration for one in found.kept()]
    assert kept == list(range(9 - len(kept), 9))
    assert len(kept) == MOST_BYTES // size
    assert found.left_out == 8 - len(kept)


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": [1, 2]},
        {"durations": [1, 2, 3, 4]},
        {"microbatches": [0]},
        {"chunks": [0, 0]},
        {"operations": [0, 0, 1]},
        {"names": []},
        {"microbatches": [0, -2, 0]},
        {"durations": [1, -5, 3]},
    ],
)
def test_columns_that_do_not_fit_together_are_refused(changes: dict[str, Any]) -> None:
    good = {"time": 1, "names": ["a"], "operations": [0, 0, 0], "starts": [1, 2, 3], "durations": [1, 1, 1]}
    batch = {"producer": "p", "boot": "b", "seq": 1, "identity": {"job": "j", "node": "n"}}
    assert codec.decode("timeline", msgspec.json.encode(batch | {"events": [good]}))
    with pytest.raises(codec.CodecError):
        codec.decode("timeline", msgspec.json.encode(batch | {"events": [good | changes]}))
