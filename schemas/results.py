"""What rank and job stage say: windows, progress, late, templates, anomalies, merged stacks, notices, incidents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from schemas.events import Frame, Int64, Timeline
from schemas.identity import Identity
from schemas.jobs import JobDescription
from schemas.members import Members
from schemas.packs import GaugePack, SeriesPack

Symptom = Literal["hang", "crash", "slowdown", "numerics", "memory"]
Area = Literal[
    "compute", "data", "checkpoint", "network", "hardware", "memory", "code", "configuration", "workload", "unknown"
]
Verdict = Literal["supported", "ambiguous", "unavailable"]
Severity = Literal["critical", "warning", "info"]
Layer = Literal["stack", "log", "metric", "collective", "profile", "hardware", "platform"]
Axis = Literal["space", "time", "cross-job"]
Activity = Literal["communication", "engine", "data", "checkpoint", "idle", "own", "unobserved"]
CausalRole = Literal["candidate", "cascade", "confirmation", "advice"]
ScopeKind = Literal["rank", "node", "device", "nic", "group", "stage", "switch", "job", "fleet"]


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Base of all derived records."""


class SignatureCount(Record, frozen=True, omit_defaults=True, kw_only=True):
    """How often one worker printed lines of one shape in a window; ``example`` is the first of them.

    ``predefined`` is the id of their predefined template, the same in every job; ``chatter`` is the kind of lines that
    one rank or the control plane prints for all (progress, http, checkpoint), or *limited*: others were left out.
    """

    signature: str
    masked: str
    count: int
    first: int
    last: int
    example: str = ""
    predefined: str = ""
    chatter: str = ""


