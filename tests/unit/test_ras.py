# ruff: noqa: E501 (lines stand here as they are printed)
"""Reports of NCCL's RAS: what each rank has launched, where rank and time are known; of completions they say nothing."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from producers.readers.ras import MOST_COUNTS, UNTIMED, Reports
from producers.readers.ras import read as read_reports
from producers.recording import Recording, read_recording
from producers.scan import Source
from schemas.events import Collective

BASE = 1_795_975_833
STAMP = datetime.fromtimestamp(BASE + 30, UTC).strftime("%Y-%m-%d %H:%M:%S")
TEXT = """NCCL version 2.28.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  MISMATCH
    1         4         1         2         2         8   RUNNING        OK

Errors
======

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different {kind} operation counts
{counts}
"""
ONE = "  7 ranks have launched up to operation 641\n  Rank 5 has launched up to operation 640 -- GPU 1 managed by process 105 on node 10.0.0.2"
TWO = """  6 ranks have launched up to operation 641
  2 ranks have not launched any operations
  Rank 4 -- GPU 0 managed by process 104 on node 10.0.0.2
  Rank 5 -- GPU 1 (NVML 3) managed by process 105 on node 10.0.0.2"""


def member(rank: int, count: int, place: int | None = None, *, pid: int | None = None, **kinds: int) -> dict[str, Any]:
    counts = {"Broadcast": 2, "AllReduce": count, "Send": 9 * rank, **kinds}
    return {
        "rank": rank if place is None else place,
        "host": f"10.0.0.{1 + rank // 4}",
        "pid": 100 + rank if pid is None else pid,
        "collective_counts": counts,
    }


def report(*communicators: tuple[str, list[dict[str, Any]]], stamp: str = STAMP, **more: Any) -> dict[str, Any]:
    comms = [
        {"hash": name, "size": len(ranks), "ranks": ranks, "missing_ranks": [], **more} for name, ranks in communicators
    ]
    return {"nccl_version": "2.28.9", "timestamp": stamp, "communicators_count": len(comms), "communicators": comms}


WORLD = ("0xa1", [member(rank, 640 if rank == 5 else 641) for rank in range(8)])


def read(tmp_path: Path, text: str, *, ranks: int = 8, captured: int | None = None) -> Recording:
    rows = [
        {"rank": rank, "local_rank": rank % 4, "node": f"node0{rank // 4}", "pid": 100 + rank, "ts": BASE, "attempt": 0}
        for rank in range(ranks)
    ]
    rows += [{"ts": BASE + 60, "node": "node00", "load": 1.0}]
    (tmp_path / "pids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    (tmp_path / "load.jsonl").write_text(json.dumps(rows[-1]) + "\n")
    (tmp_path / "ras.out").write_text(text)
    if captured is not None:
        (tmp_path / "when.jsonl").write_text(json.dumps({"file": "ras.out", "captured": captured}) + "\n")
    return read_recording(tmp_path)


def launched(found: Recording) -> dict[tuple[int | None, str], int]:
    """What each rank has launched by communicator; nothing of it is told to be completed."""
    told: dict[tuple[int | None, str], int] = {}
    for arrival in found.arrivals:
        for event in arrival.batch.events:
            if isinstance(event, Collective):
                key = arrival.batch.identity.rank, event.group.split()[1]
                assert event.state == "enqueued" and key not in told
                told[key] = event.sequence
    return told


def notes(found: Recording) -> list[str]:
    return [note.reason for note in found.inputs.unused]


def test_counts_of_all_collectives_say_what_each_rank_has_launched(tmp_path: Path) -> None:
    pair = ("0xb2", [member(4, 7, 0), member(5, 6, 1)])
    found = read(tmp_path, json.dumps(report(WORLD, pair), indent=2))
    world = {(rank, "0xa1"): 642 if rank == 5 else 643 for rank in range(8)}
    assert launched(found) == world | {(4, "0xb2"): 9, (5, "0xb2"): 8}
    times = {
        event.time for arrival in found.arrivals for event in arrival.batch.events if isinstance(event, Collective)
    }
    assert times == {(BASE + 30) * 10**9}


@pytest.mark.parametrize(
    ("counts", "kind", "expected"),
    [
        (ONE, "AllReduce", {5: 640}),
        (ONE, "collective", {5: 640}),
        (TWO, "AllGather", {4: 0, 5: 0}),
        (ONE, "SendRecv", None),
        # Nobody says which of the two counts is whose.
        ("  4 ranks have launched up to operation 641\n  4 ranks have launched up to operation 640", "AllReduce", None),
    ],
)
def test_text_names_the_few_and_leaves_the_rest_to_the_others(
    tmp_path: Path, counts: str, kind: str, expected: dict[int, int] | None
) -> None:
    told = launched(read(tmp_path, TEXT.format(kind=kind, counts=counts), captured=BASE + 40))
    rest = dict.fromkeys(range(8), 641)
    assert {rank: count for (rank, _), count in told.items()} == ({} if expected is None else rest | expected)


@pytest.mark.parametrize(
    ("text", "ranks", "note"),
    [
        (TEXT.format(kind="AllReduce", counts=ONE), 8, UNTIMED),
        (json.dumps(report(WORLD, stamp="2026-11-30 23:00:00")), 8, UNTIMED),
        # A communicator of some ranks, and processes of which nobody knows the rank.
        (json.dumps(report(WORLD)), 4, "nothing tells which ranks belong to communicator 0xa1"),
        (json.dumps(report(("0xb", [member(rank, 6, rank % 4) for rank in (4, 5)]))), 8, "nothing tells which ranks"),
        # Its places are not the ranks: a process that is known has another one.
        (json.dumps(report(("0xc", [member(7 - at, 6, at) for at in range(8)]))), 8, "nothing tells which ranks"),
        (json.dumps(report(WORLD))[:-9], 8, "invalid JSON"),
    ],
)
def test_what_cannot_be_placed_is_said_and_not_used(tmp_path: Path, text: str, ranks: int, note: str) -> None:
    found = read(tmp_path, text, ranks=ranks)
    assert launched(found) == {}
    assert any(reason.startswith(note) for reason in notes(found))


def test_ranks_that_gave_no_answer_are_said_and_are_not_behind(tmp_path: Path) -> None:
    world = {**report(WORLD), "communicators": [{**report(WORLD)["communicators"][0], "missing_ranks": [{"rank": 3}]}]}
    world["communicators"][0]["ranks"] = [one for one in WORLD[1] if one["rank"] != 3]
    found = read(tmp_path, json.dumps(world))
    assert (3, "0xa1") not in launched(found) and (4, "0xa1") in launched(found)
    assert "no answer to NCCL's RAS from places 3 of 0xa1" in notes(found)


@pytest.mark.parametrize("bad", [None, [], {"ranks": 7}, {"size": -1}, {"size": 2**40, "ranks": []}, "x"])
def test_hostile_values_are_no_communicators(tmp_path: Path, bad: Any) -> None:
    told = report(WORLD)
    told["communicators"] = [bad, *told["communicators"]]
    assert len(launched(read(tmp_path, json.dumps(told)))) == 8


def section(number: int, size: int, missing: int = 0) -> str:
    absent = "".join(f"  Rank {place} -- GPU 0 managed by process 1 on node a\n" for place in range(missing))
    return (
        f"#0-0 ({number:x}) INCOMPLETE\n{absent}#0-0 ({number:x}) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        f"  {size - missing - 1} ranks have launched up to operation 5\n"
        f"  Rank {size - 1} has launched up to operation 4 -- GPU 0 managed by process 1 on node a\n"
    )


def of_text(tmp_path: Path, size: int, *sections: str) -> Reports:
    path = tmp_path / "ras.out"
    text = TEXT.partition("\nErrors\n")[0].replace("   4         8         8   R", f"   4  {size}  8   R")
    path.write_text(text + "\n" + "".join(sections))
    found = read_reports(Source(path=path, file="ras.out", size=path.stat().st_size), path.read_text().splitlines())
    assert found is not None
    return found


def test_a_small_text_that_stands_for_very_many_ranks_is_bounded_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    size = MOST_COUNTS // 5
    found = of_text(tmp_path, size, *(section(number, size) for number in range(1, 8)))
    assert [len(one.members) for one in found.reports[0].communicators] == [size] * 5
    (note,) = found.unused
    assert note.reason.startswith("2 communicators of a report of NCCL's RAS beyond")


def test_what_a_text_costs_does_not_grow_with_size_times_missing(tmp_path: Path) -> None:
    size, missing = 120_000, 60_000
    began = time.process_time()
    (one,) = of_text(tmp_path, size, section(1, size, missing)).reports[0].communicators
    assert time.process_time() - began < 10
    assert (len(one.members), len(one.missing), one.members[size - 1].count) == (size - missing, missing, 4)


def test_very_many_missing_ranks_are_a_short_note(tmp_path: Path) -> None:
    told = report(WORLD, missing_ranks=[{"rank": rank} for rank in range(8, 4000, 2)])
    (note,) = [one for one in notes(read(tmp_path, json.dumps(told))) if one.startswith("no answer")]
    assert len(note) < 300
