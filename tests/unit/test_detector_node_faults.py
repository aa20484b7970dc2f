"""What nodes report: a rank is named where the line names its process or its GPU, and only a cause that came first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import at as fixed_at
from detection_support import closed, healthy, known_fatal, new_view, run, summary, traceback
from streams_support import Script, at, pid_of, records, worker, written_log
from streams_support import run as through

from schemas.events import Log
from schemas.identity import Identity
from schemas.results import Anomaly, Incident, Window
from streams.attempt_window import Fault
from streams.detectors.node_faults import NodeFaults
from streams.lines.devices import device_of, pci_of, tells_device
from streams.lines.signature import fold

XID = "NVRM: Xid (PCI:0000:{}:00): {}, pid={}, name=python3, Ch 00000008"
KILLED = "Out of memory: Killed process {} (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
INIT = "node01:{}:{} [0] NCCL INFO ncclCommInitRank comm 0x55d rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId {} commId 0x1"
SXID = "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
CLOSED = traceback("RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:11662")


def found(*faults: Fault, **fields: Any) -> list[Anomaly]:
    window = closed((summary(rank, 10) for rank in range(4)), 10, faults=list(faults), **fields)
    return run(NodeFaults(), new_view(), [healthy(4), window])[-1]


def fault(text: str, second: float, rank: int | None = None, precision_ns: int = 0) -> Fault:
    fatal = msgspec.structs.replace(known_fatal(text, fixed_at(second)), process_type="kernel")
    return Fault("node01", msgspec.structs.replace(fatal, precision_ns=precision_ns), rank)


def test_a_fault_of_a_rank_is_critical_and_names_it_with_its_device() -> None:
    (one,) = found(fault(XID.format("0f", 79, 7), 12, rank=3))
    assert (one.grounds, one.severity, one.layer, one.area, one.onset) == (
        "rank_fault",
        "critical",
        "hardware",
        "hardware",
        fixed_at(12),
    )
    assert [(s.rank, s.node, s.device) for s in one.suspects] == [(3, "node01", "0000:0f:00.0")]
    assert "RESTART_BM" in one.text


def test_a_fault_of_nobody_warns_of_its_node() -> None:
    (one,) = found(fault(XID.format("0f", 79, 7), 12))
    assert (one.grounds, one.severity) == ("node_fault", "warning")
    assert [(s.rank, s.node, s.device) for s in one.suspects] == [(None, "node01", "0000:0f:00.0")]


def test_what_may_have_been_any_time_opens_nothing_and_names_nobody() -> None:
    (one,) = found(fault(XID.format("0f", 79, 7), 12, rank=3, precision_ns=10**12))
    assert (one.grounds, one.severity) == ("node_fault", "info")


def test_many_lines_of_one_fault_are_one_finding_and_other_places_others() -> None:
    lines = [fault(XID.format("0f", 79, 7), 12 + n / 10) for n in range(5)]
    both = found(*lines, fault(XID.format("9b", 79, 7), 12), fault(KILLED.format(7), 12))
    assert len(both) == 3
    assert {one.layer for one in both} == {"hardware", "platform"}


@pytest.mark.parametrize("fields", [{"stopped": fixed_at(12.5)}, {}])
def test_what_comes_with_the_owners_stop_or_long_after_the_last_life_is_of_others(fields: dict[str, Any]) -> None:
    late = fault(XID.format("0f", 79, 7), 12 if fields else 200)
    assert found(late, **fields) == []


@pytest.mark.parametrize(("fields", "told"), [({}, 1), ({"stopped": fixed_at(190)}, 0)])
def test_a_scheduler_tells_that_a_node_failed_minutes_after_it_fell_silent(fields: dict[str, Any], told: int) -> None:
    assert len(found(fault("srun: error: Node failure on node01", 200), **fields)) == told


@pytest.mark.parametrize(
    ("bus", "device"),
    [("1b000", "0000:1b:00.0"), ("f000", "0000:0f:00.0"), ("1000065000", "10000:65:00.0"), ("1b0a1", "0000:1b:0a.1")],
)
def test_nccl_tells_a_ranks_gpu(bus: str, device: str) -> None:
    line = INIT.format(1, 1, bus)
    assert tells_device(line) and tells_device(fold(line))
    assert device_of(line) == device


@pytest.mark.parametrize("line", ["NCCL INFO busId", "busId 1b000", INIT.format(1, 1, "xyz")])
def test_other_lines_tell_none(line: str) -> None:
    assert device_of(line) == ""


def test_metrics_name_gpus_in_other_forms() -> None:
    assert pci_of("00000000:0F:00.0") == "0000:0f:00.0"
    assert [pci_of(device) for device in ("0", "GPU-7", "cuda:1", "mlx5_0")] == [""] * 4


def crashed(said: str, second: float = 20.2, node: str = "node01", lost: bool = True) -> list[Incident]:
    """Four ranks on two nodes, of which ranks 2 and 3 on node01 say which GPU they use; the kernel says ``said``."""
    script = Script()
    script.start(4)
    for rank, bus in ((2, "f000"), (3, "9b000")):
        script.log(worker("job", rank), 0.5, INIT.format(pid_of(rank), pid_of(rank), bus))
    script.train(4, 1, 20 if lost else 60)
    script.alive(4, 0, 60)
    kernel = Identity(job="job", node=node, rank_reason="log of a node", process_type="kernel")
    script.send(kernel, Log(time=at(second), stream="kernel", text=said, process_type="kernel"))
    for rank in (0, 1, 2) if lost else ():
        script.log(worker("job", rank), 21, CLOSED)
    log = written_log(script.recording)
    through(log)
    windows: list[Window] = records(log, "windows")
    assert {device for one in windows for device in one.devices} == {"0000:0f:00.0", "0000:9b:00.0"}
    return list({one.id: one for one in records(log, "incidents")}.values())


@pytest.mark.parametrize(
    "said",
    [
        XID.format("9b", 79, pid_of(3)),
        XID.format("9b", 79, "'<unknown>'"),
        XID.format("9b", 119, 77),
        XID.format("4f", 94, pid_of(3)),
        XID.format("9b", 31, pid_of(3)),
        KILLED.format(pid_of(3)),
    ],
)
def test_a_line_of_the_kernel_names_the_rank_whose_process_or_gpu_it_speaks_of(said: str) -> None:
    (incident,) = crashed(said)
    assert ([one.rank for one in incident.suspects], incident.verdict) == ([3], "supported")
    assert incident.reason.startswith("its node reported a fault")
    assert (incident.scope.kind, incident.scope.nodes) == ("rank", ["node01"])
    assert {"hardware", "platform"} & {one.layer for one in incident.evidence}


@pytest.mark.parametrize(
    ("said", "node", "kind", "devices"),
    [
        # Another process; no process of ours; the GPU of one and the process of another; a switch.
        (XID.format("9b", 31, 77), "node01", "device", ["0000:9b:00.0"]),
        (KILLED.format(77), "node01", "node", []),
        (XID.format("0f", 79, pid_of(3)), "node01", "device", ["0000:0f:00.0"]),
        (XID.format("9b", 79, pid_of(3)), "node00", "device", ["0000:9b:00.0"]),
        (SXID, "node01", "device", ["0000:85:00.0"]),
    ],
)  # fmt: skip
def test_otherwise_the_node_is_what_is_known(said: str, node: str, kind: str, devices: list[str]) -> None:
    (incident,) = crashed(said, node=node)
    assert (incident.suspects, incident.verdict) == ([], "ambiguous")
    assert (incident.scope.kind, incident.scope.nodes, incident.scope.devices) == (kind, [node], devices)
    assert node in incident.summary and node in incident.next_step


@pytest.mark.parametrize(
    ("said", "second", "node"),
    [
        (XID.format("9b", 79, pid_of(3)), 27, "node01"),  # after the peers were lost
        (XID.format("9b", 45, pid_of(3)), 20.2, "node01"),  # a follower
        (XID.format("9b", 79, pid_of(3)), 20.2, "node07"),  # of a node that is not the job's
        ("mlx5_core 0000:01:00.0: 252.056 Gb/s available PCIe bandwidth", 20.2, "node01"),
    ],
)
def test_what_came_later_follows_or_is_elsewhere_names_nobody(said: str, second: float, node: str) -> None:
    (incident,) = crashed(said, second, node)
    assert [one.rank for one in incident.suspects] == []
    assert incident.scope.kind == "job"


def test_a_job_that_lives_through_a_fault_pages_nobody() -> None:
    for said in (XID.format("9b", 79, pid_of(3)), XID.format("4f", 79, 77)):
        (incident,) = crashed(said, lost=False)
        # A GPU that was lost once is lost again: its place stays a warning.
        assert (incident.severity, incident.suspects) == ("warning", [])
