"""Silence of the pipeline is noticed by whoever no longer hears its watchdog."""

from __future__ import annotations

import pytest

from rankwatch.pulse import SILENT_NS, Pulse
from streams.meta import BEAT_NS, beat
from streams.report import moment

T0 = 1_795_975_800_000_000_000
MINUTE = BEAT_NS


def beats(pulse: Pulse, minute: int, *partitions: int) -> None:
    found = [beat(number, None, T0 + minute * MINUTE) for number in partitions]
    pulse.heard([one for one in found if one is not None])


def looked(pulse: Pulse, minute: int) -> str:
    found = pulse.look(T0 + minute * MINUTE)
    return "" if found is None else f"{found.status}: {found.text}"


def test_all_that_beats_is_no_news() -> None:
    pulse = Pulse(2, T0)
    for minute in range(60):
        beats(pulse, minute, 0, 1)
        assert looked(pulse, minute + 1) == ""
    assert pulse.reached == T0 + 59 * MINUTE


def test_silence_is_said_once_and_so_is_its_end() -> None:
    pulse = Pulse(2, T0)
    beats(pulse, 1, 0, 1)
    assert [looked(pulse, minute) for minute in (2, 5)] == ["", ""]
    said = looked(pulse, 6)
    assert said == (
        f"firing: the pipeline is silent: of all partitions no window was closed since {moment(T0 + MINUTE)}, "
        "5 minutes ago; what happens in jobs is not seen"
    )
    assert looked(pulse, 7) == ""
    beats(pulse, 8, 0)
    assert looked(pulse, 8) == "", "not all of it is back"
    beats(pulse, 8, 1)
    assert looked(pulse, 8) == f"resolved: the pipeline is back: windows are closed up to {moment(T0 + 8 * MINUTE)}"


def test_one_partition_of_many_is_missed() -> None:
    pulse = Pulse(4, T0)
    for minute in range(6):
        beats(pulse, minute, 0, 1, 3)
    said = looked(pulse, 5)
    assert "of partition 2 no window was closed since" in said


def test_one_that_falls_silent_later_is_told_too_as_the_same_alert() -> None:
    pulse = Pulse(3, T0)
    for minute in range(10):
        beats(pulse, minute, 0, *([1] if minute < 4 else []))
        said = looked(pulse, minute)
        if minute == 5:
            assert "of partition 2 no window" in said
        else:
            assert ("of partitions 1-2 no window" in said) == (minute == 8)
    beats(pulse, 10, 0, 1, 2)
    assert looked(pulse, 10).startswith("resolved")
    assert looked(pulse, 11) == ""


def test_those_that_fall_silent_with_the_first_are_told_with_it() -> None:
    pulse = Pulse(3, T0)
    beats(pulse, 1, 0)
    beats(pulse, 9, 2)
    assert "of partitions 0-1 no window was closed since" in looked(pulse, 5)


def test_a_pipeline_that_is_never_heard_is_missed_from_the_beginning_of_the_reading_on() -> None:
    pulse = Pulse(1, T0)
    assert pulse.reached is None
    assert looked(pulse, 4) == ""
    assert looked(pulse, 5).startswith("firing")


def test_old_beats_are_no_life_but_tell_how_far_it_had_come() -> None:
    pulse = Pulse(1, T0)
    beats(pulse, -100, 0)
    assert pulse.reached == T0 - 100 * MINUTE
    assert looked(pulse, 5).startswith("firing")


@pytest.mark.parametrize("subject", ["partition 7", "partition x", "", "\x1b[2J"])
def test_beats_of_nobody_are_none(subject: str) -> None:
    pulse, found = Pulse(1, T0), beat(0, None, T0)
    assert found is not None
    pulse.heard(
        [type(found)(**{name: getattr(found, name) for name in found.__struct_fields__} | {"subject": subject})]
    )
    assert pulse.reached is None
    assert SILENT_NS == 5 * MINUTE
