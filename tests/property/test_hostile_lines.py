"""Whatever a log holds, its reading raises nothing, loses no line and gives the same again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from producers.envelopes.evidence import forms_of, sample
from producers.envelopes.unwrap import unwrapped
from producers.lines import read_lines
from producers.recording import UnreadableRecording, read_recording
from schemas.events import Log

FRAGMENTS = [
    b"2016-10-06T00:17:09.669794202Z stdout F ",
    b"2016-10-06T00:17:09.669794202Z stderr P ",
    b"2016-10-06T00:17:09.66Z ",
    b'{"log":"',
    b'{"log":"x\\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}',
    b'{"log":"[default1]:y","stream":"stderr","time":"2016-10-20T18:39:20.57606443Z"}',
    b'{"log":"\\ud800","stream":"stdout","time":"2016-10-20T18:39:20Z"}',
    b'\\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}',
    b"[pod/a-1/b] ",
    b"(Worker pid=12, ip=10.0.0.1) ",
    b"\x1b[36m(RayTrainWorker pid=7)\x1b[0m ",
    b" 7: ",
    b"P0 11: ",
    b"0: ",
    b"[default3]:",
    b"[rank3]:",
    b"[rank8]: ",
    b"[trainer2]:",
    b"[1,7]<stdout>:",
    b"[prterun-n1-77@1,3]<stderr>: ",
    b"node08:3: ",
    b"6,3964,206764307,-;",
    b"[ 2397166.983093] ",
    b"<6>[    2.608284] ",
    b"[Fri Aug 30 11:43:09 2024] ",
    b"kern  :warn  : 2025-01-21T04:41:44,285060+00:00 ",
    b"Feb 14 05:03:41 node07 kernel: ",
    b"NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008",
    b"audit: type=1400 audit(1707887033.123:2): x",
    b"[XTuner][RANK 7][2025-11-04 10:00:00][INFO] ",
    b"Traceback (most recent call last):",
    b'  File "t.py", line 1, in f',
    b"ValueError: x",
    b"[E1129 18:10:44.472278476 P.cpp:1] x",
    b"W1129 18:11:28.111000 23348 torch/distributed/elastic/x.py:900] Sending process 3",
    b"- (ip=10.0.0.1, pid=12) world_rank=3, local_rank=1",
    b"[rank=3, world_size=4]",
    b'{"timestamp": "2026-11-30T17:00:01.5Z", "rank": 3, "step": 1, "forward_time": 0.3}',
    b'{"time": "2026-11-30 17:00:02", "event": "\\ud800", "rank": 5, "step": 1, "host": "a\\u0000", "x": 1e999}',
    b"[2026-11-30 17:00:01,500] [INFO] [Rank 3] time (ms) | fwd_microstep: 1 | bwd 2 ms",
    b"init: rank 7/12 host n1",
    b"x" * 1024,
    b"\r",
    b" 10%\r",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"   ",
    b"",
]


def hostile(seed: int) -> bytes:
    """Lines of a few of the fragments, most of them of the same few kinds."""
    chance = random.Random(seed)
    usual = [chance.choices(FRAGMENTS, k=chance.randint(0, 3)) for _ in range(3)]
    rows = [
        b"".join(chance.choice(usual)) + b"".join(chance.choices(FRAGMENTS, k=chance.randint(0, 4)))
        for _ in range(chance.randint(1, 60))
    ]
    return b"\n".join(rows) + chance.choice([b"", b"\n"])


@pytest.mark.parametrize("seed", range(200))
def test_no_byte_of_a_line_goes_uncounted(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(hostile(seed))
    read = list(read_lines(path))
    found = list(unwrapped(read, forms_of(sample(path))))
    assert sum(line.size for line in found) == sum(line.size for line in read)
    assert {line.number for line in found} <= {line.number for line in read}


@pytest.mark.parametrize("seed", range(200))
def test_a_hostile_file_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    (tmp_path / "x.log").write_bytes(hostile(seed))
    try:
        first, second = read_recording(tmp_path), read_recording(tmp_path)
    except UnreadableRecording:
        return
    assert first == second
    logs = [event for arrival in first.arrivals for event in arrival.batch.events if isinstance(event, Log)]
    assert len(logs) == first.inputs.records and all(event.text.strip() for event in logs)
