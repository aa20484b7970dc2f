"""Predefined templates of what training processes print: PyTorch, NCCL, gloo, CUDA, checkpoints, launchers.

Sources: PyTorch's ProcessGroupNCCL.cpp and elastic launcher, NCCL's net_ib and socket transports, Megatron-LM's
checkpointing. In order: what a lost or late peer causes comes before what an error of a rank's own may look like.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary import Predefined

_GROUP = re.compile(r"\[PG (?:ID \d{1,9} PG GUID )?(?P<group>[^ \]\n]{1,80}) Rank (?P<rank>\d{1,7})\]")
_PROGRESS = re.compile(
    r"last enqueued(?: NCCL)? work: (?P<enqueued>-?\d{1,20}), last completed(?: NCCL)? work: (?P<completed>-?\d{1,20})"
)
_WORK = re.compile(r"WorkNCCL\(SeqNum=(?P<sequence>\d{1,20}), OpType=(?P<operation>\w{1,64})")
_NIC = re.compile(r"NET/IB ?: (?P<device>[\w.-]{1,64}):(?P<port>\d{1,4}) ")

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
    Predefined(
        id="nccl.watchdog_timeout",
        name="collective_timeout",
        role="cascade",
        symptom="hang",
        area="network",
        layer="collective",
        error=re.compile(r"collective operation timeout"),
        lines=(re.compile(r"Watchdog caught collective operation timeout"),),
        more=(_GROUP, _WORK),
    ),
    Predefined(
        id="nccl.watchdog_failure",
        name="collective_timeout",
        role="cascade",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(re.compile(r"failure detected by watchdog at work sequence id(?:: (?P<sequence>\d{1,20}))?"),),
        more=(_GROUP, _PROGRESS),
    ),
    Predefined(
        id="nccl.watchdog_exception",
        name="collective_timeout",
        role="cascade",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(
            re.compile(
                r"Exception \(either an error or timeout\) detected by watchdog at work(?:: (?P<sequence>\d{1,20}))?"
            ),
        ),
        more=(_GROUP, _PROGRESS),
    ),
    Predefined(
        id="nccl.heartbeat_timeout",
        name="collective_timeout",
        role="cascade",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(
            re.compile(r"Heartbeat monitor timed out!"),
            re.compile(r"watchdog got stuck for \d{1,9} ?seconds without making progress"),
        ),
        more=(_GROUP,),
    ),
    Predefined(
        id="nccl.dump_signal",
        name="collective_timeout",
        role="confirmation",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(re.compile(r"Received a dump signal due to a collective timeout from"),),
        more=(_GROUP,),
    ),
)

LOST_PEERS: tuple[Predefined, ...] = (
    Predefined(
        id="nccl.remote_error",
        name="peer_lost",
        role="cascade",
        area="network",
        error=re.compile(r"ncclRemoteError"),
        lines=(
            re.compile(r"ncclRemoteError"),
            re.compile(r"NCCL WARN [^\n]{0,200}(?:Connection closed by (?:remote )?peer|remote process exited)"),
        ),
    ),
    Predefined(
        id="nccl.aborted",
        name="peer_lost",
        role="cascade",
        area="network",
        error=re.compile(r"NCCL communicator was aborted"),
        lines=(re.compile(r"NCCL communicator was aborted"),),
    ),
    Predefined(
        id="nccl.ib_completion",
        name="peer_lost",
        role="cascade",
        area="network",
        lines=(re.compile(r"NET/IB ?: ?Got completion from peer (?P<peer>\S{1,100})"),),
        more=(
            re.compile(r"with (?:status=|error )(?P<status>\w{1,64})"),
            re.compile(r"\bhca (?P<device>[\w.-]{1,64})"),
        ),
    ),
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
    Predefined(
        id="nccl.device_fatal",
        name="nic_hardware",
        role="candidate",
        area="network",
        lines=(re.compile(r"NET/IB ?: [^\s:]{1,64}:\d{1,4} (?:Got )?async fatal event: "),),
        more=(_NIC,),
    ),
)

PROCESS_GROUP: tuple[Predefined, ...] = (
    Predefined(
        id="nccl.watchdog_cuda_error",
        name="cuda_error",
        role="candidate",
        area="code",
        lines=(re.compile(r"watchdog thread terminated with exception: CUDA error: "),),
        more=(_GROUP,),
    ),
    Predefined(
        id="nccl.watchdog_terminated",
        name="process_group",
        role="cascade",
        area="network",
        lines=(re.compile(r"watchdog thread terminated with exception: "),),
        more=(_GROUP,),
    ),
    Predefined(
        id="torch.process_group",
        name="process_group",
        role="cascade",
        area="network",
        error=re.compile(r"DistBackendError|DistNetworkError|DistStoreError|NCCL error"),
        lines=(re.compile(r"terminate called after throwing an instance of 'c\d{1,3}::Dist"),),
    ),
)

SAID_BESIDE: tuple[Predefined, ...] = (
    Predefined(
        id="nccl.corrupted_data",
        name="collective_timeout",
        role="advice",
        area="network",
        layer="collective",
        lines=(re.compile(r"Some NCCL operations have failed or timed out\. "),),
    ),
    Predefined(
        id="nccl.taken_down",
        name="process_group",
        role="confirmation",
        area="network",
        lines=(
            re.compile(r"To avoid (?:data inconsistency|these inconsistencies), we are taking the entire process down"),
        ),
    ),
    Predefined(
        id="nccl.first_to_dump",
        name="collective_timeout",
        role="advice",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(re.compile(r"First PG on this rank to signal dumping\."),),
        more=(_GROUP,),
    ),
    Predefined(
        id="nccl.no_stack_trace",
        name="collective_timeout",
        role="advice",
        symptom="hang",
        area="network",
        layer="collective",
        lines=(re.compile(r"Stack trace of the failed collective not found"),),
    ),
    Predefined(
        id="cuda.asynchronous",
        name="cuda_error",
        role="advice",
        area="code",
        lines=(re.compile(r"CUDA kernel errors might be asynchronously reported at some other API call"),),
    ),
    Predefined(
        id="nccl.async_event",
        name="nic_hardware",
        role="confirmation",
        area="network",
        lines=(re.compile(r"NET/IB ?: [^\s:]{1,64}:\d{1,4} (?:Got )?(?:non-fatal )?async (?:fatal |error )?event"),),
        more=(_NIC,),
    ),
    Predefined(
        id="nccl.warning",
        name="nccl_warning",
        role="confirmation",
        area="network",
        lines=(re.compile(r"NCCL WARN "),),
        each=True,
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
    # An agent sees the first failure on its node only: that is no cause, and its traceback is not the rank's own.
    Predefined(
        id="launcher.child_failed",
        name="launcher",
        role="confirmation",
        area="unknown",
        layer="platform",
        error=re.compile(r"\bChildFailedError\b"),
        lines=(re.compile(r"Root Cause \(first observed failure\):"),),
    ),
    Predefined(
        id="launcher.worker_failed",
        name="launcher",
        role="confirmation",
        area="unknown",
        layer="platform",
        lines=(
            re.compile(
                r"failed \(exitcode: (?P<exitcode>-?\d{1,5})\) local_rank: (?P<local_rank>\d{1,5})"
                r" \(pid: (?P<pid>\d{1,9})\)"
            ),
        ),
    ),
    Predefined(
        id="launcher.closing_signal",
        name="launcher",
        role="confirmation",
        area="unknown",
        layer="platform",
        lines=(re.compile(r"Sending process (?P<pid>\d{1,9}) closing signal (?P<signal>SIG[A-Z]{1,10})"),),
    ),
    Predefined(
        id="launcher.told_to_stop",
        name="launcher",
        role="confirmation",
        area="unknown",
        layer="platform",
        lines=(re.compile(r"Received \d{1,3} death signal, shutting down workers"),),
    ),
)
