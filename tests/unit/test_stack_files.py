"""Stacks in files of their own: read alike whatever tool wrote them, and never taken for another worker's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from producers.disputes import reason
from producers.readers import stackjson
from producers.recording import Recording, read_recording
from schemas.events import Frame, Log, Stack
from schemas.identity import Identity
from streams.stacks import spans_of

START = 1795975810
TIME = 1795976000
NAME = "stacks/pyspy_rank1_20261129_181320.txt"
SITE = "/opt/v/lib/python3.11/site-packages"
SPY = """Process 5101: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 5101 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    Trainer.fit (train.py:44)
    <module> (train.py:61)
"""
NATIVE = SPY.replace(
    '"MainThread"\n', '"MainThread"\n    0x7f9cf2ca3f16 (libc.so.6)\n    c10d::Work::wait(long) (libtorch.so)\n'
)
PYSTACK = f"""Traceback for thread 5101 (python) [Waiting for the GIL] (most recent call last):
    (C) File "???", line 0, in _start (/usr/bin/python3.11)
    (Python) File "/srv/job/train.py", line 61, in <module>
        main()
    (Python) File "/srv/job/train.py", line 44, in fit
        dist.all_reduce(loss)
    (Python) File "{SITE}/torch/distributed/distributed_c10d.py", line 2806, in all_reduce
        work.wait()
