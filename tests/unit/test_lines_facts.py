"""What is known of a folded line is what each reader says of the line itself, or sends whoever asks to look closer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from detection_support import FIXED
from hypothesis import given, settings
from hypothesis import strategies as st
from iteration_lines import LINES as ITERATION_LINES
from phase_lines import TURNS
from predefined_samples import LINES

from producers.recording import read_recording
from rankwatch.demo import bundled_recording
from schemas.events import Log
from streams.lines.chatter import chatter_of
from streams.lines.digits import FEW, fold_digits_of
from streams.lines.facts import LONGEST, facts_of, facts_of_all
from streams.lines.fatal import RULES, fatal_of, predefined_id, speaks_of_trouble
from streams.lines.launcher import exits_of
from streams.lines.layout import layout_of
from streams.lines.phases import downloads, turn_of
from streams.lines.series import readings_of
from streams.lines.signature import LIMIT, fold, fold_digits, fold_hexadecimal, peel, shape, signature_of
from streams.lines.stops import stop_of
from streams.lines.vocabulary.template import Predefined

WORDS = st.sampled_from(
    [
        *(
            "step",
            "12",
            "-3.5e7",
            "nan",
            "inf",
            "INF",
            "\u0131nf",
            "\u0130NF",
            "loss:",
            "lr =",
            "0xfF",
            "deadbeef01",
            "10.0.0.1:80",
            "[::ffff:10.0.0.1]",
        ),
        *(
            "/data/x",
            "s3://b/k",
            "https://h/p?q=1",
            "2026-11-29 18:00:01,5",
            "a1b2",
            "x=",
            "k/v",
            "٣",
            "_7",
            ".5",
            "1.2.3.4.5",
        ),
        "0123abcd-0123-4567-89ab-0123456789ab",
    ]
)
TEXTS = st.one_of(
    st.lists(st.tuples(WORDS, st.sampled_from(["", " ", ": ", "=", "/", ".", "-", "_", "é"]))).map(
        lambda parts: "".join(word + gap for word, gap in parts)
    ),
    st.text(alphabet="0123456789abcdefnsghi/.:-+_[] xXTZ\u017f\u0130\u0131é٣"),
)

SPOKEN = [
    "Timed out waiting 600000 ms for send",
    "NCCL communicator was aborted on rank 3",
    "Out of memory: Killed process 1234 (python)",
    "NVRM: Xid (PCI:0000:0f:00): 79",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    *(text for _, _, text, _ in LINES),
]
"""A line of each predefined template."""

SPEAKING = st.sampled_from(
    [
        *SPOKEN,
        *(sample.text for sample in ITERATION_LINES),
        *(line for line, _ in TURNS),
        "Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1",
        "Using topology: {ProcessCoord(pipe=0, data=0): 0, ProcessCoord(pipe=0, data=1): 1}",
        "Timed out waiting 600000 ms for send",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        "NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus.",
        "[rank12]:[E1129 02:07:08.408271257 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout",
        "2026-11-29 18:15:13,942 [INFO] loss:1.5 - lr:3e-05 - grad_norm:nan - steps:12345e10",
        "iteration 12/ 500 | elapsed time per iteration (ms): 1000.3 | lm loss: 9.1E-02 | grad norm: 12345678e1 |",
        "[2026-11-29 19:10:35] step 12 timers (ms): forward 12.5 data_load 3 wait inf",
        "using world size: 1024, data-parallel size: 8, tensor-model-parallel size: 4",
        "successfully saved checkpoint from iteration 1200 to /ckpt/iter_0001200",
        "validation loss at iteration 100 | lm loss value: 2.1",
        "downloading shard 12 of 99",
        "training finished after 500 steps",
    ]
)


def agree(text: str) -> None:
    facts = facts_of(text)
    assert (facts.masked, facts.signature) == (shape(text), signature_of(shape(text)))
    assert (facts.turn, facts.downloads, facts.chatter) == (turn_of(text), downloads(text), chatter_of(text))
    assert facts.trouble >= speaks_of_trouble(text)
    assert facts.predefined or not predefined_id(text, facts.signature)
    assert facts.trouble or fatal_of(Log(time=1, stream="stdout", text=text), trained=True) is None
    assert facts.layout >= bool(layout_of(text))
    assert facts.readings >= bool(readings_of(text))
    assert facts.ends >= bool(exits_of(Log(time=1, stream="stdout", text=text)) or stop_of(text))
    closer = (facts.turn, facts.downloads, facts.trouble, facts.layout, facts.readings)
    assert facts.plain is not any(closer)


@given(TEXTS)
@settings(max_examples=2000)
def test_facts_of_any_text_are_what_its_readers_say(text: str) -> None:
    agree(text)


@given(SPEAKING, st.randoms(use_true_random=False))
def test_facts_of_speaking_lines_do_not_hang_on_their_digits(line: str, chance: object) -> None:
    digits = getattr(chance, "choice")  # noqa: B009
    other = re.sub(r"(?<![c])[0-9]", lambda _: digits("0123456789"), line)
    agree(line)
    agree(other)
    assert facts_of(other).turn == facts_of(line).turn


def test_lines_that_are_long_or_many_are_read_themselves() -> None:
    tail = "x" * LONGEST
    for text in (
        f"training finished {tail}",
        f"{tail} training finished",
        f"{tail}\nworld size: 8",
        "a\ntraining is done",
        "x" * (LONGEST - 4) + " checkpoint saved",
    ):
        agree(text)
    assert facts_of("1" * 4 * LONGEST + " downloading").downloads is False


@given(SPEAKING, TEXTS, st.sampled_from([LONGEST - 60, LONGEST, LIMIT - 60, LIMIT]), st.booleans())
def test_facts_of_long_lines_are_what_their_readers_say(line: str, text: str, length: int, behind: bool) -> None:
    gap = " " + "-" * (length - len(line) - len(text))
    long = f"{text} {gap} {line}" if behind else f"{line} {gap} {text}"
    agree(long)
    assert facts_of(long).predefined == predefined_id(long, facts_of(long).signature) or len(long) <= LONGEST


@pytest.mark.parametrize(
    "line",
    [
        "[1] Sending process 12 closing signal SIGTERM",
        "failed (exitcode: -9) local_rank: 3 (pid: 1234) of binary: python",
        "Received 15 death signal, shutting down workers",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 2",
        "[rank: 3] Received SIGTERM: 15",
        "caught signal 12",
        "Handling auto-requeue signal: 10",
        "srun: error: n1: task 3: Exited with exit code 1",
        "Warning  DeadlineExceeded  job/train  Job was active longer than specified deadline",
        "time : 2026-11-29_10:00:00\nhost : a\nrank : 3 (local_rank: 3)\nexitcode : 1 (pid: 77)",
    ],
)
def test_ends_are_seen_in_every_form(line: str) -> None:
    assert exits_of(Log(time=1, stream="stdout", text=line)) or stop_of(line)
    agree(line)


@given(st.lists(st.one_of(TEXTS, SPEAKING), max_size=3 * FEW))
def test_many_records_at_once_say_what_each_says_by_itself(texts: list[str]) -> None:
    assert facts_of_all(texts) == [facts_of(text) for text in texts]


@given(st.lists(st.one_of(TEXTS, st.text("0123456789é٣ \ud800x")), min_size=FEW, max_size=3 * FEW))
def test_digits_of_many_lines_are_folded_as_those_of_one(lines: list[str]) -> None:
    assert fold_digits_of(lines) == [fold_digits(line) for line in lines]


@given(TEXTS)
@settings(max_examples=2000)
def test_no_hexadecimal_word_is_missed_once_digits_are_folded(text: str) -> None:
    touching = re.search(r"[0-9][a-fA-FxX]|[a-fA-F][0-9]", text)
    assert fold(text) == (fold_hexadecimal(text) if touching else fold_digits(text))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.lines], ids=lambda rule: rule.id)
def test_every_rule_of_a_line_speaks_of_folded_lines_too(rule: Predefined) -> None:
    for pattern in rule.lines:
        lines = [line for line in SPOKEN if pattern.search(line)]
        assert lines, pattern
        for line in lines:
            assert pattern.search(fold(line))
            assert speaks_of_trouble(line) and speaks_of_trouble(fold(line))


def test_lines_of_a_recorded_job_agree() -> None:
    with bundled_recording() as folder:
        recording = read_recording(Path(folder))
    texts = [event.text for one in recording.arrivals for event in one.batch.events if isinstance(event, Log)]
    assert len(texts) > 400
    for text in texts:
        agree(text)
        assert peel(fold(text.split("\n")[0])) == fold(peel(text.split("\n")[0])) or "\n" in text


HEXADECIMAL = st.one_of(
    st.text("0123456789abcdef", min_size=8, max_size=16),
    st.integers(0, 2**64).map(hex),
    st.tuples(st.integers(10**5, 10**9), st.integers(0, 99)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.uuids().map(str),
)


@settings(FIXED, max_examples=300)
@given(st.sampled_from([sample.text for sample in ITERATION_LINES]), st.data())
def test_a_hexadecimal_word_hides_no_reading_and_no_layout(line: str, data: st.DataObject) -> None:
    numbers = [found.span() for found in re.finditer(r"[0-9.]+", line)]
    begin, end = data.draw(st.sampled_from(numbers))
    text = line[:begin] + data.draw(HEXADECIMAL) + line[end:]
    facts = facts_of(text)
    assert facts.readings or not readings_of(text)
    assert facts.layout or not layout_of(text)


def test_a_short_word_and_a_hexadecimal_one_are_told_apart_whichever_came_first() -> None:
    short, long = "id 0abc is read", "id 12345678abc is read"
    for lines in ([short, long], [long, short], [short] * 10 + [long] * 10):
        assert {facts.masked for facts in facts_of_all(lines)} == {"id <NUM>abc is read", "id <HEX> is read"}


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("NVRM: Xid (PCI:0000:10:00): 1234567, pid=1", "NVRM: Xid (PCI:0000:10:00): 79, pid=1"),
        (f"NVRM: Xid (PCI:0000:10:{'0' * 120}): 79, pid=1", "NVRM: Xid (PCI:0000:10:00): 79, pid=1"),
        ("detected NVSwitch fatal error 1234567 on x", "detected NVSwitch fatal error 12028 on x"),
    ],
)
def test_a_code_is_told_from_a_number_that_is_none_whichever_came_first(number: str, code: str) -> None:
    for lines in ([number, code], [code, number]):
        for line in lines:
            agree(line)
