"""A worker that stands still says so, ends itself with its stacks, and another takes over."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka_pipeline import folded, free_address, pipeline, until
from streams_support import JOBS, JUDGED, said

from rankwatch import diagnose

pytestmark = [pytest.mark.xdist_group("kafka"), pytest.mark.slow]
HANGING = Path(__file__).parents[1] / "kafka_hanging.py"
TOPICS = ("windows", *JUDGED)
PATIENCE_S = "4"


def health_at(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}/healthz", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def last_of(process: subprocess.Popen[str], address: str) -> tuple[int, str]:
    """The last answer to a question for its health before it ends."""
    last = (0, "")
    end = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < end, last
        answer = health_at(address)
        last = answer if answer[0] else last
        time.sleep(0.1)
    return last


def test_workers_that_hang_are_unhealthy_then_end_and_are_replaced(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = JOBS["killed"]()
    expected = folded(said(diagnose.run(recording).log, TOPICS))
    hanging = {
        "rank": ("take", "there is something to read and nothing was taken in"),
        "job": ("loop", "the event loop stands still"),
    }
    with pipeline(kafka, tmp_path, partitions=1) as live:
        running, addresses = {}, {}
        for stage, (where, _) in hanging.items():
            monkeypatch.setenv("HANG_IN", where)
            addresses[stage] = free_address()
            arguments = ("worker", "--stage", stage, "--listen", addresses[stage], "--patience-s", PATIENCE_S)
            running[stage] = live.start(*arguments, program=(str(HANGING),))
        until(lambda: all(health_at(address) == (200, "ok\n") for address in addresses.values()), live.printed)
        slices = live.publish_in(2, recording)
        next(slices)
        until(lambda: all("hangs in" in live.said_by(process) for process in running.values()), live.printed)
        assert sum(1 for _ in slices) == 1
        with ThreadPoolExecutor() as threads:
            answers = dict(zip(running, threads.map(last_of, running.values(), addresses.values()), strict=True))
        for stage, (_, what) in hanging.items():
            assert answers[stage][0] == 503 and answers[stage][1].startswith(f"{what} for "), answers
            assert running[stage].returncode == 1
            printed = live.said_by(running[stage])
            assert f"rankwatch: {what} for {PATIENCE_S} s: giving up" in printed
            assert "in hang" in printed and "most recent call first" in printed
        live.start("worker")
        assert live.until_said(expected) == expected
