# ruff: noqa: E501 (real lines stand here as they are printed)
"""Tracebacks in merged records: the error that ended them, and where."""

from __future__ import annotations

import pytest
from detection_support import FIXED, FRAME, HEAD, traceback
from hypothesis import given
from hypothesis import strategies as st

from streams.lines.traceback import caught_in, parse_chain, parse_traceback

DIRECT = "\n\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"

LOADER = """Traceback (most recent call last):
  File "/workspace/train.py", line 120, in <module>
    batch = next(batches)
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 741, in __next__
    data = self._next_data()
  File "/opt/venv/lib/python3.11/site-packages/torch/_utils.py", line 750, in reraise
    raise exception
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 351, in _worker_loop
    data = fetcher.fetch(index)
  File "/workspace/dataset.py", line 71, in __getitem__
    return self.rows[index]
KeyError: 'tokens'
"""


@pytest.mark.parametrize(
    ("text", "exception", "error"),
    [
        (traceback("ValueError: bad shard"), "ValueError", "ValueError: bad shard"),
        (traceback("torch.OutOfMemoryError: CUDA out of memory."), "OutOfMemoryError", "torch.OutOfMemoryError: CUDA out of memory."),
        (traceback("AssertionError"), "AssertionError", "AssertionError"),
        (traceback("RuntimeError: first\nsecond: third"), "RuntimeError", "RuntimeError: first"),
        (traceback("ValueError: a") + DIRECT + traceback("RuntimeError: b"), "RuntimeError", "RuntimeError: b"),
        (traceback("ValueError: a") + DURING + traceback("KeyError: 'b'"), "KeyError", "KeyError: 'b'"),
        (LOADER, "KeyError", "KeyError: 'tokens'"),
        (traceback("main.<locals>.BadShard: shard 7"), "BadShard", "main.<locals>.BadShard: shard 7"),
    ],
)  # fmt: skip
def test_the_error_of_a_traceback_is_its_closing_line(text: str, exception: str, error: str) -> None:
    found = parse_traceback(text)
    assert found is not None
    assert (found.exception, found.error) == (exception, error)


def test_the_place_is_the_innermost_frame() -> None:
    outer = '  File "/a/outer.py", line 3, in <module>\n    step()\n'
    found = parse_traceback(traceback("ValueError: x", outer + FRAME))
    assert found is not None
    assert (found.file, found.line, found.function) == ("/workspace/train.py", 110, "step")
    assert found.files == ("/a/outer.py", "/workspace/train.py")


OUTER = '  File "/a/outer.py", line 3, in <module>\n    step()\n'
THREAD = '  File "/usr/lib/python3.12/threading.py", line 1075, in _bootstrap_inner\n    self.run()\n'


@pytest.mark.parametrize(
    ("text", "function"),
    [
        (traceback("ValueError: x"), "step"),
        (traceback("ValueError: x") + DURING + traceback("KeyError: 'b'"), "step"),
        (traceback("ValueError: x", OUTER + FRAME), ""),
        (traceback("ValueError: x", THREAD + FRAME), ""),
        (traceback("ValueError: x") + DIRECT + traceback("RuntimeError: b", OUTER + FRAME), ""),
        (LOADER, ""),
        (HEAD + "ValueError: x", ""),
        ("ValueError: not a traceback", ""),
    ],
)  # fmt: skip
def test_who_catches_an_error_prints_it_from_there_and_not_from_where_its_program_begins(
    text: str, function: str
) -> None:
    assert caught_in(parse_chain(text)) == function


def test_markers_under_the_source_are_no_error() -> None:
    frames = '  File "a.py", line 3, in f\n    x = y()\n        ^^^\n  [Previous line repeated 996 more times]\n'
    found = parse_traceback(traceback("RecursionError: maximum recursion depth exceeded", frames))
    assert found is not None
    assert found.exception == "RecursionError"


@pytest.mark.parametrize("text", ["", "ValueError: not a traceback", HEAD, HEAD + FRAME, "Traceback: none"])
def test_what_holds_no_whole_traceback_has_none(text: str) -> None:
    assert parse_traceback(text) is None


def test_an_error_with_a_long_message_is_still_an_error() -> None:
    found = parse_traceback(traceback("ValueError: bad batch " + "7, " * 2000))
    assert found is not None
    assert found.exception == "ValueError"


def test_an_exception_group_is_known_by_an_error_in_it() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/w/train.py", line 1, in <module>\n'
        "  |     main()\n"
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/w/data.py", line 2, in load\n'
        "    |     read()\n"
        "    | ValueError: bad shard\n"
        "    +------------------------------------"
    )
    found = parse_traceback(text)
    assert found is not None
    assert found.exception in ("ValueError", "ExceptionGroup")


@FIXED
@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_around_a_head_makes_parsing_fail(before: str, after: str) -> None:
    found = parse_traceback(before + HEAD + after)
    assert found is None or found.error.startswith(found.error.split(":")[0])
