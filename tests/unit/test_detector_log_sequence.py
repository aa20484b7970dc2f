"""Who stopped in the common sequence of lines while its peers went on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, ended, gauge, new_view, printed, run_lines, stepping, summary
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Anomaly, Window
from streams.attempt_window import AttemptWindow
from streams.detectors.log_sequence import KEPT_PAIRS, MOST_LINES, LogSequence, LogSequenceConfig

RANKS = 8
ALL = list(range(RANKS))
TIMERS, ENQUEUED, READY = "step 1 took 900 ms", "gradients of step 1 enqueued", "batch 2 is ready"
LOOP = (TIMERS, ENQUEUED, READY)
FROZEN = {"gauges": [gauge("cpu_percent", 0.1), gauge("ctx_switches", 4.0)]}


def with_tail(one: Window, said: Sequence[tuple[str, int | None]]) -> Window:
    """The summary with these lines, as (text, iteration) in order."""
    counted = sorted({printed(text, 1).signature: printed(text, 1) for text, _ in said}.items())
    places = {signature: place for place, (signature, _) in enumerate(counted)}
    tail = [(places[printed(text, 1).signature], iteration) for text, iteration in said]
    return msgspec.structs.replace(one, signatures=[count for _, count in counted], tail=tail)


def loop(first: int, last: int, done: int = len(LOOP), lines: Sequence[str] = LOOP) -> list[tuple[str, int | None]]:
    """Turns ``first`` to ``last``, of the last one only ``done`` lines."""
    turns: list[tuple[str, int | None]] = [(line, step) for step in range(first, last + 1) for line in lines]
    return turns[: len(turns) - len(lines) + done]


def hang(
    stands: Mapping[int, tuple[int, int]],
    *,
    lines: Mapping[int, Sequence[str]] | None = None,
    ranks: Sequence[int] = ALL,
    later: Mapping[int, Mapping[str, Any]] | None = None,
    **fields: Any,
) -> list[AttemptWindow]:
    """Ten steps, then a standstill of two windows; ``stands`` is by rank the last iteration and its lines done."""
    trained = []
    for rank in ranks:
        last, done = stands.get(rank, (10, len(LOOP)))
        said = loop(1, last, done, (lines or {}).get(rank, LOOP))
        trained.append(with_tail(stepping(rank, 0, first=1), said))
    more = later or {}
    quiet = [
        closed([summary(rank, start, **dict(more.get(rank, {}))) for rank in ranks], start, **fields)
        for start in (10, 20)
    ]
    before = closed([summary(rank, -10) for rank in ranks], -10)
    return [before, closed(trained, 0), *quiet]


def found(*windows: AttemptWindow, config: LogSequenceConfig | None = None) -> list[Anomaly]:
    return [one for each in run_lines(LogSequence(config), new_view(), windows) for one in each]


def test_the_last_line_of_the_one_that_is_behind_is_said_and_what_its_peers_went_on_to() -> None:
    one, again = found(*hang({5: (10, 2)}))
    assert (one.grounds, one.severity, one.suspects, one.victims, one.onset) == (
        "behind_in_sequence",
        "info",
        [],
        [],
        at(9),
    )
    assert one.text == 'the last line of rank 5 in iteration 10 is "gradients of step <NUM> enqueued"'
    assert one.peers == 'ranks 0-4,6-7 went on to "batch <NUM> is ready"'
    assert (again.text, again.peers) == (one.text, one.peers)


def test_a_whole_turn_behind_is_behind_too() -> None:
    one, _ = found(*hang({5: (9, 3)}))
    assert one.text == 'the last line of rank 5 in iteration 9 is "batch <NUM> is ready"'
    assert one.peers == 'ranks 0-4,6-7 went on to "step <NUM> took <DUR>"'


def test_of_two_the_furthest_behind_is_shown() -> None:
    one, _ = found(*hang({5: (10, 1), 2: (10, 2)}))
    assert one.text == 'the last line of rank 5 in iteration 10 is "step <NUM> took <DUR>" (ranks 2,5 are behind)'


def test_two_that_are_ahead_leave_nobody_behind() -> None:
    assert found(*hang({rank: (10, 2) for rank in ALL if rank not in (1, 2)})) == []


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("all stand alike", hang({})),
        ("half are behind", hang(dict.fromkeys(range(4), (10, 2)))),
        ("no two stand alike", hang({rank: (10 - rank % 4, 1 + rank % 2) for rank in ALL})),
        ("its lines differ by design", hang({5: (10, 2)}, lines={5: (TIMERS, READY, ENQUEUED)})),
        ("it never prints the last line", hang({}, lines={5: (TIMERS, ENQUEUED)})),
        ("too few ranks", hang({2: (10, 2)}, ranks=[0, 1, 2])),
        ("the job goes on", hang({5: (10, 2)})[:2]),
        ("it has ended", hang({5: (10, 2)}, exits=[(5, ended(12, 1))])),
        ("a partition is missing", hang({5: (10, 2)}, unavailable=True)),
        ("its lines were cut", hang({5: (10, 2)}, later={5: {"dropped": {"signatures": 3}}})),
    ],
)
def test_what_is_no_finding(name: str, windows: list[AttemptWindow]) -> None:
    assert found(*windows) == [], name


def test_a_rank_whose_producer_is_silent_is_not_behind() -> None:
    windows = hang({5: (10, 2)})
    without = [
        msgspec.structs.replace(one, summaries=[s for s in one.summaries if s.identity.rank != 5])
        if one.start >= at(10)
        else one
        for one in windows
    ]
    assert found(*without) == []
    alive = [msgspec.structs.replace(one, node_life=[("node02", one.end)]) for one in without]
    assert {one.grounds for one in found(*alive)} == {"behind_in_sequence"}


def test_lines_of_waiting_ranks_do_not_count_as_going_on() -> None:
    windows = hang({5: (10, 2)})
    warned = [
        msgspec.structs.replace(
            one,
            summaries=[
                with_tail(summary(rank, (one.start - at(0)) / 1e9), [("still waiting for all_reduce", 10)])
                for rank in ALL
                if rank != 5
            ]
            + [summary(5, (one.start - at(0)) / 1e9)],
        )
        for one in windows[2:]
    ]
    (one, _) = found(*windows[:2], *warned)
    assert one.text.startswith("the last line of rank 5")


def starting(done: Mapping[int, int], own: Mapping[int, str] | None = None) -> list[AttemptWindow]:
    """A start that stops before the first iteration, all frozen; ``done`` are lines of four by rank."""
    lines = ["process group is up", "model is built", "checkpoint is read", "dataset is mapped"]
    said = {
        rank: [*((line, None) for line in [(own or {}).get(rank, "hello"), "hello", *lines[: done.get(rank, 4)]])]
        for rank in ALL
    }
    begun = closed([with_tail(summary(rank, 0, phase="start-up"), said[rank]) for rank in ALL], 0)
    frozen = [
        closed([summary(rank, start, phase="start-up", last_log=None, **FROZEN) for rank in ALL], start)
        for start in (10, 20, 30, 40)
    ]
    return [closed([summary(rank, -10, phase="start-up", last_log=at(-1)) for rank in ALL], -10), begun, *frozen]


def test_before_the_first_iteration_the_order_of_the_start_counts() -> None:
    (one, *_) = found(*starting({3: 2}, {0: "rank 0 speaks"}))
    assert one.text == 'the last line of rank 3 is "model is built"'
    assert one.peers == 'ranks 0-2,4-7 went on to "checkpoint is read"'
    assert found(*starting({})) == []
    assert found(*starting({rank: rank % 4 for rank in ALL})) == []


@given(st.permutations(ALL), st.integers(0, 2))
def test_ranks_numbered_anew_give_the_same_answer_for_the_new_numbers(number: list[int], done: int) -> None:
    plain, moved = found(*hang({5: (10, 1 + done)})), found(*hang({number[5]: (10, 1 + done)}))
    assert bool(plain) == (done < 2)
    assert [one.text.replace("rank 5", f"rank {number[5]}") for one in plain] == [one.text for one in moved]


def test_its_state_is_bounded_and_wrong_places_are_passed_over() -> None:
    detector = LogSequence()
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{first}{second} {second}{first}" for first in letters for second in letters]
    windows = [closed([with_tail(stepping(0, 10 * n, first=1), [(w, n) for w in words])], 10 * n) for n in range(3)]
    run_lines(detector, new_view(), windows)
    assert KEPT_PAIRS < len(detector.state.lines) <= MOST_LINES
    assert len(detector.state.tails[0].lines) <= KEPT_PAIRS
    wrong = msgspec.structs.replace(stepping(1, 0, first=1), tail=[(7, 1), (-1, 1)])
    run_lines(detector, new_view(), [closed([wrong], 0)])
    assert detector.state.tails[1].lines == []


def test_a_talkative_start_leaves_room_for_the_loop() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [(f"{first}{second} {second}{first}", None) for first in letters for second in letters]
    talk = [with_tail(summary(rank, -10), words) for rank in ALL]
    before, *rest = hang({5: (10, 2)})
    told = found(msgspec.structs.replace(before, summaries=talk), *rest)
    assert {one.text for one in told} == {
        'the last line of rank 5 in iteration 10 is "gradients of step <NUM> enqueued"'
    }


@pytest.mark.parametrize("settings", [{"least_peers": 0}, {"few": 1.5}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        LogSequenceConfig(**settings)
