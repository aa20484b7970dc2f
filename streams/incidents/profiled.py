"""Slowness that only profiles show: one look at a job, which names somebody only beside enough that can be compared."""

from __future__ import annotations

from schemas.results import Anomaly, Area, Suspect
from streams.incidents.decision import Base, Decision, Reason, earliest_of, latest_of, ranks_of
from streams.incidents.situation import ONE_LOOK, Situation

_MANY = "many_slow_functions"
_KERNEL = "slow_kernel_by_place"
_INNOCENT = {
    _MANY: Reason.MANY_SLOW,
    "slow_functions_of_replica": Reason.SLOW_REPLICA,
    "slow_function_by_design": Reason.SLOW_FIRST_RANK,
    _KERNEL: Reason.SLOW_FIRST_RANK,
    "slow_function_of_other_work": Reason.SLOW_OTHER_WORK,
    "slow_function_unseen": Reason.SLOW_UNSEEN,
}
"""Why nobody is named for what stands out in profiles."""
_UNDECIDED = "what_if_several"
"""What the same steps tell when they are played one by one: that some rank took longer, and perhaps by chance."""
_SPACE = ("slow_function", "slow_function_and_changed", "function_apart", *_INNOCENT)
GROUNDS = frozenset({*_SPACE, "function_shift"})
"""Grounds of the detector that contrasts profiles."""


def contradiction(anomalies: list[Anomaly], suspects: list[Suspect], *, by_place: bool) -> Reason | None:
    """Why the latest profiles that tell ranks apart let nobody be named, or not these; null where they do not.

    Suspects that may work more ``by_place``, as rank 0 logs and saves, need a profile that shows no such work: that the
    same kernels take longer, or what has changed.
    """
    told = _telling(anomalies)
    if told is None:
        return Reason.SLOW_FIRST_RANK if by_place else None
    if told.grounds == _KERNEL:
        return None if by_place else Reason.SOURCES_DISAGREE
    if told.grounds in _INNOCENT and told.grounds != _MANY:
        return _INNOCENT[told.grounds]
    return None if ranks_of(told.suspects) == ranks_of(suspects) else Reason.SOURCES_DISAGREE


def area_by_profiles(anomalies: list[Anomaly]) -> Area:
    """What the functions are for by which the latest profiles single somebody out."""
    told = _telling(anomalies)
    return told.area if told else "unknown"


def _telling(anomalies: list[Anomaly]) -> Anomaly | None:
    told = [one for one in anomalies if one.grounds in _SPACE and (one.suspects or one.grounds in _INNOCENT)]
    return latest_of(told) if told else None


def by_profiles(anomalies: list[Anomaly], beside: list[Anomaly], situation: Situation) -> Decision:
    """The decision over what profiles told of an incident, and nothing else over ranks.

    A profile knows of each function only what most steps are like. So where its steps were played one by one, which
    stands ``beside``, and nobody stayed slow in enough of them, nobody is named.
    """
    spatial = [one for one in anomalies if one.grounds in _SPACE]
    latest = [one for one in spatial if one.end == latest_of(spatial).end]
    last = latest_of(latest or anomalies)
    run = situation.run_to(last, anomalies, ONE_LOOK)
    base = Base.on([*run, *latest], earliest_of(run), symptom="slowdown")
    innocent = next((one for one in latest if one.grounds in _INNOCENT), None)
    if innocent is not None:
        return base.nobody(_INNOCENT[innocent.grounds], area="workload" if innocent.grounds == _MANY else innocent.area)
    singled = [one for one in latest if one.suspects]
    if not singled:
        return base.nobody(Reason.FUNCTION_APART if latest else Reason.FUNCTION_SHIFT, area=last.area)
    one = latest_of(singled)
    doubt = _doubt(one, beside, situation)
    if doubt is not None:
        return base.nobody(doubt, area=one.area)
    if one.grounds == "slow_function_and_changed":
        return base.named(Reason.SLOW_AND_CHANGED, one.suspects, area=one.area)
    if situation.knows_layout:
        return base.named(Reason.SLOW_KNOWN_LAYOUT, one.suspects, area=one.area)
    return base.nobody(Reason.SLOW_UNKNOWN_LAYOUT, area=one.area)


def _doubt(one: Anomaly, beside: list[Anomaly], situation: Situation) -> Reason | None:
    """What knows more than one look at most steps: timers of many steps, and the same steps one by one."""
    played = [told.end for told in beside if told.grounds == _UNDECIDED]
    if played and max(played) >= one.end:
        return Reason.WHAT_IF_SEVERAL
    return Reason.FUNCTION_NOT_TIMED if situation.timed else None
