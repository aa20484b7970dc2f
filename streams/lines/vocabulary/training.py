"""Predefined templates of what training processes print otherwise: gloo, stores, CUDA, memory, checkpoints.

Sources: PyTorch, Megatron-LM's checkpointing.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

LATE_PEERS: tuple[Predefined, ...] = (
    Predefined(
        id="gloo.timeout",
        name="collective_timeout",
        role="cascade",
        symptom="hang",
        area="network",
        error=re.compile(r"Timed out waiting \d{1,12} ?ms for (?:send|recv)"),
        lines=(re.compile(r"Timed out waiting \d{1,12} ?ms for (?:send|recv)"),),
    ),
)

LOST_PEERS: tuple[Predefined, ...] = (
    Predefined(
        id="gloo.connection_closed",
        name="peer_lost",
        role="cascade",
        area="network",
        error=re.compile(r"Connection (?:closed|reset) by peer|pair closure|connectFullMesh"),
        lines=(re.compile(r"Connection closed by peer \["),),
    ),
    Predefined(
        id="store.connection_lost",
        name="peer_lost",
        role="cascade",
        area="network",
        error=re.compile(r"failed to (?:recv|send), got 0 bytes|Socket Timeout"),
        lines=(re.compile(r"failed to (?:recv|send), got 0 bytes"),),
    ),
    Predefined(
        id="python.connection_lost",
        name="peer_lost",
        role="cascade",
        area="network",
        error=re.compile(r"Connection(?:Reset|Refused|Aborted)Error|Broken ?[Pp]ipe|[Ss]ocket closed|^EOFError"),
    ),
    Predefined(
        id="process.terminated",
        name="terminated",
        role="cascade",
        area="unknown",
        error=re.compile(r"SignalException|got signal: (?:15|2)\b|^KeyboardInterrupt|killed by signal: Terminated"),
        more=(re.compile(r"(?:\(pid |\bProcess )(?P<pid>\d{1,9})"),),
    ),
)

OWN_ERRORS: tuple[Predefined, ...] = (
    Predefined(
        id="cuda.out_of_memory",
        name="out_of_memory",
        role="candidate",
        symptom="memory",
        area="memory",
        error=re.compile(r"CUDA out of memory|OutOfMemoryError"),
        lines=(re.compile(r"CUDA out of memory\. Tried to allocate"),),
        more=(
            re.compile(r"Tried to allocate (?P<requested>\d{1,20}(?:\.\d{1,9})? ?[KMGT]?i?B)"),
            re.compile(r"\bGPU (?P<device>\d{1,4}) has a total capacity"),
        ),
    ),
    Predefined(
        id="host.allocation_failed",
        name="out_of_memory",
        role="candidate",
        symptom="memory",
        area="memory",
        error=re.compile(r"can't allocate memory|Cannot allocate memory|^MemoryError|killed by signal: Killed"),
    ),
    Predefined(
        id="gpu.ecc_uncorrectable",
        name="gpu_hardware",
        role="candidate",
        area="hardware",
        error=re.compile(r"uncorrectable ECC error|Double Bit ECC|hardware failure"),
        lines=(re.compile(r"uncorrectable ECC error encountered"),),
    ),
)

PROCESS_GROUP: tuple[Predefined, ...] = (
    Predefined(
        id="torch.process_group",
        name="process_group",
        role="cascade",
        area="network",
        error=re.compile(r"DistBackendError|DistNetworkError|DistStoreError|NCCL error"),
        lines=(re.compile(r"terminate called after throwing an instance of 'c\d{1,3}::Dist"),),
    ),
)
"""Whatever else a process group raises."""

BESIDE: tuple[Predefined, ...] = (
    Predefined(
        # Watchdogs abort victims, too.
        id="python.fatal_error",
        name="fatal_signal",
        role="confirmation",
        area="code",
        lines=(re.compile(r"Fatal Python error: (?P<signal>[A-Z][A-Za-z ]{1,40})"),),
    ),
    Predefined(
        id="cuda.asynchronous",
        name="cuda_error",
        role="advice",
        area="code",
        lines=(re.compile(r"CUDA kernel errors might be asynchronously reported at some other API call"),),
    ),
    Predefined(
        id="checkpoint.saved",
        name="checkpoint",
        role="confirmation",
        area="checkpoint",
        lines=(re.compile(r"successfully saved checkpoint (?:from|at) iteration +(?P<iteration>\d{1,12})"),),
    ),
    Predefined(
        id="checkpoint.saving",
        name="checkpoint",
        role="confirmation",
        area="checkpoint",
        lines=(re.compile(r"saving checkpoint at iteration +(?P<iteration>\d{1,12})"),),
    ),
    Predefined(
        id="checkpoint.loaded",
        name="checkpoint",
        role="confirmation",
        area="checkpoint",
        lines=(re.compile(r"successfully loaded checkpoint from "),),
        more=(re.compile(r"at iteration +(?P<iteration>\d{1,12})"),),
    ),
    Predefined(
        id="checkpoint.loading",
        name="checkpoint",
        role="confirmation",
        area="checkpoint",
        lines=(re.compile(r"loading (?:distributed |release )?checkpoint from "),),
        more=(re.compile(r"at iteration +(?P<iteration>\d{1,12})"),),
    ),
)
