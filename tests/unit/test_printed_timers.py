"""Timers of all ranks that one of them prints become metrics of those ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.recording import read_recording
from schemas.events import Metric

LINE = (
    " [2026-11-29 12:00:{second:02d}] iteration {step:8d}/     500 | consumed samples: {step:8d} | "
    "elapsed time per iteration (ms): 1000.0 | lm loss: 2.5E+00 |"
)


def metrics(folder: Path, lines: list[str]) -> list[tuple[int | None, int | None, str, float | None]]:
    (folder / "slurm-77.out").write_text("\n".join(lines) + "\n")
    return [
        (arrival.batch.identity.rank, event.iteration, event.name, event.value)
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Metric)
    ]


def block(*names: str, ranks: int = 2, value: float = 10.0) -> list[str]:
    lines = ["times across ranks (ms):"]
    for name in names:
        lines += [f"  {name}:", *(f"     rank {rank:2d}: {value + rank:.2f}" for rank in range(ranks))]
    return lines


def test_each_value_is_its_ranks_own_at_the_iteration_before_it(tmp_path: Path) -> None:
    lines = []
    for step in (10, 20):
        lines += [LINE.format(step=step, second=step), *block("forward-compute", "optimizer")]
    found = metrics(tmp_path, lines)
    assert sorted(found) == sorted(
        (rank, step, name, 10.0 + rank)
        for step in (10, 20)
        for name in ("forward_compute_ms", "optimizer_ms")
        for rank in (0, 1)
    )


@pytest.mark.parametrize(
    "lines",
    [
        [*block("forward-compute"), LINE.format(step=10, second=1)],
        [LINE.format(step=10, second=1), "  forward-compute:", "     rank  0: 10.00"],
        [LINE.format(step=10, second=1), "times across ranks (ms):", "     rank  0: 10.00"],
        [LINE.format(step=10, second=1), "times across ranks (ms):", "  forward:", "hello", "     rank  0: 10.00"],
        [LINE.format(step=10, second=1), *block("forward", ranks=0), "     rank 9999999: 1.00"],
        [LINE.format(step=10, second=1), "(min, max) time across ranks (ms):", "    forward ....: (1.0, 2.0)"],
    ],
)
def test_what_is_no_value_of_a_rank_at_an_iteration_is_none(tmp_path: Path, lines: list[str]) -> None:
    assert metrics(tmp_path, [*lines, LINE.format(step=30, second=30)]) == []
