# ruff: noqa: E501 (lines stand here as they are printed)
"""The iteration lines of the frameworks: where each stands, and what was measured there."""

from __future__ import annotations

import math

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st
from iteration_lines import FRAMEWORKS, LINES

from streams.lines.iterations.report import Report
from streams.lines.names import COMMON, in_common
from streams.lines.series import NOTHING, report_of


def values(report: Report) -> dict[str, float | str | None]:
    return {one.name: one.nonfinite or one.value for one in report.readings}


@pytest.mark.parametrize("sample", LINES, ids=lambda sample: sample.label)
def test_a_line_is_read_as_it_is_printed(sample: object) -> None:
    report = report_of(sample.text)  # type: ignore[attr-defined]
    assert values(report) == sample.readings  # type: ignore[attr-defined]
    where = (report.iteration, report.total, report.place)
    assert where == (sample.iteration, sample.total, sample.place)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("framework", "common"),
    [
        ("megatron", {"loss": 12.52221, "grad_norm": 0.231, "lr": 1.875e-5, "step_time_s": 121.8998, "tflops": 400.1, "skipped": 0, "nan": 0, "global_batch_size": 64}),
        ("deepspeed", {"skipped": 0, "lr": 6e-05}),
        ("nemo", {"loss": 10.99, "lr": 0.0001, "step_time_s": 1.21, "global_batch_size": 512}),
        ("torchtitan", {"loss": 3.24405, "grad_norm": 0.8319, "tokens_per_s": 7282, "tflops": 0.52, "mfu": 0.0017}),
        ("huggingface", {"loss": 2.345, "grad_norm": 0.83, "lr": 5e-05}),
        ("lightning", {"loss": 2.6, "step_time_s": 1 / 1.37}),
        ("verl", {"mfu": 0.41, "step_time_s": 96.551}),
        ("openrlhf", {"lr": 9e-07}),
    ],
)  # fmt: skip
def test_frameworks_share_the_common_names(framework: str, common: dict[str, float]) -> None:
    found = [
        in_common(one.name, one.value)
        for one in report_of(FRAMEWORKS[framework].format(step=12)).readings
        if one.value is not None
    ]
    assert dict(filter(None, found)) == pytest.approx(common)


def test_a_common_name_is_no_division_by_nothing() -> None:
    assert in_common("it_per_s", 0.0) is None
    assert in_common("lm_loss_ppl", 1.0) is None
    assert {one.name for one in COMMON.values()} == {
        *("loss", "grad_norm", "lr", "step_time_s", "tokens_per_s", "tflops", "mfu", "skipped", "nan"),
        "global_batch_size",
    }


PRINTED = {
    "megatron": "1.252221E+01",
    "deepspeed": "6e-05",
    "nemo": "10.99",
    "torchtitan": "3.24405",
    "huggingface": "2.345",
    "lightning": "2.6",
    "verl": "-0.003",
    "openrlhf": "-0.012",
    "plain": "125.3",
}
"""A number in the line of each framework."""


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
@pytest.mark.parametrize(
    ("raw", "value"),
    [
        *(("nan", "nan"), ("NaN", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("Infinity", "inf")),
        *(("1e-05", 1e-05), ("-0.0031", -0.0031), ("1,234.5", 1234.5), ("+7E+2", 700.0)),
    ],
)
def test_every_framework_keeps_what_is_no_number_and_reads_what_is(framework: str, raw: str, value: object) -> None:
    line = FRAMEWORKS[framework].format(step=3)
    before = [one.nonfinite or one.value for one in report_of(line).readings]
    after = [one.nonfinite or one.value for one in report_of(line.replace(PRINTED[framework], raw)).readings]
    assert len(before) == len(after)
    assert [one for old, one in zip(before, after, strict=True) if old != one] == [value]


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint shards:  50%|█████     | 2/4 [00:03<00:03,  1.6s/it]",
        "  2%|▏         | 10/500 [00:05<04:10,  1.96it/s]",
        "{'hidden_size': 4096, 'num_layers': 32}",
        "{}",
        "{'loss'",
        "step: 12 of 500: loss is fine",
        "we save after step=12, then go on",
        "Validation: step 50, loss 2.1",
        "[eval] step 50: loss 2.1",
        "Epoch [1/10], Step [50/600], Loss: 0.5",
        "best so far: step 40, loss 1.9",
        "iteration 40: skipped, loss is nan",
        "resumed at step 40 loss 1.9",
        "step 5.5 loss 1.9",
        "(min, max) time across ranks (ms):",
        "times across ranks (ms):",
    ],
)
def test_other_lines_tell_no_iteration(line: str) -> None:
    report = report_of(line)
    assert report.iteration is None or not report.readings
    assert report.place == "printed"


PREFIXES = st.lists(
    st.sampled_from(
        ["[rank3]: ", "[default0]:", "[2026-11-29 19:10:35.865046] ", "2026-11-29 18:15:13,942 ", "[INFO] ", "INFO ", "  ", "- INFO - ", "[E1129 02:07:08.408271 12] "]
    ),
    max_size=5,
).map("".join)  # fmt: skip
PIECES = st.sampled_from(
    [
        *(line for sample in LINES for line in (sample.text, sample.text.split(" ")[0])),
        *(" | ", " - ", "{'", "': ", "%|", "..: (", "step=", "micro_step=1/global_step=1,", "\r", "\x1b[31m", "\n"),
        *("1", "nan", "-inf", "1e5", "7,282", "loss: ", "epoch", "e" * 70, ".", " " * 40, "|", "time (ms) |", "(ms):"),
    ]
)
HOSTILE = st.one_of(
    st.lists(PIECES, max_size=30).map("".join),
    st.tuples(PIECES, st.integers(0, 65_536)).map(lambda pair: (pair[0] * 65_536)[: pair[1]]),
    st.text(max_size=200),
)


@FIXED
@given(HOSTILE)
def test_any_text_can_be_read(text: str) -> None:
    report = report_of(text)
    for one in report.readings:
        assert (one.value is None) == (one.nonfinite != "")
        assert one.value is None or math.isfinite(one.value)
        assert len(one.name) < 200


@FIXED
@given(HOSTILE, PREFIXES)
def test_what_stands_in_front_of_a_line_changes_no_reading(text: str, prefix: str) -> None:
    bare, full = report_of(text), report_of(prefix + text)
    assert (bare.readings, bare.iteration, bare.total) == (full.readings, full.iteration, full.total)


def test_nothing_is_nothing() -> None:
    assert report_of("") == NOTHING == report_of("hello world")
