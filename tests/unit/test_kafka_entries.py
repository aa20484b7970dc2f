"""Records of Kafka as log entries, whoever sent them, and its errors in plain words."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.log.kafka_client import Errors, make_entry, reason_of
from streams.log.kafka_settings import KafkaSettings

MS = 1_000_000
LATEST = 2**63 - 1


@pytest.mark.parametrize(
    ("header", "timestamp_ms", "time"),
    [
        (b"1795975830123456789", 5, 1795975830123456789),
        (b"0", 5, 0),
        (str(LATEST).encode(), 5, LATEST),
        (str(LATEST + 1).encode(), 5, 5 * MS),
        (b"9" * 19, 5, 5 * MS),
        (b"9" * 5000, 5, 5 * MS),
        (b"-1", 5, 5 * MS),
        (b"1e9", 5, 5 * MS),
        (b"\xff", 5, 5 * MS),
        (b"", 5, 5 * MS),
        (None, 5, 5 * MS),
        (None, -1, 0),
        (None, LATEST, LATEST),
        (b"no", 2**62, LATEST),
    ],
)
def test_the_send_time_is_the_header_if_it_is_one_and_else_kafkas(
    header: bytes | None, timestamp_ms: int, time: int
) -> None:
    entry = make_entry(3, b"k", b"v", [("schema", b"log"), ("time", header)], timestamp_ms)
    assert (entry.time, entry.headers) == (time, {"schema": "log"})


def test_what_is_not_there_is_empty_and_headers_are_text_whatever_they_hold() -> None:
    entry = make_entry(0, None, None, None, 1)
    assert (entry.key, entry.value, entry.headers) == (b"", b"", {})
    assert make_entry(0, b"k", b"v", [("schema", b"a"), ("schema", b"\xff")], 1).headers == {"schema": "\ufffd"}


@pytest.mark.parametrize(
    ("code", "said", "reason"),
    [
        (
            KafkaError._TRANSPORT,
            "b:1/bootstrap: Connect to ipv4#b:1 failed: Connection refused (after 0ms in state CONNECT)",
            "cannot reach Kafka at b:1: Connect to ipv4#b:1 failed: Connection refused",
        ),
        (
            KafkaError._TRANSPORT,
            "b:1/bootstrap: Connection refused (after 3ms in state CONNECT, 2 identical error(s) suppressed)",
            "cannot reach Kafka at b:1: Connection refused",
        ),
        (
            KafkaError._AUTHENTICATION,
            "sasl_ssl://b:1/bootstrap: SASL authentication error: no such user (after 5ms in state AUTH_REQ)",
            "Kafka at b:1 refuses the login: SASL authentication error: no such user",
        ),
        (
            KafkaError._SSL,
            "ssl://b:1/bootstrap: SSL handshake failed: certificate verify failed (after 9ms in state SSL_HANDSHAKE)",
            "no TLS connection to Kafka at b:1: SSL handshake failed: certificate verify failed",
        ),
        (KafkaError.POLICY_VIOLATION, "too few replicas", "Kafka at b:1: too few replicas"),
    ],
)
def test_an_error_is_said_without_names_that_only_librdkafka_knows(code: int, said: str, reason: str) -> None:
    error = KafkaError(code, said)
    settings = KafkaSettings({"bootstrap.servers": "b:1"})
    assert reason_of(settings, error, Errors()) == reason_of(settings, KafkaException(error), Errors()) == reason


def test_what_was_heard_says_more_than_the_time_out_that_follows() -> None:
    errors = Errors()
    heard = (
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
        (KafkaError._TRANSPORT, "Connection refused"),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
    )
    for code, said in heard:
        errors(KafkaError(code, said))
    settings = KafkaSettings({"bootstrap.servers": "b:1"})
    after = KafkaError(KafkaError._TIMED_OUT, "Local: Timed out")
    assert reason_of(settings, after, errors) == "cannot reach Kafka at b:1: Connection refused"
    errors(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    errors(KafkaError(KafkaError._TRANSPORT, "Disconnected"))
    assert reason_of(settings, after, errors) == "Kafka at b:1 refuses the login: wrong password"
