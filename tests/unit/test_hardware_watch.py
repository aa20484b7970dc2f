"""Changes in a node's samples: only what changes is one, whoever exports it, over resets, sentinels and other units."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import CONFIG, at

from schemas.events import Event, Metric
from schemas.identity import Identity
from schemas.results import HardwareChange, Window
from streams.hardware import MOST_CHANGES, MOST_CODED, MOST_SERIES, HardwareWatch, WatchState
from streams.stages.worker import WorkerState, summarise

NODE = Identity(job="job", node="gpu3", rank_reason="node", process_type="sampler")
XID, STATE, DOWNED = "DCGM_FI_DEV_XID_ERRORS", "node_infiniband_state_id", "node_infiniband_link_downed_total"
REASONS, RATE, TEMPERATURE = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "infiniband_rate", "DCGM_FI_DEV_GPU_TEMP"
REPLAYS, DATA = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "node_infiniband_port_data_received_bytes_total"


def sample(second: float, name: str, value: float | None, device: str = "d", **fields: Any) -> Metric:
    return Metric(time=at(second), name=name, value=value, device=device, **fields)


def windows(samples: list[Metric], state: WorkerState | None = None) -> list[Window]:
    """The summaries of the samples' windows; the state is written down and read back between them."""
    state = state or WorkerState()
    groups: dict[int, list[Event]] = {}
    for one in samples:
        groups.setdefault(one.time // CONFIG.window_ns, []).append(one)
    found = []
    for number, own in sorted(groups.items()):
        summary, _ = summarise(NODE, state, own, number, CONFIG)
        state = msgspec.json.decode(msgspec.json.encode(state), type=WorkerState)
        found.append(summary)
    return found


def changes(name: str, values: list[float | None], every: float = 5, **fields: Any) -> list[tuple[float, float]]:
    samples = [sample(every * n, name, value, **fields) for n, value in enumerate(values)]
    return [(one.before, one.after) for window in windows(samples) for one in window.hardware]


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        (STATE, [4, 4, 1, 1], [(4, 1)]),
        (STATE, [1, 1, 1], []),
        (STATE, [4, 1, 4], [(4, 1), (1, 4)]),
        (STATE, [4, 0, 0, 4], []),
        (STATE, [4, 0, 1], [(4, 1)]),
        (DOWNED, [7, 7, 7, 7], []),
        (DOWNED, [7, 8, 8, 9], [(7, 8), (8, 9)]),
        (DOWNED, [7, 0, 0], []),
        (DOWNED, [7, 0, 1], [(0, 1)]),
        (DOWNED, [3, 4, 3, 4, 3, 4], [(3, 4)]),
        (DOWNED, [7, 65535, 7], []),
        (XID, [0, 0, 79, 79], [(0, 79)]),
        (XID, [79, 79], []),
        (XID, [79, 0], []),
        (XID, [0, 79, 0, 79, 0, 79], [(0, 79)]),
        (XID, [0, 63, 79], [(0, 63), (63, 79)]),
        (XID, [0, 2147483632, 0], []),
        (XID, [0, 1e300, -3, 0], []),
        (REASONS, [0x1, 0x4, 0x0], []),
        (REASONS, [0x4, 0x44, 0x44, 0x4], [(0x4, 0x44)]),
        (RATE, [50e9, 50e9, 25e9], [(50e9, 25e9)]),
        (RATE, [25e9, 50e9], []),
        (REPLAYS, [0, 1, 3], [(0, 1), (1, 3)]),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", [0, 1], [(0, 1)]),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", [1, 1, 0], []),
        ("nvidia_smi.gpu_lost", [0, 1, 1], [(0, 1)]),
        (TEMPERATURE, [60, 95], []),
        (STATE, [4, None, 1], [(4, 1)]),
        ("something_total", [1, 2, 3], []),
    ],
)
def test_only_what_changes_is_told(name: str, values: list[float | None], found: list[tuple[float, float]]) -> None:
    assert changes(name, values) == found


def test_a_change_has_its_time_and_how_long_before_it_was_seen_last() -> None:
    (one,) = [
        change
        for window in windows([sample(0, XID, 0, "00000000:3B:00.0"), sample(30, XID, 79, "00000000:3B:00.0")])
        for change in window.hardware
    ]
    assert one == HardwareChange(
        time=at(30), kind="xid", name=XID, device="0000:3b:00.0", before=0, after=79, precision_ns=at(30) - at(0)
    )


