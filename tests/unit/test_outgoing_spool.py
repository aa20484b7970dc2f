"""The disk spool: order, bounds, what a killed process leaves, damage, and disks that refuse."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from outgoing_support import SMALL, die, drain, dropped, files, record, spool_at

from producers.outgoing.counters import Counters
from producers.outgoing.folder import SpoolError
from producers.outgoing.frames import HEADER, MARK, frame
from producers.outgoing.spool import Spool


def fill(spool: Spool, count: int, size: int = 500, start: int = 0) -> list[bytes]:
    values = [b"%05d" % n + b"v" * size for n in range(start, start + count)]
    assert all(spool.append(record(value, events=2)) for value in values)
    return values


def on_disk(root: Path) -> int:
    return sum(path.stat().st_size for path in files(root))


def test_records_come_out_as_they_went_in(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    sent = record(b"\xff\x00 bytes", lane="j|5", topic="stacks", events=3)
    assert not spool.unread and spool.append(sent) and spool.unread
    stored = spool.read(None)
    assert stored is not None and stored.record == sent
    assert not spool.unread and spool.read(None) is None


def test_reading_follows_writing_over_files_and_acknowledged_files_go(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    seen = []
    for n in range(20):
        values = fill(spool, 10, start=10 * n)
        seen += drain(spool)
        assert seen[-10:] == values
    assert len(files(tmp_path)) == 1 and spool.bytes == on_disk(tmp_path) <= SMALL.segment_bytes
    assert len(seen) == 200


def test_a_record_too_long_for_the_room_waits(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    fill(spool, 1, size=3_000)
    assert spool.read(2_000) is None and spool.unread
    assert spool.read(4_000) is not None


def test_a_file_stays_until_all_in_it_is_safe_in_any_order(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    fill(spool, 40)
    stored = [found for _ in range(40) if (found := spool.read(None))]
    first = [s for s in stored if s.place.segment == 1]
    assert 10 < len(first) < 40
    for found in reversed(first[1:]):
        spool.ack(found.place)
    assert files(tmp_path)[0].name == "000000000000001.spool"
    spool.ack(first[0].place)
    assert files(tmp_path)[0].name == "000000000000002.spool"


def test_when_full_the_oldest_file_goes_and_its_records_are_counted(tmp_path: Path) -> None:
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    values = []
    for n in range(300):
        values += fill(spool, 1, start=n)
        assert spool.bytes == on_disk(tmp_path) <= SMALL.spool_bytes
    left = drain(spool)
    assert left == values[-len(left) :] and len(left) > 80
    assert dropped(counters) == {"spool full": (300 - len(left), 2 * (300 - len(left)))}


def test_what_is_safe_or_outstanding_counts_as_such_when_its_file_goes(tmp_path: Path) -> None:
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    fill(spool, 10)
    stored = [found for _ in range(7) if (found := spool.read(None))]
    for found in stored[:4]:
        spool.ack(found.place)
    values = fill(spool, 130, start=10)
    left = drain(spool)
    assert left == values[-len(left) :]
    assert dropped(counters) == {"spool full": (140 - 4 - len(left), 2 * (140 - 4 - len(left)))}
    spool.ack(stored[5].place)
    assert dropped(counters) == {"spool full": (140 - 4 - len(left), 2 * (140 - 4 - len(left)))}


def test_a_file_left_by_an_earlier_boot_is_counted_when_it_is_dropped(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    fill(before, 15)
    [before.ack(found.place) for _ in range(5) if (found := before.read(None))]
    before.save()
    die(before)
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    fill(spool, 140, start=15)
    left = drain(spool)
    assert counters.dropped_records["spool full"] == 10 + 140 - len(left)  # type: ignore[index]


def test_a_new_boot_reads_first_what_the_old_one_left(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    old = fill(before, 50)
    die(before)
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    new = fill(spool, 5, start=50)
    assert drain(spool) == old + new
    assert counters.recovered_records == 50 and dropped(counters) == {}


@pytest.mark.parametrize("end", ["kill", "close"])
def test_what_was_acknowledged_is_not_read_again(tmp_path: Path, end: str) -> None:
    before = spool_at(tmp_path)
    old = fill(before, 50)
    stored = [found for _ in range(20) if (found := before.read(None))]
    for found in stored[:13] + stored[14:]:
        before.ack(found.place)
    before.save()
    die(before) if end == "kill" else before.close()
    assert drain(spool_at(tmp_path)) == old[13:]


@pytest.mark.parametrize("damage", ["gone", "short", "wrong", "long"])
def test_a_position_that_is_lost_means_reading_again(tmp_path: Path, damage: str) -> None:
    before = spool_at(tmp_path)
    old = fill(before, 10)
    [before.ack(found.place) for _ in range(3) if (found := before.read(None))]
    before.save()
    die(before)
    path = tmp_path / "position"
    data = path.read_bytes()
    made = {"gone": b"", "short": data[:-1], "wrong": bytes([data[0] ^ 1]) + data[1:], "long": data + b"\0"}
    path.write_bytes(made[damage])
    spool = spool_at(tmp_path)
    assert drain(spool) == old
    new = fill(spool, 3, start=10)
    assert drain(spool) == new


def test_new_files_are_never_taken_for_safe_ones(tmp_path: Path) -> None:
    for n in range(5):
        spool = spool_at(tmp_path)
        fill(spool, 30, start=100 * n)
        drain(spool)
        spool.close() if n % 2 else die(spool)
        spool = spool_at(tmp_path)
        values = fill(spool, 3, start=100 * n + 50)
        die(spool)
        spool = spool_at(tmp_path)
        assert drain(spool)[-3:] == values
        spool.close()


def test_closing_a_spool_that_is_all_safe_leaves_no_files(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    fill(spool, 5)
    drain(spool)
    spool.close()
    assert files(tmp_path) == []
    assert not spool.append(record("late")) and spool.append_taken(record("late")) is None


def test_a_torn_end_loses_only_what_was_torn_at_any_byte(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 3, size=20)
    die(before)
    [path] = files(tmp_path)
    whole = path.read_bytes()
    length = len(whole) // 3
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        (tmp_path / "position").unlink(missing_ok=True)
        counters = Counters()
        spool = spool_at(tmp_path, counters=counters)
        new = fill(spool, 1, start=9)
        assert drain(spool) == values[: cut // length] + new
        assert dropped(counters) == ({"damaged": (1, 1)} if cut % length else {})
        spool.close()


def test_zeros_behind_the_end_as_after_a_power_cut_count_as_one(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 3)
    die(before)
    [path] = files(tmp_path)
    path.write_bytes(path.read_bytes() + bytes(4096))
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values
    assert dropped(counters) == {"damaged": (1, 1)}


def test_damage_at_any_byte_loses_only_the_record_it_hits_and_is_counted(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 4, size=10)
    die(before)
    [path] = files(tmp_path)
    whole = path.read_bytes()
    length = len(whole) // 4
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        (tmp_path / "position").unlink(missing_ok=True)
        counters = Counters()
        spool = spool_at(tmp_path, counters=counters)
        hit = at // length
        assert drain(spool) == values[:hit] + values[hit + 1 :]
        # How many events the last one held is known to itself only.
        assert dropped(counters) == {"damaged": (1, 2 if hit < 3 else 1)}
        spool.close()
        path.unlink(missing_ok=True)


def test_a_hole_over_many_records_counts_all_of_them(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 20)
    die(before)
    data = bytearray(files(tmp_path)[0].read_bytes())
    length = len(data) // 20
    data[5 * length + 7 : 12 * length + 3] = b"\xaa" * (7 * length - 4)
    data[16 * length + 40] ^= 1
    files(tmp_path)[0].write_bytes(bytes(data))
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values[:5] + values[13:16] + values[17:]
    assert dropped(counters) == {"damaged": (9, 18)}


def test_frames_that_stand_there_a_second_time_are_passed_over(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 4)
    die(before)
    data = files(tmp_path)[0].read_bytes()
    length = len(data) // 4
    files(tmp_path)[0].write_bytes(data[: 3 * length] + data[length : 3 * length] + b"?" + data[: 4 * length])
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values
    assert dropped(counters) == {}


def test_a_mark_inside_a_record_does_not_pass_for_a_frame(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    assert before.append(record(MARK * 50 + frame(b"far ahead", 1_000_000, 5)[:-1] + bytes(HEADER)))
    values = fill(before, 2)
    die(before)
    path = files(tmp_path)[0]
    path.write_bytes(b"\0" + path.read_bytes()[1:])
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values
    assert dropped(counters) == {"damaged": (1, 1)}


def test_frames_that_are_sound_but_hold_no_record_are_damage(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    values = fill(before, 1)
    die(before)
    [path] = files(tmp_path)
    path.write_bytes(path.read_bytes() + frame(b"\x93\x01\x02\x03", 1, 2))
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values
    assert dropped(counters) == {"damaged": (1, 1)}


def test_a_file_that_vanishes_is_counted(tmp_path: Path) -> None:
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    values = fill(spool, 30)
    first = files(tmp_path)[0]
    spool.read(None)
    files(tmp_path)[1].unlink()
    left = drain(spool)
    assert first.exists() and len(left) < 29
    assert counters.dropped_records["damaged"] == len(values) - 1 - len(left)  # type: ignore[index]
    assert counters.dropped_events["damaged"] == 2 * (len(values) - 1 - len(left))  # type: ignore[index]


def test_files_that_are_none_of_ours_are_left_alone(tmp_path: Path) -> None:
    names = ("notes.txt", "1.spool", "0000000000000001.spool", "00000000000000x.spool")
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 100)
    (tmp_path / "000000000000009.spool").mkdir()
    spool = spool_at(tmp_path)
    values = fill(spool, 3)
    assert drain(spool) == values
    spool.close()
    assert {path.name for path in tmp_path.iterdir()} == {*names, "000000000000009.spool", "lock", "position"}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    with pytest.raises(SpoolError, match=f"spool .* is held by process {os.getpid()}"):
        spool_at(tmp_path)
    code = (
        "import sys; sys.path.insert(0, 'tests'); from pathlib import Path; from outgoing_support import spool_at\n"
        f"try: spool_at(Path({str(tmp_path)!r}))\nexcept Exception as error: print(type(error).__name__, error)"
    )
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert out.stdout.startswith("SpoolError") and f"process {os.getpid()}" in out.stdout
    spool.close()
    spool_at(tmp_path).close()


def test_the_folder_and_its_files_are_for_their_owner_only(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "a/b")
    fill(spool, 1)
    spool.read(None)
    spool.save()
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a/b").iterdir()} == {0o600}


class Disk:
    """Stands before ``os.pwrite``: refuses, or writes only a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.part: int | None = None
        self.error = 0
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self.pwrite)

    def pwrite(self, file: int, data: bytes, at: int) -> int:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return self._pwrite(file, data if self.part is None else data[: self.part], at)


