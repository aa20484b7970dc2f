"""Profiles on their way to the job stage: one sketch a profile, bounded, in seconds, counted where cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from streams_support import CONFIG, put, records, run, tick, values_of

from schemas import codec, results
from schemas.events import Batch, Profile
from schemas.identity import Identity
from streams.log.memory import MemoryLog
from streams.stages.sketches import MOST_FUNCTIONS, MOST_SKETCHES, Sketches

SECOND = 1_000_000_000


def profile(name: str = "gemm", **changes: Any) -> Profile:
    values = {"time": SECOND, "kind": "gpu", "share": 0.5, "mean": 0.2, "spread": 0.1, "count": 3}
    return Profile(name=name, **(values | changes))


def kept(*events: Profile) -> tuple[list[results.Sketch], int]:
    sketches = Sketches()
    for event in events:
        sketches.take(event)
    return sketches.kept(), sketches.left_out


def test_a_window_carries_the_profiles_of_its_worker_in_order_of_their_times() -> None:
    log = MemoryLog(1)
    told = [
        profile("load", time=2 * SECOND, share=0.1, steps=6, duration=60, first_step=9, world_size=8, unlisted=0.01),
        profile("gemm", time=2 * SECOND, share=0.4, steps=6, duration=60, first_step=9, world_size=8, unlisted=0.01),
        profile("gemm", time=SECOND, unit="ms"),
    ]
    put(log, Batch(producer="p", boot="b", seq=1, identity=Identity(job="j", node="n", rank=0), events=told))
    tick(log, 12.5)
    run(log, CONFIG)
    window = next(one for one in records(log, "windows") if isinstance(one, results.Window))
    first, second = window.sketches
    assert [one.name for one in first.functions] == ["gemm"]
    assert first.functions[0].mean == pytest.approx(0.0002)
    assert [one.name for one in second.functions] == ["gemm", "load"]
    assert (second.captured, second.steps, second.duration) == (2 * SECOND, 6, 60)
    assert (second.first_step, second.world_size, second.unlisted) == (9, 8, 0.01)
    assert window.dropped == {}
    (batch,) = [codec.decode("profile", value) for value in values_of(log, "stamped.profiles")]
    assert len(batch.events) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"share": 1.5},
        {"share": -0.1},
        {"unlisted": 2.0},
        {"count": -1},
        {"mean": 1e12},
        {"spread": -1.0},
        {"typical": 1e300},
        {"unit": "furlong"},
    ],
)
def test_what_cannot_be_is_counted_and_left_out(changes: dict[str, Any]) -> None:
    (sketch,), left_out = kept(profile("good"), profile("bad", **changes))
    assert ([one.name for one in sketch.functions], left_out) == (["good"], 1)


def test_sketches_are_bounded_and_what_is_cut_is_counted_and_may_be_as_large_as_the_largest_of_it() -> None:
    many = [profile(f"f{at}", share=(at + 1) / 10_000) for at in range(100)]
    (sketch,), left_out = kept(*many)
    assert (len(sketch.functions), left_out) == (MOST_FUNCTIONS, 100 - MOST_FUNCTIONS)
    assert sketch.functions[0].share == 0.01
    assert sketch.unlisted == pytest.approx((100 - MOST_FUNCTIONS) / 10_000)
    times = [profile(time=at * SECOND) for at in range(1, 10)]
    found, left_out = kept(*times)
    assert [one.captured // SECOND for one in found] == list(range(10 - MOST_SKETCHES, 10))
    assert left_out == 9 - MOST_SKETCHES


def test_no_order_decides() -> None:
    events = [profile(f"f{at % 50}", share=(at * 7 % 100) / 100, time=(at % 3) * SECOND) for at in range(300)]
    expected = kept(*events)
    for seed in range(3):
        random.Random(seed).shuffle(events)
        assert kept(*events) == expected
