"""A real process killed while it writes its spool: what it had pumped arrives, in order, from the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from outgoing_support import SECOND, SMALL, T0, FakeTransport, die, drain, dropped, files, outbox_at, spool_at

from producers.outgoing.counters import Counters
from producers.outgoing.outbox import Outbox

ROOT = Path(__file__).resolve().parents[2]
WIDE = msgspec.structs.replace(SMALL, unspooled_s=0.0, spool_bytes=1_000_000_000)
HUGE = msgspec.structs.replace(WIDE, segment_bytes=20_000_000)

PUMPING = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
from pathlib import Path
from outgoing_support import T0, FakeTransport, outbox_at, record
from test_outgoing_killed import WIDE
outbox = outbox_at(Path({spool!r}), FakeTransport(up=False), WIDE)
for n in range(1_000_000):
    outbox.put(record(b"%d/%d" % ({boot}, n) + b"v" * (n * 37 % 3_000), f"j|{{n % 3}}"))
    outbox.pump(T0 + n)
    print(n, flush=True)
"""

WRITING = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
from pathlib import Path
from outgoing_support import record, spool_at
from test_outgoing_killed import HUGE
spool = spool_at(Path({spool!r}), HUGE)
for n in range(1_000_000):
    spool.append(record(b"%d/%d/" % ({boot}, n) + b"v" * 3_000_000))
    print(n, flush=True)
"""


def killed(program: str, spool: Path, boot: int, after: int) -> int:
    """Run it, kill it once it has said ``after`` numbers; returns the last number that it said."""
    code = program.format(root=str(ROOT), spool=str(spool), boot=boot)
    path = f"{ROOT}{os.pathsep}{ROOT / 'tests'}{os.pathsep}{ROOT / 'tests/integration'}"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert child.stdout is not None
    with child.stdout:
        for _ in range(after):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        rest = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    assert child.wait() == -signal.SIGKILL
    return int(rest[-1]) if rest else after - 1


def sent_by(outbox: Outbox, transport: FakeTransport) -> list[bytes]:
    now = T0
    while not outbox.idle:
        now += SECOND
        outbox.pump(now)
    return transport.values


def test_what_was_pumped_by_processes_that_were_killed_all_arrives_in_order(tmp_path: Path) -> None:
    said = {boot: killed(PUMPING, tmp_path, boot, after) for boot, after in enumerate((1, 30, 170))}
    transport = FakeTransport()
    outbox = outbox_at(tmp_path, transport, WIDE)
    names = [tuple(map(int, value.rstrip(b"v").split(b"/"))) for value in sent_by(outbox, transport)]
    for boot, last in said.items():
        mine = sorted(n for b, n in names if b == boot)
        # One more may have been written than it had the time to say.
        assert mine in (list(range(last + 1)), list(range(last + 2)))
        for lane in range(3):
            order = [n for b, n in names if b == boot and n % 3 == lane]
            assert order == sorted(order)
    assert set(dropped(outbox.counters)) <= {"damaged"} and outbox.counters.dropped_records["damaged"] <= 3  # type: ignore[index]


@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_process_killed_in_the_middle_of_a_large_write_leaves_the_rest_readable(tmp_path: Path, after: int) -> None:
    last = killed(WRITING, tmp_path, 0, after)
    counters = Counters()
    spool = spool_at(tmp_path, HUGE, counters)
    names = [value.split(b"/")[1] for value in drain(spool)]
    assert [int(name) for name in names] in (list(range(last + 1)), list(range(last + 2)))
    assert dropped(counters) in ({}, {"damaged": (1, 1)})
    spool.close()
    assert files(tmp_path) == []


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    killed(PUMPING, tmp_path, 0, 1)
    die(spool_at(tmp_path, WIDE))
    assert spool_at(tmp_path, WIDE).unread
