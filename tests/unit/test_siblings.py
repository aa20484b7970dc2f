"""Files of samples that name no node: which of them are of different nodes, and what those are called."""

from __future__ import annotations

import pytest

from producers.siblings import Values, places

SMI = ["smi/nvidia-smi-alpha.csv", "smi/nvidia-smi-beta.csv"]


def told(values: dict[int, float], device: str = "0") -> Values:
    return {("temperature", device, "C"): values}


def scrape(time: int, value: float) -> Values:
    return told({time: value})


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (SMI, ["alpha", "beta"]),
        (["a/gpu-a-17/s.csv", "a/gpu-b-17/s.csv"], ["gpu-a-17", "gpu-b-17"]),
        (["dcgm-rack-17.prom", "dcgm-rack-18.prom"], ["rack-17", "rack-18"]),
        (["17.prom", "18.prom"], ["17", "18"]),
        (["a1/s.csv", "a2/t.csv"], ["a1/s.csv", "a2/t.csv"]),
        (["a/x.csv", "a/y.csv", "b/x.csv", "b/y.csv"], ["a/x.csv", "a/y.csv", "b/x.csv", "b/y.csv"]),
        (["a/rank3.prom", "a/rank4.prom"], ["a/rank3.prom", "a/rank4.prom"]),
        (["a/gpu0/s.prom", "a/gpu1/s.prom"], ["a/gpu0/s.prom", "a/gpu1/s.prom"]),
        (["s-*.csv", "s-$(x).csv"], ["s-*.csv", "$(x)"]),
        (["x/" * 999 + "a", "x/" * 999 + "b"], ["x/" * 999 + "a", "x/" * 999 + "b"]),
    ],
)
def test_a_place_is_called_by_the_only_part_in_which_paths_differ(paths: list[str], names: list[str]) -> None:
    files = {path: told({0: 60.0 + at, 10: 60.0}) for at, path in enumerate(paths)}
    expected = dict(zip(paths, names, strict=True))
    assert places(files) == expected
    assert places(dict(reversed(files.items()))) == expected


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        (told({0: 60, 10: 61}), told({0: 60, 10: 62}), True),
        (told({0: 60, 10: 60}), told({5: 60, 15: 60}), True),
        (told({0: 60, 10: 61}), told({0: 60, 10: 61}), False),
        (told({0: 60, 10: 61}), told({10: 61, 20: 62}), False),
        (told({0: 60, 10: 61}), told({20: 60, 30: 62}), False),
        (told({0: 60, 10: 61}), told({0: 70, 10: 71}, "1"), False),
        (told({0: float("nan")}), told({0: float("nan")}), False),
        ({}, told({0: 60}), False),
    ],
    ids=["values", "times", "copy", "overlap", "rotated", "devices", "nan", "empty"],
)
def test_only_what_contradicts_over_the_same_time_is_of_different_nodes(
    first: Values, second: Values, apart: bool
) -> None:
    names = places({SMI[0]: first, SMI[1]: second})
    assert names == ({SMI[0]: "alpha", SMI[1]: "beta"} if apart else {})


def test_scrapes_that_differ_in_their_times_are_of_one_place() -> None:
    files = {
        f"m/{node}/dcgm-20261130T1733{time:02}Z.prom": scrape(time, value)
        for node, value in (("alpha", 60), ("beta", 70))
        for time in (8, 38)
    }
    assert places(files) == {file: file.split("/")[1] for file in files}


def test_the_same_name_from_other_siblings_is_not_taken_for_what_contradicts() -> None:
    files = {
        f"{above}/{node}/{file}.csv": told({0: value})
        for value, (above, node, file) in enumerate(
            (("a", "n1", "s"), ("a", "n2", "s"), ("b", "n1", "t"), ("b", "n2", "t"))
        )
    }
    assert len(set(places(files).values())) == 4


def test_the_same_name_from_other_siblings_is_one_place_where_nothing_contradicts() -> None:
    files = {
        f"{above}/n{node}.csv": told({0: float(node)}, device)
        for above, device in (("a", "0"), ("b", "1"))
        for node in (1, 2)
    }
    assert places(files) == {file: file[2:4] for file in files}
