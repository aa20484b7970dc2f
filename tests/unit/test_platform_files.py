"""Files of schedulers and switch managers: alarms in lines, and which switch each node hangs under."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from producers.hostlists import MOST_NODES, nodes_of
from producers.readers import alerts
from producers.recording import Recording, read_recording
from schemas.events import Alert, Topology

STARTS = [
    {"rank": r, "local_rank": 0, "node": f"node{r:02d}", "pid": 10 + r, "ts": 1764417600 + 20 * r} for r in range(4)
]
DAY = "2025-11-29T12:00:"
CONTROLLER = f"""[{DAY}00.264] sched: Allocate JobId=48 NodeList=node[00-03] #CPUs=8 Partition=main
[{DAY}01.100] _slurm_rpc_submit_batch_job: JobId=49 InitPrio=1 usec=400
[{DAY}02.500] error: Nodes node[01-02] not responding
[{DAY}03.000] error: Nodes node02 not responding, setting DOWN
[{DAY}03.001] Killing JobId=48 on failed node node02
[{DAY}03.500] update_node: node node03 reason set to: ECC errors pending
[{DAY}03.500] update_node: node node03 state set to DRAINING
"""
REASONS = f"""REASON               USER      TIMESTAMP           NODELIST
Memory errors        alice     {DAY}01 node[01,03]
Not responding       root      {DAY}02 node02
Low socket*core*thre slurm     {DAY}03 other7
"""
FABRIC = """2025-11-29 12:00:02.245 [5744] [112] WARNING [Hardware] IBPort [default(34) / Switch: leaf01 / NA / 16] \
[dev_id: 248a]: Link-Downed counter delta threshold exceeded. Peer info: Computer: node01 HCA-1 / 1.
2025-11-29 12:00:03.245 [5745] [329] CRITICAL [Hardware] Switch [Switch: leaf02 / NA / 7]: Link went down
2025-11-29 12:00:03.300 [5746] [400] INFO [Logical Model] Grid [Grid]: Network added
""".replace("\\\n", "")


def read(tmp_path: Path, name: str, text: str | bytes) -> Recording:
    (tmp_path / "pids.jsonl").write_text("\n".join(json.dumps(one) for one in STARTS))
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_recording(tmp_path)


def found(recording: Recording) -> list[tuple[str, str, str, str]]:
    """Node, name, place and severity of each alarm."""
    return [
        (arrival.batch.identity.node, one.name, one.device or one.switch, one.severity)
        for arrival in recording.arrivals
        for one in arrival.batch.events
        if isinstance(one, Alert)
    ]


def wired(recording: Recording) -> dict[str, str]:
    return {
        arrival.batch.identity.node: one.switch
        for arrival in recording.arrivals
        for one in arrival.batch.events
        if isinstance(one, Topology) and one.switch
    }


def test_the_log_of_a_controller_tells_which_nodes_it_lost(tmp_path: Path) -> None:
    assert sorted(found(read(tmp_path, "slurmctld.log", CONTROLLER))) == [
        ("node01", "NodeNotResponding", "", "warning"),
        ("node02", "NodeDown", "", "critical"),
        ("node02", "NodeFailed", "", "critical"),
        ("node02", "NodeNotResponding", "", "warning"),
        ("node03", "NodeDrained", "", "warning"),
        ("node03", "NodeReason", "", "warning"),
    ]


def test_so_does_what_the_journal_has_of_a_controller(tmp_path: Path) -> None:
    lines = [line[1:].replace("] ", "+00:00 head1 slurmctld[1533]: ", 1) for line in CONTROLLER.splitlines()]
    text = "\n".join(lines)
    assert len(found(read(tmp_path, "journal.txt", text))) == 6


def test_the_reasons_of_sinfo_tell_which_nodes_are_not_available(tmp_path: Path) -> None:
    recording = read(tmp_path, "reasons.txt", REASONS)
    assert sorted(found(recording)) == [
        ("node01", "NodeUnavailable", "", "warning"),
        ("node02", "NodeDown", "", "critical"),
        ("node03", "NodeUnavailable", "", "warning"),
        ("other7", "NodeUnavailable", "", "warning"),
    ]
    assert {one.status for a in recording.arrivals for one in a.batch.events if isinstance(one, Alert)} == {"firing"}


def test_events_of_a_fabric_are_of_the_nodes_end_of_a_link_where_it_is_told(tmp_path: Path) -> None:
    assert sorted(found(read(tmp_path, "event.log", FABRIC))) == [
        ("", "Switch", "port 7", "critical"),
        ("node01", "IBPort", "HCA-1/1", "warning"),
    ]


TREE = """# three levels
SwitchName=core Switches=s[0-1]
SwitchName=s0 Level=1 LinkSpeed=1 Nodes=node[00-03] Switches=leaf[0-1]
SwitchName=leaf0 Nodes=node[00-01]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=node02,node03
"""
NODES = {
    "kind": "List",
    "items": [
        {"kind": "Node", "metadata": {"name": "node00", "labels": {"topology.kubernetes.io/rack": "r1", "zone": "z"}}},
        {
            "kind": "Node",
            "metadata": {
                "name": "node01",
                "labels": {"network.topology.nvidia.com/leaf": "l.1", "network.topology.nvidia.com/spine": "s1"},
            },
        },
        {"kind": "Node", "metadata": {"name": "node02"}},
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TREE, {f"node{number:02d}": f"core.s0.leaf{number // 2}" for number in range(4)}),
        ("SwitchName=a Nodes=node00\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n", {"node00": "b.a"}),
        (json.dumps(NODES, indent=2), {"node00": "r1", "node01": "s1.l_1"}),
        (json.dumps(NODES), {"node00": "r1", "node01": "s1.l_1"}),
        ('{"node": "node00", "switch": "s0.leaf3"}\n{"node": "node01", "rack": "r7", "leaf": "l2"}\n',
         {"node00": "s0.leaf3", "node01": "r7.l2"}),
        ('[{"node": "node00.cluster", "labels": {"network.topology.nvidia.com/tier-0": "t0", '
         '"network.topology.nvidia.com/tier-1": "t1"}}]', {"node00": "t1.t0"}),
    ],
    ids=["slurm", "circle", "kubernetes", "one line", "rows", "tiers"],
)  # fmt: skip
def test_nodes_hang_under_the_switches_that_files_tell(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert wired(read(tmp_path, "told", text)) == expected


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("node[01-03,7],gpu5", ["node01", "node02", "node03", "node7", "gpu5"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("a", ["a"]),
        ("", []),
        ("n[3-1]", []),
        ("n[x]", []),
        ("n[", []),
        (",,", []),
    ],
)
def test_lists_of_nodes(text: str, nodes: list[str]) -> None:
    assert nodes_of(text) == nodes


def test_a_file_tells_no_more_than_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MOST_TOLD", 5)
    recording = read(tmp_path, "slurmctld.log", CONTROLLER)
    assert len(found(recording)) == 5
    assert "more than 5 alarms; the rest was not read" in [one.reason for one in recording.inputs.unused]


def test_a_list_of_nodes_is_bounded() -> None:
    assert len(nodes_of("n[000000000-999999999],m[0-99999999]")) == MOST_NODES


HOSTILE: list[Any] = [
    CONTROLLER + f"[{DAY}04.000] error: Nodes " + "n[0-999999999]," * 200 + " not responding, setting DOWN\n",
    REASONS + "x" * 100_000 + "\n\x1b[31m \x00\n",
    "SwitchName=" + "a" * 100_000 + "\n" + TREE,
    "SwitchName=a Switches=" + "b[0-99999999]," * 1000 + "\n",
    b'{"kind": "List", "items": [{"kind": "Node", "metadata": 3}, 7, {"kind": "Node", "metadata": {"name": []}}]}',
    b'{"kind": "List", "items": ' + b"[" * 3000,
    FABRIC.replace("2025-11-29", "2025-99-99"),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_raise_nothing(tmp_path: Path, text: str | bytes) -> None:
    read(tmp_path, "told", text)
