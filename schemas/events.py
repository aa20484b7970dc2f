"""What producers send: batches of events of one kind from one worker (DESIGN section 2).

Times are integer nanoseconds UTC. ``precision_ns`` says how far ``time`` may lie from the truth.
"""

from __future__ import annotations

import math
from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from schemas.identity import Identity

Int64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What ClickHouse and everybody else can hold; a larger number makes the record a dead letter at once."""

Place = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
"""A number from 0 on, -1 where there is none."""

TimeSource = Literal["printed", "inferred", "captured"]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What all events have; ``phase`` and ``iteration`` are stamped by the rank stage.

    They hold no cycles, and windows hold very many of them: the collector of garbage does not look at them.
    """

    time: Int64
    time_source: TimeSource = "captured"
    precision_ns: Int64 = 0
    phase: str = ""
    iteration: Int64 | None = None


class Log(Event, frozen=True, omit_defaults=True, kw_only=True):
    """One logical record of a log, multi-line ones merged with ``\\n``.

    ``offset`` is the byte at which it begins in ``file``, ``line`` its first line, from 1. ``process_type`` is that of
    the process that wrote it, where it is not the batch's: several write under one node's name.
    ``signature`` is stamped by the rank stage; ``parameters`` may be sent by a producer that knows them.
    """

    stream: str
    text: str
    level: str = ""
    file: str = ""
    offset: Int64 = 0
    line: Int64 = 0
    signature: str = ""
    parameters: tuple[str, ...] = ()
    process_type: str = ""


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """One stack frame; its identity is function and file, the line is for showing."""

    function: str
    file: str
    line: int = 0


MAIN_THREAD = "MainThread"
"""How Python calls the thread in which a program runs."""


class Stack(Event, frozen=True, omit_defaults=True, kw_only=True):
    """One thread's frames, outermost first; a failed sample has no frames and a ``failure``."""

    process_type: str
    pid: Int64
    thread: str = ""
    frames: list[Frame] = []
    active: bool | None = None
    failure: str = ""


Nonfinite = Literal["", "nan", "inf", "-inf"]


def finite(number: float) -> tuple[float | None, Nonfinite]:
    """A number as a metric says it: its value, or null and what it is instead."""
    if math.isfinite(number):
        return number, ""
    return None, "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"


class Metric(Event, frozen=True, omit_defaults=True, kw_only=True):
    """One sample; a value that is not finite is null with its name in ``nonfinite``.

    ``counter``: the value counts up from some beginning, so only what it gains means anything.
    """

    name: str
    value: float | None
    nonfinite: Nonfinite = ""
    unit: str = ""
    device: str | None = None
    pid: Int64 | None = None
    counter: bool = False


class Collective(Event, frozen=True, omit_defaults=True, kw_only=True):
    """One operation of a process group, observed when the dump was captured (``time``) or the tool wrote it down.

    ``tool`` is empty for flight recorders, else ``inspector`` or ``ras`` of NCCL; their groups are communicators, and
    their sequences others'. What ``ras`` counts is the last operation that was launched; it may have ended since.
    ``library`` is what a flight recorder calls it, ``nccl`` or ``gloo``. ``created`` is when the rank enqueued it,
    ``started`` when its device began it, both by the rank's clock; ``duration`` (ns) is how long it took there, with
    all waiting for others. ``size`` is in bytes, ``bandwidth`` that of the bus in GB/s, ``peer`` the rank that it
    sends to or receives from. What is 0, null or empty is not known.
    """

    group: str
    ranks: list[int] = []
    sequence: Int64
    operation: str
    state: Literal["enqueued", "started", "completed"]
    input_sizes: list[list[int]] = []
    output_sizes: list[list[int]] = []
    dtype: str = ""
    created: Int64 = 0
    point_to_point: bool = False
    tool: Literal["", "inspector", "ras"] = ""
    library: str = ""
    started: Int64 = 0
    duration: Int64 = 0
    size: Int64 = 0
    bandwidth: float | None = None
    algorithm: str = ""
    peer: Int64 | None = None


OTHERS = "(others)"
"""What a profile calls all functions of a kind together that it does not list by their names."""


class Profile(Event, frozen=True, omit_defaults=True, kw_only=True):
    """One function's or operation's share of a profile; ``share`` of the critical path, 0 to 1.

    All of one profile have its ``time``, its ``duration`` (ns) and its number of annotated ``steps``, which its
    profiler counts from ``first_step`` on. ``typical`` is the median over those steps of what the function holds of the
    critical path of one, ``unrest`` the median deviation from it; like ``mean`` and ``spread``, of one call, they are
    in ``unit``. No function that the producer left out has a larger share than ``unlisted``. ``world_size`` is how
    many ranks the profiled job had. What is 0 or null is not known.
    """

    name: str
    kind: Literal["python", "gpu", "collective", "os"]
    share: float
    mean: float
    spread: float
    count: int
    unit: str = "s"
    typical: float = 0.0
    unrest: float = 0.0
    duration: Int64 = 0
    steps: Int64 = 0
    first_step: Int64 | None = None
    world_size: Int64 | None = None
    unlisted: float = 0.0
    recorded: str = ""


