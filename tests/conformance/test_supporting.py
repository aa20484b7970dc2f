"""Supporting detectors add evidence and templates to incidents; nothing else of any incident depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streams_support import JOBS, plain, records, run, talking, written_log

from producers.recording import Recording
from schemas.results import Incident
from streams.detectors import registry

SUPPORTING = {one.name for one in registry.registered("job") if one.supporting}
ADDED = ("evidence", "templates", "revision", "published")
MADE: dict[str, Callable[[], Recording]] = {**JOBS, "talking": lambda: talking().recording}


def latest(recording: Recording) -> list[Incident]:
    log = written_log(recording)
    run(log)
    by_id = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    return [by_id[one] for one in sorted(by_id)]


def decided(incidents: list[Incident]) -> list[Any]:
    return [{name: value for name, value in plain(one).items() if name not in ADDED} for one in incidents]


@pytest.mark.parametrize("name", sorted(MADE))
def test_without_them_every_incident_is_decided_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = latest(MADE[name]())
    build = registry.build
    monkeypatch.setattr(registry, "build", lambda *given: [one for one in build(*given) if not one.supporting])
    bare = latest(MADE[name]())
    assert decided(whole) == decided(bare)
    for one, other in zip(whole, bare, strict=True):
        # A revision for their sake shows the others' latest words.
        left = [(piece.detector, piece.start) for piece in one.evidence if piece.detector not in SUPPORTING]
        assert left == [(piece.detector, piece.start) for piece in other.evidence]


def test_what_they_found_is_shown_behind_the_rest_and_among_the_templates() -> None:
    (one,) = latest(talking().recording)
    shown = [piece.detector for piece in one.evidence]
    count = len(SUPPORTING & set(shown))
    assert count >= 4
    assert not SUPPORTING & set(shown[:-count])
    assert one.suspects == []
    first = one.templates[0]
    assert (first.text, first.ranks) == ("shard <*>: read retry <*> after <*>", "3")
