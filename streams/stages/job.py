"""The job stage: closes a window once every partition is through it, and contrasts the workers of each job.

Behind what it found in a window it tells every partition of the fleet stage that it is through it.
"""

from __future__ import annotations

import msgspec

from schemas import results
from schemas.entries import read_entry
from schemas.fleet import FleetReport
from schemas.identity import NO_JOB
from schemas.ids import stable_id
from schemas.ports import Entry
from schemas.results import Snapshot
from streams.config import StreamConfig
from streams.detectors import registry
from streams.fleet.storage import complaints_of
from streams.library.known import Known
from streams.log.partition import partition_of
from streams.meta import AlertsState, beat, skips
from streams.stages.dead_letters import dead_letter_output, failed_window, lost_summaries
from streams.stages.fleet_reports import Reporter, ReporterState
from streams.stages.jobs import STAGE, JobKeeper, JobState
from streams.stages.outputs import Output
from streams.stages.progress import PartitionProgress, ProgressState
from streams.stages.standing import Standing
from streams.stages.summaries import Read, Summaries
from streams.state import written


class JobStageState(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down at a window boundary; ``progress`` as of ``offset``."""

    offset: int
    progress: ProgressState
    closed: int | None
    jobs: list[JobState]
    reporters: dict[str, ReporterState] = {}
    skips: AlertsState = msgspec.field(default_factory=AlertsState)


class JobStage:
    """Partition ``partition`` of the windows topic; ``raw_partitions`` partition numbers report to it.

    ``read`` gives its entries once more: with it the summaries that ``bound`` let go of come back when they are due.
    ``known`` is what healthy jobs print; it stays the same while the stage runs.
    """

    name = STAGE

    def __init__(
        self,
        partition: int,
        raw_partitions: int,
        config: StreamConfig,
        read: Read | None = None,
        known: Known | None = None,
    ) -> None:
        self.partition = partition
        self.config = config
        self.inputs: tuple[tuple[str, int], ...] = (("windows", partition),)
        self._raw_partitions = raw_partitions
        self._next = 0
        self._progress = PartitionProgress(raw_partitions)
        self._known = known
        self._read = read
        self._summaries = Summaries(read)
        self._closed: int | None = None
        self._jobs: dict[str, JobKeeper] = {}
        self._reporters: dict[str, Reporter] = {}
        self._skips = AlertsState()
        registry.build("job", config.detectors)  # wrong settings stop the start, not the first window

    def next_offset(self, topic: str, partition: int) -> int:
        """From where to read on."""
        return self._next

    def behind(self, topic: str) -> int:
        """How far the windows have come."""
        return self._closed or -1

    @property
    def held_events(self) -> int:
        """Summaries in open windows."""
        return self._summaries.count

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        held = self._summaries.held_bytes
        return Standing(
            closed=self._closed,
            open_windows=len(self._summaries),
            held_bytes=held,
            waits_for=self._progress.waited_for,
        )

    def bound(self, held_bytes: int) -> None:
        """Keep about so much of open windows in memory, in bytes as they lie in the log."""
        self._summaries.bound(held_bytes)

    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]:
        """Take one entry in; returns only what was unreadable."""
        self._next = entry.offset + 1
        read = read_entry(entry, topic, partition, self.name)
        if isinstance(read, results.DeadLetter):
            return [dead_letter_output(read, entry.time)]
        _, record = read
        if isinstance(record, results.Progress):
            self._progress.report(entry.offset, record)
            return []
        return self._on_window(entry, record)

    def _on_window(self, entry: Entry, window: results.Window) -> list[Output]:
        origin = partition_of(window.identity.key.encode("utf-8", "replace"), self._raw_partitions)
        if self._progress.behind_skip(origin, window.end) or self._progress.gone_by(origin, window.end):
            return [self._late(entry, window)]
        # Behind the reports that close its window a summary is one sent again after a crash, and known.
        if not self._progress.is_through(window.end, self._closed):
            self._summaries.add(entry, window)
        return []

    def _late(self, entry: Entry, window: results.Window) -> Output:
        late = results.Late(
            id=stable_id("late", "windows", self.partition, window.id),
            topic="windows",
            partition=self.partition,
            producer="rank-stage",
            boot=window.id,
            seq=0,
            identity=window.identity,
            window_end=window.end,
            events=1,
        )
        return Output(topic="late", key=window.identity.key, record=late, time=entry.time)

    def _closable(self) -> int | None:
        low = self._progress.low
        if low is None:
            return None
        if self._closed is None or not self._jobs:
            # Nobody is waiting for time to pass: go straight to the next window that holds something.
            first = self._summaries.first_end
            end = low if first is None else min(first, low)
        else:
            end = self._closed + self.config.window_ns
        return end if end <= low and (self._closed is None or end > self._closed) else None

    def close(self) -> list[Output] | None:
        """Close the next window that all partitions have reported; its outputs, or null where there is none."""
        end = self._closable()
        if end is None:
            return None
        held, lost = self._summaries.pop(end)
        before, self._closed = self._closed, end
        # Whose summaries are lost is not known to have been silent.
        unavailable = self._progress.skipped(end) or lost > 0
        by_job: dict[str, list[results.Window]] = {}
        for summary in sorted(held, key=lambda summary: (summary.identity.job, summary.identity.worker)):
            by_job.setdefault(summary.identity.job, []).append(summary)
        outputs = [dead_letter_output(lost_summaries(self.partition, end, lost, self.name), end)] if lost else []
        for job in sorted(set(self._jobs) | set(by_job)):
            outputs += self._close_job(job, end, by_job.get(job, []), unavailable=unavailable)
        outputs += self._meta(before, end)
        self._progress.checkpoint(self._offset(), end)
        return outputs + self._passed(end)

    def _close_job(self, job: str, end: int, summaries: list[results.Window], *, unavailable: bool) -> list[Output]:
        """One job's window, and what the fleet stage is told of it."""
        keeper = self._jobs.setdefault(job, JobKeeper(JobState(job=job), self.config, self._known))
        reporter = self._reporters.setdefault(job, Reporter(job))
        try:
            found = keeper.close(end, summaries, unavailable=unavailable)
        except Exception as error:
            # One job must not stop the others: what was known of it is lost, loudly, and it begins anew.
            del self._jobs[job], self._reporters[job]
            failed = dead_letter_output(failed_window(job, end, self.name, error), end)
            return [failed, *_to_fleet(reporter.gone(end))]
        try:
            incidents = [one.record for one in found if isinstance(one.record, results.Incident)]
            found += _to_fleet(_reports(reporter, end, keeper, incidents, summaries))
        except Exception as error:
            # What was found of the job stands; where it runs is told anew.
            found.append(dead_letter_output(failed_window(f"{job}|fleet report", end, self.name, error), end))
            reporter = self._reporters[job] = Reporter(job)
        if keeper.idle:
            found += _to_fleet(reporter.gone(end))
            del self._jobs[job], self._reporters[job]
        return found

    def _passed(self, end: int) -> list[Output]:
        """That this partition is through the window, to every partition of the fleet stage."""
        progress = results.Progress(partition=self.partition, end=end)
        return [
            Output(topic="fleet", key=f"progress|{self.partition}", record=progress, time=end, partition=number)
            for number in range(self._raw_partitions)
        ]

    def _meta(self, before: int | None, end: int) -> list[Output]:
        """That the partition lives, and who was left out; every partition hears of the latter, so the first says it."""
        said = [] if self.partition else skips(self._skips, end, self._progress.skipped_by_partition(end))
        alive = beat(self.partition, before, end)
        said += [] if alive is None else [alive]
        return [Output(topic="meta", key=one.cluster, record=one, time=end) for one in said]

    def _offset(self) -> int:
        """From where to read on: the first summary of the oldest open window."""
        first = self._summaries.first_offset
        return self._next if first is None else first

    def written(self) -> Snapshot:
        """The state at the window boundary just closed, with the offset to read on from."""
        offset = self._offset()
        state = JobStageState(
            offset=offset,
            progress=self._progress.checkpoint(offset, self._closed or 0),
            closed=self._closed,
            jobs=[self._jobs[job].written() for job in sorted(self._jobs)],
            reporters={job: self._reporters[job].state for job in sorted(self._reporters)},
            skips=self._skips,
        )
        return Snapshot(
            stage=self.name,
            partition=self.partition,
            end=self._closed or 0,
            config=self.config.state_hash,
            offsets={f"windows|{self.partition}": offset},
            state=written(state),
        )

    def restore(self, raw: msgspec.Raw) -> None:
        """Begin again from a written state."""
        state = msgspec.json.decode(raw, type=JobStageState)
        self._next = state.offset
        self._progress = PartitionProgress(self._raw_partitions, state.progress)
        self._closed = state.closed
        self._summaries = Summaries(self._read)
        self._skips = state.skips
        self._jobs = {job.job: JobKeeper(job, self.config, self._known) for job in state.jobs}
        self._reporters = {job: Reporter(job, one) for job, one in state.reporters.items()}


def _reports(
    reporter: Reporter,
    end: int,
    keeper: JobKeeper,
    incidents: list[results.Incident],
    summaries: list[results.Window],
) -> list[FleetReport]:
    """What the fleet stage is told; what nodes without a job say is told to their own clusters."""
    if reporter.job == NO_JOB:
        by_cluster: dict[str, list[results.Window]] = {}
        for one in summaries:
            by_cluster.setdefault(one.identity.cluster, []).append(one)
        return reporter.of_no_job(end, {name: complaints_of(by_cluster[name]) for name in sorted(by_cluster)})
    cluster = max((one.identity.cluster for one in summaries), default="")
    return reporter.report(end, keeper.views, incidents, complaints_of(summaries), cluster)


def _to_fleet(reports: list[FleetReport]) -> list[Output]:
    return [Output(topic="fleet", key=one.cluster, record=one, time=one.end) for one in reports]
