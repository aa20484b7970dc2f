"""What a hang of many ranks costs: stacks and flight-recorder states of 1,024 to 10,240 synthetic ranks.

    python tests/benchmarks/stacks.py [--ranks N ...] [--repeat N] [--hostile] [--profile STEP]

Each side runs in processes of its own that have done nothing before. The rank stage runs partition after partition; the
job stage closes the windows that it wrote; the tree is that of all threads of all ranks, each decoded for itself. Times
are of the processor, the least of the repeats. Steps are those of Python's interpreter in the contrast, the same on
every machine and in every run. The right rank must be named in every size. A table is printed, and the last line is one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from hanging_job import DUMPED, WINDOWS, HangingJob, at
from measuring import MIB, Meter, alone, peak_mib, shown, slope

import streams.detectors  # noqa: F401  (registers all detectors)
from schemas.codec import decode, encode, headers, kind_of, parts_of
from schemas.events import Tick
from schemas.ports import Entry
from schemas.results import CollectiveState, Incident
from schemas.topics import RAW_TOPICS, TOPICS
from streams.config import StreamConfig
from streams.outrun import outrun
from streams.stacks import SHOWN_FRAMES, telling
from streams.stages.job import JobStage
from streams.stages.outputs import Output
from streams.stages.rank import RankStage
from streams.trie import tree_of

CONFIG = StreamConfig()
MOST_BATCH = 500_000
CROWD = 200
"""So many threads more in each sample, for what a job costs at worst."""
BEHIND = 60
"""As many of one group are behind its others, for what that costs."""
SAMPLED = 3
"""The first window that holds samples, and the dumps."""


class Steps:
    """Counts what the interpreter does, loops within one function included."""

    def __init__(self) -> None:
        self.count = 0

    def run(self, work: Callable[[JobStage], Any], stage: JobStage) -> Any:
        """What ``work`` returns."""
        sys.settrace(self._called)
        try:
            return work(stage)
        finally:
            sys.settrace(None)

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._stepped

    def _stepped(self, frame: Any, event: str, argument: Any) -> Any:
        self.count += 1
        return self._stepped


def entries(job: HangingJob, partition: int, window: int) -> Iterator[tuple[str, bytes, bytes, str, int]]:
    """Topic, key, value, kind and send time of what producers append in one window, and the ticks that close it."""
    for topic, batch in job.batches(partition, window):
        for number, part in enumerate(parts_of(batch, MOST_BATCH)):
            whole = type(batch)(
                producer=batch.producer, boot=f"{batch.seq}", seq=number, identity=batch.identity, events=part
            )
            yield topic, batch.identity.key.encode(), encode(whole), kind_of(batch), at(10 * window + 9)
    for topic in RAW_TOPICS:
        end = at(10 * window + 12)
        yield topic, b"", encode(Tick(time=end)), "tick", end


def rank_side(job: HangingJob, folder: Path, profiled: str) -> dict[str, float]:
    """Run the rank stages one after another; what they say goes into one file a window."""
    meter = Meter(profiled)
    before = peak_mib()
    files = [(folder / f"{window}.jsonl").open("wb") for window in range(WINDOWS)]
    for partition in range(job.partitions):
        stage = RankStage(partition, job.partitions, 1, CONFIG)
        offsets = dict.fromkeys(RAW_TOPICS, 0)
        for window in range(WINDOWS):
            found = list(entries(job, partition, window))
            said = meter.run(f"window {window}", _taken, stage, found, offsets)
            for output in said:
                files[window].write(output.value + b"\n")
    for file in files:
        file.close()
    meter.show()
    return {
        "rank_us": sum(meter.seconds.values()) / job.ranks * 1e6,
        "rank_sampled_us": meter.seconds[f"window {SAMPLED}"] / job.ranks * 1e6,
        "window_kib": (folder / f"{SAMPLED}.jsonl").stat().st_size / job.ranks / 1024,
        "rank_mib": peak_mib() - before,
    }


def _taken(stage: RankStage, found: list[Any], offsets: dict[str, int]) -> list[Output]:
    outputs = []
    for topic, key, value, kind, sent in found:
        outputs += stage.on_entry(topic, stage.partition, Entry(offsets[topic], key, value, headers(kind), sent))
        offsets[topic] += 1
    outputs += stage.close() or []
    # Stamped events are what the sink stores; the job stage reads the windows.
    return [
        type(one)(topic=one.topic, key=one.key, record=one.record, time=one.time, value=one.value or encode(one.record))
        for one in outputs
        if one.topic == "windows"
    ]


def job_side(job: HangingJob, folder: Path, profiled: str, crowd: int = 0) -> dict[str, Any]:
    """The job stage over the windows that the rank stages wrote, with ``crowd`` more threads in each sample."""
    meter, stage = Meter(profiled), JobStage(0, job.partitions, CONFIG)
    before, incident = peak_mib(), None
    for window in range(WINDOWS):
        for entry in written(folder, window, crowd):
            letters = meter.run("read", stage.on_entry, "windows", 0, entry)
            assert not letters, letters[0].record.reason
        outputs = meter.run(f"window {window}", _closed, stage)
        snapshot = meter.run("snapshot", _snapshot, stage)
        for record in (output.record for output in outputs):
            incident = record if isinstance(record, Incident) else incident
    meter.show()
    named = [suspect.rank for suspect in incident.suspects] if incident else []
    assert named == [job.outside], f"{named} named, not rank {job.outside}"
    assert TOPICS["snapshots"].takes(len(snapshot)), f"a snapshot of {len(snapshot)} bytes"
    return {
        "contrast_s": meter.seconds[f"window {SAMPLED}"],
        "windows_s": sum(meter.seconds[f"window {window}"] for window in range(WINDOWS)),
        "read_s": meter.seconds["read"],
        "snapshot_s": meter.seconds["snapshot"] / WINDOWS,
        "snapshot_mib": len(snapshot) / MIB,
        "job_mib": peak_mib() - before,
    }


def step_side(job: HangingJob, folder: Path) -> dict[str, int]:
    """How many steps the contrast of the sampled window takes."""
    steps, stage = Steps(), JobStage(0, job.partitions, CONFIG)
    for window in range(SAMPLED + 1):
        for entry in written(folder, window):
            stage.on_entry("windows", 0, entry)
        if window == SAMPLED:
            steps.run(_closed, stage)
        else:
            _closed(stage)
    return {"steps": steps.count}


def tree_side(job: HangingJob) -> dict[str, float]:
    """The tree of all stacks of all ranks in one sample, no two of which share anything in memory."""
    found = [(rank, decode("stack", encode(batch)).events) for rank, batch in job.sampled()]
    stacks = [(rank, event.frames) for rank, events in found for event in events if event.frames]
    meter, before = Meter(), peak_mib()
    tree = meter.run("tree", tree_of, stacks)
    nodes = [path[-1] for path in tree.walk()]
    places = [node for node in nodes if job.outside in node.ranks and len(node.ranks) == 1]
    assert places, "nothing tells the rank apart"
    return {"tree_s": meter.seconds["tree"], "tree_mib": peak_mib() - before}


def behind_side(ranks: int) -> dict[str, float]:
    """Who was outrun where ``BEHIND`` of one group stopped short: all of them, and nobody else."""
    enqueued = {rank: 9 if rank < BEHIND else 12 for rank in range(ranks)}
    world = {
        rank: CollectiveState(
            group="world",
            captured=at(DUMPED),
            ranks=[],
            runs=[(0, 1, ranks)],
            last_enqueued=last,
            last_completed=8,
            operation="all_reduce",
            enqueued_at=at(18.5),
            outstanding=True,
            oldest=9,
            oldest_operation="all_reduce",
            oldest_at=at(18.5),
        )
        for rank, last in enqueued.items()
    }
    states = {
        rank: {
            "world": one,
            "idle": msgspec.structs.replace(one, group="idle", last_enqueued=8, outstanding=False, oldest=-1),
        }
        for rank, one in world.items()
    }
    meter = Meter()
    found = meter.run("outrun", outrun, states)
    assert sorted(found) == list(range(BEHIND)), f"{len(found)} were outrun"
    return {"outrun_s": meter.seconds["outrun"]}


def written(folder: Path, window: int, crowd: int = 0) -> Iterator[Entry]:
    """What the rank stages said of one window."""
    with (folder / f"{window}.jsonl").open("rb") as file:
        for number, line in enumerate(file):
            kind = "progress" if line.startswith(b'{"partition"') else "window"
            value = crowded(line, crowd) if crowd and kind == "window" else line
            yield Entry(window * 1_000_000 + number, b"", value, headers(kind), at(10 * window + 12))


def crowded(line: bytes, crowd: int) -> bytes:
    """A summary with so many more threads, as the rank stage would have bounded them; each shows 24 frames."""
    summary = decode("window", line)
    if not summary.stacks:
        return line
    frames = (summary.stacks[0].frames * SHOWN_FRAMES)[:SHOWN_FRAMES]
    more = [
        msgspec.structs.replace(summary.stacks[-1], thread=f"made up {number}", frames=frames)
        for number in range(crowd)
    ]
    spans = [*more, *summary.stacks]
    return encode(msgspec.structs.replace(summary, stacks=[spans[place] for place in telling(spans)]))


def _snapshot(stage: JobStage) -> bytes:
    return encode(stage.written())


def _closed(stage: JobStage) -> list[Output]:
    outputs = stage.close()
    assert outputs is not None
    for output in outputs:
        size = len(encode(output.record))
        assert TOPICS[output.topic].takes(size), f"{size} bytes of {output.topic}"
    return outputs


def measured(ranks: int, given: argparse.Namespace) -> dict[str, float]:
    job = HangingJob(ranks, hostile=given.hostile)
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        side = alone(rank_side, job, Path(name), given.profile)
        again = [
            alone(job_side, job, Path(name), given.profile) | alone(tree_side, job) | alone(behind_side, ranks)
            for _ in range(given.repeat)
        ]
        steps = alone(step_side, job, Path(name))
        crowd = alone(job_side, job, Path(name), "", CROWD)
    worst = {f"crowded_{key}": crowd[key] for key in ("windows_s", "snapshot_mib", "job_mib")}
    return {**side, **steps, **worst, **{key: min(one[key] for one in again) for key in again[0]}}


COLUMNS = {
    "contrast_s": "contrast of the sampled window, s",
    "windows_s": "all five windows, s",
    "read_s": "reading summaries, s",
    "snapshot_s": "a snapshot, s",
    "snapshot_mib": "snapshot, MiB",
    "job_mib": "job stage, MiB",
    "crowded_windows_s": f"{CROWD} threads more a rank: all windows, s",
    "crowded_snapshot_mib": "snapshot, MiB",
    "crowded_job_mib": "job stage, MiB",
    "steps": "steps of the contrast",
    "tree_s": "tree of all stacks, s",
    "tree_mib": "tree, MiB",
    "outrun_s": f"{BEHIND} of a group behind: who was outrun, s",
    "window_kib": "summary with samples, KiB a rank",
    "rank_sampled_us": "sampled window, us a rank",
    "rank_us": "rank stage, us a rank",
    "rank_mib": "rank stage, MiB",
}
PER_JOB = (
    "contrast_s",
    "windows_s",
    "read_s",
    "snapshot_s",
    "snapshot_mib",
    "job_mib",
    "crowded_windows_s",
    "crowded_snapshot_mib",
    "crowded_job_mib",
    "steps",
    "tree_s",
    "tree_mib",
    "outrun_s",
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ranks", type=int, nargs="+", default=[1024, 4096, 10240])
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--hostile", action="store_true", help="500 frames in every stack, 200 threads a process")
    arguments.add_argument("--profile", default="", help="a step to profile: window 3, read, snapshot")
    given = arguments.parse_args()
    print("| ranks | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    rows = {}
    for ranks in given.ranks:
        rows[ranks] = measured(ranks, given)
        print(f"| {ranks:,} | " + " | ".join(shown(rows[ranks][key]) for key in COLUMNS) + " |", flush=True)
    slopes = {key: slope(rows, key) for key in PER_JOB} if len(rows) > 1 else {}
    print("| slope | " + " | ".join(f"{slopes[key]:.2f}" if key in slopes else "" for key in COLUMNS) + " |")
    rounded = {ranks: {key: round(value, 4) for key, value in row.items()} for ranks, row in rows.items()}
    print(json.dumps({"bench": "stacks", "ranks": rounded, "slopes": slopes}))


if __name__ == "__main__":
    main()
