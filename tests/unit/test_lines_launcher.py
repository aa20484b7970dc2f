# ruff: noqa: E501 (real lines stand here as they are printed)
"""What torchrun's agent says of its workers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from detection_support import T0, S, log

from schemas.results import Exit
from streams.lines.launcher import exits_of

BLOCK = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
/workspace/train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-29_18:15:21
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 26650)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 26650
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_18:15:22
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 26646) 
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================"""  # noqa: W291


def moment(second: int) -> int:
    return int(datetime(2026, 11, 29, 18, 15, second, tzinfo=UTC).timestamp()) * S


def test_a_failure_report_gives_every_workers_end_with_its_own_time() -> None:
    assert exits_of(log(BLOCK)) == [
        Exit(time=moment(21), pid=26650, rank=1, local_rank=1, code=-15, signal="SIGTERM"),
        Exit(time=moment(22), pid=26646, rank=0, local_rank=0, code=1),
    ]


def test_a_report_of_a_single_failure_is_read() -> None:
    single = BLOCK.replace(
        BLOCK[BLOCK.index("[1]:") : BLOCK.index("----------", BLOCK.index("[1]:"))], "  <NO_OTHER_FAILURES>\n"
    )
    assert [one.rank for one in exits_of(log(single))] == [0]


def test_a_request_to_stop_is_an_end_without_a_code() -> None:
    line = "W1129 19:40:01.332000 23463 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 23474 closing signal SIGTERM"
    assert exits_of(log(line)) == [Exit(time=T0, pid=23474, signal="SIGTERM", requested=True)]


@pytest.mark.parametrize(
    ("code", "signal"),
    [(1, ""), (0, ""), (-9, "SIGKILL"), (-11, "SIGSEGV"), (-6, "SIGABRT"), (-15, "SIGTERM"), (-35, "signal 35")],
)
def test_an_exit_line_gives_code_and_signal(code: int, signal: str) -> None:
    line = f"E1129 18:18:09.467000 28949 api.py:1002] failed (exitcode: {code}) local_rank: 1 (pid: 28970) of binary: /opt/python3"
    assert exits_of(log(line)) == [Exit(time=T0, pid=28970, local_rank=1, code=code, signal=signal)]


@pytest.mark.parametrize(
    "text", ["", "Sending process x closing signal SIGTERM", "failed (exitcode: x)", BLOCK.replace("rank  ", "rang  ")]
)
def test_what_is_no_report_has_no_ends(text: str) -> None:
    assert exits_of(log(text)) == []


def test_a_date_that_does_not_exist_does_not_stop_the_reader() -> None:
    assert [one.pid for one in exits_of(log(BLOCK.replace("2026-11-29_18:15:21", "2026-13-45_99:99:99")))][-1] == 26646
