"""Incidents that were over and show again: whether a new one is a former one, which then goes on under its id."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from streams.incidents.decision import Decision, ranks_of
from streams.incidents.joining import STANDSTILL, ranks_in
from streams.incidents.opened import KEPT_ANOMALIES, KEPT_SUPPORT, KEPT_TAKEN, Open, trimmed
from streams.incidents.resolution import by_a_word, goes_on

MOST_RESTED = 8
DAMPED = 4
"""For so many times as long as what was found stands, what shows again alike may be what was there before."""


class Again(Enum):
    """Why an incident is, or is not, a former one that shows again."""

    OTHER_KIND = "it is of another kind"
    TOO_LATE = "the former one was over for too long"
    SAME_RANKS = "it is of the same ranks"
    OTHER_RANKS = "it is of other ranks"
    SAME_REASON = "nobody is named, and why was said of the former one, too, of the same place"
    OTHER_REASON = "nobody is named, for another reason or of another place"


AGAIN = frozenset({Again.SAME_RANKS, Again.SAME_REASON})
"""Reasons for which it is the former one."""


def again(new: Open, decision: Decision, former: Open, now: int, stands_ns: int) -> Again:
    """Whether an incident that was opened in the window that ended at ``now`` is a former one (all times in ns).

    ``stands_ns`` is how long what was found stands. What began before the former one was said to be over is it, however
    long it did not show.
    """
    last = former.latest
    if last is None or former.family != new.family or last.symptom != decision.symptom:
        return Again.OTHER_KIND
    if new.anomalies[0].onset >= last.published and now > former.shown + DAMPED * stands_ns:
        return Again.TOO_LATE
    named = ranks_of(decision.suspects) - {None} or ranks_in(new.anomalies)
    before = ranks_of(last.suspects) - {None} or ranks_in(former.anomalies)
    if named and (before or decision.suspects):
        return Again.SAME_RANKS if named & before else Again.OTHER_RANKS
    same_place = not decision.places or {one.node for one in decision.places} & set(last.scope.nodes)
    told = decision.reason.value in former.reasons
    return Again.SAME_REASON if told and same_place else Again.OTHER_REASON


def rested(former: Sequence[Open], over: Sequence[Open], now: int, window_ns: int, stands_ns: int) -> list[Open]:
    """Those that may show again, with those that are over now, the latest last: the job goes on, or outlives a word."""
    kept = [one for one in former if now <= one.shown + max(DAMPED * stands_ns, _REMEMBERED * window_ns)]
    said = [(one, one.latest.resolution) for one in over if one.latest]
    return [*kept, *(one for one, why in said if goes_on(why) or by_a_word(why))][-MOST_RESTED:]


_REMEMBERED = 360
"""For so many windows it is remembered what was over: what began before then may show again."""


def reopened(former: Open, new: Open, now: int) -> Open:
    """The former one with what the new one found, and for how long it did not show.

    Errors and standstills that a job has got over decide nothing any more; they stand beside what is decided anew. What
    was over by a word that the job outlives was never over.
    """
    support = trimmed([*former.support, *new.support], KEPT_SUPPORT)
    if former.latest is not None and by_a_word(former.latest.resolution):
        found = trimmed([*former.anomalies, *new.anomalies], KEPT_ANOMALIES)
        return msgspec.structs.replace(former, quiet=0, anomalies=found, support=support)
    over = former.anomalies if former.family == STANDSTILL else []
    return msgspec.structs.replace(
        former,
        lull=max(former.lull, now - former.shown),
        flaps=former.flaps + 1,
        quiet=0,
        passed=False,
        anomalies=trimmed([*([] if over else former.anomalies), *new.anomalies], KEPT_ANOMALIES),
        took=trimmed([*former.took, *over], KEPT_TAKEN),
        support=support,
    )
