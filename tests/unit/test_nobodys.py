"""What workers without a rank print counts once, as the job's own, and for nobody."""

from __future__ import annotations

import pytest
from detection_support import identity, series, summary
from streams_support import Script, at, records, run, written_log

from schemas.events import Metric
from schemas.identity import Identity
from schemas.results import Window
from streams.nobodys import NOBODY, Nobodys, said_of

NAN = float("nan")


def told(start: float, *columns: tuple[int, list[float | None]], name: str = "lm_loss") -> list[Window]:
    """One window of workers without a rank, each with its own first iteration and values."""
    return [
        summary(None, start, who=identity(None, node=f"node{number}"), series=[series(name, first, values, start)])
        for number, (first, values) in enumerate(columns)
    ]


def taken(nobodys: Nobodys, summaries: list[Window], *printed: str) -> list[tuple[int, float | None]]:
    window = nobodys.take(summaries, printed)
    assert window is not None
    assert window.identity.rank == NOBODY
    return [pair for one in window.series for pair in zip(one.iterations, one.values, strict=True)]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([(5, [2.0, 1.9])], [(5, 2.0), (6, 1.9)]),
        ([(5, [2.0, 1.9]), (5, [2.0, 1.9])], [(5, 2.0), (6, 1.9)]),
        ([(5, [2.0]), (6, [1.9]), (5, [2.2])], [(5, 2.1), (6, 1.9)]),
        ([(5, [2.0]), (5, [NAN])], [(5, None)]),
    ],
)
def test_of_one_iteration_one_value_counts(
    columns: list[tuple[int, list[float | None]]], found: list[tuple[int, float | None]]
) -> None:
    assert taken(Nobodys(), told(0, *columns)) == found
    assert taken(Nobodys(), told(0, *columns)[::-1]) == found


def test_what_was_told_before_is_not_told_again_until_nobody_is_ahead_any_more() -> None:
    nobodys = Nobodys()
    assert taken(nobodys, told(0, (5, [1.0, 1.0]))) == [(5, 1.0), (6, 1.0)]
    assert taken(nobodys, told(10, (6, [1.0, 1.0]))) == [(7, 1.0)]
    assert taken(nobodys, told(20, (3, [1.0, 1.0]))) == []
    assert taken(nobodys, told(50, (3, [1.0, 1.0]))) == [(3, 1.0), (4, 1.0)]


def test_what_ranks_print_themselves_is_theirs_from_then_on() -> None:
    nobodys = Nobodys()
    assert taken(nobodys, told(0, (5, [1.0])), "grad_norm") == [(5, 1.0)]
    assert taken(nobodys, told(10, (6, [1.0])), "lm_loss") == []
    assert taken(nobodys, told(20, (7, [1.0]))) == []


def test_nobody_is_said_in_words() -> None:
    assert said_of([0, 1]) == "ranks 0-1"
    assert said_of([NOBODY]) == "a worker whose rank is not known"
    assert said_of([NOBODY, 3]) == "rank 3 and a worker whose rank is not known"


LINE = (
    "[2026-11-29 12:00:00] iteration {step:8d}/ 5000 | consumed samples: {step:8d} | "
    "elapsed time per iteration (ms): {took:.1f} | lm loss: {loss} | grad norm: 0.400 |"
)


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize(
    ("loss", "took", "told"),
    [
        ("2.500E+00", 1000.0, []),
        ("NAN", 1000.0, [("numerics", "critical")]),
        ("9.500E+00", 1000.0, [("numerics", "warning")]),
        ("2.500E+00", 1500.0, [("slowdown", "warning")]),
    ],
)
def test_the_job_is_judged_by_lines_of_nobody_known_and_nobody_is_named(
    files: int, loss: str, took: float, told: list[tuple[str, str]]
) -> None:
    script = Script("nobodys", flush_s=2)
    for number in range(files):
        who = Identity(job="nobodys", node=f"node{number}" if files > 1 else "", rank_reason="no line says it")
        for step in range(1, 161):
            late = step > 60
            line = LINE.format(step=step, took=took if late else 1000.0, loss=loss if late else "2.500E+00")
            script.log(who, step + 0.1 * number, line)
    log = written_log(script.recording)
    run(log)
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    assert [(one.symptom, one.severity) for one in latest.values()] == told
    assert not any(one.suspects or one.missing.ranks for one in latest.values())
    assert at(0) < min((one.onset for one in latest.values()), default=at(1))


SIZES = (
    "using world size: {}, data-parallel size: {}, context-parallel size: 1, "
    "hierarchical context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1"
)


@pytest.mark.parametrize(("world", "named"), [(8, {3}), (16, {3}), (None, set())])
def test_the_layout_that_nobody_known_tells_holds_for_ranks_and_misses_none(world: int | None, named: set[int]) -> None:
    script = Script("nobodys", flush_s=2)
    who = Identity(job="nobodys", node="", rank_reason="no line says it")
    script.log(who, 0.5, SIZES.format(world, world) if world else "hello")
    for step in range(1, 61):
        script.log(who, step, LINE.format(step=step, took=1000.0, loss="2.500E+00"))
        for rank in range(8):
            took = (500.0 + (300.0 if rank == 3 else 0.0)) * (1 + 0.01 * ((step * 7 + rank * 3) % 5))
            for name, value in (("forward_compute_ms", took), ("grads_all_reduce_ms", 900.0 - took)):
                event = Metric(time=at(step), iteration=step, name=name, value=value, unit="ms")
                script.send(Identity(job="nobodys", rank=rank), event)
    log = written_log(script.recording)
    run(log)
    assert not any(one.detector == "missing_workers" for one in records(log, "anomalies"))
    assert {suspect.rank for one in records(log, "incidents") for suspect in one.suspects} == named
    assert not any(one.missing.ranks for one in records(log, "incidents"))
