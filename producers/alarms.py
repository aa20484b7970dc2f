"""Alarms of the platform, and switches of nodes, as events: of which job and node they are, and when they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.readers.alerts import Alarm, Alarms
from producers.readers.system import node_named
from producers.readers.wiring import Wiring
from producers.times import APART, EARLIEST, SECOND
from schemas.events import Alert, Topology
from schemas.identity import Identity

BACK = 600 * SECOND
"""What happened once, so shortly before all else that was recorded, is told at its beginning."""
MOST_JOBS = 64
NOWHERE = "an alarm that names no node, switch or storage"
BEFORE = "an alarm that was over before the recording begins"
AFTER = "an alarm that began after the recording ends"
_WORDS = re.compile(r"[\w.-]{1,253}")


def observe(files: Iterable[Alarms], owners: Owners, span: tuple[int, int]) -> Iterator[Observation | Unused]:
    """The events of all files, and notes on what is none of the recording, which ``span`` (ns) is."""
    for file in files:
        known = owners.workers.nodes(owners.home(file.file))
        left_out: dict[str, tuple[int, int]] = {}
        for alarm in file.alarms:
            one = _placed(alarm, known)
            reason = _no_part(one, span)
            if reason:
                line, count = left_out.get(reason, (one.line, 0))
                left_out[reason] = line, count + 1
                continue
            for job in _jobs(file.file, one, owners):
                identity = Identity(job=job, node=one.place.node, rank_reason="alarm", process_type="platform")
                for event in _events(one, span):
                    yield Observation(identity, event.time, event, file.file, one.line)
        for reason, (line, count) in left_out.items():
            yield Unused(file.file, line, reason, count)


def wired(files: Iterable[Wiring], owners: Owners, start: int) -> Iterator[Observation]:
    """What nodes of the jobs hang under, told at the beginning of the recording (ns)."""
    for file in files:
        home = owners.home(file.file)
        known = owners.workers.nodes(home)
        jobs: dict[str, set[str]] = {}
        for worker in owners.workers.all:
            if home in ("", worker.job):
                jobs.setdefault(worker.node, set()).add(worker.job)
        for line, told, path in file.paths:
            node = node_named(told, "", known)
            for job in sorted(jobs.get(node, ())):
                identity = Identity(job=job, node=node, rank_reason="topology", process_type="platform")
                event = Topology(time=start, time_source="inferred", pid=0, process_type="node", switch=path)
                yield Observation(identity, start, event, file.file, line)


def _placed(alarm: Alarm, known: list[str]) -> Alarm:
    """The alarm with the node by its known name; where it names no place, the only known node in its text."""
    place = alarm.place
    if place.node:
        node = node_named(place.node, "", known)
    elif place.switch or place.storage:
        return alarm
    else:
        said = set(_WORDS.findall(alarm.text))
        named = [one for one in known if one in said]
        node = named[0] if len(named) == 1 else ""
    return msgspec.structs.replace(alarm, place=msgspec.structs.replace(place, node=node))


def _no_part(alarm: Alarm, span: tuple[int, int]) -> str:
    start, end = span
    if not (alarm.place.node or alarm.place.switch or alarm.place.storage):
        return NOWHERE
    ended = alarm.since if alarm.ended is None and not alarm.status else alarm.ended
    if ended is not None and ended < start - (BACK if not alarm.status else 0):
        return BEFORE
    if alarm.since < start - APART:
        return BEFORE
    # Nothing but alarms has a time there.
    return AFTER if alarm.since > end != EARLIEST else ""


def _jobs(file: str, alarm: Alarm, owners: Owners) -> list[str]:
    """The jobs that an alarm may matter to: the one that it names, that of its node, else all."""
    home = owners.home(file)
    workers = [one for one in owners.workers.all if home in ("", one.job)]
    jobs = {one.job for one in workers}
    node = alarm.place.node
    if alarm.place.job in jobs:
        return [alarm.place.job]
    there = {one.job for one in workers if one.node == node} if node else jobs
    return sorted(there)[:MOST_JOBS] or [owners.job(file, node)]


def _events(alarm: Alarm, span: tuple[int, int]) -> Iterator[Alert]:
    """That it began, and that it is over; what began before the recording is told at its beginning.

    What was over only after its end fires there: an alarm must not make a recording longer.
    """
    start, end = span
    time = max(alarm.since, start)
    told = Alert(
        time=time,
        precision_ns=alarm.precision,
        since=None if time == alarm.since else alarm.since,
        name=alarm.name,
        text=alarm.text,
        severity=alarm.severity,
        device=alarm.place.device or None,
        switch=alarm.place.switch,
        storage=alarm.place.storage,
        source=alarm.source,
        status=alarm.status,
    )
    yield told
    if alarm.ended is not None and (alarm.ended <= end or end == EARLIEST):
        yield msgspec.structs.replace(told, time=max(alarm.ended, time), since=alarm.since, status="resolved")
