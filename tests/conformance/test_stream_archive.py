"""The archive is a log like the one in memory, survives torn writes, and says where it is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streams_support import JOBS, RESULTS, lines, log_of, put, raw_of, run, said, written_log

from schemas.ports import Entry
from schemas.topics import TOPICS
from streams.log.archive import ArchiveError, ArchiveLog
from streams.log.memory import MemoryLog
from streams.log.partition import murmur2, partition_of

KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", KAFKA)
def test_keys_hash_as_in_kafka(key: bytes) -> None:
    assert murmur2(key) == KAFKA[key] % 2**32


@pytest.mark.parametrize("key", KAFKA)
def test_the_sign_bit_does_not_count_for_the_partition(key: bytes) -> None:
    assert partition_of(key, 7) == (KAFKA[key] & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("partitions", [1, 2, 12])
def test_every_log_puts_a_key_into_the_same_partition(tmp_path: Path, partitions: int) -> None:
    memory, archive = MemoryLog(partitions), ArchiveLog(tmp_path, partitions)
    for rank in range(20):
        assert put(memory, lines([1], rank=rank)) == put(archive, lines([1], rank=rank))


def entries(log: Any) -> dict[tuple[str, int], list[Entry]]:
    return {
        (topic, number): list(log.read(topic, number, 0, log.end(topic, number)))
        for topic in TOPICS
        for number in range(log.partitions(topic))
    }


def test_an_archive_gives_the_same_results_as_memory(tmp_path: Path) -> None:
    memory = written_log(JOBS["two at once"]())
    archive = log_of(raw_of(memory), ArchiveLog(tmp_path, 2))
    run(memory)
    run(archive)
    assert said(archive) == said(memory)
    assert said(memory, RESULTS)["incidents"]


def test_an_archive_that_is_opened_again_is_the_same_and_goes_on(tmp_path: Path) -> None:
    memory = written_log(JOBS["spanning"]())
    log_of(raw_of(memory), ArchiveLog(tmp_path, 2))
    run(memory)
    run(ArchiveLog(tmp_path))
    assert entries(ArchiveLog(tmp_path)) == entries(memory)
    run(ArchiveLog(tmp_path))
    again = ArchiveLog(tmp_path)
    assert {k: sorted(set(v)) for k, v in said(again).items()} == {k: sorted(set(v)) for k, v in said(memory).items()}


def test_reading_gives_what_lies_between_offset_and_limit(tmp_path: Path) -> None:
    for log in (MemoryLog(1), ArchiveLog(tmp_path, 1)):
        for seq in range(5):
            put(log, lines([1], seq=seq))
        assert [entry.offset for entry in log.read("logs", 0, 1, 3)] == [1, 2, 3]
        assert [entry.offset for entry in log.read("logs", 0, 4, 100)] == [4]
        assert list(log.read("logs", 0, 5, 10)) == []
        assert log.end("logs", 0) == 5
        with pytest.raises(KeyError):
            log.partitions("no such topic")


def three(root: Path) -> tuple[Path, bytes, int]:
    """An archive of three equal frames in one file: the file, its bytes and a frame's length."""
    log = ArchiveLog(root, 1)
    for seq in range(3):
        put(log, lines([1], seq=seq))
    file = root / "logs" / "0.log"
    return file, file.read_bytes(), len(file.read_bytes()) // 3


def test_a_torn_last_frame_is_cut_off_wherever_it_was_torn(tmp_path: Path) -> None:
    file, whole, frame = three(tmp_path)
    for length in range(2 * frame, 3 * frame):
        file.write_bytes(whole[:length])
        log = ArchiveLog(tmp_path)
        assert log.end("logs", 0) == 2
        assert put(log, lines([1], seq=2)) == (0, 2)
        assert file.read_bytes() == whole
        assert len(ArchiveLog(tmp_path).read("logs", 0, 0, 10)) == 3


def test_a_tail_of_zeros_is_cut_off(tmp_path: Path) -> None:
    """What a file system leaves after a power failure: the length is there, the bytes are not."""
    file, whole, _ = three(tmp_path)
    file.write_bytes(whole + bytes(64))
    log = ArchiveLog(tmp_path)
    assert log.end("logs", 0) == 3
    assert len(log.read("logs", 0, 0, 10)) == 3


def test_damage_of_a_body_in_the_middle_is_an_error(tmp_path: Path) -> None:
    file, whole, frame = three(tmp_path)
    for place in range(frame + 4, 2 * frame):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(ArchiveError, match="damaged"):
            ArchiveLog(tmp_path)


@pytest.mark.parametrize("byte", range(4))
def test_damage_of_a_length_in_the_middle_is_an_error(tmp_path: Path, byte: int) -> None:
    """Taken for a torn end, it would make the next writer cut off every frame behind it."""
    file, whole, frame = three(tmp_path)
    place = frame + byte
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    with pytest.raises(ArchiveError):
        ArchiveLog(tmp_path)


def test_what_is_no_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="no archive"):
        ArchiveLog(tmp_path)


def test_another_partition_count_is_an_error(tmp_path: Path) -> None:
    ArchiveLog(tmp_path, 2)
    with pytest.raises(ArchiveError, match="has 2 partitions"):
        ArchiveLog(tmp_path, 3)
    assert ArchiveLog(tmp_path, 2).partitions("logs") == 2


@pytest.mark.parametrize("mark", ["", "two\n", "0\n", "-1\n"])
def test_a_partition_count_that_cannot_be_is_an_error(tmp_path: Path, mark: str) -> None:
    (tmp_path / "partitions").write_text(mark)
    with pytest.raises(ArchiveError):
        ArchiveLog(tmp_path)


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_log_needs_a_partition(tmp_path: Path, partitions: int) -> None:
    with pytest.raises(ValueError, match="partition"):
        MemoryLog(partitions)
    with pytest.raises(ValueError, match="partition"):
        ArchiveLog(tmp_path, partitions)
