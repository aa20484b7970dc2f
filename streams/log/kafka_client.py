"""What all clients of confluent-kafka share: settings, errors in plain words, records as log entries."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

from schemas.ports import Entry
from streams.log.kafka_settings import KafkaSettings, KafkaSettingsError

TIME_HEADER = "time"
"""Header with the send time of a record in nanoseconds."""

LAST_TIME = 2**63 - 1
"""The last time (ns) that records and tables can hold."""

WAIT_S = 10.0
"""How long a question to the cluster may go unanswered."""

DEFAULTS: dict[str, Any] = {
    "client.id": "rankwatch",
    # An outage ends when the cluster is back, not when a client that has waited longer and longer looks again.
    "reconnect.backoff.max.ms": 2_000,
    # It would keep what it logs in memory until somebody asks, which in an outage may be never.
    "log_level": 0,
}
"""What the user's settings may say otherwise."""

# What librdkafka logs it also reports as errors, which we put in words.
_SILENT = logging.getLogger("rankwatch.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

_CONSUMER_ONLY = ("group.instance.id", "auto.offset.reset", "session.timeout.ms", "heartbeat.interval.ms")
_LOGIN = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_UNREACHABLE = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)


_NO_TLS = re.compile("connecting to a PLAINTEXT|wrong version number|closed by peer .* in state SSL_HANDSHAKE")
"""What librdkafka says, one time this and one time that, of a port that does not speak TLS."""

_NOISE = re.compile(r"^\S*://\S+: |^\S+/bootstrap: | \(after .*\)$")

PASSING = (
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.REQUEST_TIMED_OUT,
)
"""The cluster or part of it is away for now."""

C = TypeVar("C")


class Errors:
    """Remembers what librdkafka last complained of, which says more than the time-out that follows."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Take in one complaint."""
        if self.last is None or _clarity(error) >= _clarity(self.last):
            self.last = error

    @property
    def final(self) -> bool:
        """Whether to wait longer is of no use."""
        return self.last is not None and self.last.code() in (*_LOGIN, KafkaError._SSL)

    def heard(self, poll: Callable[[float], object]) -> Errors:
        """After a question failed: lets the client say what it has to say of it."""
        for _ in range(5):
            poll(0.05)
        return self


def _clarity(error: KafkaError) -> int:
    return {KafkaError._ALL_BROKERS_DOWN: 0, KafkaError._TRANSPORT: 1}.get(error.code(), 2)


def _plain(error: KafkaError) -> str:
    """What librdkafka says, without its own names for connections and states."""
    return _NOISE.sub("", error.str())


def made(client: type[C], settings: KafkaSettings, errors: Errors, **own: Any) -> C:
    """A client of confluent-kafka; our settings win over the user's, correctness hangs on them.

    Raises KafkaSettingsError for a setting that librdkafka does not take.
    """
    settings.check_files()
    consumes = "group.id" in own
    given = {name: value for name, value in settings.properties.items() if consumes or name not in _CONSUMER_ONLY}
    try:
        return client({**DEFAULTS, **given, **own, "error_cb": errors, "logger": _SILENT})  # type: ignore[call-arg]
    except KafkaException as error:
        raise KafkaSettingsError(f"Kafka settings: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:
        raise KafkaSettingsError(f"Kafka settings: {error}") from None


def entry_of(message: Message) -> Entry:
    """A consumed record as a log entry; one of a foreign producer was sent at Kafka's timestamp."""
    raw: Any = message
    return make_entry(raw.offset(), raw.key(), raw.value(), raw.headers(), raw.timestamp()[1])


def make_entry(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] | None,
    timestamp_ms: int,
) -> Entry:
    """A log entry of what a Kafka client gives; the send time is a header of ours where it is there."""
    said = {name: (value or b"").decode("utf-8", "replace") for name, value in headers or ()}
    sent = said.pop(TIME_HEADER, "")
    # A number that no clock shows is no time; Kafka's own timestamp then counts, which is the sender's as well.
    time = int(sent) if sent.isdecimal() and len(sent) <= 19 else LAST_TIME + 1
    if time > LAST_TIME:
        time = min(max(timestamp_ms, 0) * 1_000_000, LAST_TIME)
    return Entry(offset, key or b"", value or b"", said, time)


def reason_of(settings: KafkaSettings, error: KafkaException | KafkaError, errors: Errors) -> str:
    """What went wrong, in one line."""
    inner = error.args[0] if isinstance(error, KafkaException) else error
    said = errors.last or inner
    place = settings.bootstrap
    if doubt := _doubt_of_tls(settings, said):
        return f"cannot reach Kafka at {place}: {doubt}; see security.protocol"
    if said.code() in _LOGIN:
        return f"Kafka at {place} refuses the login: {_plain(said)}"
    if said.code() == KafkaError._SSL:
        return f"no TLS connection to Kafka at {place}: {_plain(said)}"
    if inner.code() in _UNREACHABLE:
        return f"cannot reach Kafka at {place}: {_plain(said)}"
    return f"Kafka at {place}: {_plain(inner)}"


def _doubt_of_tls(settings: KafkaSettings, said: KafkaError) -> str:
    """Whether client and port seem to disagree about TLS; else empty."""
    if settings.get("security.protocol").endswith("ssl"):
        return "the port seems not to speak TLS" if _NO_TLS.search(said.str()) else ""
    # A connection that cannot be made is said before; one that is made and closed at once brings about only this.
    closed = said.code() == KafkaError._ALL_BROKERS_DOWN
    return "it closes connections at once, as a port does that speaks TLS" if closed else ""
