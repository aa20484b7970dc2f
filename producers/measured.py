"""Samples of metrics of nodes, out of whatever file: whose they are, when they were taken, in base units.

Readers say what stands in a file; here it becomes events. What stands for no value is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from producers.captures import Captures
from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.readers.system import node_named
from producers.rows import Row
from producers.samples import told_time
from producers.siblings import Values, places
from producers.times import APART, EARLIEST, HOUR, SECOND
from schemas.events import Metric, TimeSource, finite
from schemas.identity import Identity, shortened
from schemas.measures import Measure, based, is_blank, measure_of

BACK = 5 * SECOND
"""Samples of a node that lie so little before an earlier one were only written down late."""
LONGEST = 200
UNTIMED = "nothing tells when these samples were taken; a table {file, captured} would"
TWICE = "another value of the same metric, device and time; the first is kept"
BLANK = "values that stand for none, as DCGM's blanks and registers that read as all ones"
STRAY = "time lies a month from the others of the recording"
ZONELESS = "its times name no zone and lie beside the rest of the recording; they are taken for UTC"
_PLAIN = Measure("", "")
Seen = dict[tuple[str, str, str, str], set[int]]
"""Times of samples by worker, name, device and unit."""
_USUAL = frozenset(
    (
        *("nvidia", "smi", "csv", "dcgm", "exporter", "prom", "prometheus", "metrics", "gpu", "gpus", "txt", "log"),
        *("infiniband", "ib", "scrape", "scrapes", "sys", "class", "samples", "hardware", "node", "nodes", "out"),
    )
)
"""Words in the paths of such files that are no node's name."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One value: its line, its time (ns) as the file tells it, its node, device and name, and the unit beside it.

    ``counter`` if its source says that it counts up.
    """

    line: int
    time: int | None
    node: str
    device: str
    name: str
    value: float
    unit: str = ""
    counter: bool = False


class Measured(msgspec.Struct, frozen=True):
    """The samples of a file, and what could not be read. ``folders`` is what of its path may name the node, if not all.

    The last of those folders does so, where no known node does. ``zoneless`` if its times are local and name no zone.
    """

    file: str
    samples: list[Sample]
    unused: list[Unused] = []
    folders: str = ""
    zoneless: bool = False


def shown(text: str) -> str:
    """A name as it can be printed, bounded: labels hold whatever somebody wrote into them."""
    return shortened(
        text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text), LONGEST
    )


def observe(
    measured: Iterable[Measured], captures: Captures, owners: Owners, span: tuple[int, int]
) -> list[Observation | Unused]:
    """The metrics of every file, and notes on what was left out; ``span`` (ns) is that of the whole recording."""
    found: list[Observation | Unused] = []
    seen: Seen = {}
    files = [_File(one, captures.of(one.file), owners, span) for one in measured]
    unnamed = {file.path: file.values() for file in files if file.unnamed()}
    place_of = places(unnamed) if len(unnamed) > 1 else {}
    for file in files:
        found.extend(file.notes)
        found.extend(file.events(seen, shown(place_of.get(file.path, ""))))
    return found


class _File:
    """One file being turned into events."""

    def __init__(self, measured: Measured, captured: Sequence[Row], owners: Owners, span: tuple[int, int]) -> None:
        self._measured = measured
        self._owners = owners
        self._captured = max(captured, key=lambda row: row.time, default=None)
        self._span = span
        self._left_out: dict[str, tuple[int, int]] = {}
        self._identities: dict[str, Identity] = {}
        self._known = owners.workers.nodes(owners.home(measured.file))
        self._place = ""
        self.path = measured.file
        self.notes = measured.unused

    def unnamed(self) -> bool:
        """Whether nothing in the file, beside it or in its path names a node."""
        return bool(self._measured.samples) and not any(
            self._told_node(told) for told in {sample.node for sample in self._measured.samples}
        )

    def values(self) -> Values:
        """The values of which is known when they were taken."""
        shared = self._shared_time()
        found: Values = {}
        for sample in self._measured.samples:
            time = shared if sample.time is None else sample.time
            if time is not None and not is_blank(sample.name, sample.value):
                found.setdefault((sample.name, sample.device, sample.unit), {}).setdefault(time, sample.value)
        return found

    def events(self, seen: Seen, place: str) -> list[Observation | Unused]:
        """The events in order of their lines; ``seen`` are the samples of all files so far.

        ``place`` stands for the node where nothing names it.
        """
        self._place = place
        found: list[Observation | Unused] = []
        latest: dict[str, int] = {}
        for sample in self._measured.samples:
            event = self._event(sample)
            if event is None:
                continue
            identity = self._identity(sample.node)
            times = seen.setdefault((identity.key, event.name, event.device or "", event.unit), set())
            if event.time in times:
                self._leave_out(TWICE, sample.line)
                continue
            times.add(event.time)
            before = latest.get(identity.key, event.time)
            arrival = event.time if event.time < before - BACK else max(before, event.time)
            latest[identity.key] = arrival
            found.append(Observation(identity, arrival, event, self._measured.file, sample.line))
        found.extend(Unused(self._measured.file, line, why, count) for why, (line, count) in self._left_out.items())
        if self._measured.zoneless and latest and self._elsewhere():
            found.append(Unused(self._measured.file, 0, ZONELESS))
        return found

    def _elsewhere(self) -> bool:
        times = [sample.time for sample in self._measured.samples if sample.time is not None]
        start, end = self._span
        return end > EARLIEST and bool(times) and (max(times) < start or min(times) > end)

    def _leave_out(self, reason: str, line: int) -> None:
        first, count = self._left_out.get(reason, (line, 0))
        self._left_out[reason] = first, count + 1

    def _event(self, sample: Sample) -> Metric | None:
        if is_blank(sample.name, sample.value):
            self._leave_out(BLANK, sample.line)
            return None
        moment = self._time(sample)
        if moment is None:
            return None
        time, source, precision = moment
        if not self._near(time):
            self._leave_out(STRAY, sample.line)
            return None
        measure = measure_of(sample.name) or _PLAIN
        based_value, unit = based(sample.value, sample.unit, measure)
        value, nonfinite = finite(based_value)
        return Metric(
            time=time,
            time_source=source,
            precision_ns=precision,
            name=shown(sample.name),
            value=value,
            nonfinite=nonfinite,
            unit=unit,
            device=shown(sample.device) or None,
            counter=sample.counter or measure.counter,
        )

    def _time(self, sample: Sample) -> tuple[int, TimeSource, int] | None:
        """When a sample was taken: as the file says, else a table, else its path; else at some time or other.

        Null where nothing at all has a time.
        """
        if sample.time is not None:
            return sample.time, "captured", 0
        shared = self._shared_time()
        if shared is not None:
            return shared, "captured", 0
        self._leave_out(UNTIMED, sample.line)
        start, end = self._span
        if end == EARLIEST:
            return None
        return start, "inferred", min(max(end - start, 0), HOUR)

    def _shared_time(self) -> int | None:
        return self._captured.time if self._captured else told_time(self._measured.file)

    def _near(self, time: int) -> bool:
        # Where nothing else has a time, none can be far from it.
        return self._span[1] == EARLIEST or self._span[0] - APART <= time <= self._span[1] + APART

    def _identity(self, told: str) -> Identity:
        if told not in self._identities:
            node = self._told_node(told) or self._place
            self._identities[told] = Identity(
                job=self._owners.job(self._measured.file, node), node=node, rank_reason="node", process_type="sampler"
            )
        return self._identities[told]

    def _told_node(self, told: str) -> str:
        host = shown(told) or (self._captured.text("node") if self._captured else "")
        folders = self._measured.folders
        node = node_named(host, folders or self._measured.file, self._known, _USUAL)
        last = folders.rpartition("/")[0].rpartition("/")[2]
        return node or ("" if last.lower() in _USUAL else last)
