"""Traces of PyTorch's profiler: whose they are, when they were taken, what they hold, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kineto_support import ALL_REDUCE, BASE, call, steps_of, trace, write_trace

from producers import sketch
from producers.inputs import UnreadableRecording
from producers.readers import kineto, kineto_calls
from producers.recording import Recording, read_recording
from producers.scan import Source
from schemas.events import Job, Profile
from schemas.identity import Identity

END = 115_000_000
"""When the six steps of 19 milliseconds have ended, in ns."""


def profiles(recording: Recording) -> dict[int | None, list[Profile]]:
    found: dict[int | None, list[Profile]] = {}
    for arrival in recording.arrivals:
        for event in arrival.batch.events:
            if isinstance(event, Profile):
                found.setdefault(arrival.batch.identity.rank, []).append(event)
    return found


def identities(recording: Recording) -> list[Identity]:
    return [arrival.batch.identity for arrival in recording.arrivals]


def reasons(recording: Recording) -> list[str]:
    return [one.reason for one in recording.inputs.unused]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "no-ending", "worker0.1764417600123.pt.trace.json.gz"])
def test_a_trace_is_told_by_what_it_holds_and_belongs_to_its_rank(tmp_path: Path, name: str) -> None:
    write_trace(tmp_path / name, trace(steps_of(), rank=3))
    recording = read_recording(tmp_path)
    assert (recording.inputs.files, recording.inputs.unused) == (1, [])
    (found,) = profiles(recording).values()
    assert list(profiles(recording)) == [3]
    assert {(one.time, one.time_source, one.steps, one.first_step, one.world_size) for one in found} == {
        (BASE + END, "captured", 6, 10, 8)
    }
    by_name = {one.name: one for one in found}
    assert (by_name["train/data.py(41): augment"].kind, by_name["cudaMalloc"].kind) == ("python", "os")
    assert (by_name["sm90_xmma_gemm_bf16"].kind, by_name[ALL_REDUCE].kind) == ("gpu", "collective")
    assert by_name["sm90_xmma_gemm_bf16"].typical == pytest.approx(0.009)
    # It is hidden by the kernels that it waits for.
    assert "cudaDeviceSynchronize" not in by_name


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "kernel", "collective"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "kernel", "collective"),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "kernel", "collective"),
        ("void rcclKernel<1>", "kernel", "collective"),
        ("hcom_allReduce__123_0", "kernel", "collective"),
        ("void vllm::cross_device_reduce_1stage<half, 4>", "kernel", "collective"),
        ("two_shot_all_reduce_kernel", "Kernel", "collective"),
        ("void deep_ep::internode::dispatch<true>(int4*)", "kernel", "collective"),
        ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", "kernel", "collective"),
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<half>",
            "kernel",
            "collective",
        ),
        ("void LayerNormWarpAllReduce<float>", "kernel", "gpu"),
        ("sm80_gemm", "concurrent_kernel", "gpu"),
        ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", "gpu"),
        ("nccl:all_reduce", "user_annotation", "collective"),
        ("gloo:barrier", "cpu_op", "collective"),
        ("c10d::allreduce_", "cpu_op", "collective"),
        ("record_param_comms", "cpu_op", "collective"),
        ("/a/torch/distributed/distributed_c10d.py(2799): all_reduce", "python_function", "collective"),
        ("/a/torch/distributed/checkpoint/state_dict.py(12): save", "python_function", "python"),
        ("threading.py(331): wait", "python_function", "collective"),
        ("vllm/distributed/device_communicators/shm_broadcast.py(431): acquire_read", "python_function", "collective"),
        ("threading.py(1016): _bootstrap", "python_function", "python"),
        ("aten::mm", "Operator", "python"),
        ("hipLaunchKernel", "hip_runtime", "os"),
        ("cuLaunchKernel", "cuda_driver", "os"),
        ("Buffer Flush", "overhead", "os"),
        ("nccl:all_reduce", "gpu_user_annotation", None),
        ("ac2g", "ac2g", None),
    ],
)
def test_what_a_call_is_follows_from_its_category_and_name(name: str, category: str, kind: str | None) -> None:
    found = kineto_calls.function_of(name, category)
    assert (found[1] if found else None) == kind


def test_names_do_not_tell_processes_apart_and_long_ones_stay_different() -> None:
    said = kineto_calls.said_of("<built-in method f of type object at 0x7f3a99b0>")
    assert said == kineto_calls.said_of("<built-in method f of type object at 0x5500aa>")
    here, there = ("/home/a/venv/lib/train/data.py(41): load", "/mnt/b/train/data.py(41): load")
    assert kineto_calls.said_of(here) == kineto_calls.said_of(there) == "train/data.py(41): load"
    one, other = kineto_calls.said_of("k" * 500 + "<1>"), kineto_calls.said_of("k" * 500 + "<2>")
    assert one != other and len(one) == len(other) == kineto_calls.LONGEST_NAME
    assert kineto_calls.said_of("\ud800") == "?"


@pytest.mark.parametrize(
    ("file", "info", "rank", "reason"),
    [
        ("a.json", {"rank": 3, "world_size": 8}, 3, ""),
        ("rank3.json", None, 3, ""),
        ("sampled_rank-3.json", None, 3, ""),
        ("worker_3.json", None, None, "nothing tells whose"),
        ("a.json", {"rank": 8, "world_size": 8}, None, "nothing tells whose"),
        ("a.json", {"rank": True, "world_size": 8}, None, "nothing tells whose"),
        ("a.json", {"rank": -1, "world_size": 8}, None, "nothing tells whose"),
        ("a.json", {"rank": 1 << 40, "world_size": 1 << 41}, None, "nothing tells whose"),
        ("a.json", {"rank": "3"}, None, "nothing tells whose"),
        ("a.json", [3], None, "nothing tells whose"),
        # A name may give the rank on its node.
        ("rank1.json", {"rank": 9, "world_size": 16}, 9, ""),
    ],
)
def test_a_rank_is_told_by_the_trace_else_by_its_name_else_not_known(
    tmp_path: Path, file: str, info: Any, rank: int | None, reason: str
) -> None:
    value = trace(steps_of(), rank=None)
    write_trace(tmp_path / file, value if info is None else value | {"distributedInfo": info})
    recording = read_recording(tmp_path)
    assert list(profiles(recording)) == [rank]
    assert [bool(one.rank_reason) for one in identities(recording)] == [rank is None]
    assert [reason in one for one in reasons(recording)] == ([True] if reason else [])


def test_a_table_beside_it_may_tell_rank_and_time_and_must_not_contradict(tmp_path: Path) -> None:
    write_trace(tmp_path / "a.json", trace(steps_of(), rank=None, base=0))
    write_trace(tmp_path / "b.json", trace(steps_of(), rank=4))
    rows = [
        {"file": "a.json", "captured": 1764417700, "rank": 2},
        {"file": "b.json", "captured": 1764417700, "rank": 5},
    ]
    (tmp_path / "captures.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recording = read_recording(tmp_path)
    found = profiles(recording)
    assert set(found) == {2, None}
    assert {one.time for one in found[2]} == {1764417700 * 10**9}
    assert reasons(recording) == ["sources disagree about the rank: 4, 5"]


def test_a_time_counts_from_the_base_or_from_1970_and_is_inferred_where_neither_gives_one(tmp_path: Path) -> None:
    late = [event | {"ts": event["ts"] + BASE / 1_000} for event in steps_of()]
    write_trace(tmp_path / "rank0.json", trace(late, base=0))
    write_trace(tmp_path / "rank1.json", trace(steps_of(), rank=1, base=0))
    write_trace(tmp_path / "rank2.json", trace(steps_of(), rank=2) | {"baseTimeNanoseconds": "soon"})
    recording = read_recording(tmp_path)
    found = {rank: {(one.time // 10**9, one.time_source) for one in own} for rank, own in profiles(recording).items()}
    assert found == {
        0: {(BASE // 10**9, "captured")},
        1: {(BASE // 10**9, "inferred")},
        2: {(BASE // 10**9, "inferred")},
    }
    assert reasons(recording) == [kineto.UNTIMED] * 2


def test_a_second_copy_of_a_trace_is_left_aside(tmp_path: Path) -> None:
    write_trace(tmp_path / "a.json", trace(steps_of(), rank=3))
    write_trace(tmp_path / "copy" / "a.json.gz", trace(steps_of(), rank=3))
    recording = read_recording(tmp_path)
    assert [len({one.name for one in own}) for own in profiles(recording).values()] == [
        len(own) for own in profiles(recording).values()
    ]
    assert reasons(recording) == ["taken when a.json was, and of the same rank; one of the two is used"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("cut", [0.3, 0.6, 0.97])
def test_a_part_of_a_trace_is_not_taken_for_the_whole(tmp_path: Path, cut: float, packed: bool) -> None:
    """The calls of the CPU come first: without those of the GPU they would hold all the time."""
    raw = json.dumps(trace(steps_of(40), rank=3)).encode()
    raw = gzip.compress(raw) if packed else raw
    write_trace(tmp_path / "whole.json", trace(steps_of(), rank=0))
    (tmp_path / "trace.json").write_bytes(raw[: int(len(raw) * cut)])
    recording = read_recording(tmp_path)
    assert list(profiles(recording)) == [0]
    (reason,) = reasons(recording)
    assert reason.startswith("a part of a trace, which is not like the whole: ")


def test_a_trace_of_which_only_what_follows_the_events_is_cut_off_is_used(tmp_path: Path) -> None:
    value = trace(steps_of(), rank=3)
    raw = json.dumps({**value, "INFO": ["x" * 100]}).encode()
    (tmp_path / "trace.json").write_bytes(raw[:-50])
    recording = read_recording(tmp_path)
    assert list(profiles(recording)) == [3]
    assert [one.partition(":")[0] for one in reasons(recording)] == [
        "what stands behind the events of the trace cannot be read"
    ]


def test_what_was_recorded_is_told(tmp_path: Path) -> None:
    for rank, left_out in enumerate(["none", "kernel", "python_function"]):
        events = [event for event in steps_of(40) if event["cat"] != left_out]
        # One mark of somebody's own is not what following Python would give.
        marked = [*events, call("mine.py(1): mark", "python_function", 5, 5)]
        write_trace(tmp_path / f"{rank}.json", trace(marked, rank=rank))
    found = {rank: {one.recorded for one in own} for rank, own in profiles(read_recording(tmp_path)).items()}
    assert found == {0: {"cpu,driver,gpu,python"}, 1: {"cpu,driver,python"}, 2: {"cpu,driver,gpu"}}


@pytest.mark.parametrize(
    "odd",
    [
        {"ph": "X"},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": "1", "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": float("nan"), "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": float("inf")},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -5},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e300, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": True, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1e15},
        {"ph": "X", "cat": ["kernel"], "name": {"k": 1}, "ts": 1, "dur": 1},
        ["not", "an", "event"],
        None,
    ],
)
def test_an_odd_event_is_counted_and_changes_nothing_else(tmp_path: Path, odd: Any) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write_trace(tmp_path / "one" / "trace.json", trace(steps_of(40), rank=3))
    write_trace(tmp_path / "two" / "trace.json", trace([odd, *steps_of(40), odd], rank=3))
    first, second = (read_recording(tmp_path / name) for name in ("one", "two"))
    assert profiles(first) == profiles(second)
    assert [(one.reason, one.count) for one in second.inputs.unused] == [
        ("events without a name, a category or a possible time", 2)
    ]


@pytest.mark.parametrize("value", [{"schemaVersion": 1, "traceEvents": []}, {"traceEvents": [{"ph": "i"}]}])
def test_a_trace_without_calls_is_left_aside_with_the_reason(tmp_path: Path, value: Any) -> None:
    write_trace(tmp_path / "trace.json", value)
    with pytest.raises(UnreadableRecording):
        read_recording(tmp_path)
    write_trace(tmp_path / "rank0.json", trace(steps_of()))
    assert "a trace without calls of functions or kernels" in reasons(read_recording(tmp_path))


def test_other_files_are_no_traces(tmp_path: Path) -> None:
    for name, raw in {
        "rows": b'{"ts": 1, "traceEvents": []}\n',
        "dump": b'{"version": "2.4", "entries": [], "distributedInfo": 1}',
        "log": b'{"schemaVersion": 1}\n{"schemaVersion": 1}\n',
        "packed": gzip.compress(b"2025-11-29 12:00:00 step 1\n"),
        "damaged": gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}')[:20],
        "deep": b"{" * 100_000,
    }.items():
        path = tmp_path / name
        path.write_bytes(raw)
        assert not kineto.recognised(Source(path, name, len(raw))), name


def test_process_groups_of_all_ranks_alone_show_that_all_ranks_are_alike(tmp_path: Path) -> None:
    whole = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 8, "ranks": []}
    part = {"pg_name": "1", "pg_desc": "tp", "pg_size": 2, "ranks": [2, 3]}
    sends = call("ncclDevKernel_SendRecv", "kernel", 5, 5)
    for number, (groups, count, events, expected) in enumerate(
        [
            ([whole], 1, steps_of(), {"pp": 1}),
            ([whole, whole], 2, steps_of(), {"pp": 1}),
            ([whole, part], 2, steps_of(), None),
            # Not all of them are listed.
            ([whole], 3, steps_of(), None),
            ([], 0, steps_of(), None),
            # Stages may send to one another in the group of all ranks.
            ([whole], 1, [sends, *steps_of()], None),
            (None, 1, steps_of(), None),
        ]
    ):
        value = trace(events, rank=3)
        value["distributedInfo"] |= {"pg_config": groups, "pg_count": count}
        write_trace(tmp_path / str(number) / "trace.json", value)
        arrivals = read_recording(tmp_path / str(number)).arrivals
        jobs = [event for one in arrivals for event in one.batch.events if isinstance(event, Job)]
        assert [one.layout for one in jobs] == ([expected] if expected else []), number


@pytest.mark.parametrize(("bound", "reason"), [("MOST_ENTRIES", "1000 events"), ("MOST_CALLS", "1000 calls")])
def test_a_flood_is_left_aside_at_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, reason: str
) -> None:
    monkeypatch.setattr(kineto, bound, 1_000)
    monkeypatch.setattr(sketch, "MOST_CALLS", 1_000)
    write_trace(tmp_path / "0.json", trace(steps_of()))
    flood = [{"ph": "i"}] * 5_000 if bound == "MOST_ENTRIES" else steps_of(200)
    write_trace(tmp_path / "1.json", trace(flood, rank=1))
    assert reasons(read_recording(tmp_path)) == [f"a trace of more than {reason}"]
