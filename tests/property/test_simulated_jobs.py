"""Simulated jobs through the whole pipeline, with stacks and dumps of some ranks: nobody innocent is ever named."""

from __future__ import annotations

import random

import msgspec
import pytest
from simulated_job import Job, Wrong, drawn
from streams_support import BASE, WAITING, Script, at, pid_of, run, worker, written_log

from schemas.events import Frame, Log, Stack
from streams.report import revisions

SYNCHRONIZE = [
    *WAITING[:2],
    Frame("synchronize", "/venv/site-packages/torch/cuda/__init__.py", 1100),
]
OWN = [*WAITING[:2], Frame("tokenize", "/job/data.py", 14)]
HARD = (8, 314, 951, 978, 1276, 1452, 1930)
"""Of these it was once said that a rank without a stack is the one that is left, or that it waits for nobody."""


class Scene(msgspec.Struct, frozen=True):
    """A job and what was recorded of it: dumps and stacks of all ranks but these, and whether the layout is printed."""

    job: Job
    wrong: Wrong
    blocking: bool
    sends: bool
    timed: bool
    undumped: frozenset[int]
    unsampled: frozenset[int]
    layout: bool
    failed: random.Random

    @classmethod
    def of(cls, seed: int) -> Scene:
        """The scene of a seed. Where calls are ``blocking`` a rank waits where it calls, else for its device."""
        dice = random.Random(seed + 777)
        job = drawn(seed)
        (wrong,) = job.wrong.values()
        blocking = dice.random() < 0.5 and wrong.fault != "device stops"
        if blocking:
            job = Job(job.shape, wrong, ahead=1)
        sends, timed = dice.random() < (0.3 if blocking else 0.8), dice.random() < 0.3
        undumped = frozenset(_some(dice, job, (0, 0, 1, 2), 0.8))
        unsampled = frozenset(_some(dice, job, (0, 0, 1, 2, 3), 0.7))
        return cls(job, wrong, blocking, sends, timed, undumped, unsampled, dice.random() < 0.6, dice)

    def script(self) -> Script:
        """Eleven steps, then a standstill of fifty seconds."""
        ranks = self.job.shape.ranks
        script = Script("simulated")
        script.start(len(ranks))
        script.train(len(ranks), 1, 11)
        script.alive(len(ranks), 0, 62)
        if self.layout:
            script.send(worker("simulated", 0), Log(time=at(0.4), stream="stdout", text=self._sizes()))
        for second in range(20, 60, 5):
            for rank in ranks:
                self._sample(script, rank, second)
        for rank in sorted(set(ranks) - self.undumped):
            for event in self.job.recorded(rank, sends=self.sends, timed=self.timed, zero=BASE):
                script.send(worker("simulated", rank), event)
        return script

    def _sample(self, script: Script, rank: int, second: int) -> None:
        stopped = self.wrong.fault == "process stops" and rank == self.wrong.rank
        frames = OWN if stopped else WAITING if self.blocking else SYNCHRONIZE
        lost = rank in self.unsampled
        if lost and self.failed.random() >= 0.3:
            return
        sample = Stack(
            time=at(second + 0.7),
            process_type="trainer",
            pid=pid_of(rank),
            thread="MainThread",
            frames=[] if lost else frames,
            failure="timed out" if lost else "",
        )
        script.send(worker("simulated", rank), sample)

    def _sizes(self) -> str:
        shape = self.job.shape
        return (
            f"using world size: {len(shape.ranks)}, data-parallel size: {shape.data}, context-parallel size: 1, "
            f"hierarchical context-parallel sizes: None, tensor-model-parallel size: {shape.tensor}, "
            f"pipeline-model-parallel size: {shape.stages}"
        )


def _some(dice: random.Random, job: Job, counts: tuple[int, ...], share: float) -> list[int]:
    """A few of the ranks, or all of them."""
    some = dice.sample(job.shape.ranks, dice.choice(counts))
    return some if dice.random() < share else list(job.shape.ranks)


def named(scene: Scene) -> set[int | None]:
    """All ranks that any revision of any incident names."""
    log = written_log(scene.script().recording)
    run(log)
    return {suspect.rank for incident in revisions(log) for suspect in incident.suspects}


@pytest.mark.parametrize("seeds", [range(0, 30), range(30, 60), HARD], ids=["some", "more", "hard"])
def test_nobody_innocent_is_named(seeds: range | tuple[int, ...]) -> None:
    for seed in seeds:
        scene = Scene.of(seed)
        if scene.job.stands_still:
            assert named(scene) <= {scene.wrong.rank}, (seed, scene.wrong, scene.job.shape)


def test_where_everything_was_recorded_a_process_that_stops_is_named() -> None:
    found = 0
    for seed in range(200):
        scene = Scene.of(seed)
        if scene.wrong.fault == "process stops" and not scene.undumped and not scene.unsampled:
            assert named(scene) == {scene.wrong.rank}, seed
            found += 1
    assert found >= 5
