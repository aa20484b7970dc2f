"""What staff do first about an incident."""

from __future__ import annotations

from schemas.results import Scope, Symptom
from streams.incidents.decision import Decision, Reason

_NEXT = {
    "data": "look at the suspect's data loader and the storage that its shard lies on",
    "checkpoint": "look at the checkpoint storage as the suspect's node sees it",
    "memory": "look at the suspect's memory use and the kernel log of its node for an out-of-memory kill",
    "hardware": "drain the suspect's node and run its hardware checks before it is used again",
    "compute": "compare the suspect's clocks, temperature and host load with its peers', then move it to another node",
    "configuration": "check the launch configuration: every rank reads the same",
    "network": "look at the network between the nodes that lost each other",
    "code": "read the suspect's traceback; its peers only lost it",
    "collectives": "compare the collectives of the suspect's code at that iteration, and their sizes, with its peers'",
}

_NEXT_OF_NOBODY: dict[Symptom, str] = {
    "numerics": "check data and learning rate around the onset; per-rank losses before the reduction would tell who",
    "slowdown": "compare input lengths and stages before any hardware; nobody is to be moved on this evidence",
    "memory": "look for what the job keeps from step to step, and compare the memory of all ranks",
    "hang": "take stacks and flight-recorder dumps of all ranks at once; the missing ones matter most",
}


def next_step(decision: Decision, scope: Scope) -> str:
    """What staff do first, in one sentence."""
    if decision.places and not decision.suspects and decision.reason is not Reason.DEVICE_MEMORY_GROWS:
        where = f"node {', '.join(scope.nodes)}" if scope.nodes else "the nodes"
        more = "run its hardware checks" if decision.area == "hardware" else "compare it with the other nodes"
        return f"read the kernel log of {where} around the onset and {more} before it is used again"
    if not decision.suspects and decision.area != "configuration":
        return _NEXT_OF_NOBODY.get(decision.symptom, _NEXT_OF_NOBODY["hang"])
    if scope.kind == "node":
        return f"look at host, storage, PCIe and loader of node {scope.name}"
    area = "collectives" if (decision.symptom, decision.area) == ("hang", "code") else decision.area
    return _NEXT.get(area, "take stacks of the suspect and one of its peers and compare them")
