"""Slowness: whom contrasts of ranks single out, and why nobody is where they do not.

Space decides who, time decides whether and when. What a ground is worth stands in one table; who adds a detector of
slowness adds its grounds there.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from schemas.results import Anomaly, Area
from streams.incidents.counterfactual import GROUNDS as PLAYED
from streams.incidents.counterfactual import by_played_steps
from streams.incidents.decision import Base, Decision, Reason, earliest_of, latest_of, ranks_of
from streams.incidents.profiled import GROUNDS as PROFILED
from streams.incidents.profiled import by_profiles
from streams.incidents.situation import Situation

RECENT_WINDOWS = 3
"""A detector's latest finding stands for so many windows, since not all of them speak in each."""


class Weight(IntEnum):
    """What a finding is worth, from what names nobody to what names by itself."""

    NOBODY = 0
    HINT = 1
    """It names where peers are known and the rank has changed, or another source agrees."""
    PEERS = 2
    """It names where peers are known, or the rank has shifted against its own past."""
    LAYOUT = 3
    """It names where stages and roles are known, since it may be one of those."""
    CERTAIN = 4


ALIKE = "slower_than_alike"
CROSS_JOB = (ALIKE, "slower_than_like")
"""Grounds that hold a job against healthy ones, the first where those are alike in all that decides a step's time."""


class Ground(msgspec.Struct, frozen=True):
    """A ground's weight and why blame decides by it."""

    weight: Weight
    reason: Reason


GROUNDS = {
    "slow_and_changed": Ground(Weight.CERTAIN, Reason.SLOW_AND_CHANGED),
    "slow_against_peers": Ground(Weight.PEERS, Reason.SLOW_KNOWN_LAYOUT),
    "slow_perhaps_with_others": Ground(Weight.LAYOUT, Reason.SLOW_KNOWN_LAYOUT),
    "slow_place": Ground(Weight.LAYOUT, Reason.SLOW_PLACE),
    "busy_changed_and_cpu": Ground(Weight.CERTAIN, Reason.BUSY_AND_CHANGED),
    "busy_and_changed": Ground(Weight.LAYOUT, Reason.BUSY_AND_CHANGED),
    "busy_and_cpu": Ground(Weight.LAYOUT, Reason.BUSY),
    "busy_alone": Ground(Weight.NOBODY, Reason.BUSY_ALONE),
    "slow_first_rank": Ground(Weight.NOBODY, Reason.SLOW_FIRST_RANK),
    "slow_node": Ground(Weight.NOBODY, Reason.SLOW_NODE),
    "slow_experts": Ground(Weight.NOBODY, Reason.SLOW_EXPERTS),
    "slow_unwitnessed": Ground(Weight.NOBODY, Reason.SLOW_UNWITNESSED),
    "slow_unseen": Ground(Weight.NOBODY, Reason.SLOW_UNSEEN),
    "slow_or_waits": Ground(Weight.NOBODY, Reason.SLOW_OR_WAITS),
    "slow_within_group": Ground(Weight.NOBODY, Reason.SLOW_WITHIN_GROUP),
    "slow_but_waits": Ground(Weight.NOBODY, Reason.SLOW_BUT_WAITS),
    "slow_stage": Ground(Weight.NOBODY, Reason.SLOW_STAGE),
    "slow_replica": Ground(Weight.NOBODY, Reason.SLOW_REPLICA),
    "rotating": Ground(Weight.NOBODY, Reason.ROTATING),
    "many_slow": Ground(Weight.NOBODY, Reason.MANY_SLOW),
}
"""Contrasts of ranks."""
OF_TIME = frozenset({"job_shift", "own_shift", "shared_shift"})
"""What has become slower than its own past; it names nobody by itself."""
_SAMPLED = tuple(grounds for grounds in GROUNDS if grounds.startswith("busy_"))
"""Grounds of who is hardly ever seen waiting while peers mostly wait."""
_OF_PLACES = ("slow_stage", "slow_replica", "slow_within_group", "slow_node")
"""Grounds of a place that is told though none of its ranks is named."""
_OVERRULES = ("rotating", "many_slow")
"""Grounds that take back what timers say of single ranks: where the slow one moves, what its own timer says."""


