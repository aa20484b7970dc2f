"""Says in the topic ``meta`` what only a running worker knows of itself, from a thread of its own.

A worker that stands still says so while its process lives; of one that is gone the watchdog's silence tells.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence

from schemas.codec import encode, headers
from schemas.ports import LogError
from streams.config import StreamConfig
from streams.live import LiveStages
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import KafkaSettings
from streams.worker_meta import Look, WorkerMeta

LOOK_S = 5.0
"""How often it looks."""


def seen_of(stages: Sequence[LiveStages], trouble: str, now: int | None) -> Look:
    """What the stages show; ``now`` (ns) is null where windows do not follow the present."""
    behind: dict[str, int] = {}
    runners = [(live.stage, runner) for live in stages for runner in live.runners.copy().values()]
    for stage, runner in runners:
        closed = runner.stage.standing.closed
        if now is not None and closed is not None:
            behind[stage] = max(behind.get(stage, 0), now - closed - _OWED_NS)
    return Look(
        behind_ns=behind,
        stalled=trouble,
        entries=sum(runner.counts.entries for _, runner in runners),
        letters=sum(runner.counts.dead_letters for _, runner in runners),
    )


_OWED_NS = StreamConfig().closing_ns + StreamConfig().window_ns
"""How far the last window may lie behind where all is well: one is open, the one before it is waited for."""


def tell_meta(
    stages: Sequence[LiveStages], settings: KafkaSettings, trouble: Callable[[], str], *, follows_clock: bool
) -> None:
    """Begin to look; ``follows_clock`` is whether windows follow the present, as with the workers' ticks."""
    threading.Thread(target=_tell, args=(stages, settings, trouble, follows_clock), name="meta", daemon=True).start()


def _tell(
    stages: Sequence[LiveStages], settings: KafkaSettings, trouble: Callable[[], str], follows_clock: bool
) -> None:
    meta, log, pause = WorkerMeta(f"{socket.gethostname()}-{os.getpid()}"), KafkaLog(settings), threading.Event()
    while not pause.wait(LOOK_S):
        now = time.time_ns()
        alerts = meta.look(now, seen_of(stages, trouble(), now if follows_clock else None))
        try:
            for alert in alerts:
                log.append("meta", alert.cluster.encode(), encode(alert), headers("meta"), now)
            if alerts:
                log.flush()
        except LogError:
            # What could not be said now is said again while it lasts, by another client.
            log = KafkaLog(settings)
