"""The order of a worker's lines, folded."""

from __future__ import annotations

from streams_support import at, worker

from schemas.events import Event, Log, Metric
from streams.config import StreamConfig
from streams.lines.facts import facts_of
from streams.stages.tail import MOST_PAIRS
from streams.stages.worker import WorkerState, summarise

CONFIG = StreamConfig()


def tail(*texts: str, config: StreamConfig = CONFIG) -> list[tuple[str, int | None]]:
    """Masked texts and iterations, in the order that the summary says."""
    found: list[Event] = [Log(time=at(number / 1000), stream="stdout", text=text) for number, text in enumerate(texts)]
    found.append(Metric(time=at(9), name="cpu_percent", value=1.0))
    start = at(0) // config.window_ns
    summary, _ = summarise(worker("job", 0), WorkerState(), found, start, config)
    return [(summary.signatures[place].masked, iteration) for place, iteration in summary.tail]


def step(number: int) -> str:
    return f"step {number} timers (ms): forward 12.5 total 30.1"


def test_each_line_of_an_iteration_is_there_once_in_the_order_in_which_it_came() -> None:
    timers, micro, ready = facts_of(step(1)).masked, "micro batch <NUM>", "batch is ready"
    lines = ["hello", step(1), "micro batch 1", "micro batch 2", "batch is ready", step(2), "micro batch 1"]
    assert tail(*lines) == [("hello", None), (timers, 1), (micro, 1), (ready, 1), (timers, 2), (micro, 2)]


def test_chatter_and_lines_that_are_not_counted_have_no_place() -> None:
    assert tail("a", "4%|▌   | 12/300 [00:12<01:20, 3.2it/s]", "b") == [("a", None), ("b", None)]
    assert tail("a", "b c", "d e f", config=StreamConfig(signatures_per_window=1)) == [("a", None)]


def test_only_the_last_ones_are_kept() -> None:
    assert [iteration for _, iteration in tail(*map(step, range(1, 200)))] == list(range(200 - MOST_PAIRS, 200))
