"""Incidents of one job and of several: who is suspected, where, since when and why."""

from __future__ import annotations

from typing import Literal

from schemas.results.findings import Evidence, Suspect
from schemas.results.merged import MergedClass
from schemas.results.words import Area, Axis, Record, ScopeKind, Severity, Symptom, Verdict


class Ranks(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Ranks as ranges, ``0-4,6-7``."""

    ranks: str = ""


class Scope(Record, frozen=True, omit_defaults=True, kw_only=True):
    """The smallest place that covers the evidence.

    ``devices``, parallel and worker ``groups`` and the ``switches`` that its nodes hang under are listed as far as they
    are known, the first of each; ``left_out`` counts the others.
    """

    kind: ScopeKind
    name: str
    ranks: str = ""
    nodes: list[str] = []
    devices: list[str] = []
    groups: list[str] = []
    switches: list[str] = []
    left_out: int = 0


class SuspiciousTemplate(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A template that stands out, a result of its own even when nobody is named.

    ``absent``: nobody prints it though healthy jobs do; ``first_seen`` is then since when, the beginning of training.
    ``elsewhere`` are jobs of the library that print it, none of them in the baseline.
    """

    id: str
    text: str
    first_seen: int
    ranks: str
    axis: Axis
    absent: bool = False
    elsewhere: list[str] = []


class JobIncident(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An incident of one job, as an incident of several jobs refers to it."""

    job: str
    attempt: str
    incident: str


class Incident(Record, frozen=True, omit_defaults=True, kw_only=True):
    """One fault of one attempt, as of ``published`` (the time of the window that closed), or of several jobs.

    ``id`` never changes; each change is a new ``revision``. ``reason`` is why blame decided as it did; ``library`` the
    version of the learned library that its templates were held against. ``stacks`` is where the ranks stood while the
    job stood still, before it failed of that: the classes of threads that say anything, without frames.
    ``clocks`` says whose times were corrected. ``merged_into`` is the incident that it proved to be part of. ``labels``
    are the job's own, by which staff silence; ``recurs`` counts the incidents of earlier attempts of the job that were
    like it, ``series`` is the id of the first of these, empty where there were none. ``notification_key`` is that of
    the first revision: of the series, where it was seen by then. One of several jobs of a ``cluster`` has the job
    ``-``, no attempt, and as ``members`` those that it is made of.
    """

    id: str
    revision: int
    published: int
    job: str
    attempt: str
    symptom: Symptom
    area: Area
    severity: Severity
    verdict: Verdict
    reason: str
    status: Literal["open", "resolved"]
    onset: int
    summary: str
    next_step: str
    scope: Scope
    iteration: int | None = None
    phase: str = ""
    suspects: list[Suspect] = []
    victims: Ranks = Ranks()
    missing: Ranks = Ranks()
    unobserved: Ranks = Ranks()
    templates: list[SuspiciousTemplate] = []
    evidence: list[Evidence] = []
    notification_key: str = ""
    merged_into: str = ""
    resolution: str = ""
    library: str = ""
    stacks: list[MergedClass] = []
    cluster: str = ""
    labels: dict[str, str] = {}
    recurs: int = 0
    members: list[JobIncident] = []
    clocks: list[str] = []
    series: str = ""
