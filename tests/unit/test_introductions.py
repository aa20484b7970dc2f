"""What NCCL's lines say of processes: a rank of the job only where the communicator joins all of the job's ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from producers.introductions import process_of
from producers.recording import Recording, read_recording
from schemas.events import Log
from schemas.identity import Identity

STEP = "step 3: loss = 2.0"
WARN = "transport/net_ib.cc:88 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<40213>"


def joined(rank: int, size: int, pid: int, host: str, comm: int = 1) -> str:
    said = f"NCCL INFO ncclCommInitRank comm 0x{comm} rank {rank} nranks {size} cudaDev 0 nvmlDev 0 busId 1b000 commId"
    return f"{host}:{pid}:{pid + 600} [0] {said} 0x9 - Init COMPLETE"


def teed(host: str, first: int, *more: str, size: int = 4, pid: int = 100) -> list[str]:
    """What two workers of a node print under torchrun's tee."""
    init = [f"[default{n}]:{joined(first + n, size, pid + n, host)}" for n in range(2)]
    return [
        *init,
        *(f"[default{n}]:{STEP}" for n in range(2)),
        *more,
        *(f"[default{n}]:y{first + n}" for n in range(2)),
    ]


def read(tmp_path: Path, files: Mapping[str, list[str]]) -> Recording:
    for name, rows in files.items():
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["2026-11-29 18:10:00 started", *rows]) + "\n")
    return read_recording(tmp_path / "job")


def said(recording: Recording) -> dict[str, Identity]:
    """Whose lines are, by their text."""
    found = [(a.batch.identity, e) for a in recording.arrivals for e in a.batch.events if isinstance(e, Log)]
    return {event.text: identity for identity, event in found}


def test_labels_are_ranks_where_each_is_one_process_and_all_have_said_who_they_are(tmp_path: Path) -> None:
    found = said(read(tmp_path, {"a.txt": teed("a", 0), "b.txt": teed("b", 2, pid=100)}))
    assert [(found[f"y{rank}"].rank, found[f"y{rank}"].node) for rank in range(4)] == [
        (0, "a"), (1, "a"), (2, "b"), (3, "b"),
    ]  # fmt: skip
    assert found["y3"].local_rank == 1


@pytest.mark.parametrize(
    "files",
    [
        # Nobody has seen the others of the world, who may write here as well.
        {"b.txt": teed("b", 2)},
        {"b.txt": teed("b", 2, "[default0]:WORLD_SIZE=4")},
        # Groups of two on each node, and what joins the nodes.
        {"a.txt": teed("a", 0, size=2), "b.txt": teed("b", 0, size=2)},
        {"b.txt": [*teed("b", 0, size=2), *(f"[default{n}]:{joined(1, 3, 100 + n, 'b', 7 + n)}" for n in range(2))]},
        # Not the world's.
        {"a.txt": teed("a", 0, "[default0]:using world size: 8,"), "b.txt": teed("b", 2)},
        # Another process, of which nothing is known.
        {"a.txt": teed("a", 0), "b.txt": teed("b", 2, f"[default1]:c:9:9 [0] {WARN}")},
        # One process is two ranks, and one rank two processes.
        {"a.txt": teed("a", 0, f"[default0]:{joined(2, 4, 100, 'a', 5)}"), "b.txt": teed("b", 2)},
        {"a.txt": teed("a", 0), "b.txt": teed("b", 2), "c.txt": teed("c", 2)},
        # The ranks of one host may be a group, and groups that join the hosts may not have been made yet.
        {"b.txt": teed("b", 0, size=2)},
        {name: [row for row in teed(name, first) if STEP not in row] for name, first in (("a", 0), ("b", 2))},
    ],
)
def test_nobody_is_named_where_a_communicator_need_not_be_the_world_or_a_label_of_several(
    tmp_path: Path, files: Mapping[str, list[str]]
) -> None:
    found = said(read(tmp_path, files))
    assert {identity.rank for text, identity in found.items() if text.startswith("y")} == {None}


def test_lines_of_nccl_are_those_of_their_process_wherever_they_stand(tmp_path: Path) -> None:
    """Both nodes write into one file under the same labels."""
    warned = [f"[default1]:[2026-11-29 18:10:09] {host}:101:701 [1] {WARN}" for host in "ab"]
    found = said(read(tmp_path, {"all.txt": [*teed("a", 0), *teed("b", 2), *warned]}))
    assert {found[f"y{rank}"].rank for rank in range(4)} == {None}
    by_host = {text.partition(":101")[0][-1]: identity for text, identity in found.items() if WARN in text}
    assert {host: (one.rank, one.node) for host, one in by_host.items()} == {"a": (1, "a"), "b": (3, "b")}


def test_a_restart_gives_ranks_to_other_processes(tmp_path: Path) -> None:
    world = "[default0]:WORLD_SIZE=4"
    again = {"a.txt": [*teed("a", 0, world), *teed("a", 0, pid=200)], "b.txt": [*teed("b", 2), *teed("b", 2, pid=200)]}
    assert said(read(tmp_path, again))["y3"].rank == 3


@pytest.mark.parametrize(
    "moved", [[*teed("a", 0), *teed("a", 2, pid=200)], [*teed("a", 0, "x"), *teed("a", 1, pid=200)]]
)
def test_a_label_that_was_several_ranks_is_nobodys(tmp_path: Path, moved: list[str]) -> None:
    files = {"a.txt": [*moved, "[default0]:WORLD_SIZE=4"], "b.txt": teed("b", 2)}
    assert said(read(tmp_path, files))["y0"].rank is None


def test_a_rank_log_of_torchrun_is_of_the_rank_that_nccl_names(tmp_path: Path) -> None:
    files = {
        f"{host}/run_abcdefgh/attempt_0/{n}/stdout.log": [joined(first + n, 4, 100 + n, host), STEP, f"y{first + n}"]
        for host, first in (("a", 0), ("b", 2))
        for n in range(2)
    }
    assert [said(read(tmp_path, files))[f"y{rank}"].rank for rank in range(4)] == [0, 1, 2, 3]


def test_a_rank_by_name_or_by_its_lines_that_nccl_contradicts_names_nobody(tmp_path: Path) -> None:
    rows = {n: [joined(n, 2, 100, "ab"[n]), STEP, f"y{n}", f"z{n}"] for n in range(2)}
    named = {f"nemo_log_globalrank-{1 - n}_localrank-{n}.txt": rows[n] for n in range(2)}
    found = said(read(tmp_path / "named", named))
    assert found["y0"].rank is None and "sources disagree" in found["y0"].rank_reason
    lines = {f"a/run_abcdefgh/attempt_0/{n}/stdout.log": [f"[rank {1 - n}] x{n}", *rows[n]] for n in range(2)}
    found = said(read(tmp_path / "lines", lines))
    assert found["y0"].rank is None and "sources disagree" in found["y0"].rank_reason


@pytest.mark.parametrize(
    ("text", "process"),
    [
        ("gpu-07:4001:4601 [3] NCCL INFO Bootstrap : Using eth0", ("gpu-07", 4001)),
        (f"[2026-11-29 12:00:00] gpu.7:4001:4601 [0] {WARN}", ("gpu.7", 4001)),
        ("NCCL version 2.27.5+cuda12.8", None),
        ("he said gpu7:1:1 [0] NCCL INFO x", None),
        ("gpu7:1 [0] NCCL INFO x", None),
    ],
)
def test_the_process_of_a_line(text: str, process: tuple[str, int] | None) -> None:
    assert process_of(text) == process
