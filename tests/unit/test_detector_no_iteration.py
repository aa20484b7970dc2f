"""The job's own clock stands still."""

from __future__ import annotations

from detection_support import at, healthy, new_view, run, stalled, still

from streams.detectors.no_iteration import NoIteration


def test_a_stall_is_reported_each_window_with_its_beginning_and_names_nobody() -> None:
    found = run(NoIteration(), new_view(), [*stalled(4), still(4, 40)])
    assert [len(one) for one in found] == [0, 1, 1, 1, 1]
    last = found[-1][0]
    assert (last.symptom, last.grounds, last.onset, last.iteration, last.suspects) == (
        "hang",
        "no_iteration",
        at(9),
        10,
        [],
    )
    assert "41 s after iteration 10" in last.text


def test_a_short_silence_is_information_a_long_one_pages() -> None:
    found = run(NoIteration(), new_view(), [*stalled(4), still(4, 40)])
    assert [one[0].severity for one in found[1:]] == ["info", "info", "critical", "critical"]


def test_a_job_that_iterates_gives_nothing() -> None:
    assert run(NoIteration(), new_view(), [healthy(4, start, start + 1) for start in range(0, 50, 10)]) == [[]] * 5
