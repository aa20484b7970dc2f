"""The parallel layout from start-up lines, and coordinates that follow from it."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from streams.lines.layout import coordinates_of, layout_of

MEGATRON = (
    "using world size: 12, data-parallel size: 4, context-parallel size: 1, hierarchical context-parallel sizes: None, "
    "tensor-model-parallel size: 1, pipeline-model-parallel size: 3"
)


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        (MEGATRON, {"world": 12, "dp": 4, "cp": 1, "tp": 1, "pp": 3}),
        ("init: world size 8, backend gloo", {"world": 8}),
        ("world_size=16", {"world": 16}),
        ("data-parallel size: 4", {}),
        ("hello world", {}),
        ("", {}),
    ],
)
def test_a_start_up_line_gives_the_sizes(line: str, layout: dict[str, int]) -> None:
    assert layout_of(line) == layout


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
