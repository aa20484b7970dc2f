"""Ports and GPUs against the same ones of other nodes: levels that stand apart are information, never more."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import closed, healthy, identity, new_view, run, summary

from schemas.results import Anomaly, Gauge, HardwareChange, gauges_of
from streams.attempt_window import AttemptWindow, Changed
from streams.detectors.hardware_peers import HardwarePeers

RATE, STATE, HEAT = "node_infiniband_rate_bytes_per_second", "infiniband_state", "DCGM_FI_DEV_GPU_TEMP"


def levels(name: str, values: dict[tuple[str, str], float], start: float = 10) -> AttemptWindow:
    """A window in which nodes show these values, by node and device."""
    nodes: dict[str, list[Gauge]] = {}
    for (node, device), value in values.items():
        gauge = Gauge(
            name=name, count=1, mean=value, minimum=value, maximum=value, first=value, last=value, device=device
        )
        nodes.setdefault(node, []).append(gauge)
    shown = [
        summary(None, start, who=identity(None, node=node), gauge_columns=gauges_of(own)) for node, own in nodes.items()
    ]
    return closed((summary(rank, start) for rank in range(4)), start, nodes=shown)


def found(name: str, values: dict[tuple[str, str], float]) -> list[Anomaly]:
    return run(HardwarePeers(), new_view(), [healthy(4), levels(name, values)])[-1]


def ports(*values: float, device: str = "mlx5_0:1") -> dict[tuple[str, str], float]:
    return {(f"n{at}", device): value for at, value in enumerate(values)}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        (RATE, ports(50e9, 50e9, 50e9, 25e9), ["port mlx5_0:1 of n3: its rate is 200 Gb/s"]),
        (STATE, ports(4, 1, 4, 4), ["port mlx5_0:1 of n1: is DOWN"]),
        (RATE, ports(50e9, 50e9, 50e9, 50e9), []),
        (RATE, ports(50e9, 50e9, 25e9), []),
        (RATE, ports(50e9, 50e9, 25e9, 25e9), []),
        (RATE, ports(25e9, 25e9, 25e9, 50e9), []),
        (STATE, ports(1, 1, 1, 1), []),
        (RATE, ports(50e9, 50e9, 50e9) | ports(12.5e9, 12.5e9, 12.5e9, device="mlx5_4:1"), []),
        (HEAT, {("n0", f"g{at}"): 60 for at in range(7)} | {("n0", "g7"): 91}, ["GPU g7 of n0: 91 C on average"]),
        (HEAT, {("n0", f"g{at}"): 88 for at in range(8)}, []),
        (HEAT, {("n0", f"g{at}"): 60 for at in range(7)} | {("n0", "g7"): 80}, []),
        (HEAT, {("n0", "g0"): 60, ("n0", "g1"): 95}, []),
    ],
)
def test_what_is_unlike_most_of_its_name_is_information(
    name: str, values: dict[tuple[str, str], float], said: list[str]
) -> None:
    told = found(name, values)
    assert [any(one.text.startswith(text) for one in told) for text in said] == [True] * len(said) == [True] * len(told)
    assert {(one.severity, one.grounds, one.layer) for one in told} <= {("info", "hardware_unlike", "hardware")}


def test_a_rank_is_told_with_the_gpu_that_is_its_own() -> None:
    window = levels(HEAT, {("n0", f"g{at}"): 60 for at in range(7)} | {("n0", "00000000:3B:00.0"): 91})
    used = msgspec.structs.replace(window, users={("n0", "0000:3b:00.0"): 3})
    (one,) = run(HardwarePeers(), new_view(), [healthy(4), used])[-1]
    assert one.text.startswith("rank 3's GPU 0000:3b:00.0 of n0: 91 C")
    assert [suspect.rank for suspect in one.suspects] == [3]


def test_what_has_just_changed_is_told_as_that_alone() -> None:
    window = levels(STATE, ports(4, 1, 4, 4))
    change = HardwareChange(time=window.start, kind="port_state", name="x", device="mlx5_0:1", before=4, after=1)
    changed = msgspec.structs.replace(window, hardware=[Changed("n1", change)])
    assert run(HardwarePeers(), new_view(), [healthy(4), changed, levels(STATE, ports(4, 1, 4, 4), 20)])[1:] == [[], []]


def test_it_is_told_again_after_a_while() -> None:
    windows = [levels(RATE, ports(50e9, 50e9, 50e9, 25e9), start) for start in range(0, 700, 10)]
    told = run(HardwarePeers(), new_view(), windows)
    assert [10 * at for at, ones in enumerate(told) if ones] == [0, 300, 600]
