"""What a node tells of a GPU is compared like a gauge of the rank that alone uses it."""

from __future__ import annotations

from math import isfinite

import pytest
from detection_support import closed, identity, summary

from schemas.results import Gauge, gauges_of
from streams.gauges import OWN

TEMPERATURE, UTILISATION = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL"


def gauge(name: str, value: float, device: str | None = None, unit: str = "C") -> Gauge:
    return Gauge(
        name=name, count=1, mean=value, minimum=value, maximum=value, first=value, last=value, device=device, unit=unit
    )


def table(users: dict[tuple[str, str], int], *of_node: Gauge, ranks: int = 3) -> dict[tuple[str, str], list[float]]:
    own = gauges_of([gauge("cpu_percent", 50)])
    node = summary(None, who=identity(None, node="node00"), gauge_columns=gauges_of(of_node))
    window = closed((summary(rank, gauge_columns=own) for rank in range(ranks)), nodes=[node], users=users)
    found = window.gauges
    return dict(zip(found.metrics, found.means.tolist(), strict=True))


USERS = {("node00", "0000:3b:00.0"): 0, ("node00", "0000:5d:00.0"): 2, ("node01", "0000:5d:00.0"): 1}


def test_the_gauges_of_a_ranks_own_gpu_are_the_ranks() -> None:
    found = table(USERS, gauge(TEMPERATURE, 60, "00000000:3B:00.0"), gauge(TEMPERATURE, 70, "00000000:5D:00.0"))
    own = found.pop(("cpu_percent", ""))
    assert own == [50, 50, 50]
    assert {metric: [value for value in row if isfinite(value)] for metric, row in found.items()} == {
        (TEMPERATURE, OWN): [60, 70],
    }


@pytest.mark.parametrize(
    ("users", "told"),
    [
        ({}, gauge(TEMPERATURE, 60, "00000000:3B:00.0")),
        (USERS, gauge(TEMPERATURE, 60, "nvidia0")),
        (USERS, gauge(TEMPERATURE, 60)),
        (USERS, gauge("DCGM_FI_DEV_XID_ERRORS", 79, "00000000:3B:00.0", "code")),
        ({("node00", "0000:3b:00.0"): 9}, gauge(TEMPERATURE, 60, "00000000:3B:00.0")),
    ],
)
def test_what_is_nobodys_or_no_amount_is_not_compared(users: dict[tuple[str, str], int], told: Gauge) -> None:
    assert list(table(users, told)) == [("cpu_percent", "")]
