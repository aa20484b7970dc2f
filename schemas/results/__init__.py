"""What rank and job stage say: windows, progress, late, templates, anomalies, merged stacks, notices, incidents."""

from __future__ import annotations

from schemas.results.findings import Anomaly, Evidence, Notice, Suspect, Template
from schemas.results.incidents import Incident, JobIncident, Ranks, Scope, SuspiciousTemplate
from schemas.results.kept import DeadLetter, Snapshot
from schemas.results.measured import Gauge, Gauges, Series, gauges_of
from schemas.results.merged import MergedClass, MergedGroup, MergedStacks, Unobserved
from schemas.results.seen import Drift, Exit, Fatal, HardwareChange, PlatformAlert, SignatureCount, StackSpan, Stop
from schemas.results.timed import CollectiveState, FunctionKind, FunctionShare, OperationTimes, Sketch
from schemas.results.windows import Late, Progress, Window
from schemas.results.words import Activity, Area, Axis, CausalRole, Layer, Record, ScopeKind, Severity, Symptom, Verdict

__all__ = [
    "Activity",
    "Anomaly",
    "Area",
    "Axis",
    "CausalRole",
    "CollectiveState",
    "DeadLetter",
    "Drift",
    "Evidence",
    "Exit",
    "Fatal",
    "FunctionKind",
    "FunctionShare",
    "Gauge",
    "Gauges",
    "HardwareChange",
    "Incident",
    "JobIncident",
    "Late",
    "Layer",
    "MergedClass",
    "MergedGroup",
    "MergedStacks",
    "Notice",
    "OperationTimes",
    "PlatformAlert",
    "Progress",
    "Ranks",
    "Record",
    "Scope",
    "ScopeKind",
    "Series",
    "Severity",
    "SignatureCount",
    "Sketch",
    "Snapshot",
    "StackSpan",
    "Stop",
    "Suspect",
    "SuspiciousTemplate",
    "Symptom",
    "Template",
    "Unobserved",
    "Verdict",
    "Window",
    "gauges_of",
]
