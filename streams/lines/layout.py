"""The parallel layout that start-up lines tell, and coordinates that follow from it."""

from __future__ import annotations

import re

LONGEST = 65_536
"""Characters of a line that names the place of every rank; of others a thousand count."""

_WORLD = re.compile(r"\bworld[ _]size[=: ]+(\d{1,7})")
_SIZES = {
    "dp": re.compile(r"data-parallel size: (\d{1,6})"),
    "cp": re.compile(r"(?<!hierarchical )context-parallel size: (\d{1,6})"),
    "tp": re.compile(r"tensor-model-parallel size: (\d{1,6})"),
    "pp": re.compile(r"pipeline-model-parallel size: (\d{1,6})"),
}
_MESH = re.compile(
    r"Building device mesh with parallelism: pp=(\d{1,6}), dp_replicate=(\d{1,6}), dp_shard=(\d{1,6}), cp=(\d{1,6}), "
    r"tp=(\d{1,6})(?:, ep=(\d{1,6}))?"
)
_EXPERTS = {
    "ep": re.compile(r"\b(?:expert[-_](?:model[-_])?parallel[-_ ]size|ep_size)[\"']?[ .:=]{1,80}(\d{1,6})\b"),
    "experts": re.compile(
        r"\b(?:num_(?:local_|moe_)?experts|moe_num_experts|n_routed_experts)[\"']?[ .:=]{1,80}(\d{1,6})\b"
    ),
}
"""As Megatron and DeepSpeed print their arguments and Hugging Face a model's configuration."""
_PLACE = re.compile(r"ProcessCoord\(pipe=(\d{1,6}), data=(\d{1,6})(?:, model=(\d{1,6}))?\): (\d{1,7})(?=[,}])")
_PLACES = "Using topology: {ProcessCoord("


def tells_layout(text: str) -> bool:
    """Whether ``layout_of`` has to look closer; it never says no where that finds something."""
    head = text[:1000]
    if "expert" in head or "ep_size" in head:
        return True
    return _PLACES in head or _WORLD.search(head) is not None or _MESH.search(head) is not None


def layout_of(text: str) -> dict[str, int]:
    """Sizes by axis from the start-up line of Megatron, torchtitan or DeepSpeed's pipelines; else nothing.

    ``world`` is taken from any line that gives the world size, or follows from the sizes. ``ep`` and ``experts``, how
    many there are, come from any line that gives them, and only where there are several.
    """
    head = text[:1000]
    return {**_sizes_of(text, head), **_experts_of(head)}


def _experts_of(head: str) -> dict[str, int]:
    mesh = _MESH.search(head)
    told = {"ep": mesh.group(6) or "1"} if mesh is not None else {}
    for axis, pattern in _EXPERTS.items():
        if (found := pattern.search(head)) is not None:
            told[axis] = found.group(1)
    return {axis: int(size) for axis, size in told.items() if int(size) > 1}


def _sizes_of(text: str, head: str) -> dict[str, int]:
    mesh = _MESH.search(head)
    if mesh is not None:
        pp, replicas, shards, cp, tp = (int(size) for size in mesh.groups()[:5])
        return {"world": pp * replicas * shards * cp * tp, "pp": pp, "dp": replicas * shards, "cp": cp, "tp": tp}
    if _PLACES in head:
        return _of_places(text[:LONGEST])
    world = _WORLD.search(head)
    if world is None:
        return {}
    layout = {"world": int(world.group(1))}
    for axis, pattern in _SIZES.items():
        found = pattern.search(head)
        if found:
            layout[axis] = int(found.group(1))
    return layout


def _of_places(text: str) -> dict[str, int]:
    """Sizes from the place of every rank; nothing unless all are there, each where the sizes have it."""
    places = {int(rank): (int(pipe), int(data), int(model or 0)) for pipe, data, model, rank in _PLACE.findall(text)}
    if not places:
        return {}
    pp, dp, tp = (max(place[axis] for place in places.values()) + 1 for axis in range(3))
    layout = {"world": len(places), "pp": pp, "dp": dp, "cp": 1, "tp": tp}
    if pp * dp * tp != len(places) or sorted(places) != list(range(len(places))):
        return {}
    for rank, (pipe, data, model) in places.items():
        if rank != model + tp * (data + dp * pipe):
            return {}
    return layout


def coordinates_of(rank: int, layout: dict[str, int]) -> dict[str, int]:
    """Coordinates in Megatron's default order tp-cp-ep-dp-pp, fastest first; empty where sizes do not fit the world."""
    tp, cp, dp, pp = (layout.get(axis, 1) for axis in ("tp", "cp", "dp", "pp"))
    if "pp" not in layout or min(tp, cp, dp, pp) < 1 or tp * cp * dp * pp != layout.get("world"):
        return {}
    return {"tp": rank % tp, "cp": rank // tp % cp, "dp": rank // (tp * cp) % dp, "pp": rank // (tp * cp * dp)}
