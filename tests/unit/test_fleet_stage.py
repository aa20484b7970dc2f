"""The fleet stage: a window closes once every partition of the job stage is through it; nothing else matters."""

from __future__ import annotations

import pytest
from fleet_support import T0, at, report, told

from schemas.codec import encode, headers, kind_of
from schemas.fleet import FleetReport
from schemas.meta import MetaAlert
from schemas.ports import Entry
from schemas.results import DeadLetter, Incident, Progress
from streams.config import StreamConfig
from streams.fleet.cluster import ClusterKeeper
from streams.log.partition import partition_of
from streams.stages.fleet import MOST_CLUSTERS, FleetStage
from streams.stages.outputs import Output

PARTITIONS = 3
One = FleetReport | Progress


def progress(partition: int, end: float) -> Progress:
    return Progress(partition=partition, end=at(end))


class Topic:
    """A partition of the fleet topic, and what a stage makes of it."""

    def __init__(self, *records: One) -> None:
        self.entries = [
            Entry(offset, b"a", encode(one), headers(kind_of(one)), T0) for offset, one in enumerate(records)
        ]

    def played(self, cuts: int = 1, stage: FleetStage | None = None) -> tuple[FleetStage, list[Output]]:
        """The stage and its outputs; it closes what it can after so many entries each."""
        stage = stage or FleetStage(0, PARTITIONS, StreamConfig())
        outputs: list[Output] = []
        for entry in self.entries:
            if entry.offset < stage.next_offset("fleet", 0):
                continue
            outputs += stage.on_entry("fleet", 0, entry)
            if entry.offset % cuts == 0:
                outputs += closed(stage)
        return stage, outputs + closed(stage)


def closed(stage: FleetStage) -> list[Output]:
    outputs: list[Output] = []
    while (found := stage.close()) is not None:
        outputs += found
    return outputs


def revisions(outputs: list[Output]) -> list[Incident]:
    return [one.record for one in outputs if isinstance(one.record, Incident)]


def story(*, idle_partition_each_window: bool = True) -> list[One]:
    """Jobs of three partitions; those of the third have nothing to tell."""
    records: list[One] = []
    for number in range(1, 40):
        end = 10.0 * number
        if number == 13:
            records.append(report(told("a"), end))
        records.append(progress(0, end))
        if number == 14:
            records.append(report(told("b"), end))
        records.append(progress(1, end))
        if idle_partition_each_window or number % 7 == 0 or number == 39:
            records.append(progress(2, end))
    return records


def test_nothing_is_said_before_all_partitions_have_reported() -> None:
    both = [report(told("a"), 130), report(told("b"), 130)]
    stage, outputs = Topic(*both, progress(0, 130), progress(1, 130)).played()
    assert (outputs, stage.standing.open_windows) == ([], 1)
    assert stage.standing.held_bytes > 0
    _, outputs = Topic(*both, *(progress(number, 130) for number in range(3))).played()
    assert [one.published for one in revisions(outputs)] == [at(130)]


@pytest.mark.parametrize("cuts", [1, 2, 5, 17, 1000])
def test_results_depend_neither_on_cuts_nor_on_how_often_idle_partitions_report(cuts: int) -> None:
    _, expected = Topic(*story()).played()
    assert [one.revision for one in revisions(expected)] == [1]
    for idle in (True, False):
        _, outputs = Topic(*story(idle_partition_each_window=idle)).played(cuts)
        assert outputs == expected


def test_what_is_sent_again_after_a_crash_counts_once() -> None:
    records = story()
    again = [one for record in records for one in ((record, record) if isinstance(record, FleetReport) else (record,))]
    late = [*records, *(one for one in records if isinstance(one, FleetReport)), progress(0, 130)]
    _, expected = Topic(*records).played()
    assert Topic(*again).played()[1] == expected
    assert Topic(*late).played()[1] == expected


def skipping() -> list[One]:
    """Partition 1 stalls after window 12; from window 16 on it is gone on without, and at window 20 it wakes up."""
    job = next(name for name in "abcdefgh" if partition_of(name.encode(), PARTITIONS) == 1)
    other = next(name for name in "abcdefgh" if partition_of(name.encode(), PARTITIONS) == 0)
    records: list[One] = []
    for number in range(1, 30):
        end = 10.0 * number
        if number == 13:
            records.append(report(told(other), end))
        records += [progress(0, end), progress(2, end)]
        if number <= 12 or number > 20:
            records.append(progress(1, end))
        if number in (16, 17, 18, 19):
            records.append(Progress(partition=1, end=at(end), skipped=True))
        if number == 20:
            for late in range(13, 21):
                records += [report(told(job), 140)] if late == 14 else []
                records.append(progress(1, 10.0 * late))
    return records


