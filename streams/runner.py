"""One stage of one partition at a log: reads on, appends what follows, writes down its state.

The order at a window boundary: emissions safe, snapshot safe, and only then may anything before it be let go of. So a
crash at any point repeats at most what folds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from schemas.codec import encode, headers, kind_of
from schemas.ports import Entry, Log, TooLargeError
from schemas.results import DeadLetter, Snapshot
from schemas.topics import TOPICS
from streams.config import StreamConfig
from streams.counts import Counts
from streams.snapshots import SnapshotError, SnapshotStore
from streams.stages.dead_letters import dead_letter_output, too_large, unsaved
from streams.stages.outputs import Output
from streams.stages.standing import Standing

Place = tuple[str, int]
"""Topic and partition."""


READ_LIMIT = 256
"""Entries read at once."""


SAVED_AFTER = 60
"""Windows closed in one go after which the state is written down all the same."""


class PoisonError(Exception):
    """Too many records in a row that cannot be read; whoever writes them has to be looked at first."""


class Stage(Protocol):
    """What a runner needs of a stage."""

    name: str
    partition: int
    inputs: tuple[Place, ...]

    @property
    def standing(self) -> Standing: ...  # noqa: D102
    def next_offset(self, topic: str, partition: int) -> int: ...  # noqa: D102
    def behind(self, topic: str) -> int: ...  # noqa: D102
    def bound(self, held_bytes: int) -> None: ...  # noqa: D102
    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]: ...  # noqa: D102
    def close(self) -> list[Output] | None: ...  # noqa: D102
    def written(self) -> Snapshot: ...  # noqa: D102
    def restore(self, raw: msgspec.Raw) -> None: ...  # noqa: D102


class Runner:
    """Runs ``stage`` at ``log``. With a store it begins from its snapshot and writes new ones.

    ``most_poison``: more unreadable records in a row of one partition than these stop it (PoisonError); 0 for no limit.
    Raises SnapshotError for a snapshot that cannot be taken up.
    """

    def __init__(
        self,
        stage: Stage,
        log: Log,
        config: StreamConfig,
        *,
        store: SnapshotStore | None = None,
        most_poison: int = 0,
    ) -> None:
        self.stage = stage
        self.counts = Counts()
        self._log = log
        self._store = store
        self._most_poison = most_poison
        self._poison: dict[Place, int] = {}
        snapshot = store.load(stage.name, stage.partition) if store else None
        if snapshot is not None:
            _restore(stage, snapshot, config)

    def take(self, topic: str, partition: int, entries: Iterable[Entry]) -> None:
        """Take in entries in the order of their offsets; those that were taken in already are passed over.

        A transport may leave entries out while its group is rearranged: they are read from the log itself.
        """
        for entry in entries:
            if entry.offset > self.stage.next_offset(topic, partition):
                self._fill(topic, partition, entry.offset)
            if entry.offset >= self.stage.next_offset(topic, partition):
                self._take_one(topic, partition, entry)

    def _fill(self, topic: str, partition: int, until: int) -> None:
        """Take in what the log still holds of the entries before ``until``."""
        while (expected := self.stage.next_offset(topic, partition)) < until:
            missed = [e for e in self._log.read(topic, partition, expected, READ_LIMIT) if expected <= e.offset < until]
            if not missed:
                self.counts.gone += until - expected if expected else 0
                return
            # Before a stage's first entry nothing was expected.
            self.counts.gone += missed[0].offset - expected if expected else 0
            for entry in missed:
                self._take_one(topic, partition, entry)

    def _take_one(self, topic: str, partition: int, entry: Entry) -> None:
        self.counts.entry(len(entry.value))
        outputs = self.stage.on_entry(topic, partition, entry)
        self._emit(outputs)
        self._watch_poison((topic, partition), entry, outputs)

    def close(self) -> bool:
        """Close every window that can be closed, writing down the state at each boundary; false if there was none."""
        closed = False
        while self._close_one():
            self.save()
            closed = True
        return closed

    def close_all(self) -> bool:
        """Close every window that can be closed; false if there was none.

        ``save`` writes down the state then; of very many windows that is done now and then between.
        """
        closed = 0
        while self._close_one():
            closed += 1
            if closed % SAVED_AFTER == 0:
                # Whoever is stopped in the middle of a long backlog must not stand where it began.
                self.save()
        return closed > 0

    def _close_one(self) -> bool:
        outputs = self.stage.close()
        if outputs is None:
            return False
        self.counts.windows += 1
        self._emit(outputs)
        return True

    def save(self) -> dict[str, int] | None:
        """Write down the state at the window boundary just closed, once all that was said before is safe.

        Returns the offsets up to which everything is safe, by ``topic|partition``; null without a store, and where the
        state is too large for it: the work goes on then, and the state before it, with its offsets, stays.
        """
        if self._store is None:
            return None
        self._log.flush()
        snapshot = self.stage.written()
        try:
            self._store.save(snapshot)
        except TooLargeError as error:
            self._emit([dead_letter_output(unsaved(snapshot, str(error)), snapshot.end)])
            return None
        return snapshot.offsets

    def _watch_poison(self, place: Place, entry: Entry, outputs: list[Output]) -> None:
        letters = [output.record for output in outputs if isinstance(output.record, DeadLetter)]
        if not letters and entry.headers.get("schema") == "tick":
            # Ticks come from others than the records between them: a good one says nothing of these.
            return
        self._poison[place] = self._poison.get(place, 0) + 1 if letters else 0
        if self._most_poison and self._poison[place] > self._most_poison:
            topic, partition = place
            self._log.flush()  # whoever looks for the reason finds them in their topic
            raise PoisonError(
                f"{self._poison[place]} records in a row of topic {topic}, partition {partition} cannot be read; "
                f"the last, at offset {entry.offset}: {letters[0].reason}. They lie in topic dead-letters and table "
                "dead_letters; look at whoever writes them, or go past them with --most-poison 0"
            )

    def _emit(self, outputs: list[Output]) -> None:
        for output in outputs:
            self.counts.output(output.record)
            try:
                self._append(output)
            except TooLargeError as error:
                letter = too_large(output, self.stage.name, str(error))
                self.counts.output(letter)
                self._append(dead_letter_output(letter, output.time))

    def _append(self, output: Output) -> None:
        key, value = output.key.encode(), output.value or encode(output.record)
        if not TOPICS[output.topic].takes(len(key) + len(value)):
            # Asked here too, so that a log that takes anything says the same as one with bounds.
            raise TooLargeError(f"a record of {len(value)} bytes is more than topic {output.topic} takes")
        self._log.append(output.topic, key, value, headers(kind_of(output.record)), output.time, output.partition)


def _restore(stage: Stage, snapshot: Snapshot, config: StreamConfig) -> None:
    if snapshot.config != config.state_hash:
        raise SnapshotError(
            f"the snapshot of {stage.name} {stage.partition} was written under another configuration or other masks; "
            "`rankwatch topics forget` lets the stages begin anew"
        )
    try:
        stage.restore(snapshot.state)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SnapshotError(f"the snapshot of {stage.name} {stage.partition} cannot be read: {error}") from None
