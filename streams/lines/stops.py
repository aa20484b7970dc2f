"""Words by which a job, or what of it runs on a node, is told to end from outside: schedulers', launchers', its own.

Who prints them decides what they mean: a scheduler speaks of the job, an agent of what it runs on its node, a rank of
itself. Sources: Slurm's slurmstepd, srun and salloc; torch's elastic agent; DeepSpeed's launcher; Kubernetes' events;
Megatron-LM, Lightning.
"""

from __future__ import annotations

import re
from typing import Literal

Word = Literal["job", "step", "agent", "rank", "save", "task", "node", ""]
"""The job is ended; a step of it is, which may also be for a task that has failed; an agent is told to end; so is a
rank, or by a signal that mostly asks to save. A task, or a worker of an agent, has ended by itself, or its node has
failed: what the scheduler ends after that is no stop."""

_OF = r"[\w.+]{1,30}"
_WHEN = r"CANCELLED AT [\dT:-]{1,40}"
_ON = r"ON [\w.-]{1,100}"
_REASON = r"DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)"
_SIGNALS = r"(?:Signals\.)?(?:SIG(?:TERM|INT|HUP)|15|2|1)"

_JOB = re.compile(
    rf"\*\*\* JOB {_OF} {_ON} {_WHEN} \*\*\*"
    rf"|\*\*\* (?:JOB|STEP) {_OF} {_ON} {_WHEN} {_REASON} \*\*\*"
    rf"|\*\*\* (?:JOB|STEP) {_OF} {_WHEN} {_REASON} on [\w.-]{{1,100}} \*\*\*"
    rf"|salloc: Job {_OF} has exceeded its time limit"
    rf"|salloc: Job allocation {_OF} has been revoked"
    r"|srun: sending Ctrl-C to "
    r"|\[?exiting program after receiving SIGTERM"
    r"|Job was active longer than specified deadline"
    r"|Preempted by [\w./-]{1,200} on node "
)
_STEP = re.compile(
    rf"\*\*\* STEP {_OF} {_ON} {_WHEN} \*\*\*"
    rf"|srun: Force Terminated (?:job |StepId=){_OF}|srun: forcing job termination"
)
_AGENT = re.compile(
    rf"Received {_SIGNALS} death signal, shutting down workers|Main process received SIG(?:TERM|INT), exiting"
)
_HANDLED = re.compile(r"got signal: (?:15|2|1)\b")
"""What an agent raises; a rank that was told to end raises the same."""
_RANK = re.compile(
    r"\b(?:[Rr]eceived|[Cc]aught|[Hh]andling) (?:signal:? )?SIG(?:TERM|INT)\b"
    r"|\b(?:[Rr]eceived|[Cc]aught) signal:? (?:15|2)\b"
)
_SAVE = re.compile(
    r"\b(?:[Rr]eceived|[Cc]aught|[Hh]andling) (?:signal:? )?SIGUSR[12]\b"
    r"|\b(?:[Rr]eceived|[Cc]aught) signal:? 1[02]\b"
    r"|Handling auto-requeue signal: \d{1,3}"
)
_TASK = re.compile(
    r"srun: error: [\w.-]{1,100}: tasks? [\d,-]{1,200}: (?:Exited with exit code (?!143\b|130\b)\d{1,3}"
    r"|Killed|Out Of Memory|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception)"
    r"|failed \(exitcode: (?!(?:129|130|138|140|143)\))[1-9]\d{0,4}\) local_rank: \d"
)
_NODE = re.compile(
    rf"srun: error: Node failure on |(?:\*\*\* (?:JOB|STEP) {_OF} (?:{_ON} )?)?{_WHEN} DUE TO NODE FAILURE"
)
_BEGINS = re.compile(r"(?:\d{1,6}: )?(?:slurm(?:step)?d(?:-[\w.-]{1,100})?: (?:error: )?)?")
"""What stands before a scheduler's word in a file that a worker writes too: ``srun --label``, and who says it."""

WORDS = (
    "failed (exitcode: ",
    *("death signal", "got signal", "CANCELLED AT", "srun: ", "salloc: ", "SIGTERM", "SIGINT", "SIGUSR"),
    *("eceived signal", "aught signal", "auto-requeue signal", "specified deadline", "Preempted by "),
)
"""One of these is in every record in which ``stop_of`` finds anything."""

_ORDER: tuple[tuple[Word, re.Pattern[str]], ...] = (
    ("node", _NODE),
    ("job", _JOB),
    ("step", _STEP),
    ("agent", _AGENT),
    ("agent", _HANDLED),
    ("task", _TASK),
    ("rank", _RANK),
    ("save", _SAVE),
)
_SCHEDULERS = (_NODE, _JOB, _STEP, _TASK)


def stop_of(text: str, *, trains: bool = False) -> Word:
    """Which word a record says; what an agent says is none where a worker that ``trains`` raises the same.

    Such a worker may print any text, so a scheduler's word only counts there at the beginning of a record.

    >>> stop_of("*** JOB 77 ON n1 CANCELLED AT 2026-11-29T18:10:59 DUE TO TIME LIMIT ***")
    'job'
    """
    for word, pattern in _ORDER:
        anchored = trains and pattern in _SCHEDULERS
        if _said_at_once(pattern, text) if anchored else pattern.search(text) is not None:
            return "rank" if trains and pattern is _HANDLED else word
    return ""


def _said_at_once(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a record begins with a word, but for who says it."""
    begins = _BEGINS.match(text)
    return pattern.match(text, begins.end() if begins is not None else 0) is not None
