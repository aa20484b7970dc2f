"""Stacks that a worker's log holds, as stack events beside the log's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from producers import stacktext
from producers.logfile import LogFile
from producers.observations import Observation
from producers.times import Moment
from schemas.events import Stack
from schemas.identity import Identity

_PROCESS = re.compile(r"Process (\d{1,10}): ")


def printed_stacks(log: LogFile, moments: Sequence[Moment], identity: Identity, pid: int) -> Iterable[Observation]:
    """A stack event for every thread that is printed.

    Faulthandler prints the threads of its own process; py-spy names the process that it looked at, which must be the
    worker's. ``pid`` is that one, 0 if it is not known: then nothing of py-spy's can be told to be the worker's.
    """
    if identity.rank is None:
        return
    process, latest = 0, 0
    for record, moment in zip(log.records, moments, strict=True):
        latest = max(latest, moment.time)
        if record.shape == "line" and record.text.startswith("Process ") and (found := _PROCESS.match(record.text)):
            process = int(found.group(1))
        if record.shape != "stack" or (printed := stacktext.parse(record.text)) is None:
            continue
        if printed.active is not None and (not pid or process != pid):
            continue
        event = Stack(
            time=moment.time,
            time_source=moment.source,
            precision_ns=moment.precision,
            process_type=printed.process_type,
            pid=pid,
            thread=printed.thread,
            frames=printed.frames,
            active=printed.active,
        )
        yield Observation(identity, latest, event, log.file, record.line)
