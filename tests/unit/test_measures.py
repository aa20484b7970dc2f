"""What metrics of nodes mean: kinds over all sources, base units, and values that stand for none."""

from __future__ import annotations

import pytest

from schemas.measures import based, is_blank, measure_of

XID, RATE = "DCGM_FI_DEV_XID_ERRORS", "infiniband_rate"


@pytest.mark.parametrize(
    ("name", "kind", "counter"),
    [
        (XID, "xid", False),
        ("dcgm_xid_errors", "xid", False),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie_replays", True),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "throttle_reasons", False),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "throttle_reasons", False),
        ("clocks_throttle_reasons.active", "throttle_reasons", False),
        ("clocks_event_reasons.hw_slowdown", "throttle_hw_slowdown", False),
        ("node_infiniband_state_id", "port_state", False),
        ("infiniband_state", "port_state", False),
        ("node_infiniband_link_downed_total", "link_downed", True),
        ("infiniband_link_downed", "link_downed", True),
        ("infiniband_roce_slow_restart", "", True),
        ("node_infiniband_roce_adp_retrans_total", "", True),
    ],
)
def test_one_kind_over_all_sources(name: str, kind: str, counter: bool) -> None:
    measure = measure_of(name)
    assert measure is not None
    assert (measure.kind, measure.counter) == (kind, counter)


@pytest.mark.parametrize(
    "name", ["cpu_percent", "DCGM_FI_DEV_SOMETHING", "node_infiniband_info", "node_cpu_seconds_total", "", "state"]
)
def test_of_other_names_nothing_is_known(name: str) -> None:
    assert measure_of(name) is None


@pytest.mark.parametrize(
    ("name", "printed", "unit", "value", "base"),
    [
        ("infiniband_port_rcv_data", 4_631_917, "", 18_527_668, "bytes"),
        ("node_infiniband_port_data_received_bytes_total", 18_527_668, "", 18_527_668, "bytes"),
        (RATE, 400, "", 50e9, "bytes/s"),
        ("DCGM_FI_DEV_FB_USED", 1, "", 2**20, "bytes"),
        ("memory.used", 1, "MiB", 2**20, "bytes"),
        ("memory.used", 1, "", 2**20, "bytes"),
        ("memory.used", 1, "GiB", 2**30, "bytes"),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1500, "", 1.5, "J"),
        ("utilization.gpu", 68, "%", 68, "percent"),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.68, "", 0.68, "ratio"),
        ("power.draw", 500, "mW", 0.5, "W"),
        ("power.draw", 500, "furlongs", 500, "furlongs"),
        ("power.draw", 250, "ms", 0.25, "s"),
        ("power.draw", 250, "us", 0.00025, "s"),
    ],
)
def test_values_come_in_base_units_and_a_printed_unit_counts_first(
    name: str, printed: float, unit: str, value: float, base: str
) -> None:
    measure = measure_of(name)
    assert measure is not None
    found, told = based(printed, unit, measure)
    assert told == base
    assert found == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value", "blank"),
    [
        (XID, 2147483632, True),
        (XID, 2147483635, True),
        (XID, 2147483648, False),
        (XID, 9223372036854775794, True),
        (XID, 140737488355328, True),
        (XID, 140737488355331, True),
        (XID, 79, False),
        (XID, 4294967295, True),
        ("dcgm_gpu_temp", 2147483634, True),
        ("infiniband_port_xmit_data", 4294967295, True),
        ("infiniband_port_xmit_data", 18446744073709551615, True),
        ("infiniband_port_xmit_data", 65535, False),
        ("infiniband_symbol_error", 65535, True),
        ("infiniband_symbol_error", 65534, False),
        ("node_infiniband_symbol_error_total", 65535, True),
        ("rss_bytes", 4294967295, False),
        ("rss_bytes", 2147483632, False),
    ],
)
def test_what_stands_for_no_value_is_known_by_its_source(name: str, value: float, blank: bool) -> None:
    assert is_blank(name, float(value)) is blank


@pytest.mark.parametrize(
    ("value", "unit", "blank"),
    [
        (-1, "W", True),
        (-1, "bytes", True),
        (2**32 - 1, "percent", True),
        (2**32 - 1, "bytes", False),
        (2**64 - 1, "bytes", True),
        (-1, "C", False),
        (-1, "count", False),
        (0, "W", False),
    ],
)
def test_no_amount_is_negative_or_all_ones(value: float, unit: str, *, blank: bool) -> None:
    assert is_blank("anything", float(value), unit) is blank
