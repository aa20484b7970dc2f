"""JSON texts read value by value: the same values as at once, and a reason where they cannot be read."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from producers import jsonstream
from producers.jsonstream import BrokenJsonError, JsonStream, head_of, opened

VALUE = {"a": 1, "events": [{"b": [1, {"c": "}],"}]}, 2, "é\n", None, -1.5e3, []], "last": {"d": "ü"}}


class Trickle(io.BufferedIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, raw: bytes, size: int) -> None:
        self._file, self._size = io.BytesIO(raw), size

    def read1(self, size: int = -1, /) -> bytes:
        return self._file.read(self._size)


def members(raw: bytes, size: int = 1 << 20) -> list[tuple[str, Any]]:
    return list(JsonStream(Trickle(raw, size)).members("events"))


def fault(raw: bytes, size: int = 1 << 20) -> tuple[int, str]:
    """How many values came before the fault, and what it is."""
    found = []
    with pytest.raises(BrokenJsonError) as error:
        for one in JsonStream(Trickle(raw, size)).members("events"):
            found.append(one)
    return len(found), str(error.value)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_values_are_those_of_the_whole_text_however_it_comes(size: int, indent: int | None) -> None:
    raw = json.dumps(VALUE, indent=indent, ensure_ascii=False).encode()
    expected = [("a", 1), *(("events", one) for one in VALUE["events"]), ("last", {"d": "ü"})]  # type: ignore[attr-defined]
    assert members(raw, size) == expected


def test_an_empty_object_and_an_array_without_elements_have_none() -> None:
    assert members(b"{}") == []
    assert members(b' { "events" : [ ] , "x": {} }') == [("x", {})]
    assert members(b'{"events": {"no": "array"}}') == [("events", {"no": "array"})]


@pytest.mark.parametrize(
    ("raw", "before", "reason"),
    [
        (b"", 0, "cut off"),
        (b"[1]", 0, "{ is missing"),
        (b'{"a": 1', 1, "cut off"),
        (b'{"a": 1 "b": 2}', 1, "a comma is missing"),
        (b'{"events": [1, 2, {"a": ', 2, "cut off"),
        (b'{"events": [1, {"a": "', 1, "cut off"),
        (b'{"events": [1, nonsense]}', 1, "cut off"),
        (b"{1: 2}", 0, "without a name"),
        (b'{"events": [' + b"[" * 100_000, 0, "nested too deep"),
        (b'{"events": [' + b"9" * 5_000 + b"]}", 0, "too many digits"),
    ],
)
def test_what_cannot_be_read_ends_with_a_reason_after_what_could(raw: bytes, before: int, reason: str) -> None:
    count, said = fault(raw)
    assert (count, reason in said) == (before, True), said


def test_whether_the_streamed_array_ended_is_known() -> None:
    for raw, ended in ((b'{"events": [1, 2], "b": ', True), (b'{"events": [1, 2', False), (b'{"events": 1', False)):
        stream = JsonStream(Trickle(raw, 3))
        with pytest.raises(BrokenJsonError):
            list(stream.members("events"))
        assert stream.ended is ended


def test_a_long_value_is_not_begun_again_for_each_piece_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "CHUNK", 1_000)
    stream = JsonStream(Trickle(b'{"events": ["' + b"x" * 1_000_000 + b'"]}', 10))
    begun = []
    parse = stream._parse
    monkeypatch.setattr(stream, "_parse", lambda text, at: begun.append(at) or parse(text, at))
    assert [len(one) for _, one in stream.members("events")] == [1_000_000]
    assert len(begun) < 20


def test_one_value_is_never_longer_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "LONGEST_VALUE", 1_000)
    monkeypatch.setattr(jsonstream, "CHUNK", 100)
    trickle = Trickle(b'{"events": [1, "' + b"x" * 1_000_000, 100)
    stream = JsonStream(trickle)
    with pytest.raises(BrokenJsonError):
        list(stream.members("events"))
    assert trickle._file.tell() < 3_000


def test_a_file_that_unpacks_without_end_is_read_up_to_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonstream, "MOST_BYTES", 4 << 20)
    path = tmp_path / "bomb.json"
    path.write_bytes(gzip.compress(b'{"events": [' + b" " * (64 << 20), 1))
    with opened(path) as file, pytest.raises(BrokenJsonError, match="more than 4194304 bytes"):
        list(JsonStream(file).members("events"))


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: raw[:40] + b"\0" * 40 + raw[80:]])
def test_a_damaged_gzip_file_ends_with_a_reason(tmp_path: Path, damage: Any) -> None:
    numbers = {"events": [str(at * 2_654_435_761 % 2**32) for at in range(20_000)]}
    path = tmp_path / "trace.json.gz"
    path.write_bytes(damage(gzip.compress(json.dumps(numbers).encode())))
    with opened(path) as file, pytest.raises(BrokenJsonError, match="cut off or damaged"):
        list(JsonStream(file).members("events"))


def test_the_head_of_a_file_is_unpacked_and_empty_where_it_cannot_be(tmp_path: Path) -> None:
    for name, raw, expected in (
        ("plain", b"\xef\xbb\xbf{} ", "{} "),
        ("packed", gzip.compress(b"{}"), "{}"),
        ("cut", gzip.compress(b"{}" * 9)[:10], ""),
        ("none", b"\x1f\x8b\x08", ""),
    ):
        (tmp_path / name).write_bytes(raw)
        assert head_of(tmp_path / name, 100) == expected
