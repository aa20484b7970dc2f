"""What a worker's window takes from single lines: an iteration only from one that gives readings by it."""

from __future__ import annotations

import pytest
from detection_support import T0, identity, log

from schemas.results import Window
from streams.config import StreamConfig
from streams.stages.worker import WorkerState, summarise


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
