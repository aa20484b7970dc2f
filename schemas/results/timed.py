"""How far a worker came in its process groups, and where its time went: operations, and functions of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from schemas.members import Members
from schemas.results.words import Record

FunctionKind = Literal["python", "gpu", "collective", "os"]


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
