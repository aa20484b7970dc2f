"""Which iteration a line speaks of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.text import iteration_of

SPEAKING = {
    " iteration        1/     110 | consumed samples:           32 | elapsed time per iteration (ms): 1834.2 |": 1,
    " [2026-11-29 19:10:35.865046] iteration        1/     220 | consumed samples:            4 |": 1,
    "step 12 timers (ms): forward: 121.4 | backward: 240.1": 12,
    "[node03 rank 11] step 2 | compute: 0.412 s | data: 0.021 s": 2,
    "step:150 - actor/pg_loss:0.0123 - actor/entropy_loss:1.2": 150,
    "Train: 10%|█ | 1/10 [00:03<00:27], global_step=1, loss=2.31": 1,
    "iteration: 7": 7,
    "step = 40 of 500": 40,
    "step 12, loss 2.1": 12,
    "step 0": 0,
    "iteration\t3": 3,
    "step 999999999999": 999_999_999_999,
    "epoch=0/micro_step=8/global_step=1, RunningAvgSamplesPerSec=3.1": 1,
    "[NeMo I] Training epoch 1, iteration 9/99 | lr: 0.0001 | global_step: 109 | reduced_train_loss: 1": 109,
    "Training epoch 1, iteration 9/99 | lr: 0.0001": 9,
    "Epoch 0:   6%|▋         | 32040/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6]": 32040,
    "Epoch 1/3: 100%|██████████| 10/10 [00:01<00:00, 9.1it/s]": 10,
    "[titan] - INFO - \x1b[31mstep: 14  \x1b[32mloss:  3.2": 14,
    "✨ Global step 12: {'policy_loss': 0.1}": 12,
    "{'loss': 1.2, 'step': 40}": 40,
}

SILENT = [
    "",
    "step 1.5",
    "step 15.25 s",
    "timestep 4",
    "version 2",
    "train_step 4",
    "step time 12",
    "steps 12",
    "step -3",
    "step",
    "elapsed time per iteration (ms): 1834.2",
    "step 1234567890123",
    "Validation: iteration 3/8",
    "Validation DataLoader 0:  40%|████      | 4/10 [00:00<00:00, 9.1it/s]",
    "  2%|▏         | 10/500 [00:05<04:10,  1.96it/s]",
    "{'loss': 1.2, 'epoch': 0.1}",
]


@pytest.mark.parametrize(("line", "iteration"), SPEAKING.items())
def test_a_line_that_speaks_of_an_iteration(line: str, iteration: int) -> None:
    assert iteration_of(line) == iteration


@pytest.mark.parametrize("line", SILENT)
def test_a_line_that_speaks_of_none(line: str) -> None:
    assert iteration_of(line) is None


def test_the_first_iteration_of_a_line_counts() -> None:
    assert iteration_of("step 1.5 behind, step 12 | resumed from step 10") == 12


def test_only_the_beginning_of_a_line_is_looked_at() -> None:
    assert iteration_of(" " * 390 + "step 12 ") == 12
    assert iteration_of(" " * 400 + "step 12") is None


@given(st.text(), st.integers(0, 10**12 - 1))
def test_any_number_of_an_iteration_is_found_whatever_follows(rest: str, number: int) -> None:
    assert iteration_of(f"iteration {number} {rest}") == number


@given(st.text())
def test_any_line_can_be_asked(line: str) -> None:
    found = iteration_of(line)
    assert found is None or 0 <= found < 10**12
