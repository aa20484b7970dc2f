"""What must not stop a stage, and what must stop it at its start."""

from __future__ import annotations

import msgspec
import pytest
from streams_support import CONFIG, TRACEBACK, Script, at, records, run, worker, written_log

from schemas.codec import encode, headers
from schemas.events import Batch, Metric
from schemas.results import DeadLetter
from streams.attempt_window import AttemptWindow
from streams.config import StreamConfig
from streams.detectors.no_iteration import NoIteration
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.snapshots import FileSnapshots, MemorySnapshots, SnapshotError
from streams.stages.measured import EXTREME
from streams.view import AttemptView


def letters(log: MemoryLog) -> list[DeadLetter]:
    return records(log, "dead-letters")


def short(job: str, text: str = "hello") -> Script:
    script = Script(job)
    script.start(2)
    for second in range(1, 31):
        for rank in range(2):
            script.log(worker(job, rank), second, text)
    return script


def test_a_job_that_makes_the_stage_fail_stops_no_other_and_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    update = AttemptView.update

    def failing(view: AttemptView, window: AttemptWindow) -> None:
        if window.job == "bad":
            raise RuntimeError("a bug")
        update(view, window)

    monkeypatch.setattr(AttemptView, "update", failing)
    script = short("bad")
    script.observations += short("good").observations
    log = written_log(script.recording)
    run(log)
    assert {letter.key for letter in letters(log)} == {b"bad"}
    assert "RuntimeError: a bug" in letters(log)[0].reason
    assert {template.job for template in records(log, "templates")} == {"good"}


def test_a_detector_that_fails_silences_no_other_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    observe, begun = NoIteration.observe, []

    def failing(detector: NoIteration, view: AttemptView, window: AttemptWindow) -> object:
        begun.append(detector)
        if window.job == "bad":
            raise RuntimeError("a\nbug \ud800")
        return observe(detector, view, window)

    monkeypatch.setattr(NoIteration, "observe", failing)
    script = short("bad")
    script.observations += short("good").observations
    for job in ("bad", "good"):
        script.log(worker(job, 1), 31, TRACEBACK)
    log = written_log(script.recording)
    run(log)
    found = letters(log)
    assert {letter.key for letter in found} == {b"bad|0|no_iteration"}
    (reason,) = {letter.reason for letter in found}
    assert reason == "detector no_iteration failed and begins anew: RuntimeError: a bug ?"
    assert len({letter.offset for letter in found}) == len(found) > 2
    assert len({id(one) for one in begun}) == len(found) + 1
    told = {one.job: (one.severity, one.summary.replace("bad", "good")) for one in records(log, "incidents")}
    assert told["bad"] == told["good"]


@pytest.mark.parametrize(
    "line",
    [
        "using world size: 0, data-parallel size: 0, pipeline-model-parallel size: 1",
        "using world size: 0, data-parallel size: 0, tensor-model-parallel size: 0, pipeline-model-parallel size: 0",
    ],
)
def test_a_layout_of_nothing_divides_nothing(line: str) -> None:
    script = short("job", line)
    script.log(worker("job", 1), 31, TRACEBACK)
    log = written_log(script.recording)
    run(log)
    assert letters(log) == []
    assert any(anomaly.grounds == "own_error" for anomaly in records(log, "anomalies"))


def test_timers_beyond_all_sums_are_counted_and_leave_a_state_that_can_be_read() -> None:
    script = Script()
    script.start(4)
    for step in range(1, 60):
        for rank in range(4):
            value = "1.7e308" if rank == 2 else "-1.7e308" if rank == 3 else "100.0"
            script.log(worker("job", rank), step, f"step {step} timers (ms): compute {value} total 900.0", step)
    log, store = written_log(script.recording), MemorySnapshots()
    run(log, store=store)
    Driver(log, CONFIG, store=store).run()
    assert letters(log) == []
    dropped = sum(
        window.dropped.get("extreme.compute_ms", 0) for window in records(log, "windows") if is_window(window)
    )
    assert dropped == 2 * 59 and EXTREME < 1.7e308


def is_window(record: object) -> bool:
    return hasattr(record, "signatures")


def test_a_batch_in_a_partition_that_is_not_its_own_is_a_dead_letter() -> None:
    log = written_log(short("job").recording, 2)
    who = worker("job", 0)
    batch = Batch(producer="p", boot="0", seq=1, identity=who, events=[Metric(time=at(5), name="x", value=1.0)])
    kept = [log.append("metrics", who.key.encode(), encode(batch), headers("metric"), at(5))[0]]
    (strange,) = {0, 1} - set(kept)
    log.append("metrics", who.key.encode(), encode(batch), headers("metric"), at(5), strange)
    run(log)
    (letter,) = letters(log)
    assert (letter.partition, letter.value) == (strange, encode(batch))
    assert "murmur2" in letter.reason


def test_a_snapshot_of_another_configuration_is_refused_at_the_start() -> None:
    log, store = written_log(short("job").recording), MemorySnapshots()
    run(log, store=store)
    with pytest.raises(SnapshotError, match="another configuration"):
        Driver(log, StreamConfig(window_s=20), store=store)


def test_a_snapshot_that_means_nothing_is_refused_at_the_start(tmp_path: object) -> None:
    log, store = written_log(short("job").recording), MemorySnapshots()
    run(log, store=store)
    saved = store.load("job", 0)
    assert saved is not None
    store.save(msgspec.structs.replace(saved, state=msgspec.Raw(b'{"offset": "none"}')))
    with pytest.raises(SnapshotError, match="cannot be read"):
        Driver(log, CONFIG, store=store)
    files = FileSnapshots(tmp_path)  # type: ignore[arg-type]
    (tmp_path / "rank-0.json").write_bytes(b"{")  # type: ignore[operator]
    with pytest.raises(SnapshotError, match="rank-0"):
        files.load("rank", 0)


def test_an_attempt_of_which_nothing_is_heard_ends_its_incident() -> None:
    script = short("job")
    script.log(worker("job", 1), 31, TRACEBACK)
    config = StreamConfig(idle_windows=3)
    other = short("other")
    for second in range(31, 120):
        other.log(worker("other", 0), second, "still here")
    script.observations += other.observations
    log = written_log(script.recording, config=config)
    run(log, config)
    last = max((one for one in records(log, "incidents") if one.job == "job"), key=lambda one: one.revision)
    assert (last.status, last.resolution) == ("resolved", "nothing is heard of the attempt any more")
