"""What was seen of one worker or node in a window: its lines, stacks, ends, hardware and alerts."""

from __future__ import annotations

from typing import Literal

from schemas.events import Frame
from schemas.results.words import Activity, Area, CausalRole, Record, Severity, Symptom


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
    and the vendor's ``action``. ``process_type`` says who of a node printed it, where no rank did: its kernel, its
    system, a trainer whose rank is not known.
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
