"""A stage that does as it is told, and a log and store that write down what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.codec import decode, headers
from schemas.ports import Entry, TooLargeError
from schemas.results import DeadLetter, Notice, Snapshot
from streams.config import StreamConfig
from streams.log.memory import MemoryLog
from streams.runner import Runner
from streams.stages.dead_letters import dead_letter_output
from streams.stages.outputs import Output
from streams.stages.standing import Standing

CONFIG = StreamConfig()
GOOD, BAD, TICK, BAD_TICK = b"good", b"bad", b"tick", b"bad tick"


def unreadable(topic: str, partition: int, offset: int, reason: str, key: bytes, value: bytes) -> DeadLetter:
    return DeadLetter(
        topic=topic, partition=partition, offset=offset, stage="rank", reason=reason, key=key, value=value
    )


def notice(name: str) -> Notice:
    return Notice(id=name, notification_key="n", job="job", attempt="0", time=1, rule="oom", text="oom")


class Scripted:
    """A stage that answers each entry with its name, and closes as many windows as it is told to."""

    name = "rank"
    partition = 0
    inputs = (("logs", 0), ("metrics", 0))
    standing = Standing(closed=None, open_windows=0, held_bytes=0)

    def __init__(self) -> None:
        self.taken: list[tuple[str, int, bytes]] = []
        self.next = {"logs": 0, "metrics": 0}
        self.to_close: list[list[Output]] = []
        self.closed = 0
        self.restored: bytes | None = None

    def next_offset(self, topic: str, partition: int) -> int:
        return self.next[topic]

    def behind(self, topic: str) -> int:
        return self.next[topic]

    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]:
        assert entry.offset >= self.next[topic], "never backwards"
        self.next[topic] = entry.offset + 1
        self.taken.append((topic, entry.offset, entry.value))
        if entry.value.startswith(b"bad"):
            letter = unreadable(topic, partition, entry.offset, "no JSON", entry.key, entry.value)
            return [dead_letter_output(letter, entry.time)]
        return []

    def bound(self, held_bytes: int) -> None:
        pass

    def close(self) -> list[Output] | None:
        if not self.to_close:
            return None
        self.closed += 1
        return self.to_close.pop(0)

    def written(self) -> Snapshot:
        state = msgspec.Raw(msgspec.json.encode(self.closed))
        offsets = {f"{topic}|0": at for topic, at in self.next.items()}
        config = CONFIG.state_hash
        return Snapshot(stage="rank", partition=0, end=self.closed, config=config, offsets=offsets, state=state)

    def restore(self, raw: msgspec.Raw) -> None:
        self.restored = bytes(raw)
        msgspec.json.decode(raw, type=int)


class Recorded:
    """A log in memory and a store that write down, in order, what is asked of them."""

    def __init__(self, most_bytes: int = 10**9) -> None:
        self.log = MemoryLog(1)
        self.most_bytes = most_bytes
        self.gone_before = 0
        self.calls: list[str] = []

    def partitions(self, topic: str) -> int:
        return 1

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> None:
        if len(value) > self.most_bytes:
            raise TooLargeError(f"a record of {len(value)} bytes is more than topic {topic} takes")
        self.calls.append(topic)
        self.log.append(topic, key, value, headers, time, partition)

    def flush(self) -> None:
        self.calls.append("flush")

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        self.calls.append(f"read {topic} {offset}")
        return self.log.read(topic, partition, max(offset, self.gone_before), limit)

    def end(self, topic: str, partition: int) -> int:
        return self.log.end(topic, partition)

    def save(self, snapshot: Snapshot) -> None:
        self.calls.append(f"save {snapshot.end}")

    def load(self, stage: str, partition: int) -> Snapshot | None:
        return None

    def said(self, topic: str, kind: str) -> list[Any]:
        return [decode(kind, entry.value) for entry in self.log.read(topic, 0, 0, 10**6)]


def entries(*values: bytes, topic: str = "logs", log: MemoryLog | None = None) -> list[Entry]:
    """Entries of these values, in order, as they lie in the log."""
    log = log or MemoryLog(1)
    for value in values:
        kind = "tick" if value.endswith(TICK) else "log"
        log.append(topic, b"k", value, headers(kind), 5, 0)
    return list(log.read(topic, 0, 0, 10**6))


def offsets(stage: Scripted, topic: str = "logs") -> list[int]:
    return [offset for place, offset, _ in stage.taken if place == topic]


def runner(recorded: Recorded, *, most_poison: int = 0, store: bool = True) -> tuple[Runner, Scripted]:
    stage = Scripted()
    made = Runner(stage, recorded, CONFIG, store=recorded if store else None, most_poison=most_poison)
    return made, stage
