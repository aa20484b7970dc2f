"""Simulated slow jobs as what their processes write, and what the whole pipeline makes of it."""

from __future__ import annotations

import random

from simulated_slowness import PAUSE_STEPS, Scene, played
from streams_support import SECOND, Script, agent, at, pid_of, records, run, written_log

from schemas.events import Heartbeat, Metric, Topology
from schemas.identity import Identity
from schemas.results import Incident

JOB = "slow"
SAMPLE_S = 4
GIB = 2.0**30
LAYOUT = (
    "using world size: {world}, data-parallel size: {data}, context-parallel size: 1, "
    "tensor-model-parallel size: {tensor}, pipeline-model-parallel size: {stages}"
)


def node_of(scene: Scene, rank: int) -> str:
    return f"node{rank // scene.per_node:02d}"


def worker(scene: Scene, rank: int) -> Identity:
    return Identity(
        job=JOB,
        attempt="0",
        node=node_of(scene, rank),
        rank=rank,
        local_rank=rank % scene.per_node,
        role=scene.role(rank),
    )


def printed(scene: Scene) -> Script:
    """What the job's processes print, and what samplers of its nodes measure."""
    script = Script(JOB)
    ranks = scene.shape.ranks
    for rank in ranks:
        topology = Topology(time=at(0.2), pid=pid_of(rank), world_size=len(ranks))
        script.send(worker(scene, rank), topology)
        script.log(worker(scene, rank), 0.3, f"[rank {rank}] starting, world size: {len(ranks)}")
    if scene.layout:
        shape = scene.shape
        told = LAYOUT.format(world=len(ranks), data=shape.data, tensor=shape.tensor, stages=shape.stages)
        script.log(worker(scene, 0), 0.4, told)
    second = 2.0
    for number, step in enumerate(played(scene), 1):
        whole = max(one.total for one in step.values())
        second += whole / 1000
        for rank, one in step.items():
            if rank in scene.lost:
                continue
            text = (
                f"step {number} timers (ms): forward_compute {one.compute:.1f} data_load {one.data:.2f} "
                f"p2p_wait {one.p2p:.1f} allreduce_wait {one.reduce:.1f}"
            )
            script.log(worker(scene, rank), second + 0.01, text, number)
        line = f"iteration {number:8d}/ 9999 | elapsed time per iteration (ms): {whole:.1f} | lm loss: {5:.4E} |"
        script.log(worker(scene, 0), second + 0.02, line, number)
        if scene.kind == "pauses" and number % PAUSE_STEPS == PAUSE_STEPS - 1:
            script.log(worker(scene, 0), second + 0.03, f"saving checkpoint at iteration {number:7d} to /checkpoints")
            saved = f"  successfully saved checkpoint from iteration {number:7d} to /checkpoints"
            script.log(worker(scene, 0), second + 8, saved)
    _sampled(scene, script, int(second))
    return script


def _sampled(scene: Scene, script: Script, last: int) -> None:
    dice = random.Random(scene.seed + 2)
    for second in range(1, last, SAMPLE_S):
        for rank in scene.shape.ranks:
            grown = 0.005 * second if rank == scene.leaks else 0.0
            measured = {
                "cpu_percent": ("percent", 95 + dice.gauss(0, 1)),
                "rss_bytes": ("bytes", GIB * (4 + 0.002 * dice.random() + grown)),
                "power_watts": ("W", 500 + dice.gauss(0, 5)),
            }
            if scene.leaks is not None:
                # Minutes of growth are a finding only where they cannot go on for long.
                measured["memory_limit_bytes"] = ("bytes", 8.0 * GIB)
            for name, (unit, value) in measured.items():
                metric = Metric(time=at(second + 0.3), name=name, value=value, unit=unit, pid=pid_of(rank))
                script.send(worker(scene, rank), metric)
        for node in sorted({node_of(scene, rank) for rank in scene.shape.ranks}):
            pids = [pid_of(rank) for rank in scene.shape.ranks if node_of(scene, rank) == node]
            script.send(agent(JOB, node), Heartbeat(time=at(second) + SECOND // 2, pids=pids))


def judged(scene: Scene) -> list[Incident]:
    """All revisions of incidents of the job, in order."""
    log = written_log(printed(scene).recording)
    run(log)
    found: list[Incident] = records(log, "incidents")
    return sorted(found, key=lambda one: (one.published, one.id, one.revision))
