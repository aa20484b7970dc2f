"""What is said across the jobs of a cluster: reports of jobs to the fleet stage, and how often nodes have failed."""

from __future__ import annotations

from typing import Literal

import msgspec

from schemas.results import Area, Severity, Symptom, Verdict


class ReportedIncident(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An incident of a job in short, as of its ``revision``: what tells whether it is of one failure with others.

    ``started`` is when its attempt was first seen; the failure lies within ``within_ns`` of the ``onset``. ``nodes``
    and ``devices`` are those that it points at, ``place`` says where in words; ``named`` is whether it names a rank.
    ``errors`` are the ids of the suspicious templates that its suspects printed. ``labels`` are the job's.
    """

    incident: str
    attempt: str
    revision: int
    published: int
    started: int
    onset: int
    within_ns: int
    symptom: Symptom
    area: Area
    severity: Severity
    verdict: Verdict
    reason: str
    status: Literal["open", "resolved"]
    place: str
    resolution: str = ""
    merged_into: str = ""
    named: bool = False
    nodes: list[str] = []
    devices: list[str] = []
    errors: list[str] = []
    labels: dict[str, str] = {}


class StorageComplaint(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A node's lines complain of a file system or its server, by the name that they give it."""

    storage: str
    node: str
    first: int
    last: int


class FleetReport(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What the job stage tells the fleet stage of one job in the window that ends at ``end``.

    ``incidents`` are those with a new revision. ``nodes`` are all on which the job runs, null where they are as told
    before; ``switches`` the paths of switches above nodes (``s0.leaf3``), as far as they are known. ``left`` is whether
    the job is gone.
    """

    id: str
    cluster: str
    job: str
    end: int
    incidents: list[ReportedIncident] = []
    complaints: list[StorageComplaint] = []
    nodes: list[str] | None = None
    switches: dict[str, str] = {}
    left: bool = False


class NodeHistory(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """How often a node was where jobs failed, beside how long jobs ran on it; context, never a verdict.

    ``incidents`` and ``node_days`` are sums in which what is 28 days old counts half. ``rate`` is in incidents a
    node-day, drawn towards that of the cluster, the more so the shorter the node was seen; ``score`` is that rate in
    units of the ``cluster_rate``. ``last`` is the onset of the latest of them, ``counted`` how many there were.
    """

    cluster: str
    node: str
    published: int
    incidents: float
    node_days: float
    rate: float
    cluster_rate: float
    score: float
    counted: int
    last: int
