"""What a rank prints for the first time while it trains, and what begins to flood."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import (
    Lines,
    at,
    ended,
    known_fatal,
    new_view,
    printed,
    run_lines,
    speaking,
    still,
    traceback,
)
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.log_shift import FLOOD, NEW, LogShift, LogShiftConfig

ALL = list(range(8))
RETRY = "shard 00412: read retry 3 after 30 s"
WARN = "UserWarning: pin memory is slow"
BAR = "4%|▌   | 12/300 [00:12<01:20, 3.2it/s]"


def everybody(count: int, *apart: int) -> dict[int, int]:
    return {rank: count for rank in ALL if rank not in apart}


def found(*windows: AttemptWindow, config: LogShiftConfig | None = None) -> list[Anomaly]:
    return [one for each in run_lines(LogShift(config), new_view(), windows) for one in each]


def course(*each: Lines, quiet: int = 6, **fields: Any) -> list[AttemptWindow]:
    """Windows in which nothing changes, then one for each of ``each``."""
    windows = [speaking(10.0 * number, {}) for number in range(quiet)]
    return [*windows, *(speaking(10.0 * (quiet + number), lines, **fields) for number, lines in enumerate(each))]


def test_a_line_that_a_rank_never_printed_is_found_at_once_and_once() -> None:
    (one,) = found(*course({RETRY: {5: 1}}, {RETRY: {5: 1}}))
    assert (one.grounds, one.axis, one.severity, one.suspects) == (NEW, "time", "info", [])
    assert one.text == 'rank 5 printed for the first time: "shard <NUM>: read retry <NUM> after <DUR>"'
    assert (one.onset, one.templates) == (at(61), [printed(RETRY, 0).signature])


def test_several_new_lines_of_a_rank_are_one_finding() -> None:
    (one,) = found(*course({RETRY: {5: 1}, WARN: {5: 2}}))
    assert "read retry" in one.text and "pin memory" in one.text


def test_a_line_during_a_standstill_is_found_as_well() -> None:
    windows = course()
    quiet = still(8, 60, {5: {"signatures": [printed(RETRY, 65)]}})
    (one,) = found(*windows, quiet)
    assert (one.grounds, one.symptom) == (NEW, "hang")


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("it is new to all", course({RETRY: everybody(1)})),
        ("it is new to half", course({RETRY: dict.fromkeys(range(1, 5), 1)})),
        ("a peer printed it before", course({RETRY: {2: 1}}, {RETRY: {5: 1}})),
        ("rank 0 speaks for all", course({RETRY: {0: 1}})),
        ("the last rank speaks for all", course({RETRY: {7: 1}})),
        ("training is only beginning", course({RETRY: {5: 1}}, quiet=1)),
        ("a progress bar", course({BAR: {5: 1}})),
        ("an evaluation", course({RETRY: {5: 1}}, extra={5: {"phase": "evaluation", "phase_time": at(61)}})),
        ("a partition is missing", course({RETRY: {5: 1}}, unavailable=True)),
        ("a rank has ended", course({RETRY: {5: 1}}, exits=[(2, ended(61, 1))])),
        (
            "an error says it",
            course({RETRY: {5: 1}}, extra={5: {"fatals": [known_fatal(traceback("ValueError: x"), at(61))]}}),
        ),
        ("too few ranks", [speaking(10.0 * n, {RETRY: {1: 1}} if n > 6 else {}, ranks=[0, 1, 2]) for n in range(9)]),
        ("its lines were cut", course({RETRY: {5: 1}}, extra={5: {"dropped": {"signatures": 9}}})),
    ],
)
def test_what_is_no_news(name: str, windows: list[AttemptWindow]) -> None:
    assert [one for one in found(*windows) if not one.text.startswith("rank 2")] == [], name


def test_a_rank_that_printed_for_others_from_the_start_brings_no_news() -> None:
    early = [speaking(10.0 * number, {"loss is 3.2": {5: 1}}) for number in range(6)]
    assert found(*early, speaking(60, {RETRY: {5: 1}})) == []


def test_where_a_few_always_have_something_new_to_say_there_is_news_only_at_first() -> None:
    words = ["alpha", "beta gamma", "one two three", "a b c d e", "this is a longer sentence of words", "x y"]
    said = found(*course(*({word: {5: 1}} for word in words)))
    assert len(said) == 2


def test_a_flood_is_found_once_it_lasts() -> None:
    before = [speaking(10.0 * number, {WARN: everybody(2)}) for number in range(8)]
    flood = [speaking(10.0 * number, {WARN: everybody(2, 5) | {5: 40}}) for number in range(8, 13)]
    (one,) = found(*before, *flood)
    assert (one.grounds, one.start, one.suspects, one.severity) == (FLOOD, at(100), [], "info")
    assert one.text.startswith('rank 5 printed "UserWarning: pin memory is slow" 40 times in 10 s, ')
    assert one.peers == "7 of 8 ranks did not begin to"


def test_a_new_line_that_floods_is_found_as_both() -> None:
    assert [one.grounds for one in found(*course(*[{WARN: {5: 40}}] * 4))] == [NEW, FLOOD]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("two windows only", [{5: 40}, {5: 40}, {5: 2}, {5: 40}]),
        ("all together", [everybody(40)] * 4),
        ("a little more", [everybody(2, 5) | {5: 9}] * 4),
        ("it was always so", [everybody(2, 5) | {5: 2}] * 4),
    ],
)
def test_what_is_no_flood(name: str, counts: list[dict[int, int]]) -> None:
    before = [speaking(10.0 * number, {WARN: everybody(2)}) for number in range(8)]
    after = [speaking(80.0 + 10 * number, {WARN: one}) for number, one in enumerate(counts)]
    assert found(*before, *after) == [], name


def test_a_rank_whose_lines_are_seen_late_has_no_past_to_be_held_against() -> None:
    def later(rank: int, number: int) -> dict[str, Any]:
        return {"last_log": None, "signatures": []} if (rank, number < 9) == (5, True) else {}

    windows = []
    for number in range(14):
        one = speaking(10.0 * number, {WARN: everybody(40)})
        summaries = [msgspec.structs.replace(s, **later(s.identity.rank or 0, number)) for s in one.summaries]
        windows.append(msgspec.structs.replace(one, summaries=summaries))
    assert found(*windows) == []


def test_bars_and_access_lines_do_not_flood() -> None:
    for line in (BAR, '10.0.0.7:80 - "GET /health HTTP/1.1" 200 OK'):
        assert found(*course(*[{line: {5: 90}}] * 5)) == []


def test_a_rank_that_comes_later_and_a_rank_alone_have_a_past_of_their_own() -> None:
    alone = [speaking(10.0 * number, {WARN: {0: 40 if number > 9 else 2}}, ranks=[0]) for number in range(14)]
    assert [one.grounds for one in found(*alone)] == [FLOOD]
    grown = [speaking(10.0 * number, {}, ranks=ALL[: 6 if number < 4 else 8]) for number in range(8)]
    more = [speaking(80.0 + 10 * number, {WARN: {3: 30}}) for number in range(4)]
    assert FLOOD in {one.grounds for one in found(*grown, *more)}


@given(st.permutations(range(1, 7)), st.integers(1, 30))
def test_ranks_numbered_anew_give_the_same_answer_for_the_new_numbers(inner: list[int], count: int) -> None:
    number = [0, *inner, 7]
    plain = found(*course(*[{RETRY: {3: count}}] * 4))
    moved = found(*course(*[{RETRY: {number[3]: count}}] * 4))
    assert plain
    assert [one.text.replace("rank 3", f"rank {number[3]}") for one in plain] == [one.text for one in moved]


def test_its_state_is_bounded_and_what_is_printed_least_goes_first() -> None:
    detector = LogShift(LogShiftConfig(most_templates=3))
    many = {f"{letter} {letter * 9}": everybody(1) for letter in "abcdefgh"}
    windows = [speaking(10.0 * number, many | {WARN: everybody(20)}) for number in range(8)]
    run_lines(detector, new_view(), windows)
    assert len(detector.state.past.means) == 3
    assert max(max(means) for means in detector.state.past.means.values()) > 10
    assert len(msgspec.json.encode(detector.state)) < 2000


@pytest.mark.parametrize("settings", [{"k": 0}, {"ratio": 0}, {"few": 2}, {"weight": 2}, {"most_templates": 0}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        LogShiftConfig(**settings)
