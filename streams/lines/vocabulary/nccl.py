"""Predefined templates of NCCL and of PyTorch's watchdog over it.

Sources: PyTorch's ProcessGroupNCCL.cpp; NCCL's socket and net_ib transports.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

_GROUP = re.compile(r"\[PG (?:ID \d{1,9} PG GUID )?(?P<group>[^ \]\n]{1,80}) Rank (?P<rank>\d{1,7})\]")
_PROGRESS = re.compile(
    r"[Ll]ast enqueued(?: NCCL)? work: (?P<enqueued>-?\d{1,20}), "
    r"last completed(?: NCCL)? work: (?P<completed>-?\d{1,20})"
)
_WORK = re.compile(r"WorkNCCL\(SeqNum=(?P<sequence>\d{1,20}), OpType=(?P<operation>\w{1,64})")
_NIC = re.compile(r"NET/IB ?: (?P<device>[\w.-]{1,64}):(?P<port>\d{1,4}) ")

LATE_PEERS: tuple[Predefined, ...] = (
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
        more=(_GROUP, _PROGRESS),
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
)

OWN_ERRORS: tuple[Predefined, ...] = (
    Predefined(
        id="nccl.device_fatal",
        name="nic_hardware",
        role="candidate",
        area="network",
        lines=(re.compile(r"NET/IB ?: [^\s:]{1,64}:\d{1,4} (?:Got )?async fatal event: "),),
        more=(_NIC,),
    ),
)

WATCHDOG_ENDED: tuple[Predefined, ...] = (
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
)
"""Tried after all that says why a watchdog ended."""

BESIDE: tuple[Predefined, ...] = (
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
)
