"""The parallel groups, pipeline stages and worker groups that ranks belong to, as far as coordinates tell them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from schemas.identity import rank_ranges, shortened
from streams.view import AttemptView

LONGEST_NAME = 120
TENSOR = "tensor-parallel group of ranks"
"""How such a group is called, with its ranks behind."""


def ranks_on(view: AttemptView, node: str) -> frozenset[int]:
    """The ranks that are known to run on a node."""
    return _shared(view, "node", view.node_of).get(node, frozenset())


def stages_of(view: AttemptView, rank: int) -> tuple[int, ...]:
    """The pipeline stages that a rank holds, several where they are interleaved; empty where that is not known."""
    told = view.coordinates(rank).get("pp")
    return () if told is None else tuple(sorted(set(told))) if isinstance(told, list) else (told,)


def in_stage(view: AttemptView, ranks: Iterable[int]) -> tuple[tuple[int, ...], frozenset[int]]:
    """The stages that all these ranks have in common, and all ranks that hold one of them; empty where there are none.

    The only stage of a job is all of it, so it is none.
    """
    held = [set(stages_of(view, rank)) for rank in ranks]
    common = tuple(sorted(set.intersection(*held))) if held else ()
    everybody = _shared(view, "stages", lambda rank: ",".join(map(str, stages_of(view, rank))))
    if not common or len(everybody.keys() - {""}) < 2:
        return (), frozenset()
    members = [own for key, own in everybody.items() if key and set(common) & set(map(int, key.split(",")))]
    return common, frozenset().union(*members)


def said_stages(stages: Collection[int | str]) -> str:
    """``pipeline stage 1``, ``pipeline stages 0,2``."""
    return f"pipeline stage{'s' if len(stages) > 1 else ''} {','.join(map(str, stages))}"


def tensor_group(view: AttemptView, ranks: Collection[int]) -> str:
    """The name of the tensor-parallel group that these ranks are, where their coordinates prove it; else empty."""
    for own in _tensors(view).values():
        if own == set(ranks):
            return f"{TENSOR} {rank_ranges(own)}"
    return ""


def groups_of(view: AttemptView, ranks: Collection[int]) -> list[str]:
    """The names of all groups to which some of these ranks belong: worker group, stage, tensor, context, data, experts.

    Only groups that are not the whole job are told.
    """
    wanted = set(ranks)
    found = []
    for named, groups in _kinds(view):
        several = len(groups.keys() - {""}) > 1
        told = {key: own for key, own in groups.items() if key and several and not wanted.isdisjoint(own)}
        found += [
            shortened(named(key, told[key]), LONGEST_NAME) for key in sorted(told, key=lambda one: min(told[one]))
        ]
    return found


_Kind = tuple[Callable[[str, frozenset[int]], str], dict[str, frozenset[int]]]


def _kinds(view: AttemptView) -> Iterator[_Kind]:
    workers = {member.identity.group for member in view.members.values()} - {""}
    if workers:
        # A worker group is an attempt of its own, so it is told though nobody here is of another.
        yield (
            lambda key, _: f"worker group {key}",
            {**_shared(view, "group", lambda r: _worker_group(view, r)), "-": _NOBODY},
        )
    yield (
        lambda key, _: said_stages(key.split(",")),
        _shared(view, "stages", lambda rank: ",".join(map(str, stages_of(view, rank)))),
    )
    yield lambda _, own: f"{TENSOR} {rank_ranges(own)}", _tensors(view)
    yield lambda _, own: f"context-parallel group of ranks {rank_ranges(own)}", _contexts(view)
    yield lambda key, _: f"data-parallel replica {key}", _shared(view, "dp", lambda rank: _at(view, rank, ("dp",)))
    yield lambda key, _: f"expert group {key}", _shared(view, "ep", lambda rank: _at(view, rank, ("ep",)))


_NOBODY: frozenset[int] = frozenset()


def _tensors(view: AttemptView) -> dict[str, frozenset[int]]:
    """Tensor-parallel groups: ranks that differ in that coordinate alone; nothing where not all of it is known."""
    return _apart_in(view, "tp", ("pp", "dp", "cp", "ep"))


def _contexts(view: AttemptView) -> dict[str, frozenset[int]]:
    return _apart_in(view, "cp", ("pp", "dp", "tp", "ep"))


def _apart_in(view: AttemptView, axis: str, others: tuple[str, ...]) -> dict[str, frozenset[int]]:
    name = f"apart in {axis}"
    if name not in view.sharing:
        known = {rank: view.coordinates(rank) for rank in view.members}
        groups = _shared(view, f"{name}, all", lambda rank: _rest(known[rank], axis, others))
        view.sharing[name] = {
            key: own
            for key, own in groups.items()
            if key and 1 < len(own) == len({str(known[r].get(axis)) for r in own})
        }
    return view.sharing[name]


def _rest(at: dict[str, int | list[int]], axis: str, others: tuple[str, ...]) -> str:
    """All coordinates but one, empty where that or the replica is not known: then it tells no group."""
    if axis not in at or "dp" not in at:
        return ""
    return " ".join(f"{one}={at[one]}" for one in others if one in at)


def _worker_group(view: AttemptView, rank: int) -> str:
    return view.members[rank].identity.group


def _at(view: AttemptView, rank: int, axes: tuple[str, ...]) -> str:
    at = view.coordinates(rank)
    return " ".join(str(at.get(axis, 0)) for axis in axes) if axes[0] in at else ""


def _shared(view: AttemptView, name: str, key_of: Callable[[int], str]) -> dict[str, frozenset[int]]:
    """Ranks by a key, found once while nobody is another."""
    if name not in view.sharing:
        found: dict[str, set[int]] = {}
        for rank in view.members:
            found.setdefault(key_of(rank), set()).add(rank)
        view.sharing[name] = {key: frozenset(own) for key, own in found.items()}
    return view.sharing[name]
