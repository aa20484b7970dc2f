"""Shapes of lines: peeled, masked, hashed; the same whatever variables stand in the line."""

from __future__ import annotations

import pytest
from detection_support import FIXED, traceback
from hypothesis import given
from hypothesis import strategies as st

from streams.lines.signature import LIMIT, fold, mask, peel, shape, signature_of

BODY = "saving model shards done"
PREFIXES = st.one_of(
    st.integers(0, 99_999).map(lambda rank: f"[rank{rank}]:"),
    st.integers(0, 99_999).map(lambda rank: f"[rank {rank}] "),
    st.tuples(st.integers(0, 99), st.integers(0, 9999)).map(lambda pair: f"[node{pair[0]:02d} rank {pair[1]}] "),
    st.datetimes().map(lambda moment: f"2026-{moment:%m-%d %H:%M:%S},{moment.microsecond // 1000:03d} "),
    st.datetimes().map(lambda moment: f"[2026-{moment:%m-%d %H:%M:%S.%f}] "),
    st.sampled_from(["[INFO] ", "[WARNING] ", "[ERROR] ", "- INFO - ", "- CRITICAL - ", "ERROR: "]),
)


@FIXED
@given(st.lists(PREFIXES, max_size=6))
def test_prefixes_peel_off_in_any_order_and_depth(prefixes: list[str]) -> None:
    assert peel("".join(prefixes) + BODY) == BODY


@pytest.mark.parametrize(
    ("line", "peeled"),
    [
        ("2026-11-29 18:15:13,942 [INFO] [rank 6] trainer: step 37", "trainer: step 37"),
        ("[node03 rank 11] step 1 | compute: 132.4 ms", "step 1 | compute: 132.4 ms"),
        (" [2026-11-29 19:10:35.865046] iteration        1/     220 |", "iteration        1/     220 |"),
        ("2026-11-29 19:14:27,948 - INFO - worker started role=rollout", "worker started role=rollout"),
        (
            "[rank0]:[rank8]:[E1129 02:07:08.408271257 ProcessGroupNCCL.cpp:607] caught",
            "ProcessGroupNCCL.cpp:607] caught",
        ),
        ("   spaces are no words   ", "spaces are no words"),
        ("", ""),
        ("[rank3]:", ""),
    ],
)
def test_prefixes_of_the_field_are_peeled(line: str, peeled: str) -> None:
    assert peel(line) == peeled


VARIABLES = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}"),
    st.floats(1e-9, 1e9).map(lambda value: f"{value:.6E}"),
)
HEX = st.text("0123456789abcdef", min_size=8, max_size=60).filter(
    lambda text: any(one.isdigit() for one in text) and any(one.isalpha() for one in text)
)
OCTET = st.integers(0, 255)
KINDS = {
    "numbers": VARIABLES,
    "times": st.datetimes().map(lambda moment: f"2026-{moment:%m-%d %H:%M:%S}.{moment.microsecond:06d}"),
    "addresses": st.tuples(OCTET, OCTET, OCTET, OCTET, st.integers(1, 65535)).map(
        lambda parts: "{}.{}.{}.{}:{}".format(*parts)
    ),
    "mapped addresses": st.tuples(OCTET, st.integers(1, 65535)).map(lambda p: f"[::ffff:127.0.0.{p[0]}]:{p[1]}"),
    "paths": st.lists(st.text("abcXYZ0189_.-", min_size=1, max_size=12), min_size=1, max_size=6).map(
        lambda parts: "/" + "/".join(parts)
    ),
    "hex words": HEX,
    "hex numbers": st.integers(0, 2**64).map(hex),
    "uuids": st.uuids().map(str),
    "urls": st.text("abc/._-", min_size=1, max_size=30).map(lambda rest: f"s3://bucket{rest}"),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
@FIXED
@given(data=st.data())
def test_lines_that_differ_only_in_variables_have_one_signature(kind: str, data: st.DataObject) -> None:
    one, two = data.draw(KINDS[kind]), data.draw(KINDS[kind])
    assert shape(f"lost link {one} after retry") == shape(f"lost link {two} after retry")


@FIXED
@given(PREFIXES, PREFIXES, VARIABLES, VARIABLES)
def test_who_prints_a_line_and_when_is_not_part_of_its_shape(one: str, two: str, a: str, b: str) -> None:
    assert signature_of(shape(f"{one}loss at {a} fell")) == signature_of(shape(f"{two}loss at {b} fell"))


@pytest.mark.parametrize("name", ["default", "trainer", "worker"])
def test_the_prefix_that_torchrun_puts_before_a_local_ranks_lines_is_no_word(name: str) -> None:
    # ``torchrun --tee 3`` writes ``[${role_name}${local_rank}]:``, ``default`` where no role is given.
    assert len({shape(f"[{name}{local}]:connected to store") for local in (0, 3, 7, 12, 15)}) == 1


@pytest.mark.parametrize("word", ["node", "gpu", "worker", "shard_"])
def test_digits_behind_a_word_are_treated_alike_whatever_their_number(word: str) -> None:
    masked = [shape(f"{word}{digits} is ready") for digits in ("3", "03", "12", "137")]
    assert set(masked) == {f"{word}<NUM> is ready"}


WORDS = st.text("ghijklmnopqrstuvwyz", min_size=1, max_size=12)


@FIXED
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=6))
def test_different_words_have_different_signatures(one: list[str], two: list[str]) -> None:
    left, right = " ".join(one), " ".join(two)
    assert (signature_of(shape(left)) == signature_of(shape(right))) == (left == right)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("step 37 timers (ms): data 11.5", "step <NUM> timers (ms): data <NUM>"),
        ("grad norm: nan | loss: -inf |", "grad norm: <NUM> | loss: <NUM> |"),
        ("nan is no number here", "nan is no number here"),
        ("saved to /ckpt/iter_0001/mp_00 in 3 s", "saved to <PATH> in <DUR>"),
        ("lifetime <1 sec, 2.5ms, 3 hours", "lifetime <DUR>, <DUR>, <DUR>"),
        ("850.0 B of 5.2 KB, 16G, 1190 bytes (1.16 KB) sent", "<SIZE> of <SIZE>, <SIZE>, <SIZE> sent"),
        ("opened ./a/b//c.rts of ~/x, ../y, /q?a=1&b=2 or a/b", "opened <PATH> of <PATH>, <PATH>, <PATH> or a/b"),
        ("peer node-7.cluster.example.com:443 and a.b.svc.cluster.local.", "peer <HOST> and <HOST>."),
        ("torch.distributed.run of train.py and example.com/x", "torch.distributed.run of train.py and example.com/x"),
        ("at Sun Jul  9 11:35:59 2005, Aug 30 11:43:09 UTC 2024", "at <TIME>, <TIME>"),
        (
            "GPU 0000:0f:00.0, mac 5c:50:15:4c:18:13, fe80::5e50:15ff, 12:30:45:",
            "GPU <ADDR>, mac <ADDR>, <ADDR>, <ADDR>:",
        ),
        ("a mask of ffffffff, std::add and dead::beef", "a mask of <HEX>, std::add and dead::beef"),
        ("block blk_-5 or blk_5", "block blk_<NUM> or blk_<NUM>"),
        ("shard s3://bucket/a/b?x=1 read", "shard <URL> read"),
        ("ptr 0x7f9cf2ca3f16, id 12345678-1234-1234-1234-123456789abc", "ptr <HEX>, id <UUID>"),
        ("peer 127.0.0.1:11662 and [::ffff:127.0.0.1]:33629", "peer <IP> and <IP>"),
        ("rank12 of node03 has v2", "rank<NUM> of node<NUM> has v<NUM>"),
        ("shard /data/0a1b2c3d4e/x of job 0a1b2c3d4e", "shard <PATH> of job <HEX>"),
        ("a 2x4 grid, 5-3, 1.5e-05", "a <NUM>x<NUM> grid, <NUM>-<NUM>, <NUM>"),
    ],
)
def test_masks_say_what_stood_there(line: str, masked: str) -> None:
    assert mask(fold(line)) == masked


