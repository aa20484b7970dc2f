"""Timers without an iteration get that of another rank's line of the same moment, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.recording import read_recording
from schemas.events import Log

HEAD = "[2026-11-30 17:32:{:06.3f}] [INFO] "


def timers(second: float, rank: int) -> str:
    return f"{HEAD.format(second)}[logging.py:96:log_dist] [Rank {rank}] time (ms) | fwd_microstep: {second:.2f}"


def teller(seconds: list[float]) -> list[str]:
    """Rank 0: its step, then its timers."""
    found = []
    for step, second in enumerate(seconds, 1):
        found += [f"{HEAD.format(second - 0.01)}[Rank 0] step={step}, skipped=0, lr=[6e-05]", timers(second, 0)]
    return found


def iterations(folder: Path, own: list[str], told: list[str], other: str = "") -> list[int | None]:
    """The iterations of the lines of rank 8."""
    logs = {"20261130170000_rank8.log": own, f"{other}20261130170000_rank0.log": told}
    for name, rows in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(rows) + "\n")
    events = [
        (event.line, event.iteration)
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Log) and event.file.endswith("rank8.log")
    ]
    return [iteration for _, iteration in sorted(events)]


@pytest.mark.parametrize(
    ("own", "told", "found"),
    [
        ([timers(n + 0.02, 8) for n in (1, 2, 3)], teller([1, 2, 3]), [1, 2, 3]),
        (
            [timers(n + more, 8) for n in (1, 2, 3) for more in (0.01, 0.011)],
            sorted([*teller([1, 2, 3]), *(timers(n + 0.001, 0) for n in (1, 2, 3))]),
            [1, 1, 2, 2, 3, 3],
        ),
        ([timers(n + 0.20, 8) for n in (1, 2, 3)], teller([1, 2, 3]), [1, 2, 3]),
        ([timers(n + 0.40, 8) for n in (1, 2, 3)], teller([1, 2, 3]), [None] * 3),
        ([timers(n, 8) for n in (1, 2, 9)], teller([1, 2, 3]), [1, 2, None]),
        ([timers(n, 9) for n in (1, 2, 3)], teller([1, 2, 3]), [None] * 3),
        ([timers(n, 8) for n in (1, 2)], teller([1]), [None] * 2),
        ([timers(n, 8) for n in (1, 2)], teller([1, 2])[1::2], [None] * 2),
        ([timers(1, 8), f"{HEAD.format(2)}step 7 done", timers(3, 8)], teller([1, 2, 3]), [None, 7, None]),
    ],
)
def test_a_line_of_timers_has_the_iteration_of_its_moment(
    tmp_path: Path, own: list[str], told: list[str], found: list[int | None]
) -> None:
    assert iterations(tmp_path, own, told) == found


def test_ranks_of_another_folder_tell_nothing(tmp_path: Path) -> None:
    assert iterations(tmp_path, [timers(1, 8), timers(2, 8)], teller([1, 2]), "other/") == [None, None]
