"""Which iteration a worker's readings belong to, and what its lines tell of its phase, over windows."""

from __future__ import annotations

import pytest
from detection_support import at, identity, log

from schemas.results import Window
from streams.config import StreamConfig
from streams.stages.worker import WorkerState, summarise

CONFIG = StreamConfig()
FIRST = at(0) // CONFIG.window_ns


def window(state: WorkerState, *texts: str, number: int = 0, **fields: int | None) -> Window:
    start = (FIRST + number) * CONFIG.window_ns
    lines = [log(text, start + index * 1_000_000_000, **fields) for index, text in enumerate(texts)]
    return summarise(identity(0), state, list(lines), FIRST + number, CONFIG)[0]


def points(summary: Window) -> dict[str, dict[int, float | None]]:
    return {one.name: dict(zip(one.iterations, one.values, strict=True)) for one in summary.series}


def report(loss: float) -> str:
    return f"{{'loss': '{loss}', 'epoch': '0.1'}}"


def test_reports_without_a_step_are_counted_over_windows() -> None:
    state = WorkerState()
    first = window(state, report(3.0), report(2.5))
    second = window(state, report(2.0), "{'eval_loss': '2.2', 'epoch': '0.2'}", report(1.5), number=1)
    assert (first.iteration, second.iteration, first.phase) == (2, 4, "train")
    assert points(first) == {"loss": {1: 3.0, 2: 2.5}}
    assert points(second) == {"loss": {3: 2.0, 4: 1.5}, "eval_loss": {3: 2.2}}


def test_a_bar_in_front_of_a_report_tells_its_step_and_the_runs_length() -> None:
    state = WorkerState()
    summary = window(state, f"  2%|▏  | 10/500 [00:05<04:10,  1.96it/s] {report(2.0)}", report(1.0))
    assert (summary.iteration, summary.total_iterations) == (11, 500)
    assert points(summary) == {"loss": {10: 2.0, 11: 1.0}}


def test_timers_without_a_step_belong_to_the_latest_and_move_nothing_on() -> None:
    state = WorkerState()
    timers = "time (ms) | forward: 12.50 | backward-compute: 3.00"
    summary = window(state, timers, " iteration 5/ 100 | lm loss: 2.0 |", timers, timers)
    assert summary.dropped == {"readings before the first iteration": 1}
    assert (summary.iteration, summary.iteration_time) == (5, summary.start + 1_000_000_000)
    assert points(summary) == {"lm_loss": {5: 2.0}, "forward_ms": {5: 12.5}, "backward_compute_ms": {5: 3.0}}
    later = window(state, timers, number=1)
    assert (later.iteration, later.iteration_time) == (None, None)
    assert points(later)["forward_ms"] == {5: 12.5}


def test_a_producers_iteration_counts_before_what_the_line_says() -> None:
    summary = window(WorkerState(), "step 7 timers (ms): compute 3.0", iteration=8)
    assert (summary.iteration, points(summary)) == (8, {"compute_ms": {8: 3.0}})


def test_a_window_tells_when_a_line_last_told_the_phase() -> None:
    state = WorkerState()
    saving = window(state, "saving checkpoint to /ckpt", "[rank0] shard of step 12 is written", "hello")
    assert (saving.phase, saving.phase_time) == ("checkpoint", saving.start)
    quiet = window(state, "hello", number=1)
    assert (quiet.phase, quiet.phase_time) == ("checkpoint", None)
    again = window(state, "hello", "step 13 | loss: 1.0 |", number=2)
    assert (again.phase, again.phase_time) == ("train", again.start + 1_000_000_000)


@pytest.mark.parametrize("said", ["saving checkpoint at iteration      60 to /ckpt", "starting evaluation"])
def test_timers_of_the_last_iteration_end_no_phase_that_was_told_just_before(said: str) -> None:
    state = WorkerState()
    late = window(state, "step 59 timers (ms): compute 3.0", said, "step 60 timers (ms): compute 3.0")
    assert (late.phase, late.iteration) == (("evaluation" if "eval" in said else "checkpoint"), 60)
    assert window(state, "step 61 timers (ms): compute 3.0", number=1).phase == "train"
