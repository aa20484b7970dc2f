"""What the benchmarks of the stages share: processor time by step, memory, processes of their own, slopes."""

from __future__ import annotations

import cProfile
import pstats
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import log
from multiprocessing import get_context
from typing import Any

from rankwatch.collector import collect_seldom

MIB = 1024 * 1024


class Meter:
    """Processor time of what runs inside it, by step; one of the steps may be profiled."""

    def __init__(self, profiled: str = "") -> None:
        collect_seldom()
        self.seconds: dict[str, float] = {}
        self._profiled = profiled
        self._profile = cProfile.Profile()

    def run(self, step: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """What ``work`` returns."""
        if step == self._profiled:
            self._profile.enable()
        began = time.process_time()
        found = work(*arguments)
        self.seconds[step] = self.seconds.get(step, 0.0) + time.process_time() - began
        self._profile.disable()
        return found

    def show(self) -> None:
        """Print what the profile found."""
        if self._profiled:
            pstats.Stats(self._profile).sort_stats("cumulative").print_stats(45)


def peak_mib() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of ``work`` in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as one:
        return one.submit(work, *arguments).result()


def slope(rows: dict[int, dict[str, float]], key: str) -> float:
    """How a figure grows with the ranks, in log-log: 1 is as they do."""
    few, many = min(rows), max(rows)
    return round(log(rows[many][key] / rows[few][key]) / log(many / few), 3)


def shown(figure: float) -> str:
    """A figure of the table, with three digits at least."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
