"""A pipeline job whose operations are timed: a simulator of 1F1B steps, written without what plays steps again.

Workers wait as they do in life: a receive is posted once the worker has nothing else to do and is over when its data is
there; a send is over when it was received. So traced durations of communication hold all waiting.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec

from schemas.events import Timeline

TRANSFER_S, SHARE_S = 0.002, 0.02
"""What a send and a collective take once all are there."""
Work = Callable[[int, int, int, int], tuple[float, float]]
"""Seconds of forward and backward by step, stage, replica and microbatch."""


class Operation(msgspec.Struct, frozen=True):
    name: str
    start: float
    duration: float
    microbatch: int = -1
    chunk: int = -1


class TracedJob(msgspec.Struct, frozen=True, kw_only=True):
    """Replica ``d`` of stage ``p`` is rank ``ranks[p * dp + d]``; ``gap_s`` passes before every forward.

    Each stage has ``chunks`` parts of the model, which microbatches go through in turn (virtual pipeline stages).
    """

    work: Work
    dp: int = 4
    pp: int = 2
    microbatches: int = 6
    steps: int = 6
    first_step: int = 10
    gap_s: float = 0.0
    chunks: int = 1
    ranks: tuple[int, ...] = ()

    def rank(self, stage: int, replica: int) -> int:
        place = stage * self.dp + replica
        return self.ranks[place] if self.ranks else place

    def places(self) -> dict[int, tuple[int, int]]:
        """Replica and stage by rank."""
        return {self.rank(stage, replica): (replica, stage) for stage in range(self.pp) for replica in range(self.dp)}

    def step(self, step: int) -> dict[tuple[int, int], list[Operation]]:
        """The operations of every worker by (replica, stage), in order of their starts."""
        found = {(replica, stage): own for replica in range(self.dp) for stage, own in self._pipeline(step, replica)}
        done = {
            place: max(one.start + one.duration for one in own if "compute" in one.name) for place, own in found.items()
        }
        for stage in range(self.pp):
            met = max(done[replica, stage] for replica in range(self.dp)) + SHARE_S
            for replica in range(self.dp):
                since = done[replica, stage]
                found[replica, stage].append(Operation("grads-reduce-scatter", since, met - since))
                done[replica, stage] = met
        met = max(done.values()) + SHARE_S / 10
        for place, own in found.items():
            own.append(Operation("optimizer-clip-main-grad", done[place], met - done[place]))
            own.append(Operation("optimizer", met, SHARE_S))
        return {place: sorted(own, key=lambda one: one.start) for place, own in found.items()}

    def timelines(self, time: int = 1_000_000_000) -> dict[int, dict[int, Timeline]]:
        """Timelines by step and rank."""
        place_of = self.places()
        found: dict[int, dict[int, Timeline]] = {}
        for step in range(self.first_step, self.first_step + self.steps):
            traced = self.step(step)
            found[step] = {rank: timeline_of(traced[place_of[rank]], step, time) for rank in sorted(place_of)}
        return found

    def _pipeline(self, step: int, replica: int) -> Iterator[tuple[int, list[Operation]]]:
        orders = [list(self._order(stage)) for stage in range(self.pp)]
        free = [SHARE_S] * self.pp
        done: dict[tuple[str, int, int], float] = {}
        found = [[Operation("params-all-gather", 0.0, SHARE_S)] for _ in range(self.pp)]
        while any(orders):
            for stage, order in enumerate(orders):
                while order and self._run(step, replica, stage, order[0], free, done, found):
                    order.pop(0)
        return enumerate(found)

    def _order(self, stage: int) -> Iterator[tuple[str, int, int]]:
        """1F1B; of several model chunks all forwards before all backwards."""
        ahead = min(self.pp - stage - 1, self.microbatches) if self.chunks == 1 else self.microbatches
        for chunk in range(self.chunks):
            yield from (("forward", number, chunk) for number in range(ahead))
        for number in range(ahead, self.microbatches):
            yield "forward", number, 0
            yield "backward", number - ahead, 0
        for chunk in reversed(range(self.chunks)):
            yield from (("backward", number, chunk) for number in range(self.microbatches - ahead, self.microbatches))

    def _run(
        self,
        step: int,
        replica: int,
        stage: int,
        what: tuple[str, int, int],
        free: list[float],
        done: dict[tuple[str, int, int], float],
        found: list[list[Operation]],
    ) -> bool:
        """Run the next computing of a stage; false while what it needs has not been computed."""
        direction, number, chunk = what
        onward = 1 if direction == "forward" else -1
        here = chunk * self.pp + stage
        before, after = here - onward, here + onward
        begun = free[stage] + (self.gap_s if direction == "forward" else 0.0)
        if 0 <= before < self.pp * self.chunks:
            sent = done.get((direction, before, number))
            if sent is None:
                return False
            there = max(sent, begun) + TRANSFER_S
            found[stage].append(Operation(f"{direction}-recv", begun, there - begun))
            found[before % self.pp].append(Operation(f"{direction}-send", sent, there - sent))
            begun = there
        took = self.work(step, stage, replica, number)[direction == "backward"] / self.chunks
        found[stage].append(Operation(f"{direction}-compute", begun, took, number, chunk))
        free[stage] = begun + took
        if 0 <= after < self.pp * self.chunks:
            done[direction, here, number] = free[stage]
        return True


def timeline_of(own: list[Operation], step: int, time: int) -> Timeline:
    names = sorted({one.name for one in own})
    return Timeline(
        time=time,
        iteration=step,
        names=names,
        operations=[names.index(one.name) for one in own],
        starts=[round(one.start * 1e9) for one in own],
        durations=[round(one.duration * 1e9) for one in own],
        microbatches=[one.microbatch for one in own],
        chunks=[one.chunk for one in own],
    )


def even(jitter: float = 0.01) -> Work:
    """All alike but for noise."""
    return lambda *place: tuple(  # type: ignore[return-value]
        base * (1 + jitter * random.Random(repr((place, base))).uniform(-1, 1)) for base in (0.1, 0.2)
    )


def slow_worker(stage: int, replica: int, factor: float = 2.0) -> Work:
    def work(step: int, at: int, of: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, at, of, number)
        scale = factor if (at, of) == (stage, replica) else 1.0
        return forward * scale, backward * scale

    return work


def longer_replicas(*replicas: int, factor: float = 1.4, spread: float = 0.0) -> Work:
    """All stages of these take longer, as with longer inputs, whose lengths may differ between microbatches."""

    def work(step: int, at: int, of: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, at, of, number)
        scale = (factor if of in replicas else 1.0) * (1 + spread * random.Random(repr((step, of, number))).random())
        return forward * scale, backward * scale

    return work


def heavy_last(pp: int, factor: float = 1.6) -> Work:
    def work(step: int, at: int, of: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, at, of, number)
        scale = factor if at == pp - 1 else 1.0
        return forward * scale, backward * scale

    return work


def lengths(spread: float = 1.5) -> Work:
    """Each microbatch of a replica has its own length, which all stages see, forward and backward."""

    def work(step: int, at: int, of: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, at, of, number)
        scale = 1 + spread * random.Random(repr((step, of, number))).random() ** 3
        return forward * scale, backward * scale

    return work


def shaky(spread: float = 1.5) -> Work:
    """Forward and backward vary, and not together."""

    def work(step: int, at: int, of: int, number: int) -> tuple[float, float]:
        chance = random.Random(repr((step, at, of, number, "shaky")))
        forward, backward = even()(step, at, of, number)
        return forward * (1 + spread * chance.random() ** 3), backward * (1 + spread * chance.random() ** 3)

    return work
