"""The golden examples: complete, readable by the codec, and one story."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas import codec, comparison, deployment, events, fleet, identity, jobs, library, meta, results, silences
from schemas.results import windows
from schemas.topics import TOPICS

EXAMPLES = Path(inspect.getfile(codec)).parent / "examples"
KINDS = sorted(codec.TYPES)
BASES = {events.Event, results.Record}

SPOKEN_FOR = {
    (results.Window, "finished"): "stopped",
    (results.Incident, "merged_into"): "resolution",
    (results.Incident, "missing"): "unobserved",
    (results.SuspiciousTemplate, "absent"): "ranks",
    (fleet.FleetReport, "left"): "nodes",
}
"""Fields that the only example of their record leaves at the default, since another says it instead."""


def value_of(kind: str) -> bytes:
    return (EXAMPLES / kind / f"v{codec.VERSION}.json").read_bytes()


def pairs(record: Any, raw: Any) -> Iterator[tuple[msgspec.Struct, Any]]:
    """Every struct inside a decoded value with the JSON it came from; an array-like one with an array."""
    if isinstance(record, msgspec.Struct):
        yield record, raw
        fields = msgspec.structs.fields(record)
        inner = raw if isinstance(raw, dict) else {field.name: item for field, item in zip(fields, raw, strict=False)}
        for field in fields:
            yield from pairs(getattr(record, field.name), inner.get(field.encode_name))
    elif isinstance(record, list | tuple) and raw is not None:
        for item, part in zip(record, raw, strict=True):
            yield from pairs(item, part)
    elif isinstance(record, dict) and raw is not None:
        for name, item in record.items():
            yield from pairs(item, raw[name])


def example_pairs(kind: str) -> list[tuple[msgspec.Struct, Any]]:
    return list(pairs(codec.decode(kind, value_of(kind)), json.loads(value_of(kind))))


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default


def owner_of(record: msgspec.Struct, field: msgspec.structs.FieldInfo) -> type:
    """The class that declares the field; what all events have is judged once for all of them."""
    return next(base for base in reversed(type(record).__mro__) if field.name in vars(base).get("__annotations__", {}))


def says_something(record: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    value = getattr(record, field.name)
    empty = isinstance(value, list | dict | str | bytes) and not value
    return not empty and value != default_of(field)


def test_every_kind_has_an_example_and_every_example_a_kind() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_laid_out_in_the_one_stable_way(kind: str) -> None:
    text = value_of(kind).decode()
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_survives_the_codec(kind: str) -> None:
    record = codec.decode(kind, value_of(kind))
    encoded = codec.encode(record)
    assert codec.decode(kind, encoded) == record
    assert codec.encode(codec.decode(kind, encoded)) == encoded
    assert codec.kind_of(record) == kind


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_writes_out_every_field_of_every_struct_in_it(kind: str) -> None:
    written: dict[type, set[str]] = {}
    for record, raw in example_pairs(kind):
        fields = msgspec.structs.fields(record)
        names = raw if isinstance(raw, dict) else [field.encode_name for field in fields[: len(raw)]]
        written.setdefault(type(record), set()).update(names)
    for struct, found in written.items():
        assert found == {field.encode_name for field in msgspec.structs.fields(struct)}, struct.__name__


def test_the_examples_together_say_something_in_every_field() -> None:
    silent: set[tuple[type, str]] = set()
    spoken: set[tuple[type, str]] = set()
    for kind in KINDS:
        for record, _ in example_pairs(kind):
            for field in msgspec.structs.fields(record):
                (spoken if says_something(record, field) else silent).add((owner_of(record, field), field.name))
    assert silent - spoken == set(SPOKEN_FOR)
    assert {(struct, other) for (struct, _), other in SPOKEN_FOR.items()} <= spoken


def test_the_examples_together_show_every_struct_that_crosses_a_log() -> None:
    declared = {
        item
        for module in (events, results, windows, identity, deployment, jobs, library, fleet, meta, silences, comparison)
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, msgspec.Struct)
    }
    shown = {type(record) for kind in KINDS for record, _ in example_pairs(kind)}
    assert shown == declared - BASES


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_a_newer_version_are_ignored_at_any_depth(kind: str) -> None:
    raw = json.loads(value_of(kind))
    record = codec.decode(kind, value_of(kind))
    for _, part in list(pairs(record, raw)):
        if isinstance(part, dict):
            part["added_later"] = {"deep": [1, None, {"x": "é"}]}
        else:
            part.append("added later")
    assert codec.decode(kind, json.dumps(raw, indent=2).encode()) == record


@pytest.mark.parametrize("kind", sorted(codec.BATCHES))
def test_a_batch_holds_events_of_its_kind_only(kind: str) -> None:
    batch = codec.decode(kind, value_of(kind))
    assert {type(event) for event in batch.events} == {codec.BATCHES[kind]}


def test_the_examples_tell_one_story() -> None:
    told = {
        kind: codec.decode(kind, value_of(kind)) for kind in ("incident", "anomaly", "notice", "template", "library")
    }
    incident = told["incident"]
    assert [template.id for template in incident.templates] == [told["template"].id] == told["anomaly"].templates
    assert incident.notification_key == told["notice"].notification_key
    assert (incident.onset, incident.suspects) == (told["anomaly"].onset, told["anomaly"].suspects)
    assert incident.library == told["anomaly"].library == told["library"].label
    assert incident.victims.ranks == identity.rank_ranges(told["anomaly"].victims)


def test_the_dead_letter_holds_bytes_that_really_cannot_be_read() -> None:
    letter = codec.decode("dead_letter", value_of("dead_letter"))
    assert letter.headers["schema"] in TOPICS[letter.topic].kinds
    with pytest.raises(codec.CodecError):
        codec.decode(letter.headers["schema"], letter.value)
