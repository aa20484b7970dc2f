"""A worker that says much in one window: its events go on in batches that their topic takes, none is lost."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest
from streams_support import CONFIG, lines, put, records, run, tick

from schemas.codec import encode
from schemas.events import Log
from schemas.results import SignatureCount, Window
from schemas.topics import TOPICS
from streams.log.memory import MemoryLog
from streams.stages.stamped import MOST_BYTES, stamped_outputs, summary_output


def test_a_window_of_three_megabytes_goes_on_whole_in_batches_that_fit() -> None:
    log = MemoryLog(1)
    for number in range(30):
        put(log, lines([1 + number / 10] * 100, text="x" * 1_000, seq=number))
    tick(log, 12.5)
    run(log, CONFIG)
    batches = list(log.read("stamped.logs", 0, 0, 100))
    assert 6 <= len(batches) <= 20
    assert max(len(entry.value) for entry in batches) <= MOST_BYTES < TOPICS["stamped.logs"].most_bytes
    assert records(log, "dead-letters") == []


@pytest.mark.parametrize("sizes", [[1], [10] * 3, [400_000, 400_000, 10], [900_000, 10], [10, 900_000]])
def test_all_events_come_once_in_their_order_and_batches_are_numbered(sizes: list[int]) -> None:
    found = [Log(time=number, stream="stdout", text="x" * size) for number, size in enumerate(sizes)]
    identity = lines([1]).identity
    outputs = [output.record for output in stamped_outputs(identity, found, "w", 5)]
    assert [event for batch in outputs for event in batch.events] == found  # type: ignore[attr-defined]
    assert [batch.seq for batch in outputs] == list(range(len(outputs)))  # type: ignore[attr-defined]
    assert all(len(encode(batch)) <= MOST_BYTES or len(batch.events) == 1 for batch in outputs)  # type: ignore[attr-defined]


def test_a_summary_that_loses_its_lines_loses_their_order_as_well() -> None:
    found = [
        SignatureCount(signature=str(number), masked="x" * 10_000, count=1, first=1, last=1) for number in range(2_000)
    ]
    whole = Window(id="w", identity=lines([1]).identity, start=0, end=10, signatures=found[:2], tail=[(0, 1), (1, 1)])
    assert summary_output(whole, 10).record == whole
    cut = cast(Window, summary_output(msgspec.structs.replace(whole, signatures=found), 10).record)
    assert (cut.signatures, cut.tail, cut.dropped) == ([], [], {"signatures too large": 2_000})
