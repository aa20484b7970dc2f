"""Memory that grows without end: whose it is, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, gauge, new_view, run, summary

from schemas.identity import Identity
from schemas.results import Anomaly, Gauge
from streams.detectors.memory_growth import MemoryGrowth

MIB = 2.0**20
RANKS = 8
WINDOWS = 34
LONG = 180
"""Until growth is known to last."""
Curve = Callable[[int], float | None]


def flat(window: int) -> float:
    return 4000 + 3 * (window % 4)


def leak(window: int) -> float:
    return 4000 + 40 * window


def findings(
    curves: dict[int, Curve],
    *,
    windows: int = WINDOWS,
    trained: bool = True,
    late: dict[int, int] | None = None,
    name: str = "rss_bytes",
    more: Callable[[int, float], list[Gauge]] = lambda rank, value: [],
    later: Callable[[int], dict[str, Any]] = lambda window: {},
    **fields: Any,
) -> list[list[Anomaly]]:
    """What each window says of curves in MiB by rank; ``late`` is from which window on a rank is there."""
    view = new_view()
    seen = []
    for number in range(windows):
        summaries = []
        for rank, curve in curves.items():
            if number < (late or {}).get(rank, 0):
                continue
            value = curve(number)
            told = {"gauges": [], "log_records": 1}
            if value is not None:
                told["gauges"] = [gauge(name, value * MIB, unit="bytes", **fields), *more(rank, value * MIB)]
            steps = {"iteration": number + 1, "iteration_time": at(number * 10 + 5)} if trained else {}
            summaries.append(summary(rank, number * 10, **told, **(steps | later(number))))
        seen.append(closed(summaries, number * 10))
    return run(MemoryGrowth(), view, seen)


def last(found: list[list[Anomaly]]) -> Anomaly:
    (one,) = found[-1]
    return one


def named(one: Anomaly) -> list[int | None]:
    return [suspect.rank for suspect in one.suspects]


def peers(**others: Curve) -> dict[int, Curve]:
    return dict.fromkeys(range(RANKS), flat) | {int(rank[1:]): curve for rank, curve in others.items()}


def test_a_rank_whose_memory_grows_unlike_its_peers_is_named() -> None:
    found = findings(peers(r5=leak), windows=LONG)
    one = last(found)
    assert (named(one), one.grounds, one.symptom, one.severity) == ([5], "memory_growth", "memory", "warning")
    assert one.text.startswith("rss_bytes of rank 5 grows without end: ")
    assert one.metric == "rss_bytes"
    assert one.onset < at(LONG * 10 - 1550)
    # It is said in every window from then on, so that its incident stays open.
    warned = [any(one.severity == "warning" for one in window) for window in found]
    assert all(warned[warned.index(True) :])
    # Before, it may be a cache that fills.
    short = last(found[:WINDOWS])
    assert (named(short), short.about, short.grounds, short.severity) == ([], [5], "memory_growth", "info")
    assert short.text.startswith("rss_bytes of rank 5 grows for minutes: ")


def test_a_cache_that_settles_is_information() -> None:
    found = findings(peers(r5=lambda window: 4000 + 2000 * (1 - exp(-window / 30))), windows=LONG)
    assert {(one.severity, *named(one)) for window in found for one in window} == {("info",)}


def test_a_rank_that_joins_late_warms_up_as_well() -> None:
    def joins(window: int) -> float | None:
        return None if window < 40 else 4000 + 40 * min(window - 40, 28)

    found = findings(peers(r5=joins), windows=100, late={5: 40})
    assert not any(found)


def test_what_all_do_is_the_jobs() -> None:
    found = findings(dict.fromkeys(range(RANKS), leak), windows=LONG)
    short, long = found[WINDOWS][0], last(found)
    assert [(named(one), one.grounds) for one in (short, long)] == [([], "memory_growth_of_all")] * 2
    assert (short.severity, long.severity) == ("info", "warning")
    assert "of 8 ranks grows" in long.text


def test_what_all_do_is_pressing_once_memory_is_known_to_end() -> None:
    def free(rank: int, value: float) -> list[Gauge]:
        return [gauge("memory_limit_bytes", 6000 * MIB, unit="bytes")]

    assert last(findings(dict.fromkeys(range(RANKS), leak), more=free)).severity == "warning"
    one = last(findings(peers(r5=leak), more=free))
    assert (one.severity, named(one)) == ("warning", [5])


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("half of them", {0: leak, 1: leak, 2: leak, 3: leak}),
        ("nobody to compare with", {rank: lambda window: None for rank in range(RANKS)}),
        ("more than are ever one rank's own", dict.fromkeys(range(100), flat) | dict.fromkeys(range(17), leak)),
        ("peers that grow less", {rank: lambda window: 4000 + 15 * window for rank in range(RANKS)}),
    ],
)
def test_nobody_is_named_where_peers_are_not_known_to_stay(name: str, others: dict[int, Curve]) -> None:
    one = last(findings(peers() | others | {5: leak}, windows=LONG))
    assert (named(one), one.severity) == ([], "warning")


def test_two_ranks_are_enough_to_tell_them_apart() -> None:
    assert named(last(findings({0: flat, 1: leak}, windows=LONG))) == [1]


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("one allocation", lambda window: 4000 + 2000 * (window > 20)),
        ("saw-tooth", lambda window: 4000 + 100 * (window % 12)),
        ("settles", lambda window: 6000 - 2000 * 0.8**window),
        ("a unit that changes", lambda window: 4000 * (1 if window < 20 else 1024)),
        ("joins late", lambda window: None if window < 25 else 4000 + 40 * window),
        ("leaves", lambda window: None if window > 20 else 4000 + 40 * window),
        ("far too much now and then", lambda window: 1e290 if window % 9 == 8 else 4000 + 40 * window),
        ("now and then", lambda window: 4000 + 40 * window if window % 3 else None),
    ],
)
def test_look_alikes_are_not(name: str, curve: Curve) -> None:
    assert not any(findings(peers(r5=curve)))


def test_not_while_a_checkpoint_is_written() -> None:
    def only_then(window: int) -> float:
        return 4000 + 40 * max(0, window - 20)

    quiet = {"phase": "checkpoint", "phase_time": at(210), "iteration": None, "iteration_time": None}
    assert last(findings(peers(r5=only_then), windows=45)).about == [5]
    assert not any(findings(peers(r5=only_then), windows=45, later=lambda window: quiet if window > 20 else {}))


def test_not_while_training_starts_up() -> None:
    assert not any(findings(peers(r5=leak), windows=20))
    assert not any(findings(peers(r5=leak), trained=False))
    assert last(findings(peers(r5=leak), trained=False, windows=55)).about == [5]


def test_what_only_has_begun_long_ago_is_found_by_a_longer_span() -> None:
    slow = findings(peers(r5=lambda window: 4000 + 4 * window), windows=180)
    assert not any(slow[:120])
    assert named(last(slow)) == [5]


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_FB_USED", "process_resident_memory_bytes", "memory.used"])
def test_memory_of_processes_and_devices_is_watched(name: str) -> None:
    assert last(findings(peers(r5=leak), name=name)).about == [5]


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_FB_FREE", "memory_total_bytes", "read_bytes", "memory_percent", "cpu"])
def test_other_metrics_are_not(name: str) -> None:
    assert not any(findings(peers(r5=leak), name=name))


def test_how_long_the_rest_lasts_is_said_where_it_is_known() -> None:
    def free(rank: int, value: float) -> list[Gauge]:
        return [gauge("DCGM_FI_DEV_FB_FREE", 80 * 2.0**30 - value, unit="bytes", device="0")]

    one = last(findings(peers(r5=leak), name="DCGM_FI_DEV_FB_USED", more=free, device="0"))
    assert "(0) of rank 5 grows" in one.text
    assert "nothing is left in 319 minutes" in one.text


def test_of_much_memory_a_little_a_minute_is_a_leak_as_well() -> None:
    found = findings(peers(r5=lambda window: 40_000 + 16 * window), windows=330)
    assert not any(found[:240])
    one = last(found)
    assert (named(one), one.severity) == ([5], "warning")
    assert "39.37 GiB to 44.12 GiB in 3300 s" in one.text


@pytest.mark.parametrize(("most", "windows"), [(7_000, 200), (20_000, 150)])
def test_what_slows_down_is_none_however_much_it_becomes(most: float, windows: float) -> None:
    def settles(window: int) -> float:
        return 40_000 + most * (1 - exp(-window / windows))

    assert all(one.severity == "info" for window in findings(peers(r5=settles), windows=400) for one in window)


def test_a_gap_does_not_make_growth_begin_anew() -> None:
    def gap(window: int) -> float | None:
        return None if 170 <= window < 190 else 40_000 + 16 * window

    found = findings(peers(r5=gap), windows=400)
    assert named(last(found)) == [5]
    assert "39.37 GiB to " in last(found).text
    # A process that began anew is not the one that grew.
    assert not any(findings(peers(r5=lambda window: gap(window) if window < 190 else 40_000 + window), windows=400))


LIMITED = {"name": "DCGM_FI_DEV_FB_USED", "device": "0"}


def free_of(limit: float) -> Callable[[int, float], list[Gauge]]:
    return lambda rank, value: [gauge("DCGM_FI_DEV_FB_FREE", limit * MIB - value, unit="bytes", device="0")]


def test_less_is_enough_of_a_rank_alone_where_memory_soon_ends() -> None:
    def creeps(window: int) -> float:
        return 78_000 + 6 * window

    almost = free_of(80_000)
    one = last(findings(peers(r5=creeps), windows=LONG, more=almost, **LIMITED))
    assert (named(one), one.severity) == ([5], "warning")
    assert "nothing is left in 26 minutes" in one.text
    assert not any(findings(peers(r5=creeps), windows=LONG, more=free_of(90_000), **LIMITED))
    assert not any(findings(dict.fromkeys(range(RANKS), creeps), windows=LONG, more=almost, **LIMITED))


def test_what_settles_before_memory_ends_does_not_press() -> None:
    def fills(window: int) -> float:
        return 40_000 + 39_000 * (1 - exp(-window / 20))

    pressing = findings(peers(r5=lambda window: 40_000 + 600 * window), more=free_of(80_000), **LIMITED)
    assert (named(last(pressing)), last(pressing).severity) == ([5], "warning")
    found = findings(peers(r5=fills), more=free_of(80_000), windows=LONG, **LIMITED)
    assert {(one.severity, *named(one)) for window in found for one in window} == {("info",)}


def test_a_sample_of_0_hides_no_leak() -> None:
    def read(lowest: float) -> list[Anomaly]:
        view, seen = new_view(), []
        for number in range(LONG):
            fails = number % 24 in (1, 2, 3)
            levels = {rank: (leak(number) if rank == 5 else flat(number)) * MIB for rank in range(RANKS)}
            summaries = [
                summary(
                    rank,
                    number * 10,
                    iteration=number + 1,
                    iteration_time=at(number * 10 + 5),
                    gauges=[
                        msgspec.structs.replace(
                            gauge("rss_bytes", level / 10 if fails else level, unit="bytes"),
                            minimum=lowest if fails else level,
                        )
                    ],
                )
                for rank, level in levels.items()
            ]
            seen.append(closed(summaries, number * 10))
        return run(MemoryGrowth(), view, seen)[-1]

    (one,) = read(lowest=0)
    assert (named(one), one.severity) == ([5], "warning")
    assert not read(lowest=1)


def devices(
    curve: Curve, *, users: dict[tuple[str, str], int], grows: str = "0000:01:00.0", windows: int = LONG
) -> Anomaly | None:
    """What the last window says of two GPUs a node, told by their nodes, of which that of node02 called so grows."""
    view, seen = new_view(), []
    for number in range(windows):
        ranks = [
            summary(rank, number * 10, iteration=number + 1, iteration_time=at(number * 10 + 5), log_records=1)
            for rank in range(RANKS)
        ]
        nodes = [
            summary(
                None,
                number * 10,
                who=Identity(job="job1", node=f"node{node:02d}", rank_reason="node", process_type="sampler"),
                gauges=[
                    gauge(
                        "DCGM_FI_DEV_FB_USED",
                        ((curve(number) or 0) if (node, device) == (2, grows) else flat(number)) * MIB,
                        unit="bytes",
                        device=device,
                    )
                    for device in ("0000:00:00.0", "0000:01:00.0")
                ],
            )
            for node in range(RANKS // 2)
        ]
        seen.append(closed(ranks, number * 10, nodes=nodes, users=users))
    return next(iter(run(MemoryGrowth(), view, seen)[-1]), None)


def test_of_a_gpu_that_is_nobodys_the_place_is_told() -> None:
    one = devices(leak, users={})
    assert one is not None
    assert (one.grounds, one.severity) == ("memory_growth_of_device", "warning")
    assert [(suspect.rank, suspect.node, suspect.device) for suspect in one.suspects] == [
        (None, "node02", "0000:01:00.0")
    ]
    assert one.text.startswith("DCGM_FI_DEV_FB_USED of GPU 0000:01:00.0 of node02 grows without end: ")
    assert devices(flat, users={}) is None


def test_of_a_gpu_that_is_a_ranks_the_rank_is_told() -> None:
    users = {(f"node{rank // 2:02d}", f"0000:0{rank % 2}:00.0"): rank for rank in range(RANKS)}
    one = devices(leak, users=users)
    assert one is not None
    assert named(one) == [5]
    # The ranks of a node use others: this one is another job's.
    others = {(node, device.replace(":0", ":1", 1)): rank for (node, device), rank in users.items()}
    assert devices(leak, users=others) is None
