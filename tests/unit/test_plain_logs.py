"""Plain logs of training without an envelope; a number is a rank only where that is proven."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from producers.recording import Recording, read_recording
from schemas.events import Log
from schemas.identity import Identity

HEAD = "[2026-11-29 18:10:10] "
RANK = HEAD + "world rank: {0}"
TRACEBACK = ["Traceback (most recent call last):", '  File "t.py", line 1, in f', "    f()", "ValueError: x"]


def read(tmp_path: Path, files: dict[str, list[str]]) -> Recording:
    for name, rows in files.items():
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
    return read_recording(tmp_path / "job")


def logs(recording: Recording) -> list[tuple[Identity, Log]]:
    found = [(a.batch.identity, e) for a in recording.arrivals for e in a.batch.events if isinstance(e, Log)]
    return sorted(found, key=lambda one: (one[1].file, one[1].line))


def ranks(recording: Recording) -> dict[str, set[int | None]]:
    found: dict[str, set[int | None]] = {}
    for identity, event in logs(recording):
        found.setdefault(event.file, set()).add(identity.rank)
    return found


def reasons(recording: Recording) -> set[str]:
    return {identity.rank_reason for identity, _ in logs(recording) if identity.rank is None}


@pytest.mark.parametrize(
    "name, rank, local",
    [("nemo_log_globalrank-11_localrank-3.txt", 11, 3), ("20261129181010_rank7.log", 7, None)],
)
def test_a_name_that_holds_a_global_rank_tells_it(tmp_path: Path, name: str, rank: int, local: int | None) -> None:
    found = logs(read(tmp_path, {name: [HEAD + "hello", *TRACEBACK]}))
    assert {(identity.rank, identity.local_rank) for identity, _ in found} == {(rank, local)}
    assert [event.text for _, event in found] == [HEAD + "hello", "\n".join(TRACEBACK)]


@pytest.mark.parametrize(
    ("said", "node"),
    [
        ("rank=7 local_rank=3 world_size=16 hostname=n4", "n4"),
        ("rank=7 local_rank=3 hostname=n4", ""),
        ("world_size=16 lost rank=6 on host=n4", ""),
    ],
)
def test_the_node_of_a_named_rank_is_the_host_in_the_line_in_which_it_introduces_itself(
    tmp_path: Path, said: str, node: str
) -> None:
    rows = [HEAD + said, HEAD + "lost rank=6 of world_size=16 on host=n5"]
    found = logs(read(tmp_path, {"20261129181010_rank7.log": rows}))
    assert {(identity.rank, identity.node) for identity, _ in found} == {(7, node)}


def test_a_name_that_its_lines_contradict_names_nobody(tmp_path: Path) -> None:
    found = read(tmp_path, {"nemo_log_globalrank-1_localrank-1.txt": [RANK.format(5)]})
    assert ranks(found) == {"nemo_log_globalrank-1_localrank-1.txt": {None}}
    assert reasons(found) == {"sources disagree: rank 1 by the file's name, rank 5 by its lines"}


@pytest.mark.parametrize(
    ("other", "head", "known"),
    [
        ("n1/{}", HEAD, False),
        ("n1/{}", HEAD.replace("18:10", "19:10"), True),
        ("n0/{}", HEAD, True),
    ],
)
def test_a_name_that_files_of_two_folders_have_at_once_is_no_global_rank(
    tmp_path: Path, other: str, head: str, known: bool
) -> None:
    files = {}
    for rank in range(2):
        name = f"20261129181010_rank{rank}.log"
        files[f"n0/{name}"] = [HEAD + "hello"]
        files[other.format(name)] = [head + "hello"]
    found = read(tmp_path, files)
    assert {identity.rank for identity, _ in logs(found)} == ({0, 1} if known else {None})


def test_a_name_that_the_lines_of_its_file_confirm_is_a_rank_whoever_else_has_it(tmp_path: Path) -> None:
    name = "20261129181010_rank3.log"
    found = read(tmp_path, {f"n0/{name}": [RANK.format(3)], f"n1/{name}": [HEAD + "hello"]})
    assert ranks(found) == {f"n0/{name}": {3}, f"n1/{name}": {None}}


@pytest.mark.parametrize("pattern", ["logs/llama-4242-{}.out", "logs/rank_{}.log", "logs/llama.4242.{}.err"])
def test_numbers_of_files_are_ranks_where_several_say_so(tmp_path: Path, pattern: str) -> None:
    speak = [HEAD + "step 1", HEAD + "step 2", HEAD + "step 3", HEAD + "step 4"]
    files = {pattern.format(n): ([RANK.format(n), *speak] if n in (1, 3) else speak) for n in range(4)}
    assert ranks(read(tmp_path, files)) == {pattern.format(n): {n} for n in range(4)}


@pytest.mark.parametrize(
    "said",
    [
        # One task a node: the first rank of each speaks, or only the first of all.
        {0: [RANK.format(0)], 1: [RANK.format(4)]},
        {0: [RANK.format(0)]},
        # A tee under the role rank prints local ranks.
        {n: [f"[rank0]:{HEAD}loading {m}" for m in range(4)] for n in (0, 1)},
        {},
    ],
)
def test_a_number_that_may_be_a_nodes_is_no_rank(tmp_path: Path, said: dict[int, list[str]]) -> None:
    speak = [HEAD + "step 1", HEAD + "step 2", HEAD + "step 3", HEAD + "world_size=2"]
    files = {f"x-4242-{n}.out": [*said.get(n, []), *speak] for n in (0, 1)}
    found = read(tmp_path, files)
    assert {identity.rank for identity, event in logs(found) if "step" in event.text} == {None}
    assert any("may be that of a node" in reason or "label" in reason for reason in reasons(found))


def started(rank: int, label: str = "", **also: object) -> list[str]:
    own = [f"{key}={value}" for key, value in also.items()]
    said = [" ".join(["process group world_size=16", f"rank={rank} local_rank={rank % 8}", *own])]
    return [*(f"{HEAD}INFO {label}{text}" for text in [*said, *(f"step {n} loss 2.0" for n in range(9))]), *TRACEBACK]


@pytest.mark.parametrize("label", ["", "[rank {}] "])
def test_files_whose_workers_introduce_themselves_by_the_number_of_their_file_are_theirs_as_a_whole(
    tmp_path: Path, label: str
) -> None:
    files = {f"n{rank // 8}/worker-{rank}.out": started(rank, label.format(rank)) for rank in range(16)}
    assert ranks(read(tmp_path, files)) == {name: {number} for number, name in enumerate(files)}


@pytest.mark.parametrize("of", [lambda number: 8 * number, lambda number: 8 + number, lambda number: 0])
def test_files_whose_workers_introduce_themselves_by_other_numbers_are_nobodys(
    tmp_path: Path, of: Callable[[int], int]
) -> None:
    files = {f"worker-{number}.out": started(of(number)) for number in range(2)}
    found = logs(read(tmp_path, files))
    assert {identity.rank for identity, event in found if event.text.startswith("Traceback")} == {None}


def test_an_array_task_is_a_job_of_its_own(tmp_path: Path) -> None:
    files = {f"slurm-77_{n}.out": [HEAD + "step 1", "whatever"] for n in (1, 2)}
    found = read(tmp_path, files)
    assert {(event.file, identity.job) for identity, event in logs(found)} == {
        ("slurm-77_1.out", "77_1"),
        ("slurm-77_2.out", "77_2"),
    }
    assert ranks(found) == {"slurm-77_1.out": {None}, "slurm-77_2.out": {None}}


def test_a_batch_jobs_output_gives_the_job_its_name_and_labels_their_ranks(tmp_path: Path) -> None:
    rows = [HEAD + "hello", *(f"[rank3]: {line}" for line in TRACEBACK)]
    found = read(tmp_path, {"slurm-4242.out": rows})
    assert [(i.job, i.rank, e.stream) for i, e in logs(found)] == [("4242", None, "stdout"), ("4242", 3, "stdout")]


def test_a_worker_of_ray_is_one_process(tmp_path: Path) -> None:
    name = "session/logs/worker-0123456789abcdef-01000000-{}.out"
    rows = [":job_id:01000000", ":actor_name:RayTrainWorker"]
    found = read(tmp_path, {name.format(77): [*rows, RANK.format(2), "x"], name.format(78): [*rows, "y"]})
    assert ranks(found) == {name.format(77): {2}, name.format(78): {None}}
    assert {identity.role for identity, _ in logs(found)} == {"RayTrainWorker"}


@pytest.mark.parametrize("form", ["[1,{}]<stdout>:", "[prterun-n1-77@1,{}]<stdout>: "])
def test_ranks_of_mpirun_are_those_of_the_job_where_that_is_proven(tmp_path: Path, form: str) -> None:
    proven = [form.format(n % 2) + HEAD + f"step {n} world_size=2" for n in range(6)]
    unproven = [form.format(n % 2) + HEAD + f"step {n} world_size=16" for n in range(6)]
    found = read(tmp_path, {"proven.txt": proven, "unproven.txt": unproven})
    assert ranks(found) == {"proven.txt": {0, 1}, "unproven.txt": {None}}
    assert {event.stream for _, event in logs(found)} == {"stdout"}
    assert logs(found)[0][1].text.startswith(HEAD)


def test_a_prefix_of_host_and_number_is_a_rank_where_that_is_proven(tmp_path: Path) -> None:
    globally = [f"node0{n // 2}:{n}: {HEAD}step 1 world_size=4" for n in (0, 1, 2, 3) * 2]
    locally = [f"node0{n // 2}:{n % 2}: {HEAD}step 1 world_size=4" for n in (0, 1, 2, 3) * 2]
    found = read(tmp_path, {"a/global.txt": globally, "b/local.txt": locally})
    assert ranks(found) == {"a/global.txt": {0, 1, 2, 3}, "b/local.txt": {None}}
    assert {(i.rank, i.node) for i, e in logs(found) if i.rank is not None} == {(n, f"node0{n // 2}") for n in range(4)}


@pytest.mark.parametrize(
    "name, rows, read_as_log",
    [
        ("train.log", [HEAD + f"step {n} loss 2.0" for n in range(4)], True),
        ("train.txt", ["{'loss': '2.3'}"] * 4, True),
        ("bars.log", ["\r  0%| | 1/9 [00:01<00:09]\r{'loss': '2.3'}"] * 4, True),
        ("colon.log", ["\r  0%| | 1/9 [00:01<00:09]\rdone: 2.3"] * 4, False),
        ("console", ["n1:8:8 [0] NCCL INFO Bootstrap"] * 4, True),
        ("error.txt", ["Starting", *TRACEBACK], True),
        ("progress.txt", [f"2026-11-29 18:10:1{n}\tJob ID: 7\t# GPUs: 8\tIteration: {n}" for n in range(4)], True),
        ("notes.txt", ["We saw Traceback (most recent call last): often.", *["and so on"] * 9], False),
        ("notes.md", [HEAD + f"step {n} loss 2.0" for n in range(4)], False),
        ("gpu.csv", [f"2026/11/29 12:00:0{n}.123, 0, NVIDIA H100, 35, step {n}" for n in range(4)], False),
        ("one.log", [HEAD + "step 1"], False),
        ("nanogpt.txt", [f"iter {n}: loss 2.0, time 12.3ms" for n in range(4)], True),
        ("loop.txt", [f"Iteration {n}, lm loss = 2.0" for n in range(4)], True),
        ("solver.txt", [f"Iter {n} residual 2.0, glossary" for n in range(4)], False),
        ("dated.log", [HEAD + "something happened"] * 9, False),
    ],
)
def test_a_log_of_training_is_told_by_its_lines(tmp_path: Path, name: str, rows: list[str], read_as_log: bool) -> None:
    found = read(tmp_path, {name: rows, "slurm-1.out": ["x"]})
    assert (name in ranks(found)) is read_as_log
    assert (
        (name, "not a recognised format") in {(one.file, one.reason) for one in found.inputs.unused}
    ) is not read_as_log


def test_writers_that_interleave_in_other_encodings_and_long_lines_lose_nothing(tmp_path: Path) -> None:
    rows = [b"[1,%d]<stdout>:" % (n % 2) + HEAD.encode() + b"step %d world_size=2" % n for n in range(4)]
    rows += [b"[1,0]<stdout>:" + b"y" * 10_000_000, b"[1,1]<stderr>:caf\xe9", b"\xe4\xb8", b"[1,0]<stderr>:\0z"]
    torn = [b"[1,0]<stderr>:" + TRACEBACK[0].encode(), b"[1,1]<stdout>:" + HEAD.encode() + b"step 9"]
    torn += [b"[1,0]<stderr>:" + line.encode() for line in TRACEBACK[1:]]
    (tmp_path / "job").mkdir()
    (tmp_path / "job/x.log").write_bytes(b"\n".join(rows + torn))
    found = read(tmp_path, {})
    assert [note.reason for note in found.inputs.unused] == [
        "line of 10000015 bytes cut to 65536",
        "invalid UTF-8, replaced",
        "NUL bytes removed",
    ]
    by_rank = {rank: [e.text for i, e in logs(found) if i.rank == rank] for rank in (0, 1, None)}
    assert "\n".join(TRACEBACK) in by_rank[0] and "z" in by_rank[0]
    assert by_rank[1][-1] == HEAD + "step 9" and "caf\ufffd" in by_rank[1]
    assert by_rank[None] == ["\ufffd"]


def test_where_torchrun_writes_a_log_for_each_rank_others_are_left_aside(tmp_path: Path) -> None:
    rows = [HEAD + f"step {n} loss 2.0" for n in range(4)]
    found = read(tmp_path, {"console.log": rows, "run_abcd1234/attempt_0/0/stdout.log": rows})
    assert set(ranks(found)) == {"run_abcd1234/attempt_0/0/stdout.log"}
    assert [(note.file, note.reason) for note in found.inputs.unused] == [("console.log", "not a recognised format")]
    assert found.inputs.files == 1
