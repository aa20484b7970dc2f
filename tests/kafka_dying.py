"""The command line with a fuse: the process kills itself at a named step, as a power cut would.

``DIE_AT=<step>:<n>`` dies at the n-th time of ``append`` (before it), ``flush`` (before it), ``snapshot`` (before it,
emissions are safe), ``commit`` (before it, the snapshot is safe), ``committed`` (behind it), ``insert`` (before it),
``inserted`` (behind it, before the commit).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import rankwatch.store
import rankwatch.worker
from rankwatch.cli import entry
from sinks.live import LiveSink
from sinks.sink import Storer
from streams import app
from streams.log.kafka import KafkaLog
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_snapshots import KafkaSnapshots

STEPS = ("append", "flush", "snapshot", "commit", "committed", "insert", "inserted")
STEP, _, COUNT = os.environ["DIE_AT"].partition(":")
_left = {STEP: int(COUNT)}


def at(step: str) -> None:
    if step in _left:
        _left[step] -= 1
        if _left[step] == 0:
            print(f"dies at {step}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


class Log(KafkaLog):
    def append(self, *arguments: Any, **named: Any) -> None:
        at("append")
        super().append(*arguments, **named)

    def flush(self) -> None:
        at("flush")
        super().flush()


class Snapshots(KafkaSnapshots):
    def save(self, snapshot: Any) -> None:
        at("snapshot")
        super().save(snapshot)


class Wiring(app.Wiring):
    async def _commit(self, offsets: Any) -> bool:
        at("commit")
        done = await super()._commit(offsets)
        at("committed")
        return done


class Group(KafkaGroup):
    def commit(self, offsets: Any) -> bool:
        at("commit")
        done = super().commit(offsets)
        at("committed")
        return done


class Stores(Storer):
    def store(self, *arguments: Any) -> Any:
        at("insert")
        found = super().store(*arguments)
        at("inserted")
        return found


class Sink(LiveSink):
    def __init__(self, client: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(client, *arguments, **named)
        self._storer = Stores(client, named["run_id"])


assert STEP in STEPS, STEP
setattr(rankwatch.worker, "KafkaLog", Log)  # noqa: B010
setattr(rankwatch.worker, "KafkaSnapshots", Snapshots)  # noqa: B010
setattr(app, "Wiring", Wiring)  # noqa: B010
setattr(rankwatch.store, "KafkaGroup", Group)  # noqa: B010
setattr(rankwatch.store, "LiveSink", Sink)  # noqa: B010

if __name__ == "__main__":
    sys.argv[0] = "rankwatch"
    entry()
