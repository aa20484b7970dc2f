from __future__ import annotations

import random

import msgspec
import pytest

from schemas.events import Frame
from streams.stack_classes import Sample, by_reason, classes_of, thread_kind
from streams.stack_words import said

STEP = Frame("step", "/srv/train.py", 40)
REDUCE = Frame("all_reduce", "/py/site-packages/torch/distributed/distributed_c10d.py", 2799)
NEXT = Frame("__next__", "/py/site-packages/torch/utils/data/dataloader.py", 630)
READ = Frame("read", "/srv/files.py", 12)
NATIVE = Frame("epoll_wait", "libc.so.6")


def sample(
    rank: int, *frames: Frame, kind: str = "trainer", thread: str = "MainThread", role: str = "", failure: str = ""
) -> Sample:
    return Sample(rank=rank, role=role, process_type=kind, thread=thread, frames=list(frames), failure=failure)


def hang() -> list[Sample]:
    waiting = [sample(rank, STEP, REDUCE) for rank in (0, 1, 2, 3, 4, 6, 7)]
    idle = [sample(rank, Frame("get", "queues.py", 3), kind="dataloader") for rank in (0, 1)]
    return [*waiting, sample(5, STEP, NEXT), *idle, sample(5, READ, kind="dataloader")]


def roles(count: int, role: str = "") -> dict[int, str]:
    return dict.fromkeys(range(count), role)


def test_the_one_that_is_elsewhere_is_said_with_what_its_loader_does() -> None:
    assert said(classes_of(hang(), roles(8))) == [
        "ranks 0-4,6-7 in all_reduce (distributed_c10d.py:2799) under step (train.py:40); "
        "rank 5 in __next__ (dataloader.py:630) under step (train.py:40), its dataloader in read (files.py:12)"
    ]


def test_who_has_no_sample_or_a_failed_one_is_unobserved_and_never_missing() -> None:
    samples = [*hang(), sample(8, failure="Permission denied")]

    main = classes_of(samples, roles(10))[0]

    assert main.unobserved == {8: "Permission denied", 9: "no sample"}
    assert main.observed == set(range(8))
    top = main.tree.children[0]
    assert main.missing(top) == frozenset()
    reduce = next(path[-1] for path in main.tree.walk() if path[-1].frame == REDUCE)
    assert main.missing(reduce) == {5}


def test_threads_of_different_roles_and_processes_are_never_compared() -> None:
    samples = [sample(0, STEP, REDUCE, role="actor"), sample(1, STEP, NEXT, role="rollout")]

    classes = classes_of(samples, {0: "actor", 1: "rollout"})

    assert [one.name for one in classes] == ["actor trainer MainThread", "rollout trainer MainThread"]
    assert not any(group.minority for one in classes for group in one.groups)


def test_numbered_threads_are_of_one_kind() -> None:
    assert thread_kind("Thread-12 (run)") == thread_kind("Thread-3 (run)")
    assert thread_kind("0x7f25edbb66c0") == thread_kind("0x7F00aa")


def test_native_frames_of_one_sampler_set_nobody_apart() -> None:
    main = classes_of([sample(0, STEP, REDUCE, NATIVE), sample(1, STEP, REDUCE), sample(2, STEP, REDUCE)], roles(3))[0]

    assert [group.ranks for group in main.groups] == [[0, 1, 2]]


def test_two_halves_are_no_minorities() -> None:
    main = classes_of([sample(0, STEP, REDUCE), sample(1, STEP, NEXT)], roles(2))[0]

    assert [group.minority for group in main.groups] == [False, False]


def test_a_rank_without_a_loader_is_not_unobserved_among_loaders() -> None:
    loaders = next(one for one in classes_of(hang(), roles(8)) if one.process_type == "dataloader")

    assert loaders.unobserved == {}


