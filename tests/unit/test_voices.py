"""Who wrote which line of a file that several write to; a local rank is never taken for a global one."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.recording import Recording, read_recording
from producers.times import SECOND
from schemas.events import Log, Topology
from schemas.identity import Identity

TRACEBACK = ["Traceback (most recent call last):", '  File "t.py", line 1, in f', "    f()", "ValueError: x"]
AGENT = "W1129 18:11:28.111000 23348 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 33110"
CPP = "[E1129 18:10:44.472278476 P.cpp:1] "
CRI = "2026-11-29T18:10:{:02d}.5Z stdout F "
RAY_STARTED = "(TorchTrainer pid=9) - (node_id=f67b, ip=10.0.0.{}, pid={}) world_rank={}, local_rank={}, node_rank=0"


def read(tmp_path: Path, *rows: str, file: str = "console.txt", **more: str) -> Recording:
    folder = tmp_path / "job"
    folder.mkdir(exist_ok=True)
    (folder / file).write_text("\n".join(rows) + "\n")
    for name, content in more.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return read_recording(folder)


def logs(recording: Recording) -> list[tuple[Identity, Log]]:
    found = [(a.batch.identity, e) for a in recording.arrivals for e in a.batch.events if isinstance(e, Log)]
    return sorted(found, key=lambda one: one[1].line)


def ranks(recording: Recording) -> dict[str, int | None]:
    """Ranks by the text of lines."""
    return {event.text: identity.rank for identity, event in logs(recording)}


def reason(recording: Recording, text: str) -> str:
    return next(identity.rank_reason for identity, event in logs(recording) if event.text == text)


def test_a_tee_prefix_is_a_local_rank_and_the_label_behind_it_the_global_one(tmp_path: Path) -> None:
    found = read(tmp_path, *["[default3]:hello"] * 4, f"[default3]:[rank11]:{CPP}x")
    assert ranks(found) == {"hello": None, f"{CPP}x": 11}
    assert {identity.local_rank for identity, _ in logs(found)} == {3}
    assert "default3 is a local rank" in reason(found, "hello")


def test_the_tee_of_a_role_called_rank_is_told_from_pytorchs_own_label(tmp_path: Path) -> None:
    own = f"{CPP}x"
    teed = read(tmp_path, *["[rank3]:step"] * 4, f"[rank3]:{own}", f"[rank0]:[rank8]:{own} 8")
    assert ranks(teed) == {"step": None, own: None, f"{own} 8": 8}
    assert {identity.local_rank for identity, _ in logs(teed)} == {0, 3}


def test_without_a_tee_the_label_is_the_global_rank(tmp_path: Path) -> None:
    own = f"{CPP}x"
    found = read(tmp_path, AGENT, f"[rank3]:{own}", *(f"[rank3]: {line}" for line in TRACEBACK), "whose line is this")
    assert ranks(found) == {AGENT: None, own: 3, "\n".join(TRACEBACK): 3, "whose line is this": None}
    assert {identity.local_rank for identity, _ in logs(found)} == {None}


def test_a_label_that_a_program_prints_itself_proves_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, AGENT, "[rank3]: loading", "[rank3]: done")
    assert ranks(found) == {AGENT: None, "loading": None, "done": None}
    teed = read(tmp_path, *["[default3]:[rank3]: loading"] * 4)
    assert ranks(teed) == {"loading": None}


def test_one_node_shows_where_the_world_is_no_larger_than_its_labels(tmp_path: Path) -> None:
    rows = [f"[default{n}]:[rank{n}]:[W1129 18:10:44.472278476 P.cpp:1] x{n}" for n in range(2)]
    more = [f"[default{n}]:y{n}" for n in range(2)]
    assert ranks(read(tmp_path, *rows, *more, "[default0]:world_size=2"))["y1"] == 1
    assert ranks(read(tmp_path, *rows, *more, "[default0]:world_size=4"))["y1"] is None
    assert ranks(read(tmp_path, *rows, *more))["y1"] is None


def test_tasks_of_srun_tell_nodes_apart(tmp_path: Path) -> None:
    rows = [f"{task}: [default{n}]:[rank{8 * task + n}]:{CPP}w{task}{n}" for task in range(2) for n in range(2)] + [
        f"{task}: [default{n}]:y{task}{n}" for task in range(2) for n in range(2)
    ]
    found = ranks(read(tmp_path, *rows, *rows))
    assert (found["y00"], found["y01"], found["y10"], found["y11"]) == (0, 1, 8, 9)


def test_ranks_that_do_not_fit_one_node_name_nobody_but_themselves(tmp_path: Path) -> None:
    rows = [f"0: [default3]:[rank3]:{CPP}a", f"0: [default3]:[rank11]:{CPP}b", "0: [default3]:c", "0: [default3]:d"]
    found = read(tmp_path, *rows)
    assert ranks(found) == {f"{CPP}a": 3, f"{CPP}b": 11, "c": None, "d": None}
    assert "several nodes" in reason(found, "c")


def test_interleaved_tracebacks_are_whole(tmp_path: Path) -> None:
    pairs = [f"[default{n}]:[rank{n + 8}]: {line}" for line in TRACEBACK for n in range(2)]
    assert [(e.text, i.rank) for i, e in logs(read(tmp_path, *pairs))] == [
        ("\n".join(TRACEBACK), rank) for rank in (8, 9)
    ]
    teed = [f"[default{n}]:{line}" for line in TRACEBACK for n in range(2)]
    assert [(e.text, i.rank) for i, e in logs(read(tmp_path, *teed))] == [("\n".join(TRACEBACK), None)] * 2
    labelled = [f"{n}: {line}" for line in TRACEBACK for n in range(2)]
    assert [e.text for _, e in logs(read(tmp_path, *labelled))] == ["\n".join(TRACEBACK)] * 2


def test_a_task_of_srun_is_a_rank_where_the_tasks_say_so(tmp_path: Path) -> None:
    rows = [f"{task}: [rank {task}] x{task}" for task in range(2)] + [f"{task}: y{task}" for task in range(2)]
    assert ranks(read(tmp_path, *rows, *rows))["y1"] == 1


def test_a_task_of_srun_is_a_rank_where_the_world_has_as_many(tmp_path: Path) -> None:
    rows = [f"{task}: y{task}" for task in range(4)] * 3
    assert ranks(read(tmp_path, *rows, "0: using world size: 4, x"))["y3"] == 3
    assert ranks(read(tmp_path, *rows, "0: using world size: 32, x"))["y3"] is None
    found = read(tmp_path, *rows)
    assert ranks(found)["y3"] is None and "task of srun" in reason(found, "y3")


OTHERS = "rank 1/4 timed out"


@pytest.mark.parametrize(
    ("firsts", "proven"),
    [
        (["rank 0/4", "rank 1/4", "Rank 2 of 4", "rank: 3/4"], True),
        (["rank 0/4", "rank 1/4", "rank 2/4", "hello"], False),
        (["rank 0/4", "rank 1/4", "rank 2/4", OTHERS], False),
        (["rank 0/4", "rank 8/4", "rank 2/4", "rank 3/4"], False),
        (["rank 0/32", "rank 1/32", "rank 2/32", "rank 3/32"], False),
        (["rank 1/4", "rank 0/4", "rank 2/4", "rank 3/4"], False),
        (["rank 0/4", "rank 1/4", "rank 2/4", "crank 3/4"], False),
        (["rank 0/4.5", "rank 1/4", "rank 2/4", "rank 3/4x"], False),
    ],
)
def test_tasks_that_all_first_name_their_own_number_of_the_world_are_ranks(
    tmp_path: Path, firsts: list[str], proven: bool
) -> None:
    rows = [f"{task}: init: {first} ready" for task, first in enumerate(firsts)]
    rows += [f"{task}: {line}" for line in (*[f"y{n}" for n in range(3)], OTHERS) for task in range(4)]
    found = {(identity.rank, event.text) for identity, event in logs(read(tmp_path, *rows)) if event.text == OTHERS}
    assert found == ({(rank, OTHERS) for rank in range(4)} if proven else {(None, OTHERS)})


@pytest.mark.parametrize(
    ("said", "node"),
    [
        ("rank {0}/2 host node7 cuda:0", "node7"),
        ("rank={0} world_size=2 host=alpha", "alpha"),
        ("world_size=2 rank={0} hostname: n1.x.", "n1.x"),
        ("rank {0}/2 host is up", ""),
        ("rank {0}/2 ghost node7", ""),
        ("rank {0}/2", ""),
    ],
)
def test_a_tasks_node_is_the_host_in_the_line_in_which_it_names_itself(tmp_path: Path, said: str, node: str) -> None:
    rows = [f"{task}: init: {said.format(task)}" for task in range(2)]
    rows += [f"{task}: lost host=other9 of rank 1/2" for task in range(2)] * 3
    assert {identity.node for identity, _ in logs(read(tmp_path, *rows))} == {node}


def test_a_task_a_node_is_no_rank(tmp_path: Path) -> None:
    rows = [f"{task}: [rank {8 * task}] x{task}" for task in range(2)] + [f"{task}: y{task}" for task in range(2)]
    assert ranks(read(tmp_path, *rows, *rows)) == {"[rank 0] x0": None, "[rank 8] x1": None, "y0": None, "y1": None}


def test_tasks_of_a_heterogeneous_job_are_no_ranks(tmp_path: Path) -> None:
    rows = [f"P{part} {task}: [rank {task}] y{part}{task}" for part in range(2) for task in range(2)]
    assert set(ranks(read(tmp_path, *rows, *rows)).values()) == {None}


def test_a_process_of_ray_is_the_rank_that_a_line_says(tmp_path: Path) -> None:
    rows = [
        "(TorchTrainer pid=9) Started distributed worker processes:",
        RAY_STARTED.format(1, 11, 0, 0),
        RAY_STARTED.format(2, 12, 1, 0),
        "(RayTrainWorker pid=12, ip=10.0.0.2) x",
        "(RayTrainWorker pid=13, ip=10.0.0.2) nobody",
        "(RayTrainWorker pid=14, ip=10.0.0.3) Setting up process group for: env:// [rank=2, world_size=4]",
        "(RayTrainWorker pid=14, ip=10.0.0.3) z",
        "the driver",
    ]
    found = read(tmp_path, *rows)
    said = ranks(found)
    assert (said["x"], said["nobody"], said["z"], said["the driver"]) == (1, None, 2, None)
    assert {(i.rank, i.local_rank, i.node, i.role) for i, e in logs(found) if e.text == "x"} == {
        (1, 0, "10.0.0.2", "RayTrainWorker")
    }
    assert {i.process_type for i, e in logs(found) if e.text == "the driver"} == {"launcher"}
    assert "which rank this process is" in reason(found, "nobody")


def test_a_list_that_contradicts_itself_or_the_process_names_nobody(tmp_path: Path) -> None:
    twice = [RAY_STARTED.format(1, 11, 0, 0), RAY_STARTED.format(1, 11, 1, 1), "(W pid=11, ip=10.0.0.1) x"]
    assert ranks(read(tmp_path, *twice))["x"] is None
    other = [RAY_STARTED.format(1, 11, 0, 0), "(W pid=11, ip=10.0.0.1) [rank=2, world_size=4]"]
    found = read(tmp_path, *other)
    assert "sources disagree" in reason(found, "[rank=2, world_size=4]")


def test_ranks_of_several_kinds_of_actors_are_kept_apart(tmp_path: Path) -> None:
    rows = [
        f"({actor} pid={pid}) [rank={rank}, world_size=2] {actor}"
        for actor, pid, rank in [("PolicyModelActor", 1, 0), ("PolicyModelActor", 2, 1), ("CriticModelActor", 3, 0)]
    ]
    assert sorted({identity.worker for identity, _ in logs(read(tmp_path, *rows))}) == [
        "CriticModelActor/0",
        "PolicyModelActor/0",
        "PolicyModelActor/1",
    ]


def test_errors_behind_one_of_an_unknown_rank_name_nobody(tmp_path: Path) -> None:
    unknown = [f"[default1]:{line}" for line in TRACEBACK]
    labelled = [f"[default0]:[rank0]: {line}" for line in TRACEBACK]
    step = f"[default0]:[rank0]:{CPP}x"
    found = read(tmp_path, *unknown, *labelled, step)
    assert [(i.rank, i.local_rank) for i, _ in logs(found)] == [(None, 1), (None, 0), (0, 0)]
    assert any("name nobody" in note.reason and note.line == 1 for note in found.inputs.unused)
    before = read(tmp_path, *labelled, *unknown, step)
    assert [(i.rank, i.local_rank) for i, _ in logs(before)] == [(0, 0), (None, 1), (0, 0)]
    assert not any("name nobody" in note.reason for note in before.inputs.unused)


def test_a_process_of_ray_announces_itself(tmp_path: Path) -> None:
    found = read(tmp_path, "(W pid=11) 2026-11-29 18:10:00,000 [rank=2, world_size=4]", "(W pid=11) x")
    topologies = [(a.batch.identity, e) for a in found.arrivals for e in a.batch.events if isinstance(e, Topology)]
    assert [(identity.rank, event.pid) for identity, event in topologies] == [(2, 11)]


def test_xtuner_names_the_global_rank_line_by_line(tmp_path: Path) -> None:
    rows = [f"[XTuner][RANK {rank}][2025-11-04 10:00:00][INFO] x{rank}" for rank in (3, 4)] * 2
    found = logs(read(tmp_path, *rows))
    assert [(i.rank, e.level, e.text[-2:]) for i, e in found] == [(3, "INFO", "x3"), (4, "INFO", "x4")] * 2


def test_a_pod_is_a_node_and_its_lines_without_a_label_have_no_rank(tmp_path: Path) -> None:
    rows = ["[pod/w-1/pytorch] [rank 0] x", f"[pod/w-1/pytorch] [rank9]:{CPP}x", "[pod/w-1/pytorch] y"]
    found = logs(read(tmp_path, *rows))
    assert [(i.rank, i.node) for i, _ in found] == [(None, "w-1"), (9, "w-1"), (None, "w-1")]


def test_the_envelopes_time_counts_where_the_text_has_none_or_a_worse_one(tmp_path: Path) -> None:
    rows = [
        CRI.format(10) + "no time",
        CRI.format(11) + "2026-11-29 18:10:10,900 fine",
        CRI.format(12) + "[2026-11-29 18:10:12] host:1:1 [0] NCCL WARN whole seconds",
        CRI.format(13) + "2026-11-29 20:10:12,900 another zone",
        CRI.format(14) + "W1129 18:10:14.400000 2 torch/x.py:1] no year",
        CRI.format(15) + "\n".join(TRACEBACK).replace("\n", "\n" + CRI.format(16)),
    ]
    base = 1_795_975_800
    found = logs(read(tmp_path, *rows))
    assert [((e.time - base * SECOND) / SECOND, e.time_source) for _, e in found] == [
        (10.5, "captured"),
        (10.9, "printed"),
        (12.5, "captured"),
        (13.5, "captured"),
        (14.4, "printed"),
        (15.5, "captured"),
    ]
    assert {e.stream for _, e in found} == {"stdout"}


def test_a_line_without_any_time_takes_that_of_the_line_before_whoever_wrote_it(tmp_path: Path) -> None:
    rows = ["[default0]:2026-11-29 18:10:10,000 a", "[default1]:b", "[default0]:2026-11-29 18:10:12,000 c"]
    found = logs(read(tmp_path, *rows, "[default1]:d"))
    assert [(e.time / SECOND % 60, e.precision_ns / SECOND) for _, e in found if e.text in "bd"] == [(10, 2), (12, 1)]


def test_the_agents_own_lines_are_the_launchers(tmp_path: Path) -> None:
    found = read(tmp_path, *["[default3]:hello"] * 4, AGENT, file="agent_n1.log")
    assert {(i.process_type, i.node) for i, e in logs(found) if e.text == AGENT} == {("launcher", "n1")}
    assert {(i.process_type, i.local_rank) for i, e in logs(found) if e.text == "hello"} == {("trainer", 3)}


def test_where_workers_have_files_of_their_own_the_console_is_the_launchers(tmp_path: Path) -> None:
    own = {"n1__run_abcdefgh__attempt_0__3__stdout_dot_log": "2026-11-29 18:10:10,000 [rank 3] hello\n"}
    found = read(tmp_path, *["[default3]:hello"] * 4, AGENT, file="agent_n1.log", **own)
    assert [(i.process_type, i.rank) for i, e in logs(found) if e.text == "[default3]:hello"] == [
        ("launcher", None)
    ] * 4


def test_a_worker_that_a_table_knows_is_that_worker(tmp_path: Path) -> None:
    row = '{"rank": 2, "local_rank": 1, "node": "n1", "pid": 11, "ts": 1795975800.5}\n'
    rows = ["(W pid=11) 2026-11-29 18:10:10,000 x", "(W pid=11) y"]
    found = logs(read(tmp_path, *rows, pids_dot_jsonl=row))
    assert {(i.rank, i.node, i.local_rank) for i, _ in found} == {(2, "n1", 1)}
    disputed = read(tmp_path, *rows, "(W pid=11) [rank=3, world_size=4]", pids_dot_jsonl=row)
    assert {i.rank for i, _ in logs(disputed)} == {None}
    assert any("sources disagree" in note.reason for note in disputed.inputs.unused)


def test_a_record_behind_a_progress_bar_has_the_labels_of_both(tmp_path: Path) -> None:
    rows = ["[default0]: 10%\r 20%\r[rank8]:[E1129 18:10:44.472278476 P.cpp:1] x", *["[default0]:y"] * 4]
    found = logs(read(tmp_path, *rows))
    assert [(i.rank, i.local_rank) for i, _ in found] == [(8, 0)] + [(None, 0)] * 4


@pytest.mark.parametrize("cut", ['{"log":"half', '{"log":"x\\n","stream":"stdout"'])
def test_a_broken_envelope_is_said_and_its_line_kept(tmp_path: Path, cut: str) -> None:
    good = '{"log":"fine\\n","stream":"stdout","time":"2026-11-29T18:10:10.5Z"}'
    found = read(tmp_path, *[good] * 3, cut)
    assert len(logs(found)) == 4
    if cut.endswith("half"):
        assert ("envelope cut off or never ended; what it held is kept", 4) in {
            (note.reason, note.line) for note in found.inputs.unused
        }


TIME = "2026-11-29 18:10:{:02d},500"
LABELS = ("[INFO] [rank {}] train:", "- INFO - train - [Rank {}]", "INFO train: (rank {})", "[RANK{}]", "rank={} |")


def labelled(label: str, told: str = "world_size=4", ranks: int = 4) -> list[str]:
    """A file of a program that puts labels of its own before its lines, which come by turns."""
    first = [f"{TIME.format(1)} {label.format(rank)} start {told.format(rank, rank % 2)}" for rank in range(ranks)]
    return first + [
        f"{TIME.format(step)} {label.format(rank)} step {step} of {rank}"
        for step in range(2, 8)
        for rank in range(ranks)
    ]


def rank_of(recording: Recording, words: str) -> int | None:
    return next(identity.rank for identity, event in logs(recording) if event.text.endswith(words))


@pytest.mark.parametrize("label", LABELS)
def test_a_programs_own_labels_are_ranks_where_the_world_is_as_large(tmp_path: Path, label: str) -> None:
    found = read(tmp_path, *labelled(label), "a line of anybody")
    assert [rank_of(found, f"step 5 of {rank}") for rank in range(4)] == [0, 1, 2, 3]
    assert rank_of(found, "a line of anybody") is None


@pytest.mark.parametrize(
    ("name", "rows", "rank"),
    [
        ("they say so, and one is no local rank", labelled(LABELS[0], "rank={} local_rank={}"), 3),
        ("they say otherwise", labelled(LABELS[0], "rank=1{} local_rank={}"), None),
        ("each may be a local rank", labelled(LABELS[0], "rank={} local_rank={}", ranks=2), None),
        ("the world is larger", labelled(LABELS[0], "world_size=8"), None),
        ("nothing is said of it", labelled(LABELS[0], ""), None),
        ("the words are about a rank", labelled("[INFO] train: waiting for [rank {}]"), None),
        ("most lines have none", labelled(LABELS[0]) + ["without"] * 9, None),
    ],
)
def test_a_programs_own_labels_are_no_ranks_where_nothing_shows_it(
    tmp_path: Path, name: str, rows: list[str], rank: int | None
) -> None:
    found = read(tmp_path, *rows)
    assert rank_of(found, f"of {rank or 1}") == rank, name


def test_a_file_of_one_label_is_of_the_rank_that_it_says_itself(tmp_path: Path) -> None:
    own = [row for row in labelled(LABELS[0], "rank={} local_rank={} world_size=4") if "[rank 3]" in row]
    other = [row for row in labelled(LABELS[0], "") if "[rank 2]" in row]
    found = read(tmp_path, *own, file="worker_a.log", worker_b_dot_log="\n".join(other))
    assert (rank_of(found, "step 5 of 3"), rank_of(found, "step 5 of 2")) == (3, None)


def prefixed(label: int, *lines: str) -> list[str]:
    return [f"[rank{label}]: {line}" for line in lines]


def test_where_a_label_stands_before_most_lines_a_traceback_proves_it_no_more_than_these(tmp_path: Path) -> None:
    rows = [*prefixed(0, "step 1", *TRACEBACK, "step 2"), *prefixed(1, "step 1", "step 2"), AGENT]
    found = read(tmp_path, *rows)
    assert set(ranks(found).values()) == {None}
    assert "whether the label rank1" in reason(found, "step 2")
    assert {i.process_type for i, e in logs(found) if e.text in (AGENT, "step 2")} == {"launcher", "trainer"}


def test_few_lines_that_a_program_labels_itself_leave_tracebacks_to_pytorchs_hook(tmp_path: Path) -> None:
    rows = [*prefixed(3, "loading", *TRACEBACK), *(f"line {n}" for n in range(5))]
    assert ranks(read(tmp_path, *rows))["\n".join(TRACEBACK)] == 3


def test_lines_that_name_their_rank_or_pytorchs_loggers_tell_what_such_a_label_is(tmp_path: Path) -> None:
    pod = "[pod/w-1/pytorch] "
    rows = [pod + line for line in [*prefixed(1, "a", "[rank 9] b", *TRACEBACK), *prefixed(2, "c", "d")]]
    assert ranks(read(tmp_path, *rows)) == {"a": 9, "[rank 9] b": 9, "\n".join(TRACEBACK): 9, "c": None, "d": None}
    rows = [pod + line for line in [*prefixed(9, "a", "b", *TRACEBACK), f"[rank9]:{CPP}x"]]
    assert ranks(read(tmp_path, *rows)) == {"a": None, "b": None, "\n".join(TRACEBACK): 9, f"{CPP}x": 9}
    before = [pod + line for line in prefixed(0, "a", f"{CPP}x", *TRACEBACK)]
    assert set(ranks(read(tmp_path, *before)).values()) == {None}


def test_a_kubelets_file_is_of_the_pod_that_its_place_names(tmp_path: Path) -> None:
    place = "train_llm-worker-1_0f3c9d1e-7b5a-4826-9c0d-1e2f3a4b5c61/pytorch"
    rows = [
        CRI.format(10 + n) + line for n, line in enumerate([*prefixed(2, "a", "[rank 2] b"), *prefixed(3, "c", "d")])
    ]
    (tmp_path / "job" / place).mkdir(parents=True)
    found = read(tmp_path, *rows, file=f"{place}/0.log")
    assert ranks(found) == {"a": 2, "[rank 2] b": 2, "c": None, "d": None}
    assert {identity.node for identity, _ in logs(found)} == {"llm-worker-1"}


def test_pytorchs_label_behind_one_with_a_blank_is_the_global_rank(tmp_path: Path) -> None:
    raised = [f"[rank9]: {line}" for line in TRACEBACK]
    rows = [*prefixed(1, "step 1", *raised), *prefixed(0, "step 1", "step 2"), AGENT]
    assert ranks(read(tmp_path, *rows)) == {"step 1": None, "\n".join(TRACEBACK): 9, "step 2": None, AGENT: None}


def test_a_launchers_file_is_of_the_job_that_its_name_tells(tmp_path: Path) -> None:
    rows = [*["[default0]:step"] * 4, AGENT]
    more = {
        "slurm-812345_dot_out": "\n".join(f"{n}: using world size: 2, step 1 loss: 1.5" for n in (0, 1) for _ in "ab")
    }
    both = read(tmp_path, *rows, file="train-812399-0.out", **more)
    assert {i.job for i, e in logs(both) if e.text in ("step", AGENT)} == {"812399"}
