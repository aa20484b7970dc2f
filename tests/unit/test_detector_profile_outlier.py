"""Profiles against each other: the function that holds up a rank is told by name, and the rank where that is sure."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, identity, named, new_view, run, summary

from schemas.events import OTHERS
from schemas.results import Anomaly, FunctionKind, FunctionShare, Sketch
from streams.attempt_window import AttemptWindow
from streams.detectors.profile_outlier import ProfileOutlier

KINDS: dict[str, FunctionKind] = {
    "augment": "python",
    "aten::linear": "python",
    "cudaMalloc": "os",
    "gemm": "gpu",
    "norm": "gpu",
    "head": "gpu",
    "ncclDevKernel_AllReduce": "collective",
}
HELD = {"augment": 0.05, "aten::linear": 0.02, "cudaMalloc": 0.02, "gemm": 0.6, "norm": 0.1}
REDUCE = "ncclDevKernel_AllReduce"


def sketch(
    more: dict[str, float] | None = None,
    *,
    step: float = 1.0,
    second: float = 5.0,
    steps: int = 6,
    unrest: float = 0.002,
    noise: float = 1.0,
    **changes: Any,
) -> Sketch:
    """A profile of steps of ``step`` seconds: what own work leaves of one is waiting in the collective."""
    held = {name: value * noise + (more or {}).get(name, 0.0) for name, value in HELD.items()}
    held |= {name: value for name, value in (more or {}).items() if name not in held}
    held[REDUCE] = max(step - sum(held.values()), 0.0)
    functions = [
        FunctionShare(
            name=name,
            kind=KINDS.get(name, "python"),
            share=min(value / step, 1.0),
            mean=value / 4,
            count=4 * steps,
            typical=value if steps else 0.0,
            unrest=unrest,
        )
        for name, value in held.items()
    ]
    values: dict[str, Any] = {
        "captured": at(second),
        "functions": sorted(functions, key=lambda one: (-one.share, one.name)),
        "duration": int(step * max(steps, 1) * 1e9),
        "steps": steps,
        "first_step": 10,
        "world_size": 8,
        "unlisted": 0.001,
    }
    return Sketch(**(values | changes))


def window(sketches: dict[int, Sketch | list[Sketch]], start: float = 0, **layout: int) -> AttemptWindow:
    told = {rank: own if isinstance(own, list) else [own] for rank, own in sketches.items()}
    return closed(
        [
            summary(rank, start, sketches=own, layout=layout, who=identity(rank, role="trainer"))
            for rank, own in sorted(told.items())
        ],
        start,
    )


def ranks(count: int = 8, slow: dict[int, dict[str, float]] | None = None, **fields: Any) -> dict[int, Any]:
    """Everybody's profile; a step takes as long as that of the slowest."""
    more = slow or {}
    step = fields.pop("step", 1.0) + max([0.0, *(sum(own.values()) for own in more.values())])
    chance = random.Random(3)
    return {
        rank: sketch(more.get(rank), step=step, noise=1 + chance.uniform(-0.01, 0.01), **fields)
        for rank in range(count)
    }


def findings(*windows: AttemptWindow) -> list[Anomaly]:
    return [one for found in run(ProfileOutlier(), new_view(), windows) for one in found]


def only(found: Iterable[Anomaly]) -> Anomaly:
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("function", "words", "area"),
    [
        ("augment", "function 'augment' of rank 5", "data"),
        ("aten::linear", "function 'aten::linear' of rank 5", "compute"),
        ("gemm", "GPU kernel 'gemm' of rank 5", "compute"),
        ("cudaMalloc", "system or driver call 'cudaMalloc' of rank 5", "compute"),
        # What peers do not do at all is held against the largest that they may have left out.
        ("gc.collect", "function 'gc.collect' of rank 5", "compute"),
    ],
)
def test_a_function_that_takes_longer_on_one_rank_is_told_by_name(function: str, words: str, area: str) -> None:
    one = only(findings(window(ranks(slow={5: {function: 0.4}}))))
    assert (one.grounds, one.severity, one.layer, one.axis, one.symptom) == (
        "slow_function",
        "warning",
        "profile",
        "space",
        "slowdown",
    )
    assert named([one]) == [[5]]
    assert one.victims == [0, 1, 2, 3, 4, 6, 7]
    assert words in one.text and one.area == area
    assert function in one.suspects[0].why


