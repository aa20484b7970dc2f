"""What sampled metrics are by name and unit: what only counts up, how far apart is far, which of them say more."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 200
"""Characters of a name that are looked at."""
_RATE = re.compile(r"/s$|per_s(?:ec(?:ond)?)?$")
_COUNTER = re.compile(
    r"_total$|_errors?$|^(?:num_)?ctx_switches|^(?:read|write|rchar|wchar|sent|recv|received)(?:_bytes|_count)?$"
    r"|(?:voluntary|involuntary)\w*switches$|(?:minor|major|page)_?faults$|^(?:pg(?:maj)?fault)$|cpu_seconds|cpu_time",
    re.IGNORECASE,
)
_NO_COUNTER = re.compile(r"mem(?:ory)?_?total|total_mem(?:ory)?|fb_total|swap_?total|memory\.total", re.IGNORECASE)

_PRIORITY = (
    re.compile(r"pfc|cnp|pause|retrans|retry|out_of_seq|xmit_wait|transmit_wait|ecn|congest", re.IGNORECASE),
    re.compile(r"cpu|load\d|ctx_switches|process_(?:running|disk)", re.IGNORECASE),
    re.compile(r"gpu_util|utilization[._]gpu|gr_engine|sm_active|tensor_active|duty|occupancy", re.IGNORECASE),
    re.compile(r"mem(?!ory_temp)|rss|fb_(?:used|free)|heap|oom|swap", re.IGNORECASE),
    re.compile(r"power|clock|temp|throttl", re.IGNORECASE),
    re.compile(r"bytes|packets|bandwidth|_io|read|write|disk|network|infiniband|nvlink|pcie", re.IGNORECASE),
)
"""Minder's order (2411.01791): what tells of congestion first, then processor, accelerator, memory, the rest."""

_FLOORS = {
    "percent": (0.1, 2.0),
    "ratio": (0.1, 0.02),
    "C": (0.0, 2.0),
    "W": (0.03, 5.0),
    "MHz": (0.02, 5.0),
    "bytes": (0.05, float(8 << 20)),
    "flag": (0.0, 0.1),
    "state": (0.0, 0.1),
}
"""By unit: the least deviation, as a share of the peers' median and as a number."""
_OTHERS = (0.1, 0.2)
_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


@lru_cache(maxsize=4096)
def counts_up(name: str, unit: str) -> bool:
    """Whether a metric counts up since some beginning: then only what it gains can be compared."""
    name = name[:LONGEST]
    if _RATE.search(unit[:LONGEST]) or _RATE.search(name):
        return False
    return _COUNTER.search(name) is not None and _NO_COUNTER.search(name) is None


@lru_cache(maxsize=4096)
def priority(name: str) -> int:
    """Which of several metrics says more, the lowest first."""
    return next((place for place, pattern in enumerate(_PRIORITY) if pattern.search(name[:LONGEST])), len(_PRIORITY))


def floors(unit: str) -> tuple[float, float]:
    """The least deviation that means anything, as a share of what is usual and as a number in ``unit``."""
    return _FLOORS.get(unit, _OTHERS)


def said_value(value: float, unit: str) -> str:
    """A value with its unit, as people write it."""
    rate = "/s" if unit.endswith("/s") else ""
    if unit.removesuffix("/s") != "bytes":
        return f"{value:.4g}" + (f" {unit}" if unit not in ("", "count") else "")
    size, place = abs(value), 0
    while size >= 1024 and place < len(_PREFIXES) - 1:
        size, place = size / 1024, place + 1
    return f"{'-' if value < 0 else ''}{size:.4g} {_PREFIXES[place]}B{rate}"
