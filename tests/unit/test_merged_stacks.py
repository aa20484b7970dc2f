"""Where everybody of an attempt is while it stands still: which samples count, and what fits into the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from detection_support import (
    ALL_REDUCE,
    GETITEM,
    LOADER_WAIT,
    MAIN,
    OWN,
    S,
    at,
    closed,
    ended,
    gauge,
    identity,
    new_view,
    sample,
    stack,
    summary,
)

from schemas.codec import encode
from schemas.events import Frame
from schemas.identity import ranks_of
from schemas.results import MergedStacks, StackSpan, Window
from schemas.topics import TOPICS
from streams.incidents.stacks_seen import TOLD_CLASSES, apart, told_classes
from streams.member import Member
from streams.merged_stacks import merged_stacks, what_it_says
from streams.stacks import spans_of
from streams.stall import Stall
from streams.view import AttemptView

STALL = Stall(since=at(9), silence=30 * S, step=S, iteration=10, phase="train", critical=True, settled=at(11))
HERE = "all_reduce (distributed_c10d.py:3252) under train2.py:105"


def waiting(rank: int, second: float = 25, **fields: Any) -> Window:
    return summary(rank, 20, **({"stacks": [stack(ALL_REDUCE, second - 5, second)]} | fields))


def failed(second: float, reason: str, **fields: Any) -> StackSpan:
    (span,) = spans_of([sample([], at(second), failure=reason, **fields)])
    return span


def merged(summaries: list[Window], view: AttemptView | None = None, **fields: Any) -> MergedStacks | None:
    seen = view or new_view()
    window = closed(summaries, 20, **fields)
    seen.update(window)
    return merged_stacks(seen, window, STALL)


def of(summaries: list[Window], view: AttemptView | None = None, **fields: Any) -> MergedStacks:
    found = merged(summaries, view, **fields)
    assert found is not None
    return found


def test_it_says_who_is_where_since_when_and_what_is_not_known() -> None:
    stuck = [stack(LOADER_WAIT, 21, 23, 27), stack(GETITEM, 22, process_type="dataloader", pid=200)]

    found = of([waiting(0), waiting(1), summary(2, 20, stacks=stuck), summary(3, 20, world_size=5)])

    assert (found.since, found.iteration, found.phase, found.start, found.end) == (at(9), 10, "train", at(20), at(30))
    main, loaders = found.classes
    assert (main.observed, [(one.ranks, one.reason) for one in main.unobserved]) == ("0-2", [("3-4", "no sample")])
    assert [(one.ranks, one.activity, one.minority, one.since, one.samples) for one in main.groups] == [
        ("0-1", "communication", False, at(20), 2),
        ("2", "data", True, at(21), 3),
    ]
    assert [frame.function for frame in main.groups[0].frames] == [frame.function for frame in ALL_REDUCE]
    assert main.text == (
        f"ranks 0-1 in {HERE}; rank 2 in __next__ (dataloader.py:741) under train.py:120, its dataloader in "
        "__getitem__ (train.py:71); ranks 3-4 not observed"
    )
    assert (loaders.process_type, loaders.groups[0].ranks, loaders.text) == ("dataloader", "2", "")


@pytest.mark.parametrize(
    ("of_three", "fields", "reason"),
    [
        # Before the standstill settled it was on its way there.
        ({"stacks": [stack(ALL_REDUCE, 10)]}, {}, "no sample"),
        ({"stacks": [failed(22, "Permission denied")]}, {}, "Permission denied"),
        ({"stacks": [stack(ALL_REDUCE, 10), failed(22, "")]}, {}, "no frames"),
        ({"stacks": [failed(10, "Permission denied")]}, {}, "no sample"),
        ({"stacks": [stack(ALL_REDUCE, 22), failed(25, "gone")]}, {}, None),
        ({"stacks": [stack(ALL_REDUCE, 22), failed(25, "gone", process_type="dataloader")]}, {}, None),
        ({"stacks": [stack(ALL_REDUCE, 22)]}, {"exits": [(3, ended(24, 1))]}, "ended with exit code 1"),
        ({"stacks": [failed(22, "gone")]}, {"exits": [(3, ended(24, -9, "SIGKILL"))]}, "ended by SIGKILL"),
        ({"stacks": [stack(ALL_REDUCE, 26)]}, {"exits": [(3, ended(24, 1))]}, None),
        ({"stacks": [stack(ALL_REDUCE, 22)], "gauges": [gauge("process_zombie", 1.0)]}, {}, "its process is dead"),
    ],
)
def test_what_counts_is_where_a_living_thread_was_last_seen_in_the_standstill(
    of_three: dict[str, Any], fields: dict[str, Any], reason: str | None
) -> None:
    main = of([waiting(rank) for rank in range(3)] + [summary(3, 20, **of_three)], **fields).classes[0]

    assert main.observed == ("0-3" if reason is None else "0-2")
    assert [(one.ranks, one.reason) for one in main.unobserved] == ([] if reason is None else [("3", reason)])


def test_a_loader_that_cannot_be_looked_into_is_unobserved_among_loaders() -> None:
    loader = stack(GETITEM, 22, process_type="dataloader", pid=200)
    broken = failed(22, "gone", process_type="dataloader")
    found = of([waiting(0, stacks=[loader, stack(OWN, 22)]), waiting(1, stacks=[broken, stack(OWN, 22)])])

    assert [[(one.ranks, one.reason) for one in kind.unobserved] for kind in found.classes] == [[], [("1", "gone")]]


def test_without_any_sample_there_is_nothing_to_say_and_failures_alone_are_something() -> None:
    assert merged([summary(0, 20), summary(1, 20)], exits=[(0, ended(24, 1))]) is None
    (main,) = of([summary(0, 20, stacks=[failed(22, "gone")]), summary(1, 20)]).classes
    assert main.text == "rank 0 not observed (gone); rank 1 not observed"


def test_who_never_came_has_the_role_that_all_others_have() -> None:
    actors = [summary(n, 20, who=identity(n, role="actor"), stacks=[stack(OWN, 22)], world_size=3) for n in range(2)]
    (main,) = of(actors).classes
    assert (main.role, [one.ranks for one in main.unobserved]) == ("actor", ["2"])


def test_lines_and_times_say_nothing_new_but_ranks_and_places_do() -> None:
    moved = [*ALL_REDUCE[:-1], Frame("all_reduce", ALL_REDUCE[-1].file, 9)]
    one = of([waiting(0), waiting(1)])
    line = of([waiting(0, 27, stacks=[stack(moved, 26)]), waiting(1, 27, stacks=[stack(moved, 26)])])
    place = of([waiting(0), waiting(1, stacks=[stack(OWN, 26)])])
    gone = of([waiting(0), waiting(1)], exits=[(1, ended(28, 1))])

    assert what_it_says(one) == what_it_says(line)
    assert len({what_it_says(found) for found in (one, place, gone)}) == 3
    assert apart(told_classes(one)) == apart(told_classes(line)) != apart(told_classes(place))


def test_failures_that_a_member_remembers_are_few_and_the_latest() -> None:
    view = new_view()
    kinds = [failed(20 + n, f"no {n}" * 200, process_type=f"kind{n:02d}") for n in range(20)]
    view.update(closed([summary(0, 20, stacks=[*kinds, failed(21, "older", process_type="kind19")])], 20))
    found = view.members[0].failures
    assert list(found) == [f"kind{n}" for n in range(12, 20)]
    assert found["kind19"][0] == at(39) and all(len(reason) <= 300 for _, reason in found.values())


def crowd(ranks: int, frames: Callable[[int], list[Frame]], **fields: Any) -> list[Window]:
    return [waiting(rank, stacks=[stack(frames(rank), 25)], **fields) for rank in range(ranks)]


HOSTILE = "\x00\x1b[2J;'\"\\\u202e" + "é" * 2_000
DEEP = [MAIN, *(Frame(f"f{n}", "/srv/deep.py", n) for n in range(498)), Frame("end", "/srv/deep.py", 9)]


@pytest.mark.parametrize(
    "summaries",
    [
        pytest.param(lambda: crowd(10_240, lambda rank: [MAIN, Frame(f"f{rank}", "/srv/a.py", rank)]), id="everywhere"),
        pytest.param(lambda: crowd(4_000, lambda rank: [Frame(f"f{rank % 2}", "/srv/a.py", 1)]), id="even and odd"),
        pytest.param(lambda: crowd(64, lambda rank: [*DEEP, Frame(f"f{rank}", "/srv/a.py", 1)]), id="deep"),
        pytest.param(
            lambda: crowd(64, lambda rank: [Frame(HOSTILE + str(rank), HOSTILE + f"{n}.py", n) for n in range(24)]),
            id="hostile names",
        ),
        pytest.param(
            lambda: [
                waiting(n, who=identity(n, role=f"role {n % 100} {HOSTILE}"), stacks=[stack(OWN, 25)])
                for n in range(300)
            ],
            id="hundred roles",
        ),
        pytest.param(
            lambda: [
                waiting(n, stacks=[stack(DEEP[: t % 7 + 1], 25, thread=f"{HOSTILE}{'x' * t}") for t in range(300)])
                for n in range(12)
            ],
            id="many kinds of threads",
        ),
        pytest.param(
            lambda: [waiting(n, stacks=[failed(25, f"{HOSTILE}{n}")]) for n in range(300)], id="a reason for each rank"
        ),
    ],
)
def test_whatever_comes_the_record_fits_its_topic_and_all_is_told_or_counted(
    summaries: Callable[[], list[Window]],
) -> None:
    view = new_view()
    window = closed(summaries(), 20)
    view.update(window)
    found = merged_stacks(view, window, STALL)

    assert found is not None and TOPICS["merged.stacks"].takes(len(encode(found)))
    kinds = {(one.identity.role, thread) for one in view.members.values() for thread in threads(one)}
    assert len(found.classes) + found.rest == len(kinds)
    known = [
        (kind, expanded(kind.observed), [rank for one in kind.unobserved for rank in expanded(one.ranks)])
        for kind in found.classes
    ]
    for kind, observed, unobserved in known:
        placed = [*(rank for one in kind.groups for rank in expanded(one.ranks)), *expanded(kind.rest_ranks)]
        assert sorted(placed) == observed and not set(observed) & set(unobserved)
        assert bool(kind.rest) == bool(kind.rest_ranks)
        assert len(kind.text) < 5_000
    told = told_classes(found)
    assert len(told) <= TOLD_CLASSES and all(len(kind.groups) <= 6 for kind in told)
    for kind, observed, _ in known:
        for one in (one for one in told if (one.role, one.thread) == (kind.role, kind.thread)):
            placed = [*(rank for group in one.groups for rank in expanded(group.ranks)), *expanded(one.rest_ranks)]
            assert (sorted(placed), len(one.groups) + one.rest) == (observed, len(kind.groups) + kind.rest)
    if not found.rest:
        assert {rank for _, *seen in known for ranks in seen for rank in ranks} == set(view.members)


def test_an_incident_tells_of_a_few_roles_and_counts_the_others() -> None:
    told = told_classes(of([waiting(n, who=identity(n, role=f"role {n:02d}")) for n in range(15)]))
    assert [kind.role for kind in told] == [f"role {n:02d}" for n in range(12)]
    assert [kind.text.endswith("; 3 more roles or kinds of threads are left out here") for kind in told] == [
        *[False] * 11,
        True,
    ]


def test_frames_that_are_left_out_are_counted() -> None:
    (main,) = of(crowd(2, lambda rank: DEEP)).classes
    (group,) = main.groups
    assert (len(group.frames), group.outer, group.frames[-1].function) == (24, 476, "end")


def threads(member: Member) -> set[str]:
    return {"MainThread", *(span.thread for span in member.spans.values())}


def expanded(ranges: str) -> list[int]:
    return ranks_of(ranges, 20_000)
