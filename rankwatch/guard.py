"""Watches a service from a thread of its own, outside the loop that may be what stands still; ends the process then.

Others take over its partitions, and its supervisor starts it again; the log holds all that it needs.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable, Sequence

from streams.ending import say
from streams.watchdog import Watchdog

LOOK_S = 1.0
"""How often it looks."""


def trouble_of(dogs: Sequence[Watchdog]) -> str:
    """What stands still, and for how long; empty if nothing does."""
    found = [dog.look(time.monotonic()) for dog in dogs]
    return "; ".join(f"{health.value} for {seconds:.0f} s" for health, seconds in found if seconds)


def guard(dogs: Sequence[Watchdog], away: Callable[[], bool]) -> None:
    """Begin to watch; ``away`` is whether the cluster does not answer, asked from the watching thread."""
    threading.Thread(target=_watch, args=(dogs, away), name="watchdog", daemon=True).start()


def _watch(dogs: Sequence[Watchdog], away: Callable[[], bool]) -> None:
    while True:
        time.sleep(LOOK_S)
        for dog in dogs:
            lost = dog.lost(time.monotonic())
            if lost is not None:
                reason = "Kafka is away and nothing was taken in"
                if not away():
                    # Where it stands only its stacks can tell.
                    faulthandler.dump_traceback(all_threads=True)
                    reason = lost.value
                say(f"{reason} for {dog.patience_s:g} s: giving up, for others to take over")
                os._exit(1)