@pytest.mark.parametrize("cuts", [1, 3, 1000])
def test_what_a_partition_tells_that_was_gone_on_without_counts_once_it_tells_it(cuts: int) -> None:
    records = skipping()
    _, outputs = Topic(*records).played(cuts)
    (found,) = revisions(outputs)
    assert (len(found.members), found.published) == (2, at(200))
    twice = [again for one in records for again in ([one, one] if isinstance(one, FleetReport) else [one])]
    assert Topic(*twice).played(cuts)[1] == outputs
    late = [*records, *(one for one in records if isinstance(one, FleetReport)), progress(0, 290)]
    assert Topic(*late).played(cuts)[1] == outputs


@pytest.mark.parametrize("kill", range(0, 100, 7))
def test_a_stage_that_begins_again_while_a_partition_is_gone_on_without_says_the_same(kill: int) -> None:
    topic = Topic(*skipping())
    _, expected = topic.played()
    first, before = Topic(*skipping()[:kill]).played()
    second = FleetStage(0, PARTITIONS, StreamConfig())
    second.restore(first.written().state)
    assert before + topic.played(stage=second)[1] == expected


@pytest.mark.parametrize("kill", range(0, 118, 9))
def test_a_stage_that_begins_again_from_its_snapshot_says_the_same(kill: int) -> None:
    topic = Topic(*story())
    _, expected = topic.played()
    first, before = Topic(*story()[:kill]).played()
    snapshot = first.written()
    second = FleetStage(0, PARTITIONS, StreamConfig())
    second.restore(snapshot.state)
    assert second.next_offset("fleet", 0) == snapshot.offsets["fleet|0"]
    assert second.written() == snapshot
    _, after = topic.played(stage=second)
    assert before + after == expected


def test_what_cannot_be_read_is_a_dead_letter() -> None:
    stage = FleetStage(0, PARTITIONS, StreamConfig())
    (letter,) = stage.on_entry("fleet", 0, Entry(0, b"a", b"{", headers("fleet_report"), T0))
    assert isinstance(letter.record, DeadLetter) and letter.record.stage == "fleet"


def test_a_cluster_that_makes_it_fail_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = ClusterKeeper.close

    def close(keeper: ClusterKeeper, end: int, reports: list[FleetReport]) -> object:
        if keeper.state.cluster == "bad":
            raise ValueError("no")
        return healthy(keeper, end, reports)

    monkeypatch.setattr(ClusterKeeper, "close", close)
    bad = report("x", 130, cluster="bad")
    _, outputs = Topic(
        bad, report(told("a"), 130), report(told("b"), 130), *(progress(n, 130) for n in range(3))
    ).played()
    assert len(revisions(outputs)) == 1
    (letter,) = [one.record for one in outputs if isinstance(one.record, DeadLetter)]
    assert letter.reason.endswith("ValueError: no")


def test_windows_in_which_nobody_reports_are_written_down_now_and_then() -> None:
    stage, written = FleetStage(0, PARTITIONS, StreamConfig()), []
    for number in range(1, 31):
        end = 10.0 * number
        said = [report("a", end)] if number == 3 else []
        for one in (*said, *(progress(partition, end) for partition in range(PARTITIONS))):
            offset = stage.next_offset("fleet", 0)
            stage.on_entry("fleet", 0, Entry(offset, b"a", encode(one), headers(kind_of(one)), T0))
        if stage.close() is not None:
            written.append(number)
        assert stage.standing.closed == at(end)
    assert written == [1, 3, 9, 15, 21, 27]


def test_what_a_cluster_has_no_room_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.fleet.cluster.MOST_JOBS", 1)
    jobs = [report(job, 130, nodes=["n"]) for job in "abc"]
    _, outputs = Topic(*jobs, *(progress(n, 130) for n in range(3))).played()
    (alert,) = [one.record for one in outputs if isinstance(one.record, MetaAlert)]
    assert (alert.name, alert.subject, alert.status) == ("fleet_left_out", "cluster a", "firing")
    assert alert.text.startswith("there was no room for 2 more")


def test_clusters_are_bounded_and_told_apart() -> None:
    many = [report("j", 10.0 * n, cluster=f"c{n}") for n in range(1, MOST_CLUSTERS + 50)]
    stage, _ = Topic(*many, *(progress(number, 10.0 * len(many)) for number in range(3))).played()
    assert len(stage._clusters) == MOST_CLUSTERS
    apart = [report(told("a"), 130), report(told("b"), 130, cluster="other")]
    _, outputs = Topic(*apart, *(progress(number, 130) for number in range(3))).played()
    assert revisions(outputs) == []
