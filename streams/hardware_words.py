"""Hardware in words: devices, and what changed of them with the values before and after."""

from __future__ import annotations

from schemas.results import HardwareChange
from streams.hardware import slowed_by
from streams.lines.vocabulary.xid import code_of

_OF_PORTS = ("port_", "link_", "symbol_", "receive_")
_STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
_PHYSICAL = {1: "Sleep", 2: "Polling", 3: "Disabled", 4: "Training", 5: "LinkUp", 6: "LinkErrorRecovery"}


def said_device(node: str, device: str, kind: str) -> str:
    """A device in words: ``port mlx5_0:1 of gpu3``; its node where none is known."""
    where = node or "a node"
    if not device:
        return where
    if kind.startswith(_OF_PORTS):
        return f"port {device} of {where}"
    return f"{device} of {where}" if kind == "host_memory_errors" else f"GPU {device} of {where}"


def said_change(change: HardwareChange) -> str:
    """What changed in words, with the values before and after and the metric's own name."""
    before, after = _said(change, change.before), _said(change, change.after)
    how = _HOW.get(change.kind, "{after}, before {before}")
    return f"{how.format(before=before, after=after, more=f'{change.after - change.before:g}')} ({change.name})"


_MORE = "{more} more, {before} before and {after} after"
_HOW = {
    "port_state": "is {after}, was {before}",
    "port_physical_state": "is {after}, was {before}",
    "port_rate": "its rate fell from {before} to {after}",
    "pcie_width": "its PCIe link fell from {before} to {after} lanes",
    "xid": "its last Xid is {after}, before: {before}",
    "link_downed": f"its link has failed, {_MORE}",
    "link_errors": f"errors of its link, {_MORE}",
    "symbol_errors": f"symbol errors of its link, {_MORE}",
    "receive_errors": f"packets received with errors, {_MORE}",
    "nvlink_errors": f"NVLink errors, {_MORE}",
    "pcie_replays": f"PCIe replays, {_MORE}",
    "ecc_uncorrected": f"ECC errors that cannot be corrected, {_MORE}",
    "host_memory_errors": f"errors of the host's memory that cannot be corrected, {_MORE}",
    "gpu_lost": "nvidia-smi says that it is lost or requires a reset, or can read nothing of it any more",
    "row_remap_failure": "remapping of rows of its memory has failed",
    "rows_remapped_uncorrectable": f"rows of its memory were remapped after uncorrectable errors, {_MORE}",
    "rows_remapped_correctable": f"rows of its memory were remapped after correctable errors, {_MORE}",
    "oom_kills": f"kills by the kernel for want of memory, {_MORE}",
    "throttle_reasons": "its clocks are lowered: {after}, before: {before}",
    "throttle_hw_slowdown": "its clocks are lowered: hardware slowdown",
    "throttle_hw_thermal": "its clocks are lowered: thermal (hardware)",
    "throttle_power_brake": "its clocks are lowered: power brake",
    "throttle_sw_thermal": "its clocks are lowered: thermal (software)",
    "thermal_violation": "it was throttled for its temperature, {before} before and {after} after",
}


def _said(change: HardwareChange, value: float) -> str:
    if change.kind == "port_state":
        return said_state(value)
    if change.kind == "port_physical_state":
        return _PHYSICAL.get(int(value), f"in physical state {value:g}")
    if change.kind == "port_rate":
        return said_rate(value)
    if change.kind == "throttle_reasons":
        return ", ".join(slowed_by(value)) or "nothing unusual"
    if change.kind == "xid":
        return _said_code(f"{value:.0f}") if value else "none"
    return f"{value:.12g}"


def _said_code(code: str) -> str:
    known = code_of(code)
    said = [known.description, f"the vendor says {known.action}" if known.action else ""]
    return f"{code} ({'; '.join(one for one in said if one)})" if any(said) else code


def said_rate(bytes_a_second: float) -> str:
    """The rate of a port as its maker says it."""
    return f"{bytes_a_second * 8 / 1e9:g} Gb/s"


def said_state(value: float) -> str:
    """The logical state of a port by its name."""
    return _STATES.get(int(value), f"in state {value:g}")
