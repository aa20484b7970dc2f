"""Losses and gradient norms that are no number any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from detection_support import closed, named, new_view, run, series, summary

from schemas.results import Anomaly
from streams.detectors.nonfinite import Nonfinite
from streams.view import AttemptWindow

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
    found = findings(window({rank: [1.0, value] for rank in range(8)}, name=name))
    assert (named(found[0]), found[0][0].grounds, found[0][0].iteration) == ([[]], "after_reduction", 2)


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


def test_two_that_show_it_first_together_are_not_named() -> None:
    found = findings(window({rank: [1.0, NAN if rank in (2, 5) else 1.0, NAN] for rank in range(8)}))
    assert named(found[0]) == [[]]
