"""Whose what a folder tells of a job is, and that the job stage gets it."""

from __future__ import annotations

from pathlib import Path

import job_samples

from producers.recording import read_recording
from schemas import codec
from schemas.events import Job
from streams.job_description import described_by, merged_description

START = (
    "2026-11-29 18:15:43,851 [INFO] [rank {rank}] trainer: initialized process group backend=gloo world_size=2 "
    "rank={rank} local_rank=0 host=node0{rank} pid=7{rank}"
)


def recorded(folder: Path, files: dict[str, str], nodes: tuple[str, ...] = ("node00", "node01")) -> Path:
    for at, node in enumerate(nodes):
        log = folder / f"logs/{node}/run-1_abcdefgh/attempt_0/0/stderr.log"
        log.parent.mkdir(parents=True)
        lines = [START.format(rank=at), f"2026-11-29 18:15:44,100 [INFO] [rank {at}] trainer: iteration 1 loss 2.0"]
        log.write_text("\n".join(lines) + "\n")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def jobs(folder: Path) -> list[tuple[str, Job]]:
    return [
        (arrival.batch.identity.worker, event)
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Job) and not event.source.endswith("stderr.log")
    ]


def test_what_lies_at_the_top_is_the_jobs_what_names_a_node_or_rank_its_own(tmp_path: Path) -> None:
    files = {
        "ds_config.json": job_samples.DEEPSPEED,
        "env_rank1.txt": job_samples.ENVIRONMENT,
        "logs/node01/pip.txt": job_samples.PIP,
        "notes.md": "hello",
    }
    told = jobs(recorded(tmp_path, files))
    assert sorted((worker, event.source) for worker, event in told) == [
        ("1", "env_rank1.txt"),
        ("node:", "ds_config.json"),
        ("node:node01", "logs/node01/pip.txt"),
    ]
    assert {event.time_source for _, event in told} == {"inferred"}


def test_a_described_file_is_no_longer_left_aside_and_others_still_are(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {"config.yaml": job_samples.NEMO, "notes.md": "hello", "truth.json": '{"rank": 2}'})
    assert [one.file for one in read_recording(folder).inputs.unused] == ["notes.md", "truth.json"]


def test_lines_are_told_by_whoever_wrote_them(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {})
    log = folder / "logs/node01/run-1_abcdefgh/attempt_0/0/stdout.log"
    log.write_text(job_samples.MEGATRON_LINES + "\n")
    told = [
        (arrival.batch.identity.rank, event)
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Job) and event.source.endswith("stdout.log")
    ]
    assert [(rank, event.framework, event.layout, event.launch) for rank, event in told] == [
        (1, "megatron", {"tp": 2}, {"launcher": "torchrun"})
    ]


def test_where_two_jobs_lie_a_file_beside_both_is_of_neither(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {"ds_config.json": job_samples.DEEPSPEED})
    other = folder / "logs/node02/run-2_hgfedcba/attempt_0/0/stderr.log"
    other.parent.mkdir(parents=True)
    other.write_text(START.format(rank=2) + "\n2026-11-29 18:15:44,100 [INFO] [rank 0] trainer: iteration 1 loss 2.0\n")
    assert jobs(folder) == []
    assert [one.file for one in read_recording(folder).inputs.unused] == ["ds_config.json"]


def test_two_runs_of_one_script_are_told_alike(tmp_path: Path) -> None:
    runs = []
    for at, (user, job, port) in enumerate([("ann", "1", "29500"), ("bob", "2", "31000")]):
        script = job_samples.SCRIPT.replace("/home/bob", f"/home/{user}").replace("$SLURM_JOB_ID", job)
        files = {"launch.sh": script.replace("29500", port), "env.txt": job_samples.ENVIRONMENT.replace("bob", user)}
        told = jobs(recorded(tmp_path / str(at), files))
        runs.append(merged_description(described_by(event) for _, event in told))
    assert runs[0] == runs[1] is not None


def test_a_secret_in_a_line_is_not_sent_and_that_is_told(tmp_path: Path) -> None:
    folder = recorded(tmp_path, {})
    log = folder / "logs/node01/run-1_abcdefgh/attempt_0/0/stdout.log"
    log.write_text("export HF_TOKEN=zQsecret\niteration 1 loss 2.0\n")
    recording = read_recording(folder)
    assert "zQsecret" not in "".join(codec.encode(arrival.batch).decode() for arrival in recording.arrivals)
    assert [(one.file.rpartition("/")[2], one.reason, one.count) for one in recording.inputs.unused] == [
        ("stdout.log", "secrets in lines, replaced by ***", 1)
    ]
