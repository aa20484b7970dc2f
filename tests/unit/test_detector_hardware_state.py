"""Static rules on hardware: what is a fault and what is information, whose it is, and in which words it is told."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import at, closed, healthy, new_view, run, summary

from schemas.results import Anomaly, HardwareChange
from streams.attempt_window import Changed
from streams.detectors.hardware_state import HardwareState

GPU, PORT = "0000:3b:00.0", "mlx5_0:1"


def change(
    kind: str, before: float, after: float, second: float = 12, *, rank: int | None = None, **fields: Any
) -> Changed:
    device = PORT if kind.startswith(("port", "link", "symbol", "receive")) else GPU
    values: dict[str, Any] = {"name": "its.name", "device": device, "precision_ns": at(10) - at(0)}
    said = HardwareChange(time=at(second), kind=kind, before=before, after=after, **(values | fields))
    return Changed("node01", said, rank)


def found(*changes: Changed, **fields: Any) -> list[Anomaly]:
    window = closed((summary(rank, 10) for rank in range(4)), 10, hardware=list(changes), **fields)
    return run(HardwareState(), new_view(), [healthy(4), window])[-1]


@pytest.mark.parametrize(
    ("kind", "before", "after", "grounds", "severity", "area", "said"),
    [
        ("port_state", 4, 1, "node_fault", "warning", "network", "is DOWN, was ACTIVE"),
        ("port_state", 1, 4, "port_works", "info", "network", "is ACTIVE, was DOWN"),
        ("port_physical_state", 5, 2, "node_fault", "warning", "network", "is Polling, was LinkUp"),
        ("port_state", 1, 2, "hardware_change", "info", "network", "is INIT, was DOWN"),
        ("port_state", 4, 5, "hardware_change", "info", "network", "is ACTIVE_DEFER, was ACTIVE"),
        ("port_state", 5, 1, "node_fault", "warning", "network", "is DOWN, was ACTIVE_DEFER"),
        ("port_physical_state", 3, 2, "hardware_change", "info", "network", "is Polling, was Disabled"),
        ("port_rate", 50e9, 25e9, "port_slower", "warning", "network", "its rate fell from 400 Gb/s to 200 Gb/s"),
        ("link_downed", 7, 8, "node_fault", "warning", "network", "1 more, 7 before and 8 after"),
        ("symbol_errors", 0, 90, "hardware_change", "info", "network", "90 more, 0 before and 90 after"),
        ("pcie_replays", 0, 3, "hardware_change", "info", "hardware", "PCIe replays, 3 more"),
        ("pcie_width", 16, 8, "hardware_change", "info", "hardware", "from 16 to 8 lanes"),
        ("ecc_uncorrected", 0, 2, "node_fault", "warning", "hardware", "2 more, 0 before and 2 after"),
        ("gpu_lost", 0, 1, "node_fault", "warning", "hardware", "lost or requires a reset, or can"),
        ("row_remap_failure", 0, 1, "node_fault", "warning", "hardware", "has failed"),
        ("rows_remapped_correctable", 0, 1, "hardware_change", "info", "hardware", "1 more"),
        ("throttle_reasons", 4, 0x44, "hardware_change", "info", "hardware", "thermal (hardware), before: nothing"),
        ("xid", 0, 79, "node_fault", "warning", "hardware", "Xid is 79 (GPU has fallen off the bus"),
        ("xid", 0, 31, "node_fault", "warning", "code", "Xid is 31 (GPU memory page fault"),
        ("xid", 79, 63, "hardware_change", "info", "hardware", "before: 79 (GPU has fallen off"),
        ("xid", 0, 9999, "node_fault", "warning", "hardware", "Xid is 9999, before: none"),
    ],
)
def test_each_kind_has_its_weight_and_words(
    kind: str, before: float, after: float, grounds: str, severity: str, area: str, said: str
) -> None:
    (one,) = found(change(kind, before, after))
    assert (one.grounds, one.severity, one.area, one.layer) == (grounds, severity, area, "hardware")
    assert said in one.text
    assert one.text.endswith("(its.name)")
    assert one.onset == at(12)
    assert [(s.rank, s.node, s.device) for s in one.suspects] == [(None, "node01", one.suspects[0].device)]


@pytest.mark.parametrize(
    ("kind", "after", "grounds", "rank"),
    [
        ("xid", 79, "rank_fault", 3),
        ("xid", 63, "hardware_change", 3),
        ("xid", 31, "node_fault", None),
        ("xid", 9999, "node_fault", None),
        ("ecc_uncorrected", 1, "node_fault", None),
        ("pcie_replays", 1, "hardware_change", 3),
    ],
)
def test_a_rank_is_singled_out_only_by_an_error_of_the_catalog_on_its_own_gpu(
    kind: str, after: float, grounds: str, rank: int | None
) -> None:
    (one,) = found(change(kind, 0, after, rank=3))
    assert one.grounds == grounds
    assert (one.severity == "critical") is (grounds == "rank_fault")
    assert [(s.rank, s.device) for s in one.suspects] == [(rank, GPU)]
    assert one.text.startswith("rank 3's GPU 0000:3b:00.0 of node01: ")


def test_what_was_sampled_too_seldom_opens_nothing_and_names_nobody() -> None:
    (one,) = found(change("xid", 0, 79, rank=3, precision_ns=10**12))
    assert (one.grounds, one.severity) == ("hardware_change", "info")


def test_what_may_have_been_before_the_job_opens_nothing() -> None:
    (one,) = found(change("xid", 0, 79, rank=3, precision_ns=at(13) - at(0)))
    assert (one.grounds, one.severity) == ("hardware_change", "info")


@pytest.mark.parametrize("follower", ["port_physical_state", "port_rate", "link_downed"])
def test_what_follows_from_a_port_that_is_down_is_not_told_apart(follower: str) -> None:
    both = found(change("port_state", 4, 1), change(follower, 5, 2))
    assert [one.text.split(" (")[0] for one in both] == ["port mlx5_0:1 of node01: is DOWN, was ACTIVE"]
    other = change(follower, 5, 2, device="mlx5_1:1")
    assert len(found(change("port_state", 4, 1), other)) == 2
    assert len(found(change("port_state", 1, 4), change(follower, 5, 2))) == 2


def test_what_goes_on_is_told_again_after_a_while() -> None:
    windows = [
        closed((summary(rank, start) for rank in range(4)), start, hardware=[change("symbol_errors", 1, 2, start + 5)])
        for start in range(0, 700, 10)
    ]
    told = run(HardwareState(), new_view(), windows)
    assert [10 * at_ for at_, ones in enumerate(told) if ones] == [0, 300, 600]


@pytest.mark.parametrize("fields", [{"stopped": at(12.5)}, {}])
def test_what_comes_with_the_owners_stop_or_long_after_the_last_life_is_of_others(fields: dict[str, Any]) -> None:
    assert found(change("port_state", 4, 1, 12 if fields else 200), **fields) == []


def test_how_many_devices_changed_alike_is_told() -> None:
    several = found(*(change("throttle_reasons", 0, 0x40, device=f"gpu{n}") for n in range(3)))
    assert {one.peers for one in several} == {"devices that changed alike: 3; nodes that run the job: 2"}


def test_a_kind_that_is_not_known_says_nothing() -> None:
    assert found(change("something", 0, 1)) == []
