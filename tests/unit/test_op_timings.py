"""Op timings: one timeline for each worker and step; tables and layouts that are not what they seem are noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from traced_job import TracedJob, even, slow_worker

from producers.inputs import UnreadableRecording
from producers.readers import op_tables, op_timings
from producers.recording import Recording, read_recording
from producers.scan import Source
from producers.times import EARLIEST
from schemas.events import Job, Timeline

LAYOUT = (
    "trial_name: {trial}\nrun_id: 0\ndp_size: 2\ndsp_size: 1\npp_size: 2\ntp_size: 4\nvpp_size: 1\nworld_size: 16\n"
)
Columns = dict[str, list[Any]]
TYPES = {
    "dp_rank": pa.int8(),
    "stage": pa.int8(),
    "rank": pa.int16(),
    "step": pa.int64(),
    "start_ts": pa.float32(),
    "duration": pa.float32(),
    "mb_id": pa.int8(),
    "mc": pa.int8(),
}


def rows_of(job: TracedJob) -> Columns:
    found: Columns = {name: [] for name in (*TYPES, "optype")}
    for step, own in job.timelines().items():
        for rank, (replica, stage) in job.places().items():
            one = own[rank]
            count = len(one.operations)
            found["dp_rank"] += [replica] * count
            found["stage"] += [stage] * count
            found["rank"] += [rank] * count
            found["step"] += [step] * count
            found["start_ts"] += [start / 1e9 for start in one.starts]
            found["duration"] += [duration / 1e9 for duration in one.durations]
            found["optype"] += [one.names[at] for at in one.operations]
            found["mb_id"] += one.microbatches
            found["mc"] += [0] * count
    return found


def table_of(columns: Columns, **types: pa.DataType) -> pa.Table:
    arrays = {
        name: pa.array(values, types[name]) if name in types else pa.array(values, TYPES.get(name))
        for name, values in columns.items()
    }
    if "optype" not in types and pa.types.is_string(arrays["optype"].type):
        arrays["optype"] = arrays["optype"].dictionary_encode()
    return pa.table(arrays)


SMALL = rows_of(TracedJob(work=even(), dp=2, pp=2, steps=3, microbatches=2))


def write(folder: Path, columns: Columns, name: str = "trace-X.parquet", **types: pa.DataType) -> Path:
    pq.write_table(table_of(columns, **types), folder / name)
    return folder


def timelines(recording: Recording) -> dict[tuple[int, int], Timeline]:
    return {
        (event.iteration or 0, arrival.batch.identity.rank or 0): event
        for arrival in recording.arrivals
        for event in arrival.batch.events
        if isinstance(event, Timeline)
    }


def notes(recording: Recording) -> dict[str, int]:
    return {one.reason: one.count for one in recording.inputs.unused}


def test_each_worker_and_step_is_a_timeline_with_its_place(tmp_path: Path) -> None:
    (write(tmp_path, SMALL) / "meta-X.yaml").write_text(LAYOUT.format(trial="X"))
    recording = read_recording(tmp_path)
    found = timelines(recording)
    assert sorted(found) == [(step, rank) for step in (10, 11, 12) for rank in range(4)]
    assert (recording.job, recording.inputs.unused, recording.inputs.records) == ("X", [], len(SMALL["step"]))
    places = {arrival.batch.identity.rank: arrival.batch.identity.coordinates for arrival in recording.arrivals}
    assert places == {0: {"dp": 0, "pp": 0}, 1: {"dp": 1, "pp": 0}, 2: {"dp": 0, "pp": 1}, 3: {"dp": 1, "pp": 1}}
    one = found[10, 2]
    assert (one.time, one.time_source) == (EARLIEST, "inferred")
    names = [one.names[at] for at in one.operations]
    assert names[:3] == ["params-all-gather", "forward-recv", "forward-compute"]
    assert one.starts == sorted(one.starts) and min(one.starts) == 0
    assert one.microbatches[2] == 0 and set(one.chunks) == {0}
    (told,) = [event for a in recording.arrivals for event in a.batch.events if isinstance(event, Job)]
    assert told.layout == {"tp": 4, "dp": 2, "pp": 2, "dsp": 1, "vpp": 1}


def test_without_a_layout_the_table_tells_its_own_sizes(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path, {name: SMALL[name] for name in SMALL if name not in ("mb_id", "mc")}))
    (told,) = [event for a in recording.arrivals for event in a.batch.events if isinstance(event, Job)]
    assert told.layout == {"dp": 2, "pp": 2}
    assert notes(recording) == {op_timings.NO_LAYOUT: 1}
    assert set(timelines(recording)[10, 0].microbatches) == {-1}


def test_the_order_of_rows_decides_nothing(tmp_path: Path) -> None:
    order = np.random.default_rng(3).permutation(len(SMALL["step"]))
    for folder, columns in (
        ("a", SMALL),
        ("b", {name: [values[at] for at in order] for name, values in SMALL.items()}),
    ):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, columns)
    one, other = (read_recording(tmp_path / folder).arrivals for folder in ("a", "b"))
    assert [arrival.batch for arrival in one] == [arrival.batch for arrival in other]


def test_a_capture_table_tells_the_time(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (tmp_path / "index.jsonl").write_text('{"file": "trace-X.parquet", "captured": 1795975830.5}\n')
    found = timelines(read_recording(tmp_path))
    assert {(one.time, one.time_source) for one in found.values()} == {(1_795_975_830_500_000_000, "captured")}


def test_two_traces_are_two_jobs_and_each_has_the_layout_that_is_named_after_it(tmp_path: Path) -> None:
    for name in ("X", "Y"):
        write(tmp_path, SMALL, f"trace-{name}.parquet")
        (tmp_path / f"meta-{name}.yaml").write_text(LAYOUT.format(trial=name))
    (tmp_path / "other.yaml").write_text(LAYOUT.format(trial="Z"))
    recording = read_recording(tmp_path)
    assert {arrival.batch.identity.job for arrival in recording.arrivals} == {"X", "Y"}
    assert [(one.file, one.reason) for one in recording.inputs.unused] == [("other.yaml", op_timings.NO_TRACE)]


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("a: &a [1, 1]\nb: [*a, *a]\ndp_size: 2\n", "references between its parts"),
        ("base: {x: 1}\nmore:\n  <<: {y: 2}\ndp_size: 2\n", "references between its parts"),
        ("dp_size: [\n", "not a YAML that can be read"),
        ("dp_size: many\npp_size: -3\n", "no numbers of ranks"),
        ("dp_size: " + "[" * 2_000 + "\n", "not a YAML that can be read"),
        ("dp_size: !!python/object/apply:os.system ['touch x']\n", "not a YAML that can be read"),
        ("trial_name: X\ndp_size: 1\npp_size: 1\n", op_timings.NO_TRACE),
    ],
)
def test_a_layout_that_cannot_be_used_is_noted_and_the_table_is_read(tmp_path: Path, layout: str, reason: str) -> None:
    (write(tmp_path, SMALL) / "meta-X.yaml").write_text(layout)
    recording = read_recording(tmp_path)
    assert len(timelines(recording)) == 12
    assert any(reason in one.reason for one in recording.inputs.unused if one.file == "meta-X.yaml")


def spoilt(**changes: Any) -> Columns:
    """The rows, of which in the named columns every tenth has another value."""
    found = {name: list(values) for name, values in SMALL.items()}
    for name, value in changes.items():
        found[name][::10] = [value] * len(found[name][::10])
    return found


MANY = {name: values * 3 for name, values in SMALL.items()} | {
    "optype": [f"op{at}" for at in range(len(SMALL["rank"]) * 3)]
}
PLACES = "rows without a rank, step or operation"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"start_ts": float("nan")}, op_tables.LOST),
        ({"start_ts": None}, op_tables.LOST),
        ({"start_ts": float("-inf")}, op_tables.LOST),
        ({"rank": None}, PLACES),
        ({"rank": -1}, PLACES),
        ({"step": -7}, PLACES),
        ({"optype": None}, PLACES),
        ({"optype": ""}, PLACES),
    ],
)
def test_rows_that_make_no_sense_are_counted_and_left_out(tmp_path: Path, changes: Columns, reason: str) -> None:
    recording = read_recording(write(tmp_path, spoilt(**changes)))
    found = notes(recording)
    assert found[reason] == len(SMALL["step"][::10])
    assert recording.inputs.records == len(SMALL["step"]) - found[reason]
    assert all(duration >= 0 for one in timelines(recording).values() for duration in one.durations)


@pytest.mark.parametrize(
    ("changes", "numbered"),
    [
        ({"duration": float("inf")}, False),
        ({"duration": -0.5}, False),
        ({"duration": 1e30}, True),
        ({"start_ts": float("nan")}, True),
        ({"start_ts": None, "duration": None}, True),
    ],
)
def test_a_row_without_a_time_stands_in_its_step_without_one(tmp_path: Path, changes: Columns, numbered: bool) -> None:
    """Where a start is missing, the number in the order of its kind tells where it stands."""
    columns, bad = spoilt(**changes), len(SMALL["step"][::10])
    if numbered:
        columns["seq_id"] = seq_ids()
    recording = read_recording(write(tmp_path, columns))
    assert notes(recording)[op_tables.UNTIMED] == bad
    assert recording.inputs.records == len(SMALL["step"])
    found = timelines(recording)
    assert sum(len(one.untimed) for one in found.values()) == bad
    whole = timelines(read_recording(write(tmp_path, SMALL)))
    for place, one in found.items():
        assert one.left_out == 0
        for name in set(one.names):
            # The n-th of its kind is the n-th still.
            assert of_kind(one, name) == of_kind(whole[place], name)


def seq_ids() -> list[int]:
    counted: dict[tuple[Any, ...], int] = {}
    found = []
    for key in zip(SMALL["step"], SMALL["rank"], SMALL["optype"], strict=True):
        found.append(counted.get(key, 0))
        counted[key] = found[-1] + 1
    return found


def of_kind(one: Timeline, name: str) -> list[int]:
    """The microbatches of its operations of a name, in order."""
    return [batch for code, batch in zip(one.operations, one.microbatches, strict=True) if one.names[code] == name]


def test_a_row_without_anything_that_tells_its_order_costs_its_workers_step(tmp_path: Path) -> None:
    columns = {name: list(values) for name, values in SMALL.items()}
    columns["start_ts"][5] = None
    found = timelines(read_recording(write(tmp_path, columns)))
    assert [one.left_out for _, one in sorted(found.items())].count(1) == 1


def test_a_rank_that_is_at_two_places_is_at_none(tmp_path: Path) -> None:
    columns = {name: list(values) for name, values in SMALL.items()}
    columns["stage"][columns["rank"].index(3)] = 0
    recording = read_recording(write(tmp_path, columns))
    assert {rank for _, rank in timelines(recording)} == {0, 1, 2}
    assert notes(recording)["rows of a rank that is also said to be elsewhere in the layout"] > 1


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"PAR1", "not a Parquet file"),
        (b"PAR1 and no end", "a Parquet file that was cut off: none of its rows can be read from its 15 bytes"),
        (b"PAR1" + b"\0" * 1_000 + b"PAR1", "not a Parquet file"),
        (b"PAR1" + b"\xff" * 8 + b"\xff\xff\xff\x7fPAR1", "not a Parquet file"),
    ],
)
def test_a_file_that_only_begins_like_a_table_is_noted(tmp_path: Path, raw: bytes, reason: str) -> None:
    (tmp_path / "trace.parquet").write_bytes(raw)
    write(tmp_path, SMALL, "good.parquet")
    recording = read_recording(tmp_path)
    assert next(one.reason for one in recording.inputs.unused if one.file == "trace.parquet").startswith(reason)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_table_that_was_cut_off_or_damaged_is_noted(tmp_path: Path, share: float) -> None:
    write(tmp_path, SMALL, "good.parquet")
    raw = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(raw[: int(len(raw) * share)])
    hole = int(len(raw) * share * 0.9)
    (tmp_path / "hole.parquet").write_bytes(raw[:hole] + b"\xa5" * 64 + raw[hole + 64 :])
    recording = read_recording(tmp_path)
    assert len({arrival.batch.identity.job for arrival in recording.arrivals}) >= 1
    assert "cut.parquet" in {one.file for one in recording.inputs.unused}


@pytest.mark.parametrize(
    ("columns", "types", "reason"),
    [
        ({**SMALL, "rank": [str(rank) for rank in SMALL["rank"]]}, {"rank": pa.string()}, "other types: rank"),
        ({**SMALL, "start_ts": [1] * len(SMALL["rank"])}, {"start_ts": pa.int32()}, "other types: start_ts"),
        ({**SMALL, "optype": [1] * len(SMALL["rank"])}, {"optype": pa.int8()}, "other types: optype"),
        ({name: [] for name in SMALL}, {"optype": pa.string()}, "without a row"),
        (MANY, {}, "kinds of operations"),
        ({name: SMALL[name] for name in ("rank", "step")} | {"optype": SMALL["optype"]}, {}, "not a recognised format"),
    ],
)
def test_a_table_of_another_kind_is_noted_with_its_reason(
    tmp_path: Path, columns: Columns, types: dict[str, Any], reason: str
) -> None:
    write(tmp_path, SMALL, "good.parquet")
    write(tmp_path, columns, **types)
    (told,) = [one.reason for one in read_recording(tmp_path).inputs.unused if one.file == "trace-X.parquet"]
    assert reason in told


def test_a_folder_with_nothing_usable_says_so(tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(UnreadableRecording, match=r"nothing in .*; 'trace.parquet': a Parquet file that was cut off"):
        read_recording(tmp_path)


def test_of_more_rows_than_there_is_room_for_the_last_steps_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = len(SMALL["step"])
    for room, steps, left_out in ((rows - 1, {11, 12}, rows // 3), (rows // 3, {12}, rows * 2 // 3)):
        monkeypatch.setattr(op_tables, "MOST_ROWS", room)
        recording = read_recording(write(tmp_path, SMALL))
        assert {step for step, _ in timelines(recording)} == steps
        assert notes(recording)[f"rows beyond the {room} of the last steps"] == left_out


def test_of_a_step_that_is_too_large_by_itself_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op_tables, "MOST_ROWS", 20)
    monkeypatch.setattr(op_timings, "MOST_OPERATIONS", 5)
    recording = read_recording(write(tmp_path, SMALL))
    assert notes(recording)["rows beyond the 20 of the last steps"] == len(SMALL["step"]) - 20
    found = timelines(recording).values()
    assert max(len(one.operations) for one in found) == 5
    assert sum(len(one.operations) + one.left_out for one in found) == 20


def test_of_more_timelines_than_there_is_room_for_the_last_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op_timings, "MOST_TIMELINES", 5)
    recording = read_recording(write(tmp_path, SMALL))
    assert sorted(timelines(recording)) == [(11, 3), (12, 0), (12, 1), (12, 2), (12, 3)]
    assert notes(recording)["workers' steps before the last 5"] == 7


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = table_of(SMALL)
    pq.write_table(table.append_column("rank", table["rank"]), tmp_path / "trace-X.parquet")
    source = Source(tmp_path / "trace-X.parquet", "trace-X.parquet", 1)
    with pytest.raises(ValueError, match="two columns of one name"):
        op_tables.read(source)


def test_a_table_that_unpacks_to_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, SMALL) / "trace-X.parquet"
    source = Source(path, path.name, path.stat().st_size)
    monkeypatch.setattr(op_tables, "MOST_UNPACKED", 1_000)
    with pytest.raises(ValueError, match="bytes unpacked"):
        op_tables.read(source)
    monkeypatch.setattr(op_tables, "MOST_UNPACKED", 10**9)
    monkeypatch.setattr(op_tables, "MOST_STEPS", 2)
    with pytest.raises(ValueError, match="more than 2 steps"):
        op_tables.read(source)
    monkeypatch.setattr(op_tables, "MOST_SEEN", 9)
    with pytest.raises(ValueError, match="rows, more than 9"):
        op_tables.read(source)
    monkeypatch.setattr(op_tables, "MOST_BYTES", source.size - 1)
    with pytest.raises(ValueError, match=f"file of {source.size} bytes"):
        op_tables.read(source)


def test_a_slow_worker_is_slow_in_the_table_too(tmp_path: Path) -> None:
    slow = rows_of(TracedJob(work=slow_worker(1, 0, 2.0), dp=2, pp=2, steps=3))
    found = timelines(read_recording(write(tmp_path, slow)))
    took = {rank: sum(found[10, rank].durations[at] for at in computing(found[10, rank])) for rank in range(4)}
    assert max(took, key=lambda rank: took[rank]) == 2


def computing(one: Timeline) -> list[int]:
    return [at for at, code in enumerate(one.operations) if one.names[code].endswith("compute")]
