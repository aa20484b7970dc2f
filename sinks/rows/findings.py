"""Rows of templates, learned libraries, anomalies, incidents and silences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas import codec
from schemas.library import Library
from schemas.results import Anomaly, Incident, Suspect, Template
from schemas.silences import Matcher, Silence
from sinks.rows.common import Block, single


def template_block(template: Template, run_id: str) -> Block:
    """One row; its version grows with what the template covers."""
    return single(
        "templates",
        {
            "run_id": run_id,
            "job": template.job,
            "id": template.id,
            "text": template.text,
            "signatures": template.signatures,
            "aliases": template.aliases,
            "first_seen": template.first_seen,
            "version": len(template.signatures) + len(template.aliases),
        },
    )


def library_block(library: Library, run_id: str) -> Block:
    """A row for each template; none for a library that holds none."""
    shares = [library.shares(template) for template in library.templates]
    same = {
        "run_id": run_id,
        "name": library.name,
        "number": library.number,
        "version": library.version,
        "masks": library.masks,
        "rankwatch": library.rankwatch,
        "learned_from": [job.id for job in library.jobs],
    }
    return Block(
        "library",
        {
            **{name: [value] * len(library.templates) for name, value in same.items()},
            "id": [template.id for template in library.templates],
            "text": [template.text for template in library.templates],
            "printed_by": [sorted(template.printed) for template in library.templates],
            "phases": [list(by_phase) for by_phase in shares],
            "rank_shares": [list(by_phase.values()) for by_phase in shares],
        },
    )


def anomaly_block(anomaly: Anomaly, run_id: str) -> Block:
    """One row."""
    return single(
        "anomalies",
        {
            "run_id": run_id,
            "job": anomaly.job,
            "attempt": anomaly.attempt,
            "id": anomaly.id,
            "detector": anomaly.detector,
            "version": anomaly.version,
            "config": anomaly.config,
            "ts": anomaly.start,
            "window_end": anomaly.end,
            "onset": anomaly.onset,
            "axis": anomaly.axis,
            "layer": anomaly.layer,
            "symptom": anomaly.symptom,
            "area": anomaly.area,
            "severity": anomaly.severity,
            "grounds": anomaly.grounds,
            "metric": anomaly.metric,
            "text": anomaly.text,
            "peers": anomaly.peers,
            "phase": anomaly.phase,
            "iteration": anomaly.iteration,
            **_suspects(anomaly.suspects),
            "victims": anomaly.victims,
            "about": anomaly.about,
            "unobserved": anomaly.unobserved,
            "templates": anomaly.templates,
            "library": anomaly.library,
            "json": codec.encode(anomaly).decode(),
        },
    )


def incident_block(incident: Incident, run_id: str) -> Block:
    """One row for this revision."""
    return single(
        "incidents",
        {
            "run_id": run_id,
            "job": incident.job,
            "attempt": incident.attempt,
            "id": incident.id,
            "revision": incident.revision,
            "ts": incident.published,
            "onset": incident.onset,
            "status": incident.status,
            "severity": incident.severity,
            "symptom": incident.symptom,
            "area": incident.area,
            "verdict": incident.verdict,
            "reason": incident.reason,
            "summary": incident.summary,
            "next_step": incident.next_step,
            "phase": incident.phase,
            "iteration": incident.iteration,
            **_suspects(incident.suspects),
            **_places(incident),
            **_grounds(incident),
            "notification_key": incident.notification_key,
            "merged_into": incident.merged_into,
            "resolution": incident.resolution,
            "library": incident.library,
            "cluster": incident.cluster,
            "labels": incident.labels,
            "recurs": incident.recurs,
            "series": incident.series,
            "member_jobs": [member.job for member in incident.members],
            "member_attempts": [member.attempt for member in incident.members],
            "member_incidents": [member.incident for member in incident.members],
            "json": codec.encode(incident).decode(),
        },
    )


def _suspects(suspects: Sequence[Suspect]) -> dict[str, Any]:
    return {
        "suspect_ranks": [suspect.rank for suspect in suspects],
        "suspect_nodes": [suspect.node for suspect in suspects],
        "suspect_scores": [suspect.score for suspect in suspects],
        "suspect_reasons": [suspect.why for suspect in suspects],
    }


def _places(incident: Incident) -> dict[str, Any]:
    return {
        "victims": incident.victims.ranks,
        "missing": incident.missing.ranks,
        "unobserved": incident.unobserved.ranks,
        "scope_kind": incident.scope.kind,
        "scope_name": incident.scope.name,
        "scope_ranks": incident.scope.ranks,
        "scope_nodes": incident.scope.nodes,
        "scope_devices": incident.scope.devices,
        "scope_groups": incident.scope.groups,
        "scope_switches": incident.scope.switches,
        "scope_left_out": incident.scope.left_out,
        "clocks": incident.clocks,
    }


def _grounds(incident: Incident) -> dict[str, Any]:
    return {
        "template_ids": [template.id for template in incident.templates],
        "template_texts": [template.text for template in incident.templates],
        "template_axes": [template.axis for template in incident.templates],
        "template_absent": [template.absent for template in incident.templates],
        "evidence_layers": [piece.layer for piece in incident.evidence],
        "evidence_detectors": [piece.detector for piece in incident.evidence],
        "evidence_texts": [piece.text for piece in incident.evidence],
        "evidence_peers": [piece.peers for piece in incident.evidence],
        "stacks": [kind.text for kind in incident.stacks],
    }


def silence_block(silence: Silence, run_id: str) -> Block:
    """One row for this version."""
    return single(
        "silences",
        {
            "run_id": run_id,
            "id": silence.id,
            "number": silence.number,
            "starts": silence.starts,
            "ends": silence.ends,
            "labels": [matcher.label for matcher in silence.matchers],
            "values": [matcher.value for matcher in silence.matchers],
            "likes": [_like(matcher) for matcher in silence.matchers],
            "negated": [matcher.negated for matcher in silence.matchers],
            "created_by": silence.created_by,
            "comment": silence.comment,
            "kind": silence.kind,
        },
    )


def _like(matcher: Matcher) -> str:
    """What LIKE takes for the value."""
    plain = matcher.value.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return plain.replace("*", "%").replace("?", "_") if matcher.pattern else plain