class Series(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A metric by iteration, columns of equal length; null values stand in ``nonfinite`` as (iteration, what).

    Columns of different length are refused.
    """

    name: str
    iterations: list[int]
    times: list[int]
    values: list[float | None]
    unit: str = ""
    nonfinite: list[tuple[int, str]] = []

    def __post_init__(self) -> None:
        if not len(self.iterations) == len(self.times) == len(self.values):
            raise ValueError("columns of different length")


class Gauge(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A sampled metric over a window; without a device it is the process's own."""

    name: str
    count: int
    mean: float
    minimum: float
    maximum: float
    first: float
    last: float
    unit: str = ""
    device: str | None = None


class Gauges(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Sampled metrics over a window, columns of equal length, sorted by name and device; each pair stands there once.

    The device of what is the process's own is empty, so this stands first of its name. Columns of different length are
    refused.
    """

    names: list[str] = []
    devices: list[str] = []
    units: list[str] = []
    counts: Sequence[Int64] = []
    means: Sequence[float] = []
    minima: Sequence[float] = []
    maxima: Sequence[float] = []
    firsts: Sequence[float] = []
    lasts: Sequence[float] = []

    def __post_init__(self) -> None:
        size = len(self.names)
        if not (
            size == len(self.devices) == len(self.units) == len(self.counts) == len(self.means)
            and size == len(self.minima) == len(self.maxima) == len(self.firsts) == len(self.lasts)
        ):
            raise ValueError("columns of different length")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Gauge]:
        return map(self._row, range(len(self.names)))

    def own(self, name: str) -> Gauge | None:
        """The process's own gauge of that name, or null."""
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name or self.devices[at]:
            return None
        return self._row(at)

    def _row(self, at: int) -> Gauge:
        return Gauge(
            name=self.names[at],
            device=self.devices[at] or None,
            unit=self.units[at],
            count=self.counts[at],
            mean=self.means[at],
            minimum=self.minima[at],
            maximum=self.maxima[at],
            first=self.firsts[at],
            last=self.lasts[at],
        )


def gauges_of(rows: Sequence[Gauge]) -> Gauges:
    """The gauges as columns; of those of one name and device the last is kept."""
    found = {(row.name, row.device or ""): row for row in rows}
    keys = sorted(found)
    ordered = [found[key] for key in keys]
    return Gauges(
        names=[name for name, _ in keys],
        devices=[device for _, device in keys],
        units=[row.unit for row in ordered],
        counts=[row.count for row in ordered],
        means=[row.mean for row in ordered],
        minima=[row.minimum for row in ordered],
        maxima=[row.maximum for row in ordered],
        firsts=[row.first for row in ordered],
        lasts=[row.last for row in ordered],
    )


def _unpacked(pack: GaugePack) -> Gauges:
    names = pack.names
    counts, columns = pack.columns()
    means, minima, maxima, firsts, lasts = map(list, columns)
    return Gauges(
        names=names.names,
        devices=names.devices,
        units=names.units,
        counts=list(counts),
        means=means,
        minima=minima,
        maxima=maxima,
        firsts=firsts,
        lasts=lasts,
    )


class StackSpan(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Consecutive samples of one thread at the same place, ``first`` to ``last``.

    ``identity`` hashes functions and files, ``position`` the lines too: equal positions are no progress. ``outer``
    counts the frames further out that are not among ``frames``.
    """

    process_type: str
    pid: int
    thread: str
    activity: Activity
    identity: str
    position: str
    frames: list[Frame]
    first: int
    last: int
    samples: int
    failure: str = ""
    outer: int = 0


class Fatal(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A line that means trouble by itself. A *cascade* names nobody: its cause lies elsewhere.

    ``template`` is the id of its predefined template, ``rule`` the family of that; ``values`` were extracted from the
    line: a code, a PCI id, a process, a group and its sequence numbers, the function that an error was ``caught_in``,
    and the vendor's ``action``. ``process_type``
    says who of a node printed it, where no rank did: its kernel, its system, a trainer whose rank is not known.
    """

    time: int
    rule: str
    role: CausalRole
    symptom: Symptom
    area: Area
    text: str
    precision_ns: int = 0
    exception: str = ""
    signature: str = ""
    template: str = ""
    values: dict[str, str] = {}
    process_type: str = ""


class Exit(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A worker's end as a launcher reports it; ``requested`` if the launcher itself had sent the signal."""

    time: int
    pid: int
    rank: int | None = None
    local_rank: int | None = None
    code: int | None = None
    signal: str = ""
    requested: bool = False


class Stop(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A word that a job, or what of it runs on a node or as a rank, is told to end from outside.

    ``word`` is what is ended: the *job*; a *step* of it, which may also be because of a task that has failed; what an
    *agent* runs on its node; a *rank*; one by a signal that mostly asks to *save*.
    What may be why is told as well: a *task* that ended by itself, a *node* that failed.
    """

    time: int
    precision_ns: int = 0
    word: Literal["job", "step", "agent", "rank", "save", "task", "node"]
    said: str = ""


class Drift(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A verified shift of a worker's own series: medians before and after ``iteration``."""

    metric: str
    iteration: int
    time: int
    before: float
    after: float
    steps: int


class HardwareChange(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A metric of a node's hardware that changed in a way that means something.

    ``kind`` is one word over all exporters (``port_state``, ``xid``), ``name`` the metric's own name. It had the value
    ``before`` when it was last seen, ``precision_ns`` earlier than ``time``, and was ``after`` at ``time``. The device
    is a PCI id in the kernel's form, an adapter with its port (``mlx5_0:1``), or what else its source calls it.
    """

    time: int
    kind: str
    name: str
    device: str
    before: float
    after: float
    unit: str = ""
    precision_ns: int = 0


class PlatformAlert(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What the platform told of a node, a device of it, a switch or a storage, ``count`` times in a window.

    It began ``since`` and was told at ``time``; ``status`` as of the event ``Alert``. Texts are shortened.
    """

    time: int
    since: int
    name: str
    text: str
    severity: Severity = "info"
    source: str = ""
    device: str = ""
    switch: str = ""
    storage: str = ""
    status: Literal["", "firing", "resolved"] = ""
    precision_ns: int = 0
    count: int = 1


class CollectiveState(Record, frozen=True, omit_defaults=True, kw_only=True):
    """How far one rank has come in one process group, seen when its dump was captured.

    Sequences count collectives only; ``operation`` and ``enqueued_at`` are of the last enqueued one. ``outstanding``
    also counts a send or receive that waits for its peer; ``shows_sends`` whether the dump would show any of those,
    ``only_sends`` whether it shows nothing else of the group: then sequences count these. The ``oldest`` operations are
    the first that the rank has enqueued and not completed, -1 where there is none; the ``shape`` is data type and
    sizes, ``oldest_started`` whether its device was seen to have begun it. ``completed_operation`` is the last that was
    completed. ``awaits`` has, of the sends and receives that are not completed, who sends to whom, numbered as their
    names do, and when the first was enqueued. ``inferred`` is whether nobody told when the dump was captured. Of a big
    group ``runs`` stand for the ``ranks``; ``members`` are either. ``printed`` is whether no dump shows it but the
    rank's own watchdog printed it (``captured`` is when): then sequences are those of other counters, and what the rank
    waits for in other groups is not shown. Where ``completed_known`` is false only launches were counted, as by NCCL's
    RAS: ``last_completed`` is -1, and whether anything is outstanding nobody knows.
    """

    group: str
    captured: int
    ranks: list[int]
    last_enqueued: int
    last_completed: int
    operation: str
    enqueued_at: int
    outstanding: bool = False
    shows_sends: bool = False
    only_sends: bool = False
    oldest: int = -1
    oldest_operation: str = ""
    oldest_shape: str = ""
    oldest_at: int = 0
    oldest_started: bool = False
    completed_operation: str = ""
    awaits: list[tuple[int, int, int]] = []
    inferred: bool = False
    runs: list[tuple[int, int, int]] = []
    printed: bool = False
    completed_known: bool = True

    @property
    def members(self) -> Sequence[int]:
        """The ranks of the group, in its order."""
        return Members(self.runs) if self.runs else self.ranks


class OperationTimes(Record, frozen=True, omit_defaults=True, kw_only=True):
    """How long a rank's operations of one kind and size (bytes) took in one group, as columns by ``sequence``.

    ``durations`` are in ns and hold all waiting for others, ``times`` are when they were seen; ``members`` is how many
    ranks the group has, 0 where that is not known, ``peer`` the rank that sends and receives are with.
    """

    group: str
    operation: str
    sequences: list[int]
    durations: list[int]
    times: list[int]
    size: int = 0
    members: int = 0
    peer: int | None = None


FunctionKind = Literal["python", "gpu", "collective", "os"]


class FunctionShare(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A function of a sketch, as the events ``Profile`` have it; all times in seconds."""

    name: str
    kind: FunctionKind
    share: float
    mean: float = 0.0
    spread: float = 0.0
    count: int = 0
    typical: float = 0.0
    unrest: float = 0.0


class Sketch(Record, frozen=True, omit_defaults=True, kw_only=True):
    """One profile of a worker: the functions that hold most of its critical path, the largest share first.

    ``captured`` is its time, ``duration`` (ns) what it covers, in so many ``steps``, counted by its profiler from
    ``first_step`` on. No function that was left out has a larger share than ``unlisted``. ``recorded`` are the kinds of
    calls that its profiler recorded. ``inferred`` is whether nobody told when it was taken.
    """

    captured: int
    functions: list[FunctionShare]
    duration: int = 0
    steps: int = 0
    first_step: int | None = None
    world_size: int | None = None
    unlisted: float = 0.0
    recorded: str = ""
    inferred: bool = False

    @property
    def step_s(self) -> float:
        """How long a step of it took, in seconds; 0 where it knows no steps."""
        return self.duration / self.steps / 1e9 if self.steps else 0.0


class Window(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What the rank stage says of one worker in one window ``[start, end)``.

    ``announced`` are (pid, process type); ``stops`` are the first words of each kind by which it was told to end,
    ``stopped`` is when the first came that speaks of the job or of a launcher, ``launcher`` whether a launcher printed
    anything; ``finished`` is when the worker said that training was done, ``phase_time`` when one of its lines last
    said in which phase it is;
    ``devices`` are the PCI ids of what it said that it uses, ``sampled_devices`` those of what its processes sampled;
    ``dropped`` counts by reason what was left out or re-timed. ``tail`` is the order of its lines: the last pairs of
    (place in ``signatures``, iteration), each where it first came, chatter left out. ``timelines`` are those of the
    last steps for which there is room, ``sketches`` the profiles that were taken, in order of their times. Series and
    gauges are written as ``series_pack`` and ``gauge_pack``. How they were said before is read all the same, ``series``
    and ``gauges`` row by row, ``gauge_columns`` without packing: ask for ``reported`` and ``measured``.
    ``described`` is what the worker told of its job in the window.
    The line of ``iteration`` printed no time of its own if it may have come up to ``iteration_within_ns`` later than
    ``iteration_time``. ``alerts`` are what the platform told of the node, ``switch`` is the one that it hangs
    under, ``shifted_ns`` by how much the worker's printed times were set back.
    """

    id: str
    identity: Identity
    start: int
    end: int
    phase: str = ""
    phase_time: int | None = None
    iteration: int | None = None
    iteration_time: int | None = None
    iteration_within_ns: int = 0
    total_iterations: int | None = None
    log_records: int = 0
    last_log: int | None = None
    pids: list[int] = []
    heartbeats: int = 0
    world_size: int | None = None
    layout: dict[str, int] = {}
    devices: list[str] = []
    sampled_devices: list[str] = []
    announced: list[tuple[int, str]] = []
    signatures: list[SignatureCount] = []
    tail: list[tuple[int, int | None]] = []
    series: list[Series] = []
    gauges: list[Gauge] = []
    gauge_columns: Gauges = Gauges()
    series_pack: SeriesPack | None = None
    gauge_pack: GaugePack | None = None
    stacks: list[StackSpan] = []
    fatals: list[Fatal] = []
    exits: list[Exit] = []
    stopped: int | None = None
    stops: list[Stop] = []
    launcher: bool = False
    finished: int | None = None
    drifts: list[Drift] = []
    collectives: list[CollectiveState] = []
    operations: list[OperationTimes] = []
    timelines: list[Timeline] = []
    hardware: list[HardwareChange] = []
    sketches: list[Sketch] = []
    described: JobDescription | None = None
    alerts: list[PlatformAlert] = []
    switch: str = ""
    shifted_ns: int = 0
    dropped: dict[str, int] = {}

    @property
    def reported(self) -> list[Series]:
        """The series, in whichever way they are said."""
        if self.series_pack is None:
            return self.series
        return [
            Series(name=name, unit=unit, iterations=iterations, times=times, values=values, nonfinite=nonfinite)
            for name, unit, iterations, times, values, nonfinite in self.series_pack.rows()
        ]

    @property
    def measured(self) -> Gauges:
        """The gauges, in whichever way they are said."""
        if self.gauge_pack is not None:
            return _unpacked(self.gauge_pack)
        return gauges_of(self.gauges) if self.gauges and not self.gauge_columns else self.gauge_columns


class Progress(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Partition number ``partition`` of the raw topics is through all windows that end at or before ``end``.

    ``skipped`` is the recorded decision to go on without it: its ranks are unavailable, never missing.
    """

    partition: int
    end: int
    skipped: bool = False


class Late(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Events that stood behind the tick that closed their window; counted and kept by reference."""

    id: str
    topic: str
    partition: int
    producer: str
    boot: str
    seq: int
    identity: Identity
    window_end: int
    events: int


class Template(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A log template of a job. ``aliases`` are the ids it had before it generalised.

    The id is a hash of the text, or, of lines that the field knows, a name that never changes (``xid.79``).
    """

    id: str
    job: str
    text: str
    signatures: list[str]
    first_seen: int
    aliases: list[str] = []


class Suspect(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A worker that stands apart; never a root cause. ``score`` is between 0 and 1.

    ``kind`` is what it is while its peers wait: a ``blocker`` (it does not wait), an ``early_exit`` (its process has
    ended), ``mismatched`` (it enqueued something else, or in another order) or a ``stopped_device`` (which completes
    nothing); of who printed an error ``caught``, where what caught it printed it; empty where nothing says it. A place
    without a rank may be a ``switch``.
    """

    rank: int | None
    node: str
    score: float
    why: str
    role: str = ""
    coordinates: dict[str, int | list[int]] = {}
    device: str | None = None
    kind: str = ""
    switch: str = ""


class Evidence(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What one detector saw in one window, and what the peers showed."""

    layer: Layer
    detector: str
    start: int
    end: int
    text: str
    peers: str = ""


class Anomaly(Record, frozen=True, omit_defaults=True, kw_only=True):
    """One detector's finding in one closed window of one job.

    ``suspects`` are the ranks it singles out, ``victims`` those it shows waiting or failing with others,
    ``onset`` the earliest time that the evidence supports, within ``precision_ns`` to either side. ``grounds`` is the
    detector's reason, a stable word. ``templates`` are signatures of lines, or ids of templates where the axis is
    ``cross-job``; ``library`` is the version of the learned library that it rests on. ``about`` are the ranks that a
    supporting finding speaks of: it accuses none of them. ``metric`` is the timer, without its unit, the sampled
    metric or the alert that it rests on; empty where it rests on no one.
    """

    id: str
    detector: str
    version: int
    config: str
    job: str
    attempt: str
    start: int
    end: int
    onset: int
    axis: Axis
    layer: Layer
    symptom: Symptom
    area: Area
    grounds: str
    text: str
    severity: Severity
    precision_ns: int = 0
    peers: str = ""
    iteration: int | None = None
    phase: str = ""
    suspects: list[Suspect] = []
    victims: list[int] = []
    unobserved: list[int] = []
    templates: list[str] = []
    library: str = ""
    about: list[int] = []
    metric: str = ""


class Notice(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An early word on a fatal line, sent on arrival: it names nobody, attribution is pending."""

    id: str
    notification_key: str
    job: str
    attempt: str
    time: int
    rule: str
    text: str


class Ranks(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Ranks as ranges, ``0-4,6-7``."""

    ranks: str = ""


class Scope(Record, frozen=True, omit_defaults=True, kw_only=True):
    """The smallest place that covers the evidence.

    ``devices``, parallel and worker ``groups`` and the ``switches`` that its nodes hang under are listed as far as they
    are known, the first of each; ``left_out`` counts the others.
    """

    kind: ScopeKind
    name: str
    ranks: str = ""
    nodes: list[str] = []
    devices: list[str] = []
    groups: list[str] = []
    switches: list[str] = []
    left_out: int = 0


class SuspiciousTemplate(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A template that stands out, a result of its own even when nobody is named.

    ``absent``: nobody prints it though healthy jobs do; ``first_seen`` is then since when, the beginning of training.
    ``elsewhere`` are jobs of the library that print it, none of them in the baseline.
    """

    id: str
    text: str
    first_seen: int
    ranks: str
    axis: Axis
    absent: bool = False
    elsewhere: list[str] = []


class MergedGroup(Record, frozen=True, omit_defaults=True, kw_only=True):
    """The ranks of a class whose threads stand in one place, as ranges; ``place`` is where, in words.

    ``minority``: most of the class stand elsewhere. ``frames`` are outermost first, as the lowest rank has them,
    without the ``outer`` ones further out. All were seen at their lines ``samples`` times or more from ``since`` on.
    """

    ranks: str
    activity: Activity
    place: str
    frames: list[Frame] = []
    outer: int = 0
    minority: bool = False
    since: int = 0
    samples: int = 0


class Unobserved(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Ranks, as ranges, of which nobody can say where they are, and why."""

    ranks: str
    reason: str


class MergedClass(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Threads that can be compared: of one process type, role and name, whose numbers are ``#``.

    ``observed`` are ranks as ranges, ``groups`` where they are, the largest first; ``rest`` counts the groups that are
    left out, ``rest_ranks`` are theirs. ``text`` says it in one line, where it says anything.
    """

    process_type: str
    thread: str
    role: str = ""
    observed: str = ""
    unobserved: list[Unobserved] = []
    groups: list[MergedGroup] = []
    rest: int = 0
    rest_ranks: str = ""
    text: str = ""


class MergedStacks(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Where the threads of all ranks of an attempt stand while it stands still, as of the window ``[start, end)``.

    ``since`` is when it last did anything. The classes that train come first; ``rest`` counts those that are left out.
    """

    id: str
    job: str
    attempt: str
    start: int
    end: int
    since: int
    iteration: int | None = None
    phase: str = ""
    classes: list[MergedClass] = []
    rest: int = 0


class JobIncident(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An incident of one job, as an incident of several jobs refers to it."""

    job: str
    attempt: str
    incident: str


class Incident(Record, frozen=True, omit_defaults=True, kw_only=True):
    """One fault of one attempt, as of ``published`` (the time of the window that closed), or of several jobs.

    ``id`` never changes; each change is a new ``revision``. ``reason`` is why blame decided as it did; ``library`` the
    version of the learned library that its templates were held against. ``stacks`` is where the ranks stood while the
    job stood still, before it failed of that: the classes of threads that say anything, without frames.
    ``clocks`` says whose times were corrected. ``merged_into`` is the incident that it proved to be part of. ``labels``
    are the job's own, by which staff silence; ``recurs`` counts the incidents of earlier attempts of the job that were
    like it, ``series`` is the id of the first of these, empty where there were none. ``notification_key`` is that of
    the first revision: of the series, where it was seen by then. One of several jobs of a ``cluster`` has the job
    ``-``, no attempt, and as ``members`` those that it is made of.
    """

    id: str
    revision: int
    published: int
    job: str
    attempt: str
    symptom: Symptom
    area: Area
    severity: Severity
    verdict: Verdict
    reason: str
    status: Literal["open", "resolved"]
    onset: int
    summary: str
    next_step: str
    scope: Scope
    iteration: int | None = None
    phase: str = ""
    suspects: list[Suspect] = []
    victims: Ranks = Ranks()
    missing: Ranks = Ranks()
    unobserved: Ranks = Ranks()
    templates: list[SuspiciousTemplate] = []
    evidence: list[Evidence] = []
    notification_key: str = ""
    merged_into: str = ""
    resolution: str = ""
    library: str = ""
    stacks: list[MergedClass] = []
    cluster: str = ""
    labels: dict[str, str] = {}
    recurs: int = 0
    members: list[JobIncident] = []
    clocks: list[str] = []
    series: str = ""


class DeadLetter(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A record that could not be read: its bytes unchanged, where it stood, and why."""

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    key: bytes
    value: bytes
    headers: dict[str, str] = {}


class Snapshot(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A stage's state at a window boundary, with the offsets from which to read on.

    ``config`` names the configuration under which it was written; under another it means something else.
    """

    stage: str
    partition: int
    end: int
    config: str
    offsets: dict[str, int]
    state: msgspec.Raw