def test_a_profile_of_healthy_ranks_says_nothing() -> None:
    assert findings(window(ranks())) == []


def test_victims_are_not_named_though_their_collectives_are_long() -> None:
    """Rank 5 was not profiled, one of those that wait for it waits longest."""
    found = ranks(slow={5: {"augment": 0.4}})
    del found[5]
    found[2] = sketch(step=1.6)
    assert findings(window(found)) == []


def test_a_slow_function_that_does_not_shorten_the_waiting_is_not_held_against_the_rank() -> None:
    """It holds longer than its peers' and waits as long as they do: the step is as long by something else."""
    found = ranks(step=1.3)
    slow = sketch({"augment": 0.3}, step=1.6)
    found[5] = msgspec.structs.replace(slow, duration=int(6 * 1.3e9))
    assert findings(window(found)) == []


def test_many_slow_ranks_are_workload_and_nobody_is_named() -> None:
    slow = {rank: {"gemm": 0.4} for rank in (1, 4, 6)}
    one = only(findings(window(ranks(slow=slow))))
    assert (one.grounds, one.area, one.severity, one.suspects) == ("many_slow_functions", "workload", "info", [])


def test_a_function_that_varies_from_step_to_step_by_as_much_is_no_finding() -> None:
    """Where inputs differ in length each step is another rank's; six steps do not even that out."""
    assert findings(window(ranks(slow={5: {"gemm": 0.3}}, unrest=0.1))) == []


@pytest.mark.parametrize(("others", "told"), [(0.75, []), (0.61, ["slow_function"])])
def test_a_rank_whose_steps_were_all_of_the_longer_kind_is_held_to_how_far_means_lie_from_medians(
    others: float, told: list[str]
) -> None:
    """Of inputs in two lengths most may be short on each other rank, so that no step deviates from the median one."""
    found = ranks(slow={5: {"gemm": 0.4}}, unrest=0.0)
    for rank in set(found) - {5}:
        functions = [
            msgspec.structs.replace(one, share=others / 1.4) if one.name == "gemm" else one
            for one in found[rank].functions
        ]
        found[rank] = msgspec.structs.replace(found[rank], functions=functions)
    assert [one.grounds for one in findings(window(found))] == told


def test_the_excess_has_to_matter_to_the_step() -> None:
    assert findings(window(ranks(slow={5: {"augment": 0.05}}))) == []


def test_the_first_layer_that_explains_it_is_told() -> None:
    """The CPU takes a little longer, too; the kernels hold most of it."""
    one = only(findings(window(ranks(slow={5: {"gemm": 0.4, "augment": 0.1}}))))
    assert "GPU kernel 'gemm' of rank 5" in one.text


def test_many_small_functions_that_are_all_slower_are_told_as_work_of_their_layer() -> None:
    """A host that is short of processor time: no function of it holds one percent."""
    found = {rank: sketch({f"aten::f{at}": 0.006 for at in range(30)}, step=1.5, unrest=0.001) for rank in range(8)}
    found[5] = sketch({f"aten::f{at}": 0.0145 for at in range(30)}, step=1.5, unrest=0.001)
    one = only(findings(window(found)))
    assert (one.grounds, named([one])) == ("slow_function", [[5]])
    assert one.text.startswith("own work on the CPU of rank 5 holds 505.00 ms of a step")
    assert "2.02 times its peers' median of 250.00 ms" in one.text


def test_an_earlier_profile_is_kept_short_and_its_totals_stay() -> None:
    """Functions that are no longer kept by name have not become slow."""
    many = {f"aten::f{at}": 0.01 for at in range(20)}
    normal, slow = sketch(many, step=1.3), sketch({**many, "augment": 0.1}, step=1.5, second=65)
    # Its steps take longer by 0.2 s, of which it holds half itself.
    one = only(findings(window({3: normal}), window({3: slow}, 60)))
    assert "function 'augment' of rank 3" in one.text
    waiting = sketch(many, step=1.8, second=65)
    assert findings(window({3: normal}), window({3: waiting}, 60)) == []


