"""How a worker's process ends: in order, without order when that takes too long, or at once.

Everything that counts is in the log, so the next one can always go on from there.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

STOP_S = 5.0
"""How long to leave the group in order may take."""


def say(text: str) -> None:
    """Tell whoever looks after the worker."""
    print(f"rankwatch: {text}", file=sys.stderr, flush=True)


def die(reason: str) -> NoReturn:
    """End the process at once, with the reason."""
    say(reason)
    os._exit(1)


def asked_to_stop(*, away: bool) -> None:
    """The process was asked to stop; while the cluster is ``away`` there is nobody to take leave of, and it ends."""
    if away:
        say("stopped while Kafka is away; what is in the log is safe")
        os._exit(0)
    # If the cluster goes just now, libraries are taken by surprise; that is no news to whoever stops the worker.
    logging.disable()
    threading.excepthook = lambda _: None


def leave_when(stopping: Callable[[], bool], failed: Callable[[], bool]) -> None:
    """From now on, end the process where it cannot end in order once it is ``stopping``, as in an outage.

    Its exit code is 1 if it has ``failed``, else 0.
    """
    threading.Thread(target=_leave, args=(stopping, failed), name="leave", daemon=True).start()


def _leave(stopping: Callable[[], bool], failed: Callable[[], bool]) -> None:
    while not stopping():
        time.sleep(1.0)
    time.sleep(STOP_S)
    code = 1 if failed() else 0
    say(f"still not at rest after {STOP_S:g} s: leaving")
    os._exit(code)
