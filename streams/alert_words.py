"""What an alarm of the platform means: which area it speaks of, and whether it says for certain that a node is gone."""

from __future__ import annotations

import re

from schemas.results import Area, Layer, PlatformAlert

SCHEDULER = "slurm"
"""The source whose words on the state of nodes are certain: it is what takes them away from a job."""
_GONE = re.compile(
    r"not responding, setting DOWN|\bon failed node\b|\bstate set to DOWN\b|\bNODE_FAIL\b|^Not responding$"
    r"|\bunexpectedly rebooted\b|\bNode unexpectedly rebooted\b"
)
_HARDWARE = re.compile(
    r"\bs?xid\b|xid_?error|\becc\b|\bgpu|nvlink|nvswitch|\bpcie?\b|thermal|temperature|overheat|power|\bpsu|\bfan"
    r"|\bdimm|memory error|machine check|\bmce\b|hardware",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"\blink|\bport|infiniband|\bib[0-9_]|\broce\b|\bnic\b|switch|cable|transceiver|symbol|\bufm\b|network|fabric|carrier"
    r"|packet|mlx[0-9]",
    re.IGNORECASE,
)
_STORAGE = re.compile(
    r"storage|lustre|\bost[0-9]|\bmds\b|gpfs|\bnfs\b|filesystem|file system|\bdisk|\bceph|\bs3\b|volume|inode",
    re.IGNORECASE,
)


def says_node_gone(alert: PlatformAlert) -> bool:
    """Whether the scheduler says that it has lost the node; that it was drained is no fault, and others may err."""
    return alert.source == SCHEDULER and alert.status != "resolved" and _GONE.search(alert.text) is not None


def area_of(alert: PlatformAlert) -> Area:
    """The area by the place that an alarm names, else by its words."""
    said = f"{_spaced(alert.name)} {alert.text} {alert.device}"
    if alert.storage or (not alert.switch and _STORAGE.search(said)):
        return "data"
    if alert.switch:
        return "network"
    if says_node_gone(alert) or _HARDWARE.search(said):
        return "hardware"
    return "network" if _NETWORK.search(said) else "unknown"


def layer_of(alert: PlatformAlert) -> Layer:
    """The layer that an alarm is evidence of."""
    return "hardware" if area_of(alert) == "hardware" and alert.source != SCHEDULER else "platform"


def said_place(node: str, alert: PlatformAlert) -> str:
    """The place of an alarm in words: ``mlx5_0:1 of gpu3``, ``switch leaf3``."""
    if alert.switch:
        return f"{f'{alert.device} of ' if alert.device else ''}switch {alert.switch}"
    if alert.storage:
        return f"storage {alert.storage}{f' on {node}' if node else ''}"
    return f"{alert.device} of {node or 'a node'}" if alert.device else node or "the cluster"


def _spaced(name: str) -> str:
    """``GpuXidError`` as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ")
