"""The parallel layout that start-up lines tell, and coordinates that follow from it."""

from __future__ import annotations

import re

_WORLD = re.compile(r"\bworld[ _]size[=: ]+(\d{1,7})")
_SIZES = {
    "dp": re.compile(r"data-parallel size: (\d{1,6})"),
    "cp": re.compile(r"(?<!hierarchical )context-parallel size: (\d{1,6})"),
    "tp": re.compile(r"tensor-model-parallel size: (\d{1,6})"),
    "pp": re.compile(r"pipeline-model-parallel size: (\d{1,6})"),
}


def layout_of(text: str) -> dict[str, int]:
    """Sizes by axis from Megatron's start-up line, ``world`` from any line that gives the world size."""
    head = text[:1000]
    world = _WORLD.search(head)
    if world is None:
        return {}
    layout = {"world": int(world.group(1))}
    for axis, pattern in _SIZES.items():
        found = pattern.search(head)
        if found:
            layout[axis] = int(found.group(1))
    return layout


def coordinates_of(rank: int, layout: dict[str, int]) -> dict[str, int]:
    """Coordinates in Megatron's default order tp-cp-ep-dp-pp, fastest first; empty where sizes do not fit the world."""
    tp, cp, dp, pp = (layout.get(axis, 1) for axis in ("tp", "cp", "dp", "pp"))
    if "pp" not in layout or min(tp, cp, dp, pp) < 1 or tp * cp * dp * pp != layout.get("world"):
        return {}
    return {"tp": rank % tp, "cp": rank // tp % cp, "dp": rank // (tp * cp) % dp, "pp": rank // (tp * cp * dp)}
