"""Envelopes around lines: peeled in any order and depth where a file shows that they are envelopes, else left."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from producers.envelopes.evidence import forms_of, is_wrapped, sample
from producers.envelopes.unwrap import unwrapped
from producers.envelopes.wrap import Wrap
from producers.lines import Line, read_lines

CRI = "2016-10-06T00:17:09.669794202Z stdout"
CRI_NS = 1_475_713_029_669_794_202


def docker(log: str, stream: str = "stdout") -> str:
    return json.dumps({"log": log, "stream": stream, "time": "2016-10-06T00:17:09.669794202Z"})


def read(tmp_path: Path, content: str | bytes) -> list[Line]:
    path = tmp_path / "x.log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [line for line in unwrapped(read_lines(path), forms_of(sample(path))) if line.text.strip()]


def texts(tmp_path: Path, content: str | bytes) -> list[str]:
    return [line.text for line in read(tmp_path, content)]


@pytest.mark.parametrize(
    ("line", "text", "wrap", "stamp"),
    [
        (f"{CRI} F log content 1", "log content 1", Wrap(stream="stdout"), CRI_NS),
        (f"{CRI} F:tag:x log content 1", "log content 1", Wrap(stream="stdout"), CRI_NS),
        (docker("content 1\n", "stderr"), "content 1", Wrap(stream="stderr"), CRI_NS),
        ("[pod/train-worker-0/pytorch] text", "text", Wrap(pod="train-worker-0", container="pytorch"), None),
        (
            "[pod/train-worker-0/pytorch] 2016-10-06T00:17:09.669794202Z text",
            "text",
            Wrap(pod="train-worker-0", container="pytorch"),
            CRI_NS,
        ),
        ("2016-10-06T00:17:09.669794202Z text", "text", Wrap(), CRI_NS),
        (
            "\x1b[36m(RayTrainWorker pid=123, ip=10.0.0.2)\x1b[0m text",
            "text",
            Wrap(actor="RayTrainWorker", pid=123, ip="10.0.0.2"),
            None,
        ),
        ("(pid=123) text", "text", Wrap(pid=123), None),
        ("(Worker_2:5 pid=123) text", "text", Wrap(actor="Worker_2:5", pid=123), None),
        (" 7: text", "text", Wrap(task=7), None),
        ("P0  7: text", "text", Wrap(component=0, task=7), None),
        ("[default3]:hello", "hello", Wrap(labels=(("default", 3),)), None),
        ("[trainer3]:hello", "hello", Wrap(labels=(("trainer", 3),)), None),
        ("[rank3]:hello", "hello", Wrap(labels=(("rank", 3),)), None),
        (
            "[rank0]:[rank8]:[E1129 02:07:08.408271257 P.cpp:607] x",
            "[E1129 02:07:08.408271257 P.cpp:607] x",
            Wrap(labels=(("rank", 0), ("rank", 8))),
            None,
        ),
        ("[XTuner][RANK 7][2025-11-04 10:00:00][INFO] msg", "[2025-11-04 10:00:00][INFO] msg", Wrap(rank=7), None),
        (f"{CRI} F  7: [default3]:text", "text", Wrap(stream="stdout", task=7, labels=(("default", 3),)), CRI_NS),
        (
            docker(" 7: [pod/a/b] (A pid=1) [default3]:[rank11]: text\n"),
            " text",
            Wrap("stdout", "a", "b", "A", 1, "", None, 7, None, (("default", 3), ("rank", 11))),
            CRI_NS,
        ),
        ("(A pid=1) [default3]: 7: text", "text", Wrap(actor="A", pid=1, task=7, labels=(("default", 3),)), None),
    ],
)
def test_an_envelope_says_who_and_when(tmp_path: Path, line: str, text: str, wrap: Wrap, stamp: int | None) -> None:
    found = read(tmp_path, (line + "\n") * 8)
    assert [(one.text, one.wrap, one.stamp) for one in found] == [(text, wrap, stamp)] * 8


@pytest.mark.parametrize(
    "content",
    [
        '{"log": "step", "value": 1}\n' * 9,
        '{"log": "step\\n", "stream": "events", "time": "2016-10-06T00:17:09Z"}\n' * 9,
        '{"log": "step\\n", "stream": "stdout", "time": "2016-10-06T00:17:09Z", "level": "info"}\n' * 9,
        "".join(f"{n}: foo\n" for n in range(30)),
        "12: foo\n" + "bar\n" * 9,
        "".join(f"[epoch{n // 4}]: loss\n" for n in range(40)),
        "[step3]: foo\n" + "bar\n" * 9,
        f"read {CRI} F x\n" + f"{CRI} F x\n" + "bar\n" * 9,
        "2016-10-06T00:17:09Z text\n  more\n  more\n",
        "[pod/A_B/c] x\n" * 9,
        "(Worker 3) x\n" * 9,
        f"9999{CRI} F x\n" * 9,
        "2016-13-06T00:17:09.669794202Z stdout F x\n" * 9,
    ],
)
def test_what_only_looks_like_an_envelope_is_not_torn(tmp_path: Path, content: str) -> None:
    assert texts(tmp_path, content) == content.rstrip("\n").split("\n")


def test_a_program_inside_an_envelope_may_print_what_looks_like_one(tmp_path: Path) -> None:
    inner = ['{"log": "x"}', "12: foo", f"{CRI} F y"]
    content = "".join(f"{CRI} F {line}\n" for line in inner) + f"{CRI} F plain\n" * 9
    assert texts(tmp_path, content)[:3] == inner


def test_partial_lines_are_joined_for_each_stream(tmp_path: Path) -> None:
    content = f"{CRI} P one \n{CRI.replace('stdout', 'stderr')} F err\n{CRI} P two \n{CRI} F three\n{CRI} F end\n"
    found = sorted(read(tmp_path, content), key=lambda line: line.number)
    assert [(line.text, line.number) for line in found] == [("one two three", 1), ("err", 2), ("end", 5)]
    assert found[0].size == sum(len(row) + 1 for row in content.split("\n")[:4]) - len(content.split("\n")[1]) - 1


def test_docker_cuts_long_lines_too(tmp_path: Path) -> None:
    content = f"{docker('[default1]:one ')}\n{docker('two')}\n{docker(' end' + chr(10))}\n{docker('x' + chr(10))}\n"
    found = read(tmp_path, content)
    assert [(line.text, line.wrap.labels) for line in found] == [("one two end", (("default", 1),)), ("x", ())]


def test_a_partial_line_that_never_ends_is_bounded_and_said(tmp_path: Path) -> None:
    piece = f"{CRI} P {'x' * 16_000}\n"
    path = tmp_path / "x.log"
    path.write_text(piece * 5_000)
    tracemalloc.start()
    found = list(unwrapped(read_lines(path), forms_of(sample(path))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.number, len(line.text), line.cut, line.torn) for line in found] == [
        (1, 65_536, True, True),
        (4_097, 65_536, True, True),
    ]
    assert sum(line.size for line in found) == len(piece) * 5_000 and peak < 4_000_000


def test_srun_splits_lines_that_fill_its_messages_and_they_are_whole_again(tmp_path: Path) -> None:
    rows = [f" 1: {'x' * 1024}", " 0: other", f" 1: {'y' * 1024}", " 1: end", " 0: short", " 0: next"]
    found = sorted(read(tmp_path, "\n".join(rows)), key=lambda line: line.number)
    assert [line.text for line in found] == ["x" * 1024 + "y" * 1024 + "end", "other", "short", "next"]


def test_a_broken_envelope_keeps_its_text(tmp_path: Path) -> None:
    good = docker("fine\n") + "\n"
    content = good * 3 + '{"log":"half of a l\\u00' + "\n" + '{"log":5}\n' + "{nonsense\n" + f"{CRI} F\n" + good
    found = read(tmp_path, content)
    kept = ["half of a l", '{"log":5}', "{nonsense", f"{CRI} F"]
    assert [line.text for line in found] == ["fine"] * 3 + kept + ["fine"]
    assert [line.torn for line in found] == [False] * 3 + [True] + [False] * 4


def test_a_line_of_ten_megabytes_in_json_is_cut_and_its_head_kept(tmp_path: Path) -> None:
    found = read(tmp_path, docker("fine\n") + "\n" + docker("y" * 10_000_000 + "\n").replace(": ", ":") + "\n")
    assert [(line.text[:4], line.cut, line.torn) for line in found] == [("fine", False, False), ("yyyy", True, True)]


@pytest.mark.parametrize(
    "progress",
    [
        "{} 10%\r 20%\r[rank3]: Traceback\n",
        "{} 10%\r[rank3]: Traceback\r   \n",
        "{} \r[rank3]: Traceback\r\n",
    ],
)
@pytest.mark.parametrize("prefix", [" 7:", f"{CRI} F", "[pod/a/b]"])
def test_a_record_behind_a_progress_bar_keeps_what_stood_before_it(tmp_path: Path, prefix: str, progress: str) -> None:
    found = read(tmp_path, f"{prefix} x\n" * 9 + progress.format(prefix))[-1]
    assert found.text == " Traceback" and found.wrap.labels == (("rank", 3),)
    assert (found.wrap.task, found.wrap.stream, found.wrap.pod) == (
        7 if prefix == " 7:" else None,
        "stdout" if "stdout" in prefix else "",
        "a" if "pod" in prefix else "",
    )


def test_carriage_returns_and_colours_inside_json_go(tmp_path: Path) -> None:
    content = docker("10%\r\x1b[32m20%\x1b[0m\r\n") + "\n" + docker("a\0b\n") + "\n"
    assert texts(tmp_path, content * 2) == ["20%", "ab"] * 2


def test_nul_bytes_marks_and_other_encodings_do_not_hide_an_envelope(tmp_path: Path) -> None:
    rows = [b"\xef\xbb\xbf" + f"{CRI} F one".encode(), b"\0\0" + f"{CRI} F ".encode() + b"gr\xf6\xdfe", b"\xff\xfe"]
    found = read(tmp_path, b"\n".join(rows) + b"\n")
    assert [(line.text, line.wrap.stream) for line in found] == [("one", "stdout"), ("gr��e", "stdout"), ("��", "")]


def test_a_preamble_without_labels_does_not_hide_those_that_follow(tmp_path: Path) -> None:
    content = "loading modules\n" + "".join(f"{n % 4}: x\n" for n in range(40))
    assert texts(tmp_path, content) == ["loading modules"] + ["x"] * 40


def test_a_text_that_quotes_a_line_is_no_log() -> None:
    quoting = ["some words"] * 9 + ["(Actor pid=123) x", "[rank7]: Traceback"]
    assert not is_wrapped(quoting, forms_of(quoting))
    log = ["(Actor pid=123) x"] * 5 + ["driver"] * 5
    assert is_wrapped(log, forms_of(log))
    assert not is_wrapped([], ())
    anybody = ["2016-10-06T00:17:09.669794202Z text"] * 9
    assert not is_wrapped(anybody, forms_of(anybody))
    labelled = ["2016-10-06T00:17:09.669794202Z [default3]:text"] * 9
    assert is_wrapped(labelled, forms_of(labelled))
