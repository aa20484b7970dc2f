"""The order of first errors, where clocks or collectives allow one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, known_fatal, new_view, run, summary, traceback
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Anomaly, Fatal
from streams.attempt_window import AttemptWindow
from streams.detectors.first_errors import MOST_GROUPS, FirstErrors, FirstErrorsConfig

RANKS = 8
ALL = list(range(RANKS))
OWN = traceback("ValueError: negative length in shard")
LOST = traceback("RuntimeError: Connection closed by peer")


def window(fatals: Mapping[int, Fatal], start: float = 0, per_node: int = 2, **fields: Any) -> AttemptWindow:
    return closed(
        [summary(rank, start, fatals=[fatals[rank]] if rank in fatals else []) for rank in ALL], start, **fields
    )


def failed(text: str, second: float, precision_s: float = 0) -> Fatal:
    return msgspec.structs.replace(known_fatal(text, at(second)), precision_ns=int(precision_s * 1e9))


def watchdog(rank: int, enqueued: int, second: float = 5, group: str = "0") -> Fatal:
    return failed(
        f"[PG {group} Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: 808, "
        f"last enqueued NCCL work: {enqueued}, last completed NCCL work: 807",
        second,
    )


def found(*windows: AttemptWindow, stopped: float | None = None) -> list[Anomaly]:
    view = new_view()
    view.stopped = None if stopped is None else at(stopped)
    return [one for each in run(FirstErrors(), view, windows) for one in each]


def rest(*apart: int, text: str = LOST, second: float = 5) -> dict[int, Fatal]:
    return {rank: failed(text, second) for rank in ALL if rank not in apart}


def test_an_error_that_is_certainly_the_first_is_said_and_by_how_much() -> None:
    (one,) = found(window({6: failed(OWN, 1), **rest(6)}))
    assert (one.grounds, one.severity, one.suspects, one.victims, one.onset) == ("first_error", "info", [], [], at(1))
    assert one.text == "rank 6 failed first by an error of its own: ValueError: negative length in shard"
    assert one.peers == "ranks 0-5,7 followed, 4.0 s later or more"
    assert len(one.templates) == 1


def test_who_reports_a_loss_first_is_not_said_to_have_failed() -> None:
    (one,) = found(window({2: failed(LOST, 1), **rest(2)}))
    assert one.text.startswith("rank 2 noticed first that a peer was lost or late: ")
    assert one.templates == []


def test_on_one_node_clocks_agree() -> None:
    apart = {rank: failed(LOST, 9) for rank in ALL if rank not in (6, 7)}
    (one,) = found(window({6: failed(OWN, 1), 7: failed(LOST, 1.5), **apart}))
    assert one.text.startswith("rank 6 failed first")


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("within the skew of two nodes", [window({6: failed(OWN, 4), **rest(6)})]),
        ("within the precision of its time", [window({6: failed(OWN, 2, precision_s=1.5), **rest(6)})]),
        ("within the precision of the others'", [window({6: failed(OWN, 2), **{0: failed(LOST, 5, precision_s=2)}})]),
        ("all at once", [window(rest())]),
        ("one error alone", [window({6: failed(OWN, 4)})]),
        ("half came first", [window({rank: failed(LOST, 1 if rank < 4 else 9) for rank in ALL})]),
        ("some in between", [window({6: failed(OWN, 1), 2: failed(OWN, 2.5), **rest(2, 6, second=4)})]),
        ("nothing new", [window({})]),
    ],
)
def test_where_there_is_no_order_nothing_is_said(name: str, windows: list[AttemptWindow]) -> None:
    assert found(*windows) == [], name


def test_what_comes_after_the_owners_stop_has_no_order() -> None:
    assert found(window({6: failed(OWN, 1), **rest(6)}), stopped=0.5) == []


def test_errors_of_later_windows_are_put_behind_those_of_earlier_ones() -> None:
    (one,) = found(window({6: failed(OWN, 1)}), window(rest(6, second=12), 10))
    assert (one.start, one.text[:19]) == (at(10), "rank 6 failed first")


def test_where_times_cannot_tell_collectives_do() -> None:
    (one,) = found(window({rank: watchdog(rank, 811 if rank != 3 else 808) for rank in ALL}))
    assert (one.grounds, one.suspects, one.severity) == ("behind_in_group", [], "info")
    assert one.text == "rank 3 had enqueued 808 operations of group 0 when watchdogs spoke"
    assert one.peers == "ranks 0-2,4-7 had enqueued 811"


@pytest.mark.parametrize(
    ("name", "fatals"),
    [
        ("all have come as far", {rank: watchdog(rank, 811) for rank in ALL}),
        ("one is ahead", {rank: watchdog(rank, 811 if rank != 3 else 812) for rank in ALL}),
        ("half are behind", {rank: watchdog(rank, 811 - rank % 2) for rank in ALL}),
        ("two reports only", {rank: watchdog(rank, 811 - rank) for rank in (0, 1)}),
        ("two groups have one name", {rank: watchdog(rank % 4, 811 if rank != 3 else 808) for rank in ALL}),
        ("numbers too long to be any", {rank: watchdog(rank, 10**19 + rank) for rank in ALL}),
    ],
)
def test_collectives_that_tell_nothing(name: str, fatals: dict[int, Fatal]) -> None:
    assert found(window(fatals)) == [], name


@given(st.permutations(ALL))
def test_ranks_numbered_anew_give_the_same_answer_for_the_new_numbers(number: list[int]) -> None:
    def told(at_: list[int]) -> list[Anomaly]:
        errors = {rank: watchdog(rank, 811, 9) for rank in ALL}
        errors[at_[3]] = watchdog(at_[3], 808, 1)
        return found(window(errors))

    plain, moved = told(ALL), told(number)
    assert [one.grounds for one in plain] == [one.grounds for one in moved] == ["first_error", "behind_in_group"]
    assert [one.text.replace("ank 3", f"ank {number[3]}") for one in plain] == [one.text for one in moved]


def test_its_state_is_bounded() -> None:
    detector = FirstErrors()
    many = [window({0: watchdog(0, 1, second=number, group=f"g{number}")}, number) for number in range(2 * MOST_GROUPS)]
    run(detector, new_view(), many)
    assert len(detector.state.groups) == MOST_GROUPS


@pytest.mark.parametrize("settings", [{"skew_s": 0}, {"least_peers": 0}, {"few": 2}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        FirstErrorsConfig(**settings)