"""
FAULT = f"""Timeout (0:00:30)!
Thread 0x00007f9c2abb6c0 (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 2806 in all_reduce
  File "/srv/job/train.py", line 44 in fit
  File "/srv/job/train.py", line 61 in <module>
"""
PY_BT = f"""Thread 1 (Thread 0x7f25edfb66c0 (LWP 5101) "python3.11"):
Traceback (most recent call first):
  <built-in method wait of Work object at remote 0x7f25ee08f380>
  File "{SITE}/torch/distributed/distributed_c10d.py", line 2806, in all_reduce
    work.wait (timeout)
  File "/srv/job/train.py", line 44, in fit
    dist.all_reduce(loss)
  File "/srv/job/train.py", line 61, in <module>
    main()
"""
PY_BT_FULL = f"""#3 Frame 0x7f25, for file {SITE}/torch/distributed/distributed_c10d.py, line 2806, in all_reduce (a=1)
    work.wait()
#7 (unable to read python frame information)
#9 Frame 0x7f25edfc2110, for file /srv/job/train.py, line 44, in fit (self=<Trainer at remote 0x7f>)
#12 Frame 0x7f25edfc2110, for file /srv/job/train.py, line 61, in <module> ()
"""
BT = """Thread 1 (LWP 5101):
#0  0x00007f25ee3a1e29 in syscall () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f25ee3a2e30 in ncclGroupEnd () from /opt/v/lib/libnccl.so.2
#2  main (argc=2, argv=0x7ffc) at ./Programs/python.c:15
"""
JSON = json.dumps(
    [
        {
            "pid": 5101,
            "thread_id": 7,
            "os_thread_id": 5101,
            "thread_name": "MainThread",
            "active": False,
            "frames": [
                {
                    "name": "all_reduce",
                    "filename": f"{SITE}/torch/distributed/distributed_c10d.py",
                    "line": 2806,
                },
                {"name": "Trainer.fit", "filename": "/srv/job/train.py", "line": 44},
                {"name": "<module>", "filename": "/srv/job/train.py", "line": 61},
            ],
        }
    ],
    indent=2,
)
FLAME = json.dumps(
    [
        {"CFrame": {"file": "", "func": "pthread_cond_wait", "ip": "0x7f", "lineno": 0}},
        {"PyFrame": {"file": f"{SITE}/torch/distributed/distributed_c10d.py", "func": "all_reduce", "lineno": 2806}},
        {"CFrame": {"file": "ceval.c", "func": "eval.lto_priv.3", "ip": "0x7f", "lineno": 0}},
        {"PyFrame": {"file": "/srv/job/train.py", "func": "fit", "lineno": 44}},
        {"PyFrame": {"file": "/srv/job/train.py", "func": "<module>", "lineno": 61}},
    ]
)
FORMS = [SPY, NATIVE, PYSTACK, FAULT, PY_BT, PY_BT_FULL, JSON, FLAME]
STARTS = [(0, "node01", 5100, START), (1, "node01", 5101, START), (2, "node02", 5101, START)]


def read(tmp_path: Path, files: dict[str, str | bytes], starts: list[tuple[int, str, int, int]] = STARTS) -> Recording:
    rows = [
        {"rank": rank, "local_rank": rank % 2, "node": node, "pid": pid, "ts": time, "attempt": int(time == TIME)}
        for rank, node, pid, time in starts
    ]
    for name, text in ({"pids.jsonl": "".join(json.dumps(row) + "\n" for row in rows)} | files).items():
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_recording(tmp_path / "job")


def stacks(recording: Recording) -> list[tuple[Identity, Stack]]:
    arrivals = recording.arrivals
    return [(a.batch.identity, one) for a in arrivals for one in a.batch.events if isinstance(one, Stack)]


def only(recording: Recording) -> tuple[Identity, Stack]:
    ((identity, event),) = stacks(recording)
    return identity, event


def reasons(recording: Recording) -> list[str]:
    return [note.reason for note in recording.inputs.unused]


@pytest.mark.parametrize("text", FORMS)
def test_one_stack_is_the_same_whatever_tool_tells_it(tmp_path: Path, text: str) -> None:
    identity, event = only(read(tmp_path, {NAME: text}))
    assert (identity.rank, identity.node, event.thread, event.process_type) == (1, "node01", "MainThread", "trainer")
    assert (event.pid, event.time, event.time_source) == (5101, TIME * 10**9, "captured")
    assert not any("0x" in f"{frame.function}{frame.file}" for frame in event.frames)
    (span,) = spans_of([event])
    _, other = only(read(tmp_path / "other", {NAME: SPY}))
    assert (span.activity, span.identity, span.position) == (
        "communication",
        *((expected := spans_of([other])[0]).identity, expected.position),
    )
    assert [frame for frame in event.frames if frame.file.endswith("train.py")][-1].line == 44


def test_native_frames_alone_tell_what_the_thread_is_in(tmp_path: Path) -> None:
    _, event = only(read(tmp_path, {NAME: BT}))
    assert event.frames == [
        Frame("main", "./Programs/python.c", 15),
        Frame("ncclGroupEnd", "/opt/v/lib/libnccl.so.2"),
        Frame("syscall", "/lib/x86_64-linux-gnu/libc.so.6"),
    ]
    assert event.thread == "MainThread" and spans_of([event])[0].activity == "communication"


def test_a_thread_that_is_shown_twice_counts_as_python_shows_it(tmp_path: Path) -> None:
    _, event = only(read(tmp_path, {NAME: BT + "\n" + PY_BT}))
    assert event.frames[0] == Frame("<module>", "/srv/job/train.py", 61)


@pytest.mark.parametrize(
    ("frames", "process_type"),
    [
        (
            ["read (data.py:1)", "_worker_loop (torch/utils/data/_utils/worker.py:308)", "<module> (t.py:1)"],
            "dataloader",
        ),
        (["wait (torch/distributed/elastic/agent/server/api.py:9)", "<module> (torchrun:1)"], "launcher"),
        (
            [
                "work (train.py:4)",
                "spawn_main (multiprocessing/spawn.py:122)",
                "run (torch/distributed/elastic/agent/server/api.py:9)",
                "<module> (torchrun:1)",
            ],
            "trainer",
        ),
        (
            ["write (filesystem_async.py:4)", "_bootstrap (multiprocessing/process.py:314)", "<module> (train.py:1)"],
            "checkpoint_writer",
        ),
        (["write (filesystem_async.py:4)", "save (train.py:9)", "<module> (train.py:1)"], "trainer"),
    ],
)
def test_the_main_thread_tells_what_process_it_is(tmp_path: Path, frames: list[str], process_type: str) -> None:
    text = "\n".join(['Process 900: python\n\nThread 900 (idle): "MainThread"', *(f"    {one}" for one in frames), ""])
    identity, event = only(read(tmp_path, {NAME: text}))
    assert (identity.rank, event.process_type, event.pid) == (1, process_type, 900)


@pytest.mark.parametrize(
    ("files", "rank"),
    [
        ({"stacks/node02_20261129_181320.txt": SPY}, 2),
        ({"stacks/node02/20261129_181320/dump.txt": SPY}, 2),
        ({"stacks/dump.txt": f"# node=node01 time=2026-11-29 18:13:20\n{SPY}"}, 1),
        ({"stacks/dump.txt": f"rank: 2\n2026-11-29T18:13:20Z\n{FAULT}"}, 2),
        ({"stacks/dump.txt": f"=== Rank 0 ===\ntime: {TIME}\n{FAULT}"}, 0),
        ({"d/dump.txt": FAULT, "d/dumps.jsonl": json.dumps({"file": "dump.txt", "captured": TIME, "rank": 2})}, 2),
        ({"stacks/pid5100_1795976000.txt": FAULT}, 0),
        # Nothing says on which node the process was, or whose the stack is.
        ({"stacks/20261129_181320.txt": SPY}, None),
        ({"stacks/7_20261129_181320.txt": FAULT}, None),
        # The process is another rank's.
        ({"stacks/node01_rank0_20261129_181320.txt": SPY}, None),
        # The name says another rank than the text.
        ({"stacks/rank2_20261129_181320.txt": f"rank: 0\n{FAULT}"}, None),
    ],
)
def test_whose_a_stack_is(tmp_path: Path, files: dict[str, str | bytes], rank: int | None) -> None:
    identity, event = only(read(tmp_path, files))
    assert identity.rank == rank and (rank is not None or identity.rank_reason)
    assert (event.time, event.time_source) == (TIME * 10**9, "captured")


def test_sections_of_a_file_are_each_a_ranks(tmp_path: Path) -> None:
    text = "".join(f"--- Rank {rank} ---\n{FAULT}\n" for rank in (2, 0)) + "--- Rank 1 ---\nError: No such process\n"
    found = stacks(read(tmp_path, {"stacks_20261129_181320.txt": text}))
    assert sorted((identity.rank, event.failure) for identity, event in found) == [
        (0, ""),
        (1, "Error: No such process"),
        (2, ""),
    ]


def test_a_child_is_its_parents(tmp_path: Path) -> None:
    child = SPY.replace("Process 5101: python train.py\n", "Process 5177: x\nParent Process 5101: y\n")
    name = "stacks/node02_20261129_181320.txt"
    found = stacks(read(tmp_path, {name: f"{SPY}\n{'-' * 40}\n{child}"}))
    assert [(identity.rank, event.pid) for identity, event in found] == [(2, 5101), (2, 5177)]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "the file is empty"),
        ("Error: Permission Denied: Try running again\n", "Error: Permission Denied: Try running again"),
        ("ptrace: Operation not permitted.\n", "ptrace: Operation not permitted."),
        ("Process 5101: python train.py\nPython v3.11.7 (/x)\nError: Failed to suspend\n", "Error: Failed to suspend"),
        (PYSTACK[:-30], "the text ends within a stack"),
        ('Process 5101: python\nPython v3.11.7 (/x)\n\nThread 5101 (active): "x"\n', "the sample holds no threads"),
        ("[]", None),
        ("nothing here\n", None),
    ],
)
def test_a_sample_that_failed_says_so_of_its_worker(tmp_path: Path, text: str, failure: str | None) -> None:
    found = stacks(read(tmp_path, {NAME: text}))
    assert [(identity.rank, event.failure, event.frames) for identity, event in found] == (
        [] if failure is None else [(1, failure, [])]
    )


def test_an_empty_file_of_another_name_says_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, {"rank1.txt": "", "stacks/all.txt": ""})
    assert stacks(found) == [] and reasons(found) == ["empty file"] * 2


def test_what_was_cut_off_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    found = read(tmp_path, {NAME: SPY[:-30], "stacks/pyspy_rank0_1795976000.json": JSON[:-20]})
    by_rank = {identity.rank: event for identity, event in stacks(found)}
    assert [frame.function for frame in by_rank[1].frames] == ["all_reduce"]
    assert by_rank[0].failure == "invalid JSON from here to the end of the array"
    assert "lines that are no part of a stack" in reasons(found)


def test_deep_stacks_are_kept_and_deeper_ones_say_that_they_were_cut(tmp_path: Path) -> None:
    deep = "".join(f"    f{at} (model.py:{at})\n" for at in range(500))
    text = SPY.replace("    Trainer", f"{deep}    Trainer")
    _, event = only(read(tmp_path, {NAME: text}))
    assert len(event.frames) == 503
    found = read(tmp_path / "deeper", {NAME: text.replace(deep, deep * 3)})
    _, event = only(found)
    assert len(event.frames) == 1_000 and event.frames[-1].function == "all_reduce" and event.thread == "MainThread"
    assert reasons(found) == ["a stack of 1503 frames; the innermost 1000 are kept"]


@pytest.mark.parametrize(
    "text",
    [
        'Thread 5101 (idle): "MainThread"\n    wait (threading.py:320)\nwe saw that\nand then\nit stopped\n',
        'Traceback (most recent call last):\n  File "t.py", line 3, in f\nValueError: x\n',
        "    wait (threading.py:320)\n    join (threading.py:320)\n",
        '[{"pid": 5101, "frames": []}]',
        '[{"file": "x", "func": "y"}]',
        "Thread pool of 5101 (idle)\n",
    ],
)
def test_what_only_looks_like_a_stack_is_none(tmp_path: Path, text: str) -> None:
    assert stacks(read(tmp_path, {NAME: text})) == []


@pytest.mark.parametrize("name", ["docs/rank1.md", "src/rank1.py"])
def test_documents_and_sources_hold_no_stacks(tmp_path: Path, name: str) -> None:
    assert stacks(read(tmp_path, {name: SPY})) == []


def test_what_a_process_says_as_it_dies_stays_a_log(tmp_path: Path) -> None:
    text = FAULT.replace("Timeout (0:00:30)!", "Fatal Python error: Segmentation fault\n")
    found = read(tmp_path, {"stacks/faulthandler_rank1_1795976000.txt": text})
    lines = [one for a in found.arrivals for one in a.batch.events if isinstance(one, Log)]
    assert any("Fatal Python error: Segmentation fault" in one.text for one in lines)


def test_where_nothing_tells_the_time_a_stack_stands_at_the_beginning(tmp_path: Path) -> None:
    found = read(tmp_path, {"stacks/rank1.txt": SPY, "stacks/rank0_20261129_181320.txt": FAULT})
    by_rank = {identity.rank: event for identity, event in stacks(found)}
    assert (by_rank[1].time, by_rank[1].time_source) == (START * 10**9, "inferred")
    assert by_rank[1].precision_ns == (TIME - START) * 10**9
    assert reasons(found) == ["nothing tells when the stacks were taken; they count from the beginning of the job"]


def test_samples_of_one_process_without_times_are_no_two_samples(tmp_path: Path) -> None:
    found = read(tmp_path, {NAME: FAULT + FAULT})
    only(found)
    assert reasons(found) == ["earlier samples of a process, without times"]
    timed = "".join(f"time: {TIME + at}\n{FAULT}" for at in (0, 9))
    found = read(tmp_path / "timed", {"stacks/rank1.txt": timed})
    assert [event.time for _, event in stacks(found)] == [TIME * 10**9, (TIME + 9) * 10**9]


RESTARTED = [(0, "node01", 1, START), (1, "node02", 2, START), (1, "node01", 3, TIME), (0, "node02", 4, TIME)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("stacks/rank1_1795975900.txt", FAULT, ("node02", "0", 1)),
        ("stacks/rank1_1795976100.txt", FAULT, ("node01", "1", 1)),
        ("stacks/attempt_1/rank1.txt", FAULT, ("node01", "1", 1)),
        ("stacks/attempt_0/rank1.txt", FAULT, ("node02", "0", 1)),
        ("stacks/rank1.txt", PY_BT.replace("LWP 5101", "LWP 3"), ("node01", "1", 1)),
        ("stacks/rank1.txt", FAULT, ("", "0", None)),
    ],
)
def test_a_rank_that_was_numbered_anew_is_that_of_its_attempt(
    tmp_path: Path, name: str, text: str, expected: tuple[str, str, int | None]
) -> None:
    identity, event = only(read(tmp_path, {name: text}, RESTARTED))
    assert (identity.node, identity.attempt, identity.rank) == expected
    assert identity.rank_reason or event.time >= (TIME if identity.attempt == "1" else START) * 10**9


def of_pid(pid: int) -> str:
    return SPY.replace("5101", str(pid))


def by_name(pid: int, ranks: Iterable[int | str], name: str = "rank{}.txt") -> dict[str, str | bytes]:
    return {f"stacks/{name.format(rank)}": f"time: {TIME}\n{of_pid(pid)}" for rank in ranks}


def starts_of(pid: int, ranks: Iterable[int], node: str) -> list[tuple[int, str, int, int]]:
    return [(rank, node, pid, START) for rank in ranks]


@pytest.mark.parametrize(
    ("files", "starts", "ranks"),
    [
        # Each container counts its processes from 1: nothing is known of nodes, or each has its own, or they have one.
        (by_name(1, range(4)), [], range(4)),
        (by_name(24, range(2)), [], range(2)),
        (by_name(1, range(4)), [(rank, f"pod{rank}", 1, START) for rank in range(4)], range(4)),
        (by_name(1, range(4)), starts_of(1, range(4), "node01"), range(4)),
        (by_name(1, range(2)), starts_of(1, range(2), "node01"), range(2)),
        (by_name(24, range(4), "node01_rank{}.txt"), starts_of(24, range(4), "node01"), range(4)),
        # Only one of them is known to have the id.
        (by_name(24, range(4)), [(0, "node01", 24, START)], range(4)),
        # On a node of its own a process is one rank's.
        (by_name(5100, [0, 1], "node01_rank{}.txt"), STARTS, [None, None]),
        (by_name(5100, [1]), [(0, "node01", 5100, START), (1, "node01", 5101, START)], [None]),
        (by_name(5100, [1]), [(0, "", 5100, START), (1, "", 5101, START)], [None]),
        (by_name(1, range(4)), starts_of(1, range(4), ""), range(4)),
        # What names nobody is nobody's where the id may be several ranks'.
        (by_name(1, ["a"], "{}.txt"), starts_of(1, range(2), "node01"), [None]),
        (by_name(1, ["a"], "{}.txt"), [(0, "node01", 1, START), (1, "node01", 7, START)], [None]),
        (by_name(24, ["a"], "node01_{}.txt"), starts_of(24, range(4), "node01"), [None]),
        (by_name(24, [1, 2]) | by_name(24, ["a"], "{}.txt"), [(0, "node01", 24, START)], [1, 2, None]),
        (
            by_name(24, [1, 2], "node01_rank{}.txt") | by_name(24, ["a"], "node01_{}.txt"),
            [(0, "node01", 24, START)],
            [1, 2, None],
        ),
        (by_name(24, ["a"], "{}.txt"), [(0, "node01", 24, START)], [0]),
    ],
)
def test_a_process_id_that_several_ranks_have_says_nothing(
    tmp_path: Path, files: dict[str, str | bytes], starts: list[tuple[int, str, int, int]], ranks: Sequence[int | None]
) -> None:
    found = read(tmp_path, files, starts)
    named = [identity.rank for identity, _ in stacks(found)]
    assert sorted(named, key=str) == sorted(ranks, key=str)
    disagree = any("sources disagree" in note for note in reasons(found))
    assert disagree == any("sources disagree" in identity.rank_reason for identity, _ in stacks(found))
    assert not disagree or set(ranks) == {None}


def test_starts_under_one_process_id_are_each_a_workers(tmp_path: Path) -> None:
    found = read(tmp_path, {}, starts_of(1, range(4), "node01"))
    told = [(a.batch.identity.rank, a.batch.identity.attempt) for a in found.arrivals for _ in a.batch.events]
    assert sorted(told, key=str) == [(rank, "0") for rank in range(4)]


def test_a_rank_that_had_one_process_id_twice_is_not_told_apart_by_it(tmp_path: Path) -> None:
    starts = [(1, "node01", 24, START), (1, "node01", 24, TIME)]
    identity, _ = only(read(tmp_path, {"stacks/rank1.txt": of_pid(24)}, starts))
    assert identity.rank is None and "which of the workers" in identity.rank_reason


def test_stacks_of_nobody_say_what_would_help(tmp_path: Path) -> None:
    found = read(tmp_path, by_name(1, range(3), "llm-worker-{}.txt"), [])
    assert {identity.rank for identity, _ in stacks(found)} == {None}
    said = [note for note in reasons(found) if note != "empty file"]
    assert said == ["nothing tells whose the stacks are; a name such as rank3.txt would"] * 3


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([5, 0], "rank 0 or 5"),
        ([0, 3, 5], "rank 0, 3 or 5"),
        (range(512), "one of ranks 0-511"),
        (range(0, 512, 2), "one of ranks 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,…"),
    ],
)
def test_ranks_that_sources_name_are_listed_briefly(ranks: Iterable[int], said: str) -> None:
    assert reason(ranks) == f"sources disagree: {said}" and len(said) <= 60


@pytest.mark.parametrize("text", FORMS)
def test_a_file_that_was_cut_off_anywhere_is_never_anothers(tmp_path: Path, text: str) -> None:
    ends = range(1, len(text), len(text) // 11)
    found = read(tmp_path, {f"stacks/rank1_{TIME + at}.txt": text[:end] for at, end in enumerate(ends)})
    assert {identity.rank for identity, _ in stacks(found)} <= {1}
    assert all(event.frames or event.failure for _, event in stacks(found))


def test_only_so_many_samples_of_a_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producers.readers.stackfile.MOST_SAMPLES", 2)
    text = "".join(f"Rank {rank}\n{FAULT}" for rank in range(9))
    found = read(tmp_path, {"stacks_20261129_181320.txt": text})
    assert [identity.rank for identity, _ in stacks(found)] == [0, 1]
    assert "too many stacks; from here on they are left aside" in reasons(found)


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    broken = SPY.encode().replace(b"all_reduce", b"all_\xff\xfereduce").replace(b"\n\n", b"\n\x00\n")
    _, event = only(read(tmp_path, {NAME: broken}))
    assert event.frames[-1].function == "all_\ufffd\ufffdreduce"


def test_what_two_tools_see_at_one_time_was_seen_once(tmp_path: Path) -> None:
    files = {f"stacks/{tool}_rank1_{TIME + at}.txt": text for tool, text in (("a", SPY), ("b", FAULT)) for at in (0, 9)}
    found = stacks(read(tmp_path, files))
    assert len(found) == 4
    (span,) = spans_of([event for _, event in found])
    assert (span.samples, span.last - span.first) == (2, 9 * 10**9)


def test_a_section_without_a_stack_is_a_sample_that_failed(tmp_path: Path) -> None:
    text = f"Rank 0\n{FAULT}\nRank 1\nRank 2\n{FAULT}"
    found = stacks(read(tmp_path, {"stacks_20261129_181320.txt": text}))
    assert sorted((identity.rank, event.failure) for identity, event in found) == [
        (0, ""),
        (1, "the sample holds no threads"),
        (2, ""),
    ]


DEEP = "".join(f'  File "/srv/job/model.py", line {line} in forward\n' for line in range(100)) + "  ...\n"
OTHER = (
    'Thread 0x00007f9c2abb7c0 (most recent call first):\n  File "/usr/lib/python3.11/threading.py", line 5 in wait\n'
)
CUT = "Timeout (0:00:30)!\n" + OTHER + "\nThread 0x00007f9c2abb6c0 (most recent call first):\n" + DEEP


@pytest.mark.parametrize(
    ("text", "main"),
    [
        (CUT, True),
        # The main thread is shown as one, so the last is another.
        (FAULT + "\nThread 0x00007f9c2abb7c0 (most recent call first):\n" + DEEP, False),
        # The main thread is among those that are not shown.
        (CUT + "...\n", False),
        (CUT[:-30], False),
        # Another thread is deep, the main one has no Python frames.
        ("Timeout (0:00:30)!\nThread 0x00007f9c2abb6c0 (most recent call first):\n" + DEEP + "\n" + OTHER, False),
    ],
)
def test_a_main_thread_without_its_outermost_frames_is_the_last_that_faulthandler_prints(
    tmp_path: Path, text: str, main: bool
) -> None:
    found = {event.thread: len(event.frames) for _, event in stacks(read(tmp_path, {NAME: text}))}
    assert (found.get("MainThread", 0) == 100) is main


def test_json_that_is_too_large_says_so_of_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stackjson, "MOST_BYTES", 100)
    for name, text in ((NAME, JSON), (NAME, "[{" + " " * 200), ("notes.json", JSON)):
        recording = read(tmp_path / name, {name: text})
        assert any("more than 100; left aside" in reason for reason in reasons(recording))
        assert [one.failure[:10] for _, one in stacks(recording)] == ["stacks of "]
