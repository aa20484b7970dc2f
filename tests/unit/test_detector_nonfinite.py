"""Losses and gradient norms that are no number any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from detection_support import closed, named, new_view, run, series, stepping, summary

from schemas.results import Anomaly, Series
from streams.attempt_window import AttemptWindow
from streams.detectors.nonfinite import Nonfinite

NAN, INF = float("nan"), float("inf")


def window(
    values: Mapping[int, Sequence[float]], start: float = 0, first: int = 1, name: str = "lm_loss"
) -> AttemptWindow:
    return closed(
        (summary(rank, start, series=[series(name, first, one, start)]) for rank, one in values.items()), start
    )


def findings(*windows: AttemptWindow) -> list[list[Anomaly]]:
    return run(Nonfinite(), new_view(), windows)


def test_a_rank_whose_own_series_shows_it_first_is_named_once_the_others_are_seen_to_be_fine() -> None:
    found = findings(window({rank: [1.0, NAN if rank == 5 else 1.0, NAN] for rank in range(8)}))
    assert named(found[0]) == [[5]]
    assert (found[0][0].grounds, found[0][0].iteration, found[0][0].axis) == ("own_series", 2, "space")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("name", ["lm_loss", "grad_norm", "actor/pg_loss"])
def test_what_a_reduction_has_spread_names_nobody(value: float, name: str) -> None:
    found = findings(window({rank: [1.0, value, value] for rank in range(8)}, name=name))
    assert (named(found[0]), found[0][0].grounds, found[0][0].iteration) == ([[]], "after_reduction", 2)


def test_after_a_rollback_reports_count_in_order_of_time() -> None:
    after = series("lm_loss", 4, [1.0] * 3, 10)
    before = series("lm_loss", 8, [NAN] * 3, 7)
    both = Series(
        name="lm_loss",
        iterations=after.iterations + before.iterations,
        times=after.times + before.times,
        values=after.values + before.values,
        nonfinite=before.nonfinite,
    )
    ((one,),) = findings(closed([summary(7, 0, series=[both])]))
    assert (one.severity, one.grounds, one.iteration) == ("warning", "went_back", 8)


def test_the_only_rank_that_prints_the_loss_is_not_named() -> None:
    found = findings(window({7: [1.0, NAN, NAN]}))
    assert (named(found[0]), found[0][0].grounds) == ([[]], "after_reduction")


def test_a_rank_whose_peers_have_not_printed_that_iteration_yet_is_not_named() -> None:
    # The window's end falls between the ranks' lines of iteration 3.
    found = findings(
        window({rank: [1.0, 1.0, NAN] if rank == 0 else [1.0, 1.0] for rank in range(8)}),
        window({rank: [NAN] for rank in range(8)}, 10, 4),
    )
    assert named(found[0]) in ([], [[]])


def test_a_rank_that_prints_more_often_than_its_peers_is_not_named() -> None:
    every, tenth = [1.0, 1.0, NAN], [1.0]
    found = findings(window({rank: every if rank == 0 else tenth for rank in range(8)}))
    assert named(found[0]) in ([], [[]])


@pytest.mark.parametrize("name", ["loss_scale", "learning_rate", "grad_norm_ms", "throughput"])
def test_other_series_are_not_watched(name: str) -> None:
    assert findings(window({rank: [1.0, INF] for rank in range(8)}, name=name)) == [[]]


def test_finite_values_give_nothing_and_each_window_with_others_gives_one_finding() -> None:
    fine = window({rank: [1.0] * 3 for rank in range(8)})
    bad = window({rank: [NAN] * 3 for rank in range(8)}, 10, 4)
    more = window({rank: [NAN] * 3 for rank in range(8)}, 20, 7)
    found = findings(fine, bad, more)
    assert [len(one) for one in found] == [0, 1, 1]
    assert [one[0].iteration for one in found[1:]] == [4, 4]


def printed(*columns: tuple[str, Sequence[float]], start: float = 0, first: int = 1) -> AttemptWindow:
    """What the only rank that prints says of some iterations."""
    return closed([summary(7, start, series=[series(name, first, values, start) for name, values in columns])], start)


@pytest.mark.parametrize(
    "said",
    [
        ("number_of_skipped_iterations", [0, 1, 0]),
        ("loss_scale", [65536.0, 32768.0, 32768.0]),
        ("skipped", [3, 4, 4]),
    ],
)
@pytest.mark.parametrize("value", [NAN, INF])
def test_a_gradient_that_overflows_once_is_information(said: tuple[str, list[float]], value: float) -> None:
    ((one,),) = findings(printed(said, ("grad_norm", [1.0, value, 1.0]), ("lm_loss", [2.0, 2.0, 2.0])))
    assert (one.severity, one.grounds, one.iteration, one.suspects) == ("info", "overflow", 2, [])


@pytest.mark.parametrize(
    "columns",
    [
        [("grad_norm", [1.0, NAN, NAN])],
        [("grad_norm", [1.0, NAN, NAN]), ("loss_scale", [1.0, 1.0, 1.0])],
        [("grad_norm", [1.0, NAN, NAN]), ("number_of_skipped_iterations", [1, 0, 0])],
        [("lm_loss", [1.0, NAN, NAN]), ("number_of_skipped_iterations", [0, 1, 1])],
        # Some print 0 for a loss that is no number.
        [("grad_norm", [1.0, NAN, NAN]), ("loss", [1.0, 0.0, 0.0])],
        [("grad_norm", [1.0, NAN, NAN]), ("loss", [1.0, 2.0, NAN])],
        [("actor/pg_loss", [1.0, NAN, NAN]), ("critic/vf_loss", [1.0, 1.0, 1.0])],
    ],
)
def test_without_skipped_steps_or_a_loss_that_goes_on_or_with_a_loss_that_stays_no_number_it_is_critical(
    columns: list[tuple[str, Sequence[float]]],
) -> None:
    ((one,),) = findings(printed(*columns))
    assert (one.severity, one.grounds, one.iteration) == ("critical", "after_reduction", 2)


@pytest.mark.parametrize(
    ("columns", "grounds"),
    [
        ([("grad_norm", [1.0, NAN, 1.0])], "finite_again"),
        ([("grad_norm", [1.0, NAN, 1.0]), ("loss_scale", [1.0, 1.0, 1.0])], "finite_again"),
        ([("lm_loss", [1.0, NAN, 1.0]), ("number_of_skipped_iterations", [0, 1, 0])], "finite_again"),
        ([("lm_loss", [1.0, NAN, 1.0, 1.0])], "finite_again"),
        ([("loss", [1.0, 0.9, 0.8]), ("grad_norm", [1.0, NAN, NAN])], "loss_goes_on"),
        ([("loss", [1.0, 0.9]), ("grad_norm", [1.0, NAN])], "loss_goes_on"),
        ([("loss", [1.0] * 4), ("eval_loss", [1.0, NAN, NAN, NAN])], "loss_goes_on"),
        ([("loss", [1.0, 0.9, 0.8]), ("train_loss", [NAN])], "loss_goes_on"),
        ([("lm_loss", [1.0, NAN, 1.0, 1.0, NAN])], "finite_again"),
        ([("loss", [NAN] * 3), ("number_of_skipped_iterations", [1.0] * 3)], "loss_goes_on"),
    ],
)
def test_what_is_finite_again_or_did_the_loss_no_harm_is_information(
    columns: list[tuple[str, Sequence[float]]], grounds: str
) -> None:
    ((one,),) = findings(printed(*columns))
    assert (one.severity, one.grounds, one.suspects) == ("info", grounds, [])


def test_a_single_report_warns_until_the_next_shows_whether_it_stays() -> None:
    fine, bad = printed(("lm_loss", [1.0, 1.0, NAN])), printed(("lm_loss", [NAN] * 3), start=10, first=4)
    again = printed(("lm_loss", [1.0] * 3), start=10, first=4)
    for second, expected in ((bad, ("critical", 3)), (again, ("info", 3))):
        (first,), (other,) = findings(fine, second)
        assert (first.severity, first.grounds, first.iteration) == ("warning", "one_report", 3)
        assert (other.severity, other.iteration) == expected


def test_a_part_that_stays_no_number_for_long_beside_a_loss_that_goes_on_is_a_warning_and_gradients_page() -> None:
    for name, severity in (("critic/vf_loss", "warning"), ("grad_norm", "critical")):
        seen = findings(printed(("loss", [1.0] * 50), (name, [1.0, *[NAN] * 49])))
        assert [one.severity for found in seen for one in found] == [severity]


def test_a_rank_that_was_finite_again_before_the_others_showed_it_did_not_begin_it() -> None:
    values = {rank: [1.0, NAN if rank == 5 else 1.0, 1.0, 1.0, NAN, NAN] for rank in range(8)}
    ((one,),) = findings(window(values))
    assert (named([one]), one.severity, one.iteration) == ([[]], "critical", 5)


def counted(first: Mapping[int, int], late_s: Mapping[int, float], bad: Mapping[int, int]) -> AttemptWindow:
    """Ten steps of a second: the number that a rank gives the first, how late its clock is, its first bad number."""
    return closed(
        summary(
            rank,
            0,
            series=[
                series(
                    "lm_loss",
                    number,
                    [NAN if number + step >= bad.get(rank, 8) else 1.0 for step in range(10)],
                    late_s.get(rank, 0.0),
                )
            ],
        )
        for rank, number in first.items()
    )


@pytest.mark.parametrize(
    ("lower", "late_s", "bad", "expected"),
    [
        ({}, {}, {5: 7}, [5]),
        ({}, {rank: 0.1 * rank % 0.3 for rank in range(8)}, {5: 7}, [5]),
        # It counts from 0: its 7 is the others' 8.
        ({5: 1}, {}, {5: 7}, []),
        # Its clock may be behind by a step as well.
        ({}, {5: 1.0}, {5: 7}, []),
        # It was first by more than that.
        ({5: 1}, {}, {5: 5}, [5]),
        # All others count from 0.
        (dict.fromkeys({0, 1, 2, 3, 4, 6, 7}, 1), {}, {5: 9, **dict.fromkeys({0, 1, 2, 3, 4, 6, 7}, 8)}, []),
    ],
)
def test_a_lead_that_is_no_more_than_how_a_rank_counts_is_none(
    lower: dict[int, int], late_s: dict[int, float], bad: dict[int, int], expected: list[int]
) -> None:
    first = {rank: 1 - lower.get(rank, 0) for rank in range(8)}
    ((one,),) = findings(counted(first, late_s, bad))
    assert named([one]) == [expected]


def test_stages_that_count_differently_do_not_tell_which_came_first() -> None:
    stages = {rank: 1 - (rank < 2) for rank in range(8)}
    made = counted(stages, {}, dict.fromkeys((2, 4, 6), 7) | {0: 7})
    whole = [summary(rank, 0, layout=LAYOUT, series=made.of(rank)[0].series) for rank in range(8)]
    assert named(findings(closed(whole))[0]) == [[]]


def test_a_loss_scale_that_begins_high_is_no_trouble_and_one_that_never_settles_is() -> None:
    def windows(skipped: int) -> list[AttemptWindow]:
        found = []
        for start in range(0, 50, 10):
            scales = [2.0 ** (40 - min(start + at, skipped)) for at in range(10)]
            norms = [NAN if start + at < skipped else 1.0 for at in range(10)]
            skips = [float(start + at < skipped) for at in range(10)]
            columns = ("loss_scale", scales), ("grad_norm", norms), ("number_of_skipped_iterations", skips)
            found.append(printed(*columns, start=start, first=start + 1))
        return found

    def severities(skipped: int) -> set[str]:
        return {one.severity for found in findings(*windows(skipped)) for one in found}

    assert severities(20) == {"info"}
    assert severities(45) == {"info", "critical"}


def test_two_that_show_it_first_together_are_not_named() -> None:
    found = findings(window({rank: [1.0, NAN if rank in (2, 5) else 1.0, NAN] for rank in range(8)}))
    assert named(found[0]) == [[]]


LAYOUT = {"tp": 1, "pp": 4, "dp": 2, "world": 8}
"""Two pipelines: ranks 0, 2, 4, 6 and 1, 3, 5, 7, in the order of their stages."""


@pytest.mark.parametrize(
    ("name", "bad", "silent", "expected"),
    [
        ("activation_norm", (2, 4, 6), (), [2]),
        ("activation_norm", (4, 6), (), [4]),
        ("activation_norm", (0, 2, 4, 6), (), [0]),
        ("lm_loss", (6,), (), [6]),
        # Gradients go back: the last stage that shows it came first.
        ("local_grad_norm", (0, 2), (), [2]),
        ("local_grad_norm", (0,), (), [0]),
        ("activation_norm", (2, 4, 6), (0,), []),
        ("lm_loss", (6,), (0, 2, 4), []),
        ("lm_loss", (6,), (0, 1, 2, 3, 4), []),
        ("activation_norm", (2, 3, 4, 5, 6, 7), (), []),
        ("activation_norm", (0, 2, 4, 6), (1, 3, 5, 7), []),
        ("activation_norm", tuple(range(8)), (), []),
    ],
)
def test_of_pipeline_stages_the_first_that_shows_it_is_named_where_the_one_before_is_seen_to_be_fine(
    name: str, bad: tuple[int, ...], silent: tuple[int, ...], expected: list[int]
) -> None:
    made = closed(
        summary(
            rank,
            0,
            layout=LAYOUT,
            series=[] if rank in silent else [series(name, 1, [1.0, *[NAN if rank in bad else 1.0] * 2], 0)],
        )
        for rank in range(8)
    )
    ((one,),) = findings(made)
    assert (named([one]), one.iteration) == ([expected], 2)
    assert one.grounds == ("own_series" if expected else "after_reduction")


def test_all_ranks_of_the_first_stage_that_shows_it_are_told_where_they_share_its_tensors() -> None:
    layout = {"tp": 2, "pp": 2, "dp": 2, "world": 8}
    made = closed(
        summary(
            rank,
            0,
            layout=layout,
            series=[series("activation_norm", 1, [1.0, *[NAN if rank in (4, 5) else 1.0] * 2], 0)],
        )
        for rank in range(8)
    )
    assert named(findings(made)[0]) == [[4, 5]]


@pytest.mark.parametrize(
    ("name", "bad", "severity", "expected"),
    [
        ("mtp_1_loss", range(4), "info", []),
        ("output_norm", [0], "info", []),
        # Its peers are finite, but nobody saw it begin.
        ("aux_loss", [2], "info", []),
        ("lm_loss", range(4), "critical", []),
        ("grad_norm", range(4), "critical", []),
        ("lm_loss", [2], "critical", [2]),
    ],
)
def test_a_series_that_never_was_finite_is_information_but_for_the_loss_itself_and_gradients(
    name: str, bad: Sequence[int], severity: str, expected: list[int]
) -> None:
    values = {rank: [NAN] * 3 if rank in bad else [1.0] * 3 for rank in range(4)}
    first, second = findings(window(values, name=name), window(values, 10, 4, name))
    assert (named(first), first[0].severity, first[0].iteration) == ([expected], severity, 1)
    assert "finite before" not in first[0].peers
    assert len(second) == (severity == "critical")


def test_a_series_that_never_was_finite_hides_no_other_and_counts_once_it_was() -> None:
    def at(start: float, first: int, mtp: list[float], loss: list[float]) -> AttemptWindow:
        return printed(("mtp_1_loss", mtp), ("lm_loss", loss), start=start, first=first)

    found = findings(
        at(0, 1, [NAN] * 3, [1.0] * 3),
        at(10, 4, [NAN, 1.0, 1.0], [1.0] * 3),
        at(20, 7, [1.0, NAN, NAN], [1.0, NAN, NAN]),
    )
    assert [[(one.severity, one.iteration) for one in each] for each in found] == [[("info", 1)], [], [("critical", 8)]]
    assert "finite before" in found[2][0].peers
    both = findings(at(0, 1, [NAN] * 3, [1.0, NAN, NAN]))
    assert [(one.severity, one.iteration, one.text[:7]) for one in both[0]] == [("critical", 2, "lm_loss")]


def course(first: int, last: int, rank: int, bad: Sequence[int] = (), value: float | None = None) -> list[float]:
    """A loss of its own for each rank and iteration up to ``last``, no number at those that are ``bad``."""
    own = [2.0 + 0.01 * rank - 0.001 * step for step in range(first, last)]
    return [NAN if step in bad else plain if value is None else value for step, plain in enumerate(own, first)]


EVER = range(10_000)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        # Ranks without a loss of their own, or one that never had a number beside others that go on.
        (dict.fromkeys(range(4), EVER), [("info", "never_finite", 0, [])]),
        ({3: EVER}, [("info", "never_finite", 0, [])]),
        # Training that is lost beside them.
        (
            dict.fromkeys(range(4), EVER) | dict.fromkeys(range(4, 8), range(14, 10_000)),
            [("info", "never_finite", 0, []), ("critical", "after_reduction", 14, [])],
        ),
        (
            {3: EVER} | dict.fromkeys({0, 1, 2, 4, 5, 6, 7}, range(14, 10_000)),
            [("info", "never_finite", 0, []), ("critical", "after_reduction", 14, [])],
        ),
        # One that was finite, and whose values came to nobody.
        ({3: range(14, 10_000)}, [("warning", "alone", 14, [3])]),
        (dict.fromkeys((2, 3), range(14, 10_000)), [("warning", "part", 14, [])]),
        # What comes long after it is another matter.
        (
            {3: range(14, 10_000)} | dict.fromkeys({0, 1, 2, 4, 5, 6, 7}, range(25, 10_000)),
            [("warning", "alone", 14, [3]), ("critical", "after_reduction", 25, [])],
        ),
        # The next step of all others shows it, or the next but one.
        (
            {3: range(14, 10_000)} | dict.fromkeys({0, 1, 2, 4, 5, 6, 7}, range(15, 10_000)),
            [("critical", "own_series", 14, [3])],
        ),
        (
            {3: range(14, 10_000)} | dict.fromkeys({0, 1, 2, 4, 5, 6, 7}, range(16, 10_000)),
            [("critical", "own_series", 14, [3])],
        ),
        # Most show it: those that do not are another kind.
        (dict.fromkeys(range(6), range(14, 10_000)), [("critical", "after_reduction", 14, [])]),
    ],
)
@pytest.mark.parametrize("per_window", [1, 10])
def test_what_others_do_not_show_with_the_next_step_was_in_nobodys_gradients(
    bad: Mapping[int, Sequence[int]], expected: list[tuple[str, str, int, list[int]]], per_window: int
) -> None:
    made = []
    for first in range(0, 40, per_window):
        start, step_s = first * 10 / per_window, 10 / per_window
        values = {rank: course(first, first + per_window, rank, bad.get(rank, ())) for rank in range(8)}
        made.append(
            closed(
                (
                    stepping(
                        rank,
                        start,
                        first=first,
                        steps=per_window,
                        series=[series("lm_loss", first, own, start, step_s)],
                    )
                    for rank, own in values.items()
                ),
                start,
            )
        )
    found = findings(*made)
    told: list[tuple[str, str, int, list[int]]] = []
    for one in [one for each in found for one in each if one.grounds != "one_report"]:
        (ranks,) = named([one])
        if (one.severity, one.grounds, one.iteration, ranks) not in told:
            told.append((one.severity, one.grounds, one.iteration or 0, ranks))
    # With a report a window it is not known at once that others show it two steps later.
    assert told[-len(expected) :] == expected


def test_what_the_first_report_of_one_rank_and_the_next_of_all_shows_began_there() -> None:
    values = {rank: course(0, 10, rank, range(rank != 3, 10)) for rank in range(8)}
    ((one,),) = findings(window(values, 0, 0))
    assert (one.severity, one.iteration, *named([one])) == ("critical", 0, [3])


@pytest.mark.parametrize("value", [0.0, 7.5])
def test_what_never_changes_is_no_loss_that_goes_on(value: float) -> None:
    made = [
        window(
            {rank: course(at, at + 10, rank, range(5, 99), None if rank < 4 else value) for rank in range(4)}
            | {rank: [value] * 10 for rank in range(4, 8)},
            at,
            at,
        )
        for at in (0, 10)
    ]
    assert {(one.severity, one.grounds) for each in findings(*made) for one in each} == {
        ("critical", "after_reduction")
    }


def test_a_rank_that_has_not_gone_back_yet_goes_on_by_its_number_alone() -> None:
    ahead = window({rank: course(100, 110, rank) for rank in range(8)}, 0, 100)
    back = [summary(rank, 20, series=[series("lm_loss", 60, course(60, 65, rank, EVER), 25)]) for rank in range(4)] + [
        summary(rank, 20, series=[series("lm_loss", 110, course(110, 114, rank), 20)]) for rank in range(4, 8)
    ]
    all_back = window({rank: course(65, 75, rank, EVER) for rank in range(8)}, 30, 65)
    found = findings(ahead, closed(back, 20), all_back)
    assert [(one.severity, one.iteration, *named([one])) for one in found[2]] == [("critical", 60, [])]


def test_names_are_bounded_in_state_and_text() -> None:
    many = [
        summary(rank, 0, series=[series(f"part{rank}_{at}_" + "x" * 300 + "_loss", 1, [NAN] * 3) for at in range(200)])
        for rank in range(8)
    ]
    detector = Nonfinite()
    ((one,),) = run(detector, new_view(), [closed([*many, summary(8, 0, series=[series("lm_loss", 1, [1.0, 2.0])])])])
    assert len(one.text) < 2000
    assert len(detector.state.never) <= 128
    assert "lm_loss" in detector.state.runs.finite


def test_the_loss_scales_of_two_models_are_told_apart() -> None:
    scales = ("actor/loss_scale", [65536.0] * 3), ("critic/loss_scale", [1024.0] * 3)
    fine = printed(*scales, ("actor/grad_norm", [1.0] * 3))
    _, (one,) = findings(fine, printed(*scales, ("actor/grad_norm", [NAN, NAN, 1.0, NAN, NAN]), start=10, first=4))
    assert (one.severity, one.iteration) == ("critical", 7)