def test_a_traceback_is_known_by_its_error_and_the_function_that_raised_it() -> None:
    one = traceback("ValueError: bad shard /data/shard_00045.bin")
    two = traceback("ValueError: bad shard /data/shard_17.bin", '  File "/other/train.py", line 7, in step\n    x\n')
    elsewhere = traceback("ValueError: bad shard /data/s.bin", '  File "/other/train.py", line 7, in load\n    x\n')
    assert shape(one) == shape(two) == "ValueError: bad shard <PATH> in step"
    assert shape(elsewhere) != shape(one)


def test_only_the_first_line_of_a_record_counts_where_there_is_no_traceback() -> None:
    assert shape("Xid seen\nmore 1\nmore 2") == shape("Xid seen\nother") == "Xid seen"


HOSTILE = {
    "hex and a letter": "0123456789abcdef" * 4 + "z",
    "64 hex digits, then no word": "deadbeef1" * 8 + "q" * 4000,
    "one character": "a" * 10_000,
    "one digit": "7" * 10_000,
    "dots": "1." * 5_000,
    "slashes": "/" * 10_000,
    "path without end": "/a" * 5_000,
    "brackets": "[" * 5_000 + "]" * 5_000,
    "nested ranks": "[rank1]:" * 1_250,
    "levels": "[INFO]" * 1_600,
    "half a time": "2026-11-29 " * 900,
    "spaces": " " * 10_000,
    "urls": "s3://" * 2_000,
    "signs": "+-" * 5_000,
    "exponents": "1e" * 5_000,
    "nul": "\x00" * 5_000,
    "not ascii": "ß٣五" * 3_000,
    "surrogates": "\udcff" * 5_000,
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_lines_have_a_short_shape_and_a_signature(name: str) -> None:
    masked = shape(HOSTILE[name])
    assert len(masked) <= len("<PATH>") * LIMIT
    assert len(signature_of(masked)) == 16


@FIXED
@given(st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=200), st.integers(20, 60))
def test_only_the_first_characters_count(text: str, times: int) -> None:
    line = ("x" + text) * times
    longer = (line * (LIMIT // len(line) + 2))[: LIMIT + 500]
    assert shape(longer) == shape(longer[:LIMIT])
    assert shape(longer[:LIMIT] + "tail") == shape(longer)


@FIXED
@given(st.text(max_size=300))
def test_a_shape_is_a_pure_function_of_the_text_and_never_fails(text: str) -> None:
    assert shape(text) == shape(text)
    assert peel(peel(text)) == peel(text)
