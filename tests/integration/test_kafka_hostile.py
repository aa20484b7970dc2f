"""Records that no producer of ours would send: each becomes a dead letter, and changes nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_admin import altered
from kafka_inside import in_memory, stored
from kafka_pipeline import Pipeline, folded, pipeline
from kafka_rows import shown_at
from streams_support import JOBS, RESULTS, lines, records, said

from producers.recording import Recording
from schemas.codec import encode, headers
from schemas.ports import TooLargeError
from schemas.topics import MIB
from streams.log.kafka_client import LAST_TIME
from streams.log.partition import partition_of

pytestmark = pytest.mark.xdist_group("kafka")
PARTITIONS = 2
LETTERS = "dead-letters"


class Foreign:
    """Another client, which partitions by CRC32 as librdkafka does by itself."""

    def __init__(self, live: Pipeline) -> None:
        self._live = live
        self._producer = Producer({"bootstrap.servers": live.settings.bootstrap, "message.max.bytes": 20 * MIB})

    def send(self, topic: str, key: bytes | None, value: bytes | None, said: Any, partition: int = -1) -> None:
        name = self._live.log.name_of(topic)
        self._producer.produce(name, value, key, partition, headers=list(said.items()) if said else None)

    def flush(self) -> None:
        assert self._producer.flush(10) == 0


def newer(second: float) -> bytes:
    """A batch as a later version may write it: with fields that nobody here knows, at every depth."""
    batch = json.loads(encode(lines([second], job="later", text="from the future", producer="later")))
    batch["identity"]["planet"] = "earth"
    batch["events"][0]["mood"] = {"of": ["the", "day"]}
    return json.dumps(batch | {"compression": None}).encode()


def send_everything(live: Pipeline) -> None:
    """One of each kind, into both partitions of the logs."""
    log = headers("log")
    foreign = Foreign(live)
    for partition in range(PARTITIONS):
        for value, said_of_it in (
            (b"\x00\xff not json", log),
            (b'{"producer": "p", "boot": "b", "seq": 1e99}', log),
            (b'{"producer":' * 200_000, log),
            (encode(lines([3.0])), headers("stack")),
            (encode(lines([3.0])), {"schema": "unknown", "version": "1"}),
            (encode(lines([3.0])), None),
            (encode(lines([3.0])), {"schema": None, "version": b"\xff"}),
            (b"", log),
            (None, log),
            (None, None),
            (b"{", log | {"time": "9" * 19}),
            (b"{", log | {"time": str(LAST_TIME)}),
            (b"\x00" * 5_000_000, log),
        ):
            for key in (b"job|0", None, b"\xff\xfe"):
                foreign.send("logs", key, value, said_of_it, partition)
    for rank in range(20):
        one = lines([4.0], job="crc", rank=rank, producer=f"crc{rank}")
        foreign.send("logs", one.identity.key.encode(), encode(one), log)
    later = lines([5.0], job="later").identity.key.encode()
    foreign.send("logs", later, newer(5.0), log | {"version": "7"}, partition_of(later, PARTITIONS))
    large = lines([6.0], job="large", text="y" * 5_000_000, producer="large")
    key = large.identity.key.encode()
    foreign.send("logs", key, encode(large), log, partition_of(key, PARTITIONS))
    foreign.flush()


def check_letters(live: Pipeline) -> None:
    """Each says where it came from, and has the bytes that lie there."""
    letters = records(live.log, LETTERS)
    origins = Counter((one.topic, one.partition, one.offset) for one in letters)
    assert len(origins) >= 13 * 3 * PARTITIONS
    for letter in letters:
        if letter.partition >= 0:
            (entry,) = live.log.read(letter.topic, letter.partition, letter.offset, 1)
            assert (letter.key, letter.value, letter.headers) == (entry.key, entry.value, dict(entry.headers))
    wrong = [one for one in letters if "does not partition by murmur2" in one.reason]
    right = [rank for rank in range(20) if ("crc", rank) in workers(live)]
    assert len(wrong) + len(right) == 20 and wrong and right


def workers(live: Pipeline) -> set[tuple[str, int | None]]:
    return {(window.identity.job, window.identity.rank) for window in records(live.log, "windows")}


def test_what_cannot_be_used_is_kept_apart_and_changes_nothing_else(kafka: str, tmp_path: Path) -> None:
    recording: Recording = JOBS["killed"]()
    with pipeline(kafka, tmp_path, partitions=PARTITIONS) as live:
        altered(live, "logs", {"max.message.bytes": str(6 * MIB)})
        slices = live.publish_in(3, recording)
        send_everything(live)
        next(slices)
        live.start("worker", "--most-poison", "0")
        assert sum(1 for _ in slices) == 2
        memory = in_memory(live)
        expected = folded(said(memory, (*RESULTS, LETTERS)))
        assert expected["incidents"] and ("later", 0) in {
            (window.identity.job, window.identity.rank) for window in records(memory, "windows")
        }
        # In memory nothing is too large for its topic.
        large = [value for value in said(live.log, ["stamped.logs"])["stamped.logs"] if len(value) > MIB]
        assert large == []
        live.until_said({topic: expected[topic] for topic in RESULTS})
        live.until_said({LETTERS: expected[LETTERS]})
        check_letters(live)
        assert any(b"from the future" in value for value in said(live.log, ["stamped.logs"])["stamped.logs"])
        sink = stored(live, f"chdb://{tmp_path / 'db'}")
        rows = shown_at(f"chdb://{tmp_path / 'db'}")
        assert sink.retries == 0
        assert len(rows["dead_letters"]) == len(set(rows["dead_letters"])) >= len(expected[LETTERS])


def test_a_record_of_five_megabytes_is_refused_by_a_topic_as_we_make_it(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=PARTITIONS) as live:
        large = encode(lines([6.0], text="y" * 5_000_000))
        with pytest.raises(TooLargeError, match=r"a record of 5000\d+ bytes is more than topic logs takes"):
            live.log.append("logs", b"job|0", large, headers("log"), 1)
        live.log.append("logs", b"job|0", b"{}", headers("log"), 1)
        live.log.flush()
        assert sum(live.log.end("logs", n) for n in range(PARTITIONS)) == 1


def test_more_poison_in_a_row_than_allowed_stops_a_worker_and_nothing_is_lost(kafka: str, tmp_path: Path) -> None:
    recording = JOBS["killed"]()
    poison = [random.Random(number).randbytes(200) for number in range(30)]
    with pipeline(kafka, tmp_path, partitions=PARTITIONS) as live:
        slices = live.publish_in(2, recording)
        next(slices)
        for value in poison:
            live.log.append("metrics", b"k", value, headers("metric"), 7, 1)
        live.log.flush()
        first = live.start("worker", "--most-poison", "25")
        assert sum(1 for _ in slices) == 1
        assert first.wait(60) == 1
        reason = live.said_by(first).splitlines()[-1]
        assert "26 records in a row of topic metrics, partition 1 cannot be read; the last, at offset " in reason
        assert "Traceback" not in live.said_by(first)
        live.start("worker", "--most-poison", "30")
        expected = folded(said(in_memory(live), (*RESULTS, LETTERS)))
        assert live.until_said(expected) == expected
        assert sorted({one.value for one in records(live.log, LETTERS)}) == sorted(poison)