def slowdown(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision over a slowdown's anomalies. What other jobs tell counts only where nothing of this one does."""
    own = [one for one in anomalies if one.grounds not in CROSS_JOB]
    if not any(one.severity != "info" for one in own) and len(own) < len(anomalies):
        return _unlike_other_jobs([one for one in anomalies if one.grounds in CROSS_JOB])
    return _of_own(own, situation)


def _unlike_other_jobs(found: list[Anomaly]) -> Decision:
    """Healthy jobs like it are faster: nobody is named, and it is sure only if they are alike in all that matters."""
    base = Base.on(found, earliest_of(found), symptom="slowdown")
    if latest_of(found).grounds == ALIKE:
        return base.everybody(Reason.SLOWER_THAN_ALIKE, area="unknown")
    return base.nobody(Reason.SLOWER_THAN_LIKE)


def _of_own(anomalies: list[Anomaly], situation: Situation) -> Decision:
    contrasts = [one for one in anomalies if one.grounds in GROUNDS]
    singling = [one for one in contrasts if GROUNDS[one.grounds].weight > Weight.NOBODY and one.severity != "info"]
    played = by_played_steps(anomalies, singling, situation)
    if played is not None:
        return played
    standing = situation.by_timers(contrasts, anomalies)
    standing = [one for one in standing if one.severity != "info"] or standing
    if not standing:
        profiled = situation.of_looks([one for one in anomalies if one.grounds in PROFILED], anomalies)
        return by_profiles(profiled, anomalies, situation) if profiled else _without_contrast(anomalies, situation)
    latest = _latest(standing, situation)
    for grounds in _OVERRULES:
        overruling = [one for one in latest if one.grounds == grounds]
        left = [one for one in latest if not any(_overrules(other, one, situation) for other in overruling)]
        if overruling and not any(GROUNDS[one.grounds].weight for one in left):
            base = _base(latest_of(overruling), contrasts, anomalies, situation)
            return base.nobody(GROUNDS[grounds].reason, area="workload")
        latest = left
    strongest = max(latest, key=_strength)
    base = _base(strongest, contrasts, anomalies, situation)
    reason = _reason(strongest, latest, anomalies, situation)
    if reason in _NAMING:
        return base.named(reason, strongest.suspects, area=_area(strongest, anomalies))
    of_a_place = strongest.grounds in _OF_PLACES and len(strongest.suspects) > 1
    among = strongest.suspects if of_a_place else []
    return base.nobody(reason, area=strongest.area, among=among)


def _base(last: Anomaly, contrasts: list[Anomaly], anomalies: list[Anomaly], situation: Situation) -> Base:
    """What the decision rests on: how this finding came about, and what still tells that the job is slower."""
    run = situation.run_to(last, [one for one in contrasts if (one.severity == "info") == (last.severity == "info")])
    beside = situation.standing([one for one in anomalies if one.grounds not in GROUNDS], anomalies)
    return Base.on([*run, *beside], earliest_of(run), symptom="slowdown")


def _reason(strongest: Anomaly, latest: list[Anomaly], anomalies: list[Anomaly], situation: Situation) -> Reason:
    """Why whom the strongest finding singles out is named, or not."""
    ground = GROUNDS[strongest.grounds]
    seen_working = ground.reason is Reason.SLOW_UNWITNESSED and _is_seen_working(strongest, anomalies, situation)
    if ground.weight is Weight.NOBODY and not seen_working:
        return ground.reason
    if len(strongest.suspects) > 1 and not situation.knows_layout:
        # Several that have become slow together may be one stage.
        return Reason.SLOW_UNKNOWN_LAYOUT
    if _contradicted(strongest, latest):
        return Reason.SOURCES_DISAGREE
    shifted = _shifted(strongest, anomalies, situation)
    if (ground.weight is Weight.PEERS or seen_working) and ranks_of(strongest.suspects) <= shifted:
        return Reason.SLOW_AND_CHANGED
    if ground.weight is Weight.CERTAIN:
        return ground.reason
    return ground.reason if situation.knows_layout and not seen_working else Reason.SLOW_UNKNOWN_LAYOUT


def _is_seen_working(strongest: Anomaly, anomalies: list[Anomaly], situation: Situation) -> bool:
    """Whether samples show at work, while their peers wait, those of whose waiting nobody's timers tell."""
    sampled = situation.standing([one for one in anomalies if one.grounds in _SAMPLED], anomalies)
    return any(ranks_of(one.suspects) == ranks_of(strongest.suspects) for one in sampled)


_NAMING = (
    Reason.SLOW_AND_CHANGED,
    Reason.SLOW_KNOWN_LAYOUT,
    Reason.SLOW_PLACE,
    Reason.BUSY_AND_CHANGED,
    Reason.BUSY,
)


def _area(strongest: Anomaly, anomalies: list[Anomaly]) -> Area:
    """What a timer calls compute is a matter of data where stacks show the same rank loading."""
    named = ranks_of(strongest.suspects)
    loads = [one for one in anomalies if one.layer == "stack" and one.area == "data"]
    shown = any(named <= ranks_of(one.suspects) for one in loads)
    return "data" if shown and strongest.area == "compute" else strongest.area


def _without_contrast(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """Nothing tells the ranks apart any more: what is slow inside a synchronised step shows on all of them alike.

    The latest finding knows best whether all work became longer alike, since some timers' changes are found later.
    """
    shifts = [one for one in anomalies if one.grounds == "job_shift"] or anomalies
    run = situation.run_to(latest_of(shifts), shifts)
    rests = [*run, *situation.standing(anomalies, anomalies)]
    area = latest_of(run).area
    reason = _why_nobody(anomalies, situation, area)
    return Base.on(rests, earliest_of(run), symptom="slowdown").nobody(reason, area=area)


def _why_nobody(anomalies: list[Anomaly], situation: Situation, area: Area) -> Reason:
    """Why nobody is named though the job is slower: it is not said of what is shown as evidence that it is nothing."""
    if any(one.suspects and one.grounds in GROUNDS.keys() | PLAYED.keys() | PROFILED for one in anomalies):
        return Reason.NO_LONGER_APART
    if area == "workload":
        return Reason.OTHER_INPUTS
    shifts = [one for one in anomalies if one.grounds in ("own_shift", "shared_shift")]
    own = bool(shifts) and max(shifts, key=lambda one: (one.end, one.grounds)).grounds == "own_shift"
    if situation.led_within and not own:
        return Reason.LED_WITHIN
    return Reason.LITTLE_APART if own or situation.leading else Reason.JOB_SLOWER


def _overrules(one: Anomaly, other: Anomaly, situation: Situation) -> bool:
    """Whether the first finding takes back the other, or is the same.

    The one to which the slow work of another timer has just moved may for that be slow by this one too.
    """
    if one.grounds != "rotating" or _of_one(one, other):
        return True
    turn = situation.members.keys() - set(one.victims)
    return ranks_of(other.suspects) <= turn


def _latest(contrasts: list[Anomaly], situation: Situation) -> list[Anomaly]:
    """Each detector's findings of its latest window, unless others have spoken for long since."""
    newest = max(one.end for one in contrasts)
    ends = {one.detector: max(other.end for other in contrasts if other.detector == one.detector) for one in contrasts}
    oldest = newest - RECENT_WINDOWS * situation.window_ns
    return [one for one in contrasts if one.end == ends[one.detector] and one.end > oldest]


def _strength(one: Anomaly) -> tuple[int, bool, float, str]:
    """What weighs more comes first, then who is singled out alone, and by more."""
    best = max((suspect.score for suspect in one.suspects), default=0.0)
    return GROUNDS[one.grounds].weight, len(one.suspects) == 1, best, one.id


def _contradicted(strongest: Anomaly, latest: list[Anomaly]) -> bool:
    """Whether another detector that weighs as much names only others."""
    named = ranks_of(strongest.suspects)
    weight = GROUNDS[strongest.grounds].weight
    return any(
        one.detector != strongest.detector
        and GROUNDS[one.grounds].weight >= min(weight, Weight.PEERS)
        and one.suspects
        and not named & ranks_of(one.suspects)
        for one in latest
    )


def _shifted(strongest: Anomaly, anomalies: list[Anomaly], situation: Situation) -> set[int | None]:
    """Ranks whose same work takes longer than their own past since about then.

    None once a shift turned out to be everybody's: another timer's change, or one at another time, tells nothing of
    this one.
    """
    shifts = [one for one in anomalies if one.grounds in ("own_shift", "shared_shift") and _of_one(one, strongest)]
    if not shifts or max(shifts, key=lambda one: (one.end, one.grounds)).grounds != "own_shift":
        return set()
    own = [one for one in shifts if one.grounds == "own_shift" and one.metric == strongest.metric]
    near = [one for one in own if situation.near(one.onset, strongest.onset)]
    return ranks_of([suspect for one in near for suspect in one.suspects])


def _of_one(one: Anomaly, other: Anomaly) -> bool:
    """Whether both rest on one timer, as far as it is known on which."""
    return not one.metric or not other.metric or one.metric == other.metric
