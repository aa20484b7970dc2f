"""Ranks whose sampled metrics are unlike their peers', window after window."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from detection_support import closed, gauge, identity, new_view, run, summary
from msgspec.structs import replace as set_to

from schemas.identity import Identity
from schemas.results import Anomaly, Gauge
from streams.attempt_window import AttemptWindow
from streams.detectors.gauge_outlier import GaugeOutlier


def findings(columns: dict[int, list[float | None]], **fields: str) -> list[list[Anomaly]]:
    windows = []
    for index in range(len(columns[0])):
        start = index * 10
        summaries = []
        for rank, values in columns.items():
            value = values[index]
            gauges = [] if value is None else [gauge("cpu_percent", value, **fields)]
            summaries.append(summary(rank, start, gauges=gauges))
        windows.append(closed(summaries, start))
    return run(GaugeOutlier(), new_view(), windows)


def about(found: list[list[Anomaly]]) -> list[list[list[int]]]:
    return [[one.about for one in window] for window in found]


def peers(ranks: int = 7, windows: int = 6) -> dict[int, list[float | None]]:
    return {rank: [50.0 + rank + index % 2 for index in range(windows)] for rank in range(ranks)}


@pytest.mark.parametrize("value", [5.0, 99.0])
def test_a_rank_that_stays_unlike_its_peers_is_noted_once_as_information(value: float) -> None:
    found = findings(peers() | {7: [value] * 6})
    assert about(found) == [[], [], [[7]], [], [], []]
    assert (found[2][0].grounds, found[2][0].severity, found[2][0].suspects) == ("unlike_peers", "info", [])
    assert "rank 7" in found[2][0].text


@pytest.mark.parametrize(
    "values",
    [
        [99.0, 50.0, 50.0, 99.0, 50.0, 50.0],
        [99.0, 99.0, 50.0, 50.0, 50.0, 50.0],
        [99.0, 1.0, 99.0, 1.0, 99.0, 1.0],
        [53.0] * 6,
        [99.0, None, None, None, None, None],
    ],
)
def test_what_comes_and_goes_or_lies_close_is_not(values: list[float | None]) -> None:
    assert findings(peers() | {7: values}) == [[]] * 6


def test_few_peers_are_no_peers() -> None:
    assert findings(peers(2) | {7: [99.0] * 6}) == [[]] * 6


def test_a_devices_gauge_is_told_with_its_device() -> None:
    found = findings(peers() | {7: [99.0] * 6}, device="GPU-1")
    assert about(found) == [[], [], [[7]], [], [], []]
    assert "cpu_percent (GPU-1) 99" in found[2][0].text


def test_equal_peers_have_a_floor() -> None:
    same: dict[int, list[float | None]] = {rank: [50.0] * 6 for rank in range(7)}
    assert findings(same | {7: [60.0] * 6}) == [[]] * 6


Rows = dict[int, list[Gauge]]


def seen(
    windows: list[Rows], detector: GaugeOutlier | None = None, who: dict[int, Identity] | None = None
) -> list[list[Anomaly]]:
    """What each window says of gauges by rank."""
    owners = who or {}
    made = [
        closed(
            [summary(rank, number * 10, who=owners.get(rank), gauges=rows) for rank, rows in told.items()], number * 10
        )
        for number, told in enumerate(windows)
    ]
    return run(detector or GaugeOutlier(), new_view(), made)


def alike(windows: int = 6, ranks: int = 8, **metrics: float) -> list[Rows]:
    """Ranks that hardly differ."""
    return [
        {
            rank: [
                gauge(name, value * (1 + 0.01 * ((rank * 3 + window) % 5)), unit=unit_of(name))
                for name, value in metrics.items()
            ]
            for rank in range(ranks)
        }
        for window in range(windows)
    ]


def unit_of(name: str) -> str:
    return name.rpartition("_")[2]


def changed(windows: list[Rows], rank: int, name: str, change: Callable[[int, Gauge], Gauge | None]) -> list[Rows]:
    """The same but for one metric of one rank."""
    found = []
    for number, told in enumerate(windows):
        rows = [change(number, one) if one.name == name else one for one in told[rank]]
        found.append(told | {rank: [one for one in rows if one is not None]})
    return found


def times(factor: float) -> Callable[[int, Gauge], Gauge | None]:
    def change(_: int, one: Gauge) -> Gauge:
        return set_to(one, **{name: getattr(one, name) * factor for name in ("mean", "first", "last")})

    return change


def only(found: list[list[Anomaly]]) -> Anomaly:
    (one,) = [one for window in found for one in window]
    return one


def test_metrics_of_a_rank_are_one_finding_those_that_say_more_first() -> None:
    windows = alike(zz_count=100, cpu_percent=90, rss_bytes=2.0**33)
    for name in ("zz_count", "cpu_percent", "rss_bytes"):
        windows = changed(windows, 5, name, times(0.1))
    one = only(seen(windows))
    assert one.about == [5]
    assert one.text.startswith("rank 5 unlike its peers in 3 of 4 windows: cpu_percent 9")
    assert one.text.index("cpu_percent") < one.text.index("rss_bytes") < one.text.index("zz_count")
    assert "cpu_percent 91" in one.peers


def test_a_node_that_stands_apart_is_named_as_a_node() -> None:
    windows = alike(cpu_percent=90)
    for rank in (4, 5):
        windows = changed(windows, rank, "cpu_percent", times(0.1))
    one = only(seen(windows))
    assert one.about == [4, 5]
    assert "all ranks of node node02 (ranks 4-5) unlike their peers" in one.text


def test_two_ranks_of_different_nodes_are_told_apart() -> None:
    windows = alike(cpu_percent=90)
    for rank in (3, 4):
        windows = changed(windows, rank, "cpu_percent", times(0.1))
    assert sorted(one.about for window in seen(windows) for one in window) == [[3], [4]]


def test_other_roles_and_stages_are_no_peers() -> None:
    windows = alike(cpu_percent=90)
    for rank in (4, 5, 6, 7):
        windows = changed(windows, rank, "cpu_percent", times(0.1))
    assert not any(seen(windows))
    for more in ({"role": "reward"}, {"coordinates": {"pp": 1}}):
        apart = {rank: identity(rank, **(more if rank > 3 else {})) for rank in range(8)}
        assert not any(seen(windows, who=apart))
        # Among its own peers one of them is found all the same.
        assert only(seen(changed(windows, 6, "cpu_percent", times(9)), who=apart)).about == [6]


@pytest.mark.parametrize(
    ("name", "metric", "value", "change"),
    [
        ("constant series", "threads_count", 12.0, lambda _, one: one),
        ("a metric on one rank only", "new_count", 5.0, None),
        ("a little above equal peers", "threads_count", 12.0, times(1.3)),
        ("two degrees more", "temp_C", 60.0, times(1.04)),
        ("a unit that changes", "rss_bytes", 2.0**33, lambda _, one: set_to(one, unit="KiB", mean=one.mean / 1024)),
        ("back and forth", "cpu_percent", 90.0, lambda number, one: one if number % 2 else times(0.1)(number, one)),
        ("joins late, leaves soon", "cpu_percent", 90.0, lambda n, one: times(0.1)(n, one) if n in (3, 4) else None),
        ("extreme now and then", "cpu_percent", 90.0, lambda n, one: times(1e290)(n, one) if n == 3 else one),
        ("a counter that was reset", "ctx_switches", 1e6, lambda _, one: set_to(one, first=9e9, last=3.0)),
        ("a counter that began long ago", "read_bytes", 1e6, times(1e6)),
    ],
)
def test_bad_input_gives_no_finding(
    name: str, metric: str, value: float, change: Callable[[int, Gauge], Gauge | None]
) -> None:
    windows = alike(cpu_percent=90) if change is None else alike(**{metric: value})
    if change is None:
        windows = [told | {5: [*told[5], gauge(metric, value)]} for told in windows]
    else:
        windows = changed(windows, 5, metric, change)
    assert not any(seen(windows))


def test_gains_of_counters_are_compared() -> None:
    def gaining(gain: float, begin: float) -> Gauge:
        return Gauge(
            name="ctx_switches",
            count=10,
            mean=begin,
            minimum=begin,
            maximum=begin + gain,
            first=begin,
            last=begin + gain,
        )

    windows = [{rank: [gaining(5 if rank == 5 else 900 + rank, 1e9 * rank)] for rank in range(8)} for _ in range(6)]
    one = only(seen(windows))
    assert one.about == [5]
    assert "ctx_switches +5.556" in one.text


def test_what_holds_is_said_again_for_an_incident_to_come_and_no_longer_once_it_is_over() -> None:
    windows = changed(alike(30, cpu_percent=90), 5, "cpu_percent", lambda n, one: times(0.1)(n, one) if n < 20 else one)
    assert [number for number, window in enumerate(seen(windows)) if window] == [2, 8, 14, 20]


def test_many_ranks_at_once_are_bounded_and_nobody_is_forgotten() -> None:
    windows = alike(8, 64, cpu_percent=90)
    for rank in range(0, 40, 2):
        windows = changed(windows, rank, "cpu_percent", times(0.1))
    found = seen(windows)
    assert [len(window) for window in found] == [0, 0, 8, 8, 4, 0, 0, 0]
    assert sorted(one.about[0] for window in found for one in window) == list(range(0, 40, 2))


def test_a_state_of_many_ranks_and_metrics_is_small() -> None:
    detector = GaugeOutlier()
    seen(alike(5, 200, **{f"m{number}_percent": 50.0 for number in range(40)}), detector)
    assert len(detector.snapshot()) < 4 * 200 * 40


def of_nodes(values: list[dict[str, float]], device: str = "gpu0") -> list[AttemptWindow]:
    """Windows of eight ranks on four nodes, of which the nodes alone are sampled."""
    found = []
    for number, told in enumerate(values):
        samplers = [
            summary(
                None,
                number * 10,
                who=Identity(job="job1", node=node, rank_reason="node", process_type="sampler"),
                gauges=[gauge("gpu_temp", value, unit="C", device=device)],
            )
            for node, value in told.items()
        ]
        found.append(closed([summary(rank, number * 10) for rank in range(8)], number * 10, nodes=samplers))
    return found


def test_a_node_is_held_against_other_nodes_by_what_was_sampled_of_it_as_such() -> None:
    hot = [{f"node{node:02d}": 60.0 + node % 2 + 30 * (node == 2) for node in range(4)} for _ in range(6)]
    one = only(run(GaugeOutlier(), new_view(), of_nodes(hot)))
    assert one.about == [4, 5]
    assert one.text.startswith("node node02 unlike its peers in 3 of 4 windows: gpu_temp (gpu0) 90 C")


@pytest.mark.parametrize("nodes", [{"node00": 60.0, "node01": 90.0}, {f"other{n}": 60.0 + n * 50 for n in range(4)}])
def test_few_nodes_and_nodes_of_other_jobs_are_not_compared(nodes: dict[str, float]) -> None:
    assert not any(run(GaugeOutlier(), new_view(), of_nodes([nodes] * 6)))
