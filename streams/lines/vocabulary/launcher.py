"""Predefined templates of torchrun's agent.

It sees the first failure on its node only: that is no cause, and its traceback is not the rank's own.
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
        lines=(re.compile(r"Received \d{1,3} death signal, shutting down workers"),),
    ),
)
