"""Records of Kafka as log entries, whoever sent them."""

from __future__ import annotations

import pytest

from streams.log.kafka_client import make_entry

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