class Timeline(Event, frozen=True, omit_defaults=True, kw_only=True):
    """What one worker did in one training step (``iteration``): its operations as columns, in order of their starts.

    ``operations`` are places in ``names`` (``forward-compute``, ``forward-send``, ``grads-reduce-scatter`` …; which of
    them are a worker's own work is not said here). ``starts`` count in ns from a moment that all workers of the step
    share, ``durations`` are in ns and hold all waiting for others. ``microbatches`` and model ``chunks`` are -1 where
    an operation has none or it is not known; these two columns may be left out as a whole. ``left_out`` counts the
    step's operations that are not there, and ``untimed`` are places of those of which start or duration is not known:
    their starts only order them, their durations say nothing. Columns of unequal length and places outside ``names``
    are refused.

    ``members`` is set where operations are segments between collectives that all ranks join (``compute``, and
    ``all-reduce`` or the like at its end; ``microbatches`` number the segments): how many ranks that are. Then
    ``iteration`` is the profiler's number of the step, not the training's, and ``recorded`` what it followed.
    """

    names: list[str]
    operations: list[Int64]
    starts: list[Int64]
    durations: list[Int64]
    microbatches: list[Place] = []
    chunks: list[Place] = []
    left_out: Int64 = 0
    members: Int64 = 0
    recorded: str = ""
    untimed: list[Int64] = []

    def __post_init__(self) -> None:
        count = len(self.operations)
        if not count == len(self.starts) == len(self.durations):
            raise ValueError("the columns of a timeline are not of equal length")
        if {len(self.microbatches), len(self.chunks)} - {0, count}:
            raise ValueError("the columns of a timeline are not of equal length")
        if any(place >= len(self.names) for place in set(self.operations)):
            raise ValueError("an operation of a timeline has no name")
        if any(place >= count for place in self.untimed):
            raise ValueError("an untimed operation of a timeline is not there")


class Alert(Event, frozen=True, omit_defaults=True, kw_only=True):
    """An alarm of the platform (Xid, switch, storage, scheduler): of the batch's node, or of what it names.

    ``status`` is *firing* until another one of the same name, place and ``since`` says *resolved*; empty where it tells
    of something that happened once. ``since`` is when it began, where that is not its ``time``; ``source`` is who tells
    it. ``switch`` and ``storage`` are names as the source has them.
    """

    name: str
    text: str
    severity: str = ""
    device: str | None = None
    switch: str = ""
    storage: str = ""
    source: str = ""
    status: Literal["", "firing", "resolved"] = ""
    since: Int64 | None = None


class Heartbeat(Event, frozen=True, omit_defaults=True, kw_only=True):
    """The producer of a node lives and sees these processes; it goes on after they end."""

    pids: list[Int64] = []


class Topology(Event, frozen=True, omit_defaults=True, kw_only=True):
    """A worker announces itself: the batch's identity holds under this process id.

    ``switch`` is the one that its node hangs under, with those above it, the uppermost first (``s0.leaf3``). A node's
    own word of that has the process id 0. So has a worker's word on its clock: its printed times were set back by
    ``shifted_ns``, since they show another zone than others'.
    """

    pid: Int64
    process_type: str = "trainer"
    world_size: int | None = None
    switch: str = ""
    shifted_ns: int = 0


class Job(Event, frozen=True, omit_defaults=True, kw_only=True):
    """What is known of a job; secrets are removed before it is sent.

    ``model`` is its name, ``model_sizes`` what it measures; ``launch``, ``flags``, ``scale``, ``labels``, ``data`` and
    ``code`` are those of a ``JobDescription``. ``left_out`` counts by reason what is not sent: secrets, values that are
    each process's own, what is too much. ``source`` says what told it: a file, or a form of log lines.
    """

    framework: str = ""
    versions: dict[str, str] = {}
    model: str = ""
    layout: dict[str, int] = {}
    command: list[str] = []
    environment: dict[str, str] = {}
    hyperparameters: dict[str, str] = {}
    world_size: int | None = None
    model_sizes: dict[str, str] = {}
    code: dict[str, str] = {}
    data: dict[str, str] = {}
    launch: dict[str, str] = {}
    flags: dict[str, str] = {}
    scale: dict[str, str] = {}
    labels: dict[str, str] = {}
    left_out: dict[str, int] = {}
    source: str = ""


E = TypeVar("E", bound=Event)


class Batch(msgspec.Struct, Generic[E], frozen=True, omit_defaults=True, kw_only=True):
    """Events of one kind from one worker; ``(producer, boot, seq)`` names it for good."""

    producer: str
    boot: str
    seq: Int64
    identity: Identity
    events: list[E]


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """Time itself, appended about once a second to every partition of every raw topic."""

    time: Int64
