"""Who prints what peers do not, who lacks what they print, and what is no finding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import Lines, at, ended, identity, known_fatal, new_view, printed, run_lines, speaking, traceback
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import Identity
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.log_contrast import LACKS, MORE, LogContrast, LogContrastConfig

RANKS = 8
ALL = list(range(RANKS))
RETRY = "shard 00412: read retry 3 after 30 s"
BUSY = "prefetch queue has 12 batches"
LOST = known_fatal(traceback("RuntimeError: Connection closed by peer"), at(40))


def found(*windows: AttemptWindow, config: LogContrastConfig | None = None) -> list[Anomaly]:
    return [one for each in run_lines(LogContrast(config), new_view(), windows) for one in each]


def course(lines: Lines, *, quiet: int = 4, loud: int = 3, **fields: Any) -> list[AttemptWindow]:
    """Windows in which nothing stands out, then those in which ``lines`` are printed."""
    calm = [speaking(10.0 * number, {}) for number in range(quiet)]
    return [*calm, *(speaking(10.0 * (quiet + number), lines, **fields) for number in range(loud))]


def everybody(count: int, *apart: int) -> dict[int, int]:
    return {rank: count for rank in ALL if rank not in apart}


def test_what_one_prints_and_no_peer_is_found_once_it_goes_on() -> None:
    (one,) = found(*course({RETRY: {5: 6}}))
    assert (one.grounds, one.severity, one.suspects, one.start) == (MORE, "info", [], at(50))
    assert one.text == 'rank 5: "shard <NUM>: read retry <NUM> after <DUR>" 6 times in 10 s'
    assert one.peers == "its peers: all but 2 never; roles and stages are not known"
    assert one.templates == [printed(RETRY, 0).signature]


def test_what_one_prints_far_more_often_is_found_too() -> None:
    (one,) = found(*course({RETRY: everybody(3, 5) | {5: 40}}))
    assert (one.grounds, one.peers.partition(";")[0]) == (MORE, "its peers: all but 2 at most 3 times")


def test_a_rank_that_always_printed_more_than_its_peers_is_as_it_was() -> None:
    always = [speaking(10.0 * number, {RETRY: everybody(1, 5) | {5: 40 if number > 2 else 30}}) for number in range(12)]
    assert found(*always) == []


def test_a_rank_that_seldom_printed_what_all_print_lacks_nothing() -> None:
    seldom = [speaking(10.0 * number, {BUSY: everybody(5, 5) | {5: number % 4 == 1}}) for number in range(6)]
    assert found(*seldom, *(speaking(10.0 * number, {BUSY: everybody(5, 5)}) for number in range(6, 12))) == []


def test_few_ranks_together_are_one_finding() -> None:
    (one,) = found(*course({RETRY: {4: 9, 5: 6}}))
    assert one.text.startswith("ranks 4-5: ")


def test_a_rank_that_no_longer_prints_what_all_print_is_found() -> None:
    common = [speaking(10.0 * number, {BUSY: everybody(5)}) for number in range(5)]
    lost = [speaking(10.0 * number, {BUSY: everybody(5, 5)}) for number in range(5, 9)]
    (one,) = found(*common, *lost)
    assert (one.grounds, one.suspects, one.templates, one.end) == (LACKS, [], [], at(80))
    assert one.text == 'rank 5: no longer prints "prefetch queue has <NUM> batches"'
    assert one.peers.startswith("its peers: 5 times on the median")


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("one window only", course({RETRY: {5: 6}}, loud=1)),
        ("a few lines only", course({RETRY: {5: 3}})),
        ("everybody at once", course({RETRY: everybody(6)})),
        ("half of them", course({RETRY: {1: 6, 2: 6, 3: 6, 4: 6}})),
        ("a little more than others", course({RETRY: everybody(4, 5) | {5: 12}})),
        ("rank 0's chatter", course({RETRY: {0: 60}})),
        ("the last rank's", course({RETRY: {7: 60}})),
        ("a rank that prints for others from the start", [speaking(10.0 * n, {RETRY: {5: 6}}) for n in range(9)]),
        ("before training begins", course({RETRY: {5: 6}}, quiet=0, loud=2)),
        ("a checkpoint is written", course({RETRY: {5: 6}}, extra={5: {"phase": "checkpoint"}})),
        ("the window lacks a partition", course({RETRY: {5: 6}}, unavailable=True)),
        ("a late starter", [*course({}), *(speaking(40.0 + n, {RETRY: {5: 6}}) for n in (0,))]),
        ("too few peers", course({RETRY: {2: 6}}, ranks=[0, 2, 7], quiet=0, loud=9)),
        ("a progress bar of one", course({"4%|▌   | 12/300 [00:12<01:20, 3.2it/s]": {5: 60}})),
        ("an HTTP server on one", course({'10.0.0.7:80 - "GET /health HTTP/1.1" 200 OK': {5: 60}})),
        ("checkpoint metadata of one", course({"wrote checkpoint metadata of 12 tensors": {5: 60}})),
    ],
)
def test_what_is_no_finding(name: str, windows: list[AttemptWindow]) -> None:
    assert found(*windows) == [], name


def test_chatter_is_compared_among_those_that_print_it() -> None:
    bar = "4%|▌   | 12/300 [00:12<01:20, 3.2it/s]"
    printing = dict.fromkeys(range(1, 7), 4)
    calm = [speaking(10.0 * number, {bar: printing}) for number in range(5)]
    (one,) = found(*calm, *(speaking(50.0 + 10 * number, {bar: printing | {5: 60}}) for number in range(3)))
    assert one.text.startswith("rank 5: ")
    alone = {bar: {0: 4, 5: 60}}
    assert found(*(speaking(10.0 * number, alone if number > 2 else {}) for number in range(9))) == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("its lines were cut", {"extra": {5: {"dropped": {"signatures": 9}}}}),
        (
            "its peers' error was seen",
            {"extra": {2: {"fatals": [LOST]}}},
        ),
        ("it ended", {"exits": [(5, ended(41, 1))]}),
        ("a peer ended", {"exits": [(2, ended(41, 1))]}),
        ("its launcher told it to end", {"exits": [(5, ended(41, signal="SIGTERM", requested=True))]}),
    ],
)
@pytest.mark.parametrize("which", [MORE, LACKS])
def test_who_cannot_be_compared(name: str, fields: dict[str, Any], which: str) -> None:
    calm = {BUSY: everybody(5)}
    loud = {RETRY: {5: 6}, **calm} if which == MORE else {BUSY: everybody(5, 5)}
    before = [speaking(10.0 * number, calm) for number in range(4)]
    after = [speaking(10.0 * number, loud, **fields) for number in range(4, 8)]
    assert [one.grounds for one in found(*before, *(speaking(10.0 * n, loud) for n in range(4, 8)))] == [which]
    # The job does not go on behind an error here: its clock is that of the first windows.
    still_ = [
        msgspec.structs.replace(
            one,
            summaries=[
                msgspec.structs.replace(s, iteration=None, iteration_time=None, series=[]) for s in one.summaries
            ],
        )
        for one in after
    ]
    assert found(*before, *still_) == [], name


def test_a_line_that_says_that_others_were_left_out_ends_the_comparison() -> None:
    before = [speaking(10.0 * number, {BUSY: everybody(5)}) for number in range(5)]
    limited = {BUSY: everybody(5, 5), "last message repeated 40 times": {5: 1}}
    assert found(*before, *(speaking(10.0 * number, limited) for number in range(5, 9))) == []


@pytest.mark.parametrize(("lives", "grounds"), [(True, [LACKS] * 2), (False, [])])
def test_silence_counts_only_while_the_nodes_producer_lives(lives: bool, grounds: list[str]) -> None:
    before = [speaking(10.0 * number, {BUSY: everybody(5)}) for number in range(5)]
    silent = []
    for number in range(5, 9):
        nodes = [f"node{node:02d}" for node in range(4) if lives or node != 2]
        life = [(node, at(10.0 * number + 10)) for node in nodes]
        silent.append(
            speaking(10.0 * number, {BUSY: everybody(5)}, ranks=[rank for rank in ALL if rank != 5], node_life=life)
        )
    assert sorted(one.grounds for one in found(*before, *silent)) == grounds


def test_ranks_of_another_role_are_no_peers() -> None:
    def roles(windows: list[AttemptWindow]) -> list[AttemptWindow]:
        return [
            msgspec.structs.replace(
                one,
                summaries=[
                    msgspec.structs.replace(summary, identity=role(summary.identity)) for summary in one.summaries
                ],
            )
            for one in windows
        ]

    def role(who: Identity) -> Identity:
        return identity(who.rank, role="critic" if (who.rank or 0) >= 4 else "actor")

    lines = {RETRY: dict.fromkeys(range(4, 8), 9), BUSY: {2: 9}}
    (one,) = found(*roles(course(lines)))
    assert one.text.startswith("rank 2: ") and "not known" not in one.peers


@given(st.permutations(range(1, RANKS - 1)), st.integers(1, 12), st.integers(0, 2))
def test_ranks_numbered_anew_give_the_same_answer_for_the_new_numbers(inner: list[int], count: int, more: int) -> None:
    # The first and the last rank keep their numbers, which mean something.
    number = [0, *inner, RANKS - 1]
    lines = {RETRY: {5: count}, "dequeued 7 of 9": everybody(1 + more, 3)}
    moved = {text: {number[rank]: one for rank, one in who.items()} for text, who in lines.items()}
    plain, renumbered = found(*course(lines)), found(*course(moved))
    assert [one.grounds for one in plain] == [one.grounds for one in renumbered]
    assert [one.text.replace("rank 5", f"rank {number[5]}") for one in plain] == [one.text for one in renumbered]


def test_its_state_stays_bounded() -> None:
    detector = LogContrast()
    noisy = [
        speaking(10.0 * number, {f"{word * 3} {word}": {5: 9} for word in map(chr, range(97, 123))})
        for number in range(30)
    ]
    run_lines(detector, new_view(), [speaking(0, {}), speaking(10, {}), speaking(20, {}), *noisy])
    assert len(detector.state.marks) <= 500


@pytest.mark.parametrize("settings", [{"k": 4}, {"ratio": 0}, {"few": 2}, {"common": -1}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        LogContrastConfig(**settings)
