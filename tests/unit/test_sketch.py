"""Sketches: which function holds which part of a profile's critical path."""

from __future__ import annotations

import random
from typing import Any

import pytest

from producers import sketch as module
from producers.sketch import Calls, Kind, Sketch, Step
from schemas.events import OTHERS

Call = tuple[str, Kind, int, int, bool]
MS = 1_000_000


def sketch(calls: list[Call], steps: list[Step] | None = None) -> Sketch:
    found = Calls()
    for name, kind, start, end, device in calls:
        found.add(name, kind, start, end, device=device)
    made = found.sketch(steps or [])
    assert made is not None
    return made


def held(calls: list[Call], steps: list[Step] | None = None) -> dict[str, int]:
    """Nanoseconds by name."""
    made = sketch(calls, steps)
    return {one.name: round(one.share * (made.end - made.start)) for one in made.functions}


def gpu(name: str, start: int, end: int) -> Call:
    return name, "gpu", start, end, True


def collective(name: str, start: int, end: int) -> Call:
    return name, "collective", start, end, True


def cpu(name: str, start: int, end: int, kind: Kind = "python") -> Call:
    return name, kind, start, end, False


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # Own work of the GPU hides what the CPU does meanwhile.
        ([gpu("gemm", 0, 80), cpu("step", 0, 100)], {"gemm": 80, "step": 20}),
        # The GPU that waits for others hides it as well, and own work hides the waiting.
        (
            [collective("reduce", 0, 60), gpu("gemm", 40, 80), cpu("step", 0, 100)],
            {"reduce": 40, "gemm": 40, "step": 20},
        ),
        # Of two kernels the one that began first holds the time.
        ([gpu("first", 0, 60), gpu("second", 40, 100)], {"first": 60, "second": 40}),
        ([gpu("long", 0, 100), gpu("inside", 40, 60)], {"long": 100}),
        # On the CPU it is the innermost call.
        ([cpu("outer", 0, 100), cpu("inner", 20, 50), cpu("leaf", 30, 40)], {"outer": 70, "inner": 20, "leaf": 10}),
        # What begins later on another thread is what the first waits for.
        (
            [cpu("backward", 0, 100), cpu("node", 10, 60), cpu("other", 40, 90)],
            {"backward": 20, "node": 30, "other": 50},
        ),
        # A moment at which nothing runs is nobody's.
        ([cpu("a", 0, 10), cpu("b", 90, 100)], {"a": 10, "b": 10}),
        # Calls without length hold nothing.
        ([cpu("a", 0, 100), cpu("empty", 50, 50)], {"a": 100}),
    ],
)
def test_every_moment_is_held_by_one_function(calls: list[Call], expected: dict[str, int]) -> None:
    assert held(calls) == expected
    assert held(calls[::-1]) == expected


def test_a_slow_function_holds_the_time_in_which_it_leaves_the_device_idle() -> None:
    calls = [cpu("forward", 0, 1_000), cpu("augment", 100, 700), gpu("gemm", 0, 200), gpu("gemm", 700, 1_000)]
    assert held(calls) == {"augment": 500, "gemm": 500}


def test_steps_bound_the_profile_and_the_typical_step_outweighs_an_odd_one() -> None:
    steps = [Step(start, start + 100 * MS, 10 + at) for at, start in enumerate(range(0, 500 * MS, 100 * MS))]
    calls = [cpu("ProfilerStep", one.start, one.end) for one in steps]
    calls += [cpu("load", one.start, one.start + 10 * MS) for one in steps]
    # Once it collects garbage.
    calls += [cpu("collect", 220 * MS, 270 * MS), cpu("before", -100 * MS, 0)]
    made = sketch(calls, steps)
    by_name = {one.name: one for one in made.functions}
    assert (made.start, made.end, made.steps, made.first_step) == (0, 500 * MS, 5, 10)
    assert by_name["load"].typical == pytest.approx(0.010)
    assert by_name["collect"].typical == 0.0
    assert by_name["collect"].share == pytest.approx(0.1)
    assert (by_name["load"].count, by_name["load"].mean, by_name["load"].spread) == (5, 0.01, 0.0)
    assert "before" not in by_name


def test_unrest_is_how_a_function_varies_from_step_to_step() -> None:
    steps = [Step(at * 100, at * 100 + 100, at) for at in range(5)]
    calls = [gpu("gemm", at * 100, at * 100 + length) for at, length in enumerate((50, 60, 70, 80, 90))]
    made = sketch(calls, steps)
    assert [(round(one.typical * 1e9), round(one.unrest * 1e9)) for one in made.functions] == [(70, 10)]


def test_small_functions_are_told_together_and_the_shares_add_up() -> None:
    calls = [cpu(f"f{at}", at * 10, at * 10 + 10, "python" if at % 2 else "os") for at in range(200)]
    made = sketch(calls)
    assert len(made.functions) <= module.MOST_FUNCTIONS + 4
    assert {one.kind for one in made.functions if one.name == OTHERS} == {"python", "os"}
    assert sum(one.share for one in made.functions) == pytest.approx(1.0)
    assert sum(one.count for one in made.functions) == 200
    assert made.unlisted == pytest.approx(1 / 200)


def test_the_order_of_calls_does_not_matter() -> None:
    chance = random.Random(7)
    calls: list[Call] = []
    for _ in range(400):
        start = chance.randrange(10_000)
        kind: Any = chance.choice(["gpu", "collective", "python", "os"])
        device = kind == "gpu" or (kind == "collective" and chance.random() < 0.5)
        calls.append((f"f{chance.randrange(40)}", kind, start, start + chance.randrange(300), device))
    steps = [Step(at, at + 1_000, at) for at in range(0, 10_000, 1_000)]
    expected = sketch(calls, steps)
    for _ in range(5):
        chance.shuffle(calls)
        chance.shuffle(steps)
        assert sketch(calls, steps) == expected


def test_nothing_is_held_twice() -> None:
    chance = random.Random(11)
    calls: list[Call] = []
    for _ in range(300):
        start = chance.randrange(5_000)
        device = chance.random() < 0.4
        kind: Any = chance.choice(["gpu", "collective"] if device else ["python", "os"])
        calls.append((f"f{chance.randrange(30)}", kind, start, start + chance.randrange(1, 400), device))
    busy = {moment for _, _, start, end, _ in calls for moment in range(start, end)}
    made = sketch(calls)
    assert sum(one.share for one in made.functions) * (made.end - made.start) == pytest.approx(len(busy), rel=1e-4)


def test_calls_and_names_beyond_the_bounds_are_counted_or_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CALLS", 5)
    monkeypatch.setattr(module, "MOST_NAMES", 2)
    calls = Calls()
    for at in range(8):
        calls.add(f"f{at}", "python", at * 10, at * 10 + 10, device=False)
    made = calls.sketch([])
    assert made is not None
    assert (len(calls), calls.left_out) == (5, 3)
    assert {one.name: one.count for one in made.functions} == {"f0": 1, "f1": 1, OTHERS: 3}


def test_nothing_has_no_sketch() -> None:
    assert Calls().sketch([]) is None
    assert Calls().sketch([Step(0, 10, 1)]) is None
    empty = Calls()
    empty.add("f", "python", 5, 5, device=False)
    assert empty.sketch([]) is None
