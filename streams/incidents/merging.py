"""What is said of incidents of which one proved to be part of another: the one says so, the other shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from schemas.results import Incident
from streams.incidents.decision import ranks_of
from streams.incidents.evidence import evidence_of
from streams.incidents.opened import KEPT_TAKEN, Open, trimmed
from streams.incidents.proving import One, Proof, Told, merged, one_of
from streams.incidents.resolution import Resolution, goes_on
from streams.incidents.revising import Draft

SHOWN_TAKEN = 3
_OF_RESTED = frozenset({Proof.SLOW_THEN_STANDS, Proof.GREW_THEN_FAILED, Proof.GREW_THEN_ENDED, Proof.FAULT_THEN_FAILED})
"""What makes an incident that was over part of one that is open; whether it shows again is asked before."""


def merged_revisions(drafts: Sequence[Draft], rested: Sequence[Open]) -> Iterator[tuple[Open, Incident]]:
    """What is to be said of each incident, the parts of others before those; sets which are over."""
    yield from (_outside(draft) for draft in drafts if draft.incident.outside)
    drafts = [draft for draft in drafts if not draft.incident.outside]
    proofs = _proofs(drafts)
    by_id = {draft.says.id: draft for draft in drafts}
    former = list(_former(drafts, rested, proofs))
    for incident, says, into in former:
        take(by_id[into], incident, says, incident.latest or says, earlier=False)
        yield incident, says
    for draft in drafts:
        proof = proofs.get(draft.says.id)
        draft.incident.merged = proof.stays if proof else ""
        if proof is not None:
            take(by_id[proof.stays], draft.incident, draft.says, draft.says, earlier=proof.earlier)
            draft.is_over = bool(draft.says.resolution) or bool(by_id[proof.stays].says.resolution)
            yield draft.incident, _said_once(draft, proof.stays)
    for draft in drafts:
        if draft.says.id not in proofs:
            draft.is_over = bool(draft.says.resolution)
            yield draft.incident, _with_taken(draft)


def _outside(draft: Draft) -> tuple[Open, Incident]:
    """What is said of one that is part of an incident of another group of workers."""
    draft.is_over = bool(draft.says.resolution)
    return draft.incident, _said_once(draft, draft.incident.outside)


def _said_once(draft: Draft, stays: str) -> Incident:
    """What is part of another says so once, whatever is found of it since."""
    latest = draft.incident.latest
    return latest if latest is not None and latest.merged_into == stays else _part(draft.says, stays)


def _proofs(drafts: Sequence[Draft]) -> dict[str, One]:
    """What is part of what; what proved to be stays so until blame names others, or the other is over."""
    told = [_told(draft.incident, draft.says) for draft in drafts]
    near = max((draft.near_ns for draft in drafts), default=0)
    by_id = {draft.says.id: draft for draft in drafts}
    kept = {}
    for draft in drafts:
        into = by_id.get(draft.incident.merged)
        if into is not None and not _is_against(draft, into) and not _goes_on_without(draft, into):
            kept[draft.says.id] = One(draft.says.id, into.says.id, Proof.SAME_RANKS)
    return {
        name: one
        for name, one in merged(told, near, kept).items()
        if not _is_against(by_id[name], by_id[one.stays]) and not _goes_on_without(by_id[name], by_id[one.stays])
    }


def _is_against(part: Draft, whole: Draft) -> bool:
    """Whether the part names others than the whole, or, where both are alike, somebody whom that does not name."""
    named, others = ranks_of(part.says.suspects), ranks_of(whole.says.suspects)
    alike = part.incident.family == whole.incident.family
    return bool(named and others and not (named <= others if alike else named & others))


def _goes_on_without(part: Draft, whole: Draft) -> bool:
    """Whether the whole is over, the job goes on, and the part still shows."""
    return goes_on(whole.says.resolution) and not part.says.resolution and part.incident.quiet == 0


def _former(
    drafts: Sequence[Draft], rested: Sequence[Open], proofs: dict[str, One]
) -> Iterator[tuple[Open, Incident, str]]:
    """What was over of late and proved to be part of what is open."""
    for one in rested:
        latest = one.latest
        if latest is None or latest.merged_into:
            continue
        for draft in drafts:
            if draft.says.id in proofs or draft.says.resolution:
                continue
            proof = one_of(_told(one, latest), _told(draft.incident, draft.says), draft.near_ns)
            if proof is not None and proof.merged == latest.id and proof.why in _OF_RESTED:
                later = {"revision": latest.revision + 1, "published": draft.says.published}
                yield one, _part(msgspec.structs.replace(latest, **later), proof.stays), proof.stays
                break


def _told(incident: Open, says: Incident) -> Told:
    return Told(
        id=says.id,
        family=incident.family,
        says=says,
        anomalies=incident.anomalies,
        shown=incident.shown,
        first=incident.anomalies[0].end,
    )


def _part(says: Incident, stays: str) -> Incident:
    """What is said of the part of another."""
    return msgspec.structs.replace(
        says, status="resolved", severity="info", resolution=Resolution.MERGED.value, merged_into=stays
    )


def take(whole: Draft, part: Open, says: Incident, worst: Incident, *, earlier: bool) -> None:
    """Take over what the part shows, and its onset where it began with that."""
    own = {one.id for one in whole.incident.anomalies}
    known = {one.id for one in whole.incident.took}
    new = [one for one in part.anomalies if one.severity != "info" and one.id not in own | known]
    whole.incident.took = trimmed([*whole.incident.took, *new], KEPT_TAKEN)
    if earlier and (whole.incident.began is None or says.onset < whole.incident.began):
        whole.incident.began = says.onset
    if worst.severity == "critical":
        whole.says = msgspec.structs.replace(whole.says, severity="critical")


def _with_taken(draft: Draft) -> Incident:
    """What is said of one that others proved to be part of: with what these showed, and since when."""
    taken, says = draft.incident.took, draft.says
    if taken:
        known = {(one.detector, one.text) for one in says.evidence}
        more = [one for one in evidence_of(taken) if (one.detector, one.text) not in known]
        says = msgspec.structs.replace(says, evidence=[*says.evidence, *more[:SHOWN_TAKEN]])
    began = draft.incident.began
    return msgspec.structs.replace(says, onset=began) if began is not None and began < says.onset else says
