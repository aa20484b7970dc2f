"""Whether an incident is like one of an earlier attempt of its job: then it recurs, and staff see one alert of both.

A pure decision over what is kept of earlier incidents. A job that fails again in another way does not recur.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from schemas.results import Incident
from streams.incidents.decision import ranks_of
from streams.incidents.resolution import goes_on

MOST_PAST = 32
"""Incidents of a job that are remembered; of a series the latest knows how many there were."""
MOST_PLACES = 64
_STOPS = ("hang", "crash", "memory")
SOON_NS = 3600 * 1_000_000_000
"""A job that is begun again and again begins within so long; that nobody is known each time makes them alike."""


class Likeness(Enum):
    """Why an incident is like a former one, or not."""

    OTHER_SYMPTOM = "it is of another kind"
    OTHER_ERRORS = "what failed printed other errors"
    SAME_ERRORS = "what failed printed the same errors"
    SAME_RANKS = "it is of the same ranks"
    SAME_NODES = "it is of the same nodes"
    SAME_REASON = "it came soon after, and of both nothing is known but one reason"
    OTHER_PLACES = "it is of other ranks and nodes, or of nobody that is known"


RECURS = frozenset({Likeness.SAME_ERRORS, Likeness.SAME_RANKS, Likeness.SAME_NODES, Likeness.SAME_REASON})
"""Reasons for which it recurs."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of an incident: whom and what it was about, and what came before it.

    ``order`` is that of its attempt within its ``group`` of workers, by number and beginning. ``errors`` are signatures
    of what those printed who failed. ``key`` is the key of the alert of the first of its ``series``, which is its id,
    empty where this is it; ``recurs`` is how many like it there were before. ``failed``: it names for certain who
    stopped or failed, and the attempt did not go on. ``over`` is why it is over, empty where it is not, ``over_at``
    since when (ns); ``reason`` is why blame decided so.
    """

    id: str
    group: str
    order: tuple[int, int]
    symptom: str
    ranks: list[int]
    nodes: list[str]
    errors: list[str]
    key: str
    recurs: int
    onset: int = 0
    failed: bool = False
    series: str = ""
    over: str = ""
    over_at: int = 0
    reason: str = ""


def likeness(one: Past, other: Past) -> Likeness:
    """Whether two incidents of different attempts are alike; where both tell errors these decide."""
    if one.symptom != other.symptom:
        return Likeness.OTHER_SYMPTOM
    if one.errors and other.errors:
        return Likeness.SAME_ERRORS if set(one.errors) & set(other.errors) else Likeness.OTHER_ERRORS
    if one.ranks and other.ranks:
        return Likeness.SAME_RANKS if set(one.ranks) & set(other.ranks) else Likeness.OTHER_PLACES
    if set(one.nodes) & set(other.nodes):
        return Likeness.SAME_NODES
    untold = not any((one.errors, one.ranks, one.nodes, other.errors, other.ranks, other.nodes))
    soon = abs(one.onset - other.onset) <= SOON_NS
    return Likeness.SAME_REASON if untold and soon and one.reason == other.reason != "" else Likeness.OTHER_PLACES


def past_of(incident: Incident, errors: Sequence[str], group: str, order: tuple[int, int]) -> Past:
    """What is remembered of an incident as it stands."""
    ranks = sorted(rank for rank in ranks_of(incident.suspects) if rank is not None)
    nodes = sorted({*(one.node for one in incident.suspects if one.node), *incident.scope.nodes})
    return Past(
        id=incident.id,
        group=group,
        order=order,
        symptom=incident.symptom,
        ranks=ranks[:MOST_PLACES],
        nodes=nodes[:MOST_PLACES],
        errors=sorted(set(errors))[:MOST_PLACES],
        key=incident.notification_key,
        recurs=0,
        onset=incident.onset,
        failed=incident.verdict == "supported" and incident.symptom in _STOPS and not goes_on(incident.resolution),
        over=incident.resolution,
        over_at=incident.published if incident.resolution else 0,
        reason=incident.reason,
    )


def with_series(incident: Incident, one: Past, past: Sequence[Past]) -> tuple[Incident, list[Past]]:
    """The incident with how many of earlier attempts were like it, and which of these was the first.

    Returns it, and what is remembered from now on. What pages nobody, or is part of another, is no part of a series.
    It has the key of the series where its first revision is like it; the key under which staff were told never changes.
    """
    others = [other for other in past if other.id != one.id]
    if incident.severity == "info" or incident.merged_into:
        return incident, others
    earlier = [other for other in others if other.group == one.group and other.order < one.order]
    like = [other for other in earlier if likeness(other, one) in RECURS]
    if like:
        last = max(like, key=lambda other: (other.order, other.recurs, other.id))
        one = msgspec.structs.replace(one, key=last.key, recurs=last.recurs + 1, series=last.series or last.id)
    key = one.key if incident.revision == 1 else incident.notification_key
    said = msgspec.structs.replace(incident, notification_key=key, recurs=one.recurs, series=one.series)
    return said, [*others, one][-MOST_PAST:]
