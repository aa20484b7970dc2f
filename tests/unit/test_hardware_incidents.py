"""Changes of hardware in incidents: what warns by itself, what stands beside, and whom they never name."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import at as fixed_at
from streams_support import Script, at, hanging, pid_of, records, slowing, steady, worker, written_log
from streams_support import run as through

from schemas.events import Metric
from schemas.identity import Identity
from schemas.results import Anomaly, Incident, Suspect
from streams.incidents.decision import Decision, Reason
from streams.incidents.hardware_beside import KEPT, SHOWN, beside, kept

XID, STATE, REASONS = "DCGM_FI_DEV_XID_ERRORS", "node_infiniband_state_id", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
RATE = "node_infiniband_rate_bytes_per_second"
GPU = "00000000:9B:00.0"
INIT = (
    "NCCL INFO ncclCommInitRank comm 0x55d rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 9b000 commId 0x1 - Init COMPLETE"
)


def sampled(script: Script, node: str, name: str, device: str, values: dict[float, float]) -> Script:
    """The value from each second on, sampled every five seconds."""
    who = Identity(job=script.job, node=node, rank_reason="node", process_type="sampler")
    for second in range(0, 70, 5):
        value = [one for since, one in sorted(values.items()) if since <= second][-1]
        script.send(who, Metric(time=at(second + 0.5), name=name, value=value, device=device))
    return script


def owned(script: Script, rank: int) -> Script:
    """The rank says that the GPU is its own."""
    script.log(worker(script.job, rank), 0.6, INIT)
    return script


def incidents(script: Script) -> list[Incident]:
    log = written_log(script.recording)
    through(log)
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    return list(latest.values())


def told(incident: Incident) -> list[str]:
    return [piece.text for piece in incident.evidence if piece.detector == "hardware_state"]


def test_a_port_that_goes_down_warns_of_its_place_and_pages_nobody_while_the_job_goes_on() -> None:
    script = sampled(steady(ranks=4, seconds=60), "node01", STATE, "mlx5_2:1", {0: 4, 30: 1})
    log = written_log(script.recording)
    through(log)
    revisions = sorted(records(log, "incidents"), key=lambda one: one.revision)
    assert len({one.id for one in revisions}) == 1
    assert {one.severity for one in revisions} <= {"warning", "info"}
    assert all(one.suspects == [] for one in revisions)
    last = revisions[-1]
    assert (last.scope.kind, last.scope.nodes, last.scope.devices) == ("nic", ["node01"], ["mlx5_2:1"])
    assert (last.severity, last.area, last.reason) == ("warning", "network", Reason.SURVIVED.value)
    assert told(last) == [f"port mlx5_2:1 of node01: is DOWN, was ACTIVE ({STATE})"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (STATE, {0: 1}),
        (XID, {0: 79}),
        (RATE, {0: 25e9, 30: 50e9}),
        (REASONS, {0: 0x4, 30: 0x44}),
        ("node_infiniband_symbol_error_total", {0: 0, 30: 100}),
        (XID, {0: 0, 30: 63}),
    ],
)
def test_what_was_so_all_the_time_or_is_no_fault_opens_nothing(name: str, values: dict[float, float]) -> None:
    assert incidents(sampled(steady(ranks=4, seconds=60), "node01", name, "device", values)) == []


def test_a_port_that_falls_to_a_lower_rate_warns_of_its_place() -> None:
    (incident,) = incidents(sampled(steady(ranks=4, seconds=60), "node01", RATE, "mlx5_2:1", {0: 50e9, 30: 25e9}))
    assert (incident.severity, incident.symptom, incident.suspects) == ("warning", "slowdown", [])
    assert incident.reason == Reason.PORT_SLOWER.value
    assert (incident.scope.kind, incident.scope.nodes, incident.scope.devices) == ("nic", ["node01"], ["mlx5_2:1"])


@pytest.mark.parametrize(
    ("states", "severity"),
    [({0: 4, 30: 1}, "warning"), ({0: 4, 30: 1, 40: 4}, "info"), ({0: 4, 30: 1, 40: 2}, "warning")],
)
def test_a_port_that_stays_down_stays_a_warning_though_the_job_goes_on(
    states: dict[float, float], severity: str
) -> None:
    (incident,) = incidents(sampled(steady(ranks=4, seconds=90), "node01", STATE, "mlx5_2:1", states))
    assert (incident.severity, incident.reason) == (severity, Reason.SURVIVED.value)
    assert (incident.suspects, incident.scope.devices) == ([], ["mlx5_2:1"])


@pytest.mark.parametrize(
    ("node", "owner", "shown"),
    [("node01", None, True), ("node01", 3, True), ("node01", 2, False), ("node02", None, False)],
)
def test_a_slow_rank_is_shown_what_came_before_at_its_place(node: str, owner: int | None, shown: bool) -> None:
    script = slowing() if owner is None else owned(slowing(), owner)
    (incident,) = incidents(sampled(script, node, REASONS, GPU, {0: 0x4, 25: 0x44}))
    assert [one.rank for one in incident.suspects] == [3]
    assert [("thermal (hardware)" in text, node in text) for text in told(incident)] == [(True, True)] * shown
    assert incident.suspects == incidents(slowing())[0].suspects


def test_what_came_after_a_slow_rank_does_not_explain_it() -> None:
    (incident,) = incidents(sampled(slowing(), "node01", REASONS, GPU, {0: 0x4, 55: 0x44}))
    assert told(incident) == []


def test_a_port_that_went_down_before_a_hang_says_where_to_look_and_the_verdict_stays() -> None:
    bare = incidents(hanging())[0]
    (incident,) = incidents(sampled(hanging(), "node00", STATE, "mlx5_2:1", {0: 4, 30: 1}))
    assert (incident.suspects, incident.verdict, incident.reason) == (bare.suspects, bare.verdict, bare.reason)
    assert any("is DOWN, was ACTIVE" in text for text in told(incident))


def test_an_error_of_a_ranks_own_gpu_is_as_grave_as_the_kernels_word() -> None:
    script = owned(steady(ranks=4, seconds=30), 2)
    for rank in (0, 1, 3):
        lost = f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited"
        script.log(worker(script.job, rank), 33.0 + rank / 10, lost)
    (incident,) = incidents(sampled(script, "node01", XID, GPU, {0: 0, 30: 79}))
    assert ([one.rank for one in incident.suspects], incident.severity) == ([2], "critical")
    assert incident.reason == Reason.RANK_FAULT.value


@pytest.mark.parametrize("told", [True, False])
def test_the_gpu_of_a_slow_rank_is_compared_with_those_of_its_peers(told: bool) -> None:
    script = slowing()
    for rank in range(8):
        bus = 0x10 + rank
        if told:
            script.log(worker(script.job, rank), 0.6, INIT.replace("9b000", f"{bus:x}000"))
        clock = {0: 1980.0, 20: 900.0} if rank == 3 else {0: 1980.0 + rank}
        sampled(script, f"node{rank // 2:02d}", "DCGM_FI_DEV_SM_CLOCK", f"00000000:{bus:X}:00.0", clock)
    (incident,) = incidents(script)
    shown = [piece.text for piece in incident.evidence if "DCGM_FI_DEV_SM_CLOCK" in piece.text]
    assert [one.rank for one in incident.suspects] == [3]
    assert [("rank 3" in text, "node01" in text) for text in shown] == [(told, not told)]


@pytest.mark.parametrize("device", ["3", "00000000:9B:00.0"])
def test_a_rank_that_samples_the_gpus_of_its_node_is_not_named_for_one_of_them(device: str) -> None:
    script = owned(steady(ranks=4, seconds=60), 3)
    for second, code in ((20, 0.0), (25, 0.0), (30, 79.0)):
        script.send(worker(script.job, 2), Metric(time=at(second), name=XID, value=code, device=device))
    (incident,) = incidents(script)
    (text,) = told(incident)
    assert text.startswith("GPU 3 of" if device == "3" else "rank 3's GPU 0000:9b:00.0 of node01")
    assert incident.suspects == []


@pytest.mark.parametrize(
    ("devices", "named"),
    [([GPU], [2]), ([GPU, "00000000:9C:00.0"], []), ([GPU, GPU, "00000000:9C:00.0", GPU, GPU], [])],
)
def test_a_gpu_is_that_of_the_rank_that_samples_it_alone(devices: list[str], named: list[int]) -> None:
    script = steady(ranks=4, seconds=30)
    for rank in (0, 1):
        lost = f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited"
        script.log(worker(script.job, rank), 33.0 + rank / 10, lost)
    for second in range(5, 30, 5):
        # Once for all, or one of them at a time.
        for device in devices if len(devices) < 5 else devices[second // 5 - 1 :][:1]:
            sample = Metric(time=at(second), name="temperature.gpu", value=60, unit="C", device=device, pid=pid_of(2))
            script.send(worker(script.job, 2), sample)
    (incident,) = incidents(sampled(script, "node01", XID, GPU, {0: 0, 30: 79}))
    assert [one.rank for one in incident.suspects] == named


def finding(second: float, *, node: str = "n1", rank: int | None = None, **fields: Any) -> Anomaly:
    values: dict[str, Any] = {
        "id": f"{second}|{node}|{rank}",
        "detector": "hardware_state",
        "grounds": "hardware_change",
        "severity": "info",
        "suspects": [Suspect(rank=rank, node=node, score=0.5, why="")],
        "onset": fixed_at(second),
    }
    base = {"version": 1, "config": "", "job": "j", "attempt": "0", "axis": "time", "layer": "hardware"}
    kind = {"symptom": "slowdown", "area": "hardware", "text": "", "start": 0, "end": fixed_at(second)}
    return Anomaly(**(base | kind | values | fields))


def decided(*ranks: int, node: str = "n1", second: float = 1000) -> Decision:
    return Decision(
        symptom="slowdown",
        area="compute",
        verdict="supported",
        reason=Reason.SLOW_AND_CHANGED,
        onset=fixed_at(second),
        iteration=None,
        suspects=[Suspect(rank=rank, node=node, score=1, why="") for rank in ranks],
        victims=[],
    )


@pytest.mark.parametrize(
    ("found", "decision", "shown"),
    [
        (finding(999), decided(3), True),
        (finding(999, rank=3), decided(3), True),
        (finding(999, rank=4), decided(3), False),
        (finding(999, node="n2"), decided(3), False),
        (finding(999, node="n2"), decided(), True),
        (finding(399), decided(3), False),
        (finding(1001.5), decided(3), True),
        (finding(1003), decided(3), False),
        (finding(1010, precision_ns=10 * 10**9), decided(3), True),
    ],
)
def test_it_stands_beside_what_it_came_before_at_its_place(found: Anomaly, decision: Decision, shown: bool) -> None:
    assert beside([found], [], decision, 2 * 10**9) == [found] * shown


def test_the_gravest_and_nearest_are_shown_and_none_twice() -> None:
    known = [finding(900 + n) for n in range(5)] + [finding(500, severity="warning", grounds="node_fault")]
    shown = beside(known, [known[4]], decided(3), 0)
    assert [one.onset for one in shown] == [fixed_at(500), fixed_at(902), fixed_at(903)]
    assert len(shown) == SHOWN
    assert len(kept(known * 20, known)) == KEPT
    assert kept(known, []) is known


def printing(*, without: tuple[int, ...] = (), until: float = 200) -> Script:
    """Four ranks that print no iterations, but a line every ten seconds, as their own job calls it."""
    script = Script(job="own-words")
    for second in range(0, int(until), 10):
        for rank in range(4):
            if rank not in without or second < 100:
                script.log(worker(script.job, rank), second + 1 + rank / 10, f"epoch 0 batch {second} done")
    return owned(script, 2)


@pytest.mark.parametrize(
    ("script", "code", "severity", "area", "suspects"),
    [
        (printing(), 79, "warning", "hardware", []),
        (printing(), 13, "info", "code", []),
        (printing(until=100), 79, "critical", "hardware", [2]),
        (printing(without=(2,)), 79, "critical", "hardware", [2]),
    ],
    ids=["goes on", "a program's fault goes on", "all fall silent", "one falls silent"],
)
def test_a_fault_names_a_rank_once_something_stops(
    script: Script, code: int, severity: str, area: str, suspects: list[int]
) -> None:
    who = Identity(job=script.job, node="node01", rank_reason="node", process_type="sampler")
    for second in range(0, 220, 5):
        script.send(who, Metric(time=at(second + 0.5), name=XID, value=code * (second > 95), device=GPU))
    log = written_log(script.recording)
    through(log)
    revisions = sorted(records(log, "incidents"), key=lambda one: one.revision)
    assert len({one.id for one in revisions}) == 1
    # Before anything has stopped it warns of its place.
    assert (revisions[0].severity, revisions[0].suspects) == ("warning", [])
    assert revisions[0].scope.nodes == ["node01"]
    last = revisions[-1]
    assert (last.severity, last.area, [one.rank for one in last.suspects]) == (severity, area, suspects)
    assert (last.reason == Reason.SURVIVED.value) == (not suspects)


def test_a_later_error_of_another_is_not_that_of_a_fault_which_the_job_has_lived_through() -> None:
    script = printing()
    failed = '[rank3]: Traceback (most recent call last):\n  File "/app/train.py", line 60, in main\n    x = f(batch)\n'
    script.log(worker(script.job, 3), 201, failed + "ValueError: bad shard 17")
    for rank in (0, 1, 2):
        lost = f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited"
        script.log(worker(script.job, rank), 205 + rank / 10, lost)
    who = Identity(job=script.job, node="node01", rank_reason="node", process_type="sampler")
    for second in range(0, 240, 5):
        script.send(who, Metric(time=at(second + 0.5), name=XID, value=94 * (second > 95), device=GPU))
    found = incidents(script)
    assert [(one.severity, [who.rank for who in one.suspects]) for one in found] == [("warning", []), ("critical", [3])]
