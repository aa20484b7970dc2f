"""Where everybody stood in real hangs, as people are told: before the job failed of it, not while it was torn down."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams_support import SHARED, records

from producers.recording import read_recording
from rankwatch.diagnose import run

SAID = {
    "dataloader-hang": "ranks 0-4,6-7 in backward (autograd/__init__.py:395) under train.py:133; "
    "rank 5 in __next__ (dataloader.py:725) under train.py:101, its dataloader in __getitem__ (train.py:71)",
    "ckpt-stall": "ranks 1-7 in barrier (distributed_c10d.py:5356) under train.py:160; rank 0 in train.py:158",
    "pp-hang": "ranks 0-1,3-5,7-9,11 in all_reduce (distributed_c10d.py:3252) under train2.py:105; "
    "rank 2 in send (distributed_c10d.py:2753) under train2.py:96; rank 6 in wait_for_shard_server (train2.py:62); "
    "rank 10 in recv (distributed_c10d.py:2799) under train2.py:94",
    "skip-collective": "ranks 0-11 in all_reduce (distributed_c10d.py:3252) under train2.py:106",
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded jobs of ../shared are not here")
@pytest.mark.parametrize("job", SAID)
def test_each_rank_is_said_to_be_where_it_stood(job: str) -> None:
    log = run(read_recording(Path(SHARED) / job)).log

    assert [kind.text for kind in records(log, "incidents")[-1].stacks] == [SAID[job]]
    assert [kind.text for one in records(log, "merged.stacks") for kind in one.classes if kind.text] == [SAID[job]]
