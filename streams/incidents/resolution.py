"""Why an incident is over, and how that is said: a job that is dead has not got well."""

from __future__ import annotations

from enum import Enum

import msgspec


class Resolution(Enum):
    """Why an incident is over."""

    STOPPED = "the job was stopped by its owner"
    PREEMPTED = "the job was preempted"
    OUT_OF_TIME = "the job ran out of time"
    SUPERSEDED = "a new attempt has begun"
    ENDED = "the attempt has ended"
    RESTARTED = "the job has begun anew, from an earlier iteration"
    ITERATES = "iterations go on"
    GOES_ON = "the job goes on"
    QUIET = "it no longer shows"
    FORGOTTEN = "nothing is heard of the attempt any more"
    MERGED = "it proved to be part of another incident"


_WELL = frozenset({Resolution.ITERATES.value, Resolution.GOES_ON.value, Resolution.QUIET.value})
_WORDS = frozenset({Resolution.STOPPED.value, Resolution.PREEMPTED.value, Resolution.OUT_OF_TIME.value})
LULLS = 2
"""For so many times as long as it once did not show, and was not over, what shows now and then is not over."""
MOST_PATIENCE_WINDOWS = 360
"""What shows again after more windows is another fault."""
SEVERAL = 2
"""After so many flaps a job that goes on for a moment has not got over it."""


_STOPPED_FOR = (
    (("DUE TO PREEMPTION", "DUE TO JOB REQUEUE", "Preempted by"), Resolution.PREEMPTED),
    (("DUE TO TIME LIMIT", "time limit", "specified deadline"), Resolution.OUT_OF_TIME),
)


def stopped_for(said: str) -> Resolution:
    """Why a job was stopped, by the words that said so; its owner did so where they say no more.

    >>> stopped_for("salloc: Job 7 has exceeded its time limit").value
    'the job ran out of time'
    """
    return next((why for words, why in _STOPPED_FOR if any(word in said for word in words)), Resolution.STOPPED)


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How an incident and its attempt stand. ``stands``: the job stood still or failed, so that iterations end it.

    ``quiet_ns`` is for how long it has not shown, 0 where this window shows it; ``patience_ns`` how long what no longer
    shows must not (``situation.quiet_ns``), ``lull_ns`` for how long it once did not and was not over; ``flaps`` how
    often it was over and showed again. ``stopped`` says why somebody stopped the attempt, ``superseded`` and ``ended``
    are of it, ``progressed`` is whether it has iterated since, ``survived`` whether blame finds that it went on though
    it prints no iterations, ``restarted`` whether those that came since began again at a lower number.
    """

    stands: bool
    quiet_ns: int
    patience_ns: int
    window_ns: int
    lull_ns: int = 0
    flaps: int = 0
    stopped: Resolution | None = None
    superseded: bool = False
    ended: bool = False
    progressed: bool = False
    survived: bool = False
    restarted: bool = False

    @property
    def patience(self) -> int:
        """For how long it must not show to be over (ns)."""
        waits = min(LULLS * self.lull_ns, MOST_PATIENCE_WINDOWS * self.window_ns)
        return max(self.patience_ns, waits)


def resolution_of(course: Course) -> Resolution | None:
    """Why the incident is over, or null where it is not.

    What has come back several times is over only once it has been quiet for longer than it ever was; but a job that
    iterates does not stand still, so that a standstill waits no longer than what was found stands.
    """
    quiet = course.quiet_ns > 0
    settled = quiet and (course.flaps < SEVERAL or course.quiet_ns >= course.patience_ns)
    if course.stopped is not None:
        return course.stopped
    for holds, resolution in (
        (course.superseded, Resolution.SUPERSEDED),
        (quiet and course.ended, Resolution.ENDED),
        (course.stands and quiet and course.progressed and course.restarted, Resolution.RESTARTED),
        (course.stands and settled and course.progressed, Resolution.ITERATES),
        (settled and course.survived, Resolution.GOES_ON),
        (not course.stands and course.quiet_ns >= course.patience, Resolution.QUIET),
    ):
        if holds:
            return resolution
    return None


def goes_on(resolution: str) -> bool:
    """Whether an incident was over while its attempt went on, so that it may show again."""
    return resolution in _WELL


def by_a_word(resolution: str) -> bool:
    """Whether an incident was over only because its attempt was told to end, which that may outlive."""
    return resolution in _WORDS


def said_resolution(resolution: str, merged_into: str) -> str:
    """Why an incident is over, and of which other it is part.

    >>> said_resolution("it proved to be part of another incident", "ab12")
    'it proved to be part of another incident, ab12'
    """
    return f"{resolution}, {merged_into}" if merged_into else resolution


def said_recurrence(recurs: int) -> str:
    """How often earlier attempts had an incident like this one, empty for never.

    >>> said_recurrence(1), said_recurrence(12)
    ('an earlier attempt had one like it', '12 earlier attempts had one like it')
    """
    if not recurs:
        return ""
    return "an earlier attempt had one like it" if recurs == 1 else f"{recurs} earlier attempts had one like it"


def said_status(resolution: str) -> str:
    """The status of an incident in a word for people: open, resolved, merged, or over because its attempt is.

    >>> said_status(""), said_status("iterations go on"), said_status("the attempt has ended")
    ('open', 'resolved', 'over')
    """
    if not resolution:
        return "open"
    if resolution == Resolution.MERGED.value:
        return "merged"
    return "resolved" if resolution in _WELL else "over"