def test_small_functions_together_count_for_their_layer_and_are_no_function_of_a_name() -> None:
    found = ranks(slow={5: {"norm": 0.03, OTHERS: 0.4}})
    one = only(findings(window(found)))
    assert f"'{OTHERS}'" not in one.text


@pytest.mark.parametrize(
    ("count", "slow", "steps", "severity"),
    [
        # Few peers, or few steps: told, and nobody named, and loudly only where it is much.
        (4, {1: {"augment": 0.5}}, 6, "warning"),
        (2, {1: {"augment": 0.5}}, 6, "warning"),
        (2, {1: {"augment": 0.15}}, 6, "info"),
        (8, {5: {"augment": 0.5}}, 3, "info"),
        (8, {5: {"augment": 0.5}}, 0, "info"),
    ],
)
def test_too_few_peers_or_steps_name_nobody(
    count: int, slow: dict[int, dict[str, float]], steps: int, severity: str
) -> None:
    one = only(findings(window(ranks(count, slow, steps=steps))))
    assert (one.grounds, one.severity, one.suspects, one.victims) == ("function_apart", severity, [], [])
    assert "'augment'" in one.text and f"of rank {next(iter(slow))}" in one.text


def test_only_peers_of_the_same_stage_are_compared() -> None:
    """The last stage has a head that takes longer by design: its four ranks are alike."""
    head = {rank: {"gemm": 0.4} for rank in (4, 5, 6, 7)}
    layout = {"world": 8, "pp": 2, "dp": 4, "tp": 1}
    assert findings(window(ranks(slow=head), **layout)) == []
    slow = head | {5: {"gemm": 0.4, "augment": 0.5}}
    one = only(findings(window(ranks(slow=slow), **layout)))
    # Three peers are too few.
    assert (one.grounds, one.suspects) == ("function_apart", [])
    assert "'augment'" in one.text and "of rank 5" in one.text


@pytest.mark.parametrize(
    "changes",
    [
        {"world_size": 2},
        {"steps": 0, "duration": 10**9},
        {"inferred": True, "first_step": 99},
        # With the calls of Python, or without those of the GPU, other functions hold the same time.
        {"recorded": "cpu,gpu,python"},
    ],
)
def test_profiles_of_other_jobs_or_other_steps_are_not_compared(changes: dict[str, Any]) -> None:
    found = ranks(slow={5: {"augment": 0.5}})
    found[5] = msgspec.structs.replace(found[5], **changes)
    assert findings(window(found)) == []


def test_profiles_taken_at_other_times_are_not_compared() -> None:
    healthy = ranks(second=5)
    del healthy[5]
    slow = {5: sketch({"augment": 0.5}, step=1.5, second=305)}
    assert findings(window(healthy), window(slow, 300)) == []


def test_profiles_that_may_still_come_are_waited_for() -> None:
    """Others are as slow; their profiles come with the next window."""
    more = {rank: {"augment": 0.5} for rank in (5, 6, 7)}
    everybody = ranks(10, more, world_size=None)
    early = {rank: msgspec.structs.replace(own, captured=at(9)) for rank, own in everybody.items() if rank < 6}
    late = {rank: msgspec.structs.replace(own, captured=at(10.5)) for rank, own in everybody.items() if rank >= 6}
    members = {rank: [] for rank in range(6, 10)}
    first, second = findings(window(early | members), window(late, 10))
    assert (first.grounds, first.suspects) == ("function_apart", [])
    assert (second.grounds, second.suspects) == ("many_slow_functions", [])


def test_a_rank_that_was_like_its_peers_before_has_changed() -> None:
    before, after = ranks(), ranks(slow={5: {"augment": 0.4}}, second=65)
    space, time = findings(window(before), window(after, 60))
    assert (space.grounds, named([space])) == ("slow_function_and_changed", [[5]])
    assert (time.grounds, time.axis, time.suspects) == ("function_shift", "time", [])
    assert "function 'augment' of rank 5" in time.text and "instead of 1000.00 ms" in time.text.replace(
        "1.00 s", "1000.00 ms"
    )


STAGES = {"pp": 2, "dp": 8, "tp": 1, "cp": 1, "world": 16}


