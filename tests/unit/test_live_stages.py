"""The stages of the partitions that a worker owns: who owns which, and since when, changes nothing that is said."""

from __future__ import annotations

from collections import Counter

import pytest
from live_support import GOOD, ODD, TOPICS, Manners, run_groups
from streams_support import (
    BASE,
    CONFIG,
    JOBS,
    SECOND,
    Script,
    at,
    folded,
    hanging,
    lines,
    put,
    raw_of,
    records,
    run,
    said,
    tick,
    written_log,
)

from producers.recording import read_recording
from rankwatch.demo import bundled_recording
from schemas.codec import decode, headers
from schemas.ports import Entry
from schemas.topics import RAW_TOPICS
from streams.live import INPUTS, Limits, LiveStages, StageName
from streams.log.memory import MemoryLog
from streams.runner import Place, PoisonError
from streams.snapshots import MemorySnapshots, SnapshotError
from streams.stages.job import JobStage


def everything(log: MemoryLog, stage: StageName, numbers: set[int]) -> list[tuple[Place, list[Entry]]]:
    """All that lies in the places of these numbers."""
    places = [(topic, number) for topic in INPUTS[stage] for number in sorted(numbers)]
    return [(place, list(log.read(*place, 0, log.end(*place)))) for place in places]


@pytest.mark.parametrize("job", JOBS)
def test_workers_say_exactly_what_the_driver_says(job: str) -> None:
    expected, log = written_log(JOBS[job](), 3), written_log(JOBS[job](), 3)
    run(expected)
    run_groups(log, workers=2, seed=len(job))
    assert said(log, TOPICS) == said(expected, TOPICS)


@pytest.mark.parametrize("job", ["hang", "restart", "spanning", "two at once", "one node"])
@pytest.mark.parametrize(
    ("manners", "moves", "deaths"),
    [(ODD, 0.0, 0.0), (GOOD, 0.2, 0.0), (ODD, 0.1, 0.05), (Manners(most=3, again=0.3, skip=0.3), 0.02, 0.02)],
    ids=["again and skipped", "moved", "killed", "all of it"],
)
def test_entries_again_or_skipped_and_partitions_that_move_change_nothing(
    job: str, manners: Manners, moves: float, deaths: float
) -> None:
    expected = written_log(JOBS[job](), 3)
    run(expected)
    for seed in range(2):
        log = written_log(JOBS[job](), 3)
        run_groups(log, workers=2, seed=seed, manners=manners, moves=moves, deaths=deaths)
        assert folded(log, TOPICS) == folded(expected, TOPICS), seed


def test_a_recorded_job_is_judged_alike_by_three_workers_that_come_and_go() -> None:
    with bundled_recording() as folder:
        recording = read_recording(folder)
    expected, log = written_log(recording, 4), written_log(recording, 4)
    run(expected)
    run_groups(log, workers=3, seed=1, manners=Manners(most=200, again=0.1, skip=0.1), moves=0.1, deaths=0.05)
    assert folded(log, TOPICS) == folded(expected, TOPICS)
    assert folded(log)["incidents"]


@pytest.mark.parametrize("stage", INPUTS)
def test_what_is_owned_begins_at_its_snapshot_or_at_the_start(stage: StageName) -> None:
    log, store = written_log(hanging("hang", 4).recording, 3), MemorySnapshots()
    run(log)
    first = LiveStages(stage, log, store, CONFIG)
    assert first.own({0, 1}) == {(topic, number): 0 for topic in INPUTS[stage] for number in (0, 1)}
    safe = first.take(everything(log, stage, {0, 1}))
    assert set(safe) == {(topic, number) for topic in INPUTS[stage] for number in (0, 1)}
    assert first.own({0, 1}) == {}, "nothing is new"
    second = LiveStages(stage, log, store, CONFIG)
    begin = second.own({1, 2})
    assert begin == {place: safe.get(place, 0) for topic in INPUTS[stage] for place in ((topic, 1), (topic, 2))}
    assert second.next_offsets() == begin
    snapshot = store.load(stage, 1)
    assert snapshot is not None
    assert snapshot.offsets == {f"{topic}|1": begin[topic, 1] for topic in INPUTS[stage]}


