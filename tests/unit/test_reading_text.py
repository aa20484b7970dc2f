"""Lines, logical records and printed times."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from producers.clocks import by_iteration, by_neighbour, by_words, ending, settle
from producers.envelopes.evidence import OWN
from producers.envelopes.unwrap import unwrapped
from producers.grouping import group
from producers.levels import level_of
from producers.lines import Line, is_binary, read_lines
from producers.times import SECOND, Moment, cancelled, from_seconds, printed, reported
from producers.timing import ascending

REFERENCE = 1_795_975_833 * SECOND  # 2026-11-29 18:10:33


def at(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000) * 1_000


def lines(text: str) -> list[Line]:
    found = [Line(number=n, offset=0, size=len(t), text=t) for n, t in enumerate(text.split("\n"), 1) if t.strip()]
    return list(unwrapped(found, OWN))


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "x.log"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("text", "expected", "precision"),
    [
        ("2026-11-29 18:10:34,878 [INFO] [rank 0] x", "2026-11-29 18:10:34.878", 10**6),
        (" [2026-11-29 19:10:35.865046] iteration 1", "2026-11-29 19:10:35.865046", 10**3),
        ("2026-11-29T19:10:35Z hello", "2026-11-29 19:10:35", 10**9),
        ("2026-11-29T19:10:35+01:00 hello", "2026-11-29 18:10:35", 10**9),
        ("W1129 18:11:28.111000 23348 torch/distributed/x.py:1] y", "2026-11-29 18:11:28.111", 10**3),
        ("[rank0]:W1129 18:11:28.111000 23348 torch/x.py:1] y", "2026-11-29 18:11:28.111", 10**3),
        ("[I1129 18:10:22.999999999 socket.cpp:955] [c10d] z", "2026-11-29 18:10:22", 10**9),
        ("[rank0]:[I1129 18:10:44.472278476 reducer.cpp:1228] z", "2026-11-29 18:10:44", 10**9),
        ("[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] z", "2027-03-21 02:07:08", 10**9),
        ("[after training is done] datetime: 2026-11-29 19:10:13 ", "2026-11-29 19:10:13", 10**9),
        ("[INFO|trainer.py:12] 2026-11-29 18:10:34,878 >> x", "2026-11-29 18:10:34.878", 10**6),
        ("(Worker pid=3, ip=10.0.0.1) 2026-11-29 18:10:34,878 x", "2026-11-29 18:10:34.878", 10**6),
        (" [2026-05-27 07:58:10.261551] iteration        1/       4 | x", "2026-05-27 07:58:10.261551", 10**3),
        ("[2026-05-27 07:58:10,261] [INFO] [timer.py:264:stop] epoch=0", "2026-05-27 07:58:10.261", 10**6),
        ("2026-11-29 17:55:00,843 ERROR root: step failed", "2026-11-29 17:55:00.843", 10**6),
        ("2026-11-29 17:55:00,843\tINFO worker.py:1841 -- Started", "2026-11-29 17:55:00.843", 10**6),
        ("2026-11-29 17:55:00.843 | INFO     | module:func:12 - msg", "2026-11-29 17:55:00.843", 10**6),
        ("[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14", "2026-05-18 16:04:46.338", 10**6),
        ("[INFO|trainer.py:2134] 2026-05-18 16:04:46,338 >> x", "2026-05-18 16:04:46.338", 10**6),
        ("[XTuner][RANK 7][2025-11-04 10:00:00][INFO] msg", "2025-11-04 10:00:00", 10**9),
        ("[NeMo I 2025-04-11 14:46:18 nemo_logging:393] x", "2025-04-11 14:46:18", 10**9),
        ("[NeMo W 2025-04-11 14:46:18 nemo_logging:393] rank:3 x", "2025-04-11 14:46:18", 10**9),
        ("INFO 11-29 12:00:00 ppo_trainer.py:547] Global step 12", "2026-11-29 12:00:00", 10**9),
        ("WARNING 11-29 12:00:00 [config.py:547] x", "2026-11-29 12:00:00", 10**9),
        ("I1103 11:57:31.739339 24395 google.cc:2341] Command line", "2026-11-03 11:57:31.739339", 10**3),
        ("F20241103 11:57:31.739339 24395 google.cc:2341] x", "2024-11-03 11:57:31.739339", 10**3),
        ("[2026-11-29 12:00:00] host:8:9 [0] a.cc:688 (f) NCCL WARN x", "2026-11-29 12:00:00", 10**9),
        ("[Fri Aug 30 11:43:09 2024] NVRM: Xid", "2024-08-30 11:43:09", 10**9),
        ("2024-08-30T11:43:09,123456+00:00 NVRM: Xid", "2024-08-30 11:43:09.123456", 10**3),
        ("kern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: Xid", "2025-01-21 04:41:44.283302", 10**3),
        ("Feb 14 05:03:41 host kernel: NVRM", "2027-02-14 05:03:41", 10**9),
        ("Nov  4 05:03:41 node-7 systemd-networkd[12]: ib0: Lost carrier", "2026-11-04 05:03:41", 10**9),
        ("Mon Jun 25 22:23:36.298 2018: Close connection", "2018-06-25 22:23:36.298", 10**6),
        ("Mon Jun 25 16:11:21 2018: Lost membership in cluster", "2018-06-25 16:11:21", 10**9),
        ("2024-05-01_10:00:00.123+0000: [E] x", "2024-05-01 10:00:00.123", 10**6),
        ("[Feb 25 2025 13:59:45] [INFO] [tid 1803] x", "2025-02-25 13:59:45", 10**9),
        ('{"event": "x", "level": "info", "timestamp": "2026-11-29T12:00:00.5Z"}', "2026-11-29 12:00:00.5", 10**8),
        ('{"message": "x", "asctime": "2026-11-29 12:00:00,843"}', "2026-11-29 12:00:00.843", 10**6),
    ],
)
def test_a_printed_time_is_read_with_its_precision(text: str, expected: str, precision: int) -> None:
    assert printed(text, REFERENCE) == Moment(at(expected), "printed", precision)


@pytest.mark.parametrize(
    "text",
    [
        "loaded the checkpoint of 2025-01-01 10:00:00",
        "2026-13-40 18:10:34,878 x",
        "W1329 18:11:28.111000 2 t] y",
        "x",
        "[2397166.983093] NVRM: Xid (PCI:0000:0f:00): 94",
        "6,339,5140900,-;NVRM: Xid",
        "May 5 is a day",
        "INFO 99-99 12:00:00 x.py:1] y",
        "[Fri Aug 40 11:43:09 2024] x",
        "F20241399 11:57:31.739339 24395 google.cc:2341] x",
        '{"message": "2026-11-29 12:00:00"}',
    ],
)
def test_a_line_that_does_not_begin_with_a_time_has_none(text: str) -> None:
    assert printed(text, REFERENCE) is None


def test_a_form_without_a_year_takes_the_nearest() -> None:
    new_year = at("2027-01-01 00:00:05")
    assert printed("W1231 23:59:59.000000 2 torch/x.py:1] y", new_year) == Moment(
        at("2026-12-31 23:59:59"), "printed", 1_000
    )
    leap = printed("W0229 10:00:00.000000 2 torch/x.py:1] y", REFERENCE)
    assert leap is not None and leap.time == at("2028-02-29 10:00:00")


def test_the_latest_time_of_a_failure_report_counts() -> None:
    text = "FAILED\n  time      : 2026-11-29_18:11:28\n  time      : 2026-11-29_18:11:29\n"
    assert reported(text) == Moment(at("2026-11-29 18:11:29"), "printed", SECOND)
    assert reported("nothing") is None


@pytest.mark.parametrize("value", [-1, 0, True, None, "1795975833", float("nan"), float("inf"), 1e30, 946_684_799])
def test_what_cannot_be_a_time_is_none(value: object) -> None:
    assert from_seconds(value) is None


def test_seconds_become_nanoseconds_by_the_microsecond() -> None:
    assert from_seconds(1795975833.665) == 1_795_975_833_665_000_000


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-11-29 18:10:34,878 [INFO] [rank 0] x", "INFO"),
        ("2026-11-29 19:14:27,951 - WARNING - x", "WARNING"),
        ("ERROR: x", "ERROR"),
        ("W1129 18:11:28.111000 2 torch/x.py:1] y", "WARNING"),
        ("[rank0]:[E1129 18:10:44.4 reducer.cpp:1] z", "ERROR"),
        ("[C1129 18:10:44.4 reducer.cpp:1] z", "CRITICAL"),
        (" iteration 1/ 2 | INFORMATION", ""),
        ("F20241103 11:57:31.739339 24395 google.cc:2341] x", "CRITICAL"),
        ("[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught", "ERROR"),
        ("[NeMo W 2025-04-11 14:46:18 nemo_logging:393] x", "WARNING"),
        ("[2026-11-29 12:00:00] host:8:9 [0] a.cc:688 (f) NCCL WARN x", "WARNING"),
        ("host:8:9 [0] NCCL INFO Bootstrap", "INFO"),
        ("WARNING:root:msg", "WARNING"),
        ("2026-11-29 17:55:00,843\tINFO worker.py:1841 -- Started", "INFO"),
        ("2026-11-29 17:55:00.843 | INFO     | module:func:12 - msg", "INFO"),
        ("[XTuner][RANK 7][2025-11-04 10:00:00][INFO] msg", "INFO"),
        ("[INFO|trainer.py:2134] 2026-05-18 16:04:46,338 >> x", "INFO"),
        ("INFO 11-29 12:00:00 ppo_trainer.py:547] x", "INFO"),
        ('{"event": "x", "level": "warn", "timestamp": "2026-11-29T12:00:00Z"}', "WARNING"),
        ('{"message": "ERROR", "levelname": "nonsense"}', ""),
        ("kern  :err   : 2025-01-21T04:41:44,283302+00:00 NVRM: Xid", "ERROR"),
        ("3,339,5140900,-;NVRM: Xid", "ERROR"),
        ("30,339,5140900,-;systemd", "INFO"),
        ("Mon Jun 25 22:23:36 2018: [X] The mmfs daemon", "CRITICAL"),
    ],
)
def test_levels_stand_in_the_usual_places(text: str, level: str) -> None:
    assert level_of(text) == level


def test_lines_have_numbers_and_offsets_and_blank_ones_go(tmp_path: Path) -> None:
    found = list(read_lines(written(tmp_path, b"one\n\n  \nf\xc3\xbcnf\nlast")))
    assert [(line.number, line.offset, line.text) for line in found] == [(1, 0, "one"), (4, 8, "fünf"), (5, 14, "last")]


def test_what_a_terminal_would_not_show_goes(tmp_path: Path) -> None:
    data = b"10%\r20%\r\x1b[32m30%\x1b[0m\nwindows\r\n50%\rdone\r\n40%\r   \nx"
    assert [line.text for line in read_lines(written(tmp_path, data))] == ["30%", "windows", "done", "40%", "x"]


def test_an_invalid_byte_is_replaced_and_said(tmp_path: Path) -> None:
    found = list(read_lines(written(tmp_path, b"a\xffb\nok\n")))
    assert [(line.text, line.invalid) for line in found] == [("a�b", True), ("ok", False)]


def test_a_long_line_is_cut_within_bounded_memory(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xc3\xbc" * 2_500_000 + b"\nnext\n")
    tracemalloc.start()
    found = list(read_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.size, line.cut, line.invalid) for line in found] == [(5_000_001, True, False), (5, False, False)]
    assert len(found[0].text.encode()) == 65_536 and found[1].offset == 5_000_001
    assert peak < 2_000_000


def test_a_long_progress_bar_shows_its_last_state(tmp_path: Path) -> None:
    found = list(read_lines(written(tmp_path, b"%\r".join(b"%d" % n for n in range(100_000)) + b"\n")))
    assert [(line.text, line.cut) for line in found] == [("99999", False)]


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"abc\0", False),
        (b"abc" + b"x" * 9_000 + b"\0", False),
        (b"\0\0\0abc", True),
        (b"\x7fELF\2\1\1" + bytes(9) + b"text", True),
        (bytes(range(256)), True),
        ("größer\0\n".encode() * 9, False),
        (b"x.log".ljust(257, b"\0") + b"ustar\0" + b"line\n" * 2_000, True),
    ],
)
def test_a_file_is_binary_if_much_of_it_is_no_text(tmp_path: Path, data: bytes, binary: bool) -> None:
    assert is_binary(written(tmp_path, data)) == binary


def test_nul_bytes_are_taken_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, b"\0" * 200_000 + b"first\nse\0co\0nd\n\0\nlast")
    assert [(line.number, line.offset, line.text, line.nuls, line.cut) for line in read_lines(path)] == [
        (1, 0, "first", 200_000, False),
        (2, 200_006, "second", 2, False),
        (3, 200_015, "", 1, False),
        (4, 200_017, "last", 0, False),
    ]


TRACEBACK = """Traceback (most recent call last):
  File "/workspace/train.py", line 36, in <module>
    raise KeyError("x")
    ^^^^^^^^^^^^^^^^^^^
