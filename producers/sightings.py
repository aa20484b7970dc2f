"""When the processes of workers were seen alive, and when dead, in samples of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from producers.contents import Contents
from producers.owners import Owners
from producers.readers import metrics
from producers.rows import Row
from producers.timing import Sightings
from producers.workers import Worker


def sightings(contents: Contents, owners: Owners) -> dict[Worker, Sightings]:
    """The sightings of every worker that was sampled."""
    found: dict[Worker, Sightings] = {}
    for file, row, alive in _samples(contents):
        pid = row.integer("pid")
        worker = owners.find(file, row)
        # Children live and die on their own.
        if worker is None or (worker.pid is not None and worker.pid != pid):
            continue
        found[worker] = _with(found.get(worker, Sightings()), row.time, alive, pid)
    return found


def _samples(contents: Contents) -> Iterator[tuple[str, Row, bool]]:
    for table in contents.rows("metrics"):
        yield from ((table.file, row, metrics.alive(row)) for row in table.rows if row.integer("pid") is not None)
    for table in contents.rows("stacks"):
        for row in table.rows:
            if row.text("process_type") in ("", "trainer") and row.fields.get("threads"):
                yield table.file, row, True


def _with(seen: Sightings, time: int, alive: bool, pid: int | None) -> Sightings:
    if alive:
        return Sightings(time if seen.alive is None else max(seen.alive, time), seen.dead, pid)
    return Sightings(seen.alive, time if seen.dead is None else min(seen.dead, time), pid)