def test_a_rank_of_which_nothing_was_sampled_is_unobserved_among_loaders_too() -> None:
    loaders = next(one for one in classes_of(hang(), roles(9)) if one.process_type == "dataloader")

    assert loaders.unobserved == {8: "no sample"}


def test_many_places_are_counted_rather_than_told() -> None:
    samples = [sample(rank, Frame(f"f{rank}", "a.py", 1)) for rank in range(9)]

    assert said(classes_of(samples, roles(9)), most=2) == [
        "rank 0 in f0 (a.py:1); rank 1 in f1 (a.py:1); ranks 2-8 in 7 other places"
    ]


BUSY = Frame("busy", "/srv/train.py", 47)
FORWARD, BACKWARD, LAYER = (Frame(name, "/srv/train.py", 51) for name in ("forward", "backward", "layer"))


@pytest.mark.parametrize(
    ("stacks", "line"),
    [
        (
            [(STEP, FORWARD, BUSY), (STEP, BACKWARD, BUSY)],
            "rank 0 in busy (train.py:47) through forward (train.py:51); "
            "rank 1 in busy (train.py:47) through backward (train.py:51)",
        ),
        (
            [(STEP, FORWARD, BUSY), (STEP, FORWARD, LAYER, BUSY), (STEP, BACKWARD, BUSY), (STEP, READ)],
            "rank 0 in busy (train.py:47), 3 frames deep; "
            "rank 1 in busy (train.py:47) through layer (train.py:51), 4 frames deep; "
            "rank 2 in busy (train.py:47) through backward (train.py:51), 3 frames deep; rank 3 in read (files.py:12)",
        ),
        (
            [(BUSY,), (STEP, BUSY)],
            "rank 0 in busy (train.py:47), 1 frame deep; "
            "rank 1 in busy (train.py:47) through step (train.py:40), 2 frames deep",
        ),
        (
            [(BUSY,) * 9, (BUSY,) * 7, (BUSY,) * 9],
            "ranks 0,2 in busy (train.py:47), 9 frames deep; rank 1 in busy (train.py:47), 7 frames deep",
        ),
        (
            [
                (FORWARD, LAYER, BUSY),
                (FORWARD, FORWARD, BUSY),
                (BACKWARD, LAYER, BUSY),
                (BACKWARD, FORWARD, BUSY),
            ],
            "ranks 0,2 in busy (train.py:47) through layer (train.py:51), 3 frames deep; "
            "ranks 1,3 in busy (train.py:47) through forward (train.py:51), 3 frames deep",
        ),
    ],
    ids=["callers", "one goes on", "no caller", "a recursion", "callers of one name"],
)
def test_one_place_by_different_ways_is_never_said_twice(stacks: list[tuple[Frame, ...]], line: str) -> None:
    samples = [sample(rank, *frames) for rank, frames in enumerate(stacks)]

    assert said(classes_of(samples, roles(len(stacks)))) == [line]


def test_of_stacks_whose_outermost_frames_are_not_known_the_nearest_callers_are_compared() -> None:
    cut = msgspec.structs.replace(sample(0, FORWARD, LAYER, BUSY), outer=5)

    assert said(classes_of([cut, sample(1, STEP, FORWARD, BUSY)], roles(2))) == [
        "rank 0 in busy (train.py:47) through layer (train.py:51); "
        "rank 1 in busy (train.py:47) through forward (train.py:51)"
    ]


def test_the_order_of_samples_does_not_matter() -> None:
    samples = [*hang(), sample(8, failure="b"), sample(8, failure="a")]
    one = classes_of(samples, roles(9))
    random.Random(3).shuffle(samples)

    assert classes_of(samples, roles(9)) == one


