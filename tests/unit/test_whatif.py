"""Played steps: what they lose, and to whom or what, on jobs of which that is known."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from traced_job import TracedJob, Work, even, heavy_last, lengths, shaky, slow_worker

from schemas.events import Timeline
from streams.whatif import Player, WhatIf, what_if
from streams.whatif_cause import Cause, Limits, cause_of, slow_workers
from streams.whatif_tensor import NoTrace, Place

LIMITS = Limits()


def by_place(job: TracedJob) -> dict[int, dict[Place, Timeline]]:
    places = job.places()
    return {step: {places[rank]: one for rank, one in own.items()} for step, own in job.timelines().items()}


def judged(job: TracedJob) -> tuple[WhatIf, list[Place], Cause | None]:
    player = Player(by_place(job))
    result = what_if(player)
    slow = slow_workers(player, result, LIMITS)
    return result, slow.places, cause_of(result, slow, LIMITS)


@pytest.mark.parametrize(
    ("work", "shape", "cause", "places"),
    [
        (even(), (4, 2), None, []),
        (even(), (1, 1), None, []),
        (slow_worker(0, 3), (4, 1), Cause.WORKERS, [(0, 3)]),
        (slow_worker(1, 1), (4, 2), Cause.WORKERS, [(1, 1)]),
        (slow_worker(3, 0), (2, 4), Cause.WORKERS, [(3, 0)]),
        (slow_worker(0, 0, 1.5), (8, 4), Cause.WORKERS, [(0, 0)]),
        (slow_worker(1, 0), (1, 4), Cause.ONE_REPLICA, []),
        (heavy_last(4), (1, 4), Cause.ONE_REPLICA, []),
        (heavy_last(4), (2, 4), Cause.STAGES, []),
        (heavy_last(2), (8, 2), Cause.STAGES, []),
        (lengths(), (8, 1), Cause.LENGTHS, []),
        (lengths(), (4, 4), Cause.LENGTHS, []),
        (shaky(), (4, 4), Cause.VARIATION, []),
    ],
)
def test_what_is_wrong_is_told_by_its_cause(
    work: Work, shape: tuple[int, int], cause: Cause | None, places: list[Place]
) -> None:
    _, found, told = judged(TracedJob(work=work, dp=shape[0], pp=shape[1]))
    assert told == cause
    assert found == places or cause is not Cause.WORKERS


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_more_workers_are_named_than_it_takes(count: int) -> None:
    slow = {(0, 1), (1, 2), (1, 5)}
    chosen = sorted(slow)[:count]

    def work(step: int, stage: int, replica: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, stage, replica, number)
        scale = 2.0 if (stage, replica) in chosen else 1.0
        return forward * scale, backward * scale

    _, found, cause = judged(TracedJob(work=work, dp=8, pp=2))
    assert (sorted(found), cause) == (chosen, Cause.WORKERS)


def test_when_too_many_are_slow_none_of_them_is() -> None:
    def work(step: int, stage: int, replica: int, number: int) -> tuple[float, float]:
        scale = 2.0 if replica < 3 else 1.0
        return 0.1 * scale, 0.2 * scale

    _, found, cause = judged(TracedJob(work=work, dp=8, pp=1))
    assert (found, cause) == ([], Cause.SEVERAL)


def test_a_worker_that_is_slow_by_the_luck_of_few_steps_is_not_named() -> None:
    for seed in range(40):
        scale = {key: 1 + 2 * random.Random(f"{seed}{key}").random() ** 3 for key in range(200)}

        def work(
            step: int, stage: int, replica: int, number: int, scale: dict[int, float] = scale
        ) -> tuple[float, float]:
            length = scale[(step * 31 + replica * 7 + number) % 200]
            return 0.1 * length, 0.2 * length

        _, found, cause = judged(TracedJob(work=work, dp=2, pp=2, steps=3, microbatches=2))
        assert (found if cause is Cause.WORKERS else []) == [], seed


@pytest.mark.parametrize(
    ("dp", "steps", "microbatches", "named"),
    [(4, 3, 1, False), (4, 5, 1, False), (4, 6, 1, True), (4, 3, 2, True), (2, 4, 2, False)],
)
def test_without_any_deviation_it_takes_so_many_steps_that_longer_inputs_cannot_be_why(
    dp: int, steps: int, microbatches: int, named: bool
) -> None:
    """Where lengths come in buckets a worker can have the longer one in a few steps, and the others never."""
    job = TracedJob(work=slow_worker(0, 1, 2.0), dp=dp, pp=1, steps=steps, microbatches=microbatches)
    player = Player(by_place(job))
    found = slow_workers(player, what_if(player), LIMITS)
    assert (found.places, found.unsure) == (([(0, 1)], []) if named else ([], [(0, 1)]))


def test_of_few_steps_the_deviation_is_that_of_all_workers() -> None:
    """One worker's steps may be alike by chance; those of the others show by how much steps differ."""
    long = {1: (2, 2, 2, 2, 2, 2, 2), 0: (1, 1, 3, 1, 1, 1, 1), 2: (1, 4, 1, 1, 1, 1, 1), 3: (1, 1, 1, 1, 4, 1, 1)}

    def work(step: int, stage: int, replica: int, number: int) -> tuple[float, float]:
        return 0.1 * long[replica][step % 7], 0.2 * long[replica][step % 7]

    player = Player(by_place(TracedJob(work=work, dp=4, pp=1, steps=7, microbatches=16)))
    found = slow_workers(player, what_if(player), LIMITS)
    assert (found.places, found.unsure) == ([], [(0, 1)])


