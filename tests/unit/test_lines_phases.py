"""Phases that lines tell, and when a line says that training has come to its end."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

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
        ("training finishes soon", False),
        ("trained", False),
        ("x" * 400 + "training finished", False),
    ],
)
def test_training_finished_is_told_by_its_words(line: str, finished: bool) -> None:
    assert (turn_of(line) == SHUTDOWN) is finished


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
