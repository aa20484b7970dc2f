"""The log in a Kafka cluster, over confluent-kafka.

Records carry their send time in nanoseconds in a header of ours: Kafka's own timestamps are the broker's or the
client's business, count in milliseconds, and decide how long a record is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from schemas.ports import Entry, LogError, TooLargeError
from schemas.topics import TOPICS
from streams.log.kafka_client import WAIT_S, Errors, entry_of, made, reason_of
from streams.log.kafka_producer import PRODUCER, described
from streams.log.kafka_settings import KafkaSettings

READ_WAIT_S = 30.0
"""How long a read may bring nothing before it is an error."""

PAUSE_S = 0.5
"""How long to wait before a question is asked again whose partition is just moving."""

MOVING = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""A partition is without a leader for now, as while a broker restarts."""

POLL_S = 0.02
"""How long to wait for more at once: even the news that a partition has ended comes only then."""


class KafkaLog:
    """All topics of the table under the deployment's prefix; appends are safe after ``flush``. For one thread.

    Raises KafkaSettingsError for settings that librdkafka does not know.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._errors = Errors()
        self._failed: KafkaError | None = None
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._counts: dict[str, int] = {}

    def name_of(self, topic: str) -> str:
        """The topic's name in the cluster. Raises KeyError for one that is not in the table."""
        return self.settings.full(TOPICS[topic].name)

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has. Raises LogError if it is missing or the cluster does not answer."""
        name = self.name_of(topic)
        if not self._counts:
            self.partition_counts()
        if name not in self._counts:
            raise LogError(f"topic {name} is missing; {self.settings.command('topics create')} makes it")
        return self._counts[name]

    def partition_counts(self) -> dict[str, int]:
        """Partition counts of all topics of the cluster, by their full names. Raises LogError."""
        reader = self._reader()
        for left in reversed(range(int(WAIT_S))):
            try:
                topics = reader.list_topics(timeout=1.0).topics
                break
            except KafkaException as error:
                self._errors.heard(reader.poll)
                if self._errors.final or not left:
                    raise LogError(reason_of(self.settings, error, self._errors)) from None
        self._errors.last = None
        self._counts = {name: len(topic.partitions) for name, topic in topics.items()}
        return self._counts

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> None:
        """Append to the key's partition, or to ``partition``; waits where too much is on its way already."""
        if not TOPICS[topic].takes(len(key) + len(value)):
            raise TooLargeError(f"a record of {len(value)} bytes is more than topic {topic} takes")
        self._raise_failure()
        producer = self._writer()
        while True:
            try:
                producer.produce(
                    self.name_of(topic),
                    value,
                    key,
                    -1 if partition is None else partition,
                    headers=described(headers, time),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._poll(producer, 0.1)
                self._raise_failure()
                continue
            except KafkaException as error:
                raise LogError(reason_of(self.settings, error, self._errors)) from None
            self._poll(producer, 0)
            return

    def _poll(self, producer: Producer, wait_s: float) -> None:
        try:
            producer.poll(wait_s)
        except KafkaException as error:
            # What ends an idempotent producer; whoever comes next begins from what is in the log.
            raise LogError(reason_of(self.settings, error, self._errors)) from None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise LogError(f"Kafka at {self.settings.bootstrap} did not take a record: {self._failed.str()}")

    def flush(self) -> None:
        """Wait until the cluster has all that was appended, however long; raises LogError for what it refused."""
        while self.unsent:
            self._flush(1.0)
            self._raise_failure()
        self._raise_failure()

    def _flush(self, wait_s: float) -> None:
        try:
            if self._producer is not None:
                self._producer.flush(wait_s)
        except SystemError:
            # Ctrl-C within it comes out of the client so.
            raise KeyboardInterrupt from None
        except KafkaException as error:
            raise LogError(reason_of(self.settings, error, self._errors)) from None

    @property
    def unsent(self) -> int:
        """Appended records that are not safe yet."""
        return len(self._producer) if self._producer is not None else 0

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on; fewer only at the end."""
        reader = self._reader()
        reader.assign([TopicPartition(self.name_of(topic), partition, offset)])
        try:
            return self._read(reader, f"{topic} {partition}", offset, limit)
        finally:
            # What nobody has asked for is not fetched.
            reader.unassign()

    def _read(self, reader: Consumer, place: str, offset: int, limit: int) -> list[Entry]:
        found: list[Entry] = []
        waited = 0.0
        while len(found) < limit:
            messages = reader.consume(min(500, limit - len(found)), POLL_S)
            waited = 0.0 if messages else waited + POLL_S
            for message in messages:
                error = message.error()
                if error is None:
                    entry = entry_of(message)
                    if entry.offset < offset:
                        # An offset beyond the end begins anew at the oldest entry.
                        return []
                    found.append(entry)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise LogError(reason_of(self.settings, error, self._errors))
            if waited > READ_WAIT_S:
                raise LogError(f"nothing of {place} from {offset} on for {READ_WAIT_S:.0f} s")
        return found

    def begin(self, topic: str, partition: int) -> int:
        """The offset of the oldest entry that is still kept."""
        return self._watermarks(topic, partition)[0]

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""
        return self._watermarks(topic, partition)[1]

    def _watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        place, reader = TopicPartition(self.name_of(topic), partition), self._reader()
        for left in reversed(range(int(WAIT_S / PAUSE_S))):
            try:
                low, high = reader.get_watermark_offsets(place, timeout=WAIT_S)
                break
            except KafkaException as error:
                if error.args[0].code() not in MOVING or not left:
                    raise LogError(reason_of(self.settings, error, self._errors)) from None
                reader.poll(PAUSE_S)
        return low, high

    def _writer(self) -> Producer:
        if self._producer is None:
            self._producer = made(Producer, self.settings, self._errors, **PRODUCER)
        return self._producer

    def _reader(self) -> Consumer:
        if self._consumer is None:
            self._consumer = made(
                Consumer,
                self.settings,
                self._errors,
                **{"group.id": f"{self.settings.prefix}reader", "enable.auto.commit": False},
                **{"enable.partition.eof": True, "auto.offset.reset": "earliest"},
                # Every question queues up behind a fetch that waits for entries, by default for half a second.
                **{"fetch.wait.max.ms": 10},
            )
        return self._consumer

    def close(self) -> None:
        """Let go of the cluster; what is not flushed may be lost."""
        if self._consumer is not None:
            self._consumer.close()
        if self._producer is not None:
            self._producer.flush(WAIT_S)
        self._consumer = self._producer = None
