"""Stacks that faulthandler and py-spy print into logs: one record a thread, and a stack event beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.recording import Recording, read_recording
from producers.stacktext import parse
from schemas.events import Frame, Log, Stack

RUN = "run-7_abcd1234/attempt_0/0"
FAULT = """Current thread 0x00007f9c29bb6c0 (most recent call first):
  File "/job/t.py", line 4 in inner
  File "/job/t.py", line 6 in <module>"""
LOADER = """Thread 0x00007f9c29bb7c0 [pin_memory] (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run
  ..."""
SPY = """Thread 4242 (idle): "MainThread"
    wait (threading.py:1139)
    Thread.join (threading.py:1119)
    0x7f9cf2ca3f16 (libc.so.6)
    <module> (t.py:6)"""
SPIED = f"Process 4242: python t.py\nPython v3.11.7 (/usr/bin/python3.11)\n{SPY}"
PIDS = '{"rank": 3, "local_rank": 0, "node": "node01", "pid": 4242, "ts": 1795975810.0}\n'


def read(tmp_path: Path, text: str, pids: str = PIDS) -> Recording:
    folder = tmp_path / "job"
    (folder / RUN).mkdir(parents=True)
    (folder / RUN / "stderr.log").write_text(f"[2026-11-29 18:10:10] step 1\n{text}\n[2026-11-29 18:10:12] step 2\n")
    if pids:
        (folder / "pids.jsonl").write_text(pids)
    return read_recording(folder)


def stacks(recording: Recording) -> list[Stack]:
    return [e for a in recording.arrivals for e in a.batch.events if isinstance(e, Stack)]


def texts(recording: Recording) -> list[str]:
    found = [e for a in recording.arrivals for e in a.batch.events if isinstance(e, Log)]
    return [event.text for event in sorted(found, key=lambda event: event.line)]


def test_faulthandlers_threads_are_a_record_and_a_stack_each(tmp_path: Path) -> None:
    found = read(tmp_path, f"Timeout (0:00:30)!\n{LOADER}\n\n{FAULT}")
    assert texts(found)[1:4] == ["Timeout (0:00:30)!", LOADER, FAULT]
    loader, main = stacks(found)
    assert (main.thread, main.pid, main.active, main.time_source) == ("MainThread", 4242, None, "inferred")
    assert main.frames == [Frame("<module>", "/job/t.py", 6), Frame("inner", "/job/t.py", 4)]
    assert (loader.thread, loader.frames) == (
        "pin_memory",
        [Frame("run", "/usr/lib/python3.11/threading.py", 982)],
    )


def test_py_spys_threads_are_those_of_the_process_that_it_names(tmp_path: Path) -> None:
    (main,) = stacks(read(tmp_path, SPIED))
    assert (main.thread, main.pid, main.active) == ("MainThread", 4242, False)
    assert [frame.function for frame in main.frames] == ["<module>", "?", "Thread.join", "wait"]
    assert main.frames[1] == Frame("?", "libc.so.6")


@pytest.mark.parametrize("spied, pids", [(SPIED.replace("Process 4242", "Process 77"), PIDS), (SPIED, ""), (SPY, PIDS)])
def test_py_spys_stack_of_another_process_is_nobodys(tmp_path: Path, spied: str, pids: str) -> None:
    found = read(tmp_path, spied, pids)
    assert stacks(found) == []
    assert SPY in texts(found)


@pytest.mark.parametrize(
    "text", ["Thread 3 (active)", "Thread 0x00007f9c29bb6c0 (most recent call first):", "(most recent call first)"]
)
def test_a_head_without_frames_is_a_line(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, f"{text}\nworker 3 started")
    assert texts(found)[1:3] == [text, "worker 3 started"] and stacks(found) == []
    assert parse(text) is None


def test_a_loaders_stack_is_a_loaders(tmp_path: Path) -> None:
    text = FAULT.replace("in inner", "in _worker_loop")
    assert [one.process_type for one in stacks(read(tmp_path, text))] == ["dataloader"]
