"""What of a window's gauges can be compared over ranks: levels, gains of counters, devices, units."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from detection_support import gauge, summary

from schemas.results import Gauge
from streams.comparable import comparable
from streams.gauges import MOST_DEVICES, OWN, gauge_table
from streams.metric_names import counts_up, floors, priority, said_value


def told(*by_rank: list[Gauge]) -> dict[tuple[str, str], list[float]]:
    """The rows by name and device."""
    found = comparable(gauge_table([summary(rank, gauges=gauges) for rank, gauges in enumerate(by_rank)]))
    assert found.measured == sorted(found.measured)
    assert found.values.shape == (len(found.measured), len(found.ranks))
    return {(row.name, row.device): values.tolist() for row, values in zip(found.measured, found.values, strict=True)}


def counter(first: float, last: float, count: int = 5, **fields: float) -> list[Gauge]:
    span = {"minimum": min(first, last), "maximum": max(first, last)} | fields
    made = gauge("ctx_switches", (first + last) / 2, first=first)
    return [msgspec.structs.replace(made, last=last, count=count, **span)]


def test_totals_of_counters_are_never_compared() -> None:
    # Who began long ago has counted more, and gains as much.
    assert told(counter(10, 50), counter(1e9, 1e9 + 40)) == {("ctx_switches", ""): [50.0, 50.0]}


def test_who_is_sampled_more_often_gains_no_more() -> None:
    (row,) = told(counter(0, 40, count=5), counter(0, 45, count=10)).values()
    assert row == [50.0, 50.0]


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("reset to 0", counter(1000, 10)),
        ("reset and higher by the end", counter(1000, 1200, minimum=0)),
        ("wrapped", counter(2.0**32 - 5, 20)),
        ("one sample", counter(7, 7, count=1)),
        ("a fall in between", counter(10, 50, maximum=90)),
    ],
)
def test_what_a_counter_gained_is_unknown_after(name: str, sample: list[Gauge]) -> None:
    (row,) = told(counter(10, 50), sample).values()
    assert row[0] == 50.0
    assert np.isnan(row[1])


def test_a_value_in_another_unit_than_most_ranks_is_left_out() -> None:
    rows = [[gauge("mem_used", 4.0, unit="bytes" if rank != 2 else "MiB")] for rank in range(4)]
    (row,) = told(*rows).values()
    assert [np.isnan(value) for value in row] == [False, False, True, False]


@pytest.mark.parametrize(
    ("values", "unit", "left"),
    [
        ([500, 510, 490_000], "W", [500, 510, None]),
        ([500, 510, 0.5], "W", [500, 510, None]),
        ([60e9, 61e9, 60e9 / 2**20], "bytes", [60e9, 61e9, None]),
        ([60e9, 61e9, 60e9 * 1024], "bytes", [60e9, 61e9, None]),
        ([60e9, 61e9, 60e9 / 200], "bytes", [60e9, 61e9, 3e8]),
        ([500, 510, 5000], "W", [500, 510, 5000]),
        ([99, 98, 0.098], "percent", [99, 98, 0.098]),
        ([500, 490_000], "W", [500, 490_000]),
        ([500, 510, 0], "W", [500, 510, 0]),
    ],
)
def test_a_value_in_another_size_of_the_unit_is_left_out(
    values: list[float], unit: str, left: list[float | None]
) -> None:
    (row,) = told(*([gauge("drawn", value, unit=unit)] for value in values)).values()
    assert [None if np.isnan(value) else value for value in row] == left


def test_the_only_device_of_each_rank_is_its_own_whatever_it_is_called() -> None:
    assert told(*([gauge("temp", 60.0 + rank, device=f"GPU-{rank}")] for rank in range(3))) == {
        ("temp", OWN): [60.0, 61.0, 62.0]
    }


def test_devices_of_one_name_are_held_against_each_other() -> None:
    rows = [[gauge("temp", 60.0 + rank, device=device) for device in ("0", "1")] for rank in range(3)]
    assert told(*rows) == {("temp", "0"): [60.0, 61.0, 62.0], ("temp", "1"): [60.0, 61.0, 62.0]}


def test_devices_of_other_names_are_held_against_each_other_by_their_order() -> None:
    rows = [[gauge("temp", 60.0 + part, device=f"GPU-{rank}{part}") for part in range(2)] for rank in range(3)]
    rows[1].pop(0)
    found = told(*rows)
    assert found["temp", OWN] == [60.0, 61.0, 60.0]
    assert np.isnan(found["temp", "device 1"][1])


@pytest.mark.parametrize("shared", [True, False])
def test_a_further_device_of_one_rank_changes_no_other_row(shared: bool) -> None:
    rows = [[gauge("temp", 60.0 + rank, device="0" if shared else f"GPU-{rank}")] for rank in range(3)]
    bare = told(*rows)
    rows[0].append(gauge("temp", 90.0, device="GPU-x"))
    found = told(*rows)
    assert len(found) == len(bare) + 1
    assert {key: found[key] for key in bare} == bare


def test_devices_of_more_ranks_than_there_is_room_for_are_compared() -> None:
    names = [f"gpu_{number:02d}" for number in range(16)]
    rows = [[gauge(name, 60.0, device=f"GPU-{rank}") for name in names] for rank in range(200)]
    found = told(*rows)
    assert found == {(name, OWN): [60.0] * 200 for name in names}


def test_what_one_rank_has_too_many_of_is_counted() -> None:
    rows = [gauge("temp", 60.0, device=f"GPU-{rank}") for rank in range(2)]
    many = [gauge("temp", 60.0, device=f"x{number}") for number in range(MOST_DEVICES + 6)]
    table = gauge_table([summary(rank, gauges=[one]) for rank, one in enumerate(rows)] + [summary(2, gauges=many)])
    assert (len(table.metrics), table.left_out) == (MOST_DEVICES, 6)


@pytest.mark.parametrize("device", ["\0", OWN, "device 0", "device 1", "None", "|", "", "\ud800", "9" * 5000])
@pytest.mark.parametrize("on", [1, 2, 3])
def test_no_name_of_a_device_is_another_one(device: str, on: int) -> None:
    rows = [[gauge("temp", 60.0 + rank, device="GPU-0")] for rank in range(3)]
    for row in rows[:on]:
        row.append(gauge("temp", 90.0, device=device))
    rows = [sorted(row, key=lambda one: one.device or "") for row in rows]
    table = gauge_table([summary(rank, gauges=row) for rank, row in enumerate(rows)])
    values = np.sort(table.means[np.isfinite(table.means)])
    assert (values.tolist(), table.left_out) == ([60.0, 61.0, 62.0] + [90.0] * on, 0)


def test_devices_called_like_places_go_by_their_order() -> None:
    rows = [[gauge("temp", 60.0 + place, device=device) for place, device in enumerate(["device 1", "own device"])]] * 3
    assert told(*rows) == {("temp", OWN): [60.0] * 3, ("temp", "device 1"): [61.0] * 3}


def test_a_device_on_half_of_the_ranks_goes_by_its_place() -> None:
    rows = [[gauge("temp", 60.0 + rank, device="a" if rank < 2 else "b")] for rank in range(4)]
    assert told(*rows) == {("temp", OWN): [60.0, 61.0, 62.0, 63.0]}


def test_a_process_and_its_devices_are_rows_of_their_own() -> None:
    assert told([gauge("power", 5.0), gauge("power", 300.0, device="0")]) == {
        ("power", ""): [5.0],
        ("power", "0"): [300.0],
    }


def test_nothing_measured_is_nothing_to_compare() -> None:
    assert told([], []) == {}


@pytest.mark.parametrize(
    ("name", "unit", "counter"),
    [
        ("ctx_switches", "count", True),
        ("read_bytes", "bytes", True),
        ("node_infiniband_port_data_received_bytes_total", "bytes", True),
        ("node_infiniband_port_data_received_bytes_total", "bytes/s", False),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "J/s", False),
        ("rss_bytes", "bytes", False),
        ("memory_total", "bytes", False),
        ("node_memory_MemTotal_bytes", "bytes", False),
        ("read_bytes_per_s", "count", False),
        ("cpu_percent", "percent", False),
        ("threads", "count", False),
    ],
)
def test_counters_are_known_by_name_and_unit(name: str, unit: str, *, counter: bool) -> None:
    assert counts_up(name, unit) == counter


def test_what_tells_of_congestion_says_most() -> None:
    names = ["np_cnp_packets_sent_total", "cpu_percent", "DCGM_FI_DEV_GPU_UTIL", "rss_bytes", "DCGM_FI_DEV_GPU_TEMP"]
    assert [priority(name) for name in names] == sorted({priority(name) for name in names})
    assert priority("something") > priority(names[-1])


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (237047808.0, "bytes", "226.1 MiB"),
        (-3.0, "bytes", "-3 B"),
        (2e30, "bytes", "1.776e+15 PiB"),
        (2048.0, "bytes/s", "2 KiB/s"),
        (54.321, "percent", "54.32 percent"),
        (7.0, "count", "7"),
        (0.0, "", "0"),
    ],
)
def test_values_are_said_with_their_unit(value: float, unit: str, said: str) -> None:
    assert said_value(value, unit) == said
    assert all(one >= 0 for one in floors(unit))
