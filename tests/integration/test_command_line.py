"""The commands as a user runs them: exit codes, messages, formats, bad input."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname

import msgspec
import pytest

from producers.recording import Unused
from rankwatch import database, page, terminal, text
from rankwatch import home as places
from rankwatch.cli import parser, run
from rankwatch.demo import bundled_recording
from rankwatch.diagnose import Diagnosis, as_json, diagnose
from rankwatch.errors import UsageError
from rankwatch.text_job import job_line
from rankwatch.times import parse_time
from sinks.clickhouse import open_client

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


@pytest.fixture(scope="module")
def found(recording: Path) -> Diagnosis:
    """What is found in the recording."""
    return diagnose(recording)


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
    assert "no incident" in done.stdout and "as told by 2026-11-29T18:10:50.000Z" in done.stdout
    done = rankwatch("diagnose", recording, "--until", "2020-01-01", home=tmp_path)
    assert "nothing was there by 2020-01-01T00:00:00.000Z: the recording begins at 2026-" in done.stdout


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


@pytest.mark.parametrize(
    ("words", "time"),
    [
        ("0", 0),
        ("1", 1_000_000_000),
        ("1795975880.5", 1_795_975_880_500_000_000),
        ("1795975880500", 1_795_975_880_500_000_000),
        ("1795975880500.25", 1_795_975_880_500_250_000),
        ("20261129", 1_795_910_400_000_000_000),
        ("2026-11-29T18:11:20.5Z", 1_795_975_880_500_000_000),
        ("2026-11-29T18:11:20.5", 1_795_975_880_500_000_000),
        ("2026-11-29T19:11:20.5+01:00", 1_795_975_880_500_000_000),
        ("2200-12-31T23:59:59Z", 7_289_654_399_000_000_000),
    ],
)
def test_times_of_all_forms(words: str, time: int) -> None:
    assert parse_time(words) == time


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-5", "outside the years 1970 to 2200"),
        ("-0.5", "outside the years 1970 to 2200"),
        ("0001-01-01T00:00:00+14:00", "outside the years 1970 to 2200"),
        ("9999-12-31T23:59:59-14:00", "outside the years 1970 to 2200"),
        ("1969-12-31T23:59:59Z", "outside the years 1970 to 2200"),
        ("2201-01-01", "outside the years 1970 to 2200"),
        ("1795975880500000000", "outside the years 1970 to 2200"),
        ("9" * 5000, "is no time"),
        ("\u0661\u0662\u0663", "is no time"),
        ("", "is no time"),
    ],
)
def test_times_that_cannot_be_used_are_refused(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_time(words)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "-5"])
def test_a_time_out_of_range_exits_with_2_and_one_line(time: str, recording: Path, tmp_path: Path) -> None:
    done = rankwatch("diagnose", recording, f"--until={time}", home=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert time in done.stderr


@pytest.mark.parametrize("time", ["0", "1", "1795975850000"])
def test_the_report_says_until_when_it_sees(time: str, recording: Path, tmp_path: Path) -> None:
    found = diagnosed(recording, tmp_path, "--until", time)
    assert found["until"] in ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z", "2026-11-29T18:10:50.000Z")
    assert found["incidents"] == []


def test_without_an_end_until_is_null(found: Diagnosis) -> None:
    assert as_json(found)["until"] is None


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


@pytest.mark.parametrize(
    "words",
    ["diagnose {} --clickhouse none", "diagnose {} --format json --clickhouse none", "sql SHOW\tTABLES", "migrate"],
)
def test_a_reader_that_goes_away_is_no_error(words: str, recording: Path, tmp_path: Path) -> None:
    arguments = [word.replace("\t", " ") for word in words.format(recording).split(" ")]
    surroundings = {**os.environ, "RANKWATCH_CLICKHOUSE": f"chdb://{tmp_path / 'clickhouse'}"}
    (tmp_path / "clickhouse").mkdir()
    ours, theirs = os.pipe()
    os.close(ours)
    process = [*COMMAND, *arguments]
    done = subprocess.run(process, stdout=theirs, stderr=subprocess.PIPE, env=surroundings, check=False, timeout=180)
    alike = subprocess.run(process, stdout=theirs, stderr=theirs, env=surroundings, check=False, timeout=180)
    os.close(theirs)
    assert (done.returncode, done.stderr, alike.returncode) == (141, b"", 141)


@pytest.mark.parametrize("closed", [(1,), (0, 1), (1, 2), (0, 1, 2)])
def test_a_closed_output_is_said_and_nothing_is_run(closed: tuple[int, ...], recording: Path, tmp_path: Path) -> None:
    shut = " ".join(f"{number}>&-" for number in closed)
    words = f'"$@" {shut}; echo "code $?" >&3'
    shell = ["sh", "-c", f"exec 3>&1; {words}", "sh", *COMMAND, "diagnose", str(recording)]
    place = f"chdb://{tmp_path / 'clickhouse'}"
    surroundings = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "RANKWATCH_CLICKHOUSE": place}
    done = subprocess.run(shell, capture_output=True, text=True, env=surroundings, check=False, timeout=180)
    assert done.stdout == "code 2\n"
    assert done.stderr == ("" if 2 in closed else "rankwatch: standard output is closed\n")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_error_output_takes_nothing_away(recording: Path, tmp_path: Path) -> None:
    shell = ["sh", "-c", '"$@" 2>&-', "sh", *COMMAND, "diagnose", str(recording)]
    place = f"chdb://{tmp_path / 'clickhouse'}"
    surroundings = {**os.environ, "RANKWATCH_CLICKHOUSE": place}
    done = subprocess.run(shell, capture_output=True, text=True, env=surroundings, check=False, timeout=180)
    assert done.returncode == 1 and "rank 5" in done.stdout


NARROW = [
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("environment", NARROW, ids=["latin-1", "C"])
def test_an_output_that_cannot_take_every_character_gets_what_it_can(
    environment: dict[str, str], faulty: Path, tmp_path: Path
) -> None:
    (faulty / "price in \u20ac.bin").write_bytes(b"\x00")
    shown = {}
    for form in ("text", "json", "html"):
        words = [*COMMAND, "diagnose", str(faulty), "--format", form, "--clickhouse", "none"]
        done = subprocess.run(words, capture_output=True, env={**os.environ, **environment}, check=False, timeout=180)
        assert (done.returncode, done.stderr) == (1, b"")
        shown[form] = done.stdout
    assert b"price in " in shown["text"] and b".bin" in shown["text"]
    assert shown["json"].isascii() and shown["html"].isascii()
    assert any(str(one["file"]).startswith("price in ") for one in json.loads(shown["json"])["inputs"]["unused"])


def test_json_lines_of_sql_are_ascii_where_they_must_be(tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    (tmp_path / "clickhouse").mkdir()
    sql = "SELECT unhex('E282AC') AS euro"
    for environment in NARROW:
        words = ["sql", sql, "--format", "json", "--clickhouse", place]
        done = rankwatch(*words, home=tmp_path, **environment)
        assert (done.returncode, done.stdout) == (0, '{"euro":"\\u20ac"}\n')
        assert rankwatch(*words[:2], "--clickhouse", place, home=tmp_path, **environment).returncode == 0


CONTROL = "\x1b[31m\x07\x9b\u202e"


def hostile(found: Diagnosis, job: str) -> Diagnosis:
    """The same with control characters in all that comes from outside, as the incident of ``job``."""
    (incident,) = found.incidents
    suspects = [msgspec.structs.replace(one, why=f"{CONTROL}{one.why}") for one in incident.suspects]
    evidence = [msgspec.structs.replace(one, text=f"{CONTROL}{one.text}") for one in incident.evidence]
    changed = msgspec.structs.replace(incident, job=job, suspects=suspects, evidence=evidence)
    unused = [Unused(f"a{CONTROL}\udcff.bin", 0, f"b{CONTROL}")]
    inputs = msgspec.structs.replace(found.inputs, unused=unused)
    return msgspec.structs.replace(found, incidents=[changed], inputs=inputs)


def with_jobs(found: Diagnosis, *jobs: str) -> Diagnosis:
    """The same with a batch of each of the other jobs."""
    first = found.recording.arrivals[0]
    batches = [
        msgspec.structs.replace(first.batch, identity=msgspec.structs.replace(first.batch.identity, job=job))
        for job in jobs
    ]
    arrivals = [msgspec.structs.replace(first, batch=batch) for batch in batches]
    recording = msgspec.structs.replace(found.recording, arrivals=[*found.recording.arrivals, *arrivals])
    return msgspec.structs.replace(found, recording=recording)


def printed(found: Diagnosis, capsys: pytest.CaptureFixture[str]) -> str:
    text.print_diagnosis(terminal.console(), found)
    return capsys.readouterr().out


def test_no_control_character_gets_into_the_page_or_the_text(
    found: Diagnosis, capsys: pytest.CaptureFixture[str]
) -> None:
    for shown in (page.page(hostile(found, f"j{CONTROL}")), printed(hostile(found, f"j{CONTROL}"), capsys)):
        assert [char for char in shown if not char.isprintable() and char != "\n"] == []
        assert "[31m" in shown


def test_the_page_shows_role_and_phase(found: Diagnosis) -> None:
    shown = page.page(found)
    assert f"Known of the job: {job_line(found.description)}. Judged by" in shown
    assert "rank 5 trainer on node02" in shown and ", in train</dd>" in shown
    (incident,) = found.incidents
    unknown = [msgspec.structs.replace(one, rank=None) for one in incident.suspects]
    other = msgspec.structs.replace(found, incidents=[msgspec.structs.replace(incident, suspects=unknown)])
    assert "unknown rank" in page.page(other) and "None" not in page.page(other)


def test_several_jobs_are_named_and_an_incident_says_whose_it_is(
    found: Diagnosis, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = printed(found, capsys)
    assert alone.startswith("job run-11: ") and "\n  job " not in alone and "<dt>job</dt>" not in page.page(found)
    several = with_jobs(hostile(found, "run-12"), "run-12", "-", "other")
    assert several.jobs == ["run-11", "other", "run-12"]
    shown = printed(several, capsys)
    assert shown.startswith("jobs run-11, other, run-12: ") and "\n  job        run-12\n" in shown
    assert "<h1>Jobs run-11, other, run-12</h1>" in page.page(several)
    assert "<dt>job</dt><dd>run-12</dd>" in page.page(several)
    assert "\n  job        run-12\n" in printed(hostile(found, "run-12"), capsys)


WRITES = [
    "DROP TABLE t",
    "  /* x */ -- y\n (drop table t)",
    "INSERT INTO t VALUES (2)",
    "WITH y AS (SELECT 3 AS a) INSERT INTO t SELECT a FROM y",
    "SELECT 1; DROP TABLE t; SELECT 2",
    "SELECT 1; SET readonly = 0; DROP TABLE t; SELECT 2",
    "SELECT a FROM t INTO OUTFILE '{place}/out.tsv'",
    "select a from t into -- x\n /* y */ outfile '{place}/out.tsv'",
    "SET readonly = 0",
    "TRUNCATE TABLE t",
]


@pytest.mark.parametrize("sql", WRITES)
def test_sql_only_reads(sql: str, tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    with open_client(place) as client:
        client.command("CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
        client.command("INSERT INTO t VALUES (1)")
    done = rankwatch("sql", sql.format(place=tmp_path), home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("rankwatch: ") and not (tmp_path / "out.tsv").exists()
    with open_client(place) as client:
        assert client.query("SELECT a FROM t").result_rows == [(1,)]


@pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["migrate"]])
def test_a_command_that_needs_a_database_says_so(command: list[str], tmp_path: Path) -> None:
    done = rankwatch(*command, "--clickhouse", "none", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rankwatch: {command[0]} needs a database: give --clickhouse DSN\n"


@pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["migrate"]])
def test_a_database_that_another_command_has_open_is_waited_for_a_little_and_then_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert database.WAIT_S <= 10
    monkeypatch.setattr(database, "WAIT_S", 0.2)
    (tmp_path / "db").mkdir()
    with (tmp_path / "db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(f"{os.getppid()} {gethostname()} rankwatch sink", file=lock, flush=True)
        assert run([*command, "--clickhouse", f"chdb://{tmp_path / 'db'}"]) == 2
    held = f"rankwatch: {tmp_path / 'db'} is open in process {os.getppid()} (rankwatch sink); "
    waiting, refused = capsys.readouterr().err.splitlines()
    assert waiting == f"{held}waiting 0.2 s for it"
    assert refused.startswith(f"{held}the embedded database serves one process at a time: stop that one first, or ")


def test_asking_a_database_that_is_not_there_makes_none(tmp_path: Path) -> None:
    place = tmp_path / "not" / "there"
    done = rankwatch("sql", "SELECT 1", "--clickhouse", f"chdb://{place}", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rankwatch: there is no database at {place}: ")
    assert not place.parent.exists()


def test_a_database_without_tables_is_said_to_have_none(tmp_path: Path) -> None:
    place = tmp_path / "db"
    place.mkdir()
    hint = "Rankwatch has no tables in this database yet: `rankwatch migrate` makes them\n"
    asked = rankwatch("sql", "SELECT * FROM incidents_latest", "--clickhouse", f"chdb://{place}", home=tmp_path)
    assert (asked.returncode, asked.stdout) == (2, "") and asked.stderr.endswith(f"; {hint}")
    shown = rankwatch("sql", "SHOW TABLES", "--clickhouse", f"chdb://{place}", home=tmp_path)
    assert (shown.returncode, shown.stdout.strip(), shown.stderr) == (0, "", f"rankwatch: {hint}")
    assert rankwatch("migrate", "--clickhouse", f"chdb://{place}", home=tmp_path).returncode == 0
    sql = "SELECT id FROM incidents_latest"
    shown = rankwatch("sql", sql, "--format", "tsv", "--clickhouse", f"chdb://{place}", home=tmp_path)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "id\n", "")


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_of_rows_is_at_least_one(number: str, tmp_path: Path) -> None:
    done = rankwatch("sql", "SELECT 1", f"--max-rows={number}", home=tmp_path)
    assert done.returncode == 2 and "at least 1" in done.stderr


@pytest.mark.parametrize("address", ["mysql://host/db", "clickhouse", "chdb://relative", "http://host:port/db", ""])
@pytest.mark.parametrize("command", ["diagnose", "demo"])
def test_a_bad_address_is_noticed_before_the_run(command: str, address: str, recording: Path, tmp_path: Path) -> None:
    words = [command, recording] if command == "diagnose" else [command]
    done = rankwatch(*words, "--clickhouse", address, home=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_a_relative_data_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RANKWATCH_CLICKHOUSE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = f"chdb://{tmp_path}/.local/share/rankwatch/clickhouse"
    for base in ("data", "./data", ""):
        monkeypatch.setenv("XDG_DATA_HOME", base)
        assert places.default_dsn() == usual
    assert places.DEFAULT_PLACE.replace("~", str(tmp_path)) == usual.removeprefix("chdb://")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert places.default_dsn() == "chdb:///data/rankwatch/clickhouse"


@pytest.mark.parametrize("command", ["diagnose", "demo", "sql", "migrate"])
def test_help_names_the_default_place(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    assert places.DEFAULT_PLACE in "".join(capsys.readouterr().out.split())


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").touch()
    done = rankwatch("migrate", "--clickhouse", f"chdb://{tmp_path / 'photos'}", home=tmp_path)
    assert done.returncode == 2 and "not empty and holds no database" in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["photos", "holiday.jpg"]


def test_the_demo_shows_the_incident_and_the_sql_that_shows_it_again(tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'data' / 'clickhouse'}"
    demo = rankwatch("demo", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert demo.returncode == 0, demo.stderr
    assert "rank 5 on node02" in demo.stdout
    queries = [line.strip() for line in demo.stdout.splitlines() if ' sql "SELECT' in line]
    assert len(queries) == 2
    below = demo.stdout.partition(queries[0])[2].partition(queries[1])[0].split("\n")
    assert below[2].split()[:3] == ["symptom", "verdict", "suspect_ranks"]
    assert below[4].split()[:3] == ["hang", "supported", "[5]"]
    answer = rankwatch("sql", queries[0].split('"')[1], "--format", "tsv", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[1].startswith("hang\tsupported\t[5]")


def test_storing_a_run_twice_changes_nothing_that_is_seen(recording: Path, tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    tables = ("logs FINAL", "stacks FINAL", "metrics FINAL", "windows_latest", "incidents_latest", "runs FINAL")
    sql = ", ".join(f"(SELECT count() FROM {table}) AS c{place}" for place, table in enumerate(tables))
    counts = []
    for _ in range(2):
        assert rankwatch("diagnose", recording, home=tmp_path, RANKWATCH_CLICKHOUSE=place).returncode == 1
        answer = rankwatch("sql", f"SELECT {sql}", "--format", "tsv", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
        counts.append([int(count) for count in answer.stdout.splitlines()[1].split()])
    assert counts[0] == counts[1]
    assert all(counts[0]) and counts[0][-2:] == [1, 1]


def test_a_query_that_is_wrong_exits_with_2_and_one_line(tmp_path: Path) -> None:
    place = f"chdb://{tmp_path / 'clickhouse'}"
    done = rankwatch("sql", "SELECT nothing FROM nowhere", home=tmp_path, RANKWATCH_CLICKHOUSE=place)
    assert done.returncode == 2 and done.stderr.startswith("rankwatch: ") and done.stderr.count("\n") == 1


def test_version_and_help_say_what_they_should(tmp_path: Path) -> None:
    assert rankwatch("--version", home=tmp_path).stdout.startswith("rankwatch 0.")
    assert "examples:" in rankwatch("--help", home=tmp_path).stdout


INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv[1:1] = ["diagnose"]
from rankwatch.__main__ import entry
entry()
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [("rankwatch.cli", ""), ("rankwatch.live", ""), ("rankwatch.page", "rankwatch: interrupted\n")],
)
def test_an_interrupt_while_modules_are_read_in_exits_with_130_and_no_traceback(module: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
