"""Who stands apart among many groups is what comparing all with all would find."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from detection_support import at

from schemas.results import CollectiveState
from streams.collectives import States, awaited, laggards, stopped, waits_of

OPERATIONS = ("all_reduce", "_all_gather_base", "broadcast", "send 0->1")


def state(group: str, draw: random.Random) -> CollectiveState:
    """A state whose numbers lie close together, so that ties and crossings are frequent."""
    enqueued = draw.randint(3, 6)
    completed = enqueued - draw.choice((0, 0, 1, 2))
    held = completed < enqueued and draw.random() < 0.8
    return CollectiveState(
        group=group,
        captured=at(35),
        ranks=[],
        last_enqueued=enqueued,
        last_completed=completed,
        operation=draw.choice(OPERATIONS),
        enqueued_at=at(draw.randint(1, 3)),
        outstanding=draw.random() < (0.9 if completed < enqueued else 0.1),
        only_sends=draw.random() < 0.05,
        oldest=completed + 1 if held else -1,
        oldest_operation=draw.choice(OPERATIONS) if held else "",
        oldest_shape=draw.choice(("F [8]", "F [9]")) if held else "",
        oldest_at=at(draw.randint(1, 3)) if held else 0,
    )


def states_of(seed: int) -> States:
    """Few ranks in few groups; in many of them most agree, as ranks of a program do."""
    draw = random.Random(seed)
    names = [f"group {number}" for number in range(draw.randint(1, 4))]
    alike = {name: state(name, draw) for name in names}
    found: States = {}
    for rank in range(draw.randint(1, 7)):
        mine = [name for name in names if draw.random() < 0.8]
        found[rank] = {name: alike[name] if draw.random() < 0.5 else state(name, draw) for name in mine}
    return found


def slow_stopped(states: States) -> dict[int, CollectiveState]:
    found: dict[int, CollectiveState] = {}
    for rank, groups in states.items():
        for own in sorted(groups.values(), key=lambda one: (one.oldest_at, one.group)):
            joint = own.oldest_operation.lstrip("_").startswith(("all_", "reduce_scatter", "barrier"))
            if own.oldest < 0 or own.only_sends or not joint:
                continue
            others = [groups[own.group] for peer, groups in states.items() if peer != rank and own.group in groups]
            if len(others) >= 2 and all(other.last_completed >= own.oldest for other in others):
                found.setdefault(rank, own)
    return found


def slow_laggards(states: States) -> dict[int, CollectiveState]:
    idle = {rank: groups for rank, groups in states.items() if not any(one.outstanding for one in groups.values())}
    found: dict[int, CollectiveState] = {}
    for waits in waits_of(states).values():
        for wait in waits:
            for rank, groups in idle.items():
                own = groups.get(wait.group)
                if own is not None and own.last_enqueued < awaited(wait)[0]:
                    found[rank] = min(found.get(rank, wait), wait, key=age)
    return found


def age(wait: CollectiveState) -> tuple[int, int, str]:
    return wait.oldest_at or wait.enqueued_at, wait.enqueued_at, wait.group


Apart = Callable[[States], dict[int, CollectiveState]]


@pytest.mark.parametrize(
    ("make", "fast", "slow", "least"),
    [
        (states_of, stopped, slow_stopped, 20),
        (states_of, laggards, slow_laggards, 200),
    ],
)
def test_many_states_give_what_comparing_all_with_all_gives(
    make: Callable[[int], States], fast: Apart, slow: Apart, least: int
) -> None:
    said = 0
    for seed in range(1500):
        states = make(seed)
        expected = slow(states)
        found = fast(states)
        assert found == expected, seed
        assert all(found[rank] is expected[rank] for rank in found), seed
        said += bool(expected)
    # Where nothing stands apart nothing is compared.
    assert said >= least
