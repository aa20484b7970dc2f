"""What a worker's window takes from single lines: an iteration only from one that gives readings by it."""

from __future__ import annotations

import pytest
from detection_support import T0, identity, log

from schemas.codec import encode
from schemas.results import Window
from schemas.topics import TOPICS
from streams.config import StreamConfig
from streams.stages.worker import MOST_EXITS, WorkerState, summarise


def summed(*texts: str, iteration: int | None = None) -> tuple[Window, WorkerState]:
    state = WorkerState()
    events = [log(text, T0 + at, iteration=iteration) for at, text in enumerate(texts)]
    return summarise(identity(3), state, [*events], 0, StreamConfig())[0], state


@pytest.mark.parametrize(
    "text",
    [
        "resuming run 3f2a9c1e from step 5000",
        "uploaded shard 9f3a2b1c, step 5000",
        "checkpoint 12345678-1234-1234-1234-123456789abc of step 5000",
        "step 5000 " + "x" * 500,
    ],
)
def test_a_line_without_readings_is_no_iteration(text: str) -> None:
    summary, state = summed(text, iteration=5000)
    assert (summary.iteration, state.iteration, state.trained) == (None, None, False)


@pytest.mark.parametrize("tail", ["", " (run 3f2a9c1e)", "x" * 500])
def test_a_line_with_readings_is(tail: str) -> None:
    summary, state = summed(f"iteration 7/ 10 | lm loss: 2.5E+00 | {tail}", iteration=7)
    assert (summary.iteration, summary.total_iterations, state.trained) == (7, 10, True)
    assert [(one.name, one.values) for one in summary.series] == [("lm_loss", [2.5])]


def test_of_too_many_ends_that_a_launcher_reports_the_first_stay_and_the_others_are_counted() -> None:
    text = "failed (exitcode: 1) local_rank: 0 (pid: {}) of binary: python\n"
    events = [
        log("".join(text.format(1000 + at) for at in range(first, first + 512)), T0 + first)
        for first in range(0, MOST_EXITS + 512, 512)
    ]
    launcher = identity(None, process_type="launcher")
    summary = summarise(launcher, WorkerState(), [*events], 0, StreamConfig())[0]
    assert [one.pid for one in summary.exits] == list(range(1000, 1000 + MOST_EXITS))
    assert summary.dropped == {"exits": 512}
    assert len(encode(summary)) < TOPICS["windows"].most_bytes / 2
