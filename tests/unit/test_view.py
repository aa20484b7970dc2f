"""What is known of an attempt: members, progress, peers, ends."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import (
    FIXED,
    OWN,
    S,
    at,
    closed,
    ended,
    healthy,
    identity,
    new_view,
    series,
    stack,
    stepping,
    still,
    summary,
)
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import MOST_RANKS, Identity
from schemas.results import Series, Window
from streams.attempt_window import AttemptWindow
from streams.bounds import MOST_NODES, MOST_OTHERS
from streams.iterations import ProgressClock
from streams.view import AttemptView


def seen(*windows: AttemptWindow) -> AttemptView:
    view = new_view()
    for window in windows:
        view.update(window)
    return view


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({}, [[0, 1, 2, 3]]),
        ({3: summary(3, 10, who=identity(3, role="critic"))}, [[0, 1, 2], [3]]),
        ({3: summary(3, 10, who=identity(3, coordinates={"pp": 1}))}, [[0, 1, 2], [3]]),
        ({3: summary(3, 10, layout={"world": 4, "pp": 2, "dp": 2})}, [[0, 1], [2, 3]]),
        ({4: summary(4, 10)}, [[0, 1, 2, 3, 4]]),
    ],
)
def test_peers_are_those_of_what_is_known_by_now(change: dict[int, Window], groups: list[list[int]]) -> None:
    view = seen(closed([summary(rank) for rank in range(4)]))
    assert view.peer_groups() == [[0, 1, 2, 3]]
    view.update(closed(list(({rank: summary(rank, 10) for rank in range(4)} | change).values()), 10))
    assert sorted(view.peer_groups()) == groups
    view.update(closed([summary(rank, 20) for rank in range(4)], 20))
    assert sorted(view.peer_groups()) == groups


def test_what_is_found_once_is_found_for_each_view() -> None:
    window, asked = closed([summary(0)]), []

    def find(view: AttemptView) -> int:
        asked.append(view)
        return len(asked)

    first, second = new_view(), new_view()
    assert [window.once("it", first, lambda: find(first)) for _ in range(2)] == [1, 1]
    assert window.once("it", second, lambda: find(second)) == 2
    assert window.once("else", second, lambda: find(second)) == 3


def test_series_are_told_by_name_with_their_ranks() -> None:
    told = [series("loss", 1, [2.0]), series("a_ms", 1, [5.0])]
    window = closed([summary(None, series=told), summary(4, series=told), summary(2, series=told[:1])])
    found = {name: list(reports) for name, reports in window.series.items()}
    assert found == {"a_ms": [(4, told[1])], "loss": [(4, told[0]), (2, told[0])]}
    assert list(window.series) == ["a_ms", "loss"]


def test_what_one_source_does_not_know_of_a_worker_another_tells() -> None:
    logs = summary(3, 0, who=Identity(job="job1", rank=3, node="node01", role="actor"))
    stacks = summary(3, 10, who=Identity(job="job1", rank=3, local_rank=1, coordinates={"pp": 1}))
    metrics = summary(3, 20, who=Identity(job="job1", rank=3))
    known = seen(closed([logs], 0), closed([stacks], 10), closed([metrics], 20)).members[3].identity
    assert (known.node, known.role, known.local_rank, known.coordinates) == ("node01", "actor", 1, {"pp": 1})


def test_a_members_own_process_is_its_trainer() -> None:
    view = seen(
        closed([summary(0, announced=[(10, "trainer"), (11, "dataloader")])]),
        closed([summary(0, 10, stacks=[stack(OWN, 12, pid=12, process_type="dataloader")])], 10),
    )
    assert view.members[0].main_pid == 10


def test_ends_stick_to_their_rank_and_a_request_is_no_end() -> None:
    view = seen(healthy(2))
    view.update(
        closed([], 10, exits=[(0, ended(11, signal="SIGTERM", requested=True)), (1, ended(12, 1)), (9, ended(12, 1))])
    )
    assert view.members[0].exit is None
    assert view.members[0].requested == at(11)
    assert view.members[1].exit == ended(12, 1)
    assert set(view.members) == {0, 1}


def test_the_report_with_a_rank_replaces_the_line_without() -> None:
    view = seen(healthy(1))
    view.update(closed([], 10, exits=[(0, ended(15, 1)), (0, ended(12, -9, "SIGKILL", rank=0)), (0, ended(16, 1))]))
    assert view.members[0].exit == ended(12, -9, "SIGKILL", rank=0)


def test_ranks_that_never_came_are_expected_all_the_same() -> None:
    view = seen(closed([summary(0, world_size=4), summary(5)]))
    assert view.expected == {0, 1, 2, 3, 5}


def test_the_layouts_world_counts_more_than_an_announcement() -> None:
    assert seen(closed([summary(0, world_size=2, layout={"world": 3})])).expected == {0, 1, 2}


def test_node_summaries_are_no_members() -> None:
    node = summary(None, who=Identity(job="job1", node="node00"))
    assert seen(closed([node, summary(1)])).members.keys() == {1}


LAYOUT = {"world": 12, "dp": 4, "cp": 1, "tp": 1, "pp": 3}


def test_peers_are_ranks_of_one_stage() -> None:
    view = seen(closed([summary(rank, layout=LAYOUT) for rank in range(12)]))
    assert sorted(view.peer_groups()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert view.knows_layout


def test_peers_are_ranks_of_one_role() -> None:
    roles = ["actor"] * 4 + ["critic"] * 2 + ["rollout"] * 4 + ["reference"] * 2
    view = seen(closed([summary(rank, who=identity(rank, role=role)) for rank, role in enumerate(roles)]))
    assert sorted(view.peer_groups()) == [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9], [10, 11]]


@pytest.mark.parametrize(
    ("name", "layout", "own", "roles", "knows"),
    [
        ("one stage", {"world": 10, "dp": 10, "cp": 1, "tp": 1, "pp": 1}, 0, 1, True),
        ("sizes that do not fit the world", {"world": 10, "dp": 1, "cp": 1, "tp": 1, "pp": 8}, 0, 1, False),
        ("one stage and nothing else", {"pp": 1}, 0, 1, True),
        ("one stage and sizes that do not fit", {"world": 10, "dp": 4, "tp": 2, "pp": 1}, 0, 1, False),
        ("roles only", {}, 0, 2, False),
        ("stages of half of the ranks", {}, 5, 2, False),
        ("stages of all but one", {}, 9, 1, True),
        ("every rank's own", {}, 10, 2, True),
    ],
)
def test_the_layout_is_known_where_the_stage_of_nearly_every_rank_is(
    name: str, layout: dict[str, int], own: int, roles: int, knows: bool
) -> None:
    told = [
        identity(rank, role=f"role{rank % roles}", coordinates={"pp": 0} if rank < own else {}) for rank in range(10)
    ]
    view = seen(closed([summary(who.rank, who=who, layout=layout) for who in told]))
    assert view.knows_layout == knows, name


def test_stages_may_be_known_of_one_role_only() -> None:
    actors = [identity(rank, role="actor", coordinates={"pp": rank}) for rank in range(4)]
    view = seen(
        closed([summary(who.rank, who=who) for who in [*actors, *(identity(r, role="rollout") for r in (4, 5))]])
    )
    assert not view.knows_layout
    assert (view.knows_stages_beside([1]), view.knows_stages_beside([1, 4]), view.knows_stages_beside([])) == (
        True,
        False,
        False,
    )
    assert view.of_their_roles([5, 99]) == {4, 5}


def test_places_that_become_known_later_count() -> None:
    view = seen(closed([summary(rank) for rank in range(12)]))
    assert (view.coordinates(11), view.knows_layout) == ({}, False)
    view.update(closed([summary(rank, layout=LAYOUT) for rank in range(12)], 10))
    assert (view.coordinates(11)["pp"], view.knows_layout) == (2, True)
    view.update(closed([summary(11, 20, who=identity(11, coordinates={"pp": 7}))], 20))
    assert view.coordinates(11)["pp"] == 7


def test_a_layout_fits_the_world_that_is_known_by_now() -> None:
    view = seen(closed([summary(rank, layout={"dp": 8, "pp": 1}, world_size=8) for rank in range(8)]))
    assert view.knows_layout
    view.update(closed([summary(rank, 10, world_size=16) for rank in range(8)], 10))
    assert not view.knows_layout


def test_a_ranks_own_coordinates_count_more_than_the_layouts() -> None:
    own = summary(0, who=identity(0, coordinates={"pp": [0, 2]}), layout=LAYOUT)
    view = seen(closed([own, summary(1)]))
    assert view.coordinates(0) == {"pp": [0, 2]}
    assert view.coordinates(1)["pp"] == 0
    assert view.coordinates(11)["pp"] == 2


def test_without_roles_and_stages_the_layout_is_not_known() -> None:
    view = seen(healthy(8))
    assert not view.knows_layout
    assert view.peer_groups() == [list(range(8))]


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        (["train"] * 4, "train"),
        (["start-up", "start-up", "train"], "train"),
        (["train", "train", "checkpoint"], "checkpoint"),
        (["train", "evaluation"], "evaluation"),
        (["train", "checkpoint", "shutdown"], "shutdown"),
        (["download", "start-up", "start-up"], "start-up"),
        (["download", "start-up"], "start-up"),
        ([], ""),
    ],
)
def test_the_attempts_phase_is_what_its_ranks_are_in(phases: list[str], phase: str) -> None:
    assert seen(closed([summary(rank, phase=one) for rank, one in enumerate(phases)])).phase == phase


def test_a_checkpoint_that_the_job_iterates_through_for_a_minute_holds_nothing_up() -> None:
    def phase(until: int, again: int | None = None) -> str:
        # Rank 1 says that it saves, and not that it is through; only rank 0 prints iterations.
        windows = []
        for start in range(0, until, 10):
            told = at(start + 5) if start in (0, again) else None
            saving = summary(1, start, phase="checkpoint", phase_time=told)
            windows.append(closed([stepping(0, start, first=start + 1), saving], start))
        return seen(*windows).phase

    assert [phase(until) for until in (10, 60, 70, 120)] == ["checkpoint", "checkpoint", "train", "train"]
    assert phase(120, again=90) == "checkpoint"


def test_a_step_longer_than_a_window_is_known_by_its_line_or_by_the_next() -> None:
    def one(start: float, iteration: int, *more: Series) -> AttemptWindow:
        own = [series("lm_loss", iteration, [2.0], start), *more]
        return closed([summary(0, start, iteration=iteration, iteration_time=at(start), series=own)], start)

    assert seen(one(0, 1)).clock.step_ns is None
    assert seen(one(0, 1), one(30, 2), one(90, 5)).clock.step_ns == at(25) - at(0)
    assert seen(one(0, 1, series("elapsed_time_per_iteration_ms", 1, [25_000.0]))).clock.step_ns == at(25) - at(0)
    assert seen(one(0, 1, series("timing_s/step", 1, [1e300]))).clock.step_ns is None
    assert seen(one(0, 9), one(30, 2)).clock.step_ns is None


def test_the_clock_is_the_highest_iteration_of_any_rank() -> None:
    view = seen(closed([stepping(0, 0, first=1), stepping(1, 0, first=3)]))
    assert (view.clock.iteration, view.clock.time, view.clock.step_ns) == (12, at(9), at(1) - at(0))
    assert view.clock.began is not None


def test_steps_that_are_counted_anew_each_epoch_are_progress() -> None:
    # ``epoch 2 step 1/10``: the number falls back, the job goes on.
    view = seen(healthy(4, 0, 1), healthy(4, 10, 1))
    assert view.clock.time == at(19)


@pytest.mark.parametrize(
    ("fields", "finished"),
    [
        ({"total_iterations": 10}, True),
        ({"total_iterations": 11}, False),
        ({"finished": at(9)}, True),
        ({}, False),
    ],
)
def test_training_is_finished_at_its_last_iteration_or_by_its_word(fields: dict[str, int], finished: bool) -> None:
    assert seen(healthy(2, **fields)).finished is finished


def test_iterations_after_the_word_show_that_it_did_not_mean_the_job() -> None:
    # ``epoch 1 training completed`` is printed by many loops.
    view = seen(healthy(4, 0, 1, finished=at(9)), healthy(4, 10, 11), healthy(4, 20, 21))
    assert not view.finished


def test_life_is_shown_by_logs_stacks_gauges_and_the_nodes_producer() -> None:
    def life(window: AttemptWindow) -> int:
        return seen(closed([summary(0, -10)], -10), window).members[0].last_life

    silent: dict[str, None] = {"last_log": None}
    assert life(closed([summary(0, **silent)])) == at(-1)
    assert life(closed([summary(0)])) == at(9)
    assert life(closed([summary(0, stacks=[stack(OWN, 4)], **silent)])) == at(4)
    assert life(closed([summary(0, stacks=[stack([], 4, failure="gone")], **silent)])) == at(-1)
    assert life(closed([], sightings=[(0, at(10))])) == at(10)


def test_the_owners_stop_is_the_earliest() -> None:
    view = seen(closed([], 0, stopped=at(5)), closed([], 10, stopped=at(11)))
    assert view.stopped == at(5)


@FIXED
@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_order_of_summaries_does_not_matter(one: list[int], two: list[int]) -> None:
    def after(order: list[int]) -> AttemptView:
        summaries: list[Window] = [stepping(rank, 0, first=1 + rank % 2) for rank in order]
        view = seen(closed(summaries))
        return view

    left, right = after(one), after(two)
    assert left.peer_groups() == right.peer_groups()
    assert left.clock == right.clock
    assert left.members == right.members


def test_a_series_by_iteration_gives_the_step() -> None:
    window = stepping(0, 0, first=1, series=[series("total_ms", 1, [500.0] * 10, 0, 0.5)])
    view = seen(closed([window]), still(1, 10))
    assert view.clock.step_ns == (at(1) - at(0)) // 2


def test_each_ranks_step_is_that_of_its_first_series_with_two_times_and_the_middle_counts() -> None:
    at_once = series("a_ms", 1, [1.0, 2.0], 0, 0)
    own = [
        [at_once, series("b_ms", 1, [1.0] * 3, 0, 2.0)],
        [at_once, series("b_ms", 1, [1.0] * 3, 0, 3.0), series("c_ms", 1, [1.0] * 2, 0, 9.0)],
        [series("elapsed_time_per_iteration_ms", 7, [4_000.0])],
        [Series(name="a_ms", iterations=[-(2**63), 2**63 - 1], times=[-(2**63), 2**63 - 1], values=[1.0, 1.0])],
    ]
    told = [stepping(rank, 0, first=1, series=found) for rank, found in enumerate(own)]
    assert seen(closed(told)).clock.step_ns == at(3) - at(0)
    assert seen(closed(told[:1] * 2)).clock.step_ns == at(2) - at(0)
    assert seen(closed(told[3:])).clock.step_ns is None


def test_ranks_that_are_silent_with_their_nodes_producer_are_unobserved_and_no_others() -> None:
    nodes = [("node00", at(20)), ("node02", at(20)), ("node03", at(20))]
    first = closed([summary(rank, 0) for rank in range(8)], 0, node_life=[(f"node0{n}", at(10)) for n in range(4)])
    quiet = closed([summary(rank, 10) for rank in (0, 1, 3, 6, 7)], 10, node_life=nodes)
    # Rank 2 shares rank 3's node, of which rank 3 is heard; 4 and 5 are silent on a node that lives.
    assert seen(first, quiet).unobserved_since(at(10)) == [2]
    ends = closed([summary(0, 10)], 10, node_life=nodes[:1], exits=[(3, ended(11, 1))])
    assert seen(first, ends).unobserved_since(at(10)) == [2, 4, 5, 6, 7]
    assert seen(first, closed([], 10)).unobserved_since(at(10)) == []
    assert seen(closed([summary(rank, 0) for rank in range(8)], 0)).unobserved_since(at(10)) == []


def test_whoever_invents_nodes_fills_no_view_and_displaces_nobody_on_whose_node_ranks_run() -> None:
    view = seen(closed([summary(rank, 0) for rank in range(4)]))
    for round_ in range(3):
        names = [f"a{round_}-{number}" for number in range(MOST_NODES // 2)] + (["node01"] if round_ == 2 else [])
        start = 10.0 + 10 * round_
        view.update(
            closed(
                [],
                start,
                launchers=names,
                node_life=[(name, at(start + 10)) for name in names],
                switches=dict.fromkeys(names, "s0"),
            )
        )
    assert {len(view.stops.launchers), len(view.node_life), len(view.switches)} == {MOST_NODES}
    assert view.node_life["node01"] == at(40)
    # Of the others those that were heard first are kept, and of who lives those that were heard last.
    for known, rounds in ((view.stops.launchers, "a0"), (view.switches, "a0"), (view.node_life, "a2")):
        assert "node01" in known
        assert sum(name.startswith(rounds) for name in known) == MOST_NODES // 2


def test_whoever_invents_ranks_fills_no_view_and_displaces_nobody_of_the_announced_world() -> None:
    view = seen(closed([summary(rank) for rank in (0, 1)]))
    flood = [summary(rank, 10) for rank in (10**9, -1, *range(MOST_RANKS - MOST_OTHERS, MOST_RANKS + 2))]
    for summaries in (flood, flood[::-1]):
        inside, outside = view.admits(summaries)
        # Nobody has told of a world: there is room for so many, of whom two are known, the lowest first.
        assert len(inside) == MOST_OTHERS - 2
        assert sorted(one.identity.rank or 0 for one in outside)[:2] == [-1, MOST_RANKS - 2]
    view.update(closed(view.admits(flood)[0], 10))
    assert len(view.members) == MOST_OTHERS
    late = [summary(0, 20), summary(4, 20), summary(9, 20)]
    assert view.admits(late) == ([late[0]], late[1:])
    # Once it is known that a world has five, those who are of it take no room from the others.
    beyond = [summary(rank, 20) for rank in (11, 10, 5)]
    late = [*late, summary(1, 20, world_size=5), summary(3, 20, layout={"world": 4}), *beyond]
    assert view.admits(late) == ([one for one in late if one not in beyond[:2]], beyond[:2])
    view.update(closed(view.admits(late)[0], 20))
    assert view.admits(late[:2]) == (late[:2], [])


def test_a_rank_that_claims_ever_other_nodes_fills_no_view_with_their_clocks() -> None:
    moves = [summary(0, who=identity(0, node=f"a{number}"), shifted_ns=S) for number in range(MOST_NODES + 1)]
    view = seen(closed([*moves, summary(3, shifted_ns=2 * S)]))
    assert len(view.clocks) == MOST_NODES and view.clocks["node01"] == 2 * S


def test_what_many_ask_for_is_found_anew_with_each_window() -> None:
    window = closed([summary(rank, 0, stacks=[stack(OWN, 4)], phase="startup") for rank in (1, 0)])
    assert [one.identity.rank for one in window.of(0)] == [0]
    assert window.of(2) == []
    view = seen(window)
    before = (view.phase, view.peer_groups(), sorted(view.expected), sorted(view.main_spans(at(0))))
    assert before == ("startup", [[0, 1]], [0, 1], [0, 1])
    view.update(closed([stepping(2, 10, first=1, world_size=5, layout={"pp": 1})], 10))
    after = (view.phase, view.peer_groups(), sorted(view.expected), sorted(view.main_spans(at(5))))
    assert after == ("train", [[0, 1, 2]], [0, 1, 2, 3, 4], [])


def test_a_ranks_threads_stay_bounded_over_windows_and_its_main_thread_is_never_lost() -> None:
    view = new_view()
    for second in range(0, 60, 10):
        made_up = [stack(OWN, second + 5, thread=f"{second} {number}") for number in range(60)]
        view.update(closed([summary(0, second, stacks=[stack(OWN, second + 1), *made_up])], second))
    spans = view.members[0].spans
    assert len(spans) == 64
    main = view.members[0].main_span(0)
    assert main is not None and main.samples == 6


def test_a_clock_that_was_written_down_before_iterations_were_counted_is_warm() -> None:
    before = b'{"iteration": 500, "time": 9, "steps": [1, 1, 1, 1, 1]}'
    assert msgspec.json.decode(before, type=ProgressClock).told == 5
    assert ProgressClock().told == 0
