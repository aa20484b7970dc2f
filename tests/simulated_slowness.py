"""A small model of a training job whose steps take time: what its ranks print of them when something is slow.

A step of a replica takes as long as its slowest stage, and the job's as long as its slowest replica; who works less
waits. Ranks of a tensor-parallel group wait for each other inside of what they call compute.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import exp
from typing import Literal

import msgspec
from detection_support import JOB, at, identity
from simulated_job import Shape

from schemas.ids import stable_id
from schemas.results import Incident, Series, Window
from streams.config import StreamConfig
from streams.detectors.timer_drift import TimerDrift
from streams.stages.jobs import JobKeeper, JobState

Kind = Literal[
    "nothing",
    "slow rank",
    "slow now and then",
    "slow trend",
    "slow loader",
    "slow node",
    "stage by design",
    "stage grows",
    "turns",
    "lengths",
    "moves",
    "long replica",
    "first rank",
    "synchronised",
    "units",
    "replica grows",
    "roles",
    "slow in its role",
    "routed",
    "pauses",
    "leaves",
    "two nodes",
    "older node",
    "half older",
    "loader process",
]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]
PLAIN: tuple[Kind, ...] = ("slow rank", "slow loader", "slow node", "slow trend")
"""What is to be named where it is big and all is seen."""
WINDOW_S = 10.0
PER_NODE = 4
PAUSE_STEPS = 25
ROLES = ("actor", "critic", "reference")
WORK_OF_ROLES = {"rollout": 1.0, "actor": 0.6, "critic": 0.4, "reference": 0.2}


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A job and what happens to it. ``factor`` is how many times as long it takes, from step ``begin`` on.

    ``lost`` are ranks without timers, ``late`` ranks whose windows come one later; each value is missing with
    probability ``gaps``; ``joined`` is the first step of the last rank, ``left`` its last one. ``slowed`` is from which
    step on all ranks take a third longer, ``leaks`` whose memory grows, ``step_s`` about how long a step takes.
    """

    shape: Shape
    kind: Kind
    rank: int
    factor: float
    begin: int
    seed: int
    steps: int = 140
    noise: float = 0.04
    layout: bool = True
    lost: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()
    gaps: float = 0.0
    joined: int = 0
    left: int = 1 << 30
    per_node: int = PER_NODE
    slowed: int = 1 << 30
    leaks: int | None = None
    step_s: float = 0.4

    def on_its_node(self, rank: int) -> bool:
        """Whether a rank is on the node of the chosen one."""
        return rank // self.per_node == self.rank // self.per_node

    def role(self, rank: int) -> str:
        """What the rank does in a job of reinforcement learning; there replicas have parts of their own."""
        if self.kind not in ("roles", "slow in its role"):
            return ""
        data = self.shape.at(rank)[1]
        return "rollout" if 2 * data < self.shape.data else ROLES[data % len(ROLES)]

    @property
    def guilty(self) -> set[int]:
        """Who may be named."""
        if self.kind in ("slow node", "two nodes", "older node"):
            return {rank for rank in self.shape.ranks if self.on_its_node(rank)}
        if self.kind == "loader process":
            return {self.rank}
        if self.kind in ("slow rank", "slow now and then", "slow trend", "slow loader", "moves", "slow in its role"):
            return set(self.shape.members(self.shape.group("tp", self.rank)))
        if self.kind in ("long replica", "replica grows") and self.shape.stages == 1:
            # It looks like a slow rank, or a slow group, that nothing tells from it.
            return set(self.shape.members(self.shape.group("tp", self.rank)))
        return set()

    def is_slow(self, dice: random.Random, step: int, rank: int) -> bool:
        """Whether something makes the rank slow in this step."""
        data, stage = self.shape.at(rank)[1:]
        ranks, on = len(self.shape.ranks), step >= self.begin
        chosen: dict[Kind, bool] = {
            "slow rank": on and rank == self.rank,
            "slow loader": on and rank == self.rank,
            "slow trend": on and rank == self.rank,
            "slow now and then": on and rank == self.rank and dice.random() < 0.75,
            "slow node": on and self.on_its_node(rank),
            "two nodes": on and self.on_its_node(rank),
            "older node": self.on_its_node(rank),
            "half older": rank // self.per_node % 2 == 0,
            "slow in its role": on and rank == self.rank,
            "replica grows": on and data == self.shape.at(self.rank)[1],
            "pauses": rank == 0 and step % PAUSE_STEPS == PAUSE_STEPS - 1,
            "stage by design": stage == self.shape.stages - 1,
            "stage grows": on and stage == self.shape.stages - 1,
            "turns": rank == (step * 7 + step // 5) % ranks,
            "moves": on and rank == (self.rank + 3 * ((step - self.begin) // 45)) % ranks,
            "long replica": data == self.shape.at(self.rank)[1],
            "first rank": rank == 0,
            "synchronised": on,
        }
        return chosen.get(self.kind, False)

    def work(self, dice: random.Random, step: int, rank: int) -> tuple[float, float]:
        """How many times as long compute and loading take."""
        usual = WORK_OF_ROLES.get(self.role(rank), 1.0)
        if not self.is_slow(dice, step, rank):
            return usual, 1.0
        if self.kind == "slow in its role":
            return usual * self.factor, 1.0
        if self.kind == "slow loader":
            return 1.0, 1 + 10 * (self.factor - 1)
        grown = 1 + 0.02 * (step - self.begin) if self.kind == "slow trend" else self.factor
        return min(grown, self.factor), 1.0


class Step(msgspec.Struct, frozen=True):
    """One step of one rank (ms)."""

    data: float
    compute: float
    p2p: float
    reduce: float
    total: float


def played(scene: Scene) -> list[dict[int, Step]]:
    """All steps, by rank."""
    dice = random.Random(scene.seed)
    shape = scene.shape
    found = []
    routed = dict.fromkeys(shape.ranks, 0.0)
    for step in range(scene.steps):
        if scene.kind == "routed":
            # Experts come into favour and fall out of it again, each for some ten steps.
            routed = {rank: 0.9 * log + dice.gauss(0, 0.13 * (scene.factor - 1)) for rank, log in routed.items()}
        lengths = {copy: dice.lognormvariate(0, 0.35) if scene.kind == "lengths" else 1.0 for copy in range(shape.data)}
        work = {}
        for rank in shape.ranks:
            compute, loading = scene.work(dice, step, rank)
            grown = (
                1000
                * scene.step_s
                * compute
                * (4 / 3 if step >= scene.slowed else 1)
                * lengths[shape.at(rank)[1]]
                * exp(routed[rank])
            )
            work[rank] = (
                20.0 * loading * dice.lognormvariate(0, 2 * scene.noise),
                grown * dice.lognormvariate(0, scene.noise),
            )
        together = {
            rank: max(work[other][1] for other in shape.members(shape.group("tp", rank))) for rank in shape.ranks
        }
        own = {rank: work[rank][0] + together[rank] for rank in shape.ranks}
        replica = {
            rank: max(own[r] for r in shape.ranks if shape.at(r)[1] == shape.at(rank)[1]) for rank in shape.ranks
        }
        paused = scene.kind == "pauses" and step % PAUSE_STEPS == PAUSE_STEPS - 1
        whole = max(replica.values()) + (9000 if paused else 15)
        found.append(
            {
                rank: Step(work[rank][0], together[rank], replica[rank] - own[rank], whole - replica[rank], whole)
                for rank in shape.ranks
            }
        )
    return found


def windows_of(scene: Scene) -> Iterator[tuple[int, list[Window]]]:
    """The windows as the rank stage would sum them up, in order, by end."""
    dice = random.Random(scene.seed + 1)
    time, rows = 2.0, []
    for number, step in enumerate(played(scene), 1):
        time += max(one.total for one in step.values()) / 1000
        rows.append((number, time, step))
    drifts = {rank: TimerDrift() for rank in scene.shape.ranks}
    held: dict[int, Window] = {}
    for window in range(int(time // WINDOW_S) + 1):
        start = window * WINDOW_S
        within = [row for row in rows if start <= row[1] < start + WINDOW_S]
        found = []
        for rank in scene.shape.ranks:
            mine = [row for row in within if rank != scene.shape.ranks[-1] or scene.joined < row[0] <= scene.left]
            summary = _summary(scene, dice, rank, start, mine, drifts[rank])
            if rank in scene.late:
                summary, held[rank] = held.get(rank, _summary(scene, dice, rank, start, [], drifts[rank])), summary
            found.append(msgspec.structs.replace(summary, start=at(start), end=at(start + WINDOW_S)))
            if scene.kind == "loader process":
                found.append(_of_loader(scene, dice, rank, start, mine))
        yield at(start + WINDOW_S), found


def _summary(
    scene: Scene,
    dice: random.Random,
    rank: int,
    start: float,
    rows: list[tuple[int, float, dict[int, Step]]],
    drift: TimerDrift,
) -> Window:
    shape = scene.shape
    series: list[Series] = []
    in_seconds = scene.kind == "units" and rank % 3 == 0
    for name in ("data", "forward_compute", "p2p_wait", "allreduce", "total"):
        if not rows or (rank in scene.lost and name != "total"):
            continue
        field = {"forward_compute": "compute", "p2p_wait": "p2p", "allreduce": "reduce"}.get(name, name)
        values = [getattr(step[rank], field) for _, _, step in rows]
        series.append(
            Series(
                name=f"{name}_s" if in_seconds else f"{name}_ms",
                iterations=[number for number, _, _ in rows],
                times=[at(time) for _, time, _ in rows],
                values=[
                    None if dice.random() < scene.gaps else value / 1000 if in_seconds else value for value in values
                ],
            )
        )
    layout = {"world": len(shape.ranks), "tp": shape.tensor, "dp": shape.data, "pp": shape.stages, "cp": 1}
    last = rows[-1] if rows else None
    return Window(
        id=stable_id("window", rank, at(start)),
        identity=identity(rank, scene.per_node, role=scene.role(rank)),
        start=at(start),
        end=at(start + WINDOW_S),
        phase="train",
        last_log=at(start + 9),
        world_size=len(shape.ranks),
        layout=layout if scene.layout else {},
        iteration=last[0] if last else None,
        iteration_time=at(last[1]) if last else None,
        series=sorted(series, key=lambda one: one.name),
        drifts=drift.observe(series),
    )


def _of_loader(
    scene: Scene, dice: random.Random, rank: int, start: float, rows: list[tuple[int, float, dict[int, Step]]]
) -> Window:
    """What the rank's own loader says, which is a process of its own."""
    slow = {number: scene.factor if rank == scene.rank and number > scene.begin else 1.0 for number, _, _ in rows}
    fetched = Series(
        name="fetch_ms",
        iterations=[number for number, _, _ in rows],
        times=[at(time) for _, time, _ in rows],
        values=[300.0 * slow[number] * dice.lognormvariate(0, scene.noise) for number, _, _ in rows],
    )
    return Window(
        id=stable_id("window", rank, at(start), "loader"),
        identity=identity(rank, scene.per_node, process_type="dataloader"),
        start=at(start),
        end=at(start + WINDOW_S),
        series=[fetched] if rows else [],
    )


def told(scene: Scene) -> list[Incident]:
    """All revisions of incidents."""
    keeper = JobKeeper(JobState(job=JOB), StreamConfig())
    return [
        one.record
        for end, found in windows_of(scene)
        for one in keeper.close(end, found, unavailable=False)
        if isinstance(one.record, Incident)
    ]


SHAPES = (
    Shape(1, 8, 1),
    Shape(1, 4, 3),
    Shape(2, 4, 2),
    Shape(4, 4, 1),
    Shape(1, 16, 2),
    Shape(1, 2, 4),
    Shape(1, 2, 1),
)


def drawn(seed: int, kind: Kind | None = None, *, clear: bool = False) -> Scene:
    """A job of any shape to which anything happens; ``clear``: something big, of which all is seen."""
    dice = random.Random(seed)
    shape = dice.choice(SHAPES)
    ranks = list(shape.ranks)
    scene = Scene(
        shape=shape,
        kind=kind or dice.choice(KINDS),
        rank=dice.choice(ranks),
        factor=dice.uniform(1.6, 2.6) if clear else dice.uniform(1.05, 2.6),
        begin=dice.choice([40, 60]) if clear else dice.choice([0, 0, 30, 60, 100]),
        seed=seed,
        noise=dice.choice([0.02, 0.05]) if clear else dice.choice([0.01, 0.04, 0.1]),
        layout=dice.random() < 0.6,
    )
    if scene.kind == "two nodes":
        scene = msgspec.structs.replace(scene, shape=Shape(1, 4, 1), per_node=2, rank=scene.rank % 4)
        ranks = list(scene.shape.ranks)
    if scene.kind == "leaves":
        scene = msgspec.structs.replace(scene, left=scene.begin + 20)
    if scene.kind in ("roles", "slow in its role") and not scene.layout:
        # Who tells neither roles nor stages is not told apart.
        scene = msgspec.structs.replace(scene, layout=True)
    if clear or scene.kind == "moves":
        return scene
    return msgspec.structs.replace(
        scene,
        lost=frozenset(dice.sample(ranks, dice.choice([0, 0, 0, 1, len(ranks) // 3]))),
        late=frozenset(dice.sample(ranks, dice.choice([0, 0, 1]))),
        gaps=dice.choice([0.0, 0.0, 0.1, 0.4]),
        joined=dice.choice([0, 0, 40]),
    )
