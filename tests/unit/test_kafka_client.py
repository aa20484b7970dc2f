"""Errors of librdkafka in words that say what to look at."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from streams.log.kafka_client import Errors, reason_of
from streams.log.kafka_settings import KafkaSettings

TIMED_OUT = KafkaError(KafkaError._TRANSPORT, "Failed to get metadata: Local: Broker transport failure")


def reason(protocol: str, code: int, said: str) -> str:
    errors = Errors()
    errors(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    errors(KafkaError(code, said))
    settings = KafkaSettings({"bootstrap.servers": "b:1", "security.protocol": protocol})
    return reason_of(settings, TIMED_OUT, errors)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            KafkaError._TRANSPORT,
            "ssl://b:1/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: "
            "connecting to a PLAINTEXT broker listener? (after 13ms in state SSL_HANDSHAKE)",
        ),
        (
            KafkaError._TRANSPORT,
            "ssl://b:1/bootstrap: Disconnected: SSL connection closed by peer (after 1ms in state SSL_HANDSHAKE)",
        ),
        (
            KafkaError._SSL,
            "ssl://b:1/bootstrap: SSL handshake failed: error:0A00010B:SSL routines::wrong version number "
            "(after 0ms in state SSL_HANDSHAKE)",
        ),
    ],
)
@pytest.mark.parametrize("protocol", ["ssl", "sasl_ssl"])
def test_a_port_that_does_not_speak_tls_is_said_to_with_the_setting(protocol: str, code: int, said: str) -> None:
    expected = "cannot reach Kafka at b:1: the port seems not to speak TLS; see security.protocol"
    assert reason(protocol, code, said) == expected


@pytest.mark.parametrize("protocol", ["plaintext", "sasl_plaintext"])
def test_a_connection_that_is_made_and_closed_at_once_is_perhaps_one_to_a_port_with_tls(protocol: str) -> None:
    expected = "cannot reach Kafka at b:1: it closes connections at once, as a port does that speaks TLS; see security"
    assert reason(protocol, KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down").startswith(expected)


@pytest.mark.parametrize("protocol", ["plaintext", "ssl"])
def test_a_port_where_nobody_listens_is_no_matter_of_tls(protocol: str) -> None:
    said = "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)"
    expected = "cannot reach Kafka at b:1: Connect to ipv4#127.0.0.1:1 failed: Connection refused"
    assert reason(protocol, KafkaError._TRANSPORT, said) == expected


def test_an_authority_that_is_not_known_stays_a_matter_of_certificates() -> None:
    said = "ssl://b:1/bootstrap: SSL handshake failed: certificate verify failed (after 9ms in state SSL_HANDSHAKE)"
    assert reason("ssl", KafkaError._SSL, said).startswith("no TLS connection to Kafka at b:1: SSL handshake failed: ")
