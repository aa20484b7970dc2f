"""The codec: equal records give equal bytes, and bad bytes give one line of reason."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec, events, results
from schemas.identity import Identity

EXAMPLES = Path(inspect.getfile(codec)).parent / "examples"
KINDS = sorted(codec.TYPES)
OWNER = Identity(job="run-11", rank=5)


def value_of(kind: str) -> bytes:
    return (EXAMPLES / kind / f"v{codec.VERSION}.json").read_bytes()


def object_of(kind: str) -> dict[str, Any]:
    found = json.loads(value_of(kind))
    assert isinstance(found, dict)
    return found


def refused(kind: str, value: bytes) -> str:
    with pytest.raises(codec.CodecError) as caught:
        codec.decode(kind, value)
    message = str(caught.value)
    assert message
    assert message.splitlines() == [message]
    assert message.startswith(f"not a {kind} record: ")
    return message


def strictly_parsed(value: bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(constant)

    return json.loads(value, parse_constant=refuse)


def batch_of(*held: Any) -> events.Batch[Any]:
    return events.Batch(producer="agent@node02", boot="b", seq=1, identity=OWNER, events=list(held))


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_cut_off_anywhere_is_refused(kind: str) -> None:
    value = codec.encode(codec.decode(kind, value_of(kind)))
    for length in range(len(value)):
        refused(kind, value[:length])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [b"", b"\xff\xfe", b"null", b"[]", b"7", b'"text"', b"{}", b"NaN", b"{'time': 1}"])
def test_what_is_no_record_at_all_is_refused(kind: str, value: bytes) -> None:
    refused(kind, value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_record_behind_the_first_is_refused(kind: str) -> None:
    refused(kind, value_of(kind) + b"{}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_type_in_any_field_is_refused_and_named(kind: str) -> None:
    for name in object_of(kind).keys() - {"state"}:
        message = refused(kind, json.dumps(object_of(kind) | {name: [[{}]]}).encode())
        assert f"$.{name}" in message


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_required_field_is_refused_and_named(kind: str) -> None:
    required = [field.name for field in msgspec.structs.fields(codec.decode(kind, value_of(kind))) if field.required]
    assert required
    for name in required:
        rest = {key: value for key, value in object_of(kind).items() if key != name}
        assert name in refused(kind, json.dumps(rest).encode())


def test_hostile_nesting_is_refused() -> None:
    nested = b"[" * 100_000 + b"]" * 100_000
    refused("tick", b'{"time": 1, "later": ' + nested + b"}")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"1.5", b'"1"', b"true"])
def test_a_time_that_is_no_integer_is_refused(number: bytes) -> None:
    refused("tick", b'{"time": ' + number + b"}")


def test_a_word_outside_its_enumeration_is_refused_in_one_line() -> None:
    raw = object_of("log")
    raw["events"][0]["time_source"] = "first\nsecond"
    assert "$.events[0].time_source" in refused("log", json.dumps(raw).encode())


def test_an_unknown_schema_is_refused_in_one_line() -> None:
    with pytest.raises(codec.CodecError) as caught:
        codec.decode("no\nsuch", b"{}")
    assert str(caught.value) == r"unknown schema 'no\nsuch'"


@pytest.mark.parametrize("kind", KINDS)
def test_nan_stands_in_no_example(kind: str) -> None:
    strictly_parsed(value_of(kind))
    strictly_parsed(codec.encode(codec.decode(kind, value_of(kind))))


@given(value=st.floats(), mean=st.floats())
def test_nan_is_never_written(value: float, mean: float) -> None:
    profile = events.Profile(time=1, name="f", kind="os", share=0.5, mean=mean, spread=0.0, count=1)
    for record in (events.Metric(time=1, name="loss", value=value), profile):
        strictly_parsed(codec.encode(batch_of(record)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_come_back_bit_for_bit(value: float) -> None:
    encoded = codec.encode(batch_of(events.Metric(time=1, name="loss", value=value)))
    found = codec.decode("metric", encoded).events[0].value
    assert found == value
    assert math.copysign(1.0, found) == math.copysign(1.0, value)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(0, 9), max_size=6))
def test_equal_records_give_equal_bytes_whatever_the_order_of_their_mappings(layout: dict[str, int]) -> None:
    turned = dict(reversed(layout.items()))
    one, two = (codec.encode(batch_of(events.Job(time=1, layout=given))) for given in (layout, turned))
    assert one == two
    assert codec.decode("job", one).events[0].layout == layout


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    encoded = codec.encode(batch_of(events.Log(time=1, stream="stdout", text=text)))
    assert codec.decode("log", encoded).events[0].text == text


@given(st.binary(max_size=64))
def test_a_dead_letter_keeps_its_bytes(value: bytes) -> None:
    letter = results.DeadLetter(
        topic="logs", partition=0, offset=0, stage="rank stage", reason="r", key=value, value=value
    )
    assert codec.decode("dead_letter", codec.encode(letter)) == letter


def test_fields_at_their_default_are_not_written() -> None:
    assert codec.encode(results.Progress(partition=1, end=2)) == b'{"partition":1,"end":2}'


@pytest.mark.parametrize("kind", sorted(codec.BATCHES))
def test_a_batch_is_named_after_its_events(kind: str) -> None:
    assert codec.kind_of(codec.decode(kind, value_of(kind))) == kind
    assert codec.kind_of(codec.decode(kind, value_of(kind)).events[0]) == kind


def test_an_empty_batch_has_no_kind() -> None:
    with pytest.raises(codec.CodecError, match="without events"):
        codec.kind_of(batch_of())


def test_headers_name_schema_and_version() -> None:
    assert codec.headers("log") == {"schema": "log", "version": codec.VERSION}


def test_batches_and_single_records_share_no_kind() -> None:
    assert not codec.BATCHES.keys() & codec.SINGLES.keys()
    assert codec.TYPES.keys() == codec.BATCHES.keys() | codec.SINGLES.keys()
