"""Several jobs through the whole pipeline: what they share is told, however they are spread over partitions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from streams_support import (
    CONFIG,
    JOBS,
    RESULTS,
    Script,
    any_of,
    at,
    dying,
    hanging,
    node_of,
    recording_of,
    records,
    restarting,
    run,
    said,
    steady,
    worker,
    written_log,
)

from producers.recording import Recording
from schemas.events import Job, Log
from schemas.identity import NO_JOB, Identity
from schemas.results import Incident
from streams.incidents.resolution import Resolution
from streams.stages.fleet_reports import Reporter


def on_nodes_of_its_own(script: Script) -> Script:
    """The job on nodes that are named after it."""
    script.observations = [
        msgspec.structs.replace(
            one, identity=msgspec.structs.replace(one.identity, node=f"{script.job}-{one.identity.node}")
        )
        for one in script.observations
    ]
    return script


def complaining(script: Script, node: str, server: str) -> Script:
    """The kernel of a node of the job waits for a file server from second 40 on."""
    kernel = Identity(job=script.job, node=node, rank_reason="log of a node", process_type="kernel")
    for second in (40, 55):
        text = f"nfs: server {server} not responding, still trying"
        script.send(kernel, Log(time=at(second), stream="kernel", text=text, process_type="kernel"))
    return script


def held_up(job: str, server: str = "") -> Script:
    """Rank 3, on the second node, stays in its data loader."""
    script = on_nodes_of_its_own(hanging(job, 4))
    return complaining(script, f"{job}-node01", server) if server else script


def fleet(recording: Recording, partitions: int = 2) -> list[Incident]:
    """The newest revision of each incident of several jobs."""
    log = written_log(recording, partitions)
    run(log)
    assert records(log, "dead-letters") == []
    found = sorted((one for one in records(log, "incidents") if one.job == NO_JOB), key=lambda one: one.revision)
    return list({one.id: one for one in found}.values())


def places(found: Sequence[Incident]) -> list[tuple[str, str, list[str]]]:
    return [(one.scope.kind, one.scope.name, sorted(member.job for member in one.members)) for one in found]


STORAGE = ("one", "two", "three")


@pytest.mark.parametrize("partitions", [1, 4])
def test_jobs_that_wait_for_one_file_server_are_one_failure_of_it(partitions: int) -> None:
    found = fleet(recording_of(*(held_up(job, "nas1") for job in STORAGE), held_up("other")), partitions)
    assert places(found) == [("fleet", "storage NFS server nas1", sorted(STORAGE))]
    (whole,) = found
    assert (whole.area, whole.verdict, whole.severity) == ("data", "supported", "critical")
    assert whole.scope.nodes == sorted(f"{job}-node01" for job in STORAGE)


def test_jobs_that_hang_at_once_and_share_nothing_are_told_apart() -> None:
    assert fleet(recording_of(held_up("one"), held_up("two"))) == []
    assert fleet(recording_of(held_up("one", "nas1"), held_up("two", "nas2"))) == []
    assert fleet(recording_of(on_nodes_of_its_own(dying("one")), on_nodes_of_its_own(dying("two")))) == []


def test_jobs_on_one_node_that_fail_in_different_ways_are_told_apart() -> None:
    assert fleet(recording_of(hanging("one", 4), restarting("two"))) == []


def of_cluster(script: Script, cluster: str) -> Script:
    script.observations = [
        msgspec.structs.replace(one, identity=msgspec.structs.replace(one.identity, cluster=cluster))
        for one in script.observations
    ]
    return script


def test_jobs_that_fall_silent_stay_of_their_clusters() -> None:
    """Two clusters whose nodes have the same names; what is open is over once nothing is heard of the jobs."""
    config = msgspec.structs.replace(CONFIG, idle_windows=6)
    jobs = [of_cluster(hanging(f"{cluster}-{n}", 4), cluster) for cluster in ("east", "west") for n in range(2)]
    log = written_log(recording_of(*jobs, steady(seconds=220)), 2, config)
    run(log, config=config)
    told = [one for one in records(log, "incidents") if one.job == NO_JOB]
    latest = {one.id: one for one in sorted(told, key=lambda one: one.revision)}
    assert sorted((one.cluster, one.status, [member.job for member in one.members]) for one in latest.values()) == [
        ("east", "resolved", ["east-0", "east-1"]),
        ("west", "resolved", ["west-0", "west-1"]),
    ]
    assert {one.resolution for one in records(log, "incidents") if one.job != NO_JOB and one.status != "open"} == {
        Resolution.FORGOTTEN.value
    }


def test_a_job_of_whose_cluster_nobody_knows_is_not_of_one_that_is_known() -> None:
    assert fleet(recording_of(of_cluster(dying("one"), "east"), dying("two"))) == []


def test_what_the_jobs_share_depends_on_nothing_but_the_log() -> None:
    recording = recording_of(*(held_up(job, "nas1") for job in STORAGE[:2]))
    expected = written_log(recording, 3)
    run(expected)
    for seed in range(3):
        log = written_log(recording, 3)
        run(log, choose=any_of(seed, most=1 + 20 * seed))
        assert said(log, RESULTS) == said(expected, RESULTS)


def losing_a_port(job: str, above: tuple[str, str]) -> Script:
    """The job stands still once a port of the second node is down; each node says under which switches it hangs."""
    script = Script(job)
    script.start(4)
    for rank in range(4):
        node = f"{job}-{node_of(rank)}"
        address = {"SLURM_TOPOLOGY_ADDR": f"{above[rank // 2]}.{node}"}
        script.send(worker(job, rank), Job(time=at(0.5), environment=address))
    script.train(4, 1, 40)
    script.alive(4, 0, 90)
    kernel = Identity(job=job, node="node01", rank_reason="log of a node", process_type="kernel")
    down = "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN"
    script.send(kernel, Log(time=at(41), stream="kernel", text=down, process_type="kernel"))
    return on_nodes_of_its_own(script)


@pytest.mark.parametrize(
    ("leaves", "switch"),
    [
        (("s0.leaf3", "s0.leaf3", "s0.leaf3"), "s0.leaf3"),
        (("s0.leaf3", "s0.leaf4", "s0.leaf5"), "s0"),
        (("s0.leaf3", "s1.leaf4", "s2.leaf5"), ""),
    ],
    ids=["one leaf", "leaves of one spine", "spines"],
)
def test_jobs_that_lose_ports_under_one_switch_are_one_failure_of_it(leaves: Sequence[str], switch: str) -> None:
    """Their other nodes hang under another one."""
    jobs = [losing_a_port(f"job-{number}", ("s9.leaf9", leaf)) for number, leaf in enumerate(leaves)]
    spared = [on_nodes_of_its_own(steady(f"spared-{number}")) for number in range(4)]
    found = fleet(recording_of(*jobs, *spared))
    assert places(found) == ([("switch", switch, ["job-0", "job-1", "job-2"])] if switch else [])
    assert [(one.area, one.scope.switches, one.scope.nodes) for one in found] == (
        [("network", [switch], [f"job-{number}-node01" for number in range(3)])] if switch else []
    )


def test_a_report_that_cannot_be_made_costs_no_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written_log(recording_of(dying("one")), 2)
    run(expected)

    def report(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(Reporter, "report", report)
    log = written_log(recording_of(dying("one")), 2)
    run(log)
    assert records(log, "incidents") == records(expected, "incidents") != []
    assert {one.reason for one in records(log, "dead-letters")} == {"window could not be summed up: ValueError: no"}
    assert {one.key for one in records(log, "dead-letters")} == {b"one|fleet report"}


def test_a_fault_of_one_node_is_one_failure_with_its_history() -> None:
    log = written_log(JOBS["one node"](), 2)
    run(log)
    (whole,) = [one for one in records(log, "incidents") if one.job == NO_JOB]
    assert places([whole]) == [("node", "node00", ["dead-0", "dead-1", "dead-2"])]
    assert [(one.node, one.counted) for one in records(log, "node.history")] == [("node00", 1)]
