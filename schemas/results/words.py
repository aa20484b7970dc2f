"""Base of all derived records, and the words that several of them use."""

from __future__ import annotations

from typing import Literal

import msgspec

Symptom = Literal["hang", "crash", "slowdown", "numerics", "memory"]
Area = Literal[
    "compute", "data", "checkpoint", "network", "hardware", "memory", "code", "configuration", "workload", "unknown"
]
Verdict = Literal["supported", "ambiguous", "unavailable"]
Severity = Literal["critical", "warning", "info"]
Layer = Literal["stack", "log", "metric", "collective", "profile", "hardware", "platform"]
Axis = Literal["space", "time", "cross-job"]
Activity = Literal["communication", "engine", "data", "checkpoint", "idle", "own", "unobserved"]
CausalRole = Literal["candidate", "cascade", "confirmation", "advice"]
ScopeKind = Literal["rank", "node", "device", "nic", "group", "stage", "switch", "job", "fleet"]


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Base of all derived records."""
