"""What a window of a healthy job costs the job stage: decoded, closed, all detectors run, for 1,024 and 10,240 ranks.

    python tests/benchmarks/window.py [--ranks N ...] [--repeat N] [--profile STEP] [--by-node]

The rank stage's summaries are written to a file; the job stage reads and closes window after window in a process of its
own that has done nothing before. What is measured is the last, when the bands of ``metric_shift`` (12 windows) and the
first points of ``memory_growth`` (20 windows behind 6) are there. Times are of the processor, the least of the repeats;
what several detectors ask for is found once and counted where the first asks. Nobody may be accused. A table is
printed, and the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from measuring import MIB, Meter, alone, peak_mib, shown, slope
from training_job import METRICS, TrainingJob

import streams.detectors  # noqa: F401  (registers all detectors)
from schemas.codec import encode, headers, kind_of
from schemas.ports import Entry
from schemas.results import Anomaly, Incident
from schemas.topics import TOPICS
from streams.config import StreamConfig
from streams.detectors import registry
from streams.incidents.book import IncidentBook
from streams.stages.job import JobStage
from streams.stages.outputs import Output
from streams.templates import TemplateBook
from streams.view import AttemptView

WINDOWS = 30
LAST = WINDOWS - 1
TOGETHER = 100
"""Entries that are handed to the stage at once."""
LEAST = 0.001
"""Of figures below this no slope is told; times are that exact."""


class Parts:
    """Processor time of parts of the job stage, by what they are; none of them runs inside another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        for owner, method, part in (
            (AttemptView, "update", "view"),
            (TemplateBook, "learn", "templates"),
            (TemplateBook, "note", "templates"),
            (TemplateBook, "printed", "templates"),
            (IncidentBook, "drafts", "incidents"),
        ):
            self._watch(owner, method, part)
        for detector in registry.registered("job"):
            self._watch(detector, "observe", detector.name)

    def _watch(self, owner: type, method: str, part: str) -> None:
        work: Callable[..., Any] = getattr(owner, method)
        self.seconds[part] = 0.0

        def timed(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return work(*arguments)
            finally:
                self.seconds[part] += time.process_time() - began

        setattr(owner, method, timed)

    def clear(self) -> None:
        """Begin anew."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)


def write(ranks: int, folder: Path, by_node: bool = False) -> int:
    """What the rank stage says, a file a window; returns how many bytes the last window has."""
    job, size = TrainingJob(ranks, by_node=by_node), 0
    for number in range(WINDOWS):
        lines = [kind_of(one).encode() + b" " + encode(one) for one in job.window(number)]
        size = sum(len(line.partition(b" ")[2]) for line in lines)
        (folder / f"{number}.jsonl").write_bytes(b"\n".join(lines))
    return size


def entries(folder: Path, window: int) -> Iterator[Entry]:
    """What lies in the log of one window."""
    with (folder / f"{window}.jsonl").open("rb") as file:
        for number, line in enumerate(file):
            kind, _, value = line.rstrip(b"\n").partition(b" ")
            yield Entry(window * 1_000_000 + number, b"", value, headers(kind.decode()), 0)


def job_side(ranks: int, folder: Path, profiled: str = "") -> dict[str, float]:
    """The job stage over all windows; figures are of the last."""
    stage, meter = JobStage(0, TrainingJob(ranks).partitions, StreamConfig()), Meter(profiled)
    before = peak_mib()
    # With a profile times mean nothing, and what is timed would hide what is profiled.
    parts = None if profiled else Parts()
    for window in range(WINDOWS):
        step = "" if window < LAST else " of the last window"
        if parts is not None:
            parts.clear()
        rest = entries(folder, window)
        while some := list(islice(rest, TOGETHER)):
            meter.run(f"read{step}", _read, stage, some)
        outputs = meter.run(f"close{step}", _closed, stage)
    window_mib = peak_mib() - before
    snapshot = meter.run("snapshot", _snapshot, stage)
    meter.show()
    read, close = meter.seconds["read of the last window"], meter.seconds["close of the last window"]
    parted = parts.seconds if parts is not None else {}
    return {
        "window_s": read + close,
        "read_s": read,
        "close_s": close,
        **{f"part_{name}": seconds for name, seconds in parted.items()},
        "part_rest": close - sum(parted.values()),
        "window_mib": window_mib,
        "published": len(outputs),
        "snapshot_s": meter.seconds["snapshot"],
        "snapshot_mib": len(snapshot) / MIB,
    }


def _read(stage: JobStage, some: list[Entry]) -> None:
    for entry in some:
        letters = stage.on_entry("windows", 0, entry)
        assert not letters, letters[0].record


def _closed(stage: JobStage) -> list[Output]:
    """What is published, encoded as it is when it is sent; nobody is accused."""
    outputs = stage.close()
    assert outputs is not None
    for output in outputs:
        assert TOPICS[output.topic].takes(len(encode(output.record))), output.topic
        assert not isinstance(output.record, Incident), output.record.summary
        assert not isinstance(output.record, Anomaly) or not output.record.suspects, output.record.text
    return outputs


def _snapshot(stage: JobStage) -> bytes:
    return encode(stage.written())


def measured(ranks: int, given: argparse.Namespace) -> dict[str, float]:
    """The figures of one size."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        size = alone(write, ranks, Path(name), given.by_node)
        again = [alone(job_side, ranks, Path(name), given.profile) for _ in range(given.repeat)]
    best = {key: min(one[key] for one in again) for key in again[0]}
    return {"log_mib": size / MIB, **best}


TITLES = {
    "log_mib": "the window as it lies on the log, MiB",
    "window_s": "the window, s",
    "read_s": "of it: reading and decoding",
    "close_s": "of it: closing",
    "window_mib": "job stage, MiB",
    "published": "records published",
    "snapshot_s": "a snapshot, s",
    "snapshot_mib": "snapshot, MiB",
}


def title(key: str) -> str:
    """What a figure is, in words."""
    return TITLES.get(key, f"closing: {key.removeprefix('part_')}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ranks", type=int, nargs="+", default=[1024, 10240])
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--by-node", action="store_true", help="the nodes tell the metrics of devices")
    arguments.add_argument("--profile", default="", help="a step to profile: read, close, snapshot")
    given = arguments.parse_args()
    given.profile = given.profile and given.profile + " of the last window" * (given.profile != "snapshot")
    rows = {ranks: measured(ranks, given) for ranks in given.ranks}
    keys = list(rows[given.ranks[0]])
    telling = [key for key in keys if len(rows) > 1 and all(row[key] >= LEAST for row in rows.values())]
    slopes = {key: slope(rows, key) for key in telling}
    print(f"| {METRICS} metrics a rank | " + " | ".join(f"{ranks:,} ranks" for ranks in rows) + " | slope |")
    print("|---|" + "---|" * len(rows) + "---|")
    for key in keys:
        figures = " | ".join(shown(row[key]) for row in rows.values())
        print(f"| {title(key)} | {figures} | {slopes.get(key, '')} |")
    rounded = {ranks: {key: round(value, 4) for key, value in row.items()} for ranks, row in rows.items()}
    print(json.dumps({"bench": "window", "metrics": METRICS, "ranks": rounded, "slopes": slopes}))


if __name__ == "__main__":
    main()
