"""Silences as a user makes and uses them without a cluster: files, messages, exit codes, reports, what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankwatch import silences
from rankwatch.cli import run
from rankwatch.demo import bundled_recording
from rankwatch.silence_files import read_silences
from schemas.silences import Matcher

NOW = 1_795_953_600_000_000_000


@pytest.fixture(scope="module")
def faulty() -> Iterator[Path]:
    with bundled_recording() as folder:
        yield folder


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The time that commands read; tests move it."""
    times = [NOW]
    monkeypatch.setattr(silences, "now_ns", lambda: times[0])
    monkeypatch.setenv("USER", "maria")
    yield times


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """The exit code and what was printed, to either side."""
    code = run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_add_list_and_end(tmp_path: Path, clock: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    file = ("--file", tmp_path / "s.json")
    words = (
        "--job",
        "run-*",
        "--attempt",
        "a/0",
        "--node",
        "n1",
        "--label",
        "team!=speech",
        "--for",
        "2h",
        "--comment",
        "new\x1b cable",
    )
    code, text = said(capsys, "silence", "add", *words, *file)
    (made,) = read_silences(file[1])
    about = "job=~run-*, attempt=a/0, node=n1, team!=speech"
    assert (code, text) == (0, f"silenced until 2026-11-29T14:00:00.000Z: {about} ({made.id})\n")
    assert made.matchers[0] == Matcher(label="job", value="run-*", pattern=True)
    assert (made.number, made.created_by, made.ends - made.starts) == (1, "maria", 7_200_000_000_000)
    said(capsys, "silence", "add", "--cluster", "c", "--until", "2026-11-30", "--starts", "2026-11-29T13:00Z", *file)
    code, text = said(capsys, "silence", "list", *file)
    assert [line.split("  ")[1] for line in text.splitlines()] == ["holds", "to come"]
    assert "  maintenance, maria: new  cable" in text
    clock[0] += 60_000_000_000
    code, text = said(capsys, "silence", "end", made.id, *file)
    assert (code, text) == (0, f"ended silence {made.id} 2: {about}\n")
    assert said(capsys, "silence", "end", made.id, *file)[1].endswith("already\n")
    code, text = said(capsys, "silence", "list", "--all", "--format", "json", *file)
    ended, _ = map(json.loads, text.splitlines())
    assert (ended["id"], ended["state"], ended["ends"]) == (made.id, "ended", "2026-11-29T12:01:00.000Z")
    assert len(said(capsys, "silence", "list", *file)[1].splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("add --for 2h", "say what to silence"),
        ("add --job a --for 2", "'2' is no length of time"),
        ("add --job a --for 0s", "the silence would end at"),
        ("add --job a --for 400d", "silence '"),
        ("add --job * --for 2h", "silence '"),
        ("add --symptom hang --for 2h", "silence '"),
        ("add --label a --for 2h", "'a' is no label"),
        ("add --job a --until noon", "'noon' is no time"),
        ("add --job a --severity wraning --for 2h", "no incident has the severity 'wraning'; it is one of critical, "),
        ("add --symptom x* --for 2h", "no incident has the symptom 'x*'; it is one of hang, crash, "),
        ("add --label area!=nowhere --job a --for 2h", "no incident has the area 'nowhere'; it is one of "),
        ("list", "cannot read {place}/s.json: no such file"),
        ("end x", "cannot read {place}/s.json: no such file"),
        ("add --job a --for 2h --kafka b:1", "silences lie in a file or in a deployment"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(
    words: str, reason: str, tmp_path: Path, clock: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, "silence", *words.split(), "--file", tmp_path / "s.json")
    assert (code, text.count("\n")) == (2, 1), text
    assert text.startswith("rankwatch: " + reason.format(place=tmp_path))
    assert not (tmp_path / "s.json").exists()


@pytest.mark.parametrize("content", ["", "{}", '[{"id": "a"}]', "[[[", '[{"id":1}]', None])
def test_a_file_that_holds_no_silences_silences_nothing_and_costs_no_report(
    content: str | None, tmp_path: Path, faulty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    if content is not None:
        file.write_text(content)
    words = ("diagnose", faulty, "--clickhouse", "none", "--silences", file, "--format", "json")
    assert run([*map(str, words)]) == 1
    printed = capsys.readouterr()
    why = "no such file or directory" if content is None else "holds no silences: "
    assert printed.err.startswith(f"rankwatch: {file}: {why}") and printed.err.endswith("; nothing is silenced\n")
    report = json.loads(printed.out)
    (incident,) = report["incidents"]
    assert incident["silenced"] is None and "silences" not in report["versions"]
    told, *_ = report["inputs"]["unused"]
    assert (told["file"], told["reason"].endswith("; nothing is silenced")) == (str(file), True)
    code, text = said(capsys, "silence", "list", "--file", file)
    assert (code, text.count("\n")) == (2, 1)


def test_a_hang_pages_whatever_is_silenced(
    tmp_path: Path, faulty: Path, clock: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    said(capsys, "silence", "add", "--severity", "critical", "--starts", "2026-01-01", "--for", "365d", "--file", file)
    words = ("diagnose", faulty, "--clickhouse", "none", "--silences", file, "--format", "json")
    code, text = said(capsys, *words)
    (incident,) = json.loads(text)["incidents"]
    assert (code, incident["symptom"], incident["silenced"]) == (1, "hang", None)


def test_an_incident_that_is_silenced_says_so_everywhere_and_pages_nobody(
    tmp_path: Path, clock: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file, database = crashed(tmp_path / "job"), tmp_path / "s.json", f"chdb://{tmp_path}/db"
    words = ["diagnose", folder, "--clickhouse", database]
    assert said(capsys, *words)[0] == 1
    long = ("--starts", "2026-01-01", "--for", "365d", "--comment", "<b>known", "--file", file)
    said(capsys, "silence", "add", "--symptom", "crash", *long)
    (silence,) = read_silences(file)
    words = [*words, "--silences", file]
    code, text = said(capsys, *words, "--format", "json")
    report = json.loads(text)
    (incident,) = report["incidents"]
    assert (code, incident["severity"], report["versions"]["silences"]) == (0, "critical", f"{silence.id} 1")
    until = "2027-01-01T00:00:00.000Z"
    assert incident["silenced"] == {
        "id": silence.id,
        "number": 1,
        "comment": "<b>known",
        "kind": "maintenance",
        "until": until,
        "by": "maria",
    }
    code, text = said(capsys, *words)
    assert code == 0 and f"  silenced   until {until} by maria ({silence.id} 1): <b>known\n" in text
    code, text = said(capsys, *words, "--format", "html")
    assert f"<dt>silenced</dt><dd>until {until} by maria ({silence.id} 1): &lt;b&gt;known</dd>" in text
    sql = "SELECT silence, at_publication FROM incidents_silenced WHERE run_id = '{}'".format(report["run_id"])
    code, text = said(capsys, "sql", sql, "--clickhouse", database, "--format", "json")
    assert json.loads(text) == {"silence": silence.id, "at_publication": True}


def crashed(folder: Path) -> Path:
    """A job of four ranks on one node of which one fails."""
    for rank in range(4):
        place = folder / "logs" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        lines = [f"2026-11-29 12:00:{second:02d},000 INFO step {second} loss 1.5" for second in range(40)]
        failed = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "    main()"]
        lines += [*failed, "ValueError: no such shard"] if rank == 2 else []
        (place / "stderr.log").write_text("\n".join(lines) + "\n")
    return folder
