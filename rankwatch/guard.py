"""Watches a service from a thread of its own, outside the loop that may be what stands still; ends the process then.

Others take over its partitions, and its supervisor starts it again; the log holds all that it needs.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Sequence

from streams.watchdog import Watchdog

LOOK_S = 1.0
"""How often it looks."""


def trouble_of(dogs: Sequence[Watchdog]) -> str:
    """What stands still, and for how long; empty if nothing does."""
    found = [dog.look(time.monotonic()) for dog in dogs]
    return "; ".join(f"{health.value} for {seconds:.0f} s" for health, seconds in found if seconds)


def guard(dogs: Sequence[Watchdog]) -> None:
    """Begin to watch."""
    threading.Thread(target=_watch, args=(dogs,), name="watchdog", daemon=True).start()


def _watch(dogs: Sequence[Watchdog]) -> None:
    while True:
        time.sleep(LOOK_S)
        for dog in dogs:
            lost = dog.lost(time.monotonic())
            if lost is not None:
                faulthandler.dump_traceback(all_threads=True)
                print(f"rankwatch: {lost.value} for {dog.patience_s:g} s: giving up", file=sys.stderr, flush=True)
                os._exit(1)