def test_codes_are_remembered_of_so_many_devices_and_not_for_long() -> None:
    state = WorkerState()
    for window in range(3):
        coded = [sample(200 * window + n / 100, XID, 79, f"g{window}-{n}") for n in range(900)]
        (told,) = windows(coded, state)
        assert len(state.hardware.codes) == MOST_CODED
        assert told.dropped == {"hardware": 900 - MOST_CODED}
        assert min(state.hardware.codes).startswith(f"g{window}-")
    windows([sample(700 + n / 100, XID, 0, f"g{n}") for n in range(9)], other := WorkerState())
    assert other.hardware.codes == {}


def test_a_code_that_comes_again_much_later_is_new() -> None:
    assert changes(XID, [0, 79, 0, 0, 79], every=100) == [(0, 79), (0, 79)]


def test_many_changes_of_a_window_are_told_as_one() -> None:
    samples = [sample(n / 10, DOWNED, n) for n in range(50)]
    (window,) = windows(samples)
    assert [(one.before, one.after) for one in window.hardware] == [(0, 49)]


def test_a_port_that_flaps_within_a_window_has_fallen() -> None:
    states = [sample(n, STATE, value) for n, value in enumerate([4, 4, 1, 2, 4, 1, 4])]
    (window,) = windows(states)
    assert [(one.before, one.after) for one in window.hardware] == [(4, 1), (1, 2)]
    resets = [sample(n, REASONS, value) for n, value in enumerate([0x4, 0x44, 0x4, 0x48, 0x4])]
    assert [(one.before, one.after) for one in windows(resets)[0].hardware] == [(0x4, 0x44)]


def test_a_counter_is_summed_up_as_what_it_gains_in_a_second() -> None:
    values = [1000.0, 1100.0, 1200.0, 50.0, 60.0]
    found = windows([sample(2 * n, DATA, value, unit="bytes") for n, value in enumerate(values)])
    (gauge,) = found[0].measured
    assert (gauge.unit, gauge.count, gauge.minimum, gauge.maximum) == ("bytes/s", 3, 5.0, 50.0)


def test_a_counter_that_only_its_source_knows_for_one_is_one_too() -> None:
    found = windows([sample(n, "anything", 10.0 * n, counter=True) for n in range(3)])
    assert [(gauge.mean, gauge.count) for gauge in found[0].measured] == [(10.0, 2)]


def test_one_name_in_two_units_is_never_mixed() -> None:
    samples = [sample(n, "memory", value, unit=unit) for n, (value, unit) in enumerate([(1, "GiB"), (2e9, "bytes")])]
    (window,) = windows(samples)
    assert [(gauge.unit, gauge.mean) for gauge in window.measured] == [("bytes", 2e9)]
    assert window.dropped == {"unit.memory": 1}
    assert changes(DOWNED, [1, 2], unit="a") == [(1, 2)]
    pair = [sample(0, DOWNED, 1, unit="a"), sample(1, DOWNED, 900, unit="b")]
    assert windows(pair)[0].hardware == []


def test_what_stands_for_no_value_is_counted() -> None:
    (window,) = windows([sample(0, XID, 2147483632.0), sample(1, XID, None, nonfinite="nan")])
    assert window.dropped == {f"blank.{XID}": 1, f"nonfinite.{XID}": 1}
    assert len(window.measured) == 0


def test_a_sample_of_which_nobody_knows_the_time_changes_nothing() -> None:
    samples = [sample(0, STATE, 4), sample(1, STATE, 1, time_source="inferred"), sample(2, STATE, 4)]
    assert windows(samples)[0].hardware == []


def test_two_devices_and_two_exporters_are_series_of_their_own() -> None:
    samples = [sample(n, name, 4 if n < 2 else 1, device) for n in range(4) for name, device in _places()]
    found = windows(samples)[0].hardware
    assert sorted((one.device, one.name) for one in found) == [("a", STATE), ("b", STATE)]


def _places() -> list[tuple[str, str]]:
    return [(STATE, "a"), (STATE, "b"), ("infiniband_state", "a")]


