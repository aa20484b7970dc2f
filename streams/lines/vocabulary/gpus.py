"""Predefined templates of the GPU driver and of NVSwitches; what an Xid code means stands in ``xid.py``.

Sources: NVIDIA's Xid catalog, gpud.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

_ADDRESS = r"[0-9a-fA-F:.\x01]{1,32}"
_PID = re.compile(r"\bpid='?(?P<pid>\d{1,9})")

GPUS: tuple[Predefined, ...] = (
    Predefined(
        id="xid",
        name="gpu_hardware",
        role="candidate",
        area="hardware",
        layer="hardware",
        lines=(re.compile(rf"NVRM: Xid \((?:PCI:)?(?P<pci>{_ADDRESS})[^()\n]{{0,64}}\): (?P<code>\d{{1,6}})\b"),),
        more=(_PID, re.compile(r"caused by previous Xid (?P<previous>\d{1,6})")),
        coded=True,
    ),
    Predefined(
        id="sxid",
        name="nvswitch_hardware",
        role="candidate",
        area="hardware",
        layer="hardware",
        lines=(
            re.compile(rf"SXid \((?:PCI:)?(?P<pci>{_ADDRESS})[^()\n]{{0,64}}\): (?P<code>\d{{1,6}})\b"),
            # The fabric manager's word on the same.
            re.compile(r"detected NVSwitch (?P<severity>fatal|non-fatal) error (?P<code>\d{1,6}) on "),
        ),
        more=(
            re.compile(rf"\bNVSwitch pci bus id (?P<pci>{_ADDRESS})"),
            re.compile(r"\bport (?P<port>\d{1,4})\b"),
            re.compile(r"(?P<device>nvidia-nvswitch\d{1,4}): SXid"),
            re.compile(r"\d, (?P<severity>Fatal|Non-fatal)\b"),
            re.compile(r"\bLink (?P<port>\d{1,4})\b"),
        ),
        coded=True,
    ),
    Predefined(
        id="gpu.fallen_off_the_bus",
        name="gpu_hardware",
        role="candidate",
        area="hardware",
        layer="hardware",
        error=re.compile(r"fallen off the bus"),
        lines=(re.compile(r"fallen off the bus"),),
        more=(re.compile(rf"\bGPU (?:at )?(?:PCI:)?(?P<pci>(?=[0-9a-fA-F\x01]{{1,8}}:){_ADDRESS})"),),
        action="RESTART_BM",
    ),
    Predefined(
        id="gpu.peer_memory_invalid",
        name="gpu_peer_memory",
        role="confirmation",
        area="network",
        layer="hardware",
        lines=(re.compile(r"nvidia-peermem nv_get_p\d{1,2}p_free_callback:\d{1,6} ERROR detected invalid context"),),
    ),
)