def test_a_role_of_which_nobody_was_sampled_has_a_class_unless_nothing_was() -> None:
    known = {0: "actor", 1: "rollout", 2: ""}

    classes = classes_of([sample(0, STEP, REDUCE, role="actor")], known)

    assert [(one.role, one.unobserved) for one in classes] == [
        ("", {2: "no sample"}),
        ("actor", {}),
        ("rollout", {1: "no sample"}),
    ]
    assert said(classes) == [
        "of no known role: rank 2 not observed",
        "actor: rank 0 in all_reduce (distributed_c10d.py:2799) under step (train.py:40)",
        "rollout: rank 1 not observed",
    ]
    assert classes_of([], known) == []


def test_who_does_not_wait_while_most_do_is_a_minority_wherever_they_wait() -> None:
    receive = Frame("recv", "/py/site-packages/torch/distributed/distributed_c10d.py", 2999)
    samples = [sample(0, REDUCE), sample(1, REDUCE), sample(2, receive), sample(3, STEP)]

    main = classes_of(samples, roles(4))[0]

    assert [(group.ranks, group.minority) for group in main.groups] == [([0, 1], False), ([2], False), ([3], True)]


def test_a_group_has_been_where_it_is_as_long_as_all_of_it_have() -> None:
    seen = [
        Sample(rank=n, role="", process_type="trainer", thread="MainThread", frames=[STEP], since=n, samples=9 - n)
        for n in (1, 2)
    ]

    (group,) = classes_of(seen, roles(0))[0].groups

    assert (group.since, group.samples) == (2, 7)


def pinning(rank: int, *frames: Frame) -> Sample:
    return sample(rank, *frames, thread="pin_memory")


GET = Frame("get", "queues.py", 113)


@pytest.mark.parametrize(
    ("others", "lines"),
    [
        (
            [pinning(0, READ), pinning(1, GET), pinning(2, GET)],
            ["trainer pin_memory: ranks 1-2 in get (queues.py:113); rank 0 in read (files.py:12)"],
        ),
        # Whoever has nothing to do is nowhere special.
        ([pinning(0, GET), pinning(1, READ), pinning(2, READ)], []),
        # What the line of its trainer tells is not told again.
        (
            [sample(5, READ, kind="dataloader"), sample(0, GET, kind="dataloader"), sample(1, GET, kind="dataloader")],
            [],
        ),
        (
            [sample(0, READ, kind="writer"), sample(1, GET, kind="writer"), sample(2, GET, kind="writer")],
            ["writer: ranks 1-2 in get (queues.py:113); rank 0 in read (files.py:12)"],
        ),
    ],
)
def test_other_threads_are_told_of_where_a_few_are_busy_elsewhere(others: list[Sample], lines: list[str]) -> None:
    trainers = [one for one in hang() if one.process_type == "trainer"]

    assert said(classes_of([*trainers, *others], roles(8)))[1:] == lines


def test_kinds_of_threads_beyond_a_few_are_counted() -> None:
    others = [
        sample(rank, READ if rank == 0 else GET, thread=f"worker-{'x' * n}") for n in range(1, 6) for rank in range(3)
    ]

    lines = said(classes_of([*hang(), *others], roles(8)))

    assert len(lines) == 4
    assert lines[-1].endswith("; a few stand apart in 2 more kinds of threads")


def test_very_many_ranks_and_reasons_are_counted() -> None:
    samples = [
        *(sample(rank, STEP) for rank in range(0, 2000, 2)),
        *(sample(rank, failure=f"no {rank % 8}") for rank in range(1, 2000, 2)),
    ]

    (line,) = said(classes_of(samples, roles(2000)))

    assert line.startswith("1000 ranks (0,2,4,6,8,")
    assert "; 500 ranks (5,7,13,15," in line
    assert line.endswith(",…) not observed for 2 other reasons")


def test_ranks_are_told_by_reason_the_most_first() -> None:
    reasons = [(7, "timed out"), (2, "no sample"), (3, "died"), (1, "no sample"), (7, "timed out")]

    assert by_reason(reasons) == [("no sample", [1, 2]), ("died", [3]), ("timed out", [7])]
    assert by_reason([]) == []