def test_what_is_given_up_is_let_go_of_and_its_entries_are_nobodys() -> None:
    log, store = written_log(hanging("hang", 4).recording, 2), MemorySnapshots()
    live = LiveStages("rank", log, store, CONFIG, Limits(held_bytes=1))
    live.own({0, 1})
    logs = [one for one in everything(log, "rank", {0, 1}) if one[0][0] in ("logs", "topology")]
    assert live.take(logs) == {}, "no window closes before the ticks of all topics"
    assert {number for _, number in live.ahead()} == {0, 1}
    assert live.own({1}) == {}
    assert {number for _, number in live.ahead()} == {1}
    before = live.next_offsets()
    assert {number for _, number in before} == {1}
    assert live.take(everything(log, "rank", {0})) == {}
    assert live.next_offsets() == before
    live.own(set())
    assert (live.ahead(), live.next_offsets(), live.take(logs)) == (set(), {}, {})
    assert live.own({0}) == {(topic, 0): 0 for topic in RAW_TOPICS}


def test_ticks_go_to_exactly_the_partitions_that_are_owned() -> None:
    log = MemoryLog(4)
    live = LiveStages("rank", log, MemorySnapshots(), CONFIG)
    live.tick(at(0))
    live.own({0, 2})
    live.tick(at(1))
    live.own({2})
    live.tick(at(2))
    found = {
        place: [decode("tick", entry.value).time for entry in entries if entry.headers == headers("tick")]
        for place, entries in raw_of(log).items()
    }
    expected = {0: [at(1)], 1: [], 2: [at(1), at(2)], 3: []}
    assert found == {(topic, number): expected[number] for topic in RAW_TOPICS for number in range(4)}
    assert {entry.key for entries in raw_of(log).values() for entry in entries} == {b""}


class Flood:
    """One partition in which ``logs`` brings many lines of the windows 0-10 s, 10-20 s and 20-30 s."""

    def __init__(self, *sizes: int) -> None:
        self.log = MemoryLog(1)
        tick(self.log, 0.5)
        for window, size in enumerate(sizes):
            put(self.log, lines([window * 10 + 1], seq=window, text="x" * size))
        tick(self.log, 29.0, ["logs"])
        self.live = LiveStages("rank", self.log, MemorySnapshots(), CONFIG, Limits(held_bytes=1000))
        self.live.own({0})
        self.read: dict[str, int] = {}

    def bring(self, *topics: str) -> set[str]:
        """Take in all that these topics have; returns those that should wait then."""
        for topic in topics:
            self.live.take([((topic, 0), self.log.read(topic, 0, self.read.get(topic, 0), 100))])
            self.read[topic] = self.log.end(topic, 0)
        return {topic for topic, _ in self.live.ahead()}

    @property
    def held(self) -> int:
        return self.live.runners[0].stage.standing.held_bytes


OTHERS = tuple(topic for topic in RAW_TOPICS if topic != "logs")


def test_nobody_waits_while_less_is_held_than_the_bound() -> None:
    flood = Flood(100, 100, 100)
    assert flood.bring("logs", *OTHERS) == set()
    assert 300 < flood.held < 1000


def test_whoever_ran_ahead_waits_beyond_the_bound_and_goes_on_at_half_of_it() -> None:
    flood = Flood(300, 200, 200)
    assert flood.bring("metrics", "logs") == {"metrics", "logs"}, "the others have not even begun"
    assert flood.held > 1000
    assert flood.bring(*OTHERS) == {"logs"}
    tick(flood.log, 13.0, OTHERS)
    assert flood.bring(*OTHERS) == {"logs"}, "one window less, more than half is left"
    assert 500 < flood.held < 1000
    tick(flood.log, 23.0, OTHERS)
    assert flood.bring(*OTHERS) == set()
    assert flood.held < 500


def test_whoever_is_furthest_behind_never_waits_even_if_it_once_ran_ahead() -> None:
    flood = Flood(300, 100, 500)
    assert flood.bring("logs", *OTHERS) == {"logs"}
    # The others are all read to their end; what is left to come stands behind in the topic that was made to wait.
    tick(flood.log, 90.0, OTHERS)
    assert flood.bring(*OTHERS) == set()
    assert 500 < flood.held < 1000
    tick(flood.log, 90.0, ["logs"])
    assert flood.bring("logs") == set()
    assert flood.held == 0


def test_held_back_topics_and_all_others_still_get_through_a_finite_log() -> None:
    """Whatever waits is not read; as long as something is left, something may be read."""
    expected = written_log(JOBS["hang"](), 1)
    run(expected)
    for bound in (1, 2_000, 20_000):
        log = written_log(JOBS["hang"](), 1)
        live = LiveStages("rank", log, MemorySnapshots(), CONFIG, Limits(held_bytes=bound))
        live.own({0})
        while left := [place for place, offset in live.next_offsets().items() if offset < log.end(*place)]:
            waiting = live.ahead()
            assert waiting < {(topic, 0) for topic in RAW_TOPICS}
            place = next((place for place in left if place not in waiting), None)
            assert place is not None, f"all that is left waits: {left}"
            live.take([(place, log.read(*place, live.next_offsets()[place], 7))])
        assert said(log, ("windows", "stamped.logs")) == said(expected, ("windows", "stamped.logs")), bound


