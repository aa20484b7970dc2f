"""What launchers say of their workers: who ended how, and whom they stopped."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from schemas.events import Log
from schemas.results import Exit
from streams.lines.stops import WORDS

_SENDING = re.compile(r"Sending process (\d{1,9}) closing signal (SIG[A-Z]{1,10})")
_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,5})\) local_rank: (\d{1,5}) \(pid: (\d{1,9})\)")
_ENTRY = re.compile(
    r"time\s*:\s*(\d{4}-\d\d-\d\d)_(\d\d:\d\d:\d\d)\s+host\s*:[^\n]*\n\s*"
    r"rank\s*:\s*(\d{1,7}) \(local_rank: (\d{1,5})\)\s+exitcode\s*:\s*(-?\d{1,5}) \(pid: (\d{1,9})\)"
)
_SIGNALS = {-1: "SIGHUP", -2: "SIGINT", -6: "SIGABRT", -7: "SIGBUS", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}
_WORDS = ("closing signal", "exitcode", *WORDS)
"""One of these is in every record that ``exits_of`` and ``stop_of`` find anything in."""

SECOND = 1_000_000_000


def tells_ends(text: str) -> bool:
    """Whether ``exits_of`` and ``stop_of`` have to look closer; never no where they find something."""
    return any(word in text for word in _WORDS)


def _epoch(day: str, clock: str, otherwise: int) -> int:
    """The printed moment, or ``otherwise`` where no calendar has it."""
    try:
        moment = datetime.strptime(f"{day} {clock}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return otherwise
    return max(int(moment.timestamp()), 0) * SECOND


def exits_of(event: Log) -> list[Exit]:
    """The ends of workers that a launcher's record reports; a request to stop is an exit without a code."""
    found: list[Exit] = []
    for pid, signal in _SENDING.findall(event.text):
        found.append(Exit(time=event.time, pid=int(pid), signal=signal, requested=True))
    for code, local_rank, pid in _FAILED.findall(event.text):
        found.append(_exit(event.time, pid, code, None, local_rank))
    for day, clock, rank, local_rank, code, pid in _ENTRY.findall(event.text):
        found.append(_exit(_epoch(day, clock, event.time), pid, code, rank, local_rank))
    return found


def _exit(time: int, pid: str, code: str, rank: str | None, local_rank: str) -> Exit:
    return Exit(
        time=time,
        pid=int(pid),
        rank=None if rank is None else int(rank),
        local_rank=int(local_rank),
        code=int(code),
        signal=_SIGNALS.get(int(code), f"signal {-int(code)}" if int(code) < 0 else ""),
    )
