"""What a worker's summary says of very many, very deep stacks, and of very many processes and axes."""

from __future__ import annotations

from detection_support import ALL_REDUCE, MAIN, T0, identity, sample

from schemas.codec import encode
from schemas.events import Event, Heartbeat, Job, Metric, Topology
from schemas.topics import TOPICS
from streams.bounds import MOST_AXES
from streams.config import StreamConfig
from streams.stacks import MOST_SPANS, SHOWN_FRAMES
from streams.stages.worker import MOST_PROCESSES, WorkerState, summarise

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


def test_of_too_many_processes_and_axes_the_first_stay_and_the_others_are_counted() -> None:
    made_up = {f"axis {number}": 2 for number in range(MOST_AXES)}
    events: list[Event] = [
        *(Topology(time=T0, pid=pid) for pid in range(1, MOST_PROCESSES + 3)),
        Heartbeat(time=T0, pids=list(range(MOST_PROCESSES))),
        Heartbeat(time=T0 + 1, pids=[0, MOST_PROCESSES, 1]),
        Metric(time=T0 + 1, name="cpu_percent", value=1.0, pid=MOST_PROCESSES + 1),
        Job(time=T0 + 1, layout={"tp": 2, **made_up}),
        Job(time=T0 + 2, layout={"tp": 4}),
    ]
    summary = summarise(identity(3), WorkerState(), events, 0, StreamConfig())[0]
    assert summary.pids == list(range(MOST_PROCESSES))
    assert summary.announced == [(pid, "trainer") for pid in range(1, MOST_PROCESSES + 1)]
    assert len(summary.layout) == MOST_AXES and summary.layout["tp"] == 4
    assert summary.dropped == {"announced": 2, "layout": 1, "pids": 2}
    assert len(encode(summary)) < TOPICS["windows"].most_bytes
