"""An attempt's view as it is written down: what many threads have in common stands in it once.

Ten thousand ranks that wait for one show the same few stacks, and a snapshot is one record. So ``places`` has each
different stack, and of each rank's threads only which of them it is, its process and its times are written.
"""

from __future__ import annotations

import msgspec

from schemas.events import Frame
from schemas.results import StackSpan
from streams.member import Member, key_of
from streams.view import AttemptView


def folded(view: AttemptView) -> AttemptView:
    """A copy without spans, each rank's threads as rows of (place, pid, first, duration, samples).

    Times are in ns, ``first`` since the attempt was first seen.
    """
    places = _Places()
    members = {
        rank: msgspec.structs.replace(
            member,
            spans={},
            threads=[
                (places.number_of(span), span.pid, span.first - view.first, span.last - span.first, span.samples)
                for _, span in sorted(member.spans.items())
            ],
        )
        for rank, member in sorted(view.members.items())
    }
    return msgspec.structs.replace(view, members=members, places=places.found)


def unfold(view: AttemptView) -> None:
    """Put back what ``folded`` took out."""
    for member in view.members.values():
        _unfold(member, view.places, view.first)
    view.places = []


def _unfold(member: Member, places: list[StackSpan], zero: int) -> None:
    for place, pid, since, duration, samples in member.threads:
        first = zero + since
        times = {"first": first, "last": first + duration, "samples": samples}
        span = msgspec.structs.replace(places[place], pid=pid, **times)
        member.spans[key_of(span)] = span
    member.threads = []


class _Places:
    """Different stacks in the order in which they came, without whose they are and when."""

    def __init__(self) -> None:
        self.found: list[StackSpan] = []
        self._numbers: dict[tuple[str | int, ...], int] = {}
        self._frames: dict[tuple[Frame, ...], int] = {}
        # Spans that share one list of frames are many: it is looked at once.
        self._lists: dict[int, int] = {}

    def number_of(self, span: StackSpan) -> int:
        frames = self._lists.get(id(span.frames))
        if frames is None:
            frames = self._frames.setdefault(tuple(span.frames), len(self._frames))
            self._lists[id(span.frames)] = frames
        told = (span.process_type, span.thread, span.activity, span.identity, span.position, span.failure, span.outer)
        number = self._numbers.setdefault((*told, frames), len(self.found))
        if number == len(self.found):
            self.found.append(msgspec.structs.replace(span, pid=0, first=0, last=0, samples=0))
        return number
