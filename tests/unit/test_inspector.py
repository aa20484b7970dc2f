"""Lines of NCCL's inspector: operations with their durations, of the rank whose process wrote them and of no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streams_support import records, run, written_log

from producers.recording import Recording, read_recording
from schemas.events import Collective
from schemas.identity import Identity

BASE = 1_795_975_833
PIDS = {0: 41, 1: 42, 2: 41, 3: 42}
"""Both nodes number their processes alike."""


def line(
    rank: int, sequence: int = 7, *, comm: str = "0xa1", place: int | None = None, **changes: Any
) -> dict[str, Any]:
    told = {
        "coll": "AllReduce",
        "coll_sn": sequence,
        "coll_msg_size_bytes": 1 << 20,
        "coll_exec_time_us": 61974,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 277.2,
        "coll_busbw_gbs": 485.1,
    }
    header = {"id": comm, "rank": rank if place is None else place, "n_ranks": 4, "nnodes": 2}
    metadata = {
        "inspector_output_format_version": "v4.0",
        "dump_timestamp_us": (BASE + sequence) * 1_000_000 + 5,
        "hostname": f"node0{rank // 2}.cluster.local",
        "pid": PIDS[rank],
    }
    value: dict[str, Any] = {"header": header, "metadata": metadata, "coll_perf": told}
    for key, change in changes.items():
        value[key] = {**value[key], **change} if key in value and isinstance(change, dict) else change
    return {key: found for key, found in value.items() if found is not None}


def read(tmp_path: Path, lines: dict[str, list[Any]], starts: dict[int, int] | None = None) -> Recording:
    rows = [
        {"rank": rank, "local_rank": rank % 2, "node": f"node0{rank // 2}", "pid": pid, "ts": BASE, "attempt": 0}
        for rank, pid in (PIDS if starts is None else starts).items()
    ]
    for name, found in {"pids.jsonl": rows, **lines}.items():
        text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in found)
        (tmp_path / name).write_text(text)
    return read_recording(tmp_path)


def events(recording: Recording) -> list[tuple[Identity, Collective]]:
    batches = [arrival.batch for arrival in recording.arrivals]
    return [(one.identity, event) for one in batches for event in one.events if isinstance(event, Collective)]


def test_a_line_is_an_operation_of_the_rank_whose_process_wrote_it(tmp_path: Path) -> None:
    # In a communicator of its own the place of rank 3 is 0.
    found = read(tmp_path, {"node01-pid42.log": [line(3, place=0, header={"n_ranks": 1, "comm_name": "DP Group 0"})]})
    ((identity, event),) = events(found)
    assert (identity.rank, identity.node) == (3, "node01")
    assert (event.group, event.ranks, event.sequence, event.operation) == ("DP Group 0 0xa1", [3], 7, "AllReduce")
    assert (event.time, event.time_source) == ((BASE + 7) * 10**9 + 5_000, "captured")
    assert (event.duration, event.size, event.bandwidth, event.state) == (61_974_000, 1 << 20, 485.1, "completed")
    assert (event.tool, event.started, event.created, event.algorithm) == ("inspector", 0, 0, "")


def test_a_verbose_line_says_when_it_began(tmp_path: Path) -> None:
    stamp = BASE * 1_000_000
    kernels = [{"channel_id": at, "kernel_start_ts": stamp + 9 - at, "kernel_stop_ts": stamp + 90} for at in (0, 1)]
    old = {"event_trace_ts": {"coll_start_ts": stamp + 1, "kernel_events": kernels}}
    new = {
        "coll_algo": "RING",
        "coll_proto": "LL128",
        "event_trace_ts": {"coll_start_ts": stamp + 1},
        "events": [{"event_type": "KernelCh", "event_trace_ts": one} for one in kernels],
    }
    other = {"event_trace_ts": {"coll_start_ts": 17, "kernel_events": [{"kernel_start_ts": 123456}]}}
    found = read(tmp_path, {"a.log": [line(0, at, coll_perf=told) for at, told in enumerate((old, new, other))]})
    times = [(one.created, one.started, one.algorithm) for _, one in events(found)]
    known = (stamp + 1) * 1_000, (stamp + 8) * 1_000
    assert times == [(*known, ""), (*known, "RING LL128"), (0, 0, "")]


def test_a_send_names_the_rank_at_the_place_of_its_peer(tmp_path: Path) -> None:
    sends = {"p2p": "Send", "p2p_sn": 1, "p2p_peer": 1, "p2p_msg_size_bytes": 9, "p2p_exec_time_us": 250.5}
    pair = [line(rank, comm="0xb", place=place, header={"n_ranks": 2}) for place, rank in enumerate((1, 3))]
    sent = line(1, comm="0xb", place=0, header={"n_ranks": 2}, coll_perf=None, p2p_perf=sends)
    (event,) = [one for _, one in events(read(tmp_path, {"a.log": [*pair, sent]})) if one.point_to_point]
    assert (event.operation, event.peer, event.ranks, event.duration) == ("Send", 3, [1, 3], 250_500)


def test_in_a_communicator_of_all_ranks_the_place_is_the_rank(tmp_path: Path) -> None:
    unknown = {rank: pid + 900 for rank, pid in PIDS.items()}
    lines = [line(rank) for rank in PIDS] + [line(2, comm="0xb", place=0, header={"n_ranks": 2})]
    found = events(read(tmp_path, {"a.log": lines}, unknown))
    assert sorted(identity.rank or 0 for identity, _ in found) == [0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "lines",
    [
        # A communicator of some ranks says nothing of who they are.
        [line(rank, place=rank % 2, header={"n_ranks": 2}) for rank in PIDS],
        [line(0, metadata={"pid": None})],
        [line(0, metadata={"hostname": "node77"}, header={"n_ranks": 2})],
    ],
)
def test_a_process_that_nobody_knows_is_no_rank(tmp_path: Path, lines: list[Any]) -> None:
    unknown = {rank: pid + 900 for rank, pid in PIDS.items()}
    found = events(read(tmp_path, {"a.log": lines}, unknown))
    assert [identity.rank for identity, _ in found] == [None] * len(lines)
    assert all(identity.rank_reason.startswith("nothing tells which rank process") for identity, _ in found)


def test_places_that_a_known_process_contradicts_are_no_ranks(tmp_path: Path) -> None:
    # Rank 3 is known by its process and has place 0 in a communicator of all.
    starts = {0: 1041, 1: 1042, 2: 1041, 3: 42}
    lines = [line(3, place=0), line(0, place=3), line(1), line(2)]
    found = events(read(tmp_path, {"a.log": lines}, starts))
    assert sorted((identity.rank is None, identity.rank or 0) for identity, _ in found) == [
        (False, 3),
        (True, 0),
        (True, 0),
        (True, 0),
    ]


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    stats = line(0, coll_perf=None, dump_stats={"num_dropped_coll_records": 40, "num_dropped_p2p_records": 2})
    bad: list[Any] = [
        stats,
        line(0, metadata={"dump_timestamp_us": "soon"}),
        line(0, coll_perf={"coll_sn": -1}),
        line(0, coll_perf=None),
        json.dumps(line(0))[:-9],
        {"header": 1, "metadata": 2},
        [1],
    ]
    odd = line(0, 8, coll_perf={"coll_exec_time_us": float("nan"), "coll_busbw_gbs": -1, "coll_msg_size_bytes": 2**70})
    found = read(tmp_path, {"a.log": [line(0), *bad, odd]})
    assert [(one.sequence, one.duration, one.bandwidth, one.size) for _, one in events(found)][1:] == [(8, 0, None, 0)]
    notes = {note.line: (note.reason, note.count) for note in found.inputs.unused}
    assert notes[2] == ("operations that the inspector has dropped", 42)
    assert sorted(notes) == [2, 3, 4, 5, 6, 7, 8]


def findings(recording: Recording) -> list[tuple[str, str]]:
    log = written_log(recording)
    run(log)
    return [(one.grounds, one.text) for one in records(log, "anomalies") if one.detector == "collective_delay"]


def test_lines_of_a_whole_job_tell_for_whom_it_waits(tmp_path: Path) -> None:
    lines = [
        line(rank, step, coll_perf={"coll_exec_time_us": 900 if rank == 2 else 40_000 + 10 * step + rank})
        for step in range(1, 50)
        for rank in PIDS
    ]
    ((grounds, text),) = set(findings(read(tmp_path, {"a.log": lines})))
    assert grounds == "joins_last"
    assert text == "rank 2 is the last to join 100% of the last operations AllReduce of group communicator 0xa1"


def test_sends_of_a_whole_job_tell_a_slow_link(tmp_path: Path) -> None:
    lines = []
    for step in range(1, 15):
        for rank in PIDS:
            for peer in PIDS:
                if peer != rank:
                    told = {"p2p": "Send", "p2p_sn": step, "p2p_peer": peer, "p2p_msg_size_bytes": 9}
                    told |= {"p2p_exec_time_us": 50_000 if (rank, peer) == (3, 1) else 9_000 + 10 * rank + peer}
                    lines.append(line(rank, step, coll_perf=None, p2p_perf=told))
    ((grounds, text),) = set(findings(read(tmp_path, {"a.log": lines})))
    assert (grounds, text[:30]) == ("hot_link", "what rank 3 sends to rank 1 ta")


def test_lines_of_a_healthy_job_tell_nothing(tmp_path: Path) -> None:
    lines = [
        line(rank, step, coll_perf={"coll_exec_time_us": 40_000 + 100 * ((7 * rank + step) % 9)})
        for step in range(1, 50)
        for rank in PIDS
    ]
    assert findings(read(tmp_path, {"a.log": lines})) == []
