"""Windows of ranks that print timers step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from detection_support import closed, identity, series, summary

from streams.attempt_window import AttemptWindow

STEPS = 10
Values = Callable[[int, int], float | None]
NOISE = np.random.default_rng(3).normal(1, 0.02, (600, 64))


def windows(timers: Mapping[str, Values], ranks: int = 16, count: int = 10, **fields: Any) -> list[AttemptWindow]:
    """Ten steps of a second in each window; values in milliseconds by timer, rank and step from 0."""
    layout, per_node, first = (
        fields.pop("layout", {}),
        fields.pop("per_node", 2),
        fields.pop("first", lambda step: step),
    )
    columns: dict[str, Values] = {**timers, "total_ms": lambda rank, step: 1000.0}
    made = []
    for number in range(count):
        start, steps = number * 10, range(number * STEPS, (number + 1) * STEPS)
        summaries = []
        for rank in range(ranks):
            found = []
            for timer, values in sorted(columns.items()):
                row = [values(rank, step) for step in steps]
                if any(value is not None for value in row):
                    told = [
                        None if value is None else value * NOISE[step, rank % 64]
                        for value, step in zip(row, steps, strict=True)
                    ]
                    found.append(series(timer, first(steps[0]) + 1, told, start))
            told_layout = {"world": ranks, **layout} if layout else {}
            last = {"iteration": first(steps[0]) + STEPS, "iteration_time": found[-1].times[-1]}
            who = identity(rank, per_node)
            summaries.append(summary(rank, start, who=who, series=found, layout=told_layout, **last))
        made.append(closed(summaries, start))
    return made
