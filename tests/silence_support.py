"""Silences and incidents for tests, and which are for which."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from schemas.results import Incident, JobIncident, Scope, Suspect
from schemas.silences import Matcher, Silence
from streams.silencing import SilenceReason

NOW = 1_795_953_600_000_000_000
HOUR = 3_600_000_000_000


def suspects(*nodes: str) -> list[Suspect]:
    return [Suspect(rank=rank, node=node, score=0.9, why="its own error") for rank, node in enumerate(nodes)]


INCIDENT = Incident(
    id="i",
    revision=1,
    published=NOW,
    job="run-7",
    attempt="0",
    symptom="crash",
    area="hardware",
    severity="critical",
    verdict="supported",
    reason="a reason",
    status="open",
    onset=NOW,
    summary="rank 0 failed",
    next_step="look",
    scope=Scope(kind="rank", name="rank 0", ranks="0", nodes=["n1"]),
    suspects=suspects("n1"),
    cluster="c1",
    labels={"team": "speech"},
)


def matcher(text: str) -> Matcher:
    """``job=a``, ``job!=a``, ``job=~a*``, ``job!~a*``."""
    found = re.fullmatch(r"(\w+)(!?[=~]~?)(.*)", text)
    assert found, text
    label, sign, value = found.groups()
    return Matcher(label=label, value=value, negated=sign[0] == "!", pattern=sign[-1] == "~")


def silence(asked: str, **changes: Any) -> Silence:
    """``asked``: what labels have to be, with blanks between."""
    made = Silence(
        id="s",
        number=1,
        matchers=[matcher(text) for text in asked.split()],
        starts=NOW - HOUR,
        ends=NOW + HOUR,
        created_by="maria",
        comment="new cable",
    )
    return msgspec.structs.replace(made, **changes)


NOBODY = {"suspects": [], "scope": Scope(kind="job", name="run-7")}
TWO = {"suspects": suspects("n1", "n2"), "scope": Scope(kind="group", name="ranks 0-1", nodes=["n1", "n2"])}
FLEET = {
    "job": "-",
    "attempt": "",
    "suspects": [],
    "scope": Scope(kind="node", name="n1", nodes=["n1"]),
    "members": [JobIncident(job=job, attempt="0", incident=job) for job in ("run-7", "run-8")],
}

CASES: list[tuple[str, dict[str, Any], str, SilenceReason]] = [
    ("job", {}, "job=run-7", SilenceReason.SILENCED),
    ("another job", {}, "job=run-8", SilenceReason.OTHER),
    ("job by pattern", {}, "job=~run-?", SilenceReason.SILENCED),
    ("a pattern is no text", {}, "job=run-?", SilenceReason.OTHER),
    ("a percent sign is itself", {"job": "run%7"}, "job=run%7", SilenceReason.SILENCED),
    ("a percent sign is no pattern", {}, "job=r%7", SilenceReason.OTHER),
    ("an underscore is no pattern", {}, "job=~run_*", SilenceReason.OTHER),
    ("a backslash is itself", {"job": "a\\b"}, "job=a\\b", SilenceReason.SILENCED),
    (
        "all of several labels",
        {},
        "job=run-7 cluster=c1 symptom=crash area=hardware severity=critical",
        SilenceReason.SILENCED,
    ),
    ("one of several labels", {}, "job=run-7 cluster=c2", SilenceReason.OTHER),
    ("the job's own label", {}, "team=speech", SilenceReason.SILENCED),
    ("what it must not be", {}, "job=run-7 team!=vision", SilenceReason.SILENCED),
    ("what it must not be but is", {}, "job=run-7 team!=speech", SilenceReason.OTHER),
    ("what it must not be by pattern", {}, "job=run-7 team!~sp*", SilenceReason.OTHER),
    ("a label that is not known", {}, "tier=one", SilenceReason.OTHER),
    ("a label that is not known may be what it must not", {}, "job=run-7 tier!=one", SilenceReason.OTHER),
    ("a cluster that is not known", {"cluster": ""}, "job=run-7 cluster!=c2", SilenceReason.OTHER),
    ("the job's own label is not the node", {"labels": {"node": "n9"}}, "node=n9", SilenceReason.OTHER),
    ("node", {}, "node=n1", SilenceReason.SILENCED),
    ("another node", {}, "node=n2", SilenceReason.OTHER),
    ("one of two nodes", TWO, "node=n1", SilenceReason.NODE_NOT_COVERED),
    ("both of two nodes", TWO, "node=~n*", SilenceReason.SILENCED),
    ("two nodes of another job", TWO, "node=n1 job=x", SilenceReason.OTHER),
    ("the scope reaches beyond the suspect", {"scope": TWO["scope"]}, "node=n1", SilenceReason.NODE_NOT_COVERED),
    ("no node is known", NOBODY, "node=n1", SilenceReason.NODE_UNKNOWN),
    ("no node is known, so it may be that", NOBODY, "job=run-7 node!=n1", SilenceReason.NODE_UNKNOWN),
    ("the node of one suspect is not known", {"suspects": suspects("n1", "")}, "node=n1", SilenceReason.NODE_UNKNOWN),
    ("the job of what names no node", NOBODY, "job=run-7", SilenceReason.SILENCED),
    ("one of several jobs", FLEET, "job=run-7", SilenceReason.OTHER),
    ("all of several jobs", FLEET, "job=~run-*", SilenceReason.SILENCED),
    ("the node of several jobs", FLEET, "node=n1", SilenceReason.SILENCED),
    ("a hang", {"symptom": "hang"}, "job=run-7", SilenceReason.HANG),
    ("a hang on a silenced node", {"symptom": "hang"}, "node=n1", SilenceReason.HANG),
    ("a slowdown", {"symptom": "slowdown"}, "node=n1", SilenceReason.SILENCED),
]
"""What is called what: how the incident differs, what is asked for, and what comes of it."""

TOGETHER: list[tuple[str, dict[str, Any], set[str], list[str], SilenceReason]] = [
    ("each by its own", {}, set(), ["job=run-7", "job=run-8"], SilenceReason.MEMBERS_SILENCED),
    ("each by its team", {}, set(), ["team=speech", "team=vision"], SilenceReason.MEMBERS_SILENCED),
    ("both by one", {}, set(), ["job=~run-*"], SilenceReason.SILENCED),
    ("by what all share", {"labels": {"tier": "one"}}, set(), ["tier=one"], SilenceReason.SILENCED),
    ("one of two", {}, set(), ["team=speech"], SilenceReason.MEMBER_NOT_COVERED),
    ("none of them", {}, set(), ["job=run-9"], SilenceReason.OTHER),
    ("one is not known", {}, {"gone"}, ["team=speech", "team=vision"], SilenceReason.MEMBER_UNKNOWN),
    ("one hangs", {}, {"run-8"}, ["job=run-7", "job=run-8"], SilenceReason.MEMBER_NOT_COVERED),
    ("all hang", {"symptom": "hang"}, set(), ["job=run-7", "job=run-8"], SilenceReason.HANG),
    ("it has no members left", {"members": []}, set(), ["job=run-7"], SilenceReason.OTHER),
]
"""What is called what: how one of two jobs differs, which of these hang or are not known, what is asked for."""


def several(changes: dict[str, Any]) -> Incident:
    """The incident of two jobs."""
    return msgspec.structs.replace(INCIDENT, **{**FLEET, "id": "f", "labels": {}, **changes})


def members(told: set[str]) -> list[Incident]:
    """What it is made of: each crashes in another team, who is told of hangs; with ``gone`` there is but one."""
    found = [
        msgspec.structs.replace(
            INCIDENT, job=job, id=job, symptom="hang" if job in told else "crash", labels={"team": team}
        )
        for job, team in (("run-7", "speech"), ("run-8", "vision"))
    ]
    return found[:1] if "gone" in told else found
