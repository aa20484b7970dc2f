"""Ranks whose metrics leave their own past, unlike their peers'."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from detection_support import at, closed, gauge, identity, new_view, run, summary

from schemas.results import Anomaly
from streams.detectors.metric_shift import MetricShift, MetricShiftConfig

RANKS, WINDOWS, CHANGE = 8, 60, 40
METRICS = ("cpu_percent", "power_W", "gpu_util_percent", "temp_C", "rss_bytes")
Change = Callable[[int, int, float], float | None]
"""What becomes of a value, by rank and metric."""


def findings(
    change: Change,
    *,
    ranks: int = RANKS,
    windows: int = WINDOWS,
    phase: str = "train",
    metrics: tuple[str, ...] = METRICS,
    detector: MetricShift | None = None,
    stages: int = 1,
) -> list[list[Anomaly]]:
    """What each window says of a job of which something changes at window ``CHANGE``."""
    made = []
    for window in range(windows):
        summaries = []
        for rank in range(ranks):
            gauges = []
            for number, name in enumerate(metrics):
                usual = 100.0 * (number + 1) * (1 + 0.02 * ((rank * 3 + window * (number + 1)) % 7))
                value = usual if window < CHANGE else change(rank, number, usual)
                if value is not None:
                    gauges.append(gauge(name, value, unit=name.rpartition("_")[2]))
            step = {"iteration": window + 1, "iteration_time": at(window * 10 + 5)}
            who = identity(rank, coordinates={"pp": rank * stages // ranks})
            summaries.append(summary(rank, window * 10, who=who, gauges=gauges, phase=phase, **step))
        made.append(closed(summaries, window * 10))
    return run(detector or MetricShift(), new_view(), made)


def falls(*ranks: int, metrics: int = len(METRICS)) -> Change:
    return lambda rank, metric, value: value * 0.3 if rank in ranks and metric < metrics else value


def first(found: list[list[Anomaly]]) -> Anomaly:
    return next(one for window in found for one in window)


def test_a_rank_whose_metrics_leave_their_past_is_told_with_them() -> None:
    found = findings(falls(5))
    one = first(found)
    assert not any(found[:CHANGE])
    assert (one.about, one.suspects, one.axis, one.severity) == ([5], [], "time", "info")
    assert "of 5 metrics of rank 5 have left their past: cpu_percent 3" in one.text
    assert "peers' median: cpu_percent 10" in one.peers
    assert at((CHANGE - 2) * 10) <= one.onset <= at((CHANGE + 3) * 10)
    # While it lasts it is said again, for an incident to come; once it is usual it no longer is.
    told = [number for number, window in enumerate(found) if window]
    assert [later - earlier for earlier, later in pairwise(told)] == [6] * (len(told) - 1)


def test_one_metric_of_many_is_no_shift_and_one_of_five_is() -> None:
    many = tuple(f"m{number}_percent" for number in range(12))
    assert not any(findings(falls(5, metrics=2), metrics=many))
    assert first(findings(falls(5, metrics=3), metrics=many)).about == [5]
    assert first(findings(falls(5, metrics=1))).about == [5]


@pytest.mark.parametrize("who", [(4, 5), (1, 6)])
def test_ranks_that_leave_alike_are_one_finding_and_a_node_is_named_as_one(who: tuple[int, ...]) -> None:
    found = [one for window in findings(falls(*who)) for one in window]
    one = max(found, key=lambda one: len(one.about))
    assert one.about == list(who)
    assert ("all ranks of node node02" in one.text) == (who == (4, 5))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("what all do is the job's", falls(*range(RANKS))),
        ("what most do is the job's", falls(0, 1, 2, 3, 4)),
        ("nothing", falls()),
        ("a little", lambda rank, metric, value: value * (1.03 if rank == 5 else 1)),
        ("a rank that leaves", lambda rank, metric, value: None if rank == 5 else value),
        ("a metric that ends", lambda rank, metric, value: None if metric == 2 else value),
        ("far above everything", lambda rank, metric, value: value if metric else (1e300 if rank == 5 else 1e299)),
    ],
)
def test_look_alikes_are_not(name: str, change: Change) -> None:
    assert not any(findings(change))


def test_a_stage_that_leaves_its_past_as_a_whole_is_named_as_one() -> None:
    found = [one for window in findings(falls(3, 4, 5), ranks=12, stages=4) for one in window]
    assert {tuple(one.about) for one in found} == {(3, 4, 5)}
    assert "all ranks of pipeline stage 1 (ranks 3-5)" in found[0].text
    assert found[0].peers == "few others' have"
    assert not any(findings(falls(*range(9)), ranks=12, stages=4))


def test_nobody_is_compared_with_nobody() -> None:
    assert not any(findings(falls(0), ranks=1))
    assert first(findings(falls(0), ranks=2)).about == [0]


def test_only_once_the_job_trains() -> None:
    assert not any(findings(falls(5), phase="download"))


@pytest.mark.parametrize("settings", [{"left": 1.0}, {"left": 0.0}, {"share": 0.0}, {"few": 2.0}, {"most": 0}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        MetricShiftConfig(**settings)


def test_a_state_of_many_ranks_and_metrics_is_small() -> None:
    detector = MetricShift()
    findings(falls(5), ranks=100, windows=3, metrics=tuple(f"m{n}_percent" for n in range(40)), detector=detector)
    assert len(detector.snapshot()) < 24 * 100 * 40
