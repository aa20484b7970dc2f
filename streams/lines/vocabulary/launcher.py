"""Predefined templates of torchrun's agent and of Slurm.

An agent sees the first failure on its node only: that is no cause, and its traceback is not the rank's own. Slurm's
task number is not known to be a rank; that it killed or aborted a task is as often a consequence as a cause.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

LAUNCHER: tuple[Predefined, ...] = (
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
        lines=(re.compile(r"Received (?:\d{1,3}|Signals\.SIG[A-Z]{1,10}) death signal, shutting down workers"),),
    ),
    Predefined(
        id="slurm.task_crashed",
        name="slurm",
        role="candidate",
        area="code",
        layer="platform",
        lines=(
            re.compile(
                r"srun: error: (?P<node>[\w.-]{1,100}): tasks? (?P<task>[\d,-]{1,200}): "
                r"(?P<end>Segmentation fault|Bus error|Illegal instruction|Floating point exception)"
            ),
        ),
    ),
    Predefined(
        id="slurm.out_of_memory",
        name="memory",
        role="candidate",
        area="memory",
        symptom="memory",
        layer="platform",
        lines=(
            re.compile(r"slurmstepd: error: Detected (?P<events>\d{1,9}) oom[_-]kill event"),
            re.compile(r"srun: error: (?P<node>[\w.-]{1,100}): tasks? (?P<task>[\d,-]{1,200}): Out Of Memory"),
        ),
    ),
    Predefined(
        # A step daemon that says so runs on a node that has not failed.
        id="slurm.node_failed",
        name="slurm",
        role="candidate",
        area="hardware",
        layer="platform",
        lines=(
            re.compile(r"srun: error: Node failure on (?P<node>[\w.-]{1,100})"),
            re.compile(r"CANCELLED AT [\dT:-]{1,40} DUE TO NODE FAILURE"),
        ),
    ),
    Predefined(
        id="slurm.task_ended",
        name="slurm",
        role="confirmation",
        area="unknown",
        layer="platform",
        lines=(
            re.compile(
                r"srun: error: (?P<node>[\w.-]{1,100}): tasks? (?P<task>[\d,-]{1,200}): "
                r"(?P<end>Exited with exit code \d{1,3}|Killed|Aborted|Terminated)"
            ),
        ),
    ),
    Predefined(
        id="slurm.cancelled",
        name="slurm",
        role="confirmation",
        area="unknown",
        layer="platform",
        lines=(
            re.compile(
                r"slurmstepd: error: \*\*\* \w{3,4} (?P<number>[\d.]{1,20}) ON (?P<node>[\w.-]{1,100}) CANCELLED AT"
                r"(?! [\dT:-]{1,40} DUE TO NODE FAILURE)"
            ),
        ),
    ),
)
