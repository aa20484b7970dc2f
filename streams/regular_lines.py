"""What an attempt prints in a rhythm: that all of it goes on after a fault is life where no iterations are printed.

One kind of line alone says little: heartbeats and watchdogs go on in a job that hangs. So all that came regularly until
the fault must have come again, for longer than a fault takes to reach the program, and later than what was on its way.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streams.attempt_window import AttemptWindow
from streams.config import SECOND
from streams.printed import Printed
from streams.rhythm import OVERDUE_PAUSES, Rhythm

MOST_REGULAR = 256
"""Kinds of lines that are remembered; those printed last are kept."""
REACHES_NS = 60 * SECOND
"""So long after a fault lines may still come although it has stopped the job: programs run ahead of their devices."""
_SELDOM_NS = 300 * SECOND
"""What comes less often is not waited for."""
_PAUSES = 3
"""For so many pauses it must have come before the fault to be regular."""


class Regular(msgspec.Struct, frozen=True, array_like=True):
    """One kind of line: when it ``first`` came (ns), and its rhythm over windows."""

    first: int
    rhythm: Rhythm

    @property
    def pauses(self) -> tuple[int, int]:
        """The shorter and the longer of its latest two pauses (ns), 0 where two are not known."""
        told = (self.rhythm.pause, self.rhythm.earlier) if self.rhythm.earlier else (0, 0)
        return min(told), max(told)


def with_printed(known: Mapping[str, Regular], printed: Printed) -> dict[str, Regular]:
    """The kinds of lines by template, after a window; chatter of libraries is none."""
    latest: dict[str, int] = {}
    for line in printed.lines:
        if not line.chatter:
            latest[line.template] = max(line.last, latest.get(line.template, 0))
    if not latest:
        return dict(known)
    found = dict(known)
    for template, time in sorted(latest.items()):
        before = found.get(template, Regular(time, Rhythm()))
        found[template] = Regular(before.first, before.rhythm.seen(time))
    if len(found) > MOST_REGULAR:
        kept = sorted(found, key=lambda one: (-found[one].rhythm.last, found[one].first, one))[:MOST_REGULAR]
        found = {one: found[one] for one in sorted(kept)}
    return found


def regular_until(known: Mapping[str, Regular], time: int) -> list[Regular]:
    """The kinds of lines that came regularly until ``time``; those that had stopped before are left out.

    By their shorter pause: one evaluation makes what is printed at each step no seldom line.
    """
    found = []
    for one in known.values():
        shorter, longer = one.pauses
        regular = 0 < shorter <= _SELDOM_NS and one.first <= time - _PAUSES * shorter
        if regular and one.rhythm.last >= time - OVERDUE_PAUSES * longer:
            found.append(one)
    return found


def went_on(regular: list[Regular], time: int) -> bool:
    """Whether all of them have come again long enough after a fault that came no later than ``time``."""
    return bool(regular) and all(one.rhythm.last > time + max(REACHES_NS, one.pauses[1]) for one in regular)


def going_on(regular: list[Regular], now: int) -> bool:
    """Whether all of them still come: none is overdue."""
    return bool(regular) and not any(one.rhythm.overdue(now) for one in regular)


def repeated_by(rank: int, window: AttemptWindow) -> int | None:
    """When a rank last printed again what it had printed in an earlier window, null where it did not.

    An error and what follows from it are new lines; a program that has ended prints none of its old ones.
    """
    table = window.printed
    if rank not in table.ranks:
        return None
    column = table.ranks.index(rank)
    before = {line.signature for line, told in zip(table.lines, table.before[:, column], strict=True) if told}
    lines = [one for summary in window.of(rank) for one in summary.signatures if not one.chatter]
    return max((one.last for one in lines if one.signature in before), default=None)
