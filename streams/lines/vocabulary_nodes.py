"""Predefined templates of what nodes say: kernel, GPU driver, network adapters, file systems.

Sources: gpud's and node-problem-detector's rules for kernel logs, the mlx5 driver, IBM Storage Scale's messages,
Lustre's client. What is printed at an ordinary start, or commonly passes by itself, is a confirmation.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary import Predefined

_ADDRESS = r"[0-9a-fA-F:.\x01]{1,32}"
_PID = re.compile(r"\bpid='?(?P<pid>\d{1,9})")
_KILLED = re.compile(r"\bKill(?:ed)? process (?P<pid>\d{1,9})")
_MLX5 = re.compile(rf"mlx5_core (?P<pci>{_ADDRESS}):? ")
_MODULE = re.compile(r"\bmodule (?P<port>\d{1,3}),")

KERNEL: tuple[Predefined, ...] = (
    Predefined(
        id="host.oom_memcg",
        name="out_of_memory",
        role="candidate",
        symptom="memory",
        area="memory",
        layer="platform",
        lines=(
            re.compile(r"oom-kill:constraint=(?P<constraint>CONSTRAINT_MEMCG)\b"),
            re.compile(r"Memory cgroup out of memory: Kill"),
        ),
        more=(_PID, _KILLED, re.compile(r"oom_memcg=(?P<cgroup>[^,\s]{1,300})")),
    ),
    Predefined(
        id="host.oom_node",
        name="out_of_memory",
        role="candidate",
        symptom="memory",
        area="memory",
        layer="platform",
        lines=(
            re.compile(r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w{1,32})"),
            re.compile(r"Out of memory: Kill(?:ed)? process"),
        ),
        more=(_PID, _KILLED),
    ),
    Predefined(
        # Who asked for memory last need not be who held it, nor who is killed.
        id="host.oom_invoked",
        name="out_of_memory",
        role="confirmation",
        symptom="memory",
        area="memory",
        layer="platform",
        lines=(
            re.compile(r"invoked oom-killer"),
            re.compile(r"oom_reaper: reaped process (?P<pid>\d{1,9})"),
        ),
    ),
    Predefined(
        id="host.hung_task",
        name="kernel_stall",
        role="confirmation",
        symptom="hang",
        area="unknown",
        layer="platform",
        # Without its INFO, which is peeled off where it stands first.
        lines=(re.compile(r"task [^\n]{1,64}:(?P<pid>\d{1,9}) blocked for more than (?P<seconds>\d{1,9}) seconds"),),
    ),
    Predefined(
        id="host.soft_lockup",
        name="kernel_stall",
        role="candidate",
        symptom="hang",
        area="hardware",
        layer="platform",
        lines=(re.compile(r"BUG: soft lockup - CPU#(?P<device>\d{1,5}) stuck for (?P<seconds>\d{1,9})s"),),
    ),
    Predefined(
        id="host.rcu_stall",
        name="kernel_stall",
        role="candidate",
        symptom="hang",
        area="hardware",
        layer="platform",
        lines=(re.compile(r"rcu: INFO: rcu_\w{1,32} (?:self-)?detected (?:expedited )?stalls? on CPU"),),
    ),
    Predefined(
        id="host.panic",
        name="kernel_panic",
        role="candidate",
        area="hardware",
        layer="platform",
        lines=(re.compile(r"Kernel panic - not syncing: "),),
    ),
    Predefined(
        id="host.segfault",
        name="segfault",
        role="confirmation",
        area="code",
        layer="platform",
        lines=(re.compile(r"segfault at [0-9a-f\x01]{1,20} ip "),),
        more=(
            re.compile(r"\[(?P<pid>\d{1,9})\]: segfault"),
            re.compile(r"\berror \d{1,5} in (?P<library>[\w.+-]{1,100})"),
        ),
    ),
    Predefined(
        id="memory.uncorrected",
        name="host_memory",
        role="candidate",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"EDAC (?P<device>MC\d{1,4}): \d{1,9} UE "),),
    ),
    Predefined(
        id="memory.corrected",
        name="host_memory",
        role="confirmation",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"EDAC (?P<device>MC\d{1,4}): \d{1,9} CE "),),
    ),
)

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
        lines=(re.compile(rf"SXid \((?:PCI:)?(?P<pci>{_ADDRESS})[^()\n]{{0,64}}\): (?P<code>\d{{1,6}})\b"),),
        more=(
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

NETWORK: tuple[Predefined, ...] = (
    Predefined(
        id="ib.cable_error",
        name="nic_hardware",
        role="candidate",
        area="network",
        layer="hardware",
        lines=(re.compile(r"Port module event\[error\]: module \d{1,3}, "),),
        more=(_MLX5, _MODULE),
    ),
    Predefined(
        # A port that nobody uses says so at every start.
        id="ib.cable_unplugged",
        name="nic_hardware",
        role="confirmation",
        area="network",
        layer="hardware",
        lines=(re.compile(r"Port module event: module \d{1,3}, Cable unplugged"),),
        more=(_MLX5, _MODULE),
    ),
    Predefined(
        id="ib.link_down",
        name="nic_hardware",
        role="candidate",
        area="network",
        layer="hardware",
        lines=(
            re.compile(r"mlx\d{1,2}_core [^\n]{1,100} Link (?:down|DOWN)\b"),
            re.compile(r"ib(?<!\wib)\w{0,12}: Lost carrier"),
        ),
        more=(
            _MLX5,
            re.compile(r"(?P<device>[\w.-]{1,32}): (?:Port: \d{1,3} )?(?:Link|Lost) (?:down|DOWN|carrier)"),
            re.compile(r"\bPort: (?P<port>\d{1,3}) Link"),
        ),
    ),
    Predefined(
        id="ib.link_up",
        name="nic_hardware",
        role="confirmation",
        area="network",
        layer="hardware",
        lines=(
            re.compile(r"mlx\d{1,2}_core [^\n]{1,100} Link (?:up|UP)\b"),
            re.compile(r"ib(?<!\wib)\w{0,12}: Gained carrier"),
        ),
        more=(
            _MLX5,
            re.compile(r"(?P<device>[\w.-]{1,32}): (?:Port: \d{1,3} )?(?:Link|Gained) (?:up|UP|carrier)"),
            re.compile(r"\bPort: (?P<port>\d{1,3}) Link"),
        ),
    ),
    Predefined(
        id="pcie.bandwidth_limited",
        name="pcie",
        role="confirmation",
        symptom="slowdown",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"Gb/s available PCIe bandwidth, limited by "),),
        more=(_MLX5,),
    ),
    Predefined(
        id="pcie.insufficient_power",
        name="pcie",
        role="confirmation",
        symptom="slowdown",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"Detected insufficient power on the PCIe slot"),),
        more=(_MLX5, re.compile(r"\((?P<watts>\d{1,5})W\)")),
    ),
)

STORAGE: tuple[Predefined, ...] = (
    Predefined(
        id="lustre.evicted",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"This client was evicted by (?P<target>[^\s;,]{1,100})"),),
    ),
    Predefined(
        id="lustre.connection_lost",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Connection to (?P<target>\S{1,100}) \(at [^\n]{1,100}\) was lost"),),
    ),
    Predefined(
        id="lustre.connection_restored",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Connection restored to (?P<target>\S{1,100})"),),
    ),
    Predefined(
        id="lustre.slow_reply",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Request sent has (?:timed out|failed)"),),
    ),
    Predefined(
        id="lustre.operation_failed",
        name="storage",
        role="confirmation",
        area="data",
        layer="platform",
        lines=(
            re.compile(
                r"LustreError: [^\n]{0,300} operation (?P<operation>\S{1,40}) to node [^\n]{1,200}failed: rc = "
            ),
        ),
    ),
    Predefined(
        id="lustre.network",
        name="storage",
        role="confirmation",
        area="network",
        layer="platform",
        lines=(re.compile(r"LNetError: "),),
        each=True,
    ),
    Predefined(
        id="gpfs.shutdown",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"The mmfs daemon is shutting down abnormally"),),
    ),
    Predefined(
        id="gpfs.membership_lost",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lost membership in cluster (?P<target>\S{1,200})\. Unmounting file systems"),),
    ),
    Predefined(
        id="gpfs.reconnecting",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Close connection to [^\n]{1,200}\. Attempting reconnect"),),
    ),
    Predefined(
        id="nfs.not_responding",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"nfs: server (?P<target>\S{1,200}) not responding"),),
    ),
    Predefined(
        id="nfs.responding",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"nfs: server (?P<target>\S{1,200}) OK\b"),),
    ),
    Predefined(
        id="storage.stale_handle",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        error=re.compile(r"Stale file handle"),
    ),
)
