"""Where an incident is: each kind of scope, what is listed with it, and that no smaller place covers the suspects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from detection_support import FIXED, JOB, T0, at, closed, identity, summary
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import ranks_of
from schemas.results import Area, Scope, Suspect, Symptom
from streams.groups import groups_of, stages_of
from streams.incidents.decision import Decision, Reason
from streams.incidents.next_step import next_step
from streams.incidents.scope import MOST_LISTED, is_port, said_more, said_place, scope_of
from streams.member import Member
from streams.view import AttemptView

SWITCHES = {"node00": "s0.leaf0", "node01": "s0.leaf0", "node02": "s0.leaf1", "node03": "s0.leaf1"}
GRID = {"pp": 2, "dp": 2, "tp": 2}
"""Eight ranks: tensor-parallel pairs, two replicas of them a stage, two stages."""


def coordinates(rank: int) -> dict[str, Any]:
    return {"tp": rank % 2, "dp": rank // 2 % 2, "pp": rank // 4}


def a_view(
    ranks: int = 8,
    per_node: int = 2,
    *,
    grid: bool = True,
    switches: dict[str, str] | None = None,
    changed: dict[int, dict[str, Any]] | None = None,
    **fields: Any,
) -> AttemptView:
    members = {}
    for rank in range(ranks):
        at_ = coordinates(rank) if grid else {}
        who = identity(rank, per_node, **({"coordinates": at_} | fields | (changed or {}).get(rank, {})))
        members[rank] = Member(identity=who, first_seen=T0, last_life=T0)
    return AttemptView(job=JOB, attempt="0", first=T0, members=members, switches=switches or {})


def decided(
    view: AttemptView,
    ranks: Sequence[int] = (),
    *,
    places: Sequence[tuple[str, str]] = (),
    area: Area = "compute",
    symptom: Symptom = "slowdown",
    reason: Reason = Reason.SLOW_AND_CHANGED,
    why: str = "it is slow",
    **fields: Any,
) -> Decision:
    return Decision(
        symptom=symptom,
        area=area,
        verdict="supported",
        reason=reason,
        onset=at(0),
        iteration=None,
        suspects=[view.suspect(rank, 0.9, why) for rank in ranks],
        victims=[],
        places=[Suspect(rank=None, node=node, device=device or None, score=0.5, why=why) for node, device in places],
        **fields,
    )


WIDE = {"per_node": 4}
LIST = {rank: {"coordinates": {"tp": 0, "dp": rank % 2, "pp": [rank // 4, rank // 4 + 2]}} for rank in range(8)}
OVERLAP = {rank: {"coordinates": {"dp": rank % 2, "pp": [rank // 2, rank // 2 + 1]}} for rank in range(8)}


@pytest.mark.parametrize(
    ("made", "ranks", "area", "kind", "name"),
    [
        ({}, [5], "compute", "rank", "rank 5"),
        ({}, [4, 5], "compute", "node", "node02"),
        (WIDE, [4, 5], "compute", "group", "tensor-parallel group of ranks 4-5"),
        (WIDE, [4, 6], "compute", "stage", "pipeline stage 1"),
        (WIDE, [4, 5, 6], "compute", "stage", "pipeline stage 1"),
        (WIDE, [2, 3, 6, 7], "compute", "group", "data-parallel replica 1"),
        (WIDE, [3, 4], "compute", "group", "ranks 3-4"),
        ({"grid": False}, [4, 6], "compute", "group", "ranks 4,6"),
        ({"changed": LIST, "per_node": 8}, [4, 5, 6, 7], "compute", "stage", "pipeline stages 1,3"),
        ({"changed": OVERLAP, "per_node": 8}, [0, 2], "compute", "stage", "pipeline stage 1"),
        ({"switches": SWITCHES, "grid": False}, [4, 5, 6, 7], "compute", "switch", "s0.leaf1"),
        ({"switches": SWITCHES}, [4, 5, 6, 7], "compute", "stage", "pipeline stage 1"),
        ({"switches": SWITCHES}, [4, 5, 6, 7], "network", "switch", "s0.leaf1"),
        ({"switches": SWITCHES}, [4, 6], "network", "stage", "pipeline stage 1"),
        ({"switches": SWITCHES, "grid": False}, [2, 3, 4, 5], "network", "group", "ranks 2-5"),
        ({"switches": SWITCHES | {"node00": ""}, "grid": False}, [4, 5, 6, 7], "network", "group", "ranks 4-7"),
        ({"grid": False}, list(range(8)), "code", "job", JOB),
        ({"grid": False, "group": "actor"}, list(range(8)), "code", "group", "worker group actor"),
        ({}, [], "compute", "job", JOB),
    ],
)
def test_each_kind_of_scope(made: dict[str, Any], ranks: list[int], area: Area, kind: str, name: str) -> None:
    view = a_view(**made)
    scope = scope_of(view, decided(view, ranks, area=area))
    assert (scope.kind, scope.name) == (kind, name)
    assert ranks_of(scope.ranks, 100) == ranks


@pytest.mark.parametrize(
    ("places", "area", "kind", "name", "ranks"),
    [
        ([("node01", "0000:9b:00.0")], "hardware", "device", "device 0000:9b:00.0", ""),
        ([("node01", "mlx5_2:1")], "hardware", "nic", "port mlx5_2:1", ""),
        ([("node01", "0000:01:00.0")], "network", "nic", "port 0000:01:00.0", ""),
        ([("node01", "")], "hardware", "node", "node01", "2-3"),
        ([("node01", "a"), ("node01", "b")], "hardware", "node", "node01", "2-3"),
        ([("node02", "mlx5_0:1"), ("node03", "mlx5_0:1")], "network", "switch", "s0.leaf1", "4-7"),
        ([("node01", ""), ("node03", "")], "network", "job", JOB, ""),
    ],
)
def test_the_place_of_a_fault(places: list[tuple[str, str]], area: Area, kind: str, name: str, ranks: str) -> None:
    view = a_view(switches=SWITCHES)
    scope = scope_of(view, decided(view, places=places, area=area))
    assert (scope.kind, scope.name, scope.ranks) == (kind, name, ranks)
    assert scope.nodes == sorted({node for node, _ in places})


def test_a_suspect_without_a_rank_is_at_its_node() -> None:
    view = a_view()
    nobody = msgspec.structs.replace(decided(view), suspects=[Suspect(rank=None, node="node01", score=0.5, why="")])
    assert (scope_of(view, nobody).kind, scope_of(view, nobody).name) == ("node", "node01")


def test_a_fault_that_is_the_nodes_is_there_whoever_of_it_is_told() -> None:
    view = a_view(per_node=4)
    assert scope_of(view, decided(view, [4, 6], reason=Reason.ONE_NODE)).kind == "node"


@pytest.mark.parametrize("missing", ["tp", "dp"])
def test_ranks_are_no_tensor_parallel_group_unless_all_is_known_of_it(missing: str) -> None:
    view = a_view(per_node=4)
    for rank, member in view.members.items():
        known = {axis: value for axis, value in coordinates(rank).items() if axis != missing}
        view.members[rank].identity = identity(rank, 4, coordinates=known)
        assert member.identity.rank == rank
    assert "tensor" not in scope_of(view, decided(view, [4, 5])).name


def test_groups_devices_and_switches_are_listed_with_a_bound() -> None:
    view = a_view(switches=SWITCHES)
    view.members[5].devices = ["0000:9b:00.0"]
    one = scope_of(view, decided(view, [5]))
    assert one.groups == ["pipeline stage 1", "tensor-parallel group of ranks 4-5", "data-parallel replica 0"]
    assert (one.devices, one.switches, one.left_out) == (["0000:9b:00.0"], ["s0.leaf1"], 0)
    assert said_more(one) == (
        "device 0000:9b:00.0; pipeline stage 1; tensor-parallel group of ranks 4-5; data-parallel replica 0; "
        "switch s0.leaf1"
    )
    large = a_view(400, 8)
    for rank, member in large.members.items():
        member.identity = identity(rank, 8, coordinates={"tp": rank % 2, "dp": rank // 2, "pp": 0})
    many = scope_of(large, decided(large, range(0, 399)))
    assert (many.kind, many.ranks, len(many.groups)) == ("group", "0-398", MOST_LISTED)
    assert many.left_out == 400 - MOST_LISTED


def test_ten_thousand_ranks_stay_ranges() -> None:
    view = a_view(10_240, 8, switches={f"node{n:02d}": f"s{n // 64}.l{n // 16}" for n in range(1280)})
    for rank, member in view.members.items():
        at_ = {"tp": rank % 8, "pp": rank // 8 % 8, "dp": rank // 64}
        member.identity = identity(rank, 8, coordinates=at_)
    for chosen, most in (([rank for rank in range(10_240) if rank // 8 % 8 == 3], 80_000), (range(10_000), 30_000)):
        scope = scope_of(view, decided(view, chosen))
        assert len(scope.groups) <= MOST_LISTED and all(len(group) <= 120 for group in scope.groups)
        assert len(said_place(scope)) + len(said_more(scope)) < most
    assert len(said_place(scope_of(view, decided(view, range(10_000))))) < 200


@given(st.sets(st.integers(0, 7), min_size=1), st.sampled_from([2, 4, 8]), st.booleans(), st.booleans())
@FIXED
def test_the_scope_covers_every_suspect_and_nothing_smaller_would(
    ranks: set[int], per_node: int, grid: bool, wired: bool
) -> None:
    view = a_view(per_node=per_node, grid=grid, switches=SWITCHES if wired and per_node == 2 else {})
    scope = scope_of(view, decided(view, sorted(ranks)))
    assert ranks_of(scope.ranks, 100) == sorted(ranks)
    assert scope.nodes == sorted({view.node_of(rank) for rank in ranks})
    node = len(scope.nodes) == 1 and {r for r in view.members if view.node_of(r) in scope.nodes} == ranks
    assert (scope.kind == "rank") == (len(ranks) == 1)
    if scope.kind not in ("rank",):
        assert (scope.kind == "node") == node
    if scope.kind == "stage":
        assert len({stages_of(view, rank) for rank in ranks}) == 1
    if scope.kind == "switch":
        under = {node for node, path in SWITCHES.items() if path == scope.name}
        assert under == set(scope.nodes)
    if scope.kind == "job":
        assert ranks == set(view.members)
    if scope.name.startswith("tensor"):
        assert {coordinates(rank)["tp"] for rank in ranks} == {0, 1}


@pytest.mark.parametrize(
    ("made", "ranks", "places", "fields", "words"),
    [
        ({}, [4, 5], [], {}, "host, storage, PCIe and loader of node node02"),
        (WIDE, [4, 5], [], {}, "NVLink and NVSwitch of node01"),
        (WIDE, [4, 6], [], {}, "balance of stages and at the input of pipeline stage 1"),
        (WIDE, [4, 6], [], {"symptom": "hang", "area": "network"}, "network between the nodes"),
        (
            {"switches": SWITCHES},
            [4, 5, 6, 7],
            [],
            {"area": "network"},
            "routing of switch s0.leaf1, above nodes node02, n",
        ),
        ({}, [], [("node01", "mlx5_2:1")], {"area": "network"}, "port counters of mlx5_2:1 on node01"),
        ({}, [], [("node01", "")], {"area": "hardware"}, "kernel log of node node01"),
        ({}, [], [("node01", ""), ("node02", "")], {"area": "hardware"}, "kernel logs of nodes node01, node02"),
        ({}, [], [("", "")], {"area": "hardware"}, "kernel logs of all nodes"),
        ({}, [4, 5], [], {"area": "unknown", "reason": Reason.ONE_NODE}, "what ended the suspects on node node02"),
        ({}, [5], [], {"area": "unknown", "reason": Reason.LEFT_EARLY, "symptom": "hang"}, "exit code"),
        ({}, [5], [], {"area": "unknown", "reason": Reason.PROCESS_STOPPED, "symptom": "hang"}, "once it is continued"),
        ({}, [5], [], {"area": "unknown", "reason": Reason.OWN_SERIES, "symptom": "numerics"}, "inputs and the device"),
        (
            {},
            [],
            [("node01", "g")],
            {"area": "hardware", "why": "Xid (PCI:0000:9b:00): 79, pid"},
            "RESTART_BM: restart the n",
        ),
        (
            {},
            [5],
            [],
            {"area": "hardware", "why": "its last Xid is 94 (x)"},
            "the vendor says RESTART_APP: restart the job",
        ),
        ({}, [5], [], {"area": "hardware"}, "hardware checks"),
        ({}, [5], [], {"area": "code", "why": "Xid (PCI:0000:9b:00): 31"}, "traceback"),
        ({}, [5], [], {"area": "memory", "why": "torch.OutOfMemoryError: CUDA out of memory."}, "suspect's GPU memory"),
        ({}, [5], [], {"area": "memory", "why": "torch.cuda.OutOfMemoryError: no room"}, "suspect's GPU memory"),
        ({}, [5], [], {"area": "memory", "why": "ray.exceptions.OutOfMemoryError: low"}, "for an out-of-memory kill"),
        ({}, [5], [], {"area": "memory", "why": "MemoryError"}, "for an out-of-memory kill"),
        ({}, [5], [], {"area": "memory", "why": "Out of memory: Killed process 4"}, "before the kernel killed the sus"),
        ({}, [5], [], {"area": "memory", "why": "oom-kill:constraint=CONSTRAINT_MEMCG"}, "limit of its cgroup"),
        (
            {},
            [],
            [("node01", "")],
            {"area": "memory", "why": "Memory cgroup out of memory: Killed process 4"},
            "whose process the kernel killed on node01",
        ),
        ({}, [], [("node01", "")], {"area": "memory", "why": "something else"}, "kernel log of node node01"),
        ({}, [], [], {"symptom": "crash"}, "what changed for all"),
        ({}, [], [], {"symptom": "hang"}, "all ranks at once"),
    ],
)
def test_the_next_step_follows_the_place(
    made: dict[str, Any], ranks: list[int], places: list[tuple[str, str]], fields: dict[str, Any], words: str
) -> None:
    view = a_view(**made)
    decision = decided(view, ranks, places=places, **fields)
    said = next_step(decision, scope_of(view, decision))
    assert words in said
    assert "root cause" not in said


@pytest.mark.parametrize(
    ("device", "port"),
    [
        *[(one, True) for one in ("mlx5_0:1", "mlx5_bond_0", "ib0", "eth1", "enp1s0f0", "bnxt_re0:1", "hfi1_0:1")],
        *[(one, False) for one in ("0000:9b:00.0", "cuda:1", "nvidia3", "3", "GPU-1234", "", "host")],
    ],
)
def test_adapters_are_told_by_their_names(device: str, port: bool) -> None:
    assert is_port(device) == port


@pytest.mark.parametrize(
    ("scope", "place", "more"),
    [
        (Scope(kind="switch", name="s0.l1", ranks="4-7", nodes=["a", "b"]), "switch s0.l1 with a, b", "ranks 4-7"),
        (Scope(kind="node", name="a", ranks="4-7", nodes=["a"]), "node a", "ranks 4-7"),
        (Scope(kind="group", name="ranks 4-7", ranks="4-7", nodes=["a"]), "ranks 4-7 on a", ""),
        (Scope(kind="job", name="j", nodes=["a"]), "job j", ""),
        (Scope(kind="group", name="g", nodes=list("abcdefg")), "g on a, b, c, d and 3 more", ""),
    ],
)
def test_a_scope_in_words(scope: Scope, place: str, more: str) -> None:
    assert (said_place(scope), said_more(scope)) == (place, more)


def test_what_ranks_share_is_found_anew_when_somebody_is_another() -> None:
    view = a_view()
    assert "pipeline stage 1" in groups_of(view, [5])
    moved = identity(5, coordinates=coordinates(5) | {"pp": 0})
    view.update(closed([summary(5, who=moved)]))
    assert groups_of(view, [5])[0] == "pipeline stage 0"


def test_a_hundred_incidents_of_ten_thousand_ranks_find_out_once_who_shares_what() -> None:
    asked: list[int] = []

    class Counting(AttemptView):
        def coordinates(self, rank: int) -> dict[str, int | list[int]]:
            asked.append(rank)
            return super().coordinates(rank)

    made = a_view(10_240, 8)
    view = Counting(job=JOB, attempt="0", first=T0, members=made.members)
    scope_of(view, decided(view, [5]))
    first = len(asked)
    for rank in range(100):
        found = scope_of(view, decided(view, [rank * 100]))
        assert (found.kind, len(found.groups)) == ("rank", 3)
    assert len(asked) - first < 1_000