def test_a_full_disk_refuses_says_so_and_takes_records_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    values = fill(spool, 3)
    for part in (0, 1, 27, 28, 200):
        disk.part = part
        assert not spool.append(record(b"w" * 600))
        assert spool.trouble == f"spool {tmp_path} cannot be written: No space left on device"
    disk.part, disk.error = None, errno.EIO
    assert spool.append_taken(record("w")) is None and not spool.append(record("w"))
    assert "Input/output error" in spool.trouble
    disk.error = 0
    values += fill(spool, 2, size=10, start=3)
    assert spool.trouble == "" and spool.bytes == on_disk(tmp_path)
    assert drain(spool) == values and dropped(counters) == {}


def test_a_process_killed_after_a_write_that_failed_leaves_nothing_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    before = spool_at(tmp_path)
    values = fill(before, 3)
    disk.part = 100
    assert not before.append(record(b"w" * 600))
    die(before)
    counters = Counters()
    assert drain(spool_at(tmp_path, counters=counters)) == values and dropped(counters) == {}


def test_a_folder_that_cannot_be_made_is_a_state_and_is_tried_again(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    spool = spool_at(blocker / "spool")
    assert spool.trouble == f"spool {blocker / 'spool'} cannot be written: Not a directory"
    assert not spool.append(record("a")) and spool.append_taken(record("a")) is None
    assert spool.read(None) is None and not spool.unread
    spool.save()
    blocker.unlink()
    assert spool.append(record("b")) and spool.trouble == ""
    assert drain(spool) == [b"b"]
    spool.close()


def test_a_spool_that_somebody_else_took_meanwhile_is_a_state(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    late = spool_at(blocker / "spool")
    blocker.unlink()
    other = spool_at(blocker / "spool")
    assert not late.append(record("a")) and "is held by process" in late.trouble
    other.close()
    assert late.append(record("a"))


def test_a_closed_spool_that_never_had_a_folder_can_be_closed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spool = spool_at(tmp_path / "file/x")
    spool.close()
    assert not spool.append(record("a"))


def test_a_record_larger_than_the_spool_is_refused_and_nothing_is_lost_for_it(tmp_path: Path) -> None:
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    values = fill(spool, 3)
    assert not spool.append(record(b"x" * 70_000))
    assert "larger than the spool" in spool.trouble
    assert drain(spool) == values and dropped(counters) == {}


def test_what_is_held_already_is_written_and_not_read_but_found_by_the_next_boot(tmp_path: Path) -> None:
    before = spool_at(tmp_path)
    first = fill(before, 3)
    assert before.append_taken(record("taken", events=2)) is not None
    last = fill(before, 3, start=3)
    values = []
    while (stored := before.read(None)) is not None:
        values.append(stored.record.value)
    assert values == first + last
    die(before)
    counters = Counters()
    spool = spool_at(tmp_path, counters=counters)
    assert spool.append_taken(record("mine", events=5)) is not None
    fill(spool, 200, start=6)
    left = drain(spool)
    assert dropped(counters) == {"spool full": (208 - len(left), 2 * (207 - len(left)) + 5)}


def test_what_is_held_and_safe_lets_its_file_go(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    places = [spool.append_taken(record(b"taken %d" % n + b"x" * 900)) for n in range(30)]
    assert None not in places and not spool.unread and len(files(tmp_path)) >= 2
    for place in places:
        assert place is not None
        spool.ack(place)
    assert len(files(tmp_path)) == 1 and not spool._taken


def test_settings_reach_the_spool(tmp_path: Path) -> None:
    tiny = msgspec.structs.replace(SMALL, spool_bytes=26_000)
    spool = spool_at(tmp_path, tiny)
    fill(spool, 100)
    assert 13_000 < spool.bytes <= 26_000
