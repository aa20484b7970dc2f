"""``rankwatch stacks`` as a user runs it: what it says, what it writes, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from streams_support import SHARED

from rankwatch.cli import run
from rankwatch.demo import bundled_recording
from rankwatch.stacks_arguments import FORMATS
from rankwatch.stackviews import files

ALL = ["stacks.svg", "stacks.folded", "stacks.speedscope.json", "stacks.flame.txt"]
READING = "    read (data.py:7)\n    step (train.py:31)\n    <module> (train.py:9)\n"
WAITING = (
    "    all_reduce (torch/distributed/distributed_c10d.py:2799)\n    step (train.py:40)\n    <module> (train.py:9)\n"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Py-spy dumps of four ranks, of which rank 2 is elsewhere, and nothing else."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    for rank in range(4):
        pid = 100 + rank
        head = f'Process {pid}: python train.py\nPython v3.11.7 (/py)\n\nThread {pid} (idle): "MainThread"\n'
        (folder / f"pyspy_rank{rank}.txt").write_text(head + (READING if rank == 2 else WAITING))
    return folder


@pytest.fixture(scope="module")
def recording() -> Iterator[Path]:
    with bundled_recording() as folder:
        yield folder


def ran(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = run(["stacks", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_dumps_alone_are_drawn_without_a_time(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys, dumps)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "job recorded, attempt 0",
        "no standstill found; each thread as last seen",
        "nothing tells when the samples were taken",
        "ranks 0-1,3 in all_reduce (distributed_c10d.py:2799) under step (train.py:40); rank 2 in read (data.py:7)",
        "4 notes on what was not used, or with doubt; rankwatch diagnose has them",
        "",
        *(f"wrote recorded-stacks/{name}" for name in ALL),
    ]
    assert Path("recorded-stacks/stacks.folded").read_text() == (
        "trainer MainThread;<module> (train.py:9);step (train.py:40);all_reduce (distributed_c10d.py:2799) 3\n"
        "trainer MainThread;<module> (train.py:9);step (train.py:31);read (data.py:7) 1\n"
    )


def test_a_recorded_standstill_is_shown_before_ranks_fail(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, recording, "--out", "pictures")
    assert code == 0
    assert "rank 5 in __next__ (dataloader.py:725) under train.py:101, its dataloader in __getitem__" in out
    assert "standstill since 2026-11-29T18:10:57" in out and "before the first failure at 2026-11-29T18:11:27" in out
    drawn = ElementTree.parse("pictures/stacks.svg").getroot()
    titles = [title.text or "" for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert any("_try_get_data" in title and "has: rank 5\nmissing: 7 ranks 0-4,6-7" in title for title in titles)
    profiles = [one["name"] for one in json.loads(Path("pictures/stacks.speedscope.json").read_text())["profiles"]]
    assert profiles[1:3] == ["trainer MainThread: majority, 7 ranks 0-4,6-7", "trainer MainThread: minority, rank 5"]


def test_the_same_folder_gives_the_same_bytes(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, recording, "--out", "one")
    ran(capsys, recording, "--out", "two")
    assert all(Path("one", name).read_bytes() == Path("two", name).read_bytes() for name in ALL)


def test_a_time_shows_the_stacks_of_then(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ran(capsys, recording, "--at", "2026-11-29T18:10:50Z", "--format", "folded")
    assert "each thread as last seen in the minute before 2026-11-29T18:10:50.000Z" in out
    assert "wrote run-11-stacks/stacks.folded" in out and not Path("run-11-stacks/stacks.svg").exists()


def test_what_others_wrote_is_left_alone(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/stacks.folded").write_text("mine")
    code, out, err = ran(capsys, dumps, "--out", "out")
    assert (code, err.count("\n")) == (2, 1)
    assert "rank 2 in read (data.py:7)" in out and "wrote" not in out
    assert "out/stacks.folded is not what rankwatch wrote there" in err
    assert [file.name for file in Path("out").iterdir()] == ["stacks.folded"]


@pytest.mark.parametrize("time", ["2026-11-28", "2026-11-29T18:40:00Z"])
def test_a_time_without_samples_is_told_when_there_are_some(
    time: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, recording, "--at", time)
    assert (code, out, err.count("\n")) == (2, "", 1) and not list(Path.cwd().iterdir())
    assert "no sample of job run-11, attempt 0, lies in the minute before 2026-11-2" in err
    assert "; the first is of 2026-11-29T18:10:" in err and err.endswith("Z\n")


def test_a_folder_that_cannot_be_written_is_said_in_one_line(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("mine")
    code, out, err = ran(capsys, dumps, "--out", "file/a\nb")
    said = "rankwatch: cannot write into file/a b: not a directory; give another folder by --out\n"
    assert (code, err) == (2, said)
    assert "rank 2 in read (data.py:7)" in out and "wrote" not in out


def test_what_was_changed_since_or_is_a_link_is_left_alone(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, dumps, "--out", "out")[0] == 0
    assert ran(capsys, dumps, "--out", "out")[0] == 0
    Path("out/stacks.svg").write_text("mine now")
    assert ran(capsys, dumps, "--out", "out")[0] == 2
    Path("out/stacks.svg").unlink()
    Path("out/stacks.svg").symlink_to(dumps / "nowhere")
    assert ran(capsys, dumps, "--out", "out")[0] == 2
    assert not (dumps / "nowhere").exists()


def test_formats_of_one_picture_stay_together_and_those_of_another_go(
    dumps: Path, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, dumps, "--out", "out", "--format", "svg")
    ran(capsys, dumps, "--out", "out", "--format", "folded", "--format", "flame")
    assert {file.name for file in Path("out").glob("stacks*")} == {"stacks.svg", "stacks.folded", "stacks.flame.txt"}
    _, out, _ = ran(capsys, recording, "--out", "out", "--format", "svg")
    assert "removed out/stacks.folded, which showed other stacks" in out
    assert {file.name for file in Path("out").glob("stacks*")} == {"stacks.svg"}


def test_a_mark_that_names_files_elsewhere_removes_nothing(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("keep").write_text("x")
    digest = files._digest(b"x")
    Path("out").mkdir()
    Path("out", files.MARK).write_text(json.dumps({"shows": "", "files": {"../keep": digest, "..": digest}}))
    assert ran(capsys, dumps, "--out", "out")[0] == 0
    assert Path("keep").read_text() == "x"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "soon"], "'soon' is no time"),
        (["--at", "2020-01-01"], "shows frames in the minute before 2020-01-01T00:00:00.000Z"),
        (["--out", ""], "--out names no folder"),
        (["--attempt", "7"], "no stacks of attempt 7; there are some of 0"),
        (["--job", "b"], "no stacks of job b in "),
    ],
)
def test_what_cannot_be_shown_is_one_line_and_exit_code_2(
    words: list[str], said: str, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, dumps, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err and not list(Path.cwd().iterdir())


def test_a_folder_without_stacks_is_told_what_would_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pids.jsonl").write_text('{"rank": 0, "local_rank": 0, "node": "n", "pid": 7, "ts": 1795979667.3}\n')
    code, _, err = ran(capsys, tmp_path)
    assert code == 2 and err.count("\n") == 1
    assert "no stacks in " in err and "py-spy (text, JSON, JSON lines), pystack, faulthandler and gdb" in err


def test_stacks_of_nobody_known_are_no_picture_but_counted_beside_one(
    tmp_path: Path, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (dumps / "pyspy_rank0.txt").rename(alone / "pyspy_pid100.txt")
    code, _, err = ran(capsys, alone)
    assert code == 2 and "nothing tells whose the stacks of job recorded are (1 stack: the row names no rank)" in err
    (alone / "pyspy_pid100.txt").rename(dumps / "pyspy_pid100.txt")
    code, out, _ = ran(capsys, dumps)
    assert code == 0 and "left out: 1 stack of nobody known (the row names no rank)" in out


def test_a_name_that_is_contradicted_is_no_advice(
    tmp_path: Path, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (dumps / "pyspy_rank0.txt").rename(alone / "pyspy_rank1.txt")
    starts = [{"rank": rank, "local_rank": rank, "node": "n", "pid": 100 + rank, "ts": 1795979667.3} for rank in (0, 1)]
    (alone / "pids.jsonl").write_text("".join(json.dumps(start) + "\n" for start in starts))
    code, _, err = ran(capsys, alone)
    assert code == 2 and "(1 stack: sources disagree: rank 0 or 1)" in err and "rank3.txt" not in err


@pytest.mark.parametrize(("job", "name"), [("a/../../b", "a-..-..-b"), ("../", ""), ("run-11", "run-11"), ("ü b", "b")])
def test_a_jobs_name_leads_to_no_other_folder(job: str, name: str) -> None:
    assert files.safe_name(job) == name


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the recorded jobs in ../shared")
@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("pp-hang", ["rank 6 in wait_for_shard_server (train2.py:62)", "ranks 0-1,3-5,7-9,11 in all_reduce"]),
        ("skip-collective", ["ranks 0-7,9 at <module> (train2.py:106), ranks 8,10-11 at <module> (train2.py:105)"]),
        ("rl-healthy", ["actor: ", "critic: ", "reference: ", "rollout: "]),
        ("restart", ["attempt 1", "there are stacks of attempt 0 too; --attempt shows one"]),
        ("kill", ["(ended by SIGKILL at 2026-11-29T18:19:42.000Z)", "--at 2026-11-29T18:19:41.000Z shows them before"]),
    ],
)
def test_recorded_jobs(job: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, SHARED / job, "--format", "svg")
    assert code == 0
    assert [part for part in said if part not in out] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the recorded jobs in ../shared")
@pytest.mark.parametrize(
    ("job", "stack"),
    [
        ("pp-hang", "<module> (train2.py:90);wait_for_shard_server (train2.py:62) 1"),
        ("ckpt-stall", "<module> (train.py:158) 1"),
    ],
)
def test_a_rank_apart_is_folded_at_its_own_lines(job: str, stack: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, SHARED / job, "--format", "folded", "--out", "out")
    assert f"trainer MainThread;{stack}\n" in Path("out/stacks.folded").read_text()


def test_formats_are_those_that_the_command_line_offers() -> None:
    assert tuple(files.FORMATS) == FORMATS
