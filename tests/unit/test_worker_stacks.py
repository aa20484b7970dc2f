"""What a worker's summary says of very many, very deep stacks."""

from __future__ import annotations

from detection_support import ALL_REDUCE, MAIN, T0, identity, sample

from schemas.codec import encode
from streams.config import StreamConfig
from streams.stacks import MOST_SPANS, SHOWN_FRAMES
from streams.stages.worker import WorkerState, summarise

DEEP = [*([MAIN] * 500), *ALL_REDUCE]


def test_of_too_many_threads_the_main_ones_stay_and_the_others_are_counted() -> None:
    made_up = [sample(DEEP, T0 + second, thread=f"made up {number}") for second in (1, 2) for number in range(199)]
    mains = [sample(DEEP, T0 + second) for second in (1, 2)]
    loader = sample(DEEP, T0 + 1, process_type="dataloader", pid=7)
    summary, stamped = summarise(identity(3), WorkerState(), [*made_up, *mains, loader], 0, StreamConfig())
    assert len(stamped) == len(made_up) + 3
    assert len(summary.stacks) == MOST_SPANS
    assert summary.dropped == {"stacks": 201 - MOST_SPANS}
    kept = [(one.process_type, one.thread, one.samples) for one in summary.stacks[-2:]]
    assert kept == [("trainer", "MainThread", 2), ("dataloader", "MainThread", 1)]
    assert max(len(one.frames) for one in summary.stacks) == SHOWN_FRAMES
    assert len(encode(summary)) < 200_000
