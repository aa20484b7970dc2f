"""Why an incident is over, and how that is said: a job that is dead has not got well."""

from __future__ import annotations

from enum import Enum


class Resolution(Enum):
    """Why an incident is over."""

    STOPPED = "the job was stopped by its owner"
    SUPERSEDED = "a new attempt has begun"
    ENDED = "the attempt has ended"
    ITERATES = "iterations go on"
    GOES_ON = "the job goes on"
    QUIET = "it no longer shows"
    FORGOTTEN = "nothing is heard of the attempt any more"


_WELL = frozenset({Resolution.ITERATES.value, Resolution.GOES_ON.value, Resolution.QUIET.value})


def said_status(resolution: str) -> str:
    """The status of an incident in a word for people: open, resolved, or over because its attempt is.

    >>> said_status(""), said_status("iterations go on"), said_status("the attempt has ended")
    ('open', 'resolved', 'over')
    """
    if not resolution:
        return "open"
    return "resolved" if resolution in _WELL else "over"
