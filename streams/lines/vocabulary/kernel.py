"""Predefined templates of the kernel: memory that ran out, stalls, faults.

Sources: node-problem-detector's kernel monitor, gpud.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

_PID = re.compile(r"\bpid='?(?P<pid>\d{1,9})")
_KILLED = re.compile(r"\bKill(?:ed)? process (?P<pid>\d{1,9})")

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