def untimed(found: dict[int, dict[Place, Timeline]], share: float, only: Place | None = None) -> int:
    """Takes the times of so many operations away, of one worker or of all; returns of how many."""
    chance, taken = random.Random(5), 0
    for step, own in sorted(found.items()):
        for place, one in sorted(own.items()):
            if only in (None, place):
                bad = [at for at in range(len(one.operations)) if chance.random() < share]
                durations = [0 if at in bad else took for at, took in enumerate(one.durations)]
                found[step][place] = msgspec.structs.replace(one, durations=durations, untimed=bad)
                taken += len(bad)
    return taken


def test_operations_without_a_time_cost_only_themselves() -> None:
    steps = by_place(TracedJob(work=slow_worker(1, 1), dp=4, pp=2, steps=12))
    whole = what_if(Player(steps))
    taken = untimed(steps, 0.002)
    player = Player(steps)
    result = what_if(player)
    assert (result.untimed, result.steps) == (taken, whole.steps)
    assert taken > 4
    assert result.slowdown == pytest.approx(whole.slowdown, rel=0.01)
    assert (result.m_w, result.m_s) == pytest.approx((whole.m_w, whole.m_s), abs=0.02)
    assert slow_workers(player, result, LIMITS).places == [(1, 1)]


def test_more_of_them_cost_the_step_or_the_workers_step() -> None:
    steps = by_place(TracedJob(work=even(), dp=4, pp=2, steps=12))
    untimed(steps, 0.08)
    with pytest.raises(NoTrace, match="more than 1% of the operations of each step have no time"):
        Player(steps)
    steps = by_place(TracedJob(work=even(), dp=16, pp=2, steps=12))
    untimed(steps, 0.4, (3, 1))
    result = what_if(Player(steps))
    assert (len(result.replicas), result.replicas_aside) == (15, 1)


def test_a_slow_worker_that_lacks_every_other_step_is_found_by_the_rest() -> None:
    """Without its replica the others would seem to wait for communication."""
    steps = by_place(TracedJob(work=slow_worker(1, 1), dp=4, pp=2, steps=12))
    for step in steps:
        if step % 2:
            del steps[step][1, 1]
    player = Player(steps)
    result = what_if(player)
    assert (len(result.steps), result.left_aside, result.replicas_aside) == (6, 6, 0)
    assert slow_workers(player, result, LIMITS).places == [(1, 1)]


def test_time_between_operations_is_no_part_of_a_played_step() -> None:
    plain, _, _ = judged(TracedJob(work=even()))
    result, found, cause = judged(TracedJob(work=even(), gap_s=0.1))
    assert (found, cause) == ([], Cause.BETWEEN)
    assert result.played_s == pytest.approx(plain.played_s, rel=1e-3)
    assert result.launch_slowdown > 1.2


def test_a_step_of_a_job_without_gaps_is_played_as_it_was_traced() -> None:
    for work in (even(), slow_worker(1, 1), lengths(), heavy_last(2)):
        result, _, _ = judged(TracedJob(work=work, dp=4, pp=2))
        assert result.launch_slowdown == pytest.approx(1, abs=0.004)


@pytest.mark.parametrize("chunks", [2, 3])
def test_stages_with_several_parts_of_the_model_are_played_as_they_were_traced(chunks: int) -> None:
    for pp in (1, 2, 4):
        job = TracedJob(work=slow_worker(pp - 1, 1), dp=3, pp=pp, chunks=chunks)
        result, found, cause = judged(job)
        assert (found, cause) == ([(pp - 1, 1)], Cause.WORKERS)
        assert result.launch_slowdown == pytest.approx(1, abs=0.02)


