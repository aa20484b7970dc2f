"""How regularly a process is looked at: that one is not seen means something only where it would have been by now."""

from __future__ import annotations

import msgspec

OVERDUE_PAUSES = 2
REGULAR_ROUNDS = 3
MISSED_ROUNDS = 2


class Rhythm(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When something was ``last`` seen, and the latest two pauses between sightings (ns, 0 where not known yet)."""

    last: int = 0
    pause: int = 0
    earlier: int = 0

    def seen(self, time: int) -> Rhythm:
        """The rhythm after a sighting at ``time``."""
        if not self.last:
            return Rhythm(time)
        return self if time <= self.last else Rhythm(time, time - self.last, self.pause)

    def overdue(self, time: int) -> bool:
        """Whether it was not seen for twice as long as it ever is; never where it is not known how long that is."""
        return self.earlier > 0 and time - self.last >= OVERDUE_PAUSES * max(self.pause, self.earlier)


class Rounds(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A process in the rounds of its node's producer: how many ``listed`` it in a row, how many left it out since.

    ``lost`` is the end of the window of the first round that left it out, 0 where the latest lists it. A round is a
    window in which the node is seen to run any process.
    """

    listed: int = 0
    missed: int = 0
    lost: int = 0

    def with_it(self) -> Rounds:
        """After a round that lists the process; where one before did not, its row begins anew."""
        return Rounds(1 if self.missed else self.listed + 1)

    def without_it(self, end: int) -> Rounds:
        """After a round, in the window that ends at ``end``, that leaves it out."""
        return Rounds(self.listed, self.missed + 1, self.lost or end) if self.listed else self

    def left_out(self, other: Rounds) -> bool:
        """Whether rounds that regularly listed both have listed ``other`` alone since.

        Where each process has a sampler of its own, rounds differ in whom they list, and that one is left out says
        nothing.
        """
        regular = self.listed >= REGULAR_ROUNDS and other.listed >= REGULAR_ROUNDS + self.missed
        return regular and self.missed >= MISSED_ROUNDS and not other.missed