pkg.errors.KeyError: 'x'"""


@pytest.mark.parametrize("prefix", ["", "[rank7]: "])
def test_a_traceback_is_one_record_without_its_prefix(prefix: str) -> None:
    text = "before\n" + "\n".join(prefix + line for line in TRACEBACK.split("\n")) + "\nafter"
    found = group(lines(text))
    assert [record.text for record in found] == ["before", TRACEBACK, "after"]
    assert [(record.shape, record.line, record.lines) for record in found] == [
        ("line", 1, 1),
        ("traceback", 2, 5),
        ("line", 7, 1),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
@pytest.mark.parametrize("prefix", ["", "[rank7]: "])
def test_chained_tracebacks_are_one_record(sentence: str, prefix: str) -> None:
    text = f"{TRACEBACK}\n\n{sentence}\n\n{TRACEBACK}\nafter"
    found = group(lines("\n".join(prefix + line for line in text.split("\n")[:-1]) + "\nafter"))
    assert [record.text.count("Traceback") for record in found] == [2, 0]
    assert sentence in found[0].text and "[rank7]" not in found[0].text


def test_two_tracebacks_without_a_chain_are_two() -> None:
    assert [r.text for r in group(lines(f"{TRACEBACK}\n{TRACEBACK}"))] == [TRACEBACK, TRACEBACK]


def test_an_exception_group_is_one_record() -> None:
    text = """  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in <module>
  |     raise ExceptionGroup("two", [a, b])
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "x.py", line 2, in f
    | ValueError: 1
    +---------------- 2 ----------------
    | TypeError: 2
    +------------------------------------"""
    assert [record.text for record in group(lines(text + "\nafter"))] == [text, "after"]


def test_a_prefixed_message_of_several_lines_stays_whole() -> None:
    more = "[rank4]: CUDA kernel errors might be asynchronously reported.\n[rank4]: anything else"
    text = "\n".join("[rank4]: " + line for line in TRACEBACK.split("\n")) + "\n" + more
    found = group(lines(text))
    assert len(found) == 1 and found[0].text.endswith("anything else")


def test_a_line_of_another_thread_does_not_tear_a_traceback() -> None:
    head, *rest = TRACEBACK.split("\n")
    between = "[rank4]:[E1129 18:10:44.472278476 ProcessGroupNCCL.cpp:1] watchdog"
    megatron = " iteration        2/     110 | x"
    found = group(lines("\n".join([head, rest[0], between, megatron, *rest[1:], " iteration        3/     110 | x"])))
    bare = between.removeprefix("[rank4]:")
    assert [record.text for record in found] == [TRACEBACK, bare, megatron, " iteration        3/     110 | x"]
    assert [record.prefix for record in found] == ["", "[rank4]:", "", ""]


def test_a_failure_report_is_one_record_from_traceback_to_last_rule() -> None:
    rule = "=" * 60
    report = (
        f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n{rule}\ntrain.py FAILED\n"
        f"{'-' * 60}\nFailures:\n  <NO_OTHER_FAILURES>\n{rule}"
    )
    text = "\n".join(TRACEBACK.split("\n")[:-1]) + "\n" + report
    found = group(lines(text + "\n[I1129 18:10:22.0 x.cpp:1] after"))
    assert [(record.shape, record.text) for record in found] == [
        ("failure", text),
        ("line", "[I1129 18:10:22.0 x.cpp:1] after"),
    ]


REPORT = f"{'=' * 60}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n  <NO_OTHER_FAILURES>\n{'=' * 60}"


@pytest.mark.parametrize("head", ["", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"])
def test_a_failure_report_without_a_traceback_is_one_record(head: str) -> None:
    found = group(lines(f"before\n{head}{REPORT}\nafter"))
    assert [(record.shape, record.text.strip()) for record in found] == [
        ("line", "before"),
        ("failure", (head + REPORT).replace(": \n", ":\n")),
        ("line", "after"),
    ]


def test_a_rule_that_begins_no_report_is_a_line_of_its_own() -> None:
    text = f"{'=' * 60}\nLayer (type)   Output Shape\n{'=' * 60}\n{'=' * 60}\nTotal params: 3"
    assert [(record.shape, record.text) for record in group(lines(text))] == [("line", one) for one in text.split("\n")]


def moments(*seconds: int | None) -> list[Moment | None]:
    return [None if second is None else Moment(second * SECOND) for second in seconds]


def test_a_clock_that_goes_back_is_held_at_the_maximum() -> None:
    settled, jumps = settle(moments(100, 110, 50, 60, 111))
    assert [m.time // SECOND for m in settled if m] == [100, 110, 110, 110, 111]
    assert [m.source for m in settled if m] == ["printed", "printed", "inferred", "inferred", "printed"]
    assert jumps == [(2, 60 * SECOND), (3, 50 * SECOND)]


def test_a_small_step_back_is_left_alone() -> None:
    assert settle(moments(100, 102, 101)) == (moments(100, 102, 101), [])


def test_a_line_that_leaps_ahead_does_not_drag_the_rest_along() -> None:
    settled, jumps = settle(moments(100, 9_000, 101, 102))
    assert settled == moments(100, None, 101, 102) and jumps == []


def test_an_untimed_line_takes_its_iterations_time_then_its_neighbours() -> None:
    found = by_iteration(moments(100, None, None), [None, 7, 8], {7: 105 * SECOND})
    assert found == [Moment(100 * SECOND), Moment(105 * SECOND, "inferred", SECOND), None]
    filled = by_neighbour(moments(None, 100, None, 104, None), 90 * SECOND, 110 * SECOND)
    assert [(m.time // SECOND, m.precision // SECOND) for m in filled] == [
        (100, 10),
        (100, 0),
        (100, 4),
        (104, 0),
        (104, 6),
    ]
    assert by_neighbour([None], 90 * SECOND, 9_000 * SECOND) == [Moment(90 * SECOND, "inferred", 3_600 * SECOND)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-29T18:16:10 ***", "2026-11-29T18:16:10"),
        (
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T18:16:10 DUE TO NODE FAILURE, SEE",
            "2026-11-29T18:16:10",
        ),
        ("error: *** JOB 7 CANCELLED AT 2026-11-29T18:16:10 DUE TO TIME LIMIT on n1 ***", "2026-11-29T18:16:10"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-02-30T18:16:10 ***", ""),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT Unknown ***", ""),
        ("CANCELLED AT 12345-11-29T18:16:10", ""),
    ],
)
def test_the_time_within_the_words_of_slurm(text: str, expected: str) -> None:
    assert cancelled(text) == (Moment(at(expected), "printed", SECOND) if expected else None)


@pytest.mark.parametrize(
    ("known", "told", "believed"),
    [
        ((100, None), 400, True),  # within what was recorded
        ((100, None, 500), 400, True),
        ((100, None), 3_000, True),  # a standstill of which nothing was recorded
        ((100, None), 100 + 3_600, False),  # or the next zone
        ((100, None), 50, False),  # the line stands behind what came later
        ((100, None, 300), 400, False),
        ((None,), 400, True),
        ((None,), 400 - 3_600, False),
        ((None,), 400 + 3_600, False),
        ((100, 200), 400, False),  # the line begins with a time
    ],
)
def test_times_in_words_are_believed_where_the_order_of_the_file_bears_them_out(
    known: tuple[int | None, ...], told: int, believed: bool
) -> None:
    index = min(len(known) - 1, 1)
    words: list[Moment | None] = [None] * len(known)
    words[index] = Moment(told * SECOND, "printed", SECOND)
    found = by_words(moments(*known), words, 350 * SECOND)
    assert (found[index] == words[index]) is believed
    assert [one for at, one in enumerate(found) if at != index] == [
        one for at, one in enumerate(moments(*known)) if at != index
    ]


@pytest.mark.parametrize(
    ("last", "alive", "dead", "exited", "time"),
    [
        (100, 125, 126, 128, 125),  # seen alive long after its last line: it waited
        (100, 101, 102, 102, 100),  # seen alive, but hardly longer: it raised where it stood
        (100, 140, None, 130, 131),  # never later than the launcher's word, by a second
        (100, None, None, 130, 130),  # nobody saw it: the launcher's word
        (None, None, None, 130, 130),
        (None, 125, 126, None, 125),
        (100, None, None, None, 100),
        (140, 145, None, 130, 131),  # nor is what its own clock says
    ],
)
def test_the_end_of_a_process(
    last: int | None, alive: int | None, dead: int | None, exited: int | None, time: int
) -> None:
    values = [None if value is None else value * SECOND for value in (last, alive, dead, exited)]
    found = ending(*values)
    assert found is not None and found.time == time * SECOND
    assert (found.source == "inferred" and found.precision >= SECOND) or last == time


def test_an_end_of_which_nothing_is_known_is_none() -> None:
    assert ending(None, None, None, None) is None


def test_iterations_that_lines_only_speak_of_are_not_reached() -> None:
    spoken = [(500, 1), (1, 2), (2, 3), (2, 4), (3, 5), (1, 6), (4, 7), (500, 90)]
    assert ascending(spoken) == [(1, 2), (2, 3), (3, 5), (4, 7), (500, 90)]
    assert ascending([]) == []
