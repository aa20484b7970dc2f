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


def next_step(decision: Decision, scope: Scope) -> str:
    """What staff do first, in one sentence."""
    faulty = bool(decision.places) and not decision.suspects and decision.reason is not Reason.DEVICE_MEMORY_GROWS
    if faulty:
        return _of_fault(decision, scope)
    if not decision.suspects and decision.area != "configuration":
        return _OF_NOBODY.get(decision.symptom, _OF_NOBODY["hang"])
    if action := _vendor_says(decision):
        return f"run the hardware checks of {_devices(scope)}; {action}"
    placed = _of_place(decision, scope)
    if placed:
        return placed
    area = "collectives" if (decision.symptom, decision.area) == ("hang", "code") else decision.area
    return _OF_AREA.get(area, "take stacks of the suspect and one of its peers and compare them")


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
    where = f"node {said_some(scope.nodes)}" if scope.nodes else "the nodes"
    more = "run its hardware checks" if decision.area == "hardware" else "compare it with the other nodes"
    return f"read the kernel log of {where} around the onset and {more} before it is used again"


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
