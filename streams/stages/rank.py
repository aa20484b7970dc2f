"""The rank stage: everything that the workers of one partition number did in a window, as one summary each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import msgspec

from schemas import events, results
from schemas.entries import dead_letter, read_entry
from schemas.identity import Identity
from schemas.ids import stable_id
from schemas.ports import Entry
from schemas.results import Snapshot
from schemas.topics import RAW_TOPIC_OF, RAW_TOPICS
from streams.config import StreamConfig
from streams.detectors import registry
from streams.lines.facts import Facts, facts_of_all
from streams.log.partition import partition_of
from streams.stages.buffer import Arrival, Arrived, Checkpoint, Held, Outcome, WindowBuffer
from streams.stages.dead_letters import dead_letter_output, failed_window
from streams.stages.notices import Notices, NoticesState
from streams.stages.outputs import Output
from streams.stages.stamped import stamped_outputs, summary_output
from streams.stages.standing import Standing
from streams.stages.worker import WorkerState, group_by_worker, summarise
from streams.state import written

Key = tuple[str, str, str]


class _Worker:
    """A worker's state and its live detectors."""

    def __init__(self, state: WorkerState, detectors: list[registry.SeriesDetector[Any, Any]]) -> None:
        self.state = state
        self.detectors = detectors
        self.last = 0
        for detector in detectors:
            if detector.name in state.detectors:
                detector.restore(state.detectors[detector.name])


