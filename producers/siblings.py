"""Places of files of samples that name no node: two files of one time and one series are never of the same node.

What is of one place by its path (scrapes that differ in nothing but the time in their names) is one group. Groups that
tell other values of the same series over the same time are of other nodes, whatever those are called: mixed, the values
would seem to go up and down. The name of such a place is the one part of its path in which it differs from its
siblings; where more than one part differs, or that part is the name of something else, it is the path itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

_TIME = re.compile(r"(?<![0-9A-Za-z])(?:[0-9]{8}(?:[T_-]?[0-9]{6}Z?)?|[0-9]{10,19})(?![0-9A-Za-z])")
"""A time in a path: a date, a date and time of day, seconds or parts of them since 1970."""
_WORD = re.compile(r"[/_.-]|[^/_.-]+")
_OTHER = re.compile(r"(?i)(?:rank|local|gpu|device|dev|pid|card|port|part|job|run|attempt)s?[_.-]?[0-9]{0,20}")
"""Parts of a path that name something else than a node."""
_DEEPEST = 64
"""Parts of a path; in a deeper one no node is looked for."""

Series = tuple[str, str, str]
"""Name, device and unit."""
Values = dict[Series, dict[int, float]]
"""Values by time (ns)."""
Path = tuple[str, ...]


def places(files: Mapping[str, Values]) -> dict[str, str]:
    """The places of files that name no node and contradict others: a name for each, none twice for what contradicts.

    ``files`` are their paths and what stands in them. A file that is not in the answer contradicts no other.
    """
    groups: dict[Path, Values] = {}
    members: dict[Path, list[str]] = defaultdict(list)
    for file, values in sorted(files.items()):
        path = tuple(_TIME.sub("*", file).split("/"))
        members[path].append(file)
        _join(groups.setdefault(path, {}), values)
    names = _names({path: groups[path] for path in sorted(_contradicting(groups))})
    shared: dict[str, set[Path]] = defaultdict(set)
    for path, name in names.items():
        shared[name].add(path)
    for same in shared.values():
        for path in _contradicting({one: groups[one] for one in same}):
            names[path] = "/".join(path)
    return {file: name for path, name in sorted(names.items()) for file in members[path]}


def _join(known: Values, values: Values) -> None:
    for series, told in values.items():
        known.setdefault(series, {}).update(told)


def _contradicting(groups: Mapping[Path, Values]) -> set[Path]:
    """The groups that tell another course of a series than one beside them over the same time.

    A copy of a file tells the same. Of each series a group is held against the one before it that reaches furthest.
    """
    spans: dict[Series, list[tuple[int, int, Path]]] = defaultdict(list)
    for path, values in groups.items():
        for series, told in values.items():
            spans[series].append((min(told), max(told), path))
    found: set[Path] = set()
    for series, ordered in spans.items():
        ordered.sort()
        _, end, furthest = ordered[0]
        for start, last, path in ordered[1:]:
            until = min(end, last)
            if start <= end and _within(groups[furthest][series], start, until) != _within(
                groups[path][series], start, until
            ):
                found.update((furthest, path))
            if last > end:
                end, furthest = last, path
    return found


def _within(told: dict[int, float], start: int, end: int) -> dict[int, str]:
    # As text, since a value that is no number is unlike itself.
    return {time: repr(value) for time, value in told.items() if start <= time <= end}


def _names(groups: Mapping[Path, Values]) -> dict[Path, str]:
    """A name for each group; siblings are those that differ in one part alone and contradict each other."""
    siblings: dict[tuple[int, Path], list[Path]] = defaultdict(list)
    for path in groups:
        for at in range(len(path) if len(path) <= _DEEPEST else 0):
            siblings[_but(path, at)].append(path)
    several = {
        key: _shared([path[key[0]] for path in paths])
        for key, paths in siblings.items()
        if len(paths) > 1 and _contradicting({path: groups[path] for path in paths})
    }
    return {path: _name(path, several) for path in groups}


def _but(path: Path, at: int) -> tuple[int, Path]:
    return at, (*path[:at], *path[at + 1 :])


def _shared(names: list[str]) -> tuple[int, int]:
    """How many words and separators the names of siblings begin and end with in common."""
    split = [_WORD.findall(name) for name in names]
    first = _alike(split)
    return first, _alike([words[first:][::-1] for words in split])


def _alike(lists: list[list[str]]) -> int:
    """How many words all begin with."""
    least, most = min(lists), max(lists)
    return next(
        (at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), min(map(len, lists))
    )


def _name(path: Path, several: Mapping[tuple[int, Path], tuple[int, int]]) -> str:
    differ = [at for at in range(len(path)) if _but(path, at) in several] if len(path) <= _DEEPEST else []
    if len(differ) != 1:
        return "/".join(path)
    at = differ[0]
    name = path[at] if at < len(path) - 1 else _part(path[at], *several[_but(path, at)])
    return "/".join(path) if not name or "*" in name or _OTHER.fullmatch(name) else name


def _part(name: str, first: int, last: int) -> str:
    """The words of a file's name that its siblings do not share; a mere number keeps the word before it."""
    words = _WORD.findall(name)
    end = len(words) - last
    if end - first == 1 and words[first].isdigit() and first > 1:
        first -= 2
    return "".join(words[first:end]).strip("/_.-")
