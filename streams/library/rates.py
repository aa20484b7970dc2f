"""How often lines come: how many of a template a rank prints in an iteration, where nearly all ranks do regularly.

What one rank prints for all is left out, and so is chatter. Windows are put together until they hold some iterations,
so that it does not matter how many steps fit into a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

import msgspec

ITERATIONS = 5
"""A sample holds so many iterations at least."""
LEAST_SAMPLES, MOST_SAMPLES = 3, 12
COMMON = 0.9
"""Of so many ranks a line must come to be of all."""
REGULAR = 0.8
"""In this share of the samples a line that comes regularly is seen."""
MOST_NAMES = 500


class Lines(msgspec.Struct, frozen=True, array_like=True):
    """How many lines of a template came in a window, and from how many ranks."""

    count: int
    ranks: int


class RatePace(msgspec.Struct, kw_only=True):
    """Lines a rank and iteration, by template, in the last ``samples``; ``held`` is what the next sample has so far.

    ``reached`` is the latest iteration, null before any; ``since`` that at the beginning of the sample. A template that
    fewer than nearly all ranks print is ``apart``, and not followed.
    """

    reached: int | None = None
    since: int | None = None
    ranks: int = 0
    held: dict[str, int] = {}
    apart: list[str] = []
    samples: int = 0
    rates: dict[str, list[float]] = {}

    def take(self, told: Mapping[str, Lines], ranks: int, reached: int | None) -> bool:
        """Take in one window in which so many ranks were seen; returns whether it completes a sample."""
        if reached is None:
            return False
        if self.since is None or self.reached is None or reached < self.reached:
            # The first window, or counted anew: what was printed before it has no iterations.
            self.since, self.reached, self.held = reached, reached, {}
            return False
        self.reached, self.ranks = reached, max(self.ranks, ranks)
        self._hold(told)
        done = reached - self.since
        if done < ITERATIONS or not self.ranks:
            return False
        for name in sorted(self.held.keys() | self.rates.keys()):
            rate = float(f"{self.held.get(name, 0) / (done * self.ranks):.6g}")
            # What was not printed before came in none of the samples.
            before = self.rates.get(name, [0.0] * min(self.samples, MOST_SAMPLES))
            self.rates[name] = [*before, rate][-MOST_SAMPLES:]
        self.samples += 1
        self.since, self.held = reached, {}
        return True

    def _hold(self, told: Mapping[str, Lines]) -> None:
        for name, lines in sorted(told.items()):
            if name in self.apart:
                continue
            if lines.ranks < COMMON * self.ranks:
                self._drop(name)
            elif name in self.held or len(self.held.keys() | self.rates.keys()) < MOST_NAMES:
                self.held[name] = self.held.get(name, 0) + lines.count

    def _drop(self, name: str) -> None:
        """A line that only some ranks print says something of them."""
        if len(self.apart) < MOST_NAMES:
            self.apart = [*self.apart, name]
        self.held.pop(name, None)
        self.rates.pop(name, None)

    def regular(self) -> dict[str, float]:
        """The rates of what came regularly: medians over the samples, none before there are several."""
        if self.samples < LEAST_SAMPLES:
            return {}
        return {
            name: median(rates)
            for name, rates in sorted(self.rates.items())
            if sum(rate > 0 for rate in rates) >= REGULAR * len(rates) and median(rates) > 0
        }


def lines_of(counts: Iterable[tuple[str, int, int]]) -> dict[str, Lines]:
    """Lines by template, of (template, count, ranks) by shape of line; several shapes of one are added up."""
    found: dict[str, Lines] = {}
    for name, count, ranks in counts:
        before = found.get(name, Lines(0, 0))
        found[name] = Lines(before.count + count, max(before.ranks, ranks))
    return found
