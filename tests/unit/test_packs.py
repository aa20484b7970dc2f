"""Series and gauges as packs: what they hold, that windows of all ages say the same, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from detection_support import FIXED, gauge, series, summary
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import CodecError, decode, encode, headers, kind_of
from schemas.packs import SeriesNames
from schemas.ports import Entry
from schemas.results import Progress, Series, Window, gauges_of
from streams.config import StreamConfig
from streams.packing import pack_of_series, with_packs
from streams.series_table import one_behind_another, series_table
from streams.stages.job import JobStage

LINE = [series("a_ms", 3, [1.0, 2.5]), series("b_ms", 3, [4.0, None])]
LOSS = Series(
    name="loss",
    unit="x",
    iterations=[3, 9],
    times=[7, 2**63 - 1],
    values=[None, -0.25],
    nonfinite=[(3, "nan"), (9, "")],
)
VALUES = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))


def sent(window: Window) -> Window:
    """The window as the job stage reads it."""
    found: Window = decode("window", encode(with_packs(window)))
    return found


@pytest.mark.parametrize("found", [[], [LOSS], [*LINE, LOSS], [LOSS, LOSS]])
def test_series_are_read_as_they_were_said(found: list[Series]) -> None:
    told = sent(summary(1, series=found))
    assert told.reported == found
    assert told.series == []


def test_series_of_one_line_have_their_iterations_and_times_once() -> None:
    pack = pack_of_series([*LINE, LOSS])
    assert (pack.names.axes, pack.names.lengths) == ([0, 0, 1], [2, 2])
    assert [(list(iterations), list(times)) for iterations, times in pack.axes()] == [
        (LINE[0].iterations, LINE[0].times),
        (LOSS.iterations, LOSS.times),
    ]


@pytest.mark.parametrize("found", [[], [gauge("a", 1.5)], [gauge("b", 2.0, device="gpu0"), gauge("a", -1e300)]])
def test_gauges_are_read_as_they_were_said_in_any_way(found: list[Any]) -> None:
    rows = summary(1, gauges=found)
    columns = summary(1, gauge_columns=gauges_of(found))
    assert list(sent(rows).measured) == list(sent(columns).measured) == list(columns.measured)
    assert (sent(rows).gauges, bool(sent(columns).gauge_columns)) == ([], False)


def test_what_does_not_fit_stays_as_it_was_and_is_in_no_table() -> None:
    far = summary(1, series=[series("a_ms", 2**63, [1.0]), *LINE[1:]])
    assert with_packs(far) == far
    assert {name: list(told) for name, told in series_table([far]).items()} == {"b_ms": [(1, LINE[1])]}


BROKEN = [
    ("words", msgspec.Raw(b"[]"), "names of a pack"),
    ("words", msgspec.Raw(b'{"names":["a"],"units":[],"axes":[0],"lengths":[2]}'), "do not belong together"),
    ("words", msgspec.Raw(b'{"names":["a"],"units":[""],"axes":[1],"lengths":[2]}'), "do not belong together"),
    ("words", msgspec.Raw(b'{"names":["a"],"units":[""],"axes":[-1],"lengths":[2]}'), "names of a pack"),
    ("words", msgspec.Raw(b'{"names":["a"],"units":[""],"axes":[0],"lengths":[0]}'), "names of a pack"),
    ("iterations", b"123", "another length"),
    ("times", b"", "another length"),
    ("values", b"\0" * 8, "another length"),
]


@pytest.mark.parametrize(("field", "value", "why"), BROKEN)
def test_a_broken_pack_is_no_record(field: str, value: Any, why: str) -> None:
    whole = msgspec.json.decode(encode(sent(summary(1, series=LINE))))
    whole["series_pack"][field] = msgspec.json.decode(msgspec.json.encode(value))
    with pytest.raises(CodecError, match=why):
        decode("window", msgspec.json.encode(whole))


@pytest.mark.parametrize("numbers", ["", "AAAA"])
def test_a_broken_pack_of_gauges_is_no_record(numbers: str) -> None:
    whole = msgspec.json.decode(encode(sent(summary(1, gauges=[gauge("a", 1.0)]))))
    whole["gauge_pack"]["numbers"] = numbers
    with pytest.raises(CodecError, match="another length"):
        decode("window", msgspec.json.encode(whole))


def test_columns_of_different_length_are_not_packed() -> None:
    with pytest.raises(ValueError, match="different length"):
        Series(name="a", iterations=[1, 2], times=[1, 2], values=[1.0])
    with pytest.raises(CodecError, match="different length"):
        decode("window", encode(summary(1, series=LINE)).replace(b'"values":[', b'"values":[1.0,'))
    with pytest.raises(ValueError, match="belong together"):
        SeriesNames(["a"], [], [0], [1])


def test_infinities_in_a_pack_are_no_readings() -> None:
    pack = msgspec.structs.replace(pack_of_series(LINE), values=np.array([1.0, np.inf, -np.inf, np.nan]).tobytes())
    told = summary(1, series_pack=pack)
    assert [one.values for one in told.reported] == [[1.0, None], [None, None]]
    assert [one.values for _, one in series_table([told])["a_ms"]] == [[1.0, None]]


@FIXED
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.lists(VALUES, min_size=1, max_size=3)), max_size=3), max_size=5)
)
def test_the_table_tells_each_ranks_series_whatever_the_others_report(
    found: list[list[tuple[int, list[float | None]]]],
) -> None:
    rows = [
        summary(rank, series=[series(f"m{name}", 5 + rank % 2, values) for name, values in told])
        for rank, told in enumerate(found)
    ]
    expected: dict[str, list[tuple[int, Series]]] = {}
    for rank, one in enumerate(rows):
        for reported in one.series:
            expected.setdefault(reported.name, []).append((rank, reported))
    for windows in (rows, [sent(one) for one in rows], [sent(one) if at % 2 else one for at, one in enumerate(rows)]):
        table = series_table(windows)
        assert {name: list(reports) for name, reports in table.items()} == dict(sorted(expected.items()))
        for name, reports in table.items():
            flat = reports.flat
            assert flat.ranks.tolist() == reports.ranks == [rank for rank, _ in expected[name]]
            assert flat.iterations.tolist() == [at for _, one in expected[name] for at in one.iterations]
            assert flat.times.tolist() == [time for _, one in expected[name] for time in one.times]
            values = [None if np.isnan(value) else value for value in flat.values.tolist()]
            assert values == [value for _, one in expected[name] for value in one.values]


def test_reports_can_be_chosen_and_put_one_behind_another() -> None:
    table = series_table([summary(rank, series=[series("a_ms", rank, [1.0 * rank] * (rank + 1))]) for rank in range(3)])
    flat = table["a_ms"].flat
    even = flat.only(np.array([True, False, True]))
    assert (even.ranks.tolist(), even.values.tolist()) == ([0, 2], [0.0, 2.0, 2.0, 2.0])
    both = one_behind_another([even, flat.only(np.array([False, True, False]))])
    assert (both.ranks.tolist(), both.iterations.tolist()) == ([0, 2, 1], [0, 2, 3, 4, 1, 2])
    assert table["a_ms"].of(1) == series("a_ms", 1, [1.0, 1.0])


def test_a_rank_without_readings_is_left_out() -> None:
    assert series_table([summary(1, series=[Series(name="a", iterations=[], times=[], values=[])])]) == {}


def training(number: int) -> list[Window]:
    """Eight ranks in window ``number``, one of them slow and hot, whose loss is no number in the end."""
    found = []
    for rank in range(8):
        slow = 2.0 if rank == 5 and number > 8 else 1.0
        took = [400.0 * slow + (rank * 7 + step * 3) % 5 for step in range(10)]
        loss = [float("nan") if number == 18 and rank == 5 and step > 4 else 2.0 + step % 3 / 10 for step in range(10)]
        told = [
            series("forward_compute_ms", number * 10, took, number * 10),
            series("allreduce_wait_ms", number * 10, [900.0 - one for one in took], number * 10),
            series("lm_loss", number * 10, loss, number * 10),
            series("loss_scale", number * 10, [1024.0] * 10, number * 10),
        ]
        gauges = [gauge("gpu_temperature", 60.0 * slow + rank % 3, device="gpu0", unit="celsius")]
        more = {"iteration": number * 10 + 9, "iteration_time": told[0].times[-1]}
        found.append(summary(rank, number * 10, series=sorted(told, key=lambda one: one.name), gauges=gauges, **more))
    return found


def said(form: Callable[[Window], Window]) -> tuple[list[bytes], bytes]:
    """What the job stage says of windows in one form, and its state in the end."""
    stage, told, offset = JobStage(0, 1, StreamConfig()), [], 0
    for number in range(20):
        windows = [form(one) for one in training(number)]
        for record in [*windows, Progress(partition=0, end=windows[0].end)]:
            entry = Entry(offset, b"", encode(record), headers(kind_of(record)), 0)
            assert stage.on_entry("windows", 0, entry) == []
            offset += 1
        told += [encode(output.record) for output in stage.close() or []]
    return told, encode(stage.written())


def in_columns(window: Window) -> Window:
    """As windows were written before there were packs."""
    return msgspec.structs.replace(window, gauges=[], gauge_columns=gauges_of(window.gauges))


def test_windows_of_any_age_give_the_same() -> None:
    told, state = said(with_packs)
    assert any(b"step_outlier" in one for one in told)
    assert any(b"not finite" in one for one in told)
    assert said(in_columns) == said(lambda window: window) == (told, state)
