"""Speedscope's JSON: of each class a profile of all its stacks and one of each place, weighted by ranks.

Lines are those of most of the ranks that stand in a place.
"""

from __future__ import annotations

import json
from typing import Any

from rankwatch.stackviews.picture import LONGEST_NAME, Picture, counted, one_line, stacks_of
from schemas.events import Frame
from schemas.identity import rank_ranges, shortened
from streams.stack_classes import StackClass, StackGroup
from streams.stacks import frame_name

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
MOST_PLACES = 32
"""Places of a class that get a profile of their own; the profile of the class has all."""
LONGEST_RANKS = 60


def render(picture: Picture) -> str:
    """The file, in one line: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources."""
    frames = _Frames()
    profiles = [profile for one in picture.classes for profile in _profiles(one, frames)]
    whole = {
        "$schema": SCHEMA,
        "exporter": "rankwatch",
        "name": one_line(picture.title),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.listed},
        "profiles": profiles,
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n"


class _Frames:
    """The frames that all profiles share, each once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._places: dict[Frame, int] = {}

    def of(self, frames: list[Frame]) -> list[int]:
        """Where the frames stand in the list."""
        return [self._place(frame) for frame in frames]

    def _place(self, frame: Frame) -> int:
        if frame not in self._places:
            self._places[frame] = len(self.listed)
            name = shortened(one_line(frame.function).strip(), LONGEST_NAME) or "?"
            told: dict[str, Any] = {"name": name, "file": one_line(frame.file)}
            self.listed.append({**told, "line": frame.line} if frame.line else told)
        return self._places[frame]


def _profiles(one: StackClass, frames: _Frames) -> list[dict[str, Any]]:
    name = one_line(one.name)
    told = {tuple(node.name for node in path): stack for path, stack in stacks_of(one.tree)}
    stacks = [(frames.of(told[tuple(map(frame_name, group.frames))]), len(group.ranks)) for group in one.groups]
    whole = _profile(f"{name}: {len(one.tree.ranks)} ranks", stacks)
    if len(one.groups) == 1:
        return [whole]
    contrasted = any(group.minority for group in one.groups)
    places = [
        _profile(f"{name}: {_said(group, contrasted)} {_who(group)}", [stack])
        for group, stack in zip(one.groups[:MOST_PLACES], stacks, strict=False)
    ]
    return [whole, *places]


def _who(group: StackGroup) -> str:
    return counted(len(group.ranks), rank_ranges(group.ranks), LONGEST_RANKS)


def _said(group: StackGroup, contrasted: bool) -> str:
    if not contrasted:
        return "one place,"
    return "minority," if group.minority else "majority,"


def _profile(name: str, stacks: list[tuple[list[int], int]]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(ranks for _, ranks in stacks),
        "samples": [frames for frames, _ in stacks],
        "weights": [ranks for _, ranks in stacks],
    }