def test_what_invents_devices_does_not_fill_the_memory() -> None:
    state = WorkerState()
    many = [sample(n % 10, DOWNED, n % 7, f"port{n}") for n in range(MOST_SERIES + 500)]
    (window,) = windows(sorted(many, key=lambda one: one.time), state)
    assert len(state.hardware.shown) == MOST_SERIES
    assert window.dropped["hardware"] == 500
    # Once they are no longer sampled they make room.
    late = [sample(620 + n, STATE, value, "real") for n, value in ((0, 4), (1, 1))]
    assert [(one.before, one.after) for one in windows(late, state)[0].hardware] == [(4, 1)]
    more = [sample(10 + n, STATE, value, f"x{port}") for n, value in ((0, 4), (1, 1)) for port in range(200)]
    (other,) = windows(more)
    assert len(other.hardware) == MOST_CHANGES
    assert other.dropped["hardware"] == 200 - MOST_CHANGES


def test_room_is_made_once_a_window_whatever_comes() -> None:
    watch = HardwareWatch(WatchState())
    late = [sample(700 + n, DOWNED, 0, f"late{n}") for n in range(2)]
    for one in [*(sample(0, DOWNED, 0, f"port{n}") for n in range(MOST_SERIES)), sample(1, DOWNED, 0, "new"), *late]:
        watch.take(one)
    assert watch.left_out == 3
    after = HardwareWatch(watch._state)
    after.take(late[0])
    assert (after.left_out, len(watch._state.shown)) == (0, 1)


PHYSICAL, TEMPERATURES, REMAP = "node_infiniband_physical_state_id", [60.0, 60, 0, 60], "DCGM_FI_DEV_ROW_REMAP_FAILURE"


def read_together(told: dict[str, list[float]], every: float = 5) -> list[Window]:
    """The windows of samples of one device that were read at the same times."""
    times = range(len(next(iter(told.values()))))
    return windows([sample(every * n, name, told[name][n]) for n in times for name in sorted(told)])


@pytest.mark.parametrize("every", [1, 5, 10])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a port of which all is 0", {STATE: [4.0, 4, 0, 4], PHYSICAL: [5.0, 5, 0, 5], DOWNED: [7.0, 7, 0, 7]}),
        ("twice in a row", {STATE: [4.0, 0, 0, 4], DOWNED: [7.0, 0, 0, 7]}),
        ("until the end", {STATE: [4.0, 4, 0, 0], RATE: [50e9, 50e9, 0, 0]}),
        ("a rate alone", {RATE: [50e9, 50e9, 0, 50e9]}),
        ("flags that come back", {TEMPERATURE: TEMPERATURES, REASONS: [0x44, 0x44, 0, 0x44], REMAP: [1, 1, 0, 1]}),
        ("a fault that nothing repairs", {REMAP: [1, 1, 0, 1]}),
    ],
)
def test_a_failed_read_changes_nothing(name: str, told: dict[str, list[float]], every: float) -> None:
    found = read_together(told, every)
    assert [one.hardware for one in found] == [[]] * len(found)


@pytest.mark.parametrize(
    ("name", "told", "found"),
    [
        (
            "a port that is down has states",
            {STATE: [4.0, 4, 1, 1], DOWNED: [0.0, 0, 1, 1]},
            {"port_state", "link_downed"},
        ),
        ("beside a gap", {STATE: [4.0, 0, 1, 1], DOWNED: [0.0, 0, 1, 1]}, {"port_state", "link_downed"}),
        ("a sensor that is not there", {TEMPERATURE: [0.0, 0, 0, 0], REMAP: [0.0, 0, 1, 1]}, {"row_remap_failure"}),
        ("a code beside zeros", {TEMPERATURE: [60.0, 60, 0, 0], XID: [0.0, 0, 79, 79]}, {"xid"}),
    ],
)
def test_a_fault_is_told_beside_zeros(name: str, told: dict[str, list[float]], found: set[str]) -> None:
    assert {change.kind for window in read_together(told) for change in window.hardware} == found


def test_values_of_failed_reads_are_counted_and_left_out() -> None:
    (window,) = read_together({TEMPERATURE: TEMPERATURES, DATA: [1000.0, 1100, 0, 1300]}, every=2)
    assert window.dropped == {f"failed read.{DATA}": 1, f"failed read.{TEMPERATURE}": 1}
    means = {gauge.name: (gauge.mean, gauge.count) for gauge in window.measured}
    assert means == {TEMPERATURE: (60, 3), DATA: (50, 2)}


def test_what_a_counter_gained_since_it_was_not_read_is_not_known() -> None:
    (window,) = windows(
        [sample(n, "any_total", value, counter=True) for n, value in enumerate([1e15, 0, 1e15, 1e15 + 8])]
    )
    assert [(gauge.mean, gauge.count) for gauge in window.measured] == [(8.0, 1)]
