"""Flight-recorder dumps: pickles of plain values, groups by their members, counts of groups that no entry is of."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streams_support import records, run, written_log

from producers.inputs import UnreadableRecording
from producers.readers import pickled
from producers.recording import Recording, read_recording
from schemas.events import Collective

SECOND = 1_000_000_000
BASE = 1_795_975_833 * SECOND
TIMEOUT_MS = 180_000
WORLD = [0, 1, 2, 3]
Dumps = dict[int, dict[str, Any]]


def entry(number: int, group: tuple[str, str], sequence: int, **changes: Any) -> dict[str, Any]:
    base = {
        "pg_id": number,
        "process_group": group,
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": BASE + sequence * SECOND,
        "input_sizes": [[8, 4]],
        "output_sizes": [[8, 4]],
        "input_dtypes": ["Float"],
        "state": "scheduled",
        "timeout_ms": TIMEOUT_MS,
        "is_p2p": False,
    }
    return {**base, **changes}


def dump(groups: dict[str, tuple[str, list[int]]], statuses: dict[int, tuple[int, int]], *entries: Any) -> Any:
    return {
        "version": "2.9",
        "pg_config": {name: {"name": name, "desc": desc, "ranks": str(who)} for name, (desc, who) in groups.items()},
        "pg_status": {
            str(number): {"last_enqueued_collective": enqueued, "last_completed_collective": completed}
            for number, (enqueued, completed) in statuses.items()
        },
        "entries": list(entries),
    }


def recording(folder: Path, dumps: Dumps, write: Callable[[Any], bytes] = pickle.dumps) -> Recording:
    for rank, value in dumps.items():
        (folder / f"_dump_{rank}").write_bytes(write(value))
    return read_recording(folder)


def collectives(found: Recording, rank: int) -> list[Collective]:
    batches = [arrival.batch for arrival in found.arrivals if arrival.batch.identity.rank == rank]
    return [event for batch in batches for event in batch.events if isinstance(event, Collective)]


def pair_of_jobs() -> Dumps:
    """Four ranks in two pairs; rank 3 shows nothing but counts. Each rank counts groups by itself."""
    names = {
        rank: {"0": ("world", WORLD), str(10 + rank): ("pair", [rank // 2 * 2, rank // 2 * 2 + 1])} for rank in WORLD
    }
    found = {
        rank: dump(names[rank], {0: (5, 5), 7: (9, 8)}, entry(7, (str(10 + rank), "pair"), 9)) for rank in (0, 1, 2)
    }
    return found | {3: dump(names[3], {0: (5, 5), 7: (8, 8)})}


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_of_plain_values_is_a_dump(tmp_path: Path, protocol: int) -> None:
    found = recording(tmp_path, pair_of_jobs(), lambda value: pickle.dumps(value, protocol))
    assert found.inputs.unused == []
    (waiting,) = [one for one in collectives(found, 0) if one.state == "enqueued" and one.operation]
    assert (waiting.group, waiting.ranks, waiting.sequence, waiting.dtype) == ("pair:0-1", [0, 1], 9, "Float")


def test_a_group_has_one_name_whatever_number_a_rank_has_for_it(tmp_path: Path) -> None:
    found = recording(tmp_path, pair_of_jobs())
    names = [{one.group for one in collectives(found, rank) if one.operation} for rank in (0, 1, 2)]
    assert names == [{"pair:0-1"}, {"pair:0-1"}, {"pair:2-3"}]


def test_counts_of_a_rank_that_shows_no_operation_are_of_its_peers_group(tmp_path: Path) -> None:
    found = recording(tmp_path, pair_of_jobs())
    assert [(one.group, one.sequence, one.state) for one in collectives(found, 3)] == [("pair:2-3", 8, "completed")]


def test_counts_of_groups_in_which_some_send_to_one_another_are_no_counts_of_collectives(tmp_path: Path) -> None:
    dumps = pair_of_jobs()
    dumps[2]["entries"].append(entry(7, ("12", "pair"), 9, is_p2p=True, p2p_seq_id=30, profiling_name="nccl:send 0->1"))
    assert collectives(recording(tmp_path, dumps), 3) == []


def test_a_number_on_which_peers_do_not_agree_means_no_group(tmp_path: Path) -> None:
    dumps = pair_of_jobs()
    dumps[1]["entries"].append(entry(7, ("0", "world"), 6))
    assert collectives(recording(tmp_path, dumps), 3) == []


def test_a_dump_of_which_nobody_says_when_is_of_the_first_timeout_and_not_before_the_last_operation(
    tmp_path: Path,
) -> None:
    dumps = pair_of_jobs()
    dumps[0]["entries"] += [entry(7, ("10", "pair"), sequence) for sequence in (10, 400)]
    times = {(one.time, one.time_source) for rank in WORLD for one in collectives(recording(tmp_path, dumps), rank)}
    assert times == {(BASE + 400 * SECOND, "inferred")}
    dumps[0]["entries"].pop()
    times = {(one.time, one.time_source) for rank in WORLD for one in collectives(recording(tmp_path, dumps), rank)}
    assert times == {(BASE + 9 * SECOND + TIMEOUT_MS * 1_000_000, "inferred")}


class Hostile:
    """What its pickle would do where it was trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_nothing_in_a_pickle_is_called(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    with pytest.raises(ValueError, match="only plain values are read"):
        pickled.load(pickle.dumps({"entries": [Hostile(trap)]}))
    assert not trap.exists()
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "_dump_0").write_bytes(pickle.dumps({"entries": [Hostile(trap)], "version": "2.9"}))
    found = recording(folder, {rank: one for rank, one in pair_of_jobs().items() if rank})
    assert not trap.exists()
    ((file, reason),) = [(one.file, one.reason) for one in found.inputs.unused]
    assert file == "_dump_0" and "only plain values are read" in reason


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x02",
        b"\x80\x02}q\xff",
        b"\x80\x02r\xff\xff\xff\x7f",  # a place in the memory of an unpickler far beyond all others
        b"\x80\x04]\x94\x96" + b"\xff" * 7 + b"\x7f.",
        b"\x80\x02Pabc\n.",
        b"\x80\x02" + b"(" * 5000 + b".",
        b"\x80\x02]" + b"]" * 2000 + b"a" * 2000 + b".",
        pickle.dumps(pair_of_jobs()[0])[:-40],
        pickle.dumps([1, 2, 3]),
        pickle.dumps({"entries": 7, "version": "2.9"}),
        pickle.dumps({"entries": [{}], "pg_status": 3, "pg_config": [1]}),
        pickle.dumps({"pg_status": {"1": {"last_enqueued_collective": 10**30}}, "version": None}),
    ],
)
def test_damaged_and_hostile_pickles_are_left_aside_and_the_rest_is_used(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "_dump_0").write_bytes(raw)
    found = recording(tmp_path, {rank: one for rank, one in pair_of_jobs().items() if rank})
    assert collectives(found, 0) == []
    assert collectives(found, 3) != []


