# ruff: noqa: E501 (lines stand here as they are printed)
"""Counts that watchdogs print: read from lines, kept as states, and who of the ranks stands apart by them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from detection_support import T0, S, identity, log
from streams_support import Script, agent, node_of, records, run, worker, written_log
from streams_support import at as second_of

from schemas.events import Collective
from schemas.results import CollectiveState, Incident
from streams.collectives import States
from streams.config import StreamConfig
from streams.lines.watchdog import Group, GroupProgress, told_in
from streams.printed_progress import printed_apart
from streams.stages.columns import reached_of
from streams.stages.worker import WorkerState, summarise

HEAD = "[rank6]:[E703 21:51:54.112142364 ProcessGroupNCCL.cpp:1987] "
WORLD = Group("0", "default_pg", 6)
DUMP = "[PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: {n}, last completed NCCL work: {n}.This is most likely caused by"
FAILED = "[PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected by watchdog at work sequence id: {n} PG status: last enqueued work: {n}, last completed work: {d}"
TIMEOUT = "[Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType={op}, NumelIn={size}, NumelOut=8, Timeout(ms)=60000) ran for 60012 milliseconds before timing out."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD + DUMP.format(r=6, n=56116), GroupProgress(WORLD, 56116, 56116)),
        (
            HEAD
            + "[PG ID 0 PG GUID 0(default_pg) Rank 6]  failure detected by watchdog at work sequence id: 20585 PG status: last enqueued work: 20589, last completed work: 20584",
            GroupProgress(WORLD, 20589, 20584, 20585),
        ),
        (
            "[PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.",
            GroupProgress(Group("1", "", 0), 811, 807, 808),
        ),
        (
            "[PG ID 3 PG GUID 25(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Received a dump signal due to a collective timeout from this local rank. Last enqueued NCCL work: 1, last completed NCCL work: -1.",
            GroupProgress(Group("25", "TENSOR_MODEL_PARALLEL_GROUP", 1), 1, -1),
        ),
        (
            "[PG 0 (default_pg) Rank 13] Process group watchdog thread terminated with exception: [Rank 13] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2070, OpType=_ALLGATHER_BASE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600068 milliseconds before timing out.",
            GroupProgress(Group("0", "default_pg", 13), None, -1, 2070, "_all_gather_base", "1", 600068),
        ),
        (
            HEAD + TIMEOUT.format(r=6, n=7, op="ALLREDUCE", size=3),
            GroupProgress(None, None, -1, 7, "all_reduce", "3", 60012),
        ),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 6] First PG on this rank to signal dumping.", None),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=, OpType=)", None),
        ("last enqueued work: " + "9" * 40 + ", last completed work: 1", None),
    ],
)
def test_a_line_tells_counts_and_what_has_failed(text: str, told: GroupProgress | None) -> None:
    assert told_in(text) == told


def states(rank: int, *texts: str) -> list[CollectiveState]:
    events = [log(text, T0 + at * S) for at, text in enumerate(texts)]
    return summarise(identity(rank), WorkerState(), [*events], 0, StreamConfig())[0].collectives


def test_the_lines_of_a_timeout_are_one_state() -> None:
    (found,) = states(6, TIMEOUT.format(r=6, n=42, op="ALLREDUCE", size=3), FAILED.format(r=6, n=42, d=41), "bye")
    assert (found.last_enqueued, found.last_completed, found.outstanding, found.printed) == (42, 41, True, True)
    assert (found.oldest, found.oldest_operation, found.oldest_shape) == (42, "all_reduce", "3")
    assert (found.captured, found.oldest_at) == (T0 + S, T0 - 60_012_000_000)


@pytest.mark.parametrize(
    ("rank", "text", "shared"),
    [
        (6, DUMP.format(r=6, n=41), True),
        (
            6,
            "[PG 0 Rank 6] Exception detected. Received a dump signal due to a collective timeout from x. Last enqueued NCCL work: 4, last completed NCCL work: 4",
            True,
        ),
        # The place is not the rank: a default group of some ranks only.
        (6, DUMP.format(r=2, n=41), False),
        # Each rank counts these for itself, or they were split off and share a number.
        (6, DUMP.format(r=6, n=41).replace("PG ID 0 PG GUID 0(default_pg)", "PG ID 1 PG GUID 1(mesh_tp)"), False),
        (6, DUMP.format(r=6, n=41).replace("PG ID 0 PG GUID 0(default_pg)", "PG 1"), False),
    ],
)
def test_only_the_default_group_has_one_name_at_all_ranks(rank: int, text: str, shared: bool) -> None:
    (found,) = states(rank, text)
    assert (found.group == "default_pg as printed") is shared
    assert shared or found.group.endswith(f"printed by rank {rank}")


def test_counts_beside_a_send_are_not_those_of_collectives() -> None:
    (found,) = states(6, TIMEOUT.format(r=6, n=42, op="SEND", size=3), FAILED.format(r=6, n=42, d=41))
    assert found.group == "0(default_pg) as printed by rank 6"


def test_a_flood_of_groups_is_counted_and_bounded() -> None:
    texts = [DUMP.format(r=6, n=4).replace("GUID 0(default_pg)", f"GUID {n}(g)") for n in range(200)]
    summary, _ = summarise(identity(6), WorkerState(), [log(text) for text in texts], 0, StreamConfig())
    assert (len(summary.collectives), summary.dropped["watchdog groups"]) == (64, 136)


def test_of_a_flood_of_operations_without_a_group_the_last_ones_wait_for_it() -> None:
    texts = [TIMEOUT.format(r=6, n=n, op="SEND", size=3) for n in range(100)]
    texts += [FAILED.format(r=6, n=99, d=98)]
    summary, _ = summarise(identity(6), WorkerState(), [log(text) for text in texts], 0, StreamConfig())
    (found,) = summary.collectives
    assert (found.oldest_operation, summary.dropped["watchdog operations"]) == ("send", 36)


def test_the_first_of_very_many_failures_keeps_its_operation() -> None:
    numbers = [*range(99, 1, -1), 99]
    texts = [FAILED.format(r=6, n=n, d=1) + TIMEOUT.format(r=6, n=n, op="ALLREDUCE", size=n) for n in numbers]
    (found,) = states(6, *texts)
    assert (found.oldest, found.oldest_shape) == (2, "2")
    # Of an earlier one of which no operation is told nothing is known.
    (found,) = states(6, texts[0], FAILED.format(r=6, n=98, d=1))
    assert (found.oldest, found.oldest_operation) == (98, "")


def waits(n: int, d: int, rank: int, **more: str) -> list[CollectiveState]:
    texts = [TIMEOUT.format(r=rank, n=n, **({"op": "ALLREDUCE", "size": "3"} | more)), FAILED.format(r=rank, n=n, d=d)]
    return states(rank, *texts)


def idle(n: int, rank: int) -> list[CollectiveState]:
    return states(rank, DUMP.format(r=rank, n=n))


def dumped(rank: int, enqueued: int, completed: int) -> CollectiveState:
    return CollectiveState(
        group="tp", captured=T0, ranks=[], last_enqueued=enqueued, last_completed=completed, operation="", enqueued_at=0
    )


def told(
    found: Mapping[int, list[CollectiveState]], ranks: int = 8, *, world_known: bool = True
) -> tuple[str, list[int]] | None:
    world: States = {rank: {one.group: one for one in own} for rank, own in found.items()}
    result = printed_apart(world, set(range(ranks)), world_known=world_known)
    return None if result is None else (result.grounds, sorted(result.ranks))


ALL = {rank: waits(42, 41, rank) for rank in range(8)}
TP = "[PG ID 1 PG GUID 1(mesh_tp) Rank 0]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 9, last completed work: 8"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, None),
        ({5: idle(41, 5)}, ("printed_behind", [5])),
        # One that waits as well is a link, though it has enqueued least.
        ({5: waits(42, 40, 5)}, None),
        ({4: [*idle(41, 4), *states(4, TP)], 5: idle(41, 5)}, ("printed_perhaps", [5])),
        ({4: idle(41, 4), 5: idle(41, 5)}, ("printed_perhaps", [4, 5])),
        ({4: [*idle(41, 4), dumped(4, 3, 2)], 5: idle(41, 5)}, ("printed_perhaps", [5])),
        # Nobody knows of a rank that prints nothing whether it is waited for.
        ({4: [], 5: idle(41, 5)}, ("printed_perhaps", [5])),
        ({4: []}, None),
        # A minority that is ahead is innocent, and so is the majority.
        ({rank: idle(41, rank) for rank in range(6)}, None),
        # Half of them waiting in one of Gloo's collectives shows nowhere.
        ({rank: idle(41, rank) for rank in range(4)}, None),
        # One that has not completed what all others have waits for nobody.
        ({rank: waits(43, 42, rank) for rank in range(7)} | {7: waits(42, 41, 7)}, ("printed_never_completed", [7])),
        ({3: waits(42, 41, 3, op="ALLGATHER")}, ("printed_mismatched", [3])),
        ({3: waits(42, 41, 3, size="9")}, ("printed_mismatched", [3])),
        ({rank: waits(42, 41, rank, op="ALLGATHER") for rank in range(4)}, None),
    ],
)
def test_who_stands_apart(changed: dict[int, list[CollectiveState]], expected: tuple[str, list[int]] | None) -> None:
    assert told(ALL | changed) == expected


def test_where_nobody_says_how_many_ranks_there_are_another_may_be_waited_for() -> None:
    found = ALL | {5: idle(41, 5)}
    assert (told(found), told(found, world_known=False)) == (("printed_behind", [5]), ("printed_perhaps", [5]))


def test_lines_of_a_worker_whose_rank_is_not_known_are_nobodys() -> None:
    lines = [log(DUMP.format(r=6, n=41)), log(FAILED.format(r=6, n=42, d=41))]
    assert summarise(identity(None), WorkerState(), [*lines], 0, StreamConfig())[0].collectives == []


NEVER = "one never enqueued what its group waits for"


def timing_out(
    lagging: int | None,
    *,
    silent: int | None = None,
    ranks: int = 8,
    trained: int = 12,
    gone: bool = False,
    seen: bool = False,
    silence: int = 60,
) -> list[Incident]:
    """All but one wait a minute for it and print a timeout, in two windows; nothing but logs is there of the job."""
    script = Script()
    script.start(ranks)
    script.train(ranks, 1, trained)
    if seen:
        script.alive(ranks, 0, 80)
    for rank in range(ranks):
        who, second = worker("job", rank), 19.0 + silence + rank / 5
        if rank == lagging:
            script.log(who, second, HEAD + DUMP.format(r=rank, n=41))
        elif rank != silent:
            script.log(who, second, TIMEOUT.format(r=rank, n=42, op="ALLREDUCE", size=3))
            script.log(who, second + 0.1, FAILED.format(r=rank, n=42, d=41))
        if gone:
            line = f"failed (exitcode: -6) local_rank: {rank % 2} (pid: {1000 + rank}) of binary: python"
            script.log(agent("job", node_of(rank)), 20.9 + silence, line)
    written = written_log(script.recording)
    run(written)
    return list({one.id: one for one in records(written, "incidents")}.values())


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(("trained", "seen"), [(0, False), (12, False), (12, True)])
def test_a_hang_without_stacks_or_dumps_names_the_one_that_never_came(
    ranks: int, gone: bool, trained: int, seen: bool
) -> None:
    (found,) = timing_out(2, ranks=ranks, trained=trained, gone=gone, seen=seen)
    assert (found.symptom, [one.rank for one in found.suspects], found.reason) == ("hang", [2], NEVER)


def test_the_job_is_still_known_after_the_ten_minutes_that_watchdogs_wait_by_default() -> None:
    (found,) = timing_out(2, silence=600)
    assert ([one.rank for one in found.suspects], found.reason, found.iteration) == ([2], NEVER, 12)


@pytest.mark.parametrize(("lagging", "silent"), [(None, None), (None, 3), (2, 3)])
def test_a_hang_in_which_that_cannot_be_told_names_nobody(lagging: int | None, silent: int | None) -> None:
    (found,) = timing_out(lagging, silent=silent)
    assert (found.suspects, found.verdict != "supported") == ([], True)


def counted(count: int) -> Collective:
    return Collective(
        time=second_of(50), group="world", sequence=count, operation="operation", state="enqueued", tool="ras"
    )


def launched(count: int) -> list[CollectiveState]:
    return summarise(identity(0), WorkerState(), [counted(count)], 0, StreamConfig())[0].collectives


# A rank that synchronises stops at the operation that hangs for all, and its peers run ahead of their devices.
@pytest.mark.parametrize("counts", [{5: 640}, {4: 640, 5: 640}, dict.fromkeys(range(7), 640)])
@pytest.mark.parametrize("outside", [None, 5, 6])
def test_counts_of_launches_name_nobody_and_hide_nobody_whom_stacks_show(
    counts: dict[int, int], outside: int | None
) -> None:
    script = Script()
    script.start(8)
    script.train(8, 1, 20)
    script.alive(8, 0, 60)
    if outside is not None:
        script.stacks(8, range(30, 60, 5), outside)
    for rank in range(8):
        script.send(worker("job", rank), counted(counts.get(rank, 643)))
    written = written_log(script.recording)
    run(written)
    (found,) = {one.id: one for one in records(written, "incidents")}.values()
    assert (found.symptom, [one.rank for one in found.suspects]) == ("hang", [] if outside is None else [outside])
    said = repr(found)
    assert "it cannot be told who is behind and who ahead" in said and "nothing outstanding" not in said


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({rank: launched(8) for rank in range(8)}, None),
        ({5: launched(7)}, ("few_ahead", [])),
        # The one that gave no answer may be waited for.
        ({4: [], 5: launched(7)}, None),
        # Dumps and watchdogs tell more.
        ({4: [*launched(8), dumped(4, 3, 3)], 5: launched(7)}, None),
        ({4: [*launched(8), *waits(42, 41, 4)], 5: launched(7)}, None),
    ],
)
def test_launches_alone_are_the_last_to_be_asked(
    changed: dict[int, list[CollectiveState]], expected: tuple[str, list[int]] | None
) -> None:
    assert told({rank: launched(8) for rank in range(8)} | changed) == expected


def test_what_was_launched_is_not_known_to_be_completed_or_outstanding() -> None:
    (found,) = launched(8)
    assert (found.last_enqueued, found.last_completed, found.completed_known, found.outstanding) == (8, -1, False, True)
    # As it was written before: the least count was called completed.
    old = msgspec.structs.replace(counted(8), sequence=7, state="completed")
    assert reached_of([old, counted(8)]) == found
    assert reached_of([msgspec.structs.replace(old, sequence=8)]) == found


def test_whoever_has_launched_what_another_has_not_is_not_behind() -> None:
    found = ALL | {5: [*idle(41, 5), *launched(9)], 6: [*waits(42, 41, 6), *launched(8)]}
    assert (told(found), told(found | {5: [*idle(41, 5), *launched(8)]})) == (None, ("printed_behind", [5]))