@pytest.mark.parametrize(
    ("slow", "count", "layout", "grounds", "suspects"),
    [
        ({0: {"log_metrics": 0.3}}, 8, {}, "slow_function_by_design", []),
        ({7: {"log_metrics": 0.3}}, 8, {}, "slow_function_by_design", []),
        ({0: {"gemm": 0.3}}, 8, {}, "slow_kernel_by_place", []),
        ({7: {"head": 0.3}}, 8, {}, "slow_function_by_design", []),
        ({0: {"log_metrics": 0.3}, 5: {"gemm": 0.4}}, 8, {}, "slow_function", [5]),
        ({0: {"gemm": 0.3}, 5: {"gemm": 0.4}}, 8, {}, "slow_function", [5, 0]),
        ({3: {"gemm": 0.3}, 11: {"gemm": 0.25}}, 16, STAGES, "slow_functions_of_replica", []),
        ({3: {"gemm": 0.6}, 11: {"gemm": 0.1}}, 16, STAGES, "slow_function", [3]),
        ({3: {"gemm": 0.3}, 11: {"gemm": 0.11}}, 16, STAGES, "slow_functions_of_replica", []),
        ({3: {"gemm": 0.3}, 11: {"gemm": 0.3}, 5: {"gemm": 0.3}}, 16, STAGES, "slow_function", [5]),
        ({3: {"gemm": 0.3}}, 8, STAGES, "slow_function_unseen", []),
    ],
)
def test_more_work_by_design_and_longer_inputs_are_nobodys_fault(
    slow: dict[int, dict[str, float]], count: int, layout: dict[str, int], grounds: str, suspects: list[int]
) -> None:
    told = window(ranks(count, slow, world_size=count), **layout)
    unseen = [summary(rank, layout=layout, who=identity(rank, role="trainer")) for rank in range(count, 16)]
    one = only(findings(closed([*told.summaries, *(unseen if layout else [])])))
    assert (one.grounds, [suspect.rank for suspect in one.suspects]) == (grounds, suspects)


