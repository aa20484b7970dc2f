"""Folders in, batches out: layouts, identities, times, bad input, determinism."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from producers.recording import Recording, UnreadableRecording, Unused, read_recording
from producers.times import SECOND
from schemas.codec import decode, encode, kind_of
from schemas.events import Collective, Event, Frame, Heartbeat, Log, Metric, Stack, Topology
from schemas.identity import Identity

SHARED = Path(__file__).resolve().parents[3] / "shared/data/recorded"
recorded = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded jobs are not beside the project")

BASE = 1_795_975_833
RUN = "logs/node01/run-7_ab_cd3fg/attempt_0"
Write = Callable[..., Path]
E = TypeVar("E", bound=Event)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the job's folder: text, bytes, or rows as JSON lines."""

    def write(file: str, *content: Any) -> Path:
        path = tmp_path / "job" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [part if isinstance(part, str | bytes) else json.dumps(part) + "\n" for part in content]
        path.write_bytes(b"".join(part.encode() if isinstance(part, str) else part for part in parts))
        return path

    return write


def read(tmp_path: Path) -> Recording:
    return read_recording(tmp_path / "job")


def clock(second: float) -> str:
    """How a log prints the time ``second`` seconds into the job."""
    return datetime.fromtimestamp(BASE + second, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def events(recording: Recording, kind: type[E]) -> list[tuple[Identity, E]]:
    return [(a.batch.identity, e) for a in recording.arrivals for e in a.batch.events if isinstance(e, kind)]


def texts(recording: Recording) -> list[str]:
    return [event.text for _, event in events(recording, Log)]


def offset(event: Event) -> float:
    return (event.time - BASE * SECOND) / SECOND


def pid_row(**changes: Any) -> dict[str, Any]:
    return {"rank": 3, "local_rank": 1, "node": "node01", "pid": 23409, "ts": BASE + 0.5, **changes}


def sample(second: float, **changes: Any) -> dict[str, Any]:
    return {
        "ts": BASE + second,
        "node": "node01",
        "rank": 3,
        "pid": 23409,
        "cpu_percent": 10.5,
        "rss_bytes": 1024,
        "threads": 3,
        "status": "running",
        **changes,
    }


def stack_row(second: float, **changes: Any) -> dict[str, Any]:
    frames = [
        {"name": "read", "filename": "inner.py", "line": 7},
        {"name": "<module>", "filename": "train.py", "line": 9},
    ]
    threads = [{"thread_name": "MainThread", "active": True, "frames": frames}]
    row = {
        "ts": BASE + second,
        "node": "node01",
        "rank": 3,
        "process_type": "dataloader",
        "pid": 77,
        "threads": threads,
    }
    return {**row, **changes}


# identities


def test_a_rank_log_gets_run_node_attempt_and_the_global_rank_of_the_table(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row(role="actor"))
    write(f"{RUN}/1/stderr.log", f"{clock(1)} hello\n")
    write(f"{RUN}/1/stdout.log", "")
    recording = read(tmp_path)
    ((identity, event),) = events(recording, Log)
    assert recording.job == "run-7"
    assert identity == Identity(job="run-7", attempt="0", node="node01", rank=3, local_rank=1, role="actor")
    assert (event.stream, event.file, event.line, event.offset) == ("stderr", f"{RUN}/1/stderr.log", 1, 0)
    assert recording.inputs.unused == [] and recording.inputs.files == 3 and recording.inputs.records == 2


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[INFO] [rank 3] trainer: x", 3),
        ("INFO rank=3 local_rank=1 host=node01 pid=5", 3),
        ("[rank 3] and [rank 4]", 3),
        ("nothing", None),
    ],
)
def test_without_a_table_the_text_tells_the_rank_or_the_reason_is_given(
    tmp_path: Path, write: Write, line: str, rank: int | None
) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(1)} {line}\n")
    ((identity, _),) = events(read(tmp_path), Log)
    assert identity.rank == rank and identity.local_rank == 1
    assert bool(identity.rank_reason) == (rank is None)


def test_pp_timer_lines_tell_the_rank(tmp_path: Path, write: Write) -> None:
    write(
        f"{RUN}/2/stdout.log",
        f"[node01 rank 5] step 1 | compute: 1 ms\n [{clock(1).replace(',', '.')}] iteration 1/ 2\n",
    )
    assert {identity.rank for identity, _ in events(read(tmp_path), Log)} == {5}


