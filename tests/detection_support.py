"""Builders of what detectors and incidents take: views, closed windows, summaries, anomalies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import settings

from schemas.events import Frame, Log, Stack
from schemas.identity import Identity
from schemas.ids import stable_id
from schemas.results import (
    Anomaly,
    CollectiveState,
    Exit,
    Fatal,
    Gauge,
    Series,
    SignatureCount,
    StackSpan,
    Suspect,
    Window,
)
from streams.attempt_window import AttemptWindow
from streams.detectors.registry import JobDetector
from streams.incidents.situation import Situation
from streams.lines.facts import facts_of
from streams.lines.fatal import fatal_of
from streams.stacks import spans_of
from streams.templates import TemplateBook, TemplateState
from streams.view import AttemptView

FIXED = settings(derandomize=True, deadline=None, database=None)
"""Examples that are the same in every run, judged by no clock."""

S = 1_000_000_000
T0 = 1_764_417_600 * S
"""2025-11-29T12:00:00Z"""
JOB = "job1"

HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "/workspace/train.py", line 110, in step\n    raise error\n'


def traceback(error: str, frames: str = FRAME) -> str:
    return HEAD + frames + error


def log(text: str, time: int = T0, **fields: Any) -> Log:
    return Log(time=time, stream="stderr", text=text, **fields)


def fatal(text: str, time: int = T0, *, trained: bool = True) -> Fatal | None:
    return fatal_of(log(text, time), trained=trained)


def known_fatal(text: str, time: int = T0) -> Fatal:
    found = fatal(text, time)
    assert found is not None, text
    return found


def identity(rank: int | None, per_node: int = 2, **changes: Any) -> Identity:
    values: dict[str, Any] = {"job": JOB, "rank": rank, "node": "" if rank is None else f"node{rank // per_node:02d}"}
    return Identity(**(values | changes))


def at(second: float) -> int:
    return T0 + int(second * S)


def summary(rank: int | None, start: float = 0, *, who: Identity | None = None, **fields: Any) -> Window:
    """One worker's window of ten seconds that begins ``start`` seconds after T0."""
    values: dict[str, Any] = {"phase": "train", "last_log": at(start + 9)}
    owner = who or identity(rank)
    return Window(
        id=stable_id("window", owner.key, at(start)),
        identity=owner,
        start=at(start),
        end=at(start + 10),
        **(values | fields),
    )


def closed(summaries: Iterable[Window], start: float = 0, **fields: Any) -> AttemptWindow:
    return AttemptWindow(job=JOB, attempt="0", start=at(start), end=at(start + 10), summaries=list(summaries), **fields)


def new_view() -> AttemptView:
    return AttemptView(job=JOB, attempt="0", first=T0)


def run(detector: JobDetector[Any, Any], view: AttemptView, windows: Iterable[AttemptWindow]) -> list[list[Anomaly]]:
    """The findings of each window, the view kept as the job stage keeps it."""
    found = []
    for window in windows:
        view.update(window)
        found.append(detector.observe(view, window))
    return found


Lines = Mapping[str, Mapping[int, int]]
"""Texts by rank and how often it prints them in a window."""


def speaking(start: float, lines: Lines, *, ranks: Iterable[int] = range(8), **fields: Any) -> AttemptWindow:
    """Every rank does ten steps of a second and prints ``lines``; ``extra`` are more fields of summaries by rank."""
    extra = fields.pop("extra", {})
    said = {f"step {start} took 1 s": dict.fromkeys(ranks, 10), **lines}
    return closed(
        [
            stepping(
                rank,
                start,
                first=int(start) + 1,
                signatures=sorted(
                    [printed(text, start + 1, count=who[rank]) for text, who in said.items() if who.get(rank)],
                    key=lambda one: one.signature,
                ),
                **extra.get(rank, {}),
            )
            for rank in ranks
        ],
        start,
        **fields,
    )


