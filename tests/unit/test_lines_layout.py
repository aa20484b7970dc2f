"""The parallel layout from start-up lines, and coordinates that follow from it."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from streams.lines.layout import coordinates_of, layout_of, tells_layout

MEGATRON = (
    "using world size: 12, data-parallel size: 4, context-parallel size: 1, hierarchical context-parallel sizes: None, "
    "tensor-model-parallel size: 1, pipeline-model-parallel size: 3"
)
TITAN = "Building device mesh with parallelism: pp=2, dp_replicate=2, dp_shard=4, cp=1, tp=2, ep=1"


def topology(pp: int, dp: int, tp: int | None) -> str:
    """DeepSpeed's line, ranks counted with the last axis fastest."""
    places = [
        f"pipe={p}, data={d}" + ("" if tp is None else f", model={t}")
        for p in range(pp)
        for d in range(dp)
        for t in range(tp or 1)
    ]
    return "Using topology: {" + ", ".join(f"ProcessCoord({one}): {rank}" for rank, one in enumerate(places)) + "}"


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        (MEGATRON, {"world": 12, "dp": 4, "cp": 1, "tp": 1, "pp": 3}),
        ("init: world size 8, backend gloo", {"world": 8}),
        (TITAN, {"world": 32, "pp": 2, "dp": 8, "cp": 1, "tp": 2}),
        ("Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=-1, cp=1, tp=2, ep=1", {}),
        (topology(2, 3, 2), {"world": 12, "pp": 2, "dp": 3, "cp": 1, "tp": 2}),
        (topology(2, 2, None), {"world": 4, "pp": 2, "dp": 2, "cp": 1, "tp": 1}),
        (topology(2, 3, 2)[:-30], {}),
        (topology(2, 3, 2).replace(": 3,", ": 4,"), {}),
        ("Using topology: {ProcessCoord(pipe=0, data=1): 0, ProcessCoord(pipe=0, data=0): 1}", {}),
        ("world_size=16", {"world": 16}),
        ("data-parallel size: 4", {}),
        (f"{MEGATRON[:30]}, expert-model-parallel size: 8", {"world": 12, "ep": 8}),
        (TITAN[:-1] + "4", {"world": 32, "pp": 2, "dp": 8, "cp": 1, "tp": 2, "ep": 4}),
        ("  expert_model_parallel_size ...................... 8", {"ep": 8}),
        ("  expert_model_parallel_size ...................... 1", {}),
        ("  num_experts ..................................... None", {}),
        ('  "num_local_experts": 8,', {"experts": 8}),
        ("experts are rare", {}),
        ("hello world", {}),
        ("", {}),
    ],
)
def test_a_start_up_line_gives_the_sizes(line: str, layout: dict[str, int]) -> None:
    assert layout_of(line) == layout
    assert tells_layout(line) >= bool(layout)


def test_torchtitans_and_deepspeeds_ranks_are_counted_as_megatrons() -> None:
    for line, pp in ((TITAN, 2), (topology(4, 3, 2), 4)):
        layout = layout_of(line)
        share = layout["world"] // pp
        assert [coordinates_of(rank, layout)["pp"] for rank in range(layout["world"])] == [
            rank // share for rank in range(layout["world"])
        ]


def test_a_stage_is_the_rank_divided_by_the_ranks_of_a_stage() -> None:
    layout = layout_of(MEGATRON)
    assert [coordinates_of(rank, layout)["pp"] for rank in range(12)] == [rank // (12 // 3) for rank in range(12)]
    assert [coordinates_of(rank, layout)["dp"] for rank in range(12)] == [rank % 4 for rank in range(12)]


SIZES = st.tuples(*[st.integers(1, 4)] * 4)


@FIXED
@given(SIZES)
def test_coordinates_name_each_rank_once_with_the_fastest_axis_first(sizes: tuple[int, int, int, int]) -> None:
    tp, cp, dp, pp = sizes
    layout = {"tp": tp, "cp": cp, "dp": dp, "pp": pp, "world": tp * cp * dp * pp}
    found = [coordinates_of(rank, layout) for rank in range(layout["world"])]
    assert len({tuple(sorted(one.items())) for one in found}) == layout["world"]
    for rank, one in enumerate(found):
        assert one["tp"] + tp * (one["cp"] + cp * (one["dp"] + dp * one["pp"])) == rank
        assert all(0 <= one[axis] < layout[axis] for axis in one)
        assert one["pp"] == rank // (layout["world"] // pp)


@pytest.mark.parametrize("layout", [{}, {"world": 8}, {"world": 8, "pp": 3}, {"world": 8, "dp": 8}, {"pp": 2, "dp": 4}])
def test_sizes_that_do_not_fit_the_world_give_no_coordinates(layout: dict[str, int]) -> None:
    assert coordinates_of(3, layout) == {}
