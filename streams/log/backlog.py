"""What topics hold already, all partitions in one order of time; a page of each is in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from schemas.ports import Entry, Log

Place = tuple[str, int]
"""Topic and partition."""

PAGE = 500
"""Entries of a partition that are read at once."""


def ends_of(log: Log, topics: Sequence[str]) -> dict[Place, int]:
    """Where each partition of the topics ends now."""
    return {(topic, number): log.end(topic, number) for topic in topics for number in range(log.partitions(topic))}


def backlog(log: Log, ends: Mapping[Place, int]) -> Iterator[list[tuple[str, Entry]]]:
    """All that lies before these ends as (topic, entry), those of one time together, the earliest first.

    Within a partition the order stays: what stands behind a later time counts as of that time. Raises LogError.
    """
    parts = [_dated(log, place, end) for place, end in sorted(ends.items())]
    for _, group in groupby(heapq.merge(*parts, key=itemgetter(0)), key=itemgetter(0)):
        yield [(topic, entry) for _, topic, entry in group]


def _dated(log: Log, place: Place, end: int) -> Iterator[tuple[int, str, Entry]]:
    topic, partition = place
    offset, latest = 0, 0
    while offset < end:
        page = log.read(topic, partition, offset, min(PAGE, end - offset))
        if not page:
            return
        for entry in page:
            if entry.offset >= end:
                return
            latest = max(latest, entry.time)
            yield latest, topic, entry
        offset = page[-1].offset + 1