class RankState(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down at a window boundary; of lines before offset ``noticed_before`` early words were said."""

    buffer: Checkpoint
    workers: list[tuple[str, str, str, int, WorkerState]]
    duplicates: int
    notices: NoticesState = msgspec.field(default_factory=NoticesState)
    noticed_before: int = 0


class RankStage:
    """Partition number ``partition`` of all raw topics; a pure function of what is read from them.

    ``raw_partitions`` and ``window_partitions`` count the partitions of the raw topics and of the windows topic, each
    of which hears of progress.
    """

    name = "rank"

    def __init__(self, partition: int, raw_partitions: int, window_partitions: int, config: StreamConfig) -> None:
        self.partition = partition
        self.config = config
        self.inputs = tuple((topic, partition) for topic in RAW_TOPICS)
        self.duplicates = 0
        self._raw_partitions = raw_partitions
        self._window_partitions = window_partitions
        self._buffer = WindowBuffer(RAW_TOPICS, config)
        self._workers: dict[Key, _Worker] = {}
        self._notices = Notices()
        self._noticed_before = 0
        registry.build("rank", config.detectors)  # wrong settings stop the start, not the first event

    def next_offset(self, topic: str, partition: int) -> int:
        """From where to read on."""
        return self._buffer.next_offset(topic)

    def behind(self, topic: str) -> int:
        """How far time has come in a topic; the driver reads the one that is furthest behind."""
        watermark = self._buffer.watermark(topic)
        return -1 if watermark is None else watermark

    @property
    def held_events(self) -> int:
        """Events in open windows."""
        return self._buffer.held_events

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        buffer = self._buffer
        return Standing(
            closed=None if buffer.closed is None else (buffer.closed + 1) * self.config.window_ns,
            open_windows=buffer.open_windows,
            held_bytes=buffer.held_bytes,
            duplicates=self.duplicates,
            ahead_ns=buffer.ahead_ns,
        )

    def bound(self, held_bytes: int) -> None:
        """Nothing to let go of: whoever reads for it lets the topics wait that ran ahead."""

    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]:
        """Take one entry in; returns notices and what was late or unreadable."""
        read = read_entry(entry, topic, partition, self.name)
        if isinstance(read, results.DeadLetter):
            self._buffer.skip(topic, entry.offset)
            return [dead_letter_output(read, entry.time)]
        kind, record = read
        if kind == "tick":
            placed = self._buffer.tick(topic, entry.offset, record.time)
            return [output for arrived, outcome in placed for output in self._said(arrived, outcome)]
        home = partition_of(record.identity.key.encode("utf-8", "replace"), self._raw_partitions)
        if home != partition:
            # Two partitions of one worker would make two summaries of one window.
            self._buffer.skip(topic, entry.offset)
            reason = f"belongs to partition {home}: its producer does not partition by murmur2"
            return [dead_letter_output(dead_letter(entry, topic, partition, self.name, reason), entry.time)]
        return self._on_batch(topic, entry, kind, record)

    def _on_batch(self, topic: str, entry: Entry, kind: str, batch: events.Batch[Any]) -> list[Output]:
        times = [event.time for event in batch.events]
        facts = facts_of_all([event.text for event in batch.events]) if kind == "log" else []
        arrived = Arrived(topic, entry.offset, kind, batch, entry.time, len(entry.value), times, facts)
        return self._said(arrived, self._buffer.add(arrived))

    def _said(self, arrived: Arrived, outcome: Outcome) -> list[Output]:
        """What is to be said at once of a batch: notices, and what of it was late."""
        if Arrival.DUPLICATE in outcome:
            self.duplicates += 1
            return []
        outputs = self._early(arrived) if Arrival.BUFFERED in outcome else []
        for window, count in outcome.get(Arrival.LATE, []):
            outputs.append(self._late(arrived, window, count))
        return outputs

    def _early(self, arrived: Arrived) -> list[Output]:
        """Early words on what is hard evidence by itself; they name nobody."""
        if not arrived.facts or arrived.offset < self._noticed_before:
            # What was said stood in its topic before the state was written down.
            return []
        present = self._buffer.watermark(arrived.topic)
        latest = (arrived.sent if present is None else present) + self.config.skew_ns
        notices = self._notices.of_batch(arrived.batch, arrived.facts, latest)
        return [Output(topic="notices", key=one.job, record=one, time=arrived.sent) for one in notices]

    def _late(self, arrived: Arrived, window: int, count: int) -> Output:
        topic, batch = arrived.topic, arrived.batch
        end = (window + 1) * self.config.window_ns
        late = results.Late(
            id=stable_id("late", topic, self.partition, batch.producer, batch.boot, batch.seq, end),
            topic=topic,
            partition=self.partition,
            producer=batch.producer,
            boot=batch.boot,
            seq=batch.seq,
            identity=batch.identity,
            window_end=end,
            events=count,
        )
        return Output(topic="late", key=batch.identity.key, record=late, time=arrived.sent)

    def close(self) -> list[Output] | None:
        """Close the next window that all ticks have passed; its outputs, or null where there is none."""
        window = self._buffer.closable()
        if window is None:
            return None
        time = (window + 1) * self.config.window_ns
        outputs = self._summaries(self._buffer.close(window), window, time)
        progress = results.Progress(partition=self.partition, end=time)
        outputs.extend(
            Output(topic="windows", key=f"progress|{self.partition}", record=progress, time=time, partition=number)
            for number in range(self._window_partitions)
        )
        return outputs

    def _summaries(self, held: list[Held], window: int, time: int) -> list[Output]:
        outputs: list[Output] = []
        for key, items in _by_worker(held).items():
            try:
                outputs.extend(self._summary(key, items, window, time))
            except Exception as error:
                # One worker's events must not stop the others: its window is lost, loudly.
                self._workers.pop(key, None)
                outputs.append(dead_letter_output(failed_window("|".join(key), time, self.name, error), time))
        self._forget_idle(window)
        return outputs

    def _summary(self, key: Key, items: list[tuple[Identity, Any]], window: int, time: int) -> list[Output]:
        if not any(part.indices for _, part in items):
            return []  # all that came was late, which is told elsewhere: nothing is known of this window
        identity, ordered, known = _canonical(items)
        moved = {"late": sum(part.late for _, part in items), "retimed": sum(len(part.retimed) for _, part in items)}
        worker = self._worker(key, window)
        summary, stamped = summarise(identity, worker.state, ordered, window, self.config, known)
        # What no rank is known for is of several that may be compared with nobody, nor with their own past.
        watched = worker.detectors if identity.rank is not None else []
        drifts = [drift for detector in watched for drift in detector.observe(summary.series)]
        dropped = summary.dropped | {reason: count for reason, count in moved.items() if count}
        summary = msgspec.structs.replace(summary, drifts=drifts, dropped=dropped)
        return [*stamped_outputs(identity, stamped, summary.id, time), summary_output(summary, time)]

    def _worker(self, key: Key, window: int) -> _Worker:
        worker = self._workers.get(key)
        if worker is None or window - worker.last > self.config.idle_windows:
            worker = self._workers[key] = self._new_worker(WorkerState())
        worker.last = window
        return worker

    def _new_worker(self, state: WorkerState) -> _Worker:
        detectors = registry.build("rank", self.config.detectors)
        return _Worker(state, [one for one in detectors if isinstance(one, registry.SeriesDetector)])

    def _forget_idle(self, window: int) -> None:
        idle = [key for key, worker in self._workers.items() if window - worker.last > self.config.idle_windows]
        for key in idle:
            del self._workers[key]

    def written(self) -> Snapshot:
        """The state at the window boundary just closed, with the offsets to read on from."""
        workers = []
        for key in sorted(self._workers):
            worker = self._workers[key]
            worker.state.detectors = {detector.name: detector.snapshot() for detector in worker.detectors}
            workers.append((*key, worker.last, worker.state))
        checkpoint = self._buffer.checkpoint()
        return Snapshot(
            stage=self.name,
            partition=self.partition,
            end=((checkpoint.closed or 0) + 1) * self.config.window_ns,
            config=self.config.state_hash,
            offsets={f"{topic}|{self.partition}": offset for topic, offset in sorted(checkpoint.offsets.items())},
            state=written(self._state(checkpoint, workers)),
        )

    def _state(self, checkpoint: Checkpoint, workers: list[tuple[str, str, str, int, WorkerState]]) -> RankState:
        return RankState(
            buffer=checkpoint,
            workers=workers,
            duplicates=self.duplicates,
            notices=self._notices.state,
            noticed_before=max(self._noticed_before, self._buffer.placed_before(RAW_TOPIC_OF["log"])),
        )

    def restore(self, raw: msgspec.Raw) -> None:
        """Begin again from a written state."""
        state = msgspec.json.decode(raw, type=RankState)
        self._buffer.restore(state.buffer)
        self.duplicates = state.duplicates
        self._notices, self._noticed_before = Notices(state.notices), state.noticed_before
        self._workers = {}
        for job, name, attempt, last, worker_state in state.workers:
            worker = self._new_worker(worker_state)
            worker.last = last
            self._workers[job, name, attempt] = worker


def _by_worker(held: list[Held]) -> dict[Key, list[tuple[Identity, Any]]]:
    return group_by_worker([(part.batch.identity, part) for part in held])


def _canonical(items: list[tuple[Identity, Held]]) -> tuple[Identity, list[events.Event], list[Facts]]:
    """A worker's events in the one order that does not depend on arrival, its richest identity, facts of its lines.

    The order is by time, kind, producer, boot, sequence number of the batch, and place in it.
    """
    parts = sorted((part for _, part in items), key=_name)
    found = [event for part in parts for event in part.events]
    facts = [known for part in parts for known in part.lines or repeat(None, len(part.indices))]
    times = [event.time for event in found]
    order: Sequence[int] = range(len(times))
    if times != sorted(times):
        order = sorted(order, key=times.__getitem__)
    encoded = [(msgspec.json.encode(identity), identity) for identity, part in items if part.indices]
    _, richest = min(encoded, key=lambda one: (-len(one[0]), one[0]))
    return richest, [found[index] for index in order], [known for index in order if (known := facts[index])]


def _name(part: Held) -> tuple[str, str, str, int]:
    return part.kind, part.batch.producer, part.batch.boot, part.batch.seq
