# ruff: noqa: E501 (a row of the table is a line)
"""Every decision of blame: what was found, what is known besides, and the reason and the ranks that follow."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from detection_support import anomaly, at, situation

from schemas.results import Anomaly, Suspect
from streams.falls import Fall, Fell
from streams.incidents.decision import Reason
from streams.incidents.situation import Situation
from streams.regular_lines import Regular
from streams.rhythm import Rhythm

RANKS = 8


def fell(why: Fell, since: float = 11, time: float = 17) -> Fall:
    return Fall(at(since), at(time), 24, 1, why.value)


def others(*apart: int) -> list[int]:
    return [rank for rank in range(RANKS) if rank not in apart]


def error(rank: int, onset: float = 12, template: str = "a", **changes: object) -> Anomaly:
    values: dict[str, object] = {"templates": [template], "area": "data", "subject": f"{template}{rank}"}
    return anomaly("own_error", [rank], start=onset // 10 * 10, onset=onset, **(values | changes))  # type: ignore[arg-type]


def caught(rank: int, onset: float = 12) -> Anomaly:
    """An error that was printed by what caught it."""
    told = error(rank, onset, "c")
    return msgspec.structs.replace(
        told, suspects=[msgspec.structs.replace(one, kind="caught") for one in told.suspects]
    )


def cascade(*victims: int, start: float = 10, **changes: object) -> Anomaly:
    return anomaly("cascade", [], victims, start=start, subject="cascade", **changes)  # type: ignore[arg-type]


def told_to_end(*victims: int) -> Anomaly:
    return anomaly("told_to_end", [], victims, start=10, onset=13, subject="told")


def coded(onset: float = 12) -> Anomaly:
    """Ends with an exit code that nothing explains."""
    return anomaly("exit_code", start=onset // 10 * 10, onset=onset, subject="coded", precision_ns=10**9)


def unplaced(onset: float = 12, template: str = "u", **changes: object) -> Anomaly:
    values: dict[str, object] = {"templates": [template], "area": "code", "subject": template}
    return anomaly("unplaced_error", start=onset // 10 * 10, onset=onset, **(values | changes))  # type: ignore[arg-type]


def fault(rank: int | None, onset: float = 9.9, **changes: object) -> Anomaly:
    values: dict[str, object] = {"templates": ["xid"], "area": "hardware", "subject": f"fault{rank}"}
    return anomaly(
        "node_fault" if rank is None else "rank_fault",
        [] if rank is None else [rank],
        start=onset // 10 * 10,
        onset=onset,
        **(values | changes),
    )  # type: ignore[arg-type]


def sampled(rank: int, onset: float, every: float, **changes: object) -> Anomaly:
    """A fault that was seen at ``onset``, and not a sample before."""
    told = fault(rank, onset, precision_ns=int(every * 10**9), **changes)
    return msgspec.structs.replace(told, detector="hardware_state")


def printing(until: float, every: float = 10, **changes: object) -> Situation:
    """A job without iterations that prints one kind of line, the last one at ``until``; each rank prints it."""
    times = Rhythm(at(until), int(every * 10**9), int(every * 10**9))
    values: dict[str, object] = {
        "regular": {"step": Regular(at(-600), times)},
        "spoke": dict.fromkeys(range(RANKS), times),
    }
    return situation(**(values | changes))  # type: ignore[arg-type]


def silent(*ranks: int, until: float) -> Situation:
    """These were looked at regularly and showed no life any more since ``until``; all others still did at 30."""
    return situation(seen=dict.fromkeys(others(*ranks), at(30)) | dict.fromkeys(ranks, at(until)), lapsed=list(ranks))


def growth(rank: int | None = None, start: float = 0) -> Anomaly:
    if rank is None:
        return anomaly("memory_growth_of_all", start=start, onset=0)
    return anomaly("memory_growth", [rank], start=start, onset=0, area="memory")


def stall(start: float = 10) -> Anomaly:
    return anomaly("no_iteration", start=start, onset=9)


def outside(rank: int, start: float = 10, **changes: object) -> Anomaly:
    return anomaly("outside_communication", [rank], others(rank), start=start, onset=9, **changes)  # type: ignore[arg-type]


def apart(*ranks: int, start: float = 10, unseen: Sequence[int] = ()) -> Anomaly:
    victims = others(*ranks, *unseen)
    return anomaly("outside_communication", ranks, victims, start=start, onset=9, unobserved=list(unseen))


def printed(*ranks: int, grounds: str = "printed_behind") -> Anomaly:
    return anomaly(grounds, list(ranks), others(*ranks), start=70, onset=9)


def behind(rank: int, start: float = 10) -> Anomaly:
    return anomaly("never_enqueued", [rank], others(rank), start=start, onset=9)


def perhaps(*ranks: int) -> Anomaly:
    return anomaly("perhaps_waiting", ranks, others(*ranks), start=10, onset=9)


def waiting(grounds: str = "all_in_communication", *apart: int, **changes: object) -> Anomaly:
    return anomaly(grounds, [], others(*apart), start=10, onset=9, unobserved=list(apart), **changes)  # type: ignore[arg-type]


def kept(*kinds: tuple[int, str]) -> Anomaly:
    """Dumps of a device that has stopped, beside others that stand apart."""
    told = anomaly("never_completed", [rank for rank, _ in kinds], others(), start=10, onset=9)
    suspects = [msgspec.structs.replace(one, kind=kind) for one, (_, kind) in zip(told.suspects, kinds, strict=True)]
    return msgspec.structs.replace(told, suspects=suspects)


def halted(rank: int) -> Anomaly:
    return anomaly("process_stopped", [rank], start=10, onset=9)


def left(rank: int, onset: float = 9.5) -> Anomaly:
    return anomaly("left_early", [rank], start=10, onset=onset, precision_ns=2 * 10**9, subject="left")


def slow(grounds: str, *ranks: int, start: float = 10, **changes: object) -> Anomaly:
    return anomaly(grounds, ranks, others(*ranks), start=start, area="compute", **changes)  # type: ignore[arg-type]


def slower_port(start: float = 10) -> Anomaly:
    where = Suspect(rank=None, node="gpu3", device="mlx5_2:1", score=0.5, why="fell")
    return msgspec.structs.replace(anomaly("port_slower", start=start, area="network"), suspects=[where])


def port_down() -> Anomaly:
    where = Suspect(rank=None, node="gpu3", device="mlx5_2:1", score=0.5, why="fell")
    told = anomaly("node_fault", start=0, onset=9, area="network", metric="node_infiniband_state_id")
    return msgspec.structs.replace(told, detector="hardware_state", suspects=[where])


ALIKE = anomaly("own_error", list(range(RANKS)), start=10, templates=["a"], area="configuration")
KILLED = anomaly("own_death", [4], start=10, onset=12, subject="killed")
TOLD = told_to_end(3, 5)

ON_DEVICE = msgspec.structs.replace(
    anomaly("memory_growth_of_device", start=10),
    suspects=[Suspect(rank=None, node="gpu3", device="0000:3b:00.0", score=0.5, why="grows")],
)

SLOWER = [anomaly("job_shift", start=start, onset=5) for start in range(10, 600, 50)]
"""The job takes longer, and has not come back to its level."""

Row = tuple[str, Reason, list[int], list[Anomaly], Situation]
TABLE: list[Row] = [
    ("memory grows of one alone", Reason.MEMORY_GROWS, [3], [growth(3)], situation()),
    ("memory grows of all", Reason.MEMORY_OF_ALL_GROWS, [], [growth(3), growth(start=10)], situation()),
    ("memory that grows for minutes takes back nothing", Reason.MEMORY_GROWS, [3], [growth(3), msgspec.structs.replace(growth(start=10), severity="info")], situation()),
    ("memory of a device grows", Reason.DEVICE_MEMORY_GROWS, [], [ON_DEVICE], situation()),
    ("memory of a device and of a rank grows", Reason.MEMORY_GROWS, [3], [growth(3), msgspec.structs.replace(ON_DEVICE, end=at(40))], situation()),
    ("memory that grows hides no hang", Reason.OUTSIDE_COMMUNICATION, [5], [growth(3), stall(), outside(5)], situation()),
    ("memory grew until the rank died", Reason.OWN_DEATH, [3], [growth(3), anomaly("own_death", [3], start=10, onset=12), cascade(*others(3), onset=13)], situation()),
    ("memory of one grows, another dies", Reason.OWN_ERROR, [6], [growth(3), error(6, 12), cascade(*others(6), onset=13)], situation()),
    ("memory goes on growing after an error that passed", Reason.MEMORY_GROWS, [3], [growth(3), error(6, 12), growth(3, start=60)], situation(iterated=at(60))),
    ("the stack of one is outside", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5)], situation()),
    ("stacks alone", Reason.OUTSIDE_COMMUNICATION, [5], [outside(5)], situation()),
    ("counts printed with the first failure are of before it", Reason.NEVER_ENQUEUED, [5], [stall(), cascade(0, 1, start=70, onset=72), printed(5)], situation()),
    ("printed counts of which one may only wait for another", Reason.NOBODY_APART, [], [stall(), cascade(0, 1, start=70, onset=72), printed(4, 5, grounds="printed_perhaps")], situation()),
    ("dumps come before printed counts", Reason.NEVER_ENQUEUED, [5], [stall(), behind(5), printed(3, 5, grounds="printed_perhaps")], situation()),
    ("dumps and printed counts name different ranks", Reason.SOURCES_DISAGREE, [], [stall(), behind(5), printed(3)], situation()),
    ("a stack inside communication strikes out what is printed", Reason.NOBODY_APART, [], [stall(), anomaly("all_in_communication", [], others(), start=10, onset=9), printed(5)], situation()),
    ("stacks and collectives agree", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), behind(5)], situation()),
    ("errors after the stall are its consequence", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), cascade(*others(5), start=30), error(2, 35)], situation()),
    ("one never enqueued", Reason.NEVER_ENQUEUED, [5], [stall(), behind(5)], situation()),
    ("all in communication, one never enqueued", Reason.NEVER_ENQUEUED, [5], [stall(), anomaly("all_in_communication", [], others(5), start=10, onset=9), behind(5)], situation()),
    ("sources disagree, neither waits", Reason.SOURCES_DISAGREE, [], [stall(), anomaly("outside_communication", [5], others(2, 5), start=10, onset=9), behind(2)], situation()),
    ("perhaps all wait for one that is not seen", Reason.NOBODY_APART, [], [stall(), perhaps(2, 5, 6)], situation()),
    ("the one that no stack shows waiting", Reason.NEVER_ENQUEUED, [5], [stall(), anomaly("all_in_communication", [], others(5), start=10, onset=9), perhaps(2, 5, 6)], situation()),
    ("one has not completed what its peers have", Reason.NEVER_COMPLETED, [5], [stall(), anomaly("never_completed", [5], others(5), start=10, onset=9)], situation()),
    ("one's device has not begun", Reason.NEVER_STARTED, [5], [stall(), waiting(), anomaly("never_started", [5], others(5), start=10, onset=9)], situation()),
    ("one went on without a collective", Reason.OUT_OF_ORDER, [5], [stall(), anomaly("all_in_communication", [], others(), start=10, onset=9), anomaly("out_of_order", [5], others(5), start=10, onset=9)], situation()),
    ("one enqueued something else", Reason.MISMATCHED, [5], [stall(), anomaly("all_in_communication", [], others(), start=10, onset=9), anomaly("mismatched", [5], others(5), start=10, onset=9)], situation()),
    ("the devices of two have stopped", Reason.NEVER_COMPLETED, [2, 5], [stall(), anomaly("all_in_communication", [], others(), start=10, onset=9), anomaly("never_completed", [2, 5], others(2, 5), start=10, onset=9)], situation()),
    ("a stopped device and another outside", Reason.SOURCES_DISAGREE, [], [stall(), anomaly("outside_communication", [3], others(3), start=10, onset=9), anomaly("never_completed", [5], others(5), start=10, onset=9)], situation()),
    ("a stopped device and one that never came", Reason.NEVER_COMPLETED, [2, 5], [stall(), kept((2, "blocker"), (5, "stopped_device"))], situation()),
    ("all have joined", Reason.NONE_COMPLETED, [], [stall(), waiting("none_completed", area="network")], situation()),
    ("all have joined and all stacks wait", Reason.NONE_COMPLETED, [], [stall(), waiting(), waiting("none_completed", area="network")], situation()),
    ("all have joined, also who stands outside", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), waiting("none_completed", area="network")], situation()),
    ("who stands outside has joined all, and one dump is missing", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), waiting("one_unobserved", 3)], situation()),
    ("who stands outside has no dump", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), waiting("one_unobserved", 5)], situation()),
    ("operations do not match", Reason.UNMATCHED, [], [stall(), waiting(), waiting("unmatched", area="code")], situation()),
    ("groups wait for each other", Reason.DIFFERENT_COLLECTIVES, [], [stall(), waiting(), waiting("different_collectives")], situation()),
    ("few are ahead", Reason.FEW_AHEAD, [], [stall(), waiting("few_ahead", 0, 1, 2, 3, 4, 5)], situation()),
    ("all wait, and one is not seen", Reason.ONE_UNOBSERVED, [], [stall(), waiting("one_unsampled", 5)], situation()),
    ("all wait, and one has neither stack nor dump", Reason.ONE_UNOBSERVED, [], [stall(), waiting("one_unsampled", 5), waiting("perhaps_unobserved", 5)], situation()),
    ("all wait, one has no stack but a dump", Reason.NOBODY_APART, [], [stall(), waiting("one_unsampled", 5), waiting("perhaps_unobserved", 3)], situation()),
    ("all wait, and two are not seen", Reason.NOBODY_APART, [], [stall(), waiting("all_in_communication", 3, 5)], situation()),
    ("another role stands outside", Reason.OUTSIDE_BY_DESIGN, [], [stall(), waiting("outside_by_design", 6, 7)], situation()),
    ("a signal has stopped one", Reason.PROCESS_STOPPED, [5], [stall(), halted(5)], situation()),
    ("a signal has stopped one that waited by then", Reason.PROCESS_STOPPED, [5], [stall(), waiting(), waiting("none_completed"), halted(5)], situation()),
    ("a signal has stopped one, and another stands outside", Reason.SOURCES_DISAGREE, [], [stall(), outside(3), halted(5)], situation()),
    ("a signal has stopped the one outside", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), halted(5)], situation()),
    ("one has left while the others wait", Reason.LEFT_EARLY, [5], [stall(), waiting("all_in_communication", 5), left(5)], situation()),
    ("one that had left was seen again", Reason.NOBODY_APART, [], [stall(), waiting("all_in_communication", 5), left(5), anomaly("left_early", [], start=20, onset=9.5, precision_ns=2 * 10**9, subject="left")], situation()),
    ("one has left, and another stands outside", Reason.SOURCES_DISAGREE, [], [stall(), outside(3), left(5)], situation()),
    ("one has left long after the others began to wait", Reason.NOBODY_APART, [], [stall(), waiting("all_in_communication", 3, 5), left(5, 18)], situation()),
    ("one has left, and nothing shows that the others wait for it", Reason.NOTHING_OBSERVED, [], [stall(), left(5)], situation()),
    ("one prints an error once nothing comes any more, and waits, while another stands outside", Reason.SOURCES_DISAGREE, [], [error(2), stall(), outside(5), cascade(*others(2, 5), start=60)], situation()),
    ("one prints an error once nothing comes any more, and nobody has reacted", Reason.SOURCES_DISAGREE, [], [error(2), stall(), outside(5)], situation(living=[2])),
    ("one prints an error once nothing comes any more, and has joined what all wait for", Reason.SOURCES_DISAGREE, [], [error(2), stall(), waiting("none_completed"), cascade(*others(2), start=60)], situation()),
    ("one prints an error once nothing comes any more, and stacks and dumps point at two others", Reason.SOURCES_DISAGREE, [], [error(3), stall(), anomaly("outside_communication", [5], others(2, 5), start=10, onset=9), behind(2), cascade(*others(3), start=60)], situation()),
    ("one prints an error once nothing comes any more, and another has left", Reason.SOURCES_DISAGREE, [], [error(2), stall(), left(5), cascade(*others(2, 5), start=60)], situation()),
    ("one prints an error in a standstill and waits on, and later another stands outside", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), error(2, 35), outside(5, start=40)], situation()),
    ("one gives up in a standstill, and later another stands outside", Reason.NOTHING_OBSERVED, [], [stall(), error(2, 35), anomaly("outside_communication", [5], others(2, 5), start=40, onset=9)], situation()),
    ("one loses a connection in a standstill and waits on, and later another stands outside", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), cascade(2, start=30), outside(5, start=40)], situation()),
    ("one prints an error, waits on, and one of its peers loses another", Reason.PENDING_PEERS, [], [error(2), stall(), waiting(), cascade(1, start=20)], situation(living=[2])),
    ("one prints an error, waits on, and most of its peers lose another", Reason.OWN_ERROR, [2], [error(2), stall(), waiting(), cascade(*others(2, 7), start=20)], situation(living=[2])),
    ("one prints an error, lives on without a word, and the job stands still for a minute", Reason.OWN_ERROR, [3], [error(3), stall(start=20), stall(start=80)], situation(living=[3])),
    ("one prints an error, lives on without a word, and the job has just come to stand still", Reason.PENDING_PEERS, [], [error(3), stall(start=20)], situation(living=[3])),
    ("one prints an error, speaks on, and the job stands still for a minute", Reason.PENDING_PEERS, [], [error(3), stall(start=20), stall(start=80)], situation(living=[3], spoke={3: Rhythm(at(60))})),
    ("one prints an error, lives on, and one of its peers loses another", Reason.PENDING_PEERS, [], [error(2), cascade(1, start=20)], situation(living=[2], watched={2: at(20)})),
    ("one prints an error, lives on, one of its peers loses another, and the job is cancelled a minute later", Reason.PENDING_PEERS, [], [error(2), cascade(1, start=20)], situation(living=[2], watched={2: at(70)}, ended=at(72))),
    ("one prints an error, some of its peers lose it, and the job is cancelled at once", Reason.OWN_ERROR, [2], [error(2), cascade(0, 1, 3)], situation(living=[2], watched={2: at(20)}, ended=at(15))),
    ("one prints an error, nobody loses it, and the job is cancelled at once", Reason.PENDING_PEERS, [], [error(2)], situation(living=[2], watched={2: at(20)}, ended=at(15))),
    ("one prints an error, lives on, and launchers tell most of its peers to end", Reason.PENDING_PEERS, [], [error(2), cascade(0), told_to_end(*others(0, 2, 6, 7))], situation(living=[2], watched={2: at(20)})),
    ("one prints an error, lives on, and most of its peers that were not told to end lose it", Reason.OWN_ERROR, [2], [error(2), cascade(0, 7), told_to_end(*others(0, 2, 6, 7))], situation(living=[2], watched={2: at(20)})),
    ("one prints an error, is seen no more, and launchers tell its peers to end", Reason.OWN_ERROR, [2], [error(2), told_to_end(*others(2))], situation(watched={2: at(10)})),
    ("one prints an error, lives on for a window, one of its peers loses another, and then nobody shows life", Reason.PENDING_PEERS, [], [error(2), cascade(1, start=20)], situation(watched={2: at(30)}, seen={2: at(30)})),
    ("one prints an error, one of its peers loses it, and then nobody shows life", Reason.OWN_ERROR, [2], [error(2), cascade(1, start=20)], situation(watched={2: at(14)}, seen={2: at(14)})),
    ("one prints an error, lives on, and most of its peers lose it", Reason.OWN_ERROR, [2], [error(2), cascade(*others(2, 7), start=20)], situation(living=[2], watched={2: at(20)})),
    ("one prints an error, its end is told in that window, and one of its peers loses it", Reason.OWN_ERROR, [2], [error(2), cascade(1, start=20)], situation(living=[2], watched={2: at(10)}, exited={2: at(15)})),
    ("one prints an error, lives on, and stands outside while all others wait", Reason.OWN_ERROR, [5], [error(5), stall(), outside(5)], situation(living=[5])),
    ("one prints an error that it has caught, and all wait for it", Reason.OWN_ERROR, [5], [caught(5), stall(), outside(5)], situation(living=[5], watched={5: at(90)})),
    ("one prints an error that it has caught, and by dumps all may wait for it", Reason.OWN_ERROR, [5], [caught(5), stall(), perhaps(5), cascade(*others(5), start=60)], situation(watched={5: at(90)})),
    ("one prints an error that it has caught, lives on, and all others lose a peer", Reason.CAUGHT, [], [caught(5), stall(), cascade(*others(5), start=60)], situation(living=[5], watched={5: at(90)})),
    ("one prints an error that it has caught, lives on, and all others lose a peer in the next window", Reason.CAUGHT, [], [caught(5), stall(), cascade(*others(5), start=20, onset=28)], situation(watched={5: at(27)})),
    ("one prints an error that it has caught, and all others lose a peer at once", Reason.OWN_ERROR, [5], [caught(5), stall(), cascade(*others(5), start=20, onset=21)], situation(watched={5: at(27)})),
    ("one prints an error that it has caught, lives on without a word, and the job stands still for a minute", Reason.CAUGHT, [], [caught(3), stall(start=20), stall(start=80)], situation(living=[3], watched={3: at(80)})),
    ("one prints an error that it has caught, and one that it has not", Reason.OWN_ERROR, [5], [caught(5), error(5, 13), cascade(*others(5), start=60)], situation(watched={5: at(90)})),
    ("one prints an error that it has caught, and is seen no more", Reason.OWN_ERROR, [5], [caught(5), cascade(*others(5))], situation(watched={5: at(20)})),
    ("one prints an error once nothing comes any more, and waits by its dump as most do for another", Reason.SOURCES_DISAGREE, [], [error(4), stall(), anomaly("perhaps_waiting", [6], others(6), start=50, onset=9), cascade(*others(4), start=60)], situation()),
    ("nothing was observed", Reason.NOTHING_OBSERVED, [], [stall()], situation()),
    ("two never came and have no stack, so either may wait for the other", Reason.NOBODY_APART, [], [stall(), waiting("all_in_communication", 2, 5), anomaly("never_enqueued", [2, 5], others(2, 5), start=10, onset=9)], situation()),
    ("a laggard whose stack waits is none", Reason.NOBODY_APART, [], [stall(), anomaly("all_in_communication", [], others(), start=10, onset=9), behind(5)], situation()),
    ("stacks show one outside, then another that had waited", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), outside(2, start=20), outside(2, start=30), outside(2, start=40)], situation()),
    ("stacks show one outside, then another of which there was no stack", Reason.SOURCES_DISAGREE, [], [stall(), apart(5, unseen=[2]), outside(2, start=20)], situation()),
    ("stacks show one outside, then another, then the first again", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), outside(2, start=20), outside(5, start=30)], situation()),
    ("stacks show one outside, all waiting, then another outside", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), anomaly("all_in_communication", [], others(), start=20, onset=9), outside(2, start=30)], situation()),
    ("stacks show one outside, then another besides of which there was no stack", Reason.OUTSIDE_COMMUNICATION, [2, 5], [stall(), apart(5, unseen=[2]), apart(2, 5, start=20)], situation()),
    ("stacks show one outside, then perhaps, then again", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), anomaly("perhaps_outside", [], others(5), start=20, onset=9), outside(5, start=30)], situation()),
    ("stacks show one outside, then another, to which dumps point as well", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), outside(2, start=20), behind(2, start=20)], situation()),
    ("one prints an error and stands outside, then waits while another stands outside", Reason.SOURCES_DISAGREE, [], [error(5), stall(), outside(5), outside(2, start=20)], situation(living=[5])),
    ("several outside", Reason.NOBODY_APART, [], [stall(), anomaly("several_outside", [], [0, 1, 2, 3], start=10, onset=9)], situation()),
    ("one error of its own", Reason.OWN_ERROR, [6], [error(6), cascade(*others(6))], situation()),
    ("printed before its victims' words", Reason.OWN_ERROR, [6], [cascade(*others(6), onset=11), error(6, 12.5)], situation()),
    ("an error long after all others have lost a peer, whose traceback comes late", Reason.OWN_ERROR, [6], [cascade(*others(6), onset=11), error(6, 16)], situation()),
    ("an error long after others have lost a peer, and one is silent", Reason.ONLY_CASCADES, [], [cascade(*others(5, 6), onset=11), error(6, 16)], situation()),
    ("an error long after others have lost a peer, and after its own loss", Reason.SILENT_ONE, [], [cascade(*others(5), onset=11), error(6, 16)], situation()),
    ("an error as peers are lost, also by who printed it, and one is silent", Reason.LOST_AS_WELL, [], [error(6), cascade(*others(2), onset=12)], situation()),
    ("an error as peers are lost, also by who printed it, and the others say nothing", Reason.LOST_AS_WELL, [], [error(6), cascade(6, onset=12)], situation()),
    ("an error as peers are lost, also by who printed it, and the others live on", Reason.OWN_ERROR, [6], [error(6), cascade(*others(2), onset=12)], situation(living=[2])),
    ("an error as peers are lost, also by who printed it, and another lived in that window", Reason.LOST_AS_WELL, [], [error(6), cascade(*others(2), onset=12)], situation(now=20, living=[2])),
    ("an error as peers are lost, also by who printed it, and one's producer is silent", Reason.OWN_ERROR, [6], [error(6), cascade(*others(2), onset=12)], situation(unobserved=[2])),
    ("an error as peers are lost, also by who printed it, and one was told to end", Reason.OWN_ERROR, [6], [error(6), cascade(*others(2), onset=12), anomaly("told_to_end", [], [2], start=10, onset=15, subject="told")], situation()),
    ("an error before peers are lost, and since then it waits, and one is silent", Reason.LOST_AS_WELL, [], [error(6), stall(), waiting("all_in_communication", 2), cascade(*others(2), start=60)], situation()),
    ("an error as peers are lost, also by who printed it, and one was never heard of", Reason.LOST_AS_WELL, [], [error(6), cascade(*others(), onset=12)], situation(expected=9)),
    ("an error before peers are lost, later by who printed it as well, and one was never heard of", Reason.LOST_AS_WELL, [], [error(6), cascade(*others(), start=20)], situation(expected=9)),
    ("an error as peers are lost by all others, and one was never heard of", Reason.OWN_ERROR, [6], [error(6), cascade(*others(6), onset=12)], situation(expected=9)),
    ("an error, and another has shown no life since before", Reason.SILENT_BEFORE, [], [error(6), cascade(*others(2, 6), onset=14)], silent(2, until=8)),
    ("an error, and another has shown no life since before, but reports a loss", Reason.OWN_ERROR, [6], [error(6), cascade(*others(6), onset=14)], silent(2, until=8)),
    ("an error, and another has shown no life since after", Reason.OWN_ERROR, [6], [error(6), cascade(*others(2, 6), onset=14)], silent(2, until=13)),
    ("an error, and nobody has shown life since before", Reason.OWN_ERROR, [6], [error(6), cascade(0, onset=14)], silent(*others(6), until=8)),
    ("an error in the last moment that is known", Reason.PENDING_PEERS, [], [error(6, 19), cascade(0, onset=19)], situation(now=20)),
    ("nobody reacts for a window", Reason.OWN_ERROR, [6], [error(6)], situation(now=30)),
    ("training was done, and peers wait in vain since", Reason.ONLY_CASCADES, [], [cascade(*others(5, 6), start=60, onset=62, symptom="hang")], situation(iterated=at(30), finished=True)),
    ("peers waited in vain before training was done", Reason.SURVIVED, [], [cascade(*others(5, 6), start=60, onset=62, symptom="hang")], situation(iterated=at(61), finished=True)),
    ("it raised while the job stood still for another", Reason.FAILED_BESIDE, [6], [error(6)], situation(now=30, beside=True)),
    ("its node reports its GPU while the job stands still for another", Reason.PENDING_PEERS, [], [fault(6)], situation(now=90, beside=True)),
    ("it raised and lives on", Reason.PENDING_PEERS, [], [error(6)], situation(now=30, living=[6])),
    ("it raised and its node's producer is silent", Reason.PENDING_PEERS, [], [error(6)], situation(now=30, unobserved=[6])),
    ("a job of one rank", Reason.OWN_ERROR, [0], [error(0)], situation(now=20, ranks=1, expected=1)),
    ("one of many that nobody observes", Reason.NO_PEERS, [], [error(0)], situation(now=40, ranks=1, expected=8)),
    ("one, and nobody knows of how many", Reason.NO_PEERS, [], [error(0)], situation(now=40, ranks=1)),
    ("the first of two errors", Reason.OWN_ERROR, [6], [error(6, 12), error(1, 19, "b"), cascade(*others(6))], situation()),
    ("a memory error", Reason.OWN_ERROR, [4], [error(4, symptom="memory", area="memory"), cascade(*others(4))], situation()),
    ("one killed", Reason.OWN_DEATH, [4], [KILLED, cascade(*others(4))], situation()),
    ("one killed, the launcher ends the others", Reason.OWN_DEATH, [4], [KILLED, TOLD], situation()),
    ("a whole node", Reason.ONE_NODE, [4, 5], [anomaly("own_death", [4, 5], start=10), cascade(*others(4, 5))], situation()),
    ("all fail alike", Reason.ALL_ALIKE, [], [ALIKE], situation()),
    ("one killed, and another prints an error after it has lost a peer", Reason.OWN_DEATH, [4], [KILLED, error(0, 12.9, victims=[0]), cascade(*others(4), onset=12.5), TOLD], situation()),
    ("one killed, and another prints an error before it has lost a peer", Reason.SEVERAL_CANDIDATES, [], [KILLED, error(0, 12.9), cascade(*others(4), onset=12.5), TOLD], situation()),
    ("one of a node is killed, and another prints an error", Reason.SEVERAL_CANDIDATES, [], [KILLED, error(5, 12), cascade(*others(4, 5))], situation()),
    ("two of a node print different errors", Reason.SEVERAL_CANDIDATES, [], [error(4, 12), error(5, 12, "b"), cascade(*others(4, 5))], situation()),
    ("two of a node print the same error", Reason.ONE_NODE, [4, 5], [error(4, 12), error(5, 12), cascade(*others(4, 5))], situation()),
    ("two on different nodes at once", Reason.SEVERAL_CANDIDATES, [], [error(1, 12), error(6, 13, "b")], situation()),
    ("half of a node and another", Reason.SEVERAL_CANDIDATES, [], [error(1, 12), error(2, 12), error(3, 12)], situation()),
    ("iterations go on", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(19))),
    ("iterations come again from a checkpoint", Reason.OWN_ERROR, [6], [error(6, 12)], situation(iterated=at(19), falls=[fell(Fell.CHECKPOINT)])),
    ("iterations come again from a checkpoint, and peers had lost it", Reason.OWN_ERROR, [6], [error(6, 12), cascade(*others(6))], situation(iterated=at(19), falls=[fell(Fell.CHECKPOINT)])),
    ("iterations come again from their beginning, nothing else is known", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(19), falls=[fell(Fell.UNKNOWN)])),
    ("iterations come again from their beginning, and most have lost it", Reason.OWN_ERROR, [6], [error(6, 12), cascade(*others(6))], situation(iterated=at(19), falls=[fell(Fell.UNKNOWN)])),
    ("iterations come again from their beginning, who failed is known", Reason.OWN_ERROR, [6], [error(6, 12), cascade(*others(6))], situation(iterated=at(19), falls=[fell(Fell.UNKNOWN)], named=frozenset({6}))),
    ("iterations come again from their beginning, few have lost it", Reason.SURVIVED, [], [error(6, 12), cascade(1)], situation(iterated=at(19), falls=[fell(Fell.EPOCH)])),
    ("iterations go on, and come again from a checkpoint later", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(40), falls=[fell(Fell.CHECKPOINT, 30, 35)])),
    ("iterations have come again from a checkpoint, and go on", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(19), falls=[fell(Fell.CHECKPOINT, 3, 6)])),
    ("another process of a rank has ended before, and iterations go on", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(19), exited={6: at(4)}, falls=[fell(Fell.STARTED, 3, 6)])),
    ("an error that a rank survives before a hang", Reason.OUTSIDE_COMMUNICATION, [5], [error(2, 5, "b"), stall(), outside(5)], situation(iterated=at(9), exited={2: at(60)})),
    ("iterations go on, and much later all end", Reason.SURVIVED, [], [error(6, 12)], situation(iterated=at(19), exited={6: at(60)})),
    ("training ends well after an error", Reason.SURVIVED, [], [error(6, 12)], situation(finished=True)),
    ("an error of nobody known", Reason.UNPLACED, [], [unplaced()], situation()),
    ("an error of nobody known, and the loss of it", Reason.UNPLACED, [], [unplaced(), cascade(*others(6))], situation()),
    ("an error of a rank and another of nobody known", Reason.UNPLACED, [], [error(6), unplaced(13), cascade(*others(6))], situation()),
    ("an error of nobody known before that of a rank", Reason.UNPLACED, [], [unplaced(12), error(6, 19), cascade(*others(6))], situation()),
    ("an error of nobody known long after that of a rank", Reason.OWN_ERROR, [6], [error(6), cascade(*others(6)), unplaced(18)], situation()),
    ("an error of a rank that another file has as well", Reason.OWN_ERROR, [6], [error(6), unplaced(11, "a"), cascade(*others(6))], situation()),
    ("an error of a rank that others print as well, nobody knows who", Reason.UNPLACED, [], [error(6), anomaly("unplaced_besides", start=10, onset=11, templates=["a"]), cascade(*others(6))], situation()),
    ("an error of nobody known after a standstill", Reason.OUTSIDE_COMMUNICATION, [5], [stall(), outside(5), unplaced(35)], situation()),
    ("an error of nobody known before a standstill", Reason.UNPLACED, [], [unplaced(8), stall(), outside(5)], situation()),
    ("an error of nobody known, and iterations go on", Reason.SURVIVED, [], [unplaced()], situation(iterated=at(19))),
    ("a GPU is lost, then its peers", Reason.RANK_FAULT, [5], [fault(5), cascade(*others(5), onset=12)], situation()),
    ("a GPU is lost and two print errors", Reason.RANK_FAULT, [5], [fault(5), error(5, 11), error(2, 11, "b"), cascade(*others(5), onset=12)], situation()),
    ("a GPU is lost at about that time, and another prints an error", Reason.SEVERAL_CANDIDATES, [], [fault(5, precision_ns=60 * 10**9), error(2, 11, "b"), cascade(*others(2, 5), onset=12)], situation()),
    ("two GPUs of two nodes are lost", Reason.SEVERAL_CANDIDATES, [], [fault(5), fault(2), cascade(0, 1, onset=12)], situation()),
    ("a GPU is lost after its peers were", Reason.ONLY_CASCADES, [], [cascade(*others(5, 6), onset=11), fault(5, 14)], situation()),
    ("a program faults first", Reason.RANK_FAULT, [5], [fault(5, area="code"), cascade(*others(5), onset=12)], situation()),
    ("memory runs out, then the process is gone", Reason.RANK_FAULT, [4], [fault(4, area="memory", symptom="memory"), KILLED, cascade(*others(4), onset=12)], situation()),
    ("a GPU is lost and iterations go on", Reason.SURVIVED, [], [fault(5)], situation(iterated=at(19))),
    ("a GPU is lost and all that is printed goes on", Reason.SURVIVED, [], [fault(5)], printing(95)),
    ("a GPU is lost and some lines still come", Reason.PENDING_PEERS, [], [fault(5)], printing(35, now=40)),
    ("a GPU is lost, its rank falls silent and others print on", Reason.RANK_FAULT, [5], [fault(5)], printing(95, now=120, spoke={5: Rhythm(at(9), 10**10, 10**10)})),
    ("a GPU is lost and nobody prints any more", Reason.RANK_FAULT, [5], [fault(5)], printing(9)),
    ("a GPU is lost and iterations are not yet late", Reason.PENDING_PEERS, [], [fault(5)], situation(now=12, iterated=at(9.9))),
    ("a GPU is lost, nobody minds, and much later another rank fails", Reason.OWN_ERROR, [2], [fault(5), error(2, 92), cascade(*others(2), start=90)], printing(95, now=120)),
    ("a GPU is lost, nobody minds, and much later a peer is lost", Reason.ONLY_CASCADES, [], [fault(5), cascade(*others(2, 3), start=90)], printing(95, now=120)),
    ("a GPU is lost, and its rank loses a peer that fails", Reason.SEVERAL_CANDIDATES, [], [fault(5), error(2, 19, "b"), cascade(*others(2), start=20)], situation()),
    ("a GPU is lost, and its rank prints on after another has failed", Reason.SEVERAL_CANDIDATES, [], [fault(5), error(2, 19, "b"), cascade(*others(2, 5), start=20)], situation(spoke={5: Rhythm(at(25))})),
    ("a GPU is lost, and its rank is silent when another fails", Reason.RANK_FAULT, [5], [fault(5), error(2, 19, "b"), cascade(*others(2, 5), start=20)], situation(spoke={5: Rhythm(at(9))})),
    ("memory runs out on one, and others print on", Reason.RANK_FAULT, [4], [fault(4, area="memory", symptom="memory")], printing(35, now=40, spoke={})),
    ("a GPU is lost, its rank falls silent while others print", Reason.RANK_FAULT, [5], [fault(5)], printing(35, now=40, spoke={5: Rhythm(at(9), 10**10, 10**10)})),
    ("a GPU is lost, its rank never printed, others print on", Reason.PENDING_PEERS, [], [fault(5)], printing(35, now=40, spoke={})),
    ("a GPU is lost, its rank speaks on and loses a peer, and one is silent", Reason.SILENT_ONE, [], [fault(5), cascade(*others(2), start=20)], situation(repeated={5: at(15)})),
    ("an error that is caught, then a peer is lost, and one is silent", Reason.SILENT_ONE, [], [error(5, 9), cascade(*others(2), start=20)], situation(repeated={5: at(15)})),
    ("a GPU is lost, its rank is not heard as before, and all lose a peer", Reason.RANK_FAULT, [5], [fault(5), cascade(*others(), start=20)], situation(repeated={5: at(9)})),
    ("an error, and the clean-up after it, and one is silent", Reason.OWN_ERROR, [5], [error(5, 9), cascade(*others(2), start=20)], situation(repeated={5: at(8)})),
    ("an error that is caught, then memory runs out on another", Reason.SEVERAL_CANDIDATES, [], [error(5, 9), fault(2, 20, area="memory"), cascade(*others(2), start=20)], situation(repeated={5: at(15)})),
    ("an error that is caught, then another dies", Reason.SEVERAL_CANDIDATES, [], [error(5, 9), anomaly("own_death", [2], start=20, onset=20), cascade(*others(2), start=20)], situation(repeated={5: at(15)})),
    ("a GPU is lost, its rank speaks on, and all lose a peer", Reason.ONLY_CASCADES, [], [fault(5), cascade(*others(), start=20)], situation(repeated={5: at(15)})),
    ("a GPU is lost, a peer loses it, and then its rank prints its error", Reason.RANK_FAULT, [5], [fault(5), cascade(0, onset=10.5), error(5, 14), cascade(5, start=20)], situation()),
    ("a GPU is lost, its rank fails, then another", Reason.RANK_FAULT, [5], [fault(5), error(5, 13), error(2, 19, "b"), cascade(*others(2), start=20)], situation(spoke={5: Rhythm(at(25))})),
    ("of two GPUs one is lost first for certain", Reason.RANK_FAULT, [5], [sampled(5, 9, 60), sampled(2, 29, 10), cascade(0, start=30)], situation()),
    ("of two GPUs either may be the first", Reason.SEVERAL_CANDIDATES, [], [sampled(5, 59, 60), sampled(2, 29, 10), cascade(0, start=60)], situation()),
    ("a GPU is lost in the last sample before an error that came after", Reason.SEVERAL_CANDIDATES, [], [sampled(5, 29, 60), error(2, 25, "b"), cascade(*others(2, 5), start=30)], situation()),
    ("an exporter may lag behind an error", Reason.SEVERAL_CANDIDATES, [], [sampled(5, 29, 10), error(2, 12, "b"), cascade(*others(2, 5), start=30)], situation()),
    ("a GPU is lost long after an error", Reason.OWN_ERROR, [2], [sampled(5, 69, 10), error(2, 12, "b"), cascade(*others(2, 5), start=20)], situation()),
    ("a GPU is lost, then the job stands still", Reason.RANK_FAULT, [5], [fault(5, 8), stall()], situation()),
    ("a GPU is lost before or after a standstill in which another stands apart", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), fault(2, 40, precision_ns=60 * 10**9)], situation()),
    ("a GPU is lost before or after a standstill in which its rank stands apart", Reason.RANK_FAULT, [5], [stall(), outside(5), fault(5, 40, precision_ns=60 * 10**9)], situation()),
    ("an error before or after a standstill in which another stands apart", Reason.SOURCES_DISAGREE, [], [stall(), outside(5), error(2, 30, precision_ns=20 * 10**9)], situation()),
    ("a GPU is lost, its rank prints on for minutes, and another is lost", Reason.SEVERAL_CANDIDATES, [], [fault(5), fault(2, 300), cascade(*others(2, 5), start=310)], situation(now=400, spoke={5: Rhythm(at(299))}, repeated={5: at(299)})),
    ("a port has gone down, and iterations go on", Reason.SURVIVED, [], [port_down()], situation(iterated=at(60))),
    ("a node reports a fault, then peers are lost", Reason.NODE_FAULT, [], [fault(None), cascade(*others(), onset=12)], situation()),
    ("a node reports a fault, and watchdogs the loss of peers ten minutes later", Reason.NODE_FAULT, [], [fault(None), cascade(*others(), start=620)], situation(now=700)),
    ("a node reports a fault, and much later peers are lost", Reason.ONLY_CASCADES, [], [fault(None), cascade(*others(), start=900)], situation(now=1000)),
    ("a node reports a fault, then the job stands still", Reason.NODE_FAULT, [], [fault(None, 8), stall()], situation()),
    ("a node reports a fault, and a stack tells", Reason.OUTSIDE_COMMUNICATION, [5], [fault(None, 8), stall(), outside(5)], situation()),
    ("a node reports a fault, and a rank its error", Reason.OWN_ERROR, [6], [fault(None), error(6), cascade(*others(6))], situation()),
    ("a node reports a fault after peers were lost", Reason.ONLY_CASCADES, [], [cascade(*others(), onset=11), fault(None, 19)], situation()),
    ("a node reports a fault, nobody knows when", Reason.ONLY_CASCADES, [], [cascade(*others(), onset=12), fault(None, severity="info")], situation()),
    ("a node reports a fault and nothing else is seen", Reason.NODE_FAULT, [], [fault(None)], situation()),
    ("a node reports a fault and iterations go on", Reason.SURVIVED, [], [fault(None)], situation(iterated=at(19))),
    ("the window has only just closed", Reason.PENDING_PEERS, [], [error(6)], situation(now=20)),
    ("exit codes are all that is known", Reason.EXIT_CODE, [], [coded()], situation()),
    ("an exit code, and others were told to end", Reason.EXIT_CODE, [], [coded(), TOLD], situation()),
    ("exit codes, and nothing comes any more", Reason.EXIT_CODE, [], [coded(), stall()], situation()),
    ("exit codes of a job that trained and that begins anew at once", Reason.EXIT_CODE, [], [coded()], situation(iterated=at(9), superseded=at(30))),
    ("exit codes of a job that has not trained and begins anew at once", Reason.EXIT_CODE, [], [coded()], situation(superseded=at(30))),
    ("exit codes of a job that begins anew much later", Reason.EXIT_CODE, [], [coded()], situation(now=900, iterated=at(9), superseded=at(600))),
    ("exit codes, and iterations go on", Reason.SURVIVED, [], [coded()], situation(iterated=at(60))),
    ("exit codes end a job that long stood still", Reason.NOTHING_OBSERVED, [], [stall(), coded(500)], situation(now=600)),
    ("exit codes, and a stack tells", Reason.OUTSIDE_COMMUNICATION, [5], [coded(), stall(), outside(5)], situation()),
    ("exit codes, and then an error is seen", Reason.OWN_ERROR, [6], [coded(), error(6, 13), cascade(*others(6))], situation()),
    ("exit codes, and one dies", Reason.OWN_DEATH, [5], [coded(), anomaly("own_death", [5], start=10, onset=13), TOLD], situation()),
    ("exit codes, and peers are lost", Reason.ONLY_CASCADES, [], [coded(), cascade(*others())], situation()),
    ("a node reports a fault, then exit codes", Reason.NODE_FAULT, [], [fault(None), coded()], situation()),
    ("only cascades", Reason.ONLY_CASCADES, [], [cascade(*others())], situation()),
    ("cascades, and iterations go on", Reason.SURVIVED, [], [cascade(*others(3))], situation(iterated=at(19))),
    ("an error after its own loss, in a window before", Reason.ONLY_CASCADES, [], [cascade(2, onset=11), error(2, 25)], situation()),
    ("two are silent", Reason.ONLY_CASCADES, [], [cascade(*others(3, 4))], situation()),
    ("one is silent, but not for long", Reason.ONLY_CASCADES, [], [cascade(*others(3))], situation(now=20)),
    ("one is silent, and its node's producer", Reason.ONLY_CASCADES, [], [cascade(*others(3))], situation(unobserved=[3])),
    ("one is silent", Reason.SILENT_ONE, [], [cascade(*others(3))], situation()),
    ("one is gone", Reason.VANISHED, [3], [anomaly("vanished", [3], start=10, subject="missing"), cascade(*others(3))], situation()),
    ("one has become slow", Reason.SLOW_AND_CHANGED, [3], [slow("slow_and_changed", 3)], situation(knows_layout=False)),
    ("one was slow and drifted", Reason.SLOW_AND_CHANGED, [3], [slow("slow_against_peers", 3), anomaly("own_shift", [3], start=10)], situation(knows_layout=False)),
    ("one was always slow", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_against_peers", 3)], situation()),
    ("one was always slow, stages unknown", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3)], situation(knows_layout=False)),
    ("another drifted", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3), anomaly("own_shift", [2], start=10)], situation(knows_layout=False)),
    ("another timer of it drifted", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3, metric="compute"), anomaly("own_shift", [3], start=10, metric="data_load")], situation(knows_layout=False)),
    ("some timer of it drifted", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3, metric="compute"), anomaly("own_shift", [3], start=10)], situation(knows_layout=False)),
    ("its timer drifted, another timer of all did", Reason.SLOW_AND_CHANGED, [3], [slow("slow_against_peers", 3, metric="compute"), anomaly("own_shift", [3], start=10, metric="compute"), anomaly("shared_shift", start=20, metric="data_load")], situation(knows_layout=False)),
    ("its timer drifted long after it was slow", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3, start=90, onset=10, metric="compute"), anomaly("own_shift", [3], start=90, metric="compute")], situation(knows_layout=False)),
    ("all drifted", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_against_peers", 3), anomaly("shared_shift", [], start=10)], situation(knows_layout=False)),
    ("one waits no more", Reason.BUSY_AND_CHANGED, [3], [slow("busy_changed_and_cpu", 3)], situation(knows_layout=False)),
    ("one waits no more by stacks alone", Reason.BUSY_AND_CHANGED, [3], [slow("busy_and_changed", 3)], situation()),
    ("one waits no more, stages unknown", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("busy_and_changed", 3)], situation(knows_layout=False)),
    ("one never waits and is busy", Reason.BUSY, [3], [slow("busy_and_cpu", 3)], situation()),
    ("one never waits", Reason.BUSY_ALONE, [], [slow("busy_alone", 3)], situation()),
    ("samples alone contradict nobody", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_against_peers", 3), slow("busy_alone", 5, severity="info")], situation()),
    ("samples and timers name others", Reason.SOURCES_DISAGREE, [], [slow("slow_against_peers", 3), slow("busy_and_cpu", 5)], situation()),
    ("rank 0 was always slow", Reason.SLOW_FIRST_RANK, [], [slow("slow_first_rank", 0)], situation()),
    ("rank 0 was always slow, another is now", Reason.SLOW_AND_CHANGED, [3], [slow("slow_first_rank", 0), slow("slow_and_changed", 3)], situation()),
    ("a node was always slow", Reason.SLOW_NODE, [], [slow("slow_node", 4, 5)], situation()),
    ("it may hold experts", Reason.SLOW_EXPERTS, [], [slow("slow_experts", 3)], situation()),
    ("it may hold experts, and is slow without them as well", Reason.SLOW_AND_CHANGED, [3], [slow("slow_experts", 3), slow("slow_and_changed", 3)], situation()),
    ("nobody times waiting for it", Reason.SLOW_UNWITNESSED, [], [slow("slow_unwitnessed", 3)], situation(knows_layout=False)),
    ("the stages beside it are unseen", Reason.SLOW_UNSEEN, [], [slow("slow_unseen", 3)], situation()),
    ("one is slow and waits", Reason.SLOW_BUT_WAITS, [], [slow("slow_but_waits")], situation()),
    ("one is slow and waits, another does not", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_but_waits"), slow("slow_against_peers", 3)], situation()),
    ("several have become slow, stages unknown", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_and_changed", 2, 3)], situation(knows_layout=False)),
    ("others may have become slow with it", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_perhaps_with_others", 3), anomaly("own_shift", [3], start=10)], situation(knows_layout=False)),
    ("others may have become slow with it, of its stage", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_perhaps_with_others", 3)], situation()),
    ("a node has become slow", Reason.SLOW_PLACE, [2, 3], [slow("slow_place", 2, 3)], situation()),
    ("a node has become slow, stages unknown", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_place", 2, 3)], situation(knows_layout=False)),
    ("one is slow, another's steps are not accounted for", Reason.SLOW_OR_WAITS, [], [slow("slow_or_waits", 3)], situation()),
    ("one or its group is slow", Reason.SLOW_WITHIN_GROUP, [], [slow("slow_within_group", 2, 3)], situation()),
    ("a stage is slow", Reason.SLOW_STAGE, [], [slow("slow_stage", 2, 3)], situation()),
    ("a replica is slow", Reason.SLOW_REPLICA, [], [slow("slow_replica", 2, 3)], situation()),
    ("the slow one moves", Reason.ROTATING, [], [slow("rotating"), slow("slow_and_changed", 3)], situation()),
    ("it has moved since", Reason.ROTATING, [], [slow("slow_and_changed", 3), slow("rotating", start=20)], situation()),
    ("slow loading moves, one computes slowly", Reason.SLOW_AND_CHANGED, [3], [anomaly("rotating", [], others(2), start=10, metric="data_load"), slow("slow_and_changed", 3, metric="compute")], situation()),
    ("slow loading has moved to the one that computes slowly", Reason.ROTATING, [], [anomaly("rotating", [], others(3), start=10, metric="data_load"), slow("slow_and_changed", 3, metric="compute")], situation()),
    ("many load slowly, one computes slowly", Reason.MANY_SLOW, [], [slow("many_slow", metric="data_load"), slow("slow_and_changed", 3, metric="compute")], situation()),
    ("the job is slow as such", Reason.JOB_SLOWER, [], [anomaly("shared_shift", [], start=10)], situation()),
    ("healthy jobs alike are faster", Reason.SLOWER_THAN_ALIKE, [], [anomaly("slower_than_like"), anomaly("slower_than_alike", start=10)], situation()),
    ("healthy jobs of other settings are faster", Reason.SLOWER_THAN_LIKE, [], [anomaly("slower_than_alike"), anomaly("slower_than_like", start=10)], situation()),
    ("healthy jobs are faster, and one is slow", Reason.SLOW_AND_CHANGED, [3], [anomaly("slower_than_alike"), slow("slow_and_changed", 3, start=10), anomaly("slower_than_alike", start=20)], situation()),
    ("healthy jobs are faster, and the job was too", Reason.JOB_SLOWER, [], [anomaly("slower_than_alike"), anomaly("job_shift", start=10)], situation()),
    ("healthy jobs are faster, and something is said besides", Reason.SLOWER_THAN_ALIKE, [], [anomaly("own_shift", [3]), anomaly("slower_than_alike", start=10)], situation()),
    ("a port has become slower", Reason.PORT_SLOWER, [], [slower_port(), anomaly("own_shift", [3])], situation()),
    ("a port has become slower, then the job", Reason.JOB_SLOWER, [], [slower_port(), anomaly("job_shift", start=20)], situation()),
    ("a port has become slower beside a slow rank", Reason.SLOW_AND_CHANGED, [3], [slow("slow_and_changed", 3), slower_port()], situation()),
    ("too many are slow", Reason.MANY_SLOW, [], [slow("many_slow")], situation()),
    ("a function of one is slow", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_function", 3)], situation()),
    ("a function of one is slow, stages unknown", Reason.SLOW_UNKNOWN_LAYOUT, [], [slow("slow_function", 3)], situation(knows_layout=False)),
    ("functions of all stages of a replica are slow", Reason.SLOW_REPLICA, [], [slow("slow_functions_of_replica")], situation()),
    ("a function of rank 0 was always slow", Reason.SLOW_FIRST_RANK, [], [slow("slow_function_by_design")], situation()),
    ("one is slow that executes other things", Reason.SLOW_OTHER_WORK, [], [slow("slow_function_of_other_work")], situation()),
    ("a function of one is slow, its other stages unseen", Reason.SLOW_UNSEEN, [], [slow("slow_function_unseen")], situation()),
    ("a function of one has become slow", Reason.SLOW_AND_CHANGED, [3], [slow("slow_function_and_changed", 3)], situation(knows_layout=False)),
    ("a function of one has become slow, and timers of all see nobody", Reason.FUNCTION_NOT_TIMED, [], [slow("slow_function_and_changed", 3)], situation(timed=True)),
    ("a function is slow on many", Reason.MANY_SLOW, [], [slow("slow_function", 3), slow("many_slow_functions", start=20)], situation()),
    ("a function is slow beside few", Reason.FUNCTION_APART, [], [slow("function_apart")], situation()),
    ("a function is slow beside few, and has become so", Reason.FUNCTION_APART, [], [slow("function_apart"), slow("function_shift", start=20)], situation()),
    ("a function has become slow", Reason.FUNCTION_SHIFT, [], [slow("function_shift")], situation()),
    ("first one, then many are slow", Reason.MANY_SLOW, [], [slow("slow_against_peers", 3), slow("many_slow", start=20)], situation()),
    ("a timer of one has shifted, by too little", Reason.LITTLE_APART, [], [anomaly("own_shift", [3]), anomaly("job_shift", start=10)], situation()),
    ("all work is longer alike", Reason.OTHER_INPUTS, [], [anomaly("job_shift"), anomaly("job_shift", start=10, area="workload")], situation()),
    ("all work was longer alike", Reason.JOB_SLOWER, [], [anomaly("job_shift", area="workload"), anomaly("job_shift", start=10)], situation()),
    ("one holds a slower job up", Reason.SLOW_KNOWN_LAYOUT, [3], [anomaly("job_shift"), slow("slow_against_peers", 3), anomaly("job_shift", start=20)], situation()),
    ("played steps tell one", Reason.WHAT_IF_WORKERS, [3], [slow("what_if_workers", 3)], situation(knows_layout=False)),
    ("played steps tell one of several that wait for each other", Reason.WHAT_IF_WORKERS, [], [slow("what_if_workers")], situation()),
    ("played steps tell one, and nothing tells what its own time went to", Reason.WHAT_IF_WORKERS, [3], [anomaly("what_if_workers", [3])], situation()),
    ("played steps and timers agree", Reason.WHAT_IF_WORKERS, [3], [slow("slow_against_peers", 3), slow("what_if_workers", 3)], situation()),
    ("played steps and timers disagree", Reason.SOURCES_DISAGREE, [], [slow("slow_against_peers", 2), slow("what_if_workers", 3)], situation()),
    ("played steps tell what timers had named somebody for", Reason.WHAT_IF_LENGTHS, [], [slow("slow_against_peers", 2), slow("what_if_lengths")], situation()),
    ("timers name somebody after steps were traced", Reason.SLOW_KNOWN_LAYOUT, [2], [slow("what_if_lengths"), slow("slow_against_peers", 2, start=20)], situation()),
    ("timers keep naming whom played steps did not find", Reason.WHAT_IF_LENGTHS, [], [slow("slow_against_peers", 2), slow("what_if_lengths"), slow("slow_against_peers", 2, start=20)], situation()),
    ("played steps and profiles agree", Reason.WHAT_IF_WORKERS, [3], [slow("slow_function", 3), slow("what_if_workers", 3)], situation()),
    ("played steps and profiles disagree", Reason.SOURCES_DISAGREE, [], [slow("slow_function", 2), slow("what_if_workers", 3)], situation()),
    ("played steps tell one, profiles many", Reason.SOURCES_DISAGREE, [], [slow("many_slow_functions"), slow("what_if_workers", 3)], situation()),
    ("played steps tell one that executes other things", Reason.SLOW_OTHER_WORK, [], [slow("slow_function_of_other_work"), slow("what_if_workers", 3)], situation()),
    ("played steps tell rank 0, which logs", Reason.SLOW_FIRST_RANK, [], [slow("slow_function_by_design"), slow("what_if_by_place", 0)], situation()),
    ("played steps alone tell rank 0", Reason.SLOW_FIRST_RANK, [], [slow("what_if_by_place", 0)], situation()),
    ("kernels of rank 0 take longer in played steps", Reason.WHAT_IF_WORKERS, [0], [slow("slow_kernel_by_place"), slow("what_if_by_place", 0)], situation()),
    ("kernels of rank 0 take longer, and played steps tell another", Reason.SOURCES_DISAGREE, [], [slow("slow_kernel_by_place"), slow("what_if_workers", 3)], situation()),
    ("a function is slow, but too few steps for chance", Reason.WHAT_IF_SEVERAL, [], [slow("slow_function", 3), slow("what_if_several", severity="info")], situation()),
    ("kernels of rank 0 alone take longer", Reason.SLOW_FIRST_RANK, [], [slow("slow_kernel_by_place")], situation()),
    ("a function apart names nobody else", Reason.WHAT_IF_WORKERS, [3], [slow("function_apart"), slow("what_if_workers", 3)], situation()),
    ("played steps as information decide nothing", Reason.SLOW_KNOWN_LAYOUT, [3], [slow("slow_function", 3), slow("what_if_variation", severity="info")], situation()),
    ("of two traces the later one counts", Reason.WHAT_IF_STAGES, [], [slow("what_if_workers", 3), slow("what_if_stages", start=20)], situation()),
    ("samples that name nobody do not unseat played steps", Reason.WHAT_IF_WORKERS, [3], [slow("what_if_workers", 3), slow("busy_alone", 0, start=20, severity="info")], situation()),
    ("rank 0, slow by design, does not unseat played steps", Reason.WHAT_IF_WORKERS, [3], [slow("what_if_workers", 3), slow("slow_first_rank", 0, start=20)], situation()),
    ("of two profiles the later one counts, whichever opened it", Reason.MANY_SLOW, [], [slow("many_slow_functions", start=20), slow("slow_function", 3, severity="info")], situation()),
    ("steps are held up by one, by too little", Reason.LITTLE_APART, [], [anomaly("job_shift", start=10)], situation(leading=True)),
    ("steps are held up by one, where it may wait", Reason.LED_WITHIN, [], [anomaly("job_shift", start=10)], situation(leading=True, led_within=True)),
    ("steps are held up by one, where it may wait, and its own work has shifted by too little", Reason.LITTLE_APART, [], [anomaly("own_shift", [3]), anomaly("job_shift", start=10)], situation(leading=True, led_within=True)),
    ("a straggler that is over while the job stays slower", Reason.NO_LONGER_APART, [], [slow("slow_and_changed", 3), *(anomaly("job_shift", start=start) for start in range(10, 100, 10))], situation()),
    ("a straggler that is over while the job has never come back", Reason.NO_LONGER_APART, [], [slow("slow_and_changed", 3), *SLOWER], situation(told={3: at(100)})),
    ("a straggler that has stopped to tell its timers", Reason.SLOW_AND_CHANGED, [3], [slow("slow_and_changed", 3), *SLOWER], situation(told={3: at(20)})),
    ("one of two stragglers has stopped to tell its timers", Reason.NO_LONGER_APART, [], [slow("slow_and_changed", 3, 5), *SLOWER], situation(told={3: at(20), 5: at(100)})),
    ("a straggler that told nothing more, and the job came back", Reason.NO_LONGER_APART, [], [slow("slow_and_changed", 3), anomaly("job_shift", start=200)], situation(told={3: at(20)})),
    ("another straggler long after", Reason.SLOW_AND_CHANGED, [5], [slow("slow_and_changed", 3), *(anomaly("job_shift", start=start) for start in range(10, 200, 10)), slow("slow_and_changed", 5, start=200)], situation()),
    ("played steps of long ago", Reason.NO_LONGER_APART, [], [slow("what_if_workers", 3), anomaly("job_shift", start=500)], situation()),
    ("played steps of long ago, and the job never came back", Reason.WHAT_IF_WORKERS, [3], [slow("what_if_workers", 3), *SLOWER], situation()),
    ("played steps of long ago, and timers of all see nobody since", Reason.NO_LONGER_APART, [], [slow("what_if_workers", 3), *SLOWER], situation(timed=True)),
    ("a profile of long ago", Reason.NO_LONGER_APART, [], [slow("slow_function_and_changed", 3), anomaly("job_shift", start=500)], situation()),
    ("a profile of long ago, and the job never came back", Reason.SLOW_AND_CHANGED, [3], [slow("slow_function_and_changed", 3), *SLOWER], situation()),
    ("a profile of not so long ago", Reason.SLOW_AND_CHANGED, [3], [slow("slow_function_and_changed", 3), anomaly("job_shift", start=200)], situation()),
    ("one replica", Reason.WHAT_IF_ONE_REPLICA, [], [slow("what_if_one_replica")], situation()),
    ("a whole replica takes longer", Reason.SLOW_REPLICA, [], [slow("what_if_replica")], situation()),
    ("work varies", Reason.WHAT_IF_VARIATION, [], [slow("what_if_variation")], situation()),
    ("replicas were not traced", Reason.WHAT_IF_UNSEEN, [], [slow("what_if_unseen")], situation()),
    ("communication is slow", Reason.WHAT_IF_COMMUNICATION, [], [slow("what_if_communication")], situation()),
    ("time between operations decides nothing", Reason.SLOW_KNOWN_LAYOUT, [2], [slow("slow_against_peers", 2), slow("what_if_between")], situation()),
    ("several causes", Reason.WHAT_IF_SEVERAL, [], [slow("what_if_several")], situation()),
    ("steps that cannot be played decide nothing", Reason.SLOW_KNOWN_LAYOUT, [2], [slow("slow_against_peers", 2), slow("not_played", severity="info")], situation()),
    ("its own loss", Reason.OWN_SERIES, [5], [anomaly("own_series", [5])], situation()),
    ("its own loss alone", Reason.OWN_ALONE, [5], [anomaly("own_series", [5]), anomaly("alone", [5], start=10)], situation()),
    ("some ranks' loss", Reason.OTHERS_GO_ON, [], [anomaly("one_report"), anomaly("part", start=10)], situation()),
    ("some ranks' loss, then everybody's", Reason.AFTER_REDUCTION, [], [anomaly("alone", [5]), anomaly("after_reduction", start=10)], situation()),
    ("its own loss, and a step skipped later", Reason.OWN_SERIES, [5], [anomaly("own_series", [5]), anomaly("overflow", start=10)], situation()),
    ("its own loss, which is no number later", Reason.OWN_SERIES, [5], [anomaly("stays_up"), anomaly("own_series", [5], start=10), anomaly("stays_up", start=20)], situation()),
    ("its own loss stays up", Reason.OWN_SERIES, [5], [anomaly("stays_up", [5]), anomaly("steps_skipped", start=10), anomaly("spike", start=20)], situation()),
    ("its own loss stays up, then everybody's is no number", Reason.AFTER_REDUCTION, [], [anomaly("stays_up", [5]), anomaly("after_reduction", start=10)], situation()),
    ("steps are skipped", Reason.TRAINING_AS_SUCH, [], [anomaly("steps_skipped"), anomaly("spike", [5], start=10)], situation()),
    ("the loss scale is gone", Reason.TRAINING_AS_SUCH, [], [anomaly("scale_collapsed")], situation()),
    ("one report", Reason.ONE_REPORT, [], [anomaly("one_report"), anomaly("finite_again", [5], start=10)], situation()),
    ("one report and more", Reason.AFTER_REDUCTION, [], [anomaly("one_report"), anomaly("after_reduction", start=10)], situation()),
    ("it went back", Reason.TRAINING_AS_SUCH, [], [anomaly("one_report"), anomaly("went_back", start=10)], situation()),
    ("everybody's loss", Reason.AFTER_REDUCTION, [], [anomaly("after_reduction")], situation()),
]  # fmt: skip
