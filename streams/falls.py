"""Whether iterations that come again from a lower number show that a job has begun anew, or only another epoch.

A number that falls back to the middle of a run comes from a checkpoint. Many bars count each epoch anew, so one that
falls to the beginning tells a restart only where ranks have said that they start; and none where it falls from where it
has fallen before, as each epoch ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import pairwise

import msgspec
import numpy as np

from schemas.packs import SeriesPack
from schemas.results import Window
from streams.packing import pack_of

MOST_FALLS = 8
_BEGINNING = 10
"""What falls to less than this part of what it had reached may be counted from its beginning."""


class Fell(Enum):
    """What it shows that numbers fell back."""

    EPOCH = "it fell from where it has fallen before, as what is counted anew each epoch"
    STARTED = "ranks that had iterated said that they start"
    CHECKPOINT = "it fell to the middle of the run, as from a checkpoint"
    UNKNOWN = "it fell to its beginning, as by a restart or at an epoch's end"


ANEW = frozenset({Fell.STARTED.value, Fell.CHECKPOINT.value})
"""What shows for certain that the job has begun anew."""


class Fall(msgspec.Struct, frozen=True, array_like=True):
    """Numbers fell from ``top`` to ``to`` at ``time``; ``since`` is when the last iteration before came (both ns).

    ``why`` is what that shows, the value of a ``Fell``.
    """

    since: int
    time: int
    top: int
    to: int
    why: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether it shows for certain that the job has begun anew."""
        return self.why in ANEW


def fall_of(
    moved: list[Window], reached: Mapping[int, int], furthest: int, since: int | None, stride: int
) -> Fall | None:
    """The fall of most ranks that moved on in a window, or null; ``reached`` is how far each was before.

    ``furthest`` is the iteration that the job was at before the window, ``since`` when it came (ns). Reports that come
    late by one are no fall, nor is what ranks tell after others of one that is known.
    """
    turned = _turned(moved)
    falls = []
    for at, one in enumerate(moved):
        before = reached.get(-1 if one.identity.rank is None else one.identity.rank)
        if before is None or since is None or before > furthest + stride or not (at in turned or _lowest(one) < before):
            continue
        if (found := _of_rank(one, before, since, stride)) is not None:
            falls.append(found)
    if not falls or 2 * len(falls) < len(moved):
        return None
    return Fall(
        max(one.since for one in falls),
        min(one.time for one in falls),
        max(one.top for one in falls),
        min(one.to for one in falls),
    )


def _of_rank(window: Window, before: int, since: int, stride: int) -> Fall | None:
    """The one place at which a rank's numbers fell; where they fall again and again it counts several things."""
    told = [(since, before), *sorted(_told(window))]
    falls = [Fall(came, time, top, to) for (came, top), (time, to) in pairwise(told) if top - to > max(stride, 1)]
    return falls[0] if len(falls) == 1 else None


def _turned(windows: list[Window]) -> set[int]:
    """The places of the windows in which a higher iteration came before a lower one of the same series."""
    alike: dict[bytes, list[tuple[int, SeriesPack]]] = {}
    for at, window in enumerate(windows):
        if (pack := pack_of(window)) is not None:
            alike.setdefault(bytes(pack.words), []).append((at, pack))
    turned: set[int] = set()
    for told in alike.values():
        starts = told[0][1].names.starts
        times = np.frombuffer(b"".join(pack.times for _, pack in told), dtype="<i8").reshape(len(told), -1)
        later = np.diff(times, axis=1) < 0
        # From one series to the next times go back in any case.
        later[:, [start - 1 for start in starts if 0 < start < starts[-1]]] = False
        turned.update(told[row][0] for row in np.flatnonzero(later.any(axis=1)).tolist())
    return turned


def _lowest(window: Window) -> int:
    pack = pack_of(window)
    lowest = [first for first, _, _, _ in pack.spans()] if pack is not None else []
    return min([*lowest, *([window.iteration] if window.iteration is not None else [])])


def _told(window: Window) -> set[tuple[int, int]]:
    """When the window tells of which iteration, as (ns, number)."""
    pack = pack_of(window)
    axes = pack.axes() if pack is not None else ()
    told = {(time, number) for numbers, times in axes for number, time in zip(numbers, times, strict=True)}
    if not told and window.iteration is not None and window.iteration_time is not None:
        told.add((window.iteration_time, window.iteration))
    return told


def judged(fall: Fall, falls: Iterable[Fall], started: int | None, stride: int) -> Fall:
    """The fall with what it shows, by those before and by the end of the window of the last words of a start (ns)."""
    beginning = fall.to <= max(2 * stride, fall.top // _BEGINNING)
    usual = any(abs(one.top - fall.top) <= 2 * stride for one in falls if one.why not in ANEW)
    if usual:
        why = Fell.EPOCH
    elif started is not None and started > fall.since:
        why = Fell.STARTED
    else:
        why = Fell.UNKNOWN if beginning else Fell.CHECKPOINT
    return Fall(fall.since, fall.time, fall.top, fall.to, why.value)