def test_a_folder_of_nothing_but_a_broken_pickle_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "_dump_0").write_bytes(b"\x80\x02}")
    with pytest.raises(UnreadableRecording):
        read_recording(tmp_path)


def test_names_and_numbers_of_other_types_are_none(tmp_path: Path) -> None:
    odd = entry(7, ("10", "pair"), 9, profiling_name=7.5, input_dtypes=[None], input_sizes=[["x", -1]], pg_id=True)
    dumps = pair_of_jobs()
    dumps[0]["entries"] = [odd, {**odd, "process_group": [["x"], None]}, {**odd, "collective_seq_id": "9"}]
    found = recording(tmp_path, dumps)
    assert len([one for one in collectives(found, 0) if one.created]) == 3


@pytest.mark.parametrize(
    ("changes", "duration", "peer"),
    [
        ({"duration_ms": 12.5}, 12_500_000, None),
        ({"duration_ms": None}, 0, None),
        ({"duration_ms": float("inf")}, 0, None),
        ({"duration_ms": True}, 0, None),
        ({"is_p2p": True, "profiling_name": "nccl:send 0->1", "p2p_seq_id": 4, "duration_ms": 1}, 1_000_000, 3),
        ({"is_p2p": True, "profiling_name": "nccl:recv 0<-1", "p2p_seq_id": 4}, 0, 3),
        ({"is_p2p": True, "profiling_name": "nccl:recv 0<-9", "p2p_seq_id": 4}, 0, None),
    ],
)
def test_a_timed_operation_has_its_duration_and_a_send_its_peer(
    tmp_path: Path, changes: dict[str, Any], duration: int, peer: int | None
) -> None:
    dumps = {1: dump({"9": ("pair", [1, 3])}, {}, entry(9, ("9", "pair"), 5, **changes))}
    (event,) = collectives(recording(tmp_path, dumps), 1)
    assert (event.duration, event.peer) == (duration, peer)


@pytest.mark.parametrize("late", [2, None])
def test_timed_dumps_tell_for_whom_a_group_waits(tmp_path: Path, late: int | None) -> None:
    took = {rank: 40.0 + rank if rank != late else 0.9 for rank in WORLD}
    dumps = {
        rank: dump(
            {"0": ("world", WORLD)},
            {0: (40, 40)},
            *(entry(0, ("0", "world"), at, state="completed", duration_ms=took[rank]) for at in range(1, 41)),
        )
        for rank in WORLD
    }
    log = written_log(recording(tmp_path, dumps))
    run(log)
    found = [(one.grounds, one.text[:24]) for one in records(log, "anomalies") if one.detector == "collective_delay"]
    assert found == ([("joins_last", "rank 2 is the last to jo")] if late else [])
