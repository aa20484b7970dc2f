"""Kineto traces of a data-parallel job: each rank computes in pieces, and all meet in an all-reduce after each piece.

Ranks wait as they do in life: an all-reduce runs from when its rank has got to it, and ends for all at once. The CPU is
a step ahead of the device. Each host has a clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from kineto_support import ALL_REDUCE, Events, call, trace

PIECES, TRANSFER_US, AHEAD_US, OPTIMIZER_US = 3, 400.0, 3_000.0, 1_000.0
Work = Callable[[int, int, int], float]
"""Microseconds of a piece's kernels by step, rank and piece."""


class ProfiledJob(msgspec.Struct, frozen=True, kw_only=True):
    """``idle`` is how long (us) a rank's device waits for its CPU before the first piece, by step and rank.

    Where communication is ``hidden`` the next piece does not wait for it, only the optimizer does. ``told`` are the
    profiler's words on each all-reduce.
    """

    work: Work
    idle: Callable[[int, int], float] = lambda step, rank: 500.0
    ranks: int = 8
    steps: int = 7
    hidden: bool = False
    kernel: str = ALL_REDUCE
    told: dict[str, Any] | None = None

    def traces(self) -> list[dict[str, Any]]:
        """The trace of each rank."""
        events: list[Events] = [[] for _ in range(self.ranks)]
        free = [20_000.0] * self.ranks
        for step in range(self.steps):
            begun = list(free)
            free = self._step(step, free, events)
            for rank, own in enumerate(events):
                # Launched where the CPU was then, while the device still had the step before.
                span = free[rank] - begun[rank]
                own.append(call(f"ProfilerStep#{step + 10}", "user_annotation", begun[rank] - AHEAD_US, span))
        return [trace(_shifted(own, 137.0 * rank), rank, self.ranks) for rank, own in enumerate(events)]

    def _step(self, step: int, free: list[float], events: list[Events]) -> list[float]:
        at = [free[rank] + self.idle(step, rank) for rank in range(self.ranks)]
        network = [0.0] * self.ranks
        for piece in range(PIECES):
            for rank, own in enumerate(events):
                took = self.work(step, rank, piece)
                own.extend(_launched("sm90_xmma_gemm_bf16", at[rank], took, free[rank], stream=7))
                at[rank] += took
            joined = [max(at[rank], network[rank]) for rank in range(self.ranks)]
            met = max(joined) + TRANSFER_US
            for rank, own in enumerate(events):
                told = {"Group size": self.ranks} if self.told is None else self.told
                own.extend(_launched(self.kernel, joined[rank], met - joined[rank], free[rank], stream=20, **told))
            network = [met] * self.ranks
            at = at if self.hidden else list(network)
        for rank, own in enumerate(events):
            own.extend(_launched("multi_tensor_apply_kernel", network[rank], OPTIMIZER_US, free[rank], stream=7))
        return [met + OPTIMIZER_US for met in network]


def _launched(name: str, start: float, took: float, begun: float, *, stream: int, **told: Any) -> Events:
    """A kernel, and the launch of it by the CPU at the beginning of its step."""
    number = round(start) * 32 + stream
    launch = call("cudaLaunchKernel", "cuda_runtime", begun - AHEAD_US + 5, 5, correlation=number)
    return [launch, call(name, "kernel", start, took, thread=stream, **{"correlation": number, **told})]


def _shifted(events: Events, by: float) -> Events:
    return [event | {"ts": event["ts"] + by * 1_000} for event in events]


def even(step: int, rank: int, piece: int) -> float:
    """All alike but for a little."""
    return 4_000.0 + 1_500.0 * piece + (step * 7 + rank * 5 + piece * 3) % 11 * 4


def slow(who: int, factor: float = 1.5) -> Work:
    """One rank computes longer in every step."""
    return lambda step, rank, piece: even(step, rank, piece) * (factor if rank == who else 1.0)


def in_turn(ranks: int = 8, factor: float = 1.8) -> Work:
    """Another rank has the longest input in each step."""
    return lambda step, rank, piece: even(step, rank, piece) * (factor if rank == step * 3 % ranks else 1.0)
