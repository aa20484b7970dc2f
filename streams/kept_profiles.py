"""Profiles of many ranks as they are written down: each function's name once, and short rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.results import FunctionKind, FunctionShare, Sketch

Name = tuple[FunctionKind, str]


class _Function(msgspec.Struct, frozen=True, array_like=True):
    """A function whose kind and name have the place ``name``; its spread is not kept."""

    name: int
    share: float
    mean: float
    count: int
    typical: float
    unrest: float


class _Profile(msgspec.Struct, frozen=True, array_like=True):
    """A sketch, its functions in order."""

    captured: int
    duration: int
    steps: int
    first_step: int | None
    world_size: int | None
    unlisted: float
    recorded: str
    inferred: bool
    functions: list[_Function]


class KeptProfiles(msgspec.Struct, frozen=True):
    """Profiles by what they are and by rank, with the names that they share."""

    names: list[Name]
    profiles: dict[str, dict[int, _Profile]]


def kept(profiles: Mapping[str, Mapping[int, Sketch]]) -> KeptProfiles:
    """The profiles as they are written down."""
    found = {(one.kind, one.name) for own in profiles.values() for sketch in own.values() for one in sketch.functions}
    names = sorted(found)
    places = {name: place for place, name in enumerate(names)}
    return KeptProfiles(
        names,
        {what: {rank: _folded(own[rank], places) for rank in sorted(own)} for what, own in sorted(profiles.items())},
    )


def unfolded(found: KeptProfiles, what: str) -> dict[int, Sketch]:
    """The profiles of a kind, by rank."""
    return {rank: _sketch(one, found.names) for rank, one in found.profiles.get(what, {}).items()}


def _folded(sketch: Sketch, places: Mapping[Name, int]) -> _Profile:
    return _Profile(
        captured=sketch.captured,
        duration=sketch.duration,
        steps=sketch.steps,
        first_step=sketch.first_step,
        world_size=sketch.world_size,
        unlisted=sketch.unlisted,
        recorded=sketch.recorded,
        inferred=sketch.inferred,
        functions=[
            _Function(places[one.kind, one.name], one.share, one.mean, one.count, one.typical, one.unrest)
            for one in sketch.functions
        ],
    )


def _sketch(one: _Profile, names: list[Name]) -> Sketch:
    functions = []
    for row in one.functions:
        kind, name = names[row.name]
        functions.append(
            FunctionShare(
                name=name,
                kind=kind,
                share=row.share,
                mean=row.mean,
                count=row.count,
                typical=row.typical,
                unrest=row.unrest,
            )
        )
    return Sketch(
        captured=one.captured,
        functions=functions,
        duration=one.duration,
        steps=one.steps,
        first_step=one.first_step,
        world_size=one.world_size,
        unlisted=one.unlisted,
        recorded=one.recorded,
        inferred=one.inferred,
    )
