"""Libraries as a user makes and uses them: files, messages, exit codes, and what is stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankwatch.cli import run
from rankwatch.demo import bundled_recording


@pytest.fixture(scope="module")
def faulty() -> Iterator[Path]:
    with bundled_recording() as folder:
        yield folder


@pytest.fixture(scope="module")
def healthy(faulty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the bundled job printed until its fault, as if it had ended then."""
    folder = tmp_path_factory.mktemp("healthy")
    shutil.copy(faulty / "pids.jsonl", folder)
    for log in faulty.glob("logs/*/*/attempt_0/*/*.log"):
        copy = folder / log.relative_to(faulty)
        copy.parent.mkdir(parents=True, exist_ok=True)
        before = log.read_text().partition("Traceback")[0]
        copy.write_text(before[: before.rfind("\n") + 1])
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """The exit code and what was printed, to either side."""
    code = run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_learn_show_and_merge(healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    code, text = said(capsys, "library", "learn", healthy, "--out", one)
    count = len(json.loads(one.read_text())["templates"])
    assert (code, f"{count} of {count} templates shared by all jobs" in text) == (0, True)
    assert text.startswith("library healthy 1 (") and "8 ranks, at least" in text
    code, shown = said(capsys, "library", "show", one)
    assert code == 0 and shown.startswith(text) and len(shown.splitlines()) == len(text.splitlines()) + count
    assert "100% in train" in shown and "  a step takes " in shown and "  scale: world_size 8" in shown
    assert said(capsys, "library", "merge", one, one, "--out", two)[0] == 0
    assert two.read_bytes() == one.read_bytes()


def test_an_unhealthy_job_is_refused_unless_told_otherwise(
    faulty: Path, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "library.json"
    code, text = said(capsys, "library", "learn", healthy, faulty, "--out", out)
    assert (code, text.count("\n")) == (2, 1)
    assert text.startswith(f"rankwatch: {faulty} is no healthy job, critical incident: hang after iteration 40")
    assert "--even-unhealthy" in text and not out.exists()
    assert said(capsys, "diagnose", faulty, "--clickhouse", "none", "--baseline", faulty)[0] == 2
    code, text = said(capsys, "library", "learn", healthy, faulty, "--out", out, "--even-unhealthy")
    shared, _, of_all, *_ = text.splitlines()[-1].split()
    assert code == 0 and int(shared) < int(of_all)


def test_a_diagnosis_names_its_library_and_stores_it(
    faulty: Path, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library, database = tmp_path / "library.json", f"chdb://{tmp_path}/db"
    said(capsys, "library", "learn", healthy, "--out", library, "--name", "mine")
    code, text = said(capsys, "diagnose", faulty, "--library", library, "--clickhouse", database, "--format", "json")
    found = json.loads(text)
    version = json.loads(library.read_text())["version"]
    assert (code, found["versions"]["library"]) == (1, f"mine 1 ({version})")
    (incident,) = found["incidents"]
    assert incident["library"] == f"mine 1 ({version})"
    assert "cross-job" in {template["axis"] for template in incident["templates"]}
    assert [suspect["rank"] for suspect in incident["suspects"]] == [5]
    queries = {
        "SELECT count() FROM library WHERE version = '{0}' AND has(learned_from, printed_by[1])": len(
            json.loads(library.read_text())["templates"]
        ),
        "SELECT count() FROM incidents_latest WHERE library = 'mine 1 ({0})' AND has(template_axes, 'cross-job')": 1,
        "SELECT count() > 0 FROM anomalies_latest WHERE library = 'mine 1 ({0})' AND axis = 'cross-job'": 1,
    }
    for query, answer in queries.items():
        code, text = said(capsys, "sql", query.format(version), "--clickhouse", database, "--format", "tsv")
        assert (code, text.splitlines()[-1]) == (0, str(answer)), query


def test_a_baseline_is_learned_first_and_said_in_every_report(
    faulty: Path, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for format_ in ("text", "html"):
        code, text = said(
            capsys, "diagnose", faulty, "--baseline", healthy, "--clickhouse", "none", "--format", format_
        )
        assert code == 1 and "held against library baseline 1 (" in text and "unlike healthy jobs" in text


def test_a_job_beside_several_baselines_in_every_form(
    faulty: Path, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, database = tmp_path / "other", f"chdb://{tmp_path}/db"
    shutil.copytree(healthy, other)
    for log in other.glob("logs/*/*/attempt_0/*/*.log"):
        log.write_text("loaded the second plan\n" + log.read_text())
    words = ("diagnose", faulty, "--baseline", healthy, "--baseline", other, "--clickhouse", database)
    _, text = said(capsys, *words)
    assert "beside the jobs of the library\n  baseline   " in text and "incidents: hang" in text
    _, text = said(capsys, *words, "--format", "json")
    (found,) = json.loads(text)["comparison"]
    assert (found["symptoms"], len(found["jobs"]), found["verdict"] in ("supported", "ambiguous")) == (
        ["hang"],
        2,
        True,
    )
    _, page = said(capsys, *words, "--format", "html")
    assert "<h2>Beside the jobs of the library</h2>" in page and "<script" not in page
    query = "SELECT symptoms, length(library_jobs), library FROM comparisons_latest"
    code, text = said(capsys, "sql", query, "--clickhouse", database, "--format", "tsv")
    assert (code, text.splitlines()[-1]) == (0, f'["hang"]\t2\t{found["library"]}')


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("library show {place}/absent", "cannot read {place}/absent: no such file or directory"),
        ("library show {place}/other", "{place}/other: not a library record: "),
        ("library merge {place}/other {place}/other --out {place}/x", "{place}/other: not a library record: "),
        ("library show {place}/masks", "library 'healthy' was learned under other masks of lines"),
        ("diagnose {faulty} --clickhouse none --library {place}/masks", "library 'healthy' was learned under other"),
        ("diagnose {faulty} --clickhouse none --baseline {place}/absent", ""),
        ("library learn {healthy} --out {place}/x --name a/b", "'a/b' is no name of a library"),
        ("library learn {healthy} --out {place}/no/x", "cannot write {place}/no/x: no such file or directory"),
        ("library import {place}/other --kafka b:1", "{place}/other: not a library record: "),
        ("library export {place}/x", "no Kafka address: give --kafka HOST:PORT"),
        ("worker --stage rank --library a --kafka b:1", "a worker for stage rank has no use for --library"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    words: str, reason: str, faulty: Path, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").write_bytes(b'{"a": 1}')
    said(capsys, "library", "learn", healthy, "--out", tmp_path / "masks")
    raw = json.loads((tmp_path / "masks").read_text())
    (tmp_path / "masks").write_text(json.dumps({**raw, "masks": "another"}))
    places = {"place": tmp_path, "faulty": faulty, "healthy": healthy}
    code, text = said(capsys, *words.format(**places).split())
    assert (code, text.count("\n")) == (2, 1), text
    assert text.startswith("rankwatch: " + reason.format(**places))
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", ["library", "library learn", "diagnose a --baseline b --library c", "library bake"])
def test_wrong_usage_exits_with_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(words.split())
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
