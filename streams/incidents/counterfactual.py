"""Slowness by played steps: what counts where timings of all operations tell whose doing a slow step is."""

from __future__ import annotations

from schemas.results import Anomaly
from streams.incidents.decision import Base, Decision, Reason, earliest_of, latest_of, ranks_of
from streams.incidents.profiled import area_by_profiles, contradiction
from streams.incidents.situation import ONE_LOOK, Situation

GROUNDS: dict[str, Reason] = {
    "what_if_workers": Reason.WHAT_IF_WORKERS,
    "what_if_by_place": Reason.WHAT_IF_WORKERS,
    "what_if_stages": Reason.WHAT_IF_STAGES,
    "what_if_one_replica": Reason.WHAT_IF_ONE_REPLICA,
    "what_if_replica": Reason.SLOW_REPLICA,
    "what_if_lengths": Reason.WHAT_IF_LENGTHS,
    "what_if_variation": Reason.WHAT_IF_VARIATION,
    "what_if_communication": Reason.WHAT_IF_COMMUNICATION,
    "what_if_unseen": Reason.WHAT_IF_UNSEEN,
    "what_if_several": Reason.WHAT_IF_SEVERAL,
}
"""Grounds of the detector that plays steps again."""
_OF_THE_JOB = frozenset({"what_if_stages", "what_if_lengths"})
"""What explains the slowness without anybody's fault."""


def by_played_steps(anomalies: list[Anomaly], spatial: list[Anomaly], situation: Situation) -> Decision | None:
    """The decision by the latest played steps, null where none were; ``spatial`` are findings of slow ranks by timers.

    Played steps know what everybody waited for, so they count before timers, unless those have found somebody since.
    Where both name ranks and none of them is the same, nobody is named, since one traced rank stands for those that it
    shares tensors with; nor where profiles of functions single out others, or show that these work more by design.
    """
    traced = [one for one in anomalies if one.grounds in GROUNDS and one.severity != "info"]
    told = situation.of_looks(traced, anomalies)
    if not told:
        return None
    latest = latest_of(told)
    now = situation.standing(spatial, anomalies)
    by_timers = {rank for one in now if one.end == latest_of(now).end for rank in ranks_of(one.suspects)}
    found = [one.end for one in spatial if by_timers and by_timers <= ranks_of(one.suspects)]
    if found and min(found) > latest.end:
        return None
    run = situation.run_to(latest, told, ONE_LOOK)
    base = Base.on([*run, *now], earliest_of(run), symptom="slowdown")
    reason = GROUNDS[latest.grounds]
    if latest.grounds in _OF_THE_JOB:
        return base.everybody(reason, area=latest.area)
    if not latest.suspects:
        return base.nobody(reason, area=latest.area)
    by_place = latest.grounds == "what_if_by_place"
    doubt = contradiction(anomalies, latest.suspects, by_place=by_place)
    if by_timers and not by_timers & ranks_of(latest.suspects):
        doubt = Reason.SOURCES_DISAGREE
    if doubt is not None:
        return base.nobody(doubt, area=latest.area)
    # Of own time between collectives only functions tell what it went to.
    area = area_by_profiles(anomalies) if latest.area == "unknown" else latest.area
    return base.named(reason, latest.suspects, area=area)
