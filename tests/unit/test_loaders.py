"""Waits within a loader's call are the loader's, but not those for other ranks, nor those of its own threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_support import MAIN, call, write_trace
from profiled_job import ProfiledJob, even

from producers.loaders import Loaders
from producers.readers.kineto_calls import part_of
from producers.recording import read_recording
from rankwatch.diagnose import run

STEPS = {("1", "1")}


@pytest.mark.parametrize(
    ("spans", "told"),
    [
        ([("loader", 1, 0, 10), ("wait", 1, 2, 8)], [(1, 0)]),
        # The outermost call of the loader is told.
        ([("loader", 1, 3, 9), ("loader", 1, 0, 10), ("wait", 1, 4, 8)], [(2, 1)]),
        ([("wait", 1, 2, 8)], []),
        ([("loader", 1, 0, 10), ("wait", 1, 2, 12)], []),
        # Another thread's loader does not wait here.
        ([("loader", 2, 0, 10), ("wait", 1, 2, 8)], []),
        # One rank reads for all, and they wait for it.
        ([("loader", 1, 0, 10), ("talk", 1, 1, 9), ("wait", 1, 2, 8)], []),
        # A thread of the loader has nothing to do.
        ([("loader", 2, 0, 10), ("wait", 2, 2, 8)], [(1, None)]),
    ],
)
def test_whose_a_wait_is(spans: list[tuple], told: list[tuple[int, int | None]]) -> None:  # type: ignore[type-arg]
    found = Loaders()
    for at, (part, thread, start, end) in enumerate(spans):
        found.take(part, ("1", str(thread)), start, end, at)
    assert list(found.waits(STEPS)) == told


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("torch/utils/data/dataloader.py(701): __next__", "python", "loader"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "python", "loader"),
        ("train/data_loader.py(3): __iter__", "python", "loader"),
        ("/data/project/train.py(10): main", "python", ""),
        ("torch/distributed/fsdp/_runtime_utils.py(1200): _prefetch_handle", "python", ""),
        ("threading.py(327): wait", "collective", "wait"),
        ("<built-in method acquire of _thread.lock object at 0x7f9c>", "python", "wait"),
        ("c10d::broadcast_", "collective", "talk"),
    ],
)
def test_what_a_call_tells_of_loading(name: str, kind: str, part: str) -> None:
    assert part_of(name, kind) == part


@pytest.mark.parametrize("between", ["queue.py(171): get", "c10d::broadcast_"])
def test_a_late_loader_is_seen_where_the_main_thread_waits_for_it(tmp_path: Path, between: str) -> None:
    """Unless what it waits for is another rank."""
    job = ProfiledJob(work=even, idle=lambda step, rank: 9_000.0 if rank == 6 else 500.0)
    for rank, value in enumerate(job.traces()):
        value["distributedInfo"] |= {"pg_config": [{"pg_name": "0", "pg_size": 8}], "pg_count": 1}
        late = 8_900.0 if rank == 6 else 400.0
        begun = [one["ts"] + 3_050 for one in value["traceEvents"] if one["name"].startswith("ProfilerStep#")]
        for at in begun:
            value["traceEvents"] += [
                call("torch/utils/data/dataloader.py(701): __next__", "python_function", at, late),
                call(between, "python_function", at + 5, late - 10),
                call("threading.py(327): wait", "python_function", at + 10, late - 20),
                call("torch/utils/data/_utils/pin_memory.py(17): loop", "python_function", at, 9_000, thread=MAIN + 1),
                call("threading.py(327): wait", "python_function", at + 20, 8_970, thread=MAIN + 1),
            ]
        write_trace(tmp_path / f"{rank}.json", value)
    found = [one for one in run(read_recording(tmp_path)).incidents if one.suspects]
    assert [[one.rank for one in incident.suspects] for incident in found] == ([[6]] if "queue" in between else [])
    if found:
        (told,) = [one for one in found[0].evidence if one.detector == "profile_outlier"]
        assert "function 'data/dataloader.py(701): __next__' of rank 6" in told.text
        assert "7 calls of 8.90 ms" in told.text
