"""Times of the records of one log file: which to believe, and what to do where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from producers.times import HOUR, SECOND, Moment

BACK = 2 * SECOND
"""How far times may run backwards in a file before the clock is said to have gone back."""
UNSEEN = 10 * SECOND
TEARDOWN = 6 * SECOND
"""How long a process may still be seen alive after the last that it printed."""
_DELAY = 600 * SECOND
"""How long a line may wait in its program's buffer before the runtime gets it."""
_ZONES = 50 * 60 * SECOND
"""Less than the clocks of two zones lie apart."""
_FINE = SECOND // 1_000
_LEAP = 600 * SECOND
_LOOK_AHEAD = 3


def stamped(stamp: int) -> Moment:
    """The time (ns) at which a container runtime got a line."""
    return Moment(stamp, "captured", _FINE)


def written(moment: Moment | None, stamp: int) -> Moment:
    """The time of a line of which the envelope has a time (``stamp``, ns UTC), and the text may print another.

    The printed one is when the program says that it happened, and the line may have waited in a buffer since; so it
    counts where it is by the millisecond and lies in that time before the other. But the envelope names year and zone,
    and its clock is that of the node: what lies elsewhere is in another zone or wrong, and whole seconds say less.
    """
    if moment is not None and moment.precision <= _FINE and stamp - _DELAY <= moment.time <= stamp + SECOND:
        return moment
    return stamped(stamp)


def settle(moments: Sequence[Moment | None]) -> tuple[list[Moment | None], list[tuple[int, int]]]:
    """Believable times, and for each jump back its index and length in nanoseconds.

    A few records that leap ahead and come back lose their time: it is they that are wrong, not all that follows.
    What stands behind a jump back gets the running maximum.
    """
    settled: list[Moment | None] = list(moments)
    for index in _leaps(moments):
        settled[index] = None
    jumps: list[tuple[int, int]] = []
    latest: int | None = None
    for index, moment in enumerate(settled):
        if moment is None:
            continue
        if latest is not None and moment.time + moment.precision < latest - BACK:
            back = latest - moment.time
            settled[index] = Moment(latest, "inferred", min(back, HOUR))
            jumps.append((index, back))
        latest = moment.time if latest is None else max(latest, moment.time)
    return settled, jumps


def _leaps(moments: Sequence[Moment | None]) -> list[int]:
    timed = [(index, moment.time) for index, moment in enumerate(moments) if moment is not None]
    found: list[int] = []
    at = 1
    while at < len(timed):
        before = timed[at - 1][1]
        if timed[at][1] > before + _LEAP:
            window = timed[at + 1 : at + 1 + _LOOK_AHEAD]
            back = next((n for n, (_, time) in enumerate(window) if before - BACK <= time < before + _LEAP), None)
            if back is not None:
                found.extend(index for index, _ in timed[at : at + 1 + back])
                del timed[at : at + 1 + back]
                continue
        at += 1
    return found


def by_iteration(
    moments: Sequence[Moment | None], iterations: Sequence[int | None], known: Mapping[int, int]
) -> list[Moment | None]:
    """Records without a time that speak of an iteration whose time is ``known`` get that time, by the second."""
    return [
        Moment(known[iteration], "inferred", SECOND)
        if moment is None and iteration is not None and iteration in known
        else moment
        for moment, iteration in zip(moments, iterations, strict=True)
    ]


def by_words(moments: Sequence[Moment | None], told: Sequence[Moment | None], end: int) -> list[Moment | None]:
    """Records without a time get that which their words have ``told``, where the order of the file bears it out.

    ``end`` is that of all that was recorded (ns): it says whether a clock that names no zone shows that of the others.
    """
    following = _following(moments)
    found = list(moments)
    before: int | None = None
    for index, (moment, words, after) in enumerate(zip(moments, told, following, strict=True)):
        if moment is not None:
            before = moment.time if before is None else max(before, moment.time)
        elif words is not None:
            earliest = end - _ZONES if before is None else before - BACK
            latest = end + _ZONES if after is None else after + BACK
            found[index] = words if earliest <= words.time <= latest else None
    return found


def _following(moments: Sequence[Moment | None]) -> list[int | None]:
    """The time of the next timed record behind each."""
    following: list[int | None] = [None] * len(moments)
    ahead: int | None = None
    for index in range(len(moments) - 1, -1, -1):
        following[index] = ahead
        moment = moments[index]
        ahead = ahead if moment is None else moment.time
    return following


def by_neighbour(moments: Sequence[Moment | None], start: int, end: int) -> list[Moment]:
    """Records without a time get that of the timed record before, else after, else ``start``.

    The precision is the distance to the neighbour on the other side (``end`` at the end of the file), at most an hour.
    """
    filled: list[Moment] = []
    before: int | None = None
    for moment, after in zip(moments, _following(moments), strict=True):
        filled.append(moment or _between(before, after, start, end))
        before = before if moment is None else moment.time
    return filled


def _between(before: int | None, after: int | None, start: int, end: int) -> Moment:
    if before is not None:
        other = end if after is None else after
        return Moment(before, "inferred", _bounded(other - before))
    if after is not None:
        return Moment(after, "inferred", _bounded(after - start))
    return Moment(start, "inferred", _bounded(end - start))


def _bounded(distance: int) -> int:
    return min(max(distance, 0), HOUR)


def ending(last: int | None, alive: int | None, dead: int | None, exited: int | None) -> Moment | None:
    """When a process printed what stands untimed at the end of its log; null if nothing tells.

    ``last`` is its last timed record, ``alive`` when it was last seen alive, ``dead`` when it was first seen dead,
    ``exited`` when its launcher reported its end. What a process prints at its end, it prints at its end: a worker that
    waits for its peers prints its timeout long after its last line.
    """
    bound = None if exited is None else exited + SECOND
    if alive is not None and bound is not None:
        alive = min(alive, bound)
    if alive is not None and (last is None or alive > last + BACK):
        time = alive
    elif alive is None and exited is not None:
        time = exited if last is None else max(last, exited)
    elif last is not None:
        time = last
    else:
        return None
    if bound is not None:
        time = min(time, bound)
    uppers = [upper for upper in (dead, exited) if upper is not None and upper >= time]
    if uppers and min(uppers) - time > UNSEEN:
        # Nobody looked for so long that its last sighting says little; its end is when it was reported.
        time = min(uppers)
    later = _bounded(min(uppers) - time) if uppers else 0
    # A process that has raised is seen alive until it is torn down, so the truth may lie before as well.
    earlier = _bounded(time - last) if last is not None else HOUR
    earlier = min(earlier, TEARDOWN) if alive is not None else earlier
    return Moment(time, "inferred", max(later, earlier, SECOND))
