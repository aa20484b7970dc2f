"""Why an incident is over, and how that is said: a job that is dead has not got well."""

from __future__ import annotations

from enum import Enum


class Resolution(Enum):
    """Why an incident is over."""

    STOPPED = "the job was stopped by its owner"
    PREEMPTED = "the job was preempted"
    OUT_OF_TIME = "the job ran out of time"
    SUPERSEDED = "a new attempt has begun"
    ENDED = "the attempt has ended"
    ITERATES = "iterations go on"
    GOES_ON = "the job goes on"
    QUIET = "it no longer shows"
    FORGOTTEN = "nothing is heard of the attempt any more"


_WELL = frozenset({Resolution.ITERATES.value, Resolution.GOES_ON.value, Resolution.QUIET.value})


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


def said_status(resolution: str) -> str:
    """The status of an incident in a word for people: open, resolved, or over because its attempt is.

    >>> said_status(""), said_status("iterations go on"), said_status("the attempt has ended")
    ('open', 'resolved', 'over')
    """
    if not resolution:
        return "open"
    return "resolved" if resolution in _WELL else "over"
