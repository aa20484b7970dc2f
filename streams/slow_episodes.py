"""Since when which ranks are slow by one timer, and whether the slow rank has moved from one to another."""

from __future__ import annotations

import msgspec

from streams.slow_ranks import Standing

MOVED_STEPS = 1000
"""For how many steps a slow rank that has moved is workload, at most."""
STAYS = 5
"""A fault stays where it is: for so many times as long as slowness stayed with anybody before it must."""
GONE_STEPS = 200
"""For how many steps it is remembered who was slow: whoever is slow after these is another story."""
MOST_MOVING = 64
APART = 2
"""So many times the steps by which who is slow is judged make another story of who is slow after them."""
STILL = 0.5
"""What of an excess that is slow is enough where it was: by it steps are longer, so that its share of them is less."""


class Episode(msgspec.Struct, array_like=True):
    """Since when a rank is slow, whether it was not before, and the last step (of all judged) at which it was.

    ``found`` is the first step at which it was found to be slow; below 0 where that is not known.
    """

    iteration: int
    time: int
    changed: bool
    seen: int
    found: int = -1

    @property
    def stay(self) -> int:
        """For how many steps it was found to be slow."""
        return self.seen - self.found if self.found >= 0 else MOVED_STEPS


class Episodes(msgspec.Struct, kw_only=True):
    """Who is slow, or was of late, and at which step (of all judged) the slow rank last moved.

    ``stayed`` is for how many steps slowness stayed at most with one from whom it moved. ``followed`` is the step at
    which one became slow long after another had been: that is no move unless it goes on so.
    """

    ranks: dict[int, Episode] = {}
    moved: int | None = None
    stayed: int = MOVED_STEPS
    followed: int | None = None

    def note(self, slow: list[Standing], now: int, steps: int, ratio: float) -> None:
        """Take in who is slow at step ``now``; what lies further back than is remembered stays as it was found."""
        gone = set(self.ranks) - {one.rank for one in slow}
        begun = [one for one in slow if self._begins(one.rank, now, steps)]
        if gone and begun and len(slow) < MOST_MOVING:
            if self._is_another_story(gone, begun, now, steps, ratio):
                self.followed = now
            else:
                longest = max(self.ranks[rank].stay for rank in gone) + steps
                self.stayed = longest if self.moved is None else max(self.stayed, longest)
                self.moved = now
        for one in slow:
            at = one.onset(steps, ratio)
            changed = one.changed(at, steps, ratio)
            before = self.ranks.get(one.rank)
            if before is None or changed or (at >= steps and not self._recovers(one, at, now, steps)):
                found = now if before is None or before.seen < now - 2 * steps else before.found
                self.ranks[one.rank] = Episode(one.iterations[at], one.times[at], changed, now, found)
            else:
                self.ranks[one.rank].seen = now
        for rank in gone:
            if self.ranks[rank].seen < now - GONE_STEPS:
                del self.ranks[rank]

    def _begins(self, rank: int, now: int, steps: int) -> bool:
        """Whether a rank was not slow of late; one that comes back tells only where another has been slow meanwhile."""
        before = self.ranks.get(rank)
        return before is None or (self._has_followed(now) and before.seen < now - APART * steps)

    def _has_followed(self, now: int) -> bool:
        return self.followed is not None and now - self.followed < MOVED_STEPS

    def _is_another_story(self, gone: set[int], begun: list[Standing], now: int, steps: int, ratio: float) -> bool:
        """Whether those who begin do so long after who was slow for long: one such change shows no turns."""
        if self.moved is not None or self._has_followed(now):
            return False
        last = max(self.ranks[rank].seen for rank in gone)
        first = min(now - (len(one.values) - one.onset(steps, ratio)) for one in begun)
        stayed = min(self.ranks[rank].stay for rank in gone)
        return first - last > APART * steps and stayed > APART * steps

    def _recovers(self, one: Standing, at: int, now: int, steps: int) -> bool:
        """Whether a rank that has become slow no longer stands out: from where it seems to since then dates nothing."""
        before = self.ranks[one.rank]
        goes_on = before.changed and before.seen >= now - APART * steps and one.times[at] > before.time
        return goes_on and one.recovers(steps)

    def part(self, rank: int) -> float:
        """What part of the excess from which a rank is slow is enough for this one to be."""
        return STILL if rank in self.ranks else 1.0

    def has_moved(self, now: int) -> bool:
        """Whether the slow rank has moved of late."""
        return self.moved is not None and now - self.moved < min(STAYS * self.stayed, MOVED_STEPS)

    def all_changed(self, ranks: list[int]) -> bool:
        """Whether all of these became slow."""
        return all(self.ranks[rank].changed for rank in ranks)

    def first(self, ranks: list[int]) -> Episode:
        """The one of these that began first."""
        return min((self.ranks[rank] for rank in ranks), key=lambda one: (one.time, one.iteration))
