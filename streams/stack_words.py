"""What merged stacks say in words: a line for each kind of threads that tells somebody where to look."""

from __future__ import annotations

from collections.abc import Collection

from schemas.events import MAIN_THREAD
from schemas.identity import rank_ranges, said_ranks, shortened
from streams.stack_classes import NO_SAMPLE, StackClass, StackGroup, by_reason
from streams.stacks import frame_name, place

SHOWN_PLACES = 6
SHOWN_KINDS = 3
"""Kinds of threads that do not train, of which it is said where a few stand apart."""
SHOWN_HELPERS = 2
SHOWN_REASONS = 2
LONGEST_RANGES = 80
LONGEST_REASON = 100
LONGEST_KIND = 60


def said(classes: list[StackClass], most: int = SHOWN_PLACES) -> list[str]:
    """A line a class that trains: ``ranks 0-4,6-7 in all_reduce (...); rank 5 in __next__ (...), its loader in read``.

    Beyond ``most`` places only how many they are is told. Other threads are told of where a few stand apart.
    """
    return [line for _, line in lines_of(classes, most)]


def lines_of(classes: list[StackClass], most: int = SHOWN_PLACES) -> list[tuple[StackClass, str]]:
    """The lines of ``said``, each with its class."""
    mains = [one for one in classes if one.is_main]
    told = [(one, _main_line(one, classes, most, named=len(mains) > 1)) for one in mains]
    apart = [one for one in classes if not one.is_main and _untold(one, classes)]
    for number, one in enumerate(apart[:SHOWN_KINDS]):
        left = len(apart) - SHOWN_KINDS if number == SHOWN_KINDS - 1 else 0
        more = f"; a few stand apart in {left} more kinds of threads" if left > 0 else ""
        told.append((one, f"{_kind(one)}: {'; '.join(_places(one, most))}{more}"))
    return told


def _main_line(one: StackClass, classes: list[StackClass], most: int, *, named: bool) -> str:
    helpers = {id(group): _helpers(group, one, classes) for group in one.groups[:most]}
    parts = _places(one, most, helpers)
    reasons = by_reason(one.unobserved.items())
    for reason, ranks in reasons[:SHOWN_REASONS]:
        why = "" if reason == NO_SAMPLE else f" ({shortened(reason, LONGEST_REASON)})"
        parts.append(f"{_ranks(ranks)} not observed{why}")
    rest = [rank for _, ranks in reasons[SHOWN_REASONS:] for rank in ranks]
    if rest:
        parts.append(f"{_ranks(rest)} not observed for {len(reasons) - SHOWN_REASONS} other reasons")
    role = shortened(one.role, LONGEST_KIND) or "of no known role"
    return f"{role}: {'; '.join(parts)}" if named else "; ".join(parts)


def _places(one: StackClass, most: int, more: dict[int, str] | None = None) -> list[str]:
    shown = one.groups[:most]
    alike: dict[str, list[StackGroup]] = {}
    for group in shown:
        alike.setdefault(group.place, []).append(group)
    apart = {id(group): words for groups in alike.values() for group, words in _told_apart(groups)}
    told: dict[str, set[int]] = {}
    for group in shown:
        words = f"{group.place}{apart[id(group)]}{(more or {}).get(id(group), '')}"
        told.setdefault(words, set()).update(group.ranks)
    parts = [f"{_ranks(ranks)} in {words}" for words, ranks in told.items()]
    rest = {rank for group in one.groups[most:] for rank in group.ranks}
    if rest:
        parts.append(f"{_ranks(rest)} in {len(one.groups) - most} other places")
    return parts


def _told_apart(groups: list[StackGroup]) -> list[tuple[StackGroup, str]]:
    """What tells groups apart that stand in one place: who called it, and where that does not, how deep they are."""
    if len(groups) == 1:
        return [(groups[0], "")]
    ways = _ways(groups)
    if "" in ways or len(set(ways)) < len(ways):
        ways = [f"{way}, {_depth(group)} deep" for group, way in zip(groups, ways, strict=True)]
    return list(zip(groups, ways, strict=True))


def _ways(groups: list[StackGroup]) -> list[str]:
    """Of each group the first frame that sets it apart from all others; nothing where that is the place itself."""
    stacks = [group.frames for group in groups]
    if any(group.sample.outer for group in groups):
        # Where the outermost frames are not known, only the innermost stand at the same depth.
        stacks = [frames[::-1] for frames in stacks]
    names = [[frame_name(frame) for frame in frames] for frames in stacks]
    ways = []
    for group, frames, own in zip(groups, stacks, names, strict=True):
        alike = [others for others in names if others is not own]
        at = 0
        while alike and at < len(own):
            alike = [others for others in alike if others[at : at + 1] == own[at : at + 1]]
            at += 1
        caller = place([frames[at - 1]])
        ways.append("" if alike or caller in group.place else f" through {caller}")
    return ways


def _depth(group: StackGroup) -> str:
    count = len(group.frames)
    frames = f"{count} frame{'s' if count > 1 else ''}"
    return f"over {frames}" if group.sample.outer else frames


def _kind(one: StackClass) -> str:
    """``dataloader``, or ``trainer pin_memory`` for another thread than its main one."""
    parts = (one.role, one.process_type, "" if one.thread == MAIN_THREAD else one.thread)
    return " ".join(dict.fromkeys(shortened(part, LONGEST_KIND) for part in parts if part))


def _telling(one: StackClass) -> list[StackGroup]:
    return [group for group in one.groups if group.minority and group.activity != "idle"]


def _untold(one: StackClass, classes: list[StackClass]) -> bool:
    """Whether some of these threads stand apart and the lines of those that train do not tell so."""
    told = [group for main in classes if main.is_main for group in main.groups[:SHOWN_PLACES] if group.minority]
    return any(
        one.thread != MAIN_THREAD or not any(set(group.ranks) <= set(main.ranks) for main in told)
        for group in _telling(one)
    )


def _helpers(group: StackGroup, own: StackClass, classes: list[StackClass]) -> str:
    """Where the other processes of ranks that stand apart are, if they are where no other rank's are."""
    if not group.minority:
        return ""
    ranks = set(group.ranks)
    found = [
        f"its {shortened(one.process_type, LONGEST_KIND)} in {other.place}"
        for one in classes
        if one.role == own.role and one.process_type != own.process_type and one.thread == MAIN_THREAD
        for other in one.groups
        if set(other.ranks) <= ranks
    ]
    told = [f", {words}" for words in dict.fromkeys(found[:SHOWN_HELPERS])]
    more = f" and {len(found) - SHOWN_HELPERS} more" if len(found) > SHOWN_HELPERS else ""
    return "".join(told) + more


def _ranks(ranks: Collection[int]) -> str:
    """Ranks in a sentence; of very many that follow no rule their number and the first of them."""
    words = said_ranks(ranks)
    if len(words) <= LONGEST_RANGES:
        return words
    first = rank_ranges(ranks)[:LONGEST_RANGES].rpartition(",")[0]
    return f"{len(set(ranks))} ranks ({first},…)"
