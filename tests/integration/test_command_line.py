"""The commands as a user runs them: exit codes, messages, formats, bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankwatch.demo import bundled_recording

COMMAND = [sys.executable, "-m", "rankwatch"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("recording") / "job"
    with bundled_recording() as folder:
        shutil.copytree(folder, place)
    yield place


@pytest.fixture
def faulty(recording: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(recording, tmp_path / "faulty"))


def rankwatch(*words: str | Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "XDG_DATA_HOME": str(home), "RANKWATCH_CLICKHOUSE": "none", **environment}
    done = subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, env=surroundings, check=False, timeout=180
    )
    assert "Traceback (most recent call last)" not in done.stderr
    return done


def diagnosed(folder: Path, home: Path, *words: str) -> dict[str, object]:
    done = rankwatch("diagnose", folder, "--format", "json", *words, home=home)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def unused(found: dict[str, object]) -> list[dict[str, object]]:
    inputs = found["inputs"]
    assert isinstance(inputs, dict)
    listed: list[dict[str, object]] = inputs["unused"]
    return listed


def named(found: dict[str, object]) -> list[list[int]]:
    incidents = found["incidents"]
    assert isinstance(incidents, list)
    return [[suspect["rank"] for suspect in incident["suspects"]] for incident in incidents]


def test_a_faulty_job_exits_with_1_and_names_the_rank(recording: Path, tmp_path: Path) -> None:
    done = rankwatch("diagnose", recording, home=tmp_path)
    assert done.returncode == 1
    assert "rank 5" in done.stdout and "victims    ranks 0-4,6-7" in done.stdout
    assert "\x1b[" not in done.stdout and done.stderr == ""


def test_before_the_fault_it_exits_with_0(recording: Path, tmp_path: Path) -> None:
    done = rankwatch("diagnose", recording, "--until", "2026-11-29T18:10:50Z", home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no incident" in done.stdout


def test_the_html_page_escapes_what_logs_say(faulty: Path, tmp_path: Path) -> None:
    log = next(faulty.glob("logs/node02/*/attempt_0/1/stderr.log"))
    text = log.read_text().replace(
        "step 30 timers", "<script>alert(1)</script>\n2026-11-29 18:10:54,000 step 30 timers"
    )
    log.write_text(text + "[rank5]: Traceback (most recent call last):\n[rank5]: ValueError: <script>x</script>\n")
    done = rankwatch("diagnose", faulty, "--format", "html", home=tmp_path)
    assert done.stdout.startswith("<!doctype html>") and "<script" not in done.stdout


@pytest.mark.parametrize("arguments", [["diagnose"], ["nonsense"], ["diagnose", ".", "--format", "xml"]])
def test_wrong_usage_exits_with_2(arguments: list[str], tmp_path: Path) -> None:
    assert rankwatch(*arguments, home=tmp_path).returncode == 2


@pytest.mark.parametrize(("name", "message"), [("absent", "absent"), ("empty", "empty"), ("alien", "recording")])
def test_a_folder_that_cannot_be_diagnosed_exits_with_2_and_says_why(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "alien").mkdir()
    (tmp_path / "alien" / "holiday.jpg").write_bytes(b"\xff\xd8\x00\x00")
    done = rankwatch("diagnose", tmp_path / name, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_time_that_is_none_exits_with_2(recording: Path, tmp_path: Path) -> None:
    done = rankwatch("diagnose", recording, "--until", "yesterday", home=tmp_path)
    assert done.returncode == 2 and "yesterday" in done.stderr


def test_damaged_files_are_listed_and_the_rest_is_used(faulty: Path, tmp_path: Path) -> None:
    (faulty / "core.1234").write_bytes(b"\x7fELF\x00\x00" * 1000)
    metrics = faulty / "metrics.jsonl"
    metrics.write_text(metrics.read_text()[:-40])
    stacks = faulty / "stacks" / "node01.jsonl"
    stacks.write_bytes(b'{"ts": 1795975840.5, "node": "node01", "rank": 2, "pi\n' + stacks.read_bytes())
    log = next(faulty.glob("logs/node00/*/attempt_0/1/stderr.log"))
    log.write_bytes(log.read_bytes().replace(b"building model", b"building \xff\xfe model", 1) + b"x" * 3_000_000)
    found = diagnosed(faulty, tmp_path)
    assert named(found) == [[5]]
    files = {(one["file"], bool(one["line"])) for one in unused(found)}
    assert ("core.1234", False) in files and ("metrics.jsonl", True) in files and ("stacks/node01.jsonl", True) in files
    assert (
        sum(str(one["file"]).endswith("node00/" + log.parts[-4] + "/attempt_0/1/stderr.log") for one in unused(found))
        == 2
    )
    assert all(one["reason"] for one in unused(found))


def test_a_clock_that_jumps_back_moves_no_blame(faulty: Path, tmp_path: Path) -> None:
    log = next(faulty.glob("logs/node03/*/attempt_0/0/stderr.log"))
    log.write_text(log.read_text().replace("2026-11-29 18:10:52", "2026-11-29 17:10:52"))
    found = diagnosed(faulty, tmp_path)
    assert named(found) == [[5]]
    assert any("clock" in str(one["reason"]) for one in unused(found))


def test_a_rank_known_from_one_source_only_is_kept(faulty: Path, tmp_path: Path) -> None:
    for log in faulty.glob("logs/node01/*/attempt_0/0/*.log"):
        log.unlink()
    rows = [line for line in (faulty / "pids.jsonl").read_text().splitlines() if '"rank": 2,' not in line]
    (faulty / "pids.jsonl").write_text("\n".join(rows) + "\n")
    assert named(diagnosed(faulty, tmp_path)) == [[5]]


def test_the_same_folder_twice_and_under_another_name_gives_the_same_bytes(
    recording: Path, faulty: Path, tmp_path: Path
) -> None:
    first = rankwatch("diagnose", recording, "--format", "json", home=tmp_path, PYTHONHASHSEED="1")
    second = rankwatch("diagnose", faulty, "--format", "json", home=tmp_path, PYTHONHASHSEED="2")
    assert first.stdout == second.stdout


def test_a_reader_that_goes_away_is_no_error(recording: Path, tmp_path: Path) -> None:
    words = [*COMMAND, "diagnose", str(recording), "--format", "json"]
    surroundings = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "RANKWATCH_CLICKHOUSE": "none"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert "Traceback" not in run.stderr.read()


def test_the_demo_shows_the_incident_and_the_sql_that_shows_it_again(tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'data' / 'clickhouse'}"
    demo = rankwatch("demo", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert demo.returncode == 0, demo.stderr
    assert "rank 5 on node02" in demo.stdout
    queries = [line.strip() for line in demo.stdout.splitlines() if ' sql "SELECT' in line]
    assert len(queries) == 2
    answer = rankwatch("sql", queries[0].split('"')[1], "--format", "tsv", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[1].startswith("hang\tsupported\t[5]")


def test_storing_a_run_twice_changes_nothing_that_is_seen(recording: Path, tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    for _ in range(2):
        assert rankwatch("diagnose", recording, home=tmp_path, RANKWATCH_CLICKHOUSE=place).returncode == 1
    tables = ("logs FINAL", "incidents_latest", "runs FINAL")
    sql = " UNION ALL ".join(f"SELECT count() FROM {table}" for table in tables)
    counts = rankwatch("sql", sql, "--format", "tsv", home=tmp_path, RANKWATCH_CLICKHOUSE=place).stdout.split()[1:]
    assert sorted(map(int, counts))[:2] == [1, 1]


def test_a_query_that_is_wrong_exits_with_2_and_one_line(tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    done = rankwatch("sql", "SELECT nothing FROM nowhere", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert done.returncode == 2 and done.stderr.startswith("rankwatch: ") and done.stderr.count("\n") == 1


def test_version_and_help_say_what_they_should(tmp_path: Path) -> None:
    assert rankwatch("--version", home=tmp_path).stdout.startswith("rankwatch 0.")
    assert "examples:" in rankwatch("--help", home=tmp_path).stdout
