"""``--until T`` sees only what was there at T: its incidents are those that had been published by then."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams_support import JOBS, SECOND, SHARED

from producers.recording import Recording, read_recording
from rankwatch.demo import bundled_recording
from rankwatch.diagnose import run
from schemas.codec import encode
from schemas.results import Incident
from streams.config import StreamConfig
from streams.driver import Driver
from streams.report import latest

RECORDED = ("dataloader-hang", "restart", "ckpt-stall")


def published(recording: Recording) -> list[tuple[int, list[Incident]]]:
    """When the ticks of a whole run had come how far, and what had been published since the tick before."""
    found: list[tuple[int, list[Incident]]] = []
    run(recording, watch=lambda time, revisions: found.append((time, revisions)))
    return found


def assert_prefixes_agree(recording: Recording, every_ns: int, offset_ns: int = 0) -> None:
    story = published(recording)
    ticks = [time for time, _ in story]
    assert sum(len(revisions) for _, revisions in story) > 0
    seen = set()
    for until in range(ticks[0] - SECOND + offset_ns, ticks[-1] + SECOND, every_ns):
        expected = latest(one for time, revisions in story if time <= until for one in revisions)
        found = run(recording, until=until).incidents
        assert [encode(one) for one in found] == [encode(one) for one in expected], until
        seen.add(len(found) and max(one.revision for one in found))
    assert len(seen) > 1


def test_the_log_is_read_when_a_window_can_close_not_at_each_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Driver] = []
    read = Driver.run
    monkeypatch.setattr(Driver, "run", lambda driver: (runs.append(driver), read(driver)))
    config = StreamConfig()
    ticks = [time for time, _ in published(next(iter(JOBS.values()))())]
    windows = (ticks[-1] - ticks[0]) // config.window_ns
    assert len(ticks) > 5 * windows
    assert len(runs) <= windows + 3


@pytest.mark.parametrize("job", JOBS)
def test_a_cut_synthetic_job_says_what_had_been_published(job: str) -> None:
    assert_prefixes_agree(JOBS[job](), 2 * SECOND)


def test_a_cut_between_two_ticks_says_what_had_been_published() -> None:
    assert_prefixes_agree(JOBS["restart"](), SECOND, 500_000_000)


def test_a_cut_bundled_recording_says_what_had_been_published() -> None:
    with bundled_recording() as folder:
        recording = read_recording(folder)
    assert_prefixes_agree(recording, 2 * SECOND)


@pytest.mark.parametrize("name", RECORDED)
def test_a_cut_recorded_job_says_what_had_been_published(name: str) -> None:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip("the recorded jobs are not there")
    assert_prefixes_agree(read_recording(folder), 2 * SECOND)


def test_a_cut_before_everything_finds_nothing() -> None:
    recording = JOBS["hang"]()
    assert run(recording, until=recording.arrivals[0].time - 1).incidents == []


def test_a_cut_behind_everything_is_the_whole(tmp_path: Path) -> None:
    recording = JOBS["two at once"]()
    last = recording.arrivals[-1].time + 3600 * SECOND
    assert list(map(encode, run(recording, until=last).incidents)) == list(map(encode, run(recording).incidents))
