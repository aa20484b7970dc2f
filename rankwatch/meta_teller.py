"""Says in the topic ``meta`` what only a running worker or sink knows of itself, from a thread of its own.

One that stands still says so while its process lives; of a worker that is gone the watchdog's silence tells.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from schemas.codec import encode, headers
from schemas.identity import rank_ranges
from schemas.meta import MetaAlert
from schemas.ports import LogError
from streams.config import StreamConfig
from streams.ending import say
from streams.live import LiveStages
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import KafkaSettings
from streams.report import moment
from streams.worker_meta import Look, SinkMeta, WorkerMeta

LOOK_S = 5.0
"""How often it looks."""
MOST_UNSAID = 100
"""Alerts that are kept while they cannot be said."""


def seen_of(stages: Sequence[LiveStages], trouble: str, now: int | None) -> Look:
    """What the stages show; ``now`` (ns) is null where windows do not follow the present."""
    behind: dict[str, int] = {}
    waits: dict[str, str] = {}
    runners = [(live.stage, runner) for live in stages for runner in live.runners.copy().values()]
    for stage, runner in runners:
        standing = runner.stage.standing
        closed = standing.closed
        if standing.waits_for:
            waits[stage] = said_waits(standing.waits_for)
        if now is not None and closed is not None:
            behind[stage] = max(behind.get(stage, 0), now - closed - _OWED_NS)
    return Look(
        behind_ns=behind,
        waits=waits,
        stalled=trouble,
        entries=sum(runner.counts.entries for _, runner in runners),
        letters=sum(runner.counts.dead_letters for _, runner in runners),
    )


def said_waits(waits_for: Mapping[int, int | None]) -> str:
    """Which partitions a stage waits for, and since when: as far as they have reported."""
    since = [end for end in waits_for.values() if end is not None]
    told = f", heard up to {moment(min(since))}" if since else ", never heard"
    return f"partition{'s' if len(waits_for) > 1 else ''} {rank_ranges(waits_for)}{told}"


_OWED_NS = StreamConfig().closing_ns + StreamConfig().window_ns
"""How far the last window may lie behind where all is well: one is open, the one before it is waited for."""


Looked = Callable[[int], Sequence[MetaAlert]]
"""What there is to say as of a time (ns)."""


def tell_meta(
    stages: Sequence[LiveStages], settings: KafkaSettings, trouble: Callable[[], str], *, follows_clock: bool
) -> None:
    """Begin to look at a worker; ``follows_clock``: its windows follow the present, as with the workers' ticks."""
    meta = WorkerMeta(_process())
    _begin(settings, lambda now: meta.look(now, seen_of(stages, trouble(), now if follows_clock else None)))


def tell_sink_meta(settings: KafkaSettings, trouble: Callable[[], str]) -> None:
    """Begin to look at a sink; ``trouble`` is why it stores nothing, or empty."""
    meta = SinkMeta(_process())
    _begin(settings, lambda now: meta.look(now, trouble()))


def _process() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


def _begin(settings: KafkaSettings, look: Looked) -> None:
    threading.Thread(target=_tell, args=(settings, look), name="meta", daemon=True).start()


def _tell(settings: KafkaSettings, look: Looked) -> None:
    teller = Teller(lambda: KafkaLog(settings))
    pause, failed = threading.Event(), ""
    while not pause.wait(LOOK_S):
        now = time.time_ns()
        try:
            teller.tell(look(now), now)
        except Exception as error:
            # It is the work that counts: it goes on, and the watchdog's beats tell that it does.
            if failed != (failed := f"{type(error).__name__}: {error}"):
                say(f"what this process knows of itself cannot be told: {failed}")


class Sink(Protocol):
    """What it says alerts into."""

    def append(self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int) -> object:
        """Append a record."""

    def flush(self) -> None:
        """Wait until it is safe."""

    def close(self) -> None:
        """Let go of it."""


class Teller:
    """Appends alerts through a client of its own; what was not safe when that failed goes through the next one."""

    def __init__(self, opened: Callable[[], Sink]) -> None:
        self._open = opened
        self._log: Sink | None = None
        self._unsaid: dict[str, MetaAlert] = {}
        self._left_out = 0

    def tell(self, alerts: Sequence[MetaAlert], now: int) -> None:
        """Say these (ns), and what could not be said before. Of each alert only its last word."""
        self._unsaid |= {alert.id: alert for alert in alerts}
        for name in list(self._unsaid)[:-MOST_UNSAID]:
            del self._unsaid[name]
            self._left_out += 1
        if not self._unsaid:
            return
        try:
            self._log = self._log or self._open()
            for alert in self._unsaid.values():
                self._log.append("meta", alert.cluster.encode(), encode(alert), headers("meta"), now)
            self._log.flush()
        except BaseException as error:
            # A client that has failed may never be of use again, and would hold its connections and threads.
            failed, self._log = self._log, None
            if failed is not None:
                failed.close()
            if not isinstance(error, LogError):
                raise
        else:
            self._unsaid.clear()
            if self._left_out:
                say(f"{self._left_out} alerts of this process were never told: too many waited to be")
                self._left_out = 0
