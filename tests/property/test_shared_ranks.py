"""Ranks that are several things: two roles in turn in one process, or several pipeline stages at once."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from detection_support import closed, identity, new_view, summary
from disturbed import recorded, told_by
from simulated_job import Shape
from simulated_slow_logs import printed
from simulated_slowness import Kind, Scene
from streams_support import Script, hanging, run, worker, written_log

from producers.recording import Recording
from schemas.results import Incident
from streams.numerics import earliest_stage
from streams.report import dead_letters, revisions

RANKS = 8
WORK = {"actor": 300.0, "rollout": 400.0}
Roles = Callable[[int, int], str]


def judged(recording: Recording) -> list[Incident]:
    log = written_log(recording)
    run(log)
    assert dead_letters(log) == []
    return list(revisions(log))


def named(found: list[Incident]) -> list[list[int | None]]:
    """The ranks that each revision names."""
    return [[suspect.rank for suspect in one.suspects] for one in found]


def in_turn(rank: int, step: int) -> str:
    """Half of the ranks train while the others roll out, then the other way round."""
    return "actor" if (step // 20 % 2 == 1) ^ (rank < RANKS // 2) else "rollout"


def together(rank: int, step: int) -> str:
    """All ranks change their role every few steps."""
    return "actor" if step // 5 % 2 else "rollout"


def sharing(role_of: Roles, slow: int | None = None, steps: int = 130) -> Recording:
    """Ranks whose role changes, and with it their work; one may become slow as an actor."""
    script, dice = Script("shared"), random.Random(3)
    script.start(RANKS)
    for step in range(1, steps + 1):
        roles = {rank: role_of(rank, step) for rank in range(RANKS)}
        took = {rank: WORK[role] * dice.lognormvariate(0, 0.03) for rank, role in roles.items()}
        if slow is not None and step > 60 and roles[slow] == "actor":
            took[slow] *= 1.9
        longest = max(took.values())
        for rank, role in roles.items():
            text = (
                f"step {step} timers (ms): forward_compute {took[rank]:.1f} data_load 20.5 "
                f"allreduce_wait {longest - took[rank] + 5:.1f}"
            )
            script.log(worker("shared", rank, role=role), step + 0.5 + rank / 1000, text, step)
        line = f"iteration {step:8d}/ 500 | elapsed time per iteration (ms): {longest + 40:.1f} | lm loss: 2.0E+00 |"
        script.log(worker("shared", 0, role=roles[0]), step + 0.6, line, step)
    script.alive(RANKS, 0, steps)
    return script.recording


@pytest.mark.parametrize("roles", [in_turn, together])
def test_work_that_changes_with_the_role_is_nobodys_fault(roles: Roles) -> None:
    assert judged(sharing(roles)) == []


def test_who_is_slow_in_one_of_its_roles_is_held_against_those_that_have_it_then() -> None:
    found = named(judged(sharing(in_turn, slow=5)))
    assert [5] in found
    assert all(set(ranks) <= {5} for ranks in found)


def test_where_roles_change_too_fast_to_be_told_apart_nobody_else_is_named() -> None:
    assert all(set(ranks) <= {5} for ranks in named(judged(sharing(together, slow=5))))


def interleaved(recording: Recording) -> Recording:
    """The job as one of two ranks a replica, each of which holds two of four stages."""
    held = {rank: {"dp": rank % 4, "pp": [0, 2] if rank < 4 else [1, 3]} for rank in range(RANKS)}
    told = [
        one
        if one.identity.rank is None
        else msgspec.structs.replace(
            one, identity=msgspec.structs.replace(one.identity, coordinates=held[one.identity.rank])
        )
        for one in told_by(recording)
    ]
    return recorded(told, recording)


@pytest.mark.parametrize(
    ("kind", "ranks"), [("nothing", []), ("stage by design", []), ("stage grows", [[]]), ("slow rank", [[5]])]
)
def test_ranks_that_hold_several_stages_are_held_against_those_that_hold_the_same(
    kind: Kind, ranks: list[list[int | None]]
) -> None:
    scene = Scene(shape=Shape(1, 4, 2), kind=kind, rank=5, factor=1.9, begin=50, seed=1, steps=110, layout=False)
    assert named(judged(interleaved(printed(scene).recording))) == ranks


@pytest.mark.parametrize(("several", "ranks"), [(False, [5]), (True, [])])
def test_who_holds_several_stages_need_not_have_begun_what_goes_through_them(several: bool, ranks: list[int]) -> None:
    # Its other stage may have had it from one that another rank holds, which prints nothing of it.
    view = new_view()
    held = {rank: {"dp": rank % 4, "pp": [0, 2] if rank < 4 else [1, 3]} if several else {} for rank in range(RANKS)}
    view.update(closed(summary(rank, who=identity(rank, coordinates=held[rank])) for rank in range(RANKS)))
    assert earliest_stage(view, "lm_loss", [5], [4, 6, 7]) == ranks


def test_a_rank_that_holds_several_stages_is_named_for_a_hang() -> None:
    assert {tuple(ranks) for ranks in named(judged(interleaved(hanging().recording)))} == {(5,)}
