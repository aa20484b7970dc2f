"""Samples that a failed read has left behind: an exporter that cannot read a device may print 0 for all of it.

Continuity decides. What is never 0 while a device is there, and was not 0 before, has not become so: the read has
failed. No port has state 0 (to the kernel that is "no change"), one that is down has a rate yet, and no GPU in a rack
is at 0 degrees. Then whatever else that read told of the device as 0 is not known either: a counter was not reset, and
a flag not lowered. What was always 0 is no gap but a sensor that is not there, and tells nothing of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from schemas.events import Metric
from schemas.measures import measure_of

Read = tuple[int, str, int | None]
"""Time, device and process of samples that one read has told."""
_NEVER_0 = frozenset(
    {"port_state", "port_physical_state", "port_rate", "pcie_width", "gpu_temperature", "memory_temperature"}
)


def failed_reads(samples: Iterable[Metric], shown: Callable[[Metric], float | None]) -> frozenset[Read]:
    """The reads that have failed among samples in order of time; ``shown`` is what one's metric showed before them."""
    found, latest = set(), {}
    for one in samples:
        if one.value is None or one.iteration is not None or not _is_never_0(one.name):
            continue
        key = (one.name, one.device, one.pid)
        if one.value:
            latest[key] = one.value
        elif latest.get(key) or shown(one):
            found.add(read_of(one))
    return frozenset(found)


def read_of(sample: Metric) -> Read:
    """By which read a sample was told."""
    return sample.time, sample.device or "", sample.pid


@lru_cache(maxsize=4096)
def _is_never_0(name: str) -> bool:
    measure = measure_of(name)
    return measure is not None and measure.kind in _NEVER_0
