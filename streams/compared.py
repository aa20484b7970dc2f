"""How jobs stand beside the jobs of a library, read back from a run's log, as text lines and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from schemas.codec import decode
from schemas.comparison import Comparison, LikeJob
from schemas.ports import Log

SHOWN_JOBS, SHOWN_SETTINGS, SHOWN_GOING = 5, 12, 5


def comparisons(log: Log) -> list[Comparison]:
    """The latest of each attempt, by job and attempt."""
    found: dict[tuple[str, str], Comparison] = {}
    for partition in range(log.partitions("comparisons")):
        for entry in log.read("comparisons", partition, 0, log.end("comparisons", partition)):
            one: Comparison = decode("comparison", entry.value)
            known = found.get((one.job, one.attempt))
            if known is None or (one.end, one.id) >= (known.end, known.id):
                found[one.job, one.attempt] = one
    return [found[key] for key in sorted(found)]


def as_json(found: Comparison) -> dict[str, Any]:
    """A comparison under the names of its fields; what the record leaves out stands there empty."""
    plain: dict[str, Any] = _whole(found)
    for name in ("start", "end"):
        del plain[name]
    plain["window"] = [_moment(found.start), _moment(found.end)]
    plain["chosen"] = _moment(found.chosen) if found.chosen else None
    return plain


def _whole(value: Any) -> Any:
    """Records as dicts with all of their fields."""
    if isinstance(value, msgspec.Struct):
        return {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    return [_whole(one) for one in value] if isinstance(value, list) else value


def _moment(time: int) -> str:
    whole = datetime.fromtimestamp(time // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{time // 1_000_000 % 1000:03d}Z"


def lines(found: Comparison) -> list[tuple[str, str]]:
    """The comparison as lines, each with its label."""
    return [
        *_labelled("baseline", _baseline(found)),
        *_labelled("not taken", [f"{_likeness(one)}: {one.reason}" for one in found.jobs if not one.baseline]),
        *_labelled("shows", [*_symptoms(found), *(_shown(one.text, one.peers) for one in found.shows)], most=12),
        *_labelled("differs", _settings(found), most=SHOWN_SETTINGS + 1),
        *_labelled("goes with", [one.text for one in found.associations]),
        *_labelled("sure", _sure(found)),
    ]


def _labelled(label: str, texts: list[str], most: int = SHOWN_JOBS) -> list[tuple[str, str]]:
    shown = texts[:most] + ([f"and {len(texts) - most} more"] if len(texts) > most else [])
    return [(label if number == 0 else "", text) for number, text in enumerate(shown)]


def _baseline(found: Comparison) -> list[str]:
    held = [one for one in found.jobs if one.baseline]
    if any(one.like for one in held):
        return [f"{_likeness(one)}: {one.reason}" for one in held]
    if not held:
        return ["none: the library has no jobs"]
    named = ", ".join(one.id for one in held[:SHOWN_JOBS]) + (" and others" if len(held) > SHOWN_JOBS else "")
    whose = "no job of the library is like this one, so it is held only against what any of them prints"
    return [f"{whose} ({named})", *(f"{_likeness(one)}: {one.reason}" for one in held[: SHOWN_JOBS - 1])]


def _likeness(one: LikeJob) -> str:
    known = f"{one.likeness:.0%} like by {one.certainty:.0%} of what counts" if one.facets else "not comparable"
    return f"{one.id}, {known}"


def _symptoms(found: Comparison) -> list[str]:
    return [f"incidents: {', '.join(found.symptoms)}"] if found.symptoms else []


def _shown(text: str, peers: str) -> str:
    return f"{text} ({peers})" if peers else text


def _settings(found: Comparison) -> list[str]:
    told = [one.text for one in found.settings[:SHOWN_SETTINGS]]
    more = len(found.settings) - len(told) + found.left_out
    return [*told, f"and {more} more"] if more else told


def _sure(found: Comparison) -> list[str]:
    most = {
        "supported": "",
        "ambiguous": "what rests on this contrast is ambiguous at most",
        "unavailable": "there is nothing to hold the job against",
    }[found.verdict]
    going = "settings that go with a symptom need not be its cause" if found.associations else ""
    told = "; ".join(part for part in (most, found.caution, going) if part)
    return [told] if told else []
