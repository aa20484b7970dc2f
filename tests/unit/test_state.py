"""State as JSON: equal states are equal bytes, and JSON within is taken in."""

from __future__ import annotations

import msgspec

from streams.state import written


class Inner(msgspec.Struct, kw_only=True):
    by_rank: dict[int, float | None] = {}
    kept: list[tuple[int, str]] = []


class Outer(msgspec.Struct, kw_only=True):
    names: dict[str, int] = {}
    detectors: dict[str, msgspec.Raw] = {}
    inner: Inner = msgspec.field(default_factory=Inner)


def test_keys_are_sorted_as_text_whatever_their_order_was() -> None:
    one = Outer(names={"b": 1, "a": 2}, inner=Inner(by_rank={10: 0.5, 9: None}, kept=[(1, "x")]))
    other = Outer(names={"a": 2, "b": 1}, inner=Inner(by_rank={9: None, 10: 0.5}, kept=[(1, "x")]))
    assert bytes(written(one)) == bytes(written(other))
    assert bytes(written(one)) == (
        b'{"detectors":{},"inner":{"by_rank":{"10":0.5,"9":null},"kept":[[1,"x"]]},"names":{"a":2,"b":1}}'
    )


def test_what_was_written_is_taken_in_and_read_back() -> None:
    detectors = {"z": written(Inner(by_rank={2: 1.0})), "a": written(Inner())}
    said = written(Outer(detectors=detectors))
    assert bytes(said).startswith(b'{"detectors":{"a":{"by_rank":{},"kept":[]},"z":{"by_rank":{"2":1.0},"kept":[]}}')
    read = msgspec.json.decode(said, type=Outer)
    assert bytes(written(read)) == bytes(said)
    assert msgspec.json.decode(read.detectors["z"], type=Inner) == Inner(by_rank={2: 1.0})
