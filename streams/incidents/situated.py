"""What blame must know of an attempt, put together from its view and window; of an incident, how it stands."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Exit
from streams.attempt_window import AttemptWindow
from streams.incidents.blame import GROWTH
from streams.incidents.decision import Decision, Reason, latest_of
from streams.incidents.hardware_beside import working
from streams.incidents.joining import STANDSTILL, Held, nodes_in, ranks_in, singles_out
from streams.incidents.opened import IncidentBookState, Open
from streams.incidents.resolution import Course, stopped_for
from streams.incidents.situation import Situation, margin_ns, settled_by
from streams.incidents.standstill import FAILURES
from streams.member import Member
from streams.regular_lines import repeated_by
from streams.stall import StallRule, over, silence_ns
from streams.timers import kind_of_timer
from streams.view import AttemptView

MOST_HEARD = 32
"""Of more ranks that are suspected nobody is named by what one of them prints."""


def noted(incident: Open, view: AttemptView, window: AttemptWindow) -> set[int]:
    """Whom the incident suspects; what the window tells of these is noted on it."""
    suspected = {suspect.rank for one in incident.anomalies for suspect in one.suspects if suspect.rank is not None}
    concerned = {rank for rank in suspected if rank in view.members}
    if incident.family == STANDSTILL and len(concerned) <= MOST_HEARD:
        told = {rank: time for rank in sorted(concerned) if (time := repeated_by(rank, window)) is not None}
        incident.repeated = incident.repeated | told
    if incident.family == "slowdown" and concerned:
        incident.told = incident.told | dict.fromkeys(sorted(concerned & telling(window)), window.end)
    return suspected


def situation_of(incident: Open, state: IncidentBookState, view: AttemptView, window: AttemptWindow) -> Situation:
    """What blame must know of the attempt; what is known of those whom the incident suspects is noted first."""
    suspected = noted(incident, view, window)
    leading = [one for one in incident.support if one.grounds == "frontier"]
    situation = Situation(
        members={rank: view.node_of(rank) for rank in sorted(view.members)},
        now=window.end,
        window_ns=window.end - window.start,
        knows_layout=view.knows_stages_beside(suspected),
        iterated=view.iterated,
        step_ns=view.clock.step_ns or 0,
        silence_ns=silence_ns(view.clock, StallRule()),
        expected=view.world_size,
        exited={rank: end.time for rank, end in _failed_ends(view)},
        living=[rank for rank, one in sorted(view.members.items()) if one.last_life > window.start],
        seen={rank: one.last_life for rank, one in sorted(view.members.items())},
        lapsed=_lapsed(view, window.end),
        watched={rank: _watched(view.members[rank], window) for rank in sorted(suspected) if rank in view.members},
        unobserved=view.unobserved_since(window.start),
        finished=view.finished,
        superseded=view.superseded,
        ended=min((one for one in (view.stopped, view.superseded) if one is not None), default=None),
        regular=state.regular,
        spoke={rank: view.members[rank].spoke for rank in sorted(suspected) if rank in view.members},
        repeated=incident.repeated,
        told=incident.told,
        leading=bool(leading),
        led_within=bool(leading) and kind_of_timer(latest_of(leading).metric) in ("mixed", "wait"),
        working=working(state.hardware),
        beside=bool(incident.beside),
        falls=view.clock.falls,
        named=_named(incident),
    )
    timed = window.end - state.timed <= situation.quiet_ns
    return msgspec.structs.replace(situation, timed=timed)


def course_of(
    incident: Open,
    decision: Decision,
    situation: Situation,
    view: AttemptView,
    window: AttemptWindow,
    *,
    elsewhere: bool = False,
) -> Course:
    """How the incident and its attempt stand; for how long it has not shown is counted on it.

    ``elsewhere``: the attempt stands still or has failed for another. That nothing shows then tells nothing.
    """
    # Memory that goes on growing does not keep a standstill open that is over.
    telling_ = [one for one in incident.anomalies if one.grounds not in GROWTH]
    standing = incident.family == STANDSTILL and bool(telling_)
    # Information opens nothing, so it keeps nothing open either that is over once it no longer shows.
    showing = [one for one in telling_ or incident.anomalies if standing or one.severity != "info"]
    seen = any(anomaly.end == window.end for anomaly in showing)
    silent = max(incident.quiet, 1) if elsewhere and not standing else incident.quiet + 1
    incident.quiet = 0 if seen else silent
    # Whether iterations came before or after what is dated to minutes nobody knows.
    since = settled_by(incident.latest.onset, incident.anomalies) if incident.latest else 0
    settled = since + margin_ns(view.clock.step_ns or 0)
    return Course(
        stands=standing,
        quiet_ns=incident.quiet * situation.window_ns,
        patience_ns=situation.quiet_ns,
        window_ns=situation.window_ns,
        lull_ns=incident.lull,
        flaps=incident.flaps,
        stopped=None if view.stopped is None else stopped_for(view.stops.said),
        superseded=view.superseded is not None,
        ended=over(view),
        progressed=view.iterated is not None and view.iterated > max(window.start, settled),
        survived=decision.reason is Reason.SURVIVED and view.iterated is None,
        restarted=decision.reason is not Reason.SURVIVED
        and situation.began_anew(decision.onset, since, told=bool(decision.suspects)),
    )


def _named(incident: Open) -> frozenset[int]:
    """Whom an incident names so far."""
    suspects = incident.latest.suspects if incident.latest is not None else []
    return frozenset(one.rank for one in suspects if one.rank is not None)


def stands(incident: Open) -> bool:
    """Whether by what was last said of an incident its attempt stands still or has failed, and has not gone on."""
    return incident.family == STANDSTILL and incident.latest is not None and not incident.passed


def has_passed(incident: Open, situation: Situation) -> bool:
    """Whether the job has gone on for a while after all that the incident is about.

    What has shown since must be of the same places: a fault that is reported again and again is one that goes on.
    """
    troubles = [one for one in incident.anomalies if one.grounds not in GROWTH and one.severity != "info"]
    before = [one for one in troubles if one.end <= situation.now - situation.quiet_ns]
    since = [one for one in troubles if one not in before]
    if incident.family != STANDSTILL or not before:
        return False
    if not all(situation.survived(one, incident.anomalies) for one in before):
        return False
    ranks, nodes = ranks_in(before), nodes_in(before)
    return all(ranks_in([one]) & ranks or nodes_in([one]) & nodes for one in since)


def held(incident: Open) -> Held:
    """What joining must know of an open incident: whom and what places it is about."""
    latest = incident.latest
    named = [] if latest is None else [one.rank for one in latest.suspects if one.rank is not None]
    about = [one for one in incident.anomalies if _is_about(one, incident.family)]
    slow = incident.family == "slowdown" and bool(named)
    nodes = {one.node for one in latest.suspects if one.node} if latest is not None else set()
    return Held(
        family=incident.family,
        onset=incident.anomalies[0].onset if latest is None else latest.onset,
        ranks=frozenset(named) if slow else frozenset(named) | ranks_in(about),
        nodes=frozenset(nodes) if slow else frozenset(nodes) | nodes_in(about),
        named=bool(named),
        passed=incident.passed,
        beside=bool(incident.beside),
    )


def _is_about(one: Anomaly, family: str) -> bool:
    if family == STANDSTILL:
        return one.grounds in FAILURES or one.grounds == "node_fault"
    return singles_out(one) if family == "slowdown" else one.severity != "info"


def has_timers(view: AttemptView, window: AttemptWindow) -> bool:
    """Whether most ranks say in this window how long their own work takes."""
    return 2 * len(telling(window)) > len(view.members)


def telling(window: AttemptWindow) -> set[int]:
    """Who says in this window how long its own work takes."""
    return {rank for name, told in window.series.items() if kind_of_timer(name) == "own" for rank in told.ranks}


def _lapsed(view: AttemptView, now: int) -> list[int]:
    """Ranks whose process was regularly looked at and no longer is, though no end of it is known (ns).

    Whoever was seen no more while the job still iterated is only no longer looked at.
    """
    found = []
    for rank, member in sorted(view.members.items()):
        looks = [one for one in (member.samples, member.sightings) if one.overdue(now)]
        ends = member.exit is not None or member.requested is not None
        if looks and not ends and not any(one.overdue(view.iterated or 0) for one in looks):
            found.append(rank)
    return found


def _watched(member: Member, window: AttemptWindow) -> int:
    """When a look at a rank's process last showed it alive for certain (ns), 0 for never; its lines are none.

    Of a sample only the window is known.
    """
    sampled = member.samples.last - (window.end - window.start) if member.samples.last else 0
    return max(sampled, member.sighted or 0) if member.zombie is None else 0


def _failed_ends(view: AttemptView) -> list[tuple[int, Exit]]:
    """Ranks whose end with a code other than 0 is known."""
    ends = [(rank, member.exit) for rank, member in sorted(view.members.items())]
    return [(rank, end) for rank, end in ends if end is not None and end.code != 0]