def counted(own: Sketch, calls: dict[str, int]) -> Sketch:
    """The sketch with these calls a step of functions."""
    told = [
        msgspec.structs.replace(one, count=calls.get(one.name, one.count // own.steps) * own.steps)
        for one in own.functions
    ]
    return msgspec.structs.replace(own, functions=told)


@pytest.mark.parametrize(
    ("slow", "calls", "suspects"),
    [
        ({5: {"gemm": 0.4}}, {}, [5]),
        ({5: {"gemm": 0.4}, 6: {"gemm": 0.4}}, {}, [5, 6]),
        # The head of the model: other kernels, or more of the same ones.
        ({5: {"head": 0.4}}, {}, []),
        ({5: {"gemm": 0.4, "head": 0.02}}, {}, []),
        ({5: {"head": 0.4}, 6: {"head": 0.4}}, {}, []),
        ({5: {"gemm": 0.4}}, {"gemm": 8}, []),
        ({5: {"head": 0.4}, 6: {"gemm": 0.4}}, {}, [6]),
        # What several do and nobody else does may be what they are there for.
        ({2: {"log": 0.4}, 5: {"log": 0.4}}, {}, []),
        ({2: {"augment": 0.4}, 5: {"augment": 0.4}}, {}, [2, 5]),
        # What the host does besides is no part of the model.
        ({5: {"gc.collect": 0.4}}, {}, [5]),
        ({5: {"augment": 0.4}}, {"augment": 8}, [5]),
        ({5: {"cudaMalloc": 0.4}}, {"cudaMalloc": 8}, [5]),
    ],
)
def test_who_executes_other_things_than_most_has_another_part_of_the_model(
    slow: dict[int, dict[str, float]], calls: dict[str, int], suspects: list[int]
) -> None:
    found = {rank: counted(own, calls if rank in slow else {}) for rank, own in ranks(slow=slow).items()}
    one = only(findings(window(found)))
    assert sorted(suspect.rank for suspect in one.suspects if suspect.rank is not None) == suspects
    assert one.grounds == ("slow_function" if suspects else "slow_function_of_other_work")
    # Where the layout is told its peers are of its own stage.
    told = only(findings(window(found, world=8, pp=1, dp=8, tp=1)))
    assert sorted(suspect.rank for suspect in told.suspects if suspect.rank is not None) == sorted(slow)


@pytest.mark.parametrize(("more", "other"), [({"aten::head": 0.4}, True), ({"aten::linear": 0.4}, False)])
def test_operators_are_the_model_where_nothing_of_the_device_was_recorded(more: dict[str, float], other: bool) -> None:
    def on_host(own: Sketch) -> Sketch:
        kept = [one for one in own.functions if one.kind != "gpu"]
        return msgspec.structs.replace(own, functions=kept)

    found = {rank: on_host(own) for rank, own in ranks(slow={5: more}).items()}
    one = only(findings(window(found)))
    assert [suspect.rank for suspect in one.suspects] == ([] if other else [5])


def test_rank_0_whose_logging_has_become_slow_is_named() -> None:
    first, later = ranks(), ranks(slow={0: {"log_metrics": 0.3}}, second=305)
    space = next(one for one in findings(window(first), window(later, 300)) if one.axis == "space")
    assert (space.grounds, named([space])) == ("slow_function_and_changed", [[0]])


@pytest.mark.parametrize("second", [35.0, 605.0])
def test_an_abnormal_profile_is_held_against_a_normal_one_of_the_same_rank(second: float) -> None:
    normal, abnormal = sketch(), sketch({"augment": 0.4}, step=1.4, second=second)
    one = only(findings(window({3: normal}), window({3: abnormal}, second - 5)))
    assert (one.grounds, one.severity, one.suspects) == ("function_shift", "warning", [])
    assert "function 'augment' of rank 3 holds 450.00 ms of a step" in one.text
    assert "9.00 times what it held in an earlier profile of 50.00 ms" in one.text
    # The other way round nothing has become slow.
    back = msgspec.structs.replace(normal, captured=at(second))
    early = msgspec.structs.replace(abnormal, captured=at(5))
    assert findings(window({3: early}), window({3: back}, second - 5)) == []


def test_profiles_recorded_in_other_ways_or_in_other_phases_are_not_held_against_each_other() -> None:
    normal, slow = sketch(), sketch({"augment": 0.4}, step=1.4, second=65)
    other = msgspec.structs.replace(slow, recorded="cpu,gpu,python")
    assert findings(window({3: normal}), window({3: other}, 60)) == []
    evaluating = closed([summary(3, 60, sketches=[slow], phase="evaluation")], 60)
    assert findings(window({3: normal}), evaluating) == []


@pytest.mark.parametrize(("steps", "severity"), [(5, "warning"), (4, "info")])
def test_few_steps_are_information(steps: int, severity: str) -> None:
    normal, slow = sketch(), sketch({"augment": 0.4}, step=1.4, second=65, steps=steps)
    one = only(findings(window({3: normal}), window({3: slow}, 60)))
    assert (one.grounds, one.severity) == ("function_shift", severity)


def test_two_profiles_of_one_window_are_told_apart() -> None:
    pair = [sketch(second=2), sketch({"gemm": 0.5}, step=1.5, second=8)]
    one = only(findings(window({3: pair})))
    assert "GPU kernel 'gemm' of rank 3" in one.text


def test_longer_waiting_is_not_held_against_the_one_that_waits() -> None:
    assert findings(window({3: sketch()}), window({3: sketch(step=1.8, second=65)}, 60)) == []


def test_no_order_of_summaries_or_functions_decides() -> None:
    found = ranks(slow={5: {"augment": 0.4}, 6: {"augment": 0.2}})
    expected = findings(window(found))
    turned = {rank: msgspec.structs.replace(own, functions=own.functions[::-1]) for rank, own in found.items()}
    again = closed(list(reversed(window(turned).summaries)))
    assert findings(again) == expected


def test_ten_thousand_profiles_are_written_down_in_little_room_and_read_back_as_they_were() -> None:
    chance = random.Random(1)
    many = {f"aten::f{at}": 0.01 + chance.random() / 200 for at in range(40)}
    found = {rank: sketch(many, step=2.0, world_size=None) for rank in range(200)}
    later = {rank: sketch(many, step=2.1, world_size=None, second=305) for rank in range(200)}
    detector, view = ProfileOutlier(), new_view()
    for one in (window(found), window(later, 300)):
        view.update(one)
        detector.observe(view, one)
    raw = bytes(detector.snapshot())
    assert len(raw) / 200 < 2_500
    again = ProfileOutlier()
    again.restore(msgspec.Raw(raw))
    assert again.state == detector.state
