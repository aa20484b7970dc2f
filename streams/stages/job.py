"""The job stage: closes a window once every partition is through it, and contrasts the workers of each job."""

from __future__ import annotations

import msgspec

from schemas import results
from schemas.ports import Entry
from schemas.results import Snapshot
from schemas.topics import TOPICS
from streams.config import StreamConfig
from streams.stages.entries import dead_letter_output, read_entry
from streams.stages.jobs import JobKeeper, JobState
from streams.stages.outputs import Output
from streams.state import written


class JobStageState(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down at a window boundary; ``progress`` as of ``offset``."""

    offset: int
    progress: dict[int, int]
    skipped: list[tuple[int, int]]
    closed: int | None
    jobs: list[JobState]


class JobStage:
    """Partition ``partition`` of the windows topic; ``raw_partitions`` partition numbers report to it."""

    name = "job"

    def __init__(self, partition: int, raw_partitions: int, config: StreamConfig) -> None:
        self.partition = partition
        self.config = config
        self.inputs: tuple[tuple[str, int], ...] = (("windows", partition),)
        self._raw_partitions = raw_partitions
        self._next = 0
        self._progress: dict[int, int] = {}
        self._reports: list[tuple[int, int, int]] = []
        self._skipped: set[tuple[int, int]] = set()
        self._open: dict[int, dict[str, results.Window]] = {}
        self._first_offset: dict[int, int] = {}
        self._closed: int | None = None
        self._jobs: dict[str, JobKeeper] = {}

    def next_offset(self, topic: str, partition: int) -> int:
        """From where to read on."""
        return self._next

    def behind(self, topic: str) -> int:
        """How far the windows have come."""
        return self._closed or -1

    @property
    def held_events(self) -> int:
        """Summaries in open windows."""
        return sum(len(held) for held in self._open.values())

    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]:
        """Take one entry in; returns only what was unreadable."""
        self._next = entry.offset + 1
        read = read_entry(entry, topic, partition, self.name, TOPICS[topic].kinds)
        if isinstance(read, results.DeadLetter):
            return [dead_letter_output(read, entry.time)]
        _, record = read
        if isinstance(record, results.Progress):
            self._on_progress(entry.offset, record)
        elif self._closed is None or record.end > self._closed:
            # The same summary sent again after a crash is the same summary.
            self._open.setdefault(record.end, {})[record.id] = record
            self._first_offset.setdefault(record.end, entry.offset)
        return []

    def _on_progress(self, offset: int, progress: results.Progress) -> None:
        self._reports.append((offset, progress.partition, progress.end))
        self._progress[progress.partition] = max(progress.end, self._progress.get(progress.partition, progress.end))
        if progress.skipped and (self._closed is None or progress.end > self._closed):
            self._skipped.add((progress.partition, progress.end))

    def _closable(self) -> int | None:
        if len(self._progress) < self._raw_partitions:
            return None
        low = min(self._progress.values())
        if self._closed is None or not self._jobs:
            # Nobody is waiting for time to pass: go straight to the next window that holds something.
            end = min((held for held in self._open if held <= low), default=low)
        else:
            end = self._closed + self.config.window_ns
        return end if end <= low and (self._closed is None or end > self._closed) else None

    def close(self) -> list[Output] | None:
        """Close the next window that all partitions have reported; its outputs, or null where there is none."""
        end = self._closable()
        if end is None:
            return None
        held = self._open.pop(end, {})
        self._first_offset.pop(end, None)
        self._closed = end
        unavailable = any(skipped_end == end for _, skipped_end in self._skipped)
        self._skipped = {item for item in self._skipped if item[1] > end}
        by_job: dict[str, list[results.Window]] = {}
        for summary in sorted(held.values(), key=lambda summary: (summary.identity.job, summary.identity.worker)):
            by_job.setdefault(summary.identity.job, []).append(summary)
        outputs: list[Output] = []
        for job in sorted(set(self._jobs) | set(by_job)):
            keeper = self._jobs.setdefault(job, JobKeeper(JobState(job=job), self.config))
            outputs.extend(keeper.close(end, by_job.get(job, []), unavailable=unavailable))
            if keeper.idle:
                del self._jobs[job]
        return outputs

    def written(self) -> Snapshot:
        """The state at the window boundary just closed, with the offset to read on from."""
        offset = min([self._next, *self._first_offset.values()])
        progress: dict[int, int] = {}
        keep = []
        for at, partition, end in self._reports:
            if at < offset:
                progress[partition] = max(end, progress.get(partition, end))
            else:
                keep.append((at, partition, end))
        self._reports = [*((-1, partition, end) for partition, end in sorted(progress.items())), *keep]
        state = JobStageState(
            offset=offset,
            progress=progress,
            skipped=sorted(self._skipped),
            closed=self._closed,
            jobs=[self._jobs[job].written() for job in sorted(self._jobs)],
        )
        return Snapshot(
            stage=self.name,
            partition=self.partition,
            end=self._closed or 0,
            offsets={f"windows|{self.partition}": offset},
            state=written(state),
        )

    def restore(self, raw: msgspec.Raw) -> None:
        """Begin again from a written state."""
        state = msgspec.json.decode(raw, type=JobStageState)
        self._next = state.offset
        self._progress = dict(state.progress)
        self._reports = [(-1, partition, end) for partition, end in sorted(state.progress.items())]
        self._skipped = set(state.skipped)
        self._closed = state.closed
        self._open, self._first_offset = {}, {}
        self._jobs = {job.job: JobKeeper(job, self.config) for job in state.jobs}
