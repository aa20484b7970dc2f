"""What every detector must obey, whichever it is."""

from __future__ import annotations

import functools
import json
import pkgutil
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from streams_support import (
    JOBS,
    described,
    diverging,
    leaking,
    library_of,
    profiled,
    recording_of,
    records,
    run,
    slowing,
    starting,
    steady,
    talking,
    traced,
    written_log,
)

import streams.detectors
from schemas.codec import decode, encode
from schemas.results import Anomaly, Drift, Window
from streams.attempt_window import AttemptWindow
from streams.config import StreamConfig
from streams.detectors import registry
from streams.detectors.log_novelty import LogNovelty
from streams.driver import Driver
from streams.library.known import Known
from streams.log.memory import MemoryLog
from streams.view import AttemptView

JOB = [one.name for one in registry.registered("job")]
RANK = [one.name for one in registry.registered("rank")]
Sequence = list[AttemptWindow]
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def sequences() -> dict[str, Sequence]:
    """Windows by job and attempt, as the job stage showed them to its detectors."""
    found: dict[str, Sequence] = {}
    observe = LogNovelty.observe

    def watched(detector: LogNovelty, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        found.setdefault(f"{view.job}|{view.attempt}", []).append(window)
        return observe(detector, view, window)

    known = Known(library_of(steady("fine", 8, 20), profiled("fine too", slow=0.0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogNovelty, "observe", watched)
        for name in ("hang", "slow", "restart", "killed", "ailing", "profiled"):
            run(written_log(JOBS[name]()), known=known)
        like = Known(library_of(described("like")))
        for script in (described("slower", step_s=2), described("wordier", lines=3), starting()):
            run(written_log(script.recording), known=like)
        run(written_log(talking().recording))
        run(written_log(leaking().recording))
        run(written_log(diverging().recording))
        run(written_log(traced().recording))
    return found


def detector_of(name: str) -> Any:
    (found,) = [one for stage in ("job", "rank") for one in registry.build(stage, {}) if one.name == name]
    return found


class Watch:
    """A detector and the view that it is shown."""

    def __init__(self, name: str, window: AttemptWindow) -> None:
        self.name = name
        self.detector = detector_of(name)
        self.view = AttemptView(job=window.job, attempt=window.attempt, first=window.start)

    def see(self, window: AttemptWindow) -> list[Anomaly]:
        self.view.update(window)
        found: list[Anomaly] = self.detector.observe(self.view, window)
        return found

    def written(self) -> tuple[bytes, bytes]:
        """State and view as they are written down."""
        return bytes(self.detector.snapshot()), msgspec.json.encode(self.view)


def begun_again(name: str, window: AttemptWindow, written: tuple[bytes, bytes]) -> Watch:
    """New objects that were read back."""
    watch = Watch(name, window)
    watch.detector.restore(msgspec.Raw(written[0]))
    watch.view = msgspec.json.decode(written[1], type=AttemptView)
    return watch


Findings = list[list[bytes]]
"""What a detector finds in each window of a sequence, encoded."""


def seen(watch: Watch, windows: Sequence) -> Findings:
    return [[encode(one) for one in watch.see(window)] for window in windows]


def findings(name: str, windows: Sequence) -> Findings:
    return seen(Watch(name, windows[0]), windows)


FoundBy = Callable[[str], dict[str, Findings]]


@pytest.fixture(scope="module")
def found_by(sequences: dict[str, Sequence]) -> FoundBy:
    """What a detector finds by job and attempt, each worked out once."""
    return functools.cache(lambda name: {attempt: findings(name, windows) for attempt, windows in sequences.items()})


@pytest.mark.parametrize("name", JOB)
def test_every_detector_has_something_to_say_here(name: str, found_by: FoundBy) -> None:
    """Or the tests below would compare nothing with nothing."""
    assert any(any(found) for found in found_by(name).values())


@pytest.mark.parametrize("name", JOB)
def test_a_snapshot_at_any_window_changes_no_finding(
    name: str, sequences: dict[str, Sequence], found_by: FoundBy
) -> None:
    for attempt, windows in sequences.items():
        expected = found_by(name)[attempt]
        watch = Watch(name, windows[0])
        for cut in range(1, len(windows)):
            assert seen(watch, windows[cut - 1 : cut]) == expected[cut - 1 : cut], f"{attempt}: written down again"
            again = begun_again(name, windows[0], watch.written())
            assert seen(again, windows[cut:]) == expected[cut:], f"{attempt}: written down before window {cut}"


@pytest.mark.parametrize("name", JOB)
def test_a_job_detector_says_the_same_twice(name: str, sequences: dict[str, Sequence], found_by: FoundBy) -> None:
    for attempt, windows in sequences.items():
        assert findings(name, windows) == found_by(name)[attempt]


@pytest.mark.parametrize("name", JOB)
def test_findings_of_a_detector_have_ids_of_their_own(name: str, found_by: FoundBy) -> None:
    every = [one for found in found_by(name).values() for window in found for one in window]
    ids = [decode("anomaly", one).id for one in every]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", JOB)
def test_findings_say_who_found_them_and_in_which_window(name: str, sequences: dict[str, Sequence]) -> None:
    for windows in sequences.values():
        watch = Watch(name, windows[0])
        for window in windows:
            for one in watch.see(window):
                assert (one.detector, one.config) == (name, watch.detector.config_hash)
                assert (one.job, one.attempt) == (window.job, window.attempt)
                assert (one.start, one.end) == (window.start, window.end)
                assert one.onset < one.end
                assert all(0 < suspect.score <= 1 for suspect in one.suspects)
                assert not {suspect.rank for suspect in one.suspects} & set(one.victims)
                if watch.detector.supporting:
                    assert (one.severity, one.suspects, one.victims) == ("info", [], [])


@pytest.mark.parametrize("name", JOB)
def test_the_state_of_a_job_detector_is_json_and_bounded(name: str, sequences: dict[str, Sequence]) -> None:
    for windows in sequences.values():
        watch = Watch(name, windows[0])
        for window in windows:
            watch.see(window)
            raw = bytes(watch.detector.snapshot())
            assert json.loads(raw) is not None
            assert len(raw) < MOST_BYTES


@pytest.fixture(scope="module")
def of_healthy_jobs() -> list[Anomaly]:
    log = written_log(recording_of(steady("fine", 8, 60), profiled("fine too", slow=0.0)))
    run(log, known=Known(library_of(steady("other", 8, 60), profiled("another", slow=0.0))))
    return records(log, "anomalies")


@pytest.mark.parametrize("name", JOB)
def test_a_healthy_job_gives_no_finding(name: str, of_healthy_jobs: list[Anomaly]) -> None:
    assert not [one for one in of_healthy_jobs if one.detector == name]


def windows_of_ranks() -> dict[int, list[Window]]:
    log = written_log(slowing("slow", 4, 160).recording)
    run(log)
    found: dict[int, list[Window]] = {}
    for one in sorted(records(log, "windows"), key=lambda one: one.start):
        if one.identity.rank is not None:
            found.setdefault(one.identity.rank, []).append(one)
    return found


def drifts(name: str, windows: list[Window], cut: int | None = None) -> list[Drift]:
    detector = detector_of(name)
    found: list[Drift] = []
    for number, window in enumerate(windows):
        if number == cut:
            raw = bytes(detector.snapshot())
            assert json.loads(raw) is not None
            assert len(raw) < MOST_BYTES
            detector = detector_of(name)
            detector.restore(msgspec.Raw(raw))
        found += detector.observe(window.reported)
    return found


@pytest.mark.parametrize("name", RANK)
def test_a_snapshot_at_any_window_changes_no_drift(name: str) -> None:
    by_rank = windows_of_ranks()
    assert drifts(name, by_rank[3])
    for windows in by_rank.values():
        expected = drifts(name, windows)
        for cut in range(1, len(windows)):
            assert drifts(name, windows, cut) == expected, cut


@pytest.mark.parametrize("name", [*JOB, *RANK])
def test_a_detector_is_described_and_its_default_settings_hold(name: str) -> None:
    detector = detector_of(name)
    assert type(detector).__doc__
    assert detector.config_type.__doc__
    assert detector.version >= 1
    assert detector.config == detector.config_type()
    assert detector.config.__struct_config__.frozen
    default = msgspec.to_builtins(detector.config)
    assert msgspec.convert(default, detector.config_type) == detector.config


@pytest.mark.parametrize("name", [*JOB, *RANK])
def test_other_settings_give_another_configuration_hash(name: str) -> None:
    detector = detector_of(name)
    for field in msgspec.structs.fields(detector.config_type):
        value = getattr(detector.config, field.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            other = type(detector)(msgspec.structs.replace(detector.config, **{field.name: value * 1.01}))
            assert other.config_hash != detector.config_hash


@pytest.mark.parametrize("name", [*JOB, *RANK])
def test_an_unknown_parameter_is_a_value_error(name: str) -> None:
    stage = "job" if name in JOB else "rank"
    with pytest.raises(ValueError, match="no parameter colour"):
        registry.build(stage, {name: {"colour": 1}})  # type: ignore[arg-type]


def test_an_unknown_detector_is_a_value_error() -> None:
    for stage in ("job", "rank"):
        with pytest.raises(ValueError, match="no detector is called crystal_ball"):
            registry.build(stage, {"crystal_ball": {}})


@pytest.mark.parametrize(
    ("stage", "name", "settings"),
    [
        ("job", "step_outlier", {"steps": 1}),
        ("job", "step_outlier", {"ratio": "a lot"}),
        ("rank", "timer_drift", {"reference_steps": 1}),
        ("rank", "timer_drift", {"steps": None}),
    ],
)
def test_a_value_out_of_bounds_is_a_value_error(stage: Any, name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        registry.build(stage, {name: settings})


@pytest.mark.parametrize("settings", [{"crystal_ball": {}}, {"step_outlier": {"colour": 1}}])
def test_wrong_settings_stop_the_start_and_not_the_first_window(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Driver(MemoryLog(1), StreamConfig(detectors=settings))


def test_two_detectors_of_one_name_are_refused() -> None:
    known = registry.registered("job")[0]
    with pytest.raises(ValueError, match="two detectors are called"):
        registry.register(type("Another", (known,), {}))
    assert registry.registered("job")[0] is known


def test_every_detector_file_registers_one_detector() -> None:
    modules = {one.name for one in pkgutil.iter_modules(streams.detectors.__path__)} - {"registry"}
    assert modules == {*JOB, *RANK}
