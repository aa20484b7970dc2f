"""Logs of nodes themselves: every form of the ring buffer, of syslog and of file systems, and when their lines are."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from streams_support import records, run, written_log

from producers.heads import Head, head_of
from producers.node_jobs import OF_SEVERAL
from producers.readers.system import recognised
from producers.recording import Recording, read_recording
from producers.times import HOUR, SECOND
from schemas.events import Log
from schemas.identity import Identity
from schemas.results import Template

SHARED = Path(__file__).resolve().parents[3] / "shared/data/kernel-logs"
XID = "NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008"
NOON = int(datetime(2024, 8, 30, 12, tzinfo=UTC).timestamp()) * SECOND
BOOT = NOON - 1_000 * SECOND


def read(tmp_path: Path, **files: str) -> Recording:
    folder = tmp_path / "job"
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return read_recording(folder)


def logs(recording: Recording) -> list[tuple[Identity, Log]]:
    found = [(a.batch.identity, e) for a in recording.arrivals for e in a.batch.events if isinstance(e, Log)]
    return sorted(found, key=lambda one: (one[1].file, one[1].line))


@pytest.mark.parametrize(
    "line, host, level, time",
    [
        ("[Fri Aug 30 12:00:00 2024] {}", "", "", NOON),
        ("kern  :warn  : [Fri Aug 30 12:00:00 2024] {}", "", "WARNING", NOON),
        ("2024-08-30T12:00:00,123456+00:00 {}", "", "", NOON + 123_456_000),
        ("kern  :err   : 2024-08-30T14:00:00,500000+02:00 {}", "", "ERROR", NOON + SECOND // 2),
        ("Aug 30 12:00:00 node07 kernel: {}", "node07", "", NOON),
        ("Aug 30 12:00:00 node07 kernel: [ 1000.000000] {}", "node07", "", NOON),
        ("<4>Aug 30 12:00:00 node07 kernel: {}", "node07", "WARNING", NOON),
        ("2024-08-30T12:00:00.250000+00:00 node07 kernel: {}", "node07", "", NOON + SECOND // 4),
        ("2024-08-30T12:00:00+0000 node07 kernel: {}", "node07", "", NOON),
        ("Fri 2024-08-30 12:00:00 UTC node07 kernel: {}", "node07", "", NOON),
        ("<3>1 2024-08-30T12:00:00.25Z node07 kernel - - - {}", "node07", "ERROR", NOON + SECOND // 4),
        (
            '{{"__REALTIME_TIMESTAMP":"1725019200250000","PRIORITY":"3","_TRANSPORT":"kernel","_HOSTNAME":"node07",'
            '"MESSAGE":"{}"}}',
            "node07",
            "ERROR",
            NOON + SECOND // 4,
        ),
    ],
)
def test_a_line_is_read_out_of_every_form_of_a_kernel_log(
    tmp_path: Path, line: str, host: str, level: str, time: int
) -> None:
    ((identity, event),) = logs(read(tmp_path, dmesg=line.format(XID) + "\n", year="[Fri Aug 30 12:00:00 2024] x\n"))[
        :1
    ]
    assert (event.text, event.level, event.time, event.time_source) == (XID, level, time, "printed")
    assert (event.stream, event.process_type, identity.process_type) == ("kernel", "kernel", "kernel")
    assert (identity.worker, identity.rank_reason) == (f"node:{host}", "log of a node")


@pytest.mark.parametrize(
    "line, program, level, text",
    [
        ("Mon Jun 25 22:23:36.298 2018: Close connection to 192.168.10.109 c5n109.", "mmfs", "", "Close connection"),
        ("2024-05-01_10:00:00.123+0000: [X] The mmfs daemon is shutting down", "mmfs", "CRITICAL", "The mmfs"),
        ("[Feb 25 2025 13:59:45] [ERROR] [tid 1803] detected a fatal error", "fabricmanager", "ERROR", "detected"),
        ("Aug 30 12:00:00 node07 systemd[1]: Started a unit.", "systemd", "", "Started"),
    ],
)
def test_what_is_not_the_kernels_is_of_the_system(
    tmp_path: Path, line: str, program: str, level: str, text: str
) -> None:
    ((identity, event),) = logs(read(tmp_path, log=line + "\n"))
    assert (event.stream, event.level, event.process_type) == (program, level, "system")
    assert event.text.startswith(text) and identity.rank is None


RING = "[  990.000000] {}\n[ 1000.000000] {}\n"


@pytest.mark.parametrize(
    "anchor, boot",
    [
        ("[    2.000000] rtc_cmos 00:02: setting system clock to 2024-08-30T11:43:22 UTC (1725018202)", BOOT),
        ("[    2.000000] rtc_cmos 00:02: setting system clock to 2024-08-30 11:43:22 UTC (1725018202)", BOOT),
        ("[   12.000000] audit: type=1400 audit(1725018212.000:2): apparmor", BOOT),
    ],
)
def test_seconds_since_boot_get_a_time_from_what_the_kernel_says_of_its_boot(
    tmp_path: Path, anchor: str, boot: int
) -> None:
    found = [event for _, event in logs(read(tmp_path, dmesg=anchor + "\n" + RING.format(XID, "x")))]
    assert [event.time - boot for event in found[-2:]] == [990 * SECOND, 1_000 * SECOND]
    assert {event.time_source for event in found[-2:]} == {"inferred"}
    # The further the anchor is, the further the kernel's clock may be off.
    assert SECOND < found[-2].precision_ns < found[-1].precision_ns < 2 * SECOND


def test_seconds_since_boot_get_a_time_from_another_file_of_their_node(tmp_path: Path) -> None:
    kern = "Aug 30 11:50:00 node07 kernel: [  400.000000] usb 1-2: new device\n"
    year = "[Fri Aug 30 12:00:00 2024] x\n"
    found = read(tmp_path, node07__kern=kern, node07__dmesg=RING.format(XID, "x"), other__dmesg=year)
    times = {event.text: event.time for _, event in logs(found)}
    assert times[XID] == BOOT + 990 * SECOND
    assert found.inputs.unused == []


def test_two_boots_of_a_node_tell_nothing_of_a_file_that_names_neither(tmp_path: Path) -> None:
    rows = ["Aug 29 11:50:00 node07 kernel: [  400.000000] x", "Aug 30 11:50:00 node07 kernel: [  400.000000] x"]
    found = read(
        tmp_path,
        node07__kern="\n".join(rows),
        node07__dmesg=RING.format(XID, "x"),
        year="[Fri Aug 30 12:00:00 2024] x\n",
    )
    notes = [(note.file, note.count) for note in found.inputs.unused if "since boot" in note.reason]
    assert notes == [("node07/dmesg", 2)]


def test_each_boot_in_a_file_has_its_own_time(tmp_path: Path) -> None:
    audit = "[   10.000000] audit: type=1400 audit({}.000:2): x\n"
    first, second = BOOT // SECOND, BOOT // SECOND + 5_000
    rows = audit.format(first + 10) + RING.format("a", "b") + audit.format(second + 10) + RING.format("c", "d")
    times = {event.text: event.time for _, event in logs(read(tmp_path, dmesg=rows))}
    assert times["b"] - BOOT == 1_000 * SECOND and times["d"] - times["b"] == 5_000 * SECOND


def test_without_a_boot_time_lines_have_none_and_that_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, dmesg=RING.format(XID, "x"), year="[Fri Aug 30 12:00:00 2024] x\n")
    assert [(one.file, one.line, one.count) for one in found.inputs.unused] == [("dmesg", 1, 2)]
    assert "nothing tells when that was" in found.inputs.unused[0].reason
    # They were at some time or other, however short the recording is.
    assert {(event.time_source, event.precision_ns) for _, event in logs(found)[:2]} == {("inferred", HOUR)}


def test_gaps_in_the_ring_buffers_numbers_are_counted(tmp_path: Path) -> None:
    rows = ["6,100,1000000,-;a", "6,101,1000100,-;b", " SUBSYSTEM=pci", "4,105,1000200,-;c", "6,106,1000300,-;d"]
    found = read(tmp_path, kmsg="\n".join(rows))
    lost = [(one.line, one.count) for one in found.inputs.unused if "lost" in one.reason]
    assert lost == [(4, 3)]
    assert [(event.text, event.level) for _, event in logs(found)] == [
        ("a", "INFO"),
        ("b\n SUBSYSTEM=pci", "INFO"),
        ("c", "WARNING"),
        ("d", "INFO"),
    ]


def test_hosts_of_one_file_are_told_apart_and_a_name_in_the_path_is_one(tmp_path: Path) -> None:
    rows = [f"Aug 30 12:00:0{n} node0{n % 2}.cluster kernel: line {n}" for n in range(4)]
    pids = '{"rank": 3, "local_rank": 1, "node": "node01", "pid": 2503421, "ts": 1725019100.0}\n'
    pids += '{"rank": 0, "local_rank": 0, "node": "node02", "pid": 7, "ts": 1725019100.0}\n'
    dmesg = f"[Fri Aug 30 12:00:00 2024] {XID}\n"
    found = read(tmp_path, messages="\n".join(rows), pids_dot_jsonl=pids, dmesg_node02_dot_txt=dmesg, dmesg=dmesg)
    nodes = {(event.file, event.text): identity.node for identity, event in logs(found)}
    # node01 is known by that name, node00 only by the one that it prints.
    assert nodes["messages", "line 1"] == "node01" and nodes["messages", "line 2"] == "node00.cluster"
    assert nodes["dmesg_node02.txt", XID] == "node02" and nodes["dmesg", XID] == ""


HEAD = "Aug 30 12:00:01 node23 kernel: "
OF_JOB = (
    "oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg=/slurm/uid_1000/job_{}/step_0,task=python3,pid={},uid=0"
)
KILLED = "Out of memory: Killed process 4242 (python3) total-vm:1kB"


def job_logs(*jobs: str, **more: str) -> dict[str, str]:
    """A log of each job, of workers whose nodes nobody knows."""
    rows = "".join(f"2024-08-30 12:00:0{n} INFO [rank 0] step {n}: loss = 2.0\n" for n in range(6))
    return {f"out__slurm-{job}_dot_out": rows for job in jobs} | more


@pytest.mark.parametrize(
    ("more", "jobs"),
    [
        # The line names its job, the next one the same process; of a third job nothing is known.
        ({"sys__messages": f"{HEAD}{OF_JOB.format(22, 4242)}\n{HEAD}{KILLED}\n"}, {"22": 2}),
        ({"sys__messages": f"{HEAD}{OF_JOB.format(33, 4242)}\n{HEAD}{KILLED}\n"}, {"": 2}),
        # Two name the same process.
        (
            {"sys__messages": "".join(f"{HEAD}{OF_JOB.format(n, 4242)}\n" for n in (11, 22)) + f"{HEAD}{KILLED}\n"},
            {"11": 1, "22": 1, "": 1},
        ),
        # Nothing names a job, but for where the file lies, or where a rank says that it runs.
        ({"sys__messages": f"{HEAD}{XID}\n"}, {"": 1}),
        ({"b__slurm-33_dot_out": job_logs("33")["out__slurm-33_dot_out"], "b__messages": f"{HEAD}{XID}\n"}, {"33": 1}),
        (
            {
                "out__nemo__nemo_log_globalrank-1_localrank-0_dot_txt": "2024-08-30 12:00:00 rank 1/2 host=node23\n",
                "sys__messages": f"{HEAD}{XID}\n",
            },
            {"recorded": 1},
        ),
    ],
)
def test_a_nodes_line_is_of_the_job_that_it_names_or_that_runs_there_and_of_none_of_several_where_nothing_tells(
    tmp_path: Path, more: dict[str, str], jobs: dict[str, int]
) -> None:
    recording = read(tmp_path, **job_logs("11", "22", **more))
    found = Counter(identity.job for identity, event in logs(recording) if event.file.endswith("messages"))
    aside = sum(one.count for one in recording.inputs.unused if one.reason == OF_SEVERAL)
    assert found + Counter({"": aside}) == Counter(jobs)


def test_a_nodes_log_is_of_the_only_job_whatever_its_node(tmp_path: Path) -> None:
    recording = read(tmp_path, **job_logs("11", sys__messages=f"{HEAD}{OF_JOB.format(33, 1)}\n{HEAD}{XID}\n"))
    assert {identity.job for identity, _ in logs(recording)} == {"11"}


@pytest.mark.parametrize(
    "file, node",
    [
        ("dmesg.txt", "node02"),
        ("var/log/kern.log", "node02"),
        ("node02/dmesg.txt", "node02"),
        ("node03/dmesg.txt", "node03"),
        ("dmesg-gpu-7.txt", ""),
    ],
)
def test_the_only_known_node_is_not_taken_for_one_that_the_path_names(tmp_path: Path, file: str, node: str) -> None:
    pids = '{"rank": 4, "local_rank": 0, "node": "node02", "pid": 7, "ts": 1725019100.0}\n'
    dmesg = f"[Fri Aug 30 12:00:00 2024] {XID}\n"
    found = read(tmp_path, pids_dot_jsonl=pids, **{file: dmesg})
    assert {identity.node for identity, _ in logs(found)} == {node}


@pytest.mark.parametrize(
    "rows",
    [
        ["2024-08-30T12:00:00.1Z INFO trainer: step 1", "2024-08-30T12:00:01.1Z INFO trainer: step 2"],
        ["[2024-08-30 12:00:00] step 1", "[2024-08-30 12:00:01] step 2"],
        ["[rank0]:[titan] 2024-08-30 12:00:00,338 - root - INFO - step: 14", "[ 99%] Building"],
        ["{'loss': '2.3'}", "W0801 13:23:17.366000 32974 torch/x.py:900] x", "[0] NCCL INFO x"],
        ["[    1.000000] usb 1-2: new", *["step"] * 8],
        ["[0.512345] step 1", "[12.345678] step 2"],
    ],
)
def test_a_log_of_training_is_no_nodes_own(rows: list[str]) -> None:
    assert not recognised(rows)


@pytest.mark.parametrize("line", ["", "x", "[", "[1.5] x", "Fri", "<4>", "6,1,1", '{"__REALTIME_TIMESTAMP":"x"}'])
def test_what_has_no_head_has_none(line: str) -> None:
    assert head_of(line) is None


def test_a_ring_buffers_line_names_its_thread_and_keeps_what_stands_behind() -> None:
    found = head_of("<6>[ 2397166.983093][ T1234] usb 1-2: New USB device")
    assert found == Head(form="ring", text="usb 1-2: New USB device", level="INFO", uptime=2_397_166_983_093_000)
    monotonic = head_of("[ 2397166.983093] node07 systemd[1]: Started.")
    assert monotonic is not None and (monotonic.host, monotonic.program) == ("node07", "systemd")


def test_what_is_broken_in_a_nodes_log_is_mended_and_said(tmp_path: Path) -> None:
    head = b"[Fri Aug 30 12:00:0%d 2024] "
    rows = [head % 1 + b"x" * 10_000_000, head % 2 + b"a\0\0b", head % 3 + b"caf\xe9", b"\xff\xfe", head % 4 + b"end"]
    (tmp_path / "job").mkdir()
    (tmp_path / "job/dmesg").write_bytes(b"\n".join(rows))
    found = read(tmp_path)
    assert [(note.line, note.reason, note.count) for note in found.inputs.unused] == [
        (1, "line of 10000028 bytes cut to 65536", 1),
        (2, "NUL bytes removed", 2),
        (3, "invalid UTF-8, replaced", 2),
    ]
    assert [event.text[:8] for _, event in logs(found)] == ["x" * 8, "ab", "caf\ufffd\n\ufffd\ufffd", "end"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the kernel logs are not beside the project")
def test_every_kernel_log_is_read_whole() -> None:
    recording = read_recording(SHARED)
    assert {note.file for note in recording.inputs.unused if not note.line} == {"LICENSE", "README.md"}
    found = logs(recording)
    assert len({event.file for _, event in found}) == 7
    assert {event.process_type for _, event in found} == {"kernel", "system"}
    log = written_log(recording)
    run(log)
    templates: list[Template] = records(log, "templates")
    assert {"xid.13", "xid.43", "xid.119", "sxid.12028", "host.panic"} <= {one.id for one in templates}
    # Nobody's job runs there, so nothing is wrong with any.
    assert records(log, "incidents") == []
