"""Who stands out alone before all others do: the rank in which something began that a reduction then spread.

A lone rise that is over spread to nobody, and what follows it has another cause. One that lasts no longer than others
of this job from which nothing came is no sign, and a rank that stands out often has its own kind of data. It must come
first by its times as well as by its numbers (``streams/step_numbers.py``).
"""

from __future__ import annotations

import msgspec

from streams.complete_steps import Step
from streams.config import SECOND
from streams.step_numbers import no_lead, steps_lower

MOST_HABITUAL = 64
MOST_LAGS = 64


class Alone(msgspec.Struct, kw_only=True):
    """A rank that stands out alone since an iteration, for ``count`` reports before the others do.

    ``lags`` is how much later than most it reports the same iterations (ns); ``whole`` is set while all its times are
    whole seconds.
    """

    rank: int
    iteration: int
    time: int
    count: int = 1
    lags: list[float] = []
    whole: bool = True

    def note(self, step: Step) -> None:
        """How late it is with one more step."""
        lag = step.lag(self.rank)
        if lag is not None:
            self.lags = [*self.lags, lag][-MOST_LAGS:]
            self.whole = self.whole and all(time % SECOND == 0 for _, time, _ in step.told)

    def leads(self, iteration: int, step_ns: int | None) -> bool:
        """Whether it came before the others' ``iteration`` by more than it may count lower than they do."""
        lower = steps_lower(self.lags, step_ns or 0, whole_seconds=self.whole)
        return iteration - self.iteration > no_lead(*lower)


class Forerunners(msgspec.Struct, kw_only=True):
    """The rank that stands out alone now; ``habitual`` ones had before, for ``longest`` reports at most."""

    alone: Alone | None = None
    habitual: list[int] = []
    longest: int = 0

    def take(self, iteration: int, step: Step, limit: float, ahead: int, reporters: int) -> None:
        """A step at which most ranks do not stand out.

        One that stands out for more than ``ahead`` reports has nothing to do with what comes; at least ``reporters``
        must report.
        """
        high = step.above(limit)
        alone = self.alone
        if alone is not None and alone.rank in high and alone.count < ahead:
            alone.count += 1
            alone.note(step)
        elif alone is not None:
            self.longest, self.alone = max(self.longest, alone.count), None
        elif len(high) == 1 and step.count >= reporters:
            ((rank, time),) = high.items()
            if rank not in self.habitual:
                self.alone = Alone(rank=rank, iteration=iteration, time=time)
                self.alone.note(step)
        new = [rank for rank in sorted(high) if rank not in self.habitual]
        self.habitual = [*self.habitual, *new][-MOST_HABITUAL:]

    def at_rise(self) -> Alone | None:
        """Most stand out now: who did so alone until then, if that means anything; it is not asked for again."""
        alone, self.alone = self.alone, None
        return alone if alone is not None and alone.count > self.longest else None
