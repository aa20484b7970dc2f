"""What staff do first about an incident: by its place where that says where to look, else by what it is of."""

from __future__ import annotations

import re

from schemas.results import Scope, Symptom
from streams.groups import TENSOR
from streams.incidents.decision import Decision, Reason
from streams.incidents.scope import said_some
from streams.lines.vocabulary.xid import code_of

_OF_AREA = {
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

_OF_NOBODY: dict[Symptom, str] = {
    "numerics": "check data and learning rate around the onset; per-rank losses before the reduction would tell who",
    "slowdown": "compare input lengths and stages before any hardware; nobody is to be moved on this evidence",
    "memory": "look for what the job keeps from step to step, and compare the memory of all ranks",
    "hang": "take stacks and flight-recorder dumps of all ranks at once; the missing ones matter most",
    "crash": "read the first error of each rank, and look for what changed for all: code, configuration, data",
}
_GONE = "look whether the suspect's process still runs on {where}, and read its last lines and the kernel log"
_OF_END: dict[Reason, str] = {
    Reason.OWN_DEATH: "read the kernel log of {where} around the onset for what killed it, and its last lines",
    Reason.LEFT_EARLY: "read its last lines and its exit code: it ended without an error, and others wait for it",
    Reason.VANISHED: _GONE,
    Reason.SILENT_ONE: _GONE,
    Reason.PROCESS_STOPPED: "find out on {where} who stopped the suspect's process; it goes on once it is continued",
    Reason.ONE_NODE: "find out what ended the suspects on node {name}: kernel log, scheduler, a health check, a person",
}
"""Where the process of a suspect has ended or is stopped, and nothing tells of which side that is."""
_STANDS = "look at what the suspect waits for at the place where its stack shows it; its peers wait for it"
_ENDED = "read the suspect's last lines and how it ended: it is gone, so its stacks can no longer be taken"
_ALL_ENDED = (
    "read the first error of each rank; where they stood can no longer be seen, so have stacks and flight-recorder "
    "dumps taken before such a job is stopped"
)
_CODES = (
    "read the last lines of all ranks, first of those that ended first, and of their nodes: nobody said why it ended"
)
_TIMED_OUT = (
    "read the first error of each rank; take stacks and dumps at once of ranks that still run: whose process a timeout "
    "has ended can no longer be seen, so have flight-recorder dumps written when one times out"
)
_GPU_MEMORY = (
    "compare the suspect's GPU memory with its peers': batch and sequence lengths there, what it keeps from step to "
    "step, and what else uses that GPU; the kernel log tells nothing of it"
)
_KILLED_FOR_MEMORY = (
    "look at what used the memory of {where} before the kernel killed the suspect's process, and at the limit of its "
    "cgroup"
)
_GPU_OUT = re.compile(r"CUDA out of memory|HIP out of memory|\btorch\.(?:cuda\.)?OutOfMemoryError")
_KERNEL_KILL = re.compile(r"[Oo]ut of memory: Kill|oom-kill:constraint")
_FLEET = "look at what these jobs share: nodes, switches, storage, and what was changed for all of them"
_XID = re.compile(r"\bXid (?:\([^)\n]{1,40}\): |is )(\d{1,4})\b")
_ACTIONS = {
    "RESTART_APP": "restart the job",
    "RESTART_BM": "restart the node",
    "RESTART_VM": "restart the virtual machine",
    "RESET_GPU": "reset the GPU",
    "CONTACT_SUPPORT": "contact the vendor's support",
    "RESTART_FM": "restart the fabric manager",
}
_OF_STEPS = frozenset({"slowdown", "numerics"})


def next_step(decision: Decision, scope: Scope, *, ended: bool = False, timed_out: bool = False) -> str:
    """What staff do first, in one sentence; ``ended``: those whom it concerns no longer run, so no stacks are left.

    ``timed_out``: most ranks have failed by a timeout, which ends their processes unless it was told not to.
    """
    if decision.suspects or decision.area == "configuration":
        return _of_suspects(decision, scope, ended=ended)
    if decision.places and decision.reason is not Reason.DEVICE_MEMORY_GROWS:
        return _of_fault(decision, scope)
    if decision.reason is Reason.EXIT_CODE:
        return _CODES
    if decision.symptom == "hang" and ended:
        return _ALL_ENDED
    if decision.symptom == "hang" and timed_out:
        return _TIMED_OUT
    return _OF_NOBODY.get(decision.symptom, _OF_NOBODY["hang"])


def _of_suspects(decision: Decision, scope: Scope, *, ended: bool) -> str:
    """By the vendor, else by how they ended, else by their place, else by the side that it is of."""
    if action := _vendor_says(decision):
        return f"run the hardware checks of {_devices(scope)}; {action}"
    if decision.area == "unknown" and decision.reason in _OF_END:
        gone = ended and _OF_END[decision.reason] is _GONE
        return _OF_END[Reason.OWN_DEATH if gone else decision.reason].format(where=_of_nodes(scope), name=scope.name)
    if placed := _of_place(decision, scope):
        return placed
    if decision.area == "memory" and (known := _of_memory(decision, scope)):
        return known
    area = "collectives" if (decision.symptom, decision.area) == ("hang", "code") else decision.area
    return _OF_AREA.get(area) or _of_unknown(decision, ended=ended)


def _of_memory(decision: Decision, scope: Scope) -> str:
    """Where it is known whose memory was used up, the GPU's or the node's; empty where it is not."""
    said = [one.why for one in decision.suspects]
    if all(_GPU_OUT.search(why) for why in said):
        return _GPU_MEMORY
    if all(_KERNEL_KILL.search(why) for why in said):
        return _KILLED_FOR_MEMORY.format(where=_of_nodes(scope))
    return ""


def _of_unknown(decision: Decision, *, ended: bool) -> str:
    """Where nothing tells of which side it is: by what is known of the suspect."""
    if decision.symptom == "numerics":
        return "check the inputs and the device of the suspect around the onset: it shows it by itself"
    if decision.reason is Reason.OUTSIDE_COMMUNICATION:
        return _STANDS
    return _ENDED if ended else "take stacks of the suspect and one of its peers and compare them"


def _of_place(decision: Decision, scope: Scope) -> str:
    """Where to look by the place of those who are named; empty where it says less than what they did."""
    by_kind = {
        "node": f"look at host, storage, PCIe and loader of node {scope.name}",
        "switch": f"look at the links and the routing of switch {scope.name}, above nodes {said_some(scope.nodes)}",
        "nic": _of_port(scope),
        "fleet": _FLEET,
    }
    if scope.kind in by_kind:
        return by_kind[scope.kind]
    if scope.kind == "stage" and decision.symptom in _OF_STEPS:
        return f"look at the balance of stages and at the input of {scope.name} before any hardware"
    if scope.kind == "group" and scope.name.startswith(TENSOR):
        return f"look at the collective of the {scope.name}: NVLink and NVSwitch of {_of_nodes(scope)}"
    return ""


def _of_fault(decision: Decision, scope: Scope) -> str:
    """Where to look for a fault of which nobody knows whom it hit."""
    if scope.kind == "switch":
        return f"look at switch {scope.name} and its links, then read the kernel logs of {_of_nodes(scope)}"
    if scope.kind == "nic":
        return _of_port(scope)
    if action := _vendor_says(decision):
        return f"run the hardware checks of {_devices(scope)} before it is used again; {action}"
    if decision.area == "memory" and all(_KERNEL_KILL.search(one.why) for one in decision.places):
        return f"find out whose process the kernel killed on {_of_nodes(scope)}, and what used the memory before"
    if len(scope.nodes) != 1:
        where = f"nodes {said_some(scope.nodes)}" if scope.nodes else "all nodes"
        more = "run the hardware checks of what they name" if decision.area == "hardware" else "compare them"
        return f"read the kernel logs of {where} around the onset and {more} before the job is started again"
    more = "run its hardware checks" if decision.area == "hardware" else "compare it with the other nodes"
    return f"read the kernel log of node {scope.nodes[0]} around the onset and {more} before it is used again"


def _of_port(scope: Scope) -> str:
    ports = said_some(scope.devices) or scope.name
    return f"check the cable and the port counters of {ports} on {_of_nodes(scope)}, and its peer on the switch"


def _vendor_says(decision: Decision) -> str:
    """The action that the vendor's catalog names for the Xid on which a decision rests; empty where none tells one."""
    if decision.area != "hardware":
        return ""
    for one in (*decision.suspects, *decision.places):
        found = _XID.search(one.why)
        action = code_of(found.group(1)).action if found else ""
        if action:
            return f"the vendor says {action}" + (f": {_ACTIONS[action]}" if action in _ACTIONS else "")
    return ""


def _devices(scope: Scope) -> str:
    return f"{said_some(scope.devices) or 'the GPU'} on {_of_nodes(scope)}"


def _of_nodes(scope: Scope) -> str:
    return said_some(scope.nodes) or "its node"