def run_lines(
    detector: JobDetector[Any, Any], view: AttemptView, windows: Iterable[AttemptWindow]
) -> list[list[Anomaly]]:
    """As ``run``, with the table of who printed what as the job stage makes it."""
    book = TemplateBook(TemplateState(), JOB, 1000)
    found = []
    for window in windows:
        book.learn(window.summaries)
        told = book.printed(window.attempt, window.summaries, view.members)
        seen = msgspec.structs.replace(window, printed=told)
        found += run(detector, view, [seen])
        book.note(window.attempt, told)
    return found


def series(name: str, first: int, values: Sequence[float | None], start: float = 0, step_s: float = 1.0) -> Series:
    """One value a step, from iteration ``first`` on; values that are not numbers stand in ``nonfinite``."""
    plain = [value if value is not None and math.isfinite(value) else None for value in values]
    iterations = [first + index for index in range(len(values))]
    return Series(
        name=name,
        iterations=iterations,
        times=[at(start + index * step_s) for index in range(len(values))],
        values=plain,
        unit="ms" if name.endswith("_ms") else "",
        nonfinite=[
            (iteration, str(value))
            for iteration, value, kept in zip(iterations, values, plain, strict=True)
            if kept is None and value is not None
        ],
    )


def stepping(rank: int, start: float, *, first: int, steps: int = 10, **fields: Any) -> Window:
    """A window in which the rank reports ``steps`` iterations of equal length."""
    step_s = 10 / steps
    values: dict[str, Any] = {
        "iteration": first + steps - 1,
        "iteration_time": at(start + (steps - 1) * step_s),
        "series": [series("total_ms", first, [step_s * 1000] * steps, start, step_s)],
    }
    return summary(rank, start, **(values | fields))


def healthy(ranks: int, start: float = 0, first: int = 1, **fields: Any) -> AttemptWindow:
    """Every rank does ten steps of a second."""
    return closed((stepping(rank, start, first=first, **fields) for rank in range(ranks)), start)


def still(
    ranks: int, start: float, extra: Mapping[int, Mapping[str, Any]] | None = None, **fields: Any
) -> AttemptWindow:
    """Nobody does a step, everybody lives; ``extra`` are more fields by rank."""
    more = extra or {}
    return closed((summary(rank, start, **(fields | dict(more.get(rank, {})))) for rank in range(ranks)), start)


def stalled(ranks: int, extra: Mapping[int, Mapping[str, Any]] | None = None, **layout: int) -> list[AttemptWindow]:
    """Ten steps, the last at second 9; then three windows of standstill, ``extra`` in the last of them."""
    return [
        closed((stepping(rank, 0, first=1, layout=dict(layout)) for rank in range(ranks)), 0),
        still(ranks, 10),
        still(ranks, 20),
        still(ranks, 30, extra),
    ]


TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
MAIN = Frame("<module>", "/workspace/train.py", 133)
ALL_REDUCE = [
    Frame("<module>", "/workspace/train2.py", 105),
    Frame("_exception_logger.<locals>.wrapper", f"{TORCH}/distributed/c10d_logger.py", 83),
    Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 3252),
]
BARRIER = [
    Frame("<module>", "/workspace/train.py", 160),
    Frame("save_checkpoint", "/workspace/checkpointing.py", 20),
    Frame("_exception_logger.<locals>.wrapper", f"{TORCH}/distributed/c10d_logger.py", 83),
    Frame("barrier", f"{TORCH}/distributed/distributed_c10d.py", 5356),
]
BACKWARD = [
    MAIN,
    Frame("Tensor.backward", f"{TORCH}/_tensor.py", 623),
    Frame("backward", f"{TORCH}/autograd/__init__.py", 395),
    Frame("_engine_run_backward", f"{TORCH}/autograd/graph.py", 979),
]
LOADER_WAIT = [
    Frame("<module>", "/workspace/train.py", 120),
    Frame("_BaseDataLoaderIter.__next__", f"{TORCH}/utils/data/dataloader.py", 741),
    Frame("_MultiProcessingDataLoaderIter._try_get_data", f"{TORCH}/utils/data/dataloader.py", 1291),
    Frame("Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
    Frame("_PollLikeSelector.select", "/usr/lib/python3.11/selectors.py", 415),
]
GETITEM = [
    Frame("_worker_loop", f"{TORCH}/utils/data/_utils/worker.py", 374),
    Frame("_MapDatasetFetcher.fetch", f"{TORCH}/utils/data/_utils/fetch.py", 54),
    Frame("Tokens.__getitem__", "/workspace/train.py", 71),
]
WORKER_IDLE = [
    Frame("_worker_loop", f"{TORCH}/utils/data/_utils/worker.py", 334),
    Frame("Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 113),
    Frame("_PollLikeSelector.select", "/usr/lib/python3.11/selectors.py", 415),
]
OWN = [
    Frame("<module>", "/workspace/train2.py", 90),
    Frame("wait_for_shard_server", "/workspace/train2.py", 62),
]
SAVE = [
    Frame("<module>", "/workspace/train.py", 158),
    Frame("save", f"{TORCH}/serialization.py", 900),
]


def sample(frames: Sequence[Frame], time: int, **fields: Any) -> Stack:
    values: dict[str, Any] = {"process_type": "trainer", "pid": 100, "thread": "MainThread"}
    return Stack(time=time, frames=list(frames), **(values | fields))


def stack(frames: Sequence[Frame], *seconds: float, **fields: Any) -> StackSpan:
    """Samples of one thread at one place, at these seconds after T0."""
    (span,) = spans_of(sample(frames, at(second), **fields) for second in seconds)
    return span


def gauge(name: str, mean: float, *, first: float | None = None, last: float | None = None, **fields: Any) -> Gauge:
    return Gauge(
        name=name,
        count=10,
        mean=mean,
        minimum=mean,
        maximum=mean,
        first=mean if first is None else first,
        last=mean if last is None else last,
        **fields,
    )


def reached(
    group: str,
    enqueued: int,
    completed: int | None = None,
    *,
    second: float = 35,
    ranks: Sequence[int] = (),
    enqueued_second: float = 9.5,
    operation: str = "all_reduce",
    shows_sends: bool = True,
) -> CollectiveState:
    """How far a rank has come by NCCL's recorder; outstanding where not all is completed."""
    done = enqueued if completed is None else completed
    return CollectiveState(
        group=group,
        captured=at(second),
        ranks=list(ranks),
        last_enqueued=enqueued,
        last_completed=done,
        operation=operation,
        enqueued_at=at(enqueued_second),
        outstanding=done < enqueued,
        shows_sends=shows_sends,
    )


def printed(text: str, first: float, last: float | None = None, count: int = 1) -> SignatureCount:
    facts = facts_of(text)
    return SignatureCount(
        signature=facts.signature,
        masked=facts.masked,
        predefined=facts.predefined,
        chatter=facts.chatter,
        count=count,
        first=at(first),
        last=at(first if last is None else last),
        example=text,
    )


def ended(second: float, code: int | None = None, signal: str = "", **fields: Any) -> Exit:
    return Exit(time=at(second), pid=100, code=code, signal=signal, **fields)


def named(found: Iterable[Anomaly]) -> list[list[int | None]]:
    """The suspects' ranks of each finding."""
    return [[suspect.rank for suspect in one.suspects] for one in found]


SYMPTOM = {
    "no_iteration": ("no_iteration", "hang", "log", "critical", "time"),
    "outside_communication": ("stack_minority", "hang", "stack", "critical", "space"),
    "all_in_communication": ("stack_minority", "hang", "stack", "critical", "space"),
    "perhaps_outside": ("stack_minority", "hang", "stack", "info", "space"),
    "several_outside": ("stack_minority", "hang", "stack", "critical", "space"),
    "never_enqueued": ("collective_laggard", "hang", "collective", "critical", "space"),
    "perhaps_waiting": ("collective_laggard", "hang", "collective", "critical", "space"),
    "printed_behind": ("collective_laggard", "hang", "collective", "critical", "space"),
    "printed_never_completed": ("collective_laggard", "hang", "collective", "critical", "space"),
    "printed_mismatched": ("collective_laggard", "hang", "collective", "critical", "space"),
    "printed_perhaps": ("collective_laggard", "hang", "collective", "critical", "space"),
    "out_of_order": ("collective_laggard", "hang", "collective", "critical", "space"),
    "mismatched": ("collective_laggard", "hang", "collective", "critical", "space"),
    "never_completed": ("collective_laggard", "hang", "collective", "critical", "space"),
    "never_started": ("collective_laggard", "hang", "collective", "critical", "space"),
    "unmatched": ("collective_laggard", "hang", "collective", "critical", "space"),
    "none_completed": ("collective_laggard", "hang", "collective", "critical", "space"),
    "different_collectives": ("collective_laggard", "hang", "collective", "critical", "space"),
    "few_ahead": ("collective_laggard", "hang", "collective", "critical", "space"),
    "some_unobserved": ("collective_laggard", "hang", "collective", "critical", "space"),
    "perhaps_unobserved": ("collective_laggard", "hang", "collective", "critical", "space"),
    "one_unobserved": ("collective_laggard", "hang", "collective", "critical", "space"),
    "one_unsampled": ("stack_minority", "hang", "stack", "critical", "space"),
    "outside_by_design": ("stack_minority", "hang", "stack", "critical", "space"),
    "process_stopped": ("stopped_process", "hang", "platform", "critical", "space"),
    "left_early": ("worker_exit", "hang", "platform", "critical", "space"),
    "exit_code": ("worker_exit", "crash", "platform", "critical", "space"),
    "unplaced_error": ("unplaced_errors", "crash", "log", "critical", "space"),
    "unplaced_besides": ("unplaced_errors", "crash", "log", "critical", "space"),
    "rank_fault": ("node_faults", "crash", "hardware", "critical", "space"),
    "node_fault": ("node_faults", "crash", "hardware", "warning", "space"),
    "own_error": ("fatal_lines", "crash", "log", "critical", "space"),
    "cascade": ("fatal_lines", "crash", "log", "critical", "space"),
    "own_death": ("worker_exit", "crash", "platform", "critical", "space"),
    "told_to_end": ("worker_exit", "crash", "platform", "info", "space"),
    "vanished": ("missing_workers", "crash", "platform", "critical", "space"),
    "unobserved": ("missing_workers", "crash", "platform", "info", "space"),
    "slow_and_changed": ("step_outlier", "slowdown", "metric", "critical", "space"),
    "slow_against_peers": ("step_outlier", "slowdown", "metric", "critical", "space"),
    **dict.fromkeys(
        (
            "slow_perhaps_with_others",
            "slow_place",
            "slow_first_rank",
            "slow_unseen",
            "slow_node",
            "slow_experts",
            "slow_unwitnessed",
            "slow_but_waits",
            "slow_or_waits",
            "slow_within_group",
            "slow_stage",
            "slow_replica",
            "rotating",
        ),
        ("step_outlier", "slowdown", "metric", "warning", "space"),
    ),
    **dict.fromkeys(
        ("busy_changed_and_cpu", "busy_and_changed", "busy_and_cpu", "busy_alone"),
        ("busy_outlier", "slowdown", "stack", "warning", "space"),
    ),
    "many_slow": ("step_outlier", "slowdown", "metric", "warning", "space"),
    "slow_function": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_function_and_changed": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_functions_of_replica": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_function_by_design": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_kernel_by_place": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_function_of_other_work": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "slow_function_unseen": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "many_slow_functions": ("profile_outlier", "slowdown", "profile", "info", "space"),
    "function_apart": ("profile_outlier", "slowdown", "profile", "warning", "space"),
    "function_shift": ("profile_outlier", "slowdown", "profile", "warning", "time"),
    "what_if_workers": ("what_if", "slowdown", "profile", "critical", "space"),
    "what_if_by_place": ("what_if", "slowdown", "profile", "critical", "space"),
    "what_if_stages": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_one_replica": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_replica": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_lengths": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_variation": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_communication": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_unseen": ("what_if", "slowdown", "profile", "warning", "space"),
    "what_if_between": ("what_if", "slowdown", "profile", "info", "space"),
    "what_if_several": ("what_if", "slowdown", "profile", "warning", "space"),
    "not_played": ("what_if", "slowdown", "profile", "info", "space"),
    "own_shift": ("timer_shift", "slowdown", "metric", "info", "time"),
    "port_slower": ("hardware_state", "slowdown", "hardware", "warning", "time"),
    "shared_shift": ("timer_shift", "slowdown", "metric", "info", "time"),
    "job_shift": ("job_drift", "slowdown", "metric", "warning", "time"),
    "other_steps": ("job_drift", "slowdown", "metric", "info", "time"),
    "unlike_peers": ("gauge_outlier", "slowdown", "metric", "info", "space"),
    "memory_growth": ("memory_growth", "memory", "metric", "warning", "time"),
    "memory_growth_of_all": ("memory_growth", "memory", "metric", "warning", "time"),
    "memory_growth_of_device": ("memory_growth", "memory", "metric", "warning", "time"),
    "overflow": ("nonfinite", "numerics", "metric", "info", "time"),
    "one_report": ("nonfinite", "numerics", "metric", "warning", "time"),
    "went_back": ("nonfinite", "numerics", "metric", "warning", "time"),
    "finite_again": ("nonfinite", "numerics", "metric", "info", "time"),
    "never_finite": ("nonfinite", "numerics", "metric", "info", "time"),
    "spike": ("loss_spike", "numerics", "metric", "info", "time"),
    "stays_up": ("loss_spike", "numerics", "metric", "warning", "time"),
    "steps_skipped": ("loss_scale", "numerics", "metric", "warning", "time"),
    "scale_collapsed": ("loss_scale", "numerics", "metric", "warning", "time"),
    "own_series": ("nonfinite", "numerics", "metric", "critical", "space"),
    "alone": ("nonfinite", "numerics", "metric", "warning", "space"),
    "part": ("nonfinite", "numerics", "metric", "warning", "time"),
    "slower_than_alike": ("like_steps", "slowdown", "metric", "warning", "cross-job"),
    "slower_than_like": ("like_steps", "slowdown", "metric", "warning", "cross-job"),
    "novel_templates": ("log_novelty", "crash", "log", "info", "cross-job"),
    "after_reduction": ("nonfinite", "numerics", "metric", "critical", "time"),
}


def anomaly(
    grounds: str,
    suspects: Sequence[int] = (),
    victims: Sequence[int] = (),
    *,
    start: float = 0,
    onset: float | None = None,
    subject: str = "job",
    score: float = 0.9,
    per_node: int = 2,
    **changes: Any,
) -> Anomaly:
    """A finding of the detector that gives these grounds, in the window that begins at second ``start``."""
    detector, symptom, layer, severity, axis = SYMPTOM[grounds]
    values: dict[str, Any] = {
        "symptom": symptom,
        "layer": layer,
        "severity": severity,
        "axis": axis,
        "area": "unknown",
        "text": f"{grounds} {list(suspects)}",
    }
    return Anomaly(
        id=stable_id("anomaly", detector, at(start), subject),
        detector=detector,
        version=1,
        config="c",
        job=JOB,
        attempt="0",
        start=at(start),
        end=at(start + 10),
        onset=at(start if onset is None else onset),
        grounds=grounds,
        suspects=[
            Suspect(rank=rank, node=f"node{rank // per_node:02d}", score=score, why=grounds) for rank in suspects
        ],
        victims=list(victims),
        **(values | changes),
    )


def situation(
    now: float = 100, ranks: int = 8, per_node: int = 2, *, knows_layout: bool = True, **changes: Any
) -> Situation:
    values = Situation(
        members={rank: f"node{rank // per_node:02d}" for rank in range(ranks)},
        now=at(now),
        window_ns=10 * S,
        knows_layout=knows_layout,
    )
    return msgspec.structs.replace(values, **changes)
