"""Phases that lines tell, and when a line says that training has come to its end."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st
from phase_lines import SENTENCES, TURNS

from streams.lines.phases import SHUTDOWN, downloads, phase_after, turn_of


def phase(line: str, before: str, iteration: int | None) -> str:
    return phase_after(before, iteration, turn=turn_of(line), downloads=downloads(line))


@pytest.mark.parametrize(
    ("line", "before", "iteration", "after"),
    [
        ("> setting random seeds to 65 ...", "", None, "start-up"),
        ("downloading weights", "", None, "download"),
        ("downloading weights", "train", None, "train"),
        (" iteration        1/     220 | lm loss: 1.0 |", "start-up", 1, "train"),
        ("step 37 timers (ms): data 11.5", "evaluation", 37, "train"),
        ("saving checkpoint at iteration 30 to /ckpt", "train", 30, "checkpoint"),
        ("  successfully saved checkpoint from iteration    1000 to /ckpt", "checkpoint", 1000, "train"),
        ("loading checkpoint from /ckpt", "start-up", None, "checkpoint"),
        ("starting evaluation", "train", None, "evaluation"),
        (" validation loss at iteration 1000 | lm loss value: 2.1E+00 |", "evaluation", 1000, "train"),
        ("[after training is done] datetime: 2026-11-29 19:15:29", "train", None, "shutdown"),
        ("a word", "checkpoint", None, "checkpoint"),
    ],
)
def test_a_line_moves_the_phase(line: str, before: str, iteration: int | None, after: str) -> None:
    assert phase(line, before, iteration) == after


@pytest.mark.parametrize(
    ("line", "finished"),
    [
        ("[after training is done] datetime: 2026-11-29 19:15:29", True),
        ("training finished", True),
        ("Training completed after 100 iterations", True),
        ("training is done in a moment", True),
        ("[exiting program at iteration 500] datetime: 2026-11-29 19:15:29 ", True),
        ("[exiting program after 690.0159624854724 minutes] datetime: 2026-11-29 19:54:10 ", True),
        ("[exiting program after receiving SIGTERM.] datetime: 2026-11-29 19:57:10 ", False),
        ("training finishes soon", False),
        ("trained", False),
        ("x" * 400 + "training finished", False),
    ],
)
def test_training_finished_is_told_by_its_words(line: str, finished: bool) -> None:
    assert (turn_of(line) == SHUTDOWN) is finished


@pytest.mark.parametrize(("line", "after"), TURNS)
def test_what_a_framework_says_turns_the_phase(line: str, after: str) -> None:
    assert turn_of(line) == after


@pytest.mark.parametrize("line", SENTENCES)
def test_a_word_in_a_sentence_turns_nothing(line: str) -> None:
    assert turn_of(line) == ""
    assert phase_after("start-up", None, turn=turn_of(line), downloads=downloads(line)) == "start-up"


@pytest.mark.parametrize(
    "line", ["Downloading shards:  50%|#    | 1/2", "Fetching 4 files:  25%|#   | 1/4", "downloading x"]
)
def test_a_download_is_one_before_training_only(line: str) -> None:
    assert phase(line, "start-up", None) == "download"
    assert phase(line, "checkpoint", None) == "checkpoint"


def test_a_line_that_only_speaks_of_an_iteration_ends_no_checkpoint() -> None:
    assert phase_after("checkpoint", 100, turn="", downloads=False, reports=False) == "checkpoint"
    assert phase_after("start-up", 100, turn="", downloads=False, reports=False) == "train"
    assert phase_after("checkpoint", 100, turn="", downloads=False, reports=True) == "train"


@pytest.mark.parametrize(
    ("before", "iteration", "since", "after"),
    [
        ("checkpoint", 60, 60, "checkpoint"),
        ("evaluation", 59, 60, "evaluation"),
        ("checkpoint", 61, 60, "train"),
        ("checkpoint", 60, None, "train"),
        ("train", 60, 60, "train"),
        ("start-up", 60, 60, "train"),
    ],
)
def test_what_is_reported_late_of_the_iteration_before_ends_no_checkpoint(
    before: str, iteration: int, since: int | None, after: str
) -> None:
    assert phase_after(before, iteration, turn="", downloads=False, since=since) == after


@FIXED
@given(st.text(max_size=100), st.sampled_from(["", "start-up", "train", "checkpoint"]))
def test_every_line_leaves_a_phase(line: str, before: str) -> None:
    assert phase(line, before, None) in {
        "start-up",
        "download",
        "train",
        "evaluation",
        "checkpoint",
        "shutdown",
    }
