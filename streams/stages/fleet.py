"""The fleet stage: closes a window once every partition of the job stage is through it, and joins what jobs report.

Windows in which no job of the partition's clusters reports anything pass without a word, so results follow from the
reports alone, not from how often partitions tell how far they are.
"""

from __future__ import annotations

import msgspec

from schemas import results
from schemas.entries import read_entry
from schemas.fleet import FleetReport
from schemas.identity import NO_JOB
from schemas.ports import Entry
from schemas.results import Snapshot
from streams.config import StreamConfig
from streams.fleet.cluster import ClusterKeeper, ClusterState
from streams.log.partition import partition_of
from streams.stages.dead_letters import dead_letter_output, failed_window
from streams.stages.outputs import Output
from streams.stages.progress import PartitionProgress, ProgressState
from streams.stages.standing import Standing
from streams.state import written

STAGE = "fleet"
UNWRITTEN_NS = 60 * 1_000_000_000
"""Windows in which nobody reports anything need no writing down for so long: they are passed over once more then."""
MOST_CLUSTERS = 1_000
"""Those that were silent for longest are forgotten beyond it."""


class FleetStageState(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down at a window boundary; ``progress`` as of ``offset``."""

    offset: int
    progress: ProgressState
    closed: int | None
    clusters: list[ClusterState]


class FleetStage:
    """Partition ``partition`` of the fleet topic; ``job_partitions`` partitions of the job stage report to it."""

    name = STAGE

    def __init__(self, partition: int, job_partitions: int, config: StreamConfig) -> None:
        self.partition = partition
        self.config = config
        self.inputs: tuple[tuple[str, int], ...] = (("fleet", partition),)
        self._job_partitions = job_partitions
        self._next = 0
        self._progress = PartitionProgress(job_partitions)
        self._closed: int | None = None
        self._boundary: int | None = None
        self._open: dict[int, dict[str, tuple[int, int, FleetReport]]] = {}
        self._clusters: dict[str, ClusterKeeper] = {}

    def next_offset(self, topic: str, partition: int) -> int:
        """From where to read on."""
        return self._next

    def behind(self, topic: str) -> int:
        """How far the windows have come."""
        return self._closed or -1

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        held = sum(size for reports in list(self._open.values()) for _, size, _ in list(reports.values()))
        return Standing(
            closed=self._closed,
            open_windows=len(self._open),
            held_bytes=held,
            waits_for=self._progress.waited_for,
        )

    def bound(self, held_bytes: int) -> None:
        """Reports are small beside what they are made of: nothing is let go of."""

    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]:
        """Take one entry in; returns only what was unreadable."""
        self._next = entry.offset + 1
        read = read_entry(entry, topic, partition, self.name)
        if isinstance(read, results.DeadLetter):
            return [dead_letter_output(read, entry.time)]
        _, record = read
        if isinstance(record, results.Progress):
            self._progress.report(entry.offset, record)
        else:
            self._take(entry, record)
        return []

    def _take(self, entry: Entry, report: FleetReport) -> None:
        origin = partition_of(report.job.encode("utf-8", "replace"), self._job_partitions)
        if self._progress.has_told(origin, report.end):
            return  # Behind its own partition's progress it is one sent again after a crash, and known.
        # What comes behind the decision to go on without its partition counts in the next window that is open.
        low = self._progress.low
        end = report.end if low is None or report.end > low else low + self.config.window_ns
        if self._closed is None or end > self._closed:
            self._open.setdefault(end, {}).setdefault(report.id, (entry.offset, len(entry.value), report))

    def close(self) -> list[Output] | None:
        """Close the next window that all partitions have reported; its outputs, or null where there is none.

        Those in which nobody reports anything are passed over together, and null is said of them for a while.
        """
        low = self._progress.low
        if low is None or (self._closed is not None and low <= self._closed):
            return None
        end = min(min(self._open, default=low), low)
        if end not in self._open and self._boundary is not None and end - self._boundary < UNWRITTEN_NS:
            self._closed = end
            return None
        self._boundary = end
        by_cluster: dict[str, list[FleetReport]] = {}
        for _, _, report in self._open.pop(end, {}).values():
            by_cluster.setdefault(report.cluster, []).append(report)
        self._closed = end
        outputs: list[Output] = []
        for cluster in sorted(by_cluster):
            outputs += self._close_cluster(cluster, end, by_cluster[cluster])
        self._forget_clusters()
        self._progress.checkpoint(self._offset(), end)
        return outputs

    def _close_cluster(self, cluster: str, end: int, reports: list[FleetReport]) -> list[Output]:
        keeper = self._clusters.setdefault(cluster, ClusterKeeper(ClusterState(cluster=cluster)))
        try:
            revisions, histories = keeper.close(end, reports)
            left_out = keeper.left_out(end)
        except Exception as error:
            # One cluster must not stop the others: what was known of it is lost, loudly, and it begins anew.
            del self._clusters[cluster]
            return [dead_letter_output(failed_window(f"cluster {cluster}", end, self.name, error), end)]
        return [
            *(Output(topic="incidents", key=NO_JOB, record=one, time=end) for one in revisions),
            *(Output(topic="node.history", key=f"{cluster}|{one.node}", record=one, time=end) for one in histories),
            *(Output(topic="meta", key=cluster, record=one, time=end) for one in left_out),
        ]

    def _forget_clusters(self) -> None:
        if len(self._clusters) > MOST_CLUSTERS:
            last = sorted((keeper.state.at, cluster) for cluster, keeper in self._clusters.items())
            for _, cluster in last[: len(last) - MOST_CLUSTERS]:
                del self._clusters[cluster]

    def _offset(self) -> int:
        """From where to read on: the first report of the oldest open window."""
        offsets = [offset for reports in self._open.values() for offset, _, _ in reports.values()]
        return min(offsets, default=self._next)

    def written(self) -> Snapshot:
        """The state at the window boundary just closed, with the offset to read on from."""
        offset = self._offset()
        state = FleetStageState(
            offset=offset,
            progress=self._progress.checkpoint(offset, self._closed or 0),
            closed=self._closed,
            clusters=[self._clusters[cluster].written() for cluster in sorted(self._clusters)],
        )
        return Snapshot(
            stage=self.name,
            partition=self.partition,
            end=self._closed or 0,
            config=self.config.state_hash,
            offsets={f"fleet|{self.partition}": offset},
            state=written(state),
        )

    def restore(self, raw: msgspec.Raw) -> None:
        """Begin again from a written state."""
        state = msgspec.json.decode(raw, type=FleetStageState)
        self._next = state.offset
        self._progress = PartitionProgress(self._job_partitions, state.progress)
        self._closed = self._boundary = state.closed
        self._open = {}
        self._clusters = {one.cluster: ClusterKeeper(one) for one in state.clusters}