def test_a_log_that_contradicts_the_table_keeps_its_lines_under_no_rank(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write(f"{RUN}/1/stderr.log", f"{clock(1)} [INFO] [rank 5] a\n{clock(2)} [INFO] [rank 5] b\n")
    recording = read(tmp_path)
    found = [identity for identity, _ in events(recording, Log)]
    reason = "sources disagree: rank 3 or 5"
    assert [(i.rank, i.rank_reason, i.local_rank, i.worker) for i in found] == [(None, reason, 1, "node:node01")] * 2
    (note,) = recording.inputs.unused
    assert (note.file, note.line) == (f"{RUN}/1/stderr.log", 0) and "rank 5" in note.reason
    assert [identity.rank for identity, _ in events(recording, Topology)] == [3]


def test_the_log_tells_the_role_where_the_table_does_not(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write(f"{RUN}/1/stderr.log", f"{clock(1)} - INFO - worker started role=critic rank=3 pid=23409\n")
    recording = read(tmp_path)
    assert {identity.role for a in recording.arrivals for identity in [a.batch.identity]} == {"critic"}


def test_a_layout_without_a_node_takes_it_from_the_text(tmp_path: Path, write: Write) -> None:
    write(
        "logs/run-7_abcdefgh/attempt_0/0/stderr.log",
        f"{clock(1)} [INFO] [rank 0] x rank=0 local_rank=0 host=gpu9 pid=4\n",
    )
    recording = read(tmp_path)
    assert {a.batch.identity.node for a in recording.arrivals} == {"gpu9"}
    ((_, topology),) = events(recording, Topology)
    assert topology.pid == 4 and topology.time_source == "inferred"


@pytest.mark.parametrize("known, rank", [("node02", None), ("node01", 4), ("gpu-a", 4)])
def test_a_run_is_not_of_the_only_known_node_if_its_folder_is_named_like_another(
    tmp_path: Path, write: Write, known: str, rank: int | None
) -> None:
    write("pids.jsonl", {"rank": 4, "local_rank": 0, "node": known, "pid": 9, "ts": BASE})
    write(f"{RUN}/0/stdout.log", f"[{clock(1)}] hello\n")
    ((identity, _),) = events(read(tmp_path), Log)
    assert (identity.node, identity.rank) == ("node01" if rank is None else known, rank)


def test_a_layout_without_any_node_has_none(tmp_path: Path, write: Write) -> None:
    write("logs/run-7_abcdefgh/attempt_0/0/stderr.log", f"{clock(1)} x\n")
    assert {a.batch.identity.node for a in read(tmp_path).arrivals} == {""}


def test_attempts_are_told_apart_and_children_belong_to_the_attempt_that_runs(tmp_path: Path, write: Write) -> None:
    write("p.jsonl", pid_row(attempt=0), pid_row(attempt=1, pid=24000, ts=BASE + 60))
    write("s.jsonl", stack_row(30), stack_row(90))
    write("m.jsonl", sample(30), sample(90, pid=24000))
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n")
    write(f"{RUN[:-1]}1/1/stderr.log", f"{clock(61)} b\n")
    recording = read(tmp_path)
    for kind in (Stack, Log, Topology):
        assert [identity.attempt for identity, _ in events(recording, kind)] == ["0", "1"]
    assert {identity.attempt for identity, _ in events(recording, Metric)} == {"0", "1"}


def test_each_log_keeps_its_run_and_rows_go_to_the_run_of_their_node(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n")
    write("logs/node02/run-8_abcdefgh/attempt_0/1/stderr.log", f"{clock(1)} b\n")
    write("m.jsonl", sample(2, node="node02", pid=5), sample(2, node="node09", pid=6))
    recording = read(tmp_path)
    assert recording.job == "run-7"
    assert sorted(identity.job for identity, _ in events(recording, Log)) == ["run-7", "run-8"]
    jobs = {identity.node: identity.job for identity, _ in events(recording, Metric)}
    assert jobs == {"node02": "run-8", "node09": "run-7"}


def test_without_a_run_the_job_is_recorded_and_a_rank_known_only_from_metrics_counts(
    tmp_path: Path, write: Write
) -> None:
    write("anything.txt", sample(2))
    recording = read(tmp_path)
    assert recording.job == "recorded"
    assert {identity.worker for identity, _ in events(recording, Metric)} == {"3"}


# readers


def test_stacks_run_outermost_first_one_event_a_thread(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    two = [*stack_row(0)["threads"], {"thread_name": None, "os_thread_id": 9, "frames": []}]
    write("x.jsonl", stack_row(3, threads=two))
    found = events(read(tmp_path), Stack)
    assert [identity.worker for identity, _ in found] == ["3", "3"]
    assert found[0][1] == Stack(
        time=(BASE + 3) * SECOND,
        process_type="dataloader",
        pid=77,
        thread="MainThread",
        frames=[Frame("<module>", "train.py", 9), Frame("read", "inner.py", 7)],
        active=True,
    )
    assert found[1][1].thread == "thread 9" and found[1][1].time_source == "captured"


@pytest.mark.parametrize(
    "changes", [{"threads": []}, {"threads": None}, {"error": "no such process"}, {"threads": [3]}]
)
def test_a_stack_sample_that_failed_is_an_event_with_its_reason(
    tmp_path: Path, write: Write, changes: dict[str, Any]
) -> None:
    write("x.jsonl", stack_row(3, **changes))
    ((_, event),) = events(read(tmp_path), Stack)
    assert event.failure and event.pid == 77 and event.frames == []
    assert changes.get("error", "") in event.failure


def test_metrics_have_units_states_and_nonfinite_values(tmp_path: Path, write: Write) -> None:
    row = json.dumps(sample(2, status="disk-sleep", load=float("nan"), peak=float("inf"), huge=10**400, rank=3))
    write("m.jsonl", row + "\n")
    found = {event.name: event for _, event in events(read(tmp_path), Metric)}
    assert (found["cpu_percent"].value, found["cpu_percent"].unit, found["cpu_percent"].pid) == (10.5, "percent", 23409)
    assert (found["rss_bytes"].unit, found["threads"].unit) == ("bytes", "count")
    assert [found[f"process_{name}"].value for name in ("running", "disk_sleep", "zombie")] == [0.0, 1.0, 0.0]
    assert [(found[n].value, found[n].nonfinite) for n in ("load", "peak", "huge")] == [
        (None, "nan"),
        (None, "inf"),
        (None, "inf"),
    ]
    assert not {"rank", "pid", "ts"} & found.keys()


def test_only_of_a_process_that_a_signal_has_stopped_it_is_told(tmp_path: Path, write: Write) -> None:
    write("m.jsonl", sample(2, status="stopped"), sample(3, status="sleeping"), sample(4, status="tracing-stop"))
    told = [(offset(e), e.value) for _, e in events(read(tmp_path), Metric) if e.name == "process_stopped"]
    assert told == [(2.0, 1.0)]


def test_a_round_of_sampling_is_a_heartbeat_of_its_node(tmp_path: Path, write: Write) -> None:
    write(
        "m.jsonl",
        sample(2.1),
        sample(2.2, rank=2, pid=9),
        sample(3, status="zombie"),
        sample(2.1, node="node02", pid=5),
    )
    found = events(read(tmp_path), Heartbeat)
    assert sorted((identity.worker, offset(e), e.pids) for identity, e in found) == [
        ("node:node01", 2.2, [9, 23409]),
        ("node:node01", 3.0, []),
        ("node:node02", 2.1, [5]),
    ]
    assert {(i.process_type, i.rank_reason) for i, _ in found} == {("sampler", "node")}


def entry(sequence: int, **changes: Any) -> dict[str, Any]:
    base = {
        "collective_seq_id": sequence,
        "process_group": ["0", "default_pg"],
        "profiling_name": "gloo:all_reduce",
        "retired": True,
        "state": "scheduled",
        "time_created_ns": BASE * SECOND + sequence,
        "input_sizes": [[98880]],
        "input_dtypes": ["Float"],
        "is_p2p": False,
    }
    return {**base, **changes}


def dump(entries: list[Any], ranks: str = "[0, 1]") -> str:
    return json.dumps({"entries": entries, "pg_config": {"": {"ranks": ranks}}, "pg_status": {}, "version": "2.10"})


def test_a_dump_is_one_observation_at_its_capture_time(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("a/fr_rank3.json", dump([entry(1), entry(2, retired=False), entry(3, state="started", retired=False)]))
    write("a/when.jsonl", {"file": "fr_rank3.json", "rank": 3, "captured": BASE + 50})
    found = events(read(tmp_path), Collective)
    assert [e.state for _, e in found] == ["completed", "enqueued", "started"]
    assert {(i.worker, i.node, offset(e), e.time_source) for i, e in found} == {("3", "node01", 50.0, "captured")}
    event = found[0][1]
    assert (event.group, event.ranks, event.sequence, event.operation) == ("default_pg:0-1", [0, 1], 1, "all_reduce")
    assert (event.dtype, event.input_sizes, event.created) == ("Float", [[98880]], BASE * SECOND + 1)


def test_a_dump_without_a_capture_time_stands_at_its_latest_entry(tmp_path: Path, write: Write) -> None:
    write("fr_rank12.json", dump([entry(1), entry(9)]))
    ((identity, event), _) = events(read(tmp_path), Collective)
    assert identity.rank == 12 and event.time == BASE * SECOND + 9 and event.time_source == "inferred"


def test_the_ranks_of_the_unnamed_group_are_not_those_of_others(tmp_path: Path, write: Write) -> None:
    write("fr_rank0.json", dump([entry(1, process_group=["1", "undefined"])]))
    assert [event.ranks for _, event in events(read(tmp_path), Collective)] == [[]]


def test_a_dump_keeps_the_last_and_the_unfinished(tmp_path: Path, write: Write) -> None:
    old = entry(1, retired=False)
    write("fr_rank0.json", dump([old, *(entry(n) for n in range(2, 400)), "junk", {}]))
    recording = read(tmp_path)
    assert [event.sequence for _, event in events(recording, Collective)] == [1, *range(350, 400)]
    assert recording.inputs.unused == [Unused("fr_rank0.json", 0, "entries without a sequence number", 2)]


AGENT = """[I1129 18:10:22.063883393 socket.cpp:955] [c10d] The client socket has connected.
E1129 18:11:28.187000 23348 torch/distributed/elastic/multiprocessing/api.py:1002] \
failed (exitcode: 1) local_rank: 1 (pid: 23409) of binary: /x
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
             ^^^^^^
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
/workspace/train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_18:11:28
  host      : localhost
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 23409)
============================================================
"""


@pytest.mark.parametrize("timestamp", [str(BASE + 7), BASE + 7])
def test_an_error_file_is_its_ranks_traceback_at_its_second(tmp_path: Path, write: Write, timestamp: object) -> None:
    write("pids.jsonl", pid_row())
    traceback = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\n    f()\nRuntimeError: boom'
    extra = {"py_callstack": traceback + "\n", "timestamp": timestamp}
    write(f"{RUN}/1/error.json", json.dumps({"message": {"message": "RuntimeError: boom", "extraInfo": extra}}))
    ((identity, event),) = events(read(tmp_path), Log)
    assert (identity.rank, event.text, event.stream) == (3, traceback, "error")
    assert (offset(event), event.time_source, event.precision_ns) == (7, "captured", SECOND)


@pytest.mark.parametrize(
    ("content", "text", "note"),
    [
        ('{"message": "RuntimeError: boom", "errorCode": 1}', "RuntimeError: boom", ""),
        ('{"message": {"message": "SignalException", "extraInfo": 7}}', "SignalException", ""),
        ('{"message": {"extraInfo": {"timestamp": "x"}}}', "", "not a recognised format"),
        ("[1]", "", "not a recognised format"),
        ('{"message": ', "", "invalid JSON"),
    ],
)
def test_an_error_file_in_another_form_says_what_it_can(
    tmp_path: Path, write: Write, content: str, text: str, note: str
) -> None:
    write("pids.jsonl", pid_row())
    write(f"{RUN}/1/error.json", content)
    recording = read(tmp_path)
    assert texts(recording) == ([text] if text else [])
    assert [one.reason.startswith(note) for one in recording.inputs.unused] == ([True] if note else [])


def test_a_failure_report_alone_is_a_launchers_log_and_tells_of_an_end(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("srun_node01.log", AGENT[AGENT.index("====") :])
    ((identity, event),) = events(read(tmp_path), Log)
    assert (identity.process_type, identity.node) == ("launcher", "node01")
    assert event.text.endswith("=") and "exitcode  : 1 (pid: 23409)" in event.text
    assert event.time_source == "printed"


@pytest.mark.parametrize(
    ("file", "node"), [("agent_node01.log", "node01"), ("x/out-node01.txt", "node01"), ("a_b.log", "node01")]
)
def test_a_launchers_log_belongs_to_its_node(tmp_path: Path, write: Write, file: str, node: str) -> None:
    write("pids.jsonl", pid_row())
    write(file, AGENT)
    found = events(read(tmp_path), Log)
    assert [event.text.count("\n") for _, event in found] == [0, 0, 14]
    assert {(i.worker, i.process_type, i.rank_reason, i.attempt) for i, _ in found} == {
        (f"node:{node}", "launcher", "launcher of a node", "0")
    }
    assert [(offset(e), e.time_source) for _, e in found][2] == (55.0, "printed")


def test_an_agents_file_name_is_the_last_that_names_its_node(tmp_path: Path, write: Write) -> None:
    write("agent_host7.log", AGENT)
    assert {i.node for i, _ in events(read(tmp_path), Log)} == {"host7"}


# sources that disagree


def ranks(recording: Recording, kind: type[E]) -> set[tuple[str, int | None, str]]:
    return {(i.node, i.rank, i.rank_reason) for i, _ in events(recording, kind)}


DISAGREE = "sources disagree: rank 3 or 5"


@pytest.mark.parametrize(("metric", "stack"), [(3, 5), (5, 3), (5, 5)])
def test_nobody_is_named_where_tables_disagree_about_a_process(
    tmp_path: Path, write: Write, metric: int, stack: int
) -> None:
    write("pids.jsonl", pid_row(), pid_row(rank=2, local_rank=0, pid=2))
    write("m.jsonl", sample(1, rank=metric), sample(1, rank=2, pid=2), sample(2, rank=metric))
    write("s.jsonl", stack_row(1, rank=2, pid=2), stack_row(1, rank=stack, pid=23409, process_type="trainer"))
    write(f"{RUN}/1/stderr.log", f"{clock(1)} [rank 3] a\n")
    write(f"{RUN}/0/stderr.log", f"{clock(1)} a\n")
    recording = read(tmp_path)
    for kind in (Metric, Stack, Topology):
        assert ranks(recording, kind) == {("node01", None, DISAGREE), ("node01", 2, "")}
    assert ranks(recording, Log) == {("node01", 3, ""), ("node01", 2, "")}
    first = ("m.jsonl", 1) if metric == 5 else ("s.jsonl", 2)
    assert recording.inputs.unused == [
        Unused(*first, "sources disagree about process 23409 of node node01: rank 3 or 5", 4)
    ]
    assert {a.batch.identity.worker for a in recording.arrivals} == {"2", "3", "node:node01"}


def test_a_silent_log_of_a_disputed_process_has_no_rank_either(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("m.jsonl", sample(1, rank=5))
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n")
    assert ranks(read(tmp_path), Log) == {("node01", None, DISAGREE)}


def test_children_that_a_disputed_source_names_are_not_named_either(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row(), pid_row(rank=2, local_rank=0, pid=2))
    trainers = [stack_row(1, rank=r, pid=p, process_type="trainer") for r, p in ((5, 23409), (2, 2))]
    write("s.jsonl", *trainers, stack_row(2, rank=5), stack_row(2, rank=2, pid=78))
    recording = read(tmp_path)
    found = {event.pid: identity.rank for identity, event in events(recording, Stack)}
    assert found == {23409: None, 77: None, 2: 2, 78: 2}
    assert [(note.line, note.count) for note in recording.inputs.unused] == [(1, 2), (3, 1)]


def test_two_tables_disagree_without_a_table_of_starts(tmp_path: Path, write: Write) -> None:
    write("m.jsonl", *(sample(n) for n in range(9)))
    write("s.jsonl", stack_row(4, rank=5, pid=23409))
    recording = read(tmp_path)
    assert ranks(recording, Metric) == ranks(recording, Stack) == {("node01", None, DISAGREE)}
    (note,) = recording.inputs.unused
    assert (note.file, note.line, note.count) == ("s.jsonl", 1, 10)


def test_two_tables_of_starts_disagree(tmp_path: Path, write: Write) -> None:
    write("p1.jsonl", pid_row())
    write("p2.jsonl", pid_row(rank=5))
    recording = read(tmp_path)
    assert ranks(recording, Topology) == {("node01", None, DISAGREE)}
    assert [(note.file, note.line, note.count) for note in recording.inputs.unused] == [("p2.jsonl", 1, 2)]


@pytest.mark.parametrize("stated", [True, False])
def test_a_process_id_that_comes_back_in_a_later_attempt_is_no_conflict(
    tmp_path: Path, write: Write, stated: bool
) -> None:
    first, second = pid_row(), pid_row(rank=5, ts=BASE + 500)
    if stated:
        first, second = {**first, "attempt": 0}, {**second, "attempt": 1}
    write("p.jsonl", first, second)
    write("m.jsonl", sample(30), sample(530, rank=5))
    write("s.jsonl", stack_row(30, pid=23409), stack_row(530, rank=5, pid=23409))
    recording = read(tmp_path)
    assert recording.inputs.unused == []
    for kind in (Metric, Stack, Topology):
        found = sorted({(i.attempt, i.rank or 0) for i, _ in events(recording, kind)})
        assert found == [("0", 3), ("1", 5)]


def test_a_process_id_that_others_had_before_or_after_is_no_conflict(tmp_path: Path, write: Write) -> None:
    write("p.jsonl", pid_row(ts=BASE + 500), pid_row(ts=BASE + 1_000, pid=9))
    write("m.jsonl", sample(30, rank=5), sample(600), sample(1_500, rank=5))
    write("s.jsonl", stack_row(30, pid=7), stack_row(90, rank=5, pid=7))
    recording = read(tmp_path)
    assert recording.inputs.unused == []
    assert {(offset(e), i.rank) for i, e in events(recording, Metric)} == {(30, 5), (600, 3), (1_500, 5)}
    assert {(offset(e), i.rank) for i, e in events(recording, Stack)} == {(30, 3), (90, 5)}


# several jobs in one folder


def test_tables_go_to_the_job_whose_logs_lie_nearest(tmp_path: Path, write: Write) -> None:
    for folder, run, pid, shift in (("a", "run-7", 10, 0), ("b", "run-8", 20, 100)):
        write(f"m/{folder}/logs/node01/{run}_abcdefgh/attempt_0/1/stderr.log", f"{clock(shift + 1)} x\n")
        write(f"m/{folder}/pids.jsonl", pid_row(pid=pid, ts=BASE + shift))
        write(f"m/{folder}/stacks/node01.jsonl", stack_row(shift + 2, pid=pid), stack_row(shift + 3))
        write(f"m/{folder}/metrics.jsonl", sample(shift + 2, pid=pid))
        write(f"m/{folder}/agent_node01.log", AGENT.replace("23409", str(pid)))
        write(f"m/{folder}/fr_rank3.json", dump([entry(1)]))
        write(f"m/{folder}/dumps.jsonl", {"file": "fr_rank3.json", "rank": 3, "captured": BASE + shift + 50})
    recording = read(tmp_path)
    assert recording.inputs.unused == [] and recording.job == "run-7"
    for kind in (Log, Stack, Metric, Topology, Heartbeat, Collective):
        found = [(identity, event) for identity, event in events(recording, kind)]
        assert {(i.job, i.attempt) for i, _ in found} == {("run-7", "0"), ("run-8", "0")}
        if kind is not Log:
            assert {(i.job, offset(e) >= 100) for i, e in found} == {("run-7", False), ("run-8", True)}
        else:
            files = {(i.job, e.file.split("/")[1]) for i, e in events(recording, Log)}
            assert files == {("run-7", "a"), ("run-8", "b")}


def test_jobs_of_different_months_lie_beside_each_other(tmp_path: Path, write: Write) -> None:
    for folder, run, shift in (("a", "run-7", 0), ("b", "run-8", 86_400 * 90)):
        write(f"{folder}/{run}_abcdefgh/attempt_0/1/stderr.log", f"{clock(shift + 1)} x\n")
        write(f"{folder}/m.jsonl", *(sample(shift + n) for n in range(3)))
    recording = read(tmp_path)
    assert recording.inputs.unused == [] and recording.inputs.records == 8
    assert {i.job for i, e in events(recording, Log) if e.time_source == "printed"} == {"run-7", "run-8"}


def test_a_dumps_table_of_another_folder_says_nothing_of_it(tmp_path: Path, write: Write) -> None:
    write("m/fr_rank3.json", dump([entry(1)]))
    write("m/dumps.jsonl", {"file": "fr_rank3.json", "rank": 3, "captured": BASE + 50})
    write("m/b/fr_rank3.json", dump([entry(1)]))
    write("m/b/dumps.jsonl", {"file": "fr_rank3.json", "rank": 3, "captured": BASE + 20})
    write("mb/fr_rank3.json", dump([entry(1)]))
    assert sorted(offset(event) for _, event in events(read(tmp_path), Collective)) == [
        pytest.approx(0, abs=1e-6),
        20.0,
        50.0,
    ]


# unusual files


def test_a_log_with_nul_bytes_keeps_its_lines(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n", b"b\0c\n", bytes(9), b"d\0\n")
    write("agent_node01.log", bytes(20_000), AGENT)
    write("other.log", bytes(20_000), b"no launcher\n")
    recording = read(tmp_path)
    assert [text for text in texts(recording) if len(text) < 30] == [f"{clock(1)} a", "bc", "d"]
    assert sum(identity.process_type == "launcher" for identity, _ in events(recording, Log)) == 3
    assert recording.inputs.unused == [
        Unused("agent_node01.log", 1, "NUL bytes removed", 20_000),
        Unused(f"{RUN}/1/stderr.log", 2, "NUL bytes removed", 11),
        Unused("other.log", 0, "binary file"),
    ]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_is_not_read_as_text_whatever_its_name(
    tmp_path: Path, write: Write, pack: Callable[[bytes], bytes]
) -> None:
    write("pids.jsonl", pid_row())
    write("nemo_log_globalrank-1_localrank-1.txt", pack(f"{clock(1)} step 1\n".encode()))
    recording = read(tmp_path)
    reason = "compressed; unpack it to have it read"
    assert recording.inputs.unused == [Unused("nemo_log_globalrank-1_localrank-1.txt", 0, reason)]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_table_that_is_one_json_array_is_read_as_rows(tmp_path: Path, write: Write, indent: int | None) -> None:
    write("p.json", json.dumps([pid_row(), pid_row(pid="x")], indent=indent))
    write("m.json", json.dumps([sample(1), sample(2), {"else": 1}], indent=indent))
    write("s.json", json.dumps([stack_row(1), stack_row(2)], indent=indent))
    recording = read(tmp_path)
    assert (len(events(recording, Stack)), len(events(recording, Topology)), recording.inputs.records) == (2, 1, 5)
    assert [(note.file, note.line) for note in recording.inputs.unused] == [("m.json", 3), ("p.json", 2)]


def test_an_array_that_is_cut_off_keeps_what_stands_before(tmp_path: Path, write: Write) -> None:
    write("m.json", json.dumps([sample(1), sample(2), sample(3)])[:-20])
    recording = read(tmp_path)
    assert recording.inputs.records == 2
    assert [(note.line, "invalid JSON" in note.reason) for note in recording.inputs.unused] == [(3, True)]


@pytest.mark.parametrize(
    ("name", "attempt"),
    [("x", "x"), ("-1", "-1"), ("9" * 40, "9" * 32), ("1234567890", "1234567890"), ("007", "7")],
)
def test_an_attempt_that_is_no_number_keeps_its_logs(tmp_path: Path, write: Write, name: str, attempt: str) -> None:
    write(f"logs/node01/run-7_abcdefgh/attempt_{name}/1/stderr.log", f"{clock(1)} a\n")
    recording = read(tmp_path)
    ((identity, _),) = events(recording, Log)
    assert (identity.job, identity.node, identity.attempt) == ("run-7", "node01", attempt)
    assert recording.inputs.unused == []


# times of logs

RAISED = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "x.py", line 1, in f\n[rank3]: ValueError: bad\n'


def raised(recording: Recording) -> float:
    (event,) = [
        event
        for _, event in events(recording, Log)
        if event.text.startswith("Traceback") and event.text.endswith("bad")
    ]
    assert event.time_source == "inferred" and event.precision_ns >= SECOND
    return offset(event)


def test_a_final_traceback_stands_where_its_process_was_last_seen_alive(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("m.jsonl", *(sample(n) for n in range(1, 31)), sample(31, status="zombie"))
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == 30.0


def test_a_final_traceback_stands_at_its_last_line_if_the_process_ended_then(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("m.jsonl", sample(1), sample(6.5), sample(7.5, status="zombie"))
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == 5.0


def test_a_final_traceback_is_never_later_than_the_launchers_word(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("agent_node01.log", AGENT)
    write("m.jsonl", *(sample(n) for n in range(1, 91)))
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == pytest.approx(55.187 + 1)


def test_a_process_that_nobody_saw_ends_when_its_launcher_says(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("agent_node01.log", AGENT)
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == pytest.approx(55.187)


def test_a_launcher_tells_the_end_of_a_worker_whose_process_nobody_knows(tmp_path: Path, write: Write) -> None:
    write("agent_node01.log", AGENT)
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == pytest.approx(55.187)


def test_a_launcher_tells_the_end_of_the_rank_that_a_file_is_named_after(tmp_path: Path, write: Write) -> None:
    write("agent_node01.log", AGENT)
    for rank, end in ((2, ""), (3, RAISED)):
        lines = [f"{clock(n)} INFO [rank {rank}] step {n} loss 1.5\n" for n in range(1, 6)]
        write(f"logs/rank_{rank}.log", *lines, end)
    assert raised(read(tmp_path)) == pytest.approx(55.187)


def test_an_end_before_what_a_worker_printed_last_is_of_an_attempt_before(tmp_path: Path, write: Write) -> None:
    write("agent_node01.log", AGENT)
    write(f"{RUN}/1/stderr.log", f"{clock(58)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == 58.0


def test_a_traceback_in_the_middle_takes_its_neighbours_time(tmp_path: Path, write: Write) -> None:
    write("m.jsonl", *(sample(n) for n in range(1, 31)))
    write(f"{RUN}/1/stderr.log", f"{clock(5)} [rank 3] step 1\n", RAISED, f"{clock(9)} [rank 3] step 2\n")
    recording = read(tmp_path)
    (event,) = [event for _, event in events(recording, Log) if "Traceback" in event.text]
    assert (offset(event), event.precision_ns) == (5.0, 4 * SECOND)


def test_an_iteration_line_takes_the_time_of_its_own_rank_before_that_of_others(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row(), pid_row(rank=2, local_rank=0, pid=2))
    write(f"{RUN}/1/stdout.log", " iteration 1/ 9 | a\n iteration 2/ 9 | b\n")
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1 timers\n")
    write(f"{RUN}/0/stderr.log", f"{clock(5.5)} step 1 timers\n{clock(6.5)} step 2 timers\n")
    found = [event for _, event in events(read(tmp_path), Log) if event.stream == "stdout"]
    assert [(offset(e), e.time_source, e.precision_ns, e.iteration) for e in found] == [
        (5.0, "inferred", SECOND, 1),
        (6.5, "inferred", SECOND, 2),
    ]


def test_a_log_without_any_time_starts_with_its_worker(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write(f"{RUN}/1/stderr.log", "hello\n")
    ((_, event),) = events(read(tmp_path), Log)
    assert offset(event) == 0.5 and event.time_source == "inferred"


def test_a_clock_that_goes_back_is_noted_once_and_keeps_every_line(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", "".join(f"{clock(t)} line {t}\n" for t in (1, 100, 50, 60, 101)))
    recording = read(tmp_path)
    assert [offset(event) for _, event in events(recording, Log)] == [1, 100, 100, 100, 101]
    assert recording.inputs.unused == [Unused(f"{RUN}/1/stderr.log", 3, "clock went back 50 s; lines re-timed", 2)]


def test_an_event_arrives_no_earlier_than_what_stands_before_it(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(10)} a\n{clock(9)} b\n")
    recording = read(tmp_path)
    assert [(a.time - BASE * SECOND) / SECOND for a in recording.arrivals] == [10.0]
    assert texts(recording) == [f"{clock(10)} a", f"{clock(9)} b"]


def test_a_year_that_nobody_names_is_said_to_be_assumed(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", "[I1129 18:10:22.063883393 socket.cpp:955] [c10d] x\n")
    recording = read(tmp_path)
    assert [(note.line, "year" in note.reason) for note in recording.inputs.unused] == [(0, True)]
    assert [event.time_source for _, event in events(recording, Log)] == ["printed"]


# bad input


def test_nothing_hides_a_bad_row_and_nothing_is_lost_by_one(tmp_path: Path, write: Write) -> None:
    good = sample(1)
    bad = [
        '{"ts": 1795975834, "node": "node01", "ra\n',
        "[1, 2]\n",
        {**good, "ts": "soon"},
        {**good, "ts": -5},
        {**good, "ts": 1e300},
        {"node": "node01", "rank": 3, "pid": 4, "cpu_percent": 1},
        "not json\n",
        "[" * 100_000 + "\n",
        {"ts": BASE, "else": 1},
    ]
    write("m.jsonl", good, *bad, sample(2), '{"ts": 17959')
    recording = read(tmp_path)
    assert [note.line for note in recording.inputs.unused] == [*range(2, 2 + len(bad)), len(bad) + 3]
    assert {note.file for note in recording.inputs.unused} == {"m.jsonl"}
    assert len([e for _, e in events(recording, Metric) if e.name == "cpu_percent"]) == 2
    assert recording.inputs.records == 2


def test_a_bad_start_row_is_left_aside(tmp_path: Path, write: Write) -> None:
    write("p.jsonl", pid_row(), pid_row(rank=None), pid_row(pid="x"), pid_row(local_rank=True))
    recording = read(tmp_path)
    assert [note.line for note in recording.inputs.unused] == [2, 3, 4]
    assert len(events(recording, Topology)) == 1


def test_what_no_reader_knows_is_listed_and_never_read(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("truth.json", json.dumps({"name": "x", "rank": 5, "node": "n", "fault_time": 1.0}, indent=1))
    write("one-line.json", {"name": "x", "rank": 5, "fault_time": 1.0})
    write("fault_injection.log", f"{clock(1)} injecting a hang on rank 3\n")
    write("README.md", "# Notes on ChildFailedError\n")
    write("empty.log", "")
    write("core", b"\x7fELF\0\0")
    write("broken.json", '{\n "entries": [1, 2')
    recording = read(tmp_path)
    reasons = {note.file: note.reason for note in recording.inputs.unused}
    unknown = dict.fromkeys(
        ["truth.json", "one-line.json", "fault_injection.log", "README.md"], "not a recognised format"
    )
    assert reasons.pop("broken.json").startswith("invalid JSON")
    assert reasons == {
        **unknown,
        "empty.log": "empty file",
        "core": "binary file",
    }
    assert recording.inputs.files == 1 and not texts(recording)


def test_invalid_bytes_and_long_lines_are_noted_and_kept(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n", b"b\xff\nc\xfe\n", b"x" * 5_000_000, b"\n", f"{clock(2)} end")
    recording = read(tmp_path)
    assert recording.inputs.unused == [
        Unused(f"{RUN}/1/stderr.log", 2, "invalid UTF-8, replaced", 2),
        Unused(f"{RUN}/1/stderr.log", 4, "line of 5000001 bytes cut to 65536"),
    ]
    assert [len(text) for text in texts(recording)] == [25, 2, 2, 65_536, 27]


def test_links_pipes_and_sockets_are_left_alone(tmp_path: Path, write: Write) -> None:
    path = write("pids.jsonl", pid_row())
    (tmp_path / "outside.jsonl").write_text(json.dumps(sample(1)))
    root = path.parent
    (root / "loop").symlink_to(root)
    (root / "out.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (root / "gone").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # the path of a socket must be short
        try:
            server.bind("s")
        finally:
            os.chdir(here)
        recording = read(tmp_path)
    link = "symbolic link, not followed"
    assert {note.file: note.reason for note in recording.inputs.unused} == {
        "loop": link,
        "out.jsonl": link,
        "gone": link,
        "pipe": "named pipe, not opened",
        "s": "socket, not opened",
    }
    assert not events(recording, Metric)


def test_a_file_that_cannot_be_opened_is_noted(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("pids.jsonl", pid_row())
    locked = write("locked.jsonl", sample(1))
    opened = Path.open

    def refusing(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refusing)
    assert read(tmp_path).inputs.unused == [Unused("locked.jsonl", 0, "cannot be read: Permission denied")]


def test_a_name_that_is_not_utf8_can_still_be_sent(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    (tmp_path / "job" / os.fsdecode(b"bad\xff.txt")).write_text("x")
    (note,) = read(tmp_path).inputs.unused
    assert note.file == "bad\\udcff.txt" and encode(note)


def test_lone_surrogates_do_not_stop_a_batch_from_being_sent(tmp_path: Path, write: Write) -> None:
    write("s.jsonl", json.dumps(stack_row(1)).replace("train.py", "\\ud800.py").replace("node01", "n\\udfff") + "\n")
    for arrival in read(tmp_path).arrivals:
        assert encode(arrival.batch)


@pytest.mark.parametrize("content", [None, "", "hello\n"])
def test_a_folder_out_of_which_nothing_can_be_read_says_so(tmp_path: Path, write: Write, content: str | None) -> None:
    if content is None:
        (tmp_path / "job").mkdir()
    else:
        write("notes.txt", content)
    with pytest.raises(UnreadableRecording, match=r"job"):
        read(tmp_path)


def test_no_folder_and_no_directory_say_so(tmp_path: Path, write: Write) -> None:
    with pytest.raises(UnreadableRecording, match="no such folder"):
        read(tmp_path)
    with pytest.raises(UnreadableRecording, match="not a folder"):
        read_recording(write("x", "y"))


# batches


def test_a_batch_holds_one_workers_events_of_one_kind_and_second(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", "".join(f"{clock(t)} [rank 3] {t}\n" for t in (1.1, 1.9, 2.0)))
    found = read(tmp_path).arrivals
    assert [(len(a.batch.events), a.batch.seq, (a.time - BASE * SECOND) / SECOND) for a in found] == [
        (2, 0, 1.9),
        (1, 1, 2.0),
    ]
    assert {a.batch.producer for a in found} == {"recorded"} and len({a.batch.boot for a in found}) == 1


def test_progress_is_told_for_every_file(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    write("m.jsonl", sample(1))
    told: list[tuple[str, int, int]] = []
    read_recording(tmp_path / "job", lambda *args: told.append(args))
    assert told == [("m.jsonl", 0, 2), ("pids.jsonl", 1, 2), ("", 2, 2)]


def sent(recording: Recording) -> list[bytes]:
    return [b"%d " % arrival.time + encode(arrival.batch) for arrival in recording.arrivals]


@recorded
@pytest.mark.parametrize("job", ["restart", "skip-collective", "config-error"])
def test_a_recording_is_the_same_whatever_its_folder_is_called(tmp_path: Path, job: str) -> None:
    shutil.copytree(SHARED / job, tmp_path / "deep" / "other name", ignore=shutil.ignore_patterns("truth.json"))
    copy, original = read_recording(tmp_path / "deep" / "other name"), read_recording(SHARED / job)
    assert sent(copy) == sent(original)
    assert copy.inputs.unused == [] and [note.file for note in original.inputs.unused] == ["truth.json"]


@recorded
@pytest.mark.parametrize("job", sorted(p.name for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else [])
def test_every_recorded_job_is_read_whole(job: str) -> None:
    recording = read_recording(SHARED / job)
    assert [(note.file, note.reason) for note in recording.inputs.unused] == [("truth.json", "not a recognised format")]
    assert [a.batch.seq for a in recording.arrivals] == list(range(len(recording.arrivals)))
    assert [a.time for a in recording.arrivals] == sorted(a.time for a in recording.arrivals)
    for arrival in recording.arrivals:
        assert decode(kind_of(arrival.batch), encode(arrival.batch)) == arrival.batch
        assert arrival.time >= max(event.time for event in arrival.batch.events)
        assert arrival.batch.identity.rank is not None or arrival.batch.identity.process_type in ("launcher", "sampler")


def tracebacks(job: str) -> dict[int | None, float]:
    truth = json.loads((SHARED / job / "truth.json").read_text())
    found = events(read_recording(SHARED / job), Log)
    fault = truth["fault_time"]
    return {i.rank: e.time / SECOND - fault for i, e in found if "Traceback" in e.text and i.process_type == "trainer"}


@recorded
def test_victims_of_a_hang_raise_at_their_timeout_not_at_their_last_line() -> None:
    found = tracebacks("dataloader-hang")
    assert sorted(found) == [0, 1, 2, 3, 4, 6, 7]
    assert all(24 <= time <= 31 for time in found.values())


@recorded
def test_the_rank_that_raises_does_so_at_the_fault() -> None:
    assert (
        abs(tracebacks("exception")[6]) <= 2 and abs(tracebacks("oom")[4]) <= 2 and abs(tracebacks("restart")[4]) <= 2
    )


def test_a_stray_row_or_line_does_not_stretch_the_recording(tmp_path: Path, write: Write) -> None:
    write("m.jsonl", *(sample(n) for n in range(9)), sample(86_400 * 400))
    write(f"{RUN}/1/stderr.log", f"{clock(-86_400 * 400)} [rank 3] a\n{clock(2)} [rank 3] b\n")
    recording = read(tmp_path)
    assert [(note.file, note.line) for note in recording.inputs.unused] == [(f"{RUN}/1/stderr.log", 1), ("m.jsonl", 10)]
    assert recording.arrivals[-1].time - recording.arrivals[0].time < 60 * SECOND
    assert [(offset(e), e.time_source) for _, e in events(recording, Log)] == [(2, "inferred"), (2, "printed")]


def test_a_prefixed_traceback_alone_tells_the_rank(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n", RAISED)
    assert {identity.rank for identity, _ in events(read(tmp_path), Log)} == {3}


def test_a_worker_may_speak_of_others_now_and_then(tmp_path: Path, write: Write) -> None:
    own = "".join(f"{clock(n)} [rank 3] a\n" for n in range(1, 20))
    write(f"{RUN}/1/stderr.log", own, f"{clock(30)} lost [rank 5]\n")
    assert {identity.rank for identity, _ in events(read(tmp_path), Log)} == {3}


def test_rows_of_one_node_behind_those_of_another_keep_their_own_times(tmp_path: Path, write: Write) -> None:
    write("m.jsonl", *(sample(n, rank=r, pid=r) for r in (1, 2) for n in range(1, 60)))
    recording = read(tmp_path)
    late = [a for a in recording.arrivals if a.time - min(e.time for e in a.batch.events) > 2 * SECOND]
    assert late == []


def test_impossible_printed_times_are_counted_and_their_lines_kept(tmp_path: Path, write: Write) -> None:
    write(f"{RUN}/1/stderr.log", f"{clock(1)} a\n1970-01-01 00:00:01 b\n1970-01-01 00:00:02 c\n{clock(2)} d\n")
    recording = read(tmp_path)
    assert [(note.line, note.count) for note in recording.inputs.unused] == [(2, 2)]
    assert [offset(e) for _, e in events(recording, Log)] == [1, 1, 1, 2]


def test_a_launchers_line_at_the_moment_counts_before_its_report(tmp_path: Path, write: Write) -> None:
    write("pids.jsonl", pid_row())
    first, failed, rest = AGENT.split("\n", 2)
    write("agent_node01.log", f"{first}\n{rest}{failed}\n")
    write(f"{RUN}/1/stderr.log", f"{clock(5)} step 1\n", RAISED)
    assert raised(read(tmp_path)) == pytest.approx(55.187)
