"""Which incidents of several jobs are one failure, at which place and why; and what is not said."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from fleet_support import at, crashed, told

from streams.fleet.chance import hit_by_chance
from streams.fleet.failure import Failure, FleetReason
from streams.fleet.failures import failures
from streams.fleet.seen import Seen
from streams.fleet.together import Told
from streams.incidents.decision import Reason
from streams.incidents.resolution import Resolution


def cluster(*incidents: Told, healthy: int = 10, **known: Any) -> Seen:
    """Each job runs on the node that its incident points at and on one of its own, and some healthy ones elsewhere."""
    running = {one.job: frozenset({*one.incident.nodes, f"own of {one.job}"}) for one in incidents}
    running |= {f"healthy {n}": frozenset({f"else{n}", f"else{n + 1}"}) for n in range(healthy)}
    return Seen(incidents=incidents, **{"running": running, **known})


def found(seen: Seen) -> list[tuple[str, str, list[str]]]:
    """Reason, place and jobs of each failure."""
    return [(one.reason.name, one.name, [member.job for member in one.members]) for one in failures(seen)]


def shared(jobs: str, node: str = "node02", **changes: Any) -> list[Told]:
    return [told(job, 100 + n, node, **changes) for n, job in enumerate(jobs)]


SLOW = {"symptom": "slowdown", "area": "compute"}
PORT = {"area": "network", "symptom": "crash"}
UNDER = {f"node{n:02d}": f"leaf{n // 4}" for n in range(16)}
PATHS = {f"node{n:02d}": f"s{n // 8}.leaf{n // 4}" for n in range(16)}
NFS = {"NFS server nas1": {f"node{n:02d}": (at(95), at(160)) for n in range(8)}}
NOBODY = {"node": "", "named": False, "nodes": [], "area": "unknown", "verdict": "ambiguous"}
REQUEUED = {"status": "resolved", "resolution": Resolution.SUPERSEDED.value}
ERROR = {"symptom": "crash", "area": "code", "errors": ["e1"]}

TABLE: dict[str, tuple[Seen, list[tuple[str, str, list[str]]]]] = {
    "nothing": (Seen(incidents=[]), []),
    "one job": (cluster(told("a")), []),
    "two jobs on one node": (cluster(*shared("ab")), [("SAME_NODE", "node02", ["a", "b"])]),
    "two jobs on two nodes": (cluster(told("a"), told("b", node="node03")), []),
    "two faults of one job": (cluster(told("a"), told("a", incident="second")), []),
    "one job fails, and another that came later": (cluster(told("a"), told("b", 900, since=800)), []),
    "one node at two times": (
        cluster(*shared("ab"), *[told(job, 5000, since=4000) for job in "cd"], healthy=100),
        [("SAME_NODE", "node02", ["a", "b"]), ("SAME_NODE", "node02", ["c", "d"])],
    ),
    "jobs that are restarted on one node and fail there again": (
        cluster(
            *shared("ab"), *[told(job, 1000, since=300, incident="again", attempt="1") for job in "ab"], told("c", 1010)
        ),
        [("SAME_NODE", "node02", ["a", "b", "a", "b", "c"])],
    ),
    "two nodes at one time": (
        cluster(*shared("ab"), *shared("cd", "node07"), healthy=100),
        [("SAME_NODE", "node02", ["a", "b"]), ("SAME_NODE", "node07", ["c", "d"])],
    ),
    "nobody points anywhere": (cluster(told("a", **NOBODY), told("b", **NOBODY)), []),
    "jobs that are requeued together": (cluster(*(crashed(job, **REQUEUED) for job in "abc")), []),
    "jobs that are requeued, and one that is not": (
        cluster(crashed("a", **REQUEUED), crashed("b", **REQUEUED), crashed("c")),
        [("SAME_NODE", "node02", ["a", "b", "c"])],
    ),
    "jobs whose hardware fails, so that they are restarted": (
        cluster(*(crashed(job, **REQUEUED, area="hardware") for job in "abc")),
        [("SAME_NODE", "node02", ["a", "b", "c"])],
    ),
    "what is information": (cluster(told("a"), told("b", severity="info")), []),
    "on one device": (
        cluster(*shared("ab", devices=["0000:0f:00"])),
        [("SAME_DEVICE", "node02", ["a", "b"])],
    ),
    "on two devices of one node": (
        cluster(told("a", devices=["0000:0f:00"]), told("b", devices=["0000:1f:00"])),
        [("SAME_NODE", "node02", ["a", "b"])],
    ),
    "no other node tells": (
        Seen(incidents=shared("ab"), running={job: frozenset({"node02"}) for job in "ab"}),
        [("ONLY_NODE", "node02", ["a", "b"])],
    ),
    "others are hit alike elsewhere": (
        cluster(*shared("ab"), *[told(job, 101, f"node{n + 10}") for n, job in enumerate("cdef")]),
        [],
    ),
    "many jobs, of which few are hit elsewhere": (
        cluster(*shared("ab"), *[told(job, 101, f"node{n + 10}") for n, job in enumerate("cd")], healthy=200),
        [("SAME_NODE", "node02", ["a", "b"])],
    ),
    "others fail in another way": (
        cluster(*shared("ab"), *[crashed(job, 101, f"node{n + 10}") for n, job in enumerate("cdef")]),
        [("SAME_NODE", "node02", ["a", "b"])],
    ),
    "one more runs there and names nobody": (
        cluster(
            *shared("ab"),
            told("c", **NOBODY),
            running={
                **{job: frozenset({"node02", "x"}) for job in "abc"},
                **{f"h{n}": frozenset({f"y{n}"}) for n in range(40)},
            },
        ),
        [("SAME_NODE", "node02", ["a", "b"])],
    ),
    "errors of their own on one node": (cluster(crashed("a", **ERROR), crashed("b", **{**ERROR, "errors": []})), []),
    "one error on one node": (cluster(crashed("a", **ERROR), crashed("b", **ERROR)), [("SAME_ERROR", "", ["a", "b"])]),
    "one error about data on one node": (
        cluster(*(crashed(job, **{**ERROR, "area": "data", "reason": Reason.OWN_ERROR.value}) for job in "abc")),
        [("SAME_ERROR", "", ["a", "b", "c"])],
    ),
    "one error on two nodes": (cluster(crashed("a", **ERROR), crashed("b", node="node03", **ERROR)), []),
    "ports under one switch": (
        cluster(told("a", **PORT), told("b", node="node01", **PORT), switches=UNDER),
        [("SAME_SWITCH", "leaf0", ["a", "b"])],
    ),
    "ports under two switches": (cluster(told("a", **PORT), told("b", node="node05", **PORT), switches=UNDER), []),
    "ports under one leaf of a spine": (
        cluster(told("a", **PORT), told("b", node="node01", **PORT), switches=PATHS),
        [("SAME_SWITCH", "s0.leaf0", ["a", "b"])],
    ),
    "ports under two leaves of one spine": (
        cluster(told("a", **PORT), told("b", node="node05", **PORT), switches=PATHS, healthy=40),
        [("SAME_SWITCH", "s0", ["a", "b"])],
    ),
    "ports under two spines": (
        cluster(told("a", **PORT), told("b", node="node09", **PORT), switches=PATHS, healthy=40),
        [],
    ),
    "ports under the only spine": (
        cluster(
            told("a", **PORT),
            told("b", node="node05", **PORT),
            switches={node: path for node, path in PATHS.items() if path.startswith("s0.")},
            healthy=40,
        ),
        [],
    ),
    "ports of one node": (
        cluster(*shared("ab", **PORT), switches=UNDER),
        [("SAME_NODE", "node02", ["a", "b"])],
    ),
    "nodes under one switch that fail of something else": (
        cluster(told("a"), told("b", node="node01"), switches=UNDER),
        [],
    ),
    "ports under all switches": (
        cluster(*[told(f"j{n}", node=f"node{n:02d}", **PORT) for n in range(16)], switches=UNDER, healthy=0),
        [("CLUSTER_WIDE", "", sorted(f"j{n}" for n in range(16)))],
    ),
    "one storage": (
        cluster(told("a"), told("b", 250, "node03"), complaints=NFS),
        [("SAME_STORAGE", "NFS server nas1", ["a", "b"])],
    ),
    "one storage, where nobody is named": (
        cluster(
            told("a", **NOBODY),
            told("b", **NOBODY),
            running={"a": frozenset({"node01"}), "b": frozenset({"node02"})},
            complaints=NFS,
        ),
        [("SAME_STORAGE", "NFS server nas1", ["a", "b"])],
    ),
    "loading and saving": (
        cluster(told("a"), told("b", node="node03", area="checkpoint"), complaints=NFS),
        [("SAME_STORAGE", "NFS server nas1", ["a", "b"])],
    ),
    "complaints of other nodes": (cluster(told("a", node="node12"), told("b", node="node13"), complaints=NFS), []),
    "complaints of long before": (
        cluster(told("a", 900), told("b", 900, "node03"), complaints=NFS),
        [],
    ),
    "complaints beside what is no storage": (
        cluster(crashed("a"), crashed("b", node="node03"), complaints=NFS),
        [],
    ),
    "complaints of one storage at two times": (
        cluster(
            told("a"),
            told("b", 300, "node03"),
            complaints={"NFS server nas1": {"node02": (at(-100), at(-90)), "node03": (at(500), at(501))}},
        ),
        [],
    ),
    "only one node complains": (cluster(*shared("ab"), complaints=NFS), [("SAME_NODE", "node02", ["a", "b"])]),
    "ten jobs on ten nodes in a large cluster": (
        cluster(*[told(f"j{n}", 100 + n, f"node{n}") for n in range(10)], healthy=90),
        [],
    ),
    "ten jobs on ten nodes of ten": (
        cluster(*[told(f"j{n}", 100 + n, f"node{n}") for n in range(10)], healthy=2),
        [("CLUSTER_WIDE", "", [f"j{n}" for n in range(10)])],
    ),
    "ten jobs on ten nodes that fail in different ways": (
        cluster(*[told(f"j{n}", 100 + n, f"n{n}", area=("data", "compute", "hardware")[n % 3]) for n in range(10)]),
        [],
    ),
    "four jobs, all that there are": (cluster(*[told(f"j{n}", node=f"n{n}") for n in range(4)], healthy=0), []),
    "most jobs of one loss that is no number": (
        cluster(*[told(f"j{n}", **{**NOBODY, "symptom": "numerics"}) for n in range(10)], healthy=0),
        [],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_which_incidents_are_one_failure(name: str) -> None:
    seen, expected = TABLE[name]
    assert found(seen) == expected


def test_every_reason_is_reached() -> None:
    reached = {reason for _, expected in TABLE.values() for reason, _, _ in expected}
    assert reached == {reason.name for reason in FleetReason}


@pytest.mark.parametrize("name", TABLE)
def test_the_order_in_which_incidents_are_known_changes_nothing(name: str) -> None:
    seen, _ = TABLE[name]
    for seed in range(3):
        incidents = list(seen.incidents)
        random.Random(seed).shuffle(incidents)
        again = msgspec.structs.replace(seen, incidents=incidents)
        assert failures(again) == failures(seen)


def verdict(*members: Told) -> str:
    (one,) = failures(cluster(*members))
    return one.verdict


def test_a_verdict_is_supported_where_two_jobs_support_it() -> None:
    assert verdict(*shared("ab")) == "supported"
    assert verdict(told("a"), told("b", verdict="ambiguous")) == "ambiguous"
    assert verdict(told("a"), told("b", verdict="ambiguous"), told("c")) == "supported"
    assert verdict(crashed("a", **ERROR), crashed("b", **ERROR)) == "ambiguous"


@pytest.mark.parametrize(
    ("changes", "complained", "verdict"),
    [
        ({}, (95, 95), "supported"),
        ({}, (150, 250), "supported"),
        ({}, (170, 95), "ambiguous"),
        ({"area": "unknown"}, (95, 95), "ambiguous"),
        ({"area": "unknown", "named": False}, (95, 95), "supported"),
    ],
    ids=str,
)
def test_a_storage_is_supported_by_jobs_that_waited_for_it_and_said_so_in_time(
    changes: dict[str, Any], complained: tuple[int, int], verdict: str
) -> None:
    spans = {node: (at(second), at(300)) for node, second in zip(("node02", "node03"), complained, strict=True)}
    hung = cluster(told("a", **changes), told("b", 200, "node03", **changes), complaints={"NFS server nas1": spans})
    (one,) = failures(hung)
    assert (one.reason, one.verdict) == (FleetReason.SAME_STORAGE, verdict)


def test_two_jobs_of_few_nodes_may_point_at_one_by_chance() -> None:
    """What both share may have hit them, as storage: then each points at any of its nodes."""
    nodes = [f"node{number:02d}" for number in range(4)]
    for jobs, verdict in (("ab", "ambiguous"), ("abc", "ambiguous"), ("abcd", "supported")):
        (one,) = failures(Seen(incidents=shared(jobs), running={job: frozenset(nodes) for job in jobs}))
        assert (one.name, one.verdict) == ("node02", verdict), jobs


def test_who_did_not_run_at_that_time_is_not_compared_with() -> None:
    """Those who were gone before, or came only afterwards, were spared by nothing."""
    seen = cluster(*shared("ab"))
    healthy = [job for job in seen.running if job.startswith("healthy")]
    for span, reason in (((0, at(50)), "ONLY_NODE"), ((at(400), at(900)), "ONLY_NODE"), ((0, at(150)), "SAME_NODE")):
        (one,) = failures(msgspec.structs.replace(seen, ran=dict.fromkeys(healthy, span)))
        assert one.reason.name == reason


def test_what_chance_explains() -> None:
    assert hit_by_chance(10, 10, 3, 3)[3] == 1.0
    assert hit_by_chance(10, 2, 2, 2)[2] == pytest.approx(1 / 45)
    assert hit_by_chance(1000, 4, 2, 2)[2] == pytest.approx(4 * 3 / (1000 * 999))
    assert hit_by_chance(5, 0, 2, 0)[2] == 1.0


def innocent_nodes(found: Sequence[Failure], guilty: str) -> set[str]:
    return {one.name for one in found if one.kind == "node"} - {guilty}


@pytest.mark.parametrize("seed", range(20))
def test_among_failures_by_chance_no_innocent_node_is_named(seed: int) -> None:
    """Jobs on shared nodes that fail within minutes, each for itself, beside one node that takes two with it."""
    chance = random.Random(seed)
    nodes = [f"node{n:03d}" for n in range(60)]
    running = {f"j{n:03d}": frozenset(chance.sample(nodes, 3)) for n in range(40)}
    guilty = nodes[0]
    running |= {"x": frozenset({guilty, "x1"}), "y": frozenset({guilty, "y1"})}
    by_chance = chance.sample(sorted(running), 6)
    incidents = [
        told(job, chance.uniform(60, 140), chance.choice(sorted(running[job])))
        for job in by_chance
        if job not in ("x", "y")
    ]
    told_of = failures(Seen(incidents=incidents, running=running))
    assert innocent_nodes(told_of, "") == set()
    with_guilty = failures(
        Seen(incidents=[*incidents, told("x", node=guilty), told("y", node=guilty)], running=running)
    )
    assert innocent_nodes(with_guilty, guilty) == set()