def test_the_gains_of_a_slow_worker_are_those_of_its_arithmetic() -> None:
    """One replica of one stage without a pipeline: a step is its slowest worker's work and what is shared."""
    result, _, _ = judged(TracedJob(work=slow_worker(0, 1, 2.0), dp=4, pp=1, microbatches=10))
    work = np.median(result.work, axis=0)[0]
    shared = result.played_s - work.max()
    assert work[1] / work[0] == pytest.approx(2, rel=0.05)
    assert result.ideal_s == pytest.approx(shared + work.mean(), rel=0.01)
    assert result.of_replica[1] == pytest.approx(result.slowdown, rel=0.01)
    assert result.m_w == pytest.approx(1, abs=0.05)
    shares = msgspec.to_builtins(result.shares)
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_ranks_names_and_steps_decides_nothing(seed: int) -> None:
    job = TracedJob(work=slow_worker(1, 2), dp=4, pp=2)
    shuffled = random.Random(seed)
    steps = list(by_place(job).items())
    shuffled.shuffle(steps)
    mixed: dict[int, dict[Place, Timeline]] = {}
    for step, own in steps:
        places = list(own)
        shuffled.shuffle(places)
        mixed[step] = {place: renamed(own[place], shuffled) for place in places}
    one, other = what_if(Player(by_place(job))), what_if(Player(mixed))
    assert np.array_equal(one.work, other.work)
    plain = [
        {name: getattr(found, name) for name in WhatIf.__struct_fields__ if name != "work"} for found in (one, other)
    ]
    assert plain[0] == plain[1]


def renamed(found: Timeline, chance: random.Random) -> Timeline:
    names = list(found.names)
    chance.shuffle(names)
    return msgspec.structs.replace(
        found, names=names, operations=[names.index(found.names[at]) for at in found.operations]
    )


def test_permuted_replicas_permute_the_answer() -> None:
    for replica in range(4):
        _, found, _ = judged(TracedJob(work=slow_worker(1, replica), dp=4, pp=2))
        assert found == [(1, replica)]


def cut(found: Timeline, count: int) -> Timeline:
    columns = ("operations", "starts", "durations", "microbatches", "chunks")
    return msgspec.structs.replace(found, **{name: getattr(found, name)[:count] for name in columns})


def test_steps_that_follow_another_schedule_are_left_aside() -> None:
    steps = by_place(TracedJob(work=slow_worker(1, 1), dp=4, pp=2, steps=6))
    steps[12][1, 1] = cut(steps[12][1, 1], 9)
    del steps[13][0, 0]
    result = what_if(Player(steps))
    assert (result.steps, result.left_aside, result.replicas_aside) == ([10, 11, 14, 15], 2, 0)


def test_a_replica_that_was_not_traced_at_all_stages_is_left_aside() -> None:
    steps = by_place(TracedJob(work=slow_worker(1, 1), dp=4, pp=2))
    for own in steps.values():
        del own[3, 0]
    result = what_if(Player(steps))
    assert (result.replicas, result.replicas_aside, result.left_aside) == ([0, 1, 2], 1, 0)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda own: {place: one for place, one in own.items() if place[1] != 1}, "only 0, 2 were traced"),
        (lambda own: {place: one for place, one in own.items() if place[1] != 2}, "neither sends nor receives"),
        (lambda own: {(0, 0): own[0, 0], (1, 1): own[1, 1]}, "no step was traced"),
        (lambda own: {place: cut(one, 8) for place, one in own.items()}, "neither sends nor receives"),
        (lambda own: {}, "no step was traced"),
    ],
)
def test_what_fits_no_schedule_is_refused_with_the_reason(spoil: object, reason: str) -> None:
    steps = by_place(TracedJob(work=even(), dp=2, pp=3))
    with pytest.raises(NoTrace, match=reason):
        Player({step: spoil(own) for step, own in steps.items()})  # type: ignore[operator]


def test_timelines_of_nothing_or_of_no_time_are_no_error() -> None:
    nothing = Timeline(time=1, names=[], operations=[], starts=[], durations=[])
    idle = Timeline(time=1, names=["forward-compute"], operations=[0], starts=[2**62], durations=[0])
    with pytest.raises(NoTrace, match="no operation"):
        Player({1: {(0, 0): nothing, (1, 0): nothing}})
    result = what_if(Player({step: {(0, 0): idle, (1, 0): idle} for step in (1, 2)}))
    assert (result.slowdown, result.m_w) == (1.0, 0.0)