def test_a_job_stage_has_one_topic_and_never_waits() -> None:
    log = written_log(hanging("hang", 4).recording, 1)
    run(log)
    live = LiveStages("job", log, MemorySnapshots(), CONFIG, Limits(held_bytes=1))
    live.own({0})
    live.take([(("windows", 0), log.read("windows", 0, 0, 3))])
    assert live.runners[0].stage.standing.held_bytes > 1
    assert live.ahead() == set()


def drained_one_after_another(job: str, raw: int = 3) -> MemoryLog:
    """A log whose rank stages were run to the end one by one: each holds all windows of those before it open."""
    log = written_log(JOBS[job](), raw)
    for number in range(raw):
        live = LiveStages("rank", log, MemorySnapshots(), CONFIG)
        live.own({number})
        live.take(everything(log, "rank", {number}))
    return log


def job_drained(log: MemoryLog, limits: Limits) -> int:
    """Run the job stages, one after another and a few entries at a time; what one held in memory at most."""
    live, most = LiveStages("job", log, MemorySnapshots(), CONFIG, limits), 0
    for number in range(log.partitions("windows")):
        live.own({number})
        while entries := log.read("windows", number, live.next_offsets()["windows", number], 5):
            live.take([(("windows", number), entries)])
            live.ahead()
            most = max(most, live.runners[number].stage.standing.held_bytes)
    return most


def largest_window(log: MemoryLog) -> int:
    """Bytes of the summaries of one window in one partition at most."""
    sizes: Counter[tuple[int, int]] = Counter()
    for number in range(log.partitions("windows")):
        for entry in log.read("windows", number, 0, 10**6):
            if entry.headers == headers("window"):
                sizes[number, decode("window", entry.value).end] += len(entry.value)
    return max(sizes.values())


@pytest.mark.parametrize("job", ["hang", "restart", "two at once"])
@pytest.mark.parametrize("most", [1, 3_000])
def test_a_job_stage_leaves_in_the_log_what_is_beyond_the_bound_and_says_the_same(job: str, most: int) -> None:
    expected, log = drained_one_after_another(job), drained_one_after_another(job)
    unbounded, bounded = job_drained(expected, Limits()), job_drained(log, Limits(held_bytes=most))
    assert bounded < unbounded
    assert bounded <= most + largest_window(log)
    assert said(log, TOPICS) == said(expected, TOPICS)
    assert said(log, TOPICS)["incidents"] and not said(log, TOPICS)["dead-letters"]


def test_summaries_that_the_log_no_longer_has_when_their_turn_comes_are_told() -> None:
    log = drained_one_after_another("hang")
    live = LiveStages("job", log, MemorySnapshots(), CONFIG, Limits(held_bytes=1))
    job = next(number for number in range(3) if log.end("windows", number) > 100)
    live.own({job})
    place = ("windows", job)
    entries = log.read(*place, 0, 10**6)
    cut = next(entry.offset for entry in entries if b'"partition":2' in entry.value)
    live.take([(place, entries[:cut])])
    live.ahead()
    stage = live.runners[job].stage
    assert isinstance(stage, JobStage)
    stage._summaries._read = lambda at, limit: log.read(*place, max(at, cut // 2), limit)
    live.take([(place, entries[cut:])])
    letters = records(log, "dead-letters")
    counts = [int(letter.reason.split()[0]) for letter in letters]
    assert counts and all("no longer in the topic" in letter.reason for letter in letters)
    assert sum(counts) <= sum(entry.headers == headers("window") for entry in entries[: cut // 2])


def test_poison_and_snapshots_of_others_stop_it() -> None:
    log, store = MemoryLog(1), MemorySnapshots()
    for _ in range(4):
        log.append("logs", b"k", b"{", headers("log"), BASE, 0)
    live = LiveStages("rank", log, store, CONFIG, Limits(poison=3))
    live.own({0})
    with pytest.raises(PoisonError, match="4 records in a row of topic logs"):
        live.take(everything(log, "rank", {0}))
    script = Script("job")
    script.log(lines([1]).identity, 1, "hello")
    log = written_log(script.recording, 1)
    live = LiveStages("rank", log, store, CONFIG)
    live.own({0})
    assert live.take(everything(log, "rank", {0}))
    other = LiveStages("rank", log, store, type(CONFIG)(window_s=CONFIG.window_ns / SECOND / 2))
    with pytest.raises(SnapshotError, match="another configuration"):
        other.own({0})
