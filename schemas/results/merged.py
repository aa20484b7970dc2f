"""Where the threads of all ranks stand while a job stands still."""

from __future__ import annotations

from schemas.events import Frame
from schemas.results.words import Activity, Record


class MergedGroup(Record, frozen=True, omit_defaults=True, kw_only=True):
    """The ranks of a class whose threads stand in one place, as ranges; ``place`` is where, in words.

    ``minority``: most of the class stand elsewhere. ``frames`` are outermost first, as the lowest rank has them,
    without the ``outer`` ones further out. All were seen at their lines ``samples`` times or more from ``since`` on.
    """

    ranks: str
    activity: Activity
    place: str
    frames: list[Frame] = []
    outer: int = 0
    minority: bool = False
    since: int = 0
    samples: int = 0


class Unobserved(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Ranks, as ranges, of which nobody can say where they are, and why."""

    ranks: str
    reason: str


class MergedClass(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Threads that can be compared: of one process type, role and name, whose numbers are ``#``.

    ``observed`` are ranks as ranges, ``groups`` where they are, the largest first; ``rest`` counts the groups that are
    left out, ``rest_ranks`` are theirs. ``text`` says it in one line, where it says anything.
    """

    process_type: str
    thread: str
    role: str = ""
    observed: str = ""
    unobserved: list[Unobserved] = []
    groups: list[MergedGroup] = []
    rest: int = 0
    rest_ranks: str = ""
    text: str = ""


class MergedStacks(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Where the threads of all ranks of an attempt stand while it stands still, as of the window ``[start, end)``.

    ``since`` is when it last did anything. The classes that train come first; ``rest`` counts those that are left out.
    """

    id: str
    job: str
    attempt: str
    start: int
    end: int
    since: int
    iteration: int | None = None
    phase: str = ""
    classes: list[MergedClass] = []
    rest: int = 0
