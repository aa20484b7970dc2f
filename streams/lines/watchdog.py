"""What PyTorch's watchdog prints of a process group: how far the rank that prints it has come there.

Sources: logPrefix, checkTimeout, watchdogHandler and getNCCLWatchdogTimeoutErrorMsg of PyTorch's ProcessGroupNCCL.cpp,
in its forms since 2.2: ``[PG 1 Rank 0]``, ``[PG 0 (default_pg) Rank 0]``, ``[PG ID 0 PG GUID 0(default_pg) Rank 0]``.
"""

from __future__ import annotations

import re

import msgspec

from streams.lines.predefined import said_in

TELLING = frozenset({"nccl.watchdog_timeout", "nccl.watchdog_failure", "nccl.watchdog_exception", "nccl.dump_signal"})
"""Predefined templates whose lines may say it."""

_GROUP = re.compile(
    r"\[PG (?:ID \d{1,9} PG GUID )?(?P<number>[^\s()\[\]]{1,80}) ?"
    r"(?:\((?P<about>[^()\[\]\n]{0,80})\) ?)?Rank (?P<place>\d{1,7})\]"
)
_PROGRESS = re.compile(
    r"[Ll]ast enqueued(?: \w{1,16})? work: (?P<enqueued>-?\d{1,18}), "
    r"last completed(?: \w{1,16})? work: (?P<completed>-?\d{1,18})"
)
_FAILED = re.compile(r"detected by watchdog at work(?: sequence id)?: (\d{1,18})")
_WORK = re.compile(
    r"Work\w{1,8}\(SeqNum=(?P<sequence>\d{1,18}), OpType=(?P<operation>\w{1,64})(?:, NumelIn=(?P<size>\d{1,18}))?"
)
_WAITED = re.compile(r"ran for (\d{1,9}) milliseconds")

_NAMES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "_all_gather_base",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
}
"""Names of operations that flight recorders write otherwise."""

SENDING = frozenset({"send", "recv", "coalesced", "sendrecv"})
"""Operations that are between some of a group; their numbers are not those of its collectives."""


class Group(msgspec.Struct, frozen=True):
    """A group as the head of a line names it, and the rank's ``place`` in it, which is not its global rank.

    Its ``number`` is counted by each rank for itself in some versions, and two groups that were split off another
    share theirs in the newest; only of the default group everybody knows which it is.
    """

    number: str
    about: str
    place: int

    @property
    def default(self) -> bool:
        """Whether it is the group of all ranks."""
        return self.number == "0" and self.about in ("", "default_pg")


class GroupProgress(msgspec.Struct, frozen=True):
    """What one line tells: its group, the counts, the operation that has failed; null and -1 where it does not.

    ``size`` is the number of elements that the rank brings, ``waited_ms`` how long the operation had been under way.
    """

    group: Group | None
    enqueued: int | None = None
    completed: int = -1
    failed: int = -1
    operation: str = ""
    size: str = ""
    waited_ms: int = 0


def told_in(text: str) -> GroupProgress | None:
    """What a record says of a group's progress, null where it says nothing of it."""
    said = said_in(text)
    progress, work, failed = _PROGRESS.search(said), _WORK.search(said), _FAILED.search(said)
    if progress is None and work is None:
        return None
    waited = _WAITED.search(said) if work else None
    head = _GROUP.search(said)
    sequence = failed.group(1) if failed else work["sequence"] if work else "-1"
    return GroupProgress(
        group=Group(head["number"], head["about"] or "", int(head["place"])) if head else None,
        enqueued=int(progress["enqueued"]) if progress else None,
        completed=int(progress["completed"]) if progress else -1,
        failed=int(sequence),
        operation=_name(work["operation"]) if work else "",
        size=(work["size"] or "") if work else "",
        waited_ms=int(waited.group(1)) if waited else 0,
    )


def _name(operation: str) -> str:
    return _NAMES.get(operation, operation.lower())
