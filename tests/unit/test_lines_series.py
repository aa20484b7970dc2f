# ruff: noqa: E501 (real lines stand here as they are printed)
"""Numbers in lines: iteration lines and step timers become readings."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from streams.lines.series import readings_of, total_iterations

MEGATRON = (
    " [2026-11-29 19:10:35.865046] iteration        1/     220 | consumed samples:           12 | elapsed time per "
    "iteration (ms): 248.8 | learning rate: 3.000000E-04 | global batch size:    12 | lm loss: {loss} | loss scale: 1.0 "
    "| grad norm: {norm} | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
PLAIN = (
    "2026-11-29 18:15:13,942 [INFO] [rank 6] trainer: step 37 timers (ms): data 11.5 forward 127.0 backward 38.7 "
    "compute 125.3 allreduce 4241.9 total 4545.6"
)
BARRED = (
    "[node03 rank 11] step 1 | compute: 132.4 ms | p2p-wait: 32.1 ms | grads-all-reduce: 18.1 ms | grad-norm: 60.1 ms"
)
VERL = (
    "(TaskRunner pid=222265) step:34 - global_seqlen/min:419336 - actor/pg_loss:-0.003 - actor/grad_norm:nan - "
    "perf/mfu/actor:0.41 - training/global_step:34 - timing_s/gen:29.641 - actor/lr:1e-05 - timing_s/step:96.551"
)


def values(line: str) -> dict[str, float | str | None]:
    return {one.name: one.nonfinite or one.value for one in readings_of(line)}


def test_megatrons_iteration_line_is_read_with_its_units() -> None:
    found = values(MEGATRON.format(loss="1.097181E+01", norm="0.442"))
    assert found["lm_loss"] == 10.97181
    assert found["elapsed_time_per_iteration_ms"] == 248.8
    assert found["learning_rate"] == 3e-4
    assert found["grad_norm"] == 0.442
    assert "consumed_samples" not in found
    assert found["number_of_skipped_iterations"] == found["number_of_nan_iterations"] == 0
    assert total_iterations(MEGATRON) == 220


@pytest.mark.parametrize(
    ("raw", "name"), [("nan", "nan"), ("NaN", "nan"), ("NAN", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("INF", "inf")]
)
def test_a_loss_that_is_no_number_is_null_with_its_name(raw: str, name: str) -> None:
    (loss,) = [one for one in readings_of(MEGATRON.format(loss=raw, norm="1.0")) if one.name == "lm_loss"]
    assert (loss.value, loss.nonfinite) == (None, name)


def test_per_rank_timers_are_read_in_both_forms() -> None:
    assert values(PLAIN) == {
        "data_ms": 11.5,
        "forward_ms": 127.0,
        "backward_ms": 38.7,
        "compute_ms": 125.3,
        "allreduce_ms": 4241.9,
        "total_ms": 4545.6,
    }
    assert values(BARRED) == {
        "compute_ms": 132.4,
        "p2p_wait_ms": 32.1,
        "grads_all_reduce_ms": 18.1,
        "grad_norm_ms": 60.1,
    }


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ("| fwd 287.4 ms | bwd 583.5ms | sync 27 s |", {"fwd_ms": 287.4, "bwd_ms": 583.5, "sync_s": 27.0}),
        ("| fwd: 3 ms | bwd 4 ms", {"fwd_ms": 3.0, "bwd_ms": 4.0}),
        ("| fwd 3 | lost 4 ranks | 5 ms | fwd x ms", {}),
    ],
)
def test_timers_between_bars_need_a_separator_or_a_unit(fields: str, read: dict[str, float]) -> None:
    assert values(f"2026-11-30 17:52:31,197 INFO step 1 {fields}") == read


def test_verls_line_is_read() -> None:
    assert values(VERL) == {
        "global_seqlen/min": 419336,
        "actor/pg_loss": -0.003,
        "actor/grad_norm": "nan",
        "perf/mfu/actor": 0.41,
        "timing_s/gen": 29.641,
        "actor/lr": 1e-5,
        "timing_s/step": 96.551,
    }


def test_timers_in_seconds_say_so() -> None:
    assert values("step 3 timers (s): data 0.5 nan_check NaN") == {"data_s": 0.5, "nan_check_s": "nan"}


@pytest.mark.parametrize(
    "line", ["", "|", "||||", "hello world", "saving checkpoint to /ckpt | done", "a: b | c: d |", "Traceback: x"]
)
def test_other_lines_have_no_readings(line: str) -> None:
    assert readings_of(line) == []


def test_only_the_first_line_of_a_record_is_read() -> None:
    assert readings_of("hello\n" + BARRED) == []


@FIXED
@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e6))
def test_numbers_survive_as_they_were_printed(loss: float, norm: float) -> None:
    found = values(MEGATRON.format(loss=f"{loss:.9E}", norm=f"{norm:.6f}"))
    assert math.isclose(float(found["lm_loss"] or 0), float(f"{loss:.9E}"))
    assert math.isclose(float(found["grad_norm"] or 0), float(f"{norm:.6f}"))


@FIXED
@given(st.text("0123456789.eE+-naif|: ()ms", max_size=120))
def test_no_line_makes_reading_fail(text: str) -> None:
    for one in readings_of("step 1 | " + text):
        assert (one.value is None) == (one.nonfinite != "")
        assert one.value is None or math.isfinite(one.value)


RECORDED = Path(__file__).resolve().parents[3] / "shared/data/recorded"


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings lie beside the project, not in it")
@pytest.mark.parametrize(
    ("job", "timers"),
    [
        ("straggler", {"data_ms", "forward_ms", "backward_ms", "compute_ms", "allreduce_ms", "total_ms"}),
        ("pp-straggler", {"compute_ms", "p2p_wait_ms", "grads_all_reduce_ms", "grad_norm_ms"}),
    ],
)
def test_every_step_line_of_a_recording_is_read(job: str, timers: set[str]) -> None:
    lines = [
        line
        for path in sorted((RECORDED / job / "logs").glob("*/*/*/*/std*.log"))
        for line in path.read_text(errors="replace").splitlines()
        if " timers (ms)" in line or "| compute: " in line
    ]
    assert len(lines) > 500
    assert all(set(values(line)) == timers for line in lines)
