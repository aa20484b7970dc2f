"""What one writer's words to end say, and which of them only follow what it said before."""

from __future__ import annotations

import pytest
from detection_support import at, log

from streams.stages.stop_words import StopWords, StopWordsState

STEP = "slurmstepd: error: *** STEP 77.0 ON node01 CANCELLED AT 2026-11-29T18:10:59 ***"
JOB = "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-11-29T18:10:59 ***"
TASK = "srun: error: node02: task 4: Exited with exit code 1"
NODE = "srun: error: Node failure on node02"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([TASK, STEP], ["task"]),
        ([STEP, TASK], ["step"]),
        ([JOB, TASK], ["job"]),
        ([TASK, JOB], ["task", "job"]),
        ([NODE, JOB, STEP], ["node"]),
    ],
)
def test_what_follows_is_left_out_and_what_may_be_why_is_told(lines: list[str], told: list[str]) -> None:
    words = StopWords(StopWordsState())
    for number, line in enumerate(lines):
        words.take(log(line, at(number), precision_ns=7), trains=False)
    assert [stop.word for stop in words.found] == told
    assert {stop.precision_ns for stop in words.found} == {7}


def test_it_is_left_out_in_later_windows_too_but_not_for_ever() -> None:
    state = StopWordsState()
    StopWords(state).take(log(STEP, at(0)), trains=False)
    for second, told in ((599, []), (601, ["task"])):
        words = StopWords(state)
        words.take(log(TASK, at(second)), trains=False)
        assert [stop.word for stop in words.found] == told
