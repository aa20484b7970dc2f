"""Gauges as columns: how a summary says them, how it said them before, and all ranks' as matrices."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from detection_support import at, closed, gauge, identity, summary

from schemas.codec import CodecError, decode, encode
from schemas.events import Metric
from schemas.results import Gauge, Gauges, gauges_of
from streams.config import StreamConfig
from streams.gauges import MOST_METRICS, OWN, PackedGauges
from streams.stages.worker import WorkerState, summarise

ROWS = [gauge("temp", 70.0, device="gpu1"), gauge("cpu", 99.0), gauge("temp", 60.0, device="gpu0", unit="celsius")]


def columns(*rows: Gauge) -> Any:
    return {"gauge_columns": gauges_of(rows)}


def test_columns_are_sorted_and_say_what_the_rows_said() -> None:
    found = gauges_of(ROWS)
    assert [(one.name, one.device) for one in found] == [("cpu", None), ("temp", "gpu0"), ("temp", "gpu1")]
    assert sorted(found, key=repr) == sorted(ROWS, key=repr)
    assert gauges_of([gauge("cpu", 1.0), gauge("cpu", 2.0)]).means == [2.0]


@pytest.mark.parametrize(("name", "mean"), [("cpu", 99.0), ("temp", None), ("a", None), ("z", None)])
def test_a_processs_own_gauge_is_found_by_name(name: str, mean: float | None) -> None:
    own = gauges_of(ROWS).own(name)
    assert (own and own.mean) == mean


def test_gauges_that_are_said_as_rows_are_read_as_columns() -> None:
    new, old = summary(3, **columns(*ROWS)), summary(3, gauges=ROWS)
    assert decode("window", encode(old)).measured == decode("window", encode(new)).measured == gauges_of(ROWS)
    assert "gauges" not in json.loads(encode(new))
    assert not summary(3).measured


def test_the_rank_stage_says_columns() -> None:
    samples = [("temp", "gpu1", 4.0), ("cpu", None, 1.0), ("cpu", None, 5.0), ("cpu", None, 3.0)]
    metrics = [
        Metric(time=at(second), name=name, device=device, value=value, unit="percent")
        for second, (name, device, value) in enumerate(samples)
    ]
    told, _ = summarise(identity(3), WorkerState(), [*metrics], 0, StreamConfig())
    assert told.gauges == []
    assert told.measured == Gauges(
        names=["cpu", "temp"],
        devices=["", "gpu1"],
        units=["percent", "percent"],
        counts=[3, 1],
        means=[3.0, 4.0],
        minima=[1.0, 4.0],
        maxima=[5.0, 4.0],
        firsts=[1.0, 4.0],
        lasts=[3.0, 4.0],
    )


@pytest.mark.parametrize("name", Gauges.__struct_fields__)
def test_columns_of_different_length_are_refused(name: str) -> None:
    raw = json.loads(encode(summary(3, **columns(*ROWS))))
    raw["gauge_columns"][name].pop()
    with pytest.raises(CodecError, match=r"columns of different length - at `\$\.gauge_columns`"):
        decode("window", json.dumps(raw).encode())


def test_all_ranks_gauges_are_one_matrix_with_gaps() -> None:
    window = closed(
        [
            summary(7, **columns(gauge("cpu", 7.0), gauge("temp", 70.0, device="gpu0"))),
            summary(2, **columns(gauge("cpu", 2.0, first=1.0), gauge("temp", 20.0, device="gpu0"))),
            summary(4),
            summary(5, gauges=[gauge("net", 5.0), gauge("temp", 51.0, device="gpu1")]),
            summary(None, **columns(gauge("cpu", 9.0))),
        ]
    )
    table, gap = window.gauges, np.nan
    assert table.ranks == [2, 5, 7]
    assert table.metrics == [("cpu", ""), ("net", ""), ("temp", "gpu0"), ("temp", OWN)]
    wanted = [[2.0, gap, 7.0], [gap, 5.0, gap], [20.0, gap, 70.0], [gap, 51.0, gap]]
    np.testing.assert_array_equal(table.means, wanted)
    np.testing.assert_array_equal(table.column("firsts")[0], [1.0, gap, 7.0])
    assert table.places("temp") == [2, 3]
    assert window.gauges is table
    assert table.means is table.means


def test_packed_gauges_say_the_same_and_words_are_there_once() -> None:
    packing = PackedGauges()
    rows = [gauges_of([gauge("cpu", 10.0 + rank, first=1.0), gauge("temp", 0.1, device="gpu0")]) for rank in range(3)]
    packed = [packing.of(decode("window", encode(summary(0, gauge_columns=one))).measured) for one in rows]
    assert [list(one) for one in packed] == [list(one) for one in rows]
    assert {id(one.names) for one in packed} == {id(packed[0].names)}
    assert {id(one.units) for one in packed} == {id(packed[0].units)}
    loose, mixed, tight = (
        closed([summary(rank, gauge_columns=one) for rank, one in enumerate(found)]).gauges
        for found in (rows, [*rows[:1], *packed[1:]], packed)
    )
    assert tight.metrics == loose.metrics
    for column in ("counts", "means", "firsts"):
        np.testing.assert_array_equal(tight.column(column), loose.column(column))
        np.testing.assert_array_equal(mixed.column(column), loose.column(column))
    np.testing.assert_array_equal(tight.own("cpu", "means"), [10.0, 11.0, 12.0])
    np.testing.assert_array_equal(tight.own("temp", "means"), [np.nan] * 3)


@pytest.mark.parametrize(
    ("name", "value"), [("counts", 2**63), ("counts", 10**400), ("counts", -1), ("means", 10**400)]
)
def test_numbers_that_nobody_can_hold_are_refused(name: str, value: int) -> None:
    raw = json.loads(encode(summary(3, **columns(*ROWS))))
    raw["gauge_columns"][name][0] = value
    with pytest.raises(CodecError, match=rf"at `\$\.gauge_columns\.{name}"):
        decode("window", json.dumps(raw).encode())


def test_of_a_ranks_summaries_the_last_one_with_gauges_counts() -> None:
    table = closed([summary(1, gauges=[gauge("a", 1.0)]), summary(1, gauges=[gauge("b", 2.0)]), summary(1)]).gauges
    assert (table.metrics, table.means.tolist()) == ([("b", "")], [[2.0]])


def test_no_gauges_are_an_empty_matrix() -> None:
    assert closed([summary(1)]).gauges.means.shape == (0, 0)


def test_what_invents_names_is_bounded_and_what_ranks_share_is_kept() -> None:
    made_up = {rank: [gauge(f"a{rank}-{number}", 1.0) for number in range(MOST_METRICS)] for rank in range(3)}
    summaries = [summary(rank, **columns(*rows, gauge("shared", float(rank)))) for rank, rows in made_up.items()]
    table = closed(summaries).gauges
    assert len(table.metrics) == MOST_METRICS
    np.testing.assert_array_equal(table.means[table.places("shared")[0]], [0.0, 1.0, 2.0])
