"""What is known of one rank of an attempt: processes, devices, latest stacks, signs of life, its end."""

from __future__ import annotations

import msgspec

from schemas.events import MAIN_THREAD
from schemas.identity import Identity
from schemas.results import Activity, Exit, StackSpan, Window
from streams.rhythm import Rhythm, Rounds
from streams.stacks import joined, telling
from streams.stops import Lives, failed

KEPT_PIDS = 8
KEPT_DEVICES = 64
WORD_NS = 2_000_000_000
"""How far the word that training is done may lie from the last iteration: some print it to the second."""
WAITED_NS = 8_000_000_000
SAMPLES_KEPT_NS = 60_000_000_000
KEPT_FAILURES = 8
LONGEST_FAILURE = 300
WAITING: frozenset[Activity] = frozenset({"communication", "engine"})
"""What a rank is in while it waits for others, as far as a stack can tell."""


class Member(msgspec.Struct, kw_only=True, gc=False):
    """One rank. ``last_life`` is the latest time at which anything showed its main process alive.

    ``sampled`` is whether its process was ever seen by anything but its own lines;
    ``sighted`` is when its node's producer last saw the process, null if it never did, ``sightings`` how regularly it
    does and ``rounds`` how that one's rounds list it; ``samples`` is how regularly it is measured or its stack taken,
    ``spoke`` how regularly it prints;
    ``zombie`` when it was first seen dead, null once it shows life again. ``announced`` are the processes that said
    they are the rank's trainer, the latest last. ``spans`` has the latest sample of each thread by
    ``process type|pid|thread``; ``moved`` are the times of the latest two samples of the main thread that show it at
    different places. ``failures`` has the time and the reason of the latest sample that failed, by process type.
    ``threads`` stand for ``spans`` where the view is written down (``streams/folding.py``).
    """

    identity: Identity
    first_seen: int
    last_life: int
    last_log: int | None = None
    pids: dict[int, str] = {}
    announced: list[int] = []
    devices: list[str] = []
    sampled_devices: list[str] = []
    exit: Exit | None = None
    requested: int | None = None
    finished: int | None = None
    sampled: bool = False
    sighted: int | None = None
    sightings: Rhythm = Rhythm()
    rounds: Rounds = Rounds()
    samples: Rhythm = Rhythm()
    spoke: Rhythm = Rhythm()
    zombie: int | None = None
    moved: tuple[int, int] | None = None
    spans: dict[str, StackSpan] = {}
    threads: list[tuple[int, int, int, int, int]] = []
    failures: dict[str, tuple[int, str]] = {}

    def take_window(self, summary: Window) -> bool:
        """Take in what the rank did in a window; returns whether it proves to be another than it was thought to be."""
        before = self.identity
        if summary.identity != before:
            self.identity = _richer(before, summary.identity)
        if summary.stacks or summary.announced:
            self.take_processes(summary)
        self.take_devices(summary)
        if summary.measured or any(span.frames for span in summary.stacks):
            self.sampled = True
            self.samples = self.samples.seen(summary.end)
        if summary.last_log is not None:
            self.last_log = max(self.last_log or 0, summary.last_log)
            self.spoke = self.spoke.seen(summary.last_log)
        self._take_finish(summary)
        self._take_life(summary)
        return self.identity != before

    def _take_finish(self, summary: Window) -> None:
        if summary.finished is not None:
            self.finished = min(summary.finished, self.finished or summary.finished)
        if self.finished is not None and (summary.iteration_time or 0) > self.finished + WORD_NS:
            self.finished = None

    def _take_life(self, summary: Window) -> None:
        dead = _dead(summary)
        life = _last_life(summary, dead=dead)
        if life is not None:
            self.last_life = max(self.last_life, life)
        if dead:
            self.zombie = summary.start if self.zombie is None else self.zombie
        elif life is not None:
            self.zombie = None

    def take_exit(self, exit_: Exit) -> None:
        """Take in how a launcher says that it ended: what is known to be of this rank counts before what may be."""
        if exit_.code is None:
            self.requested = min(exit_.time, self.requested or exit_.time)
        elif self.exit is None or exit_.rank is not None:
            self.exit = exit_

    def take_sighting(self, time: int) -> None:
        """Take in that its node's producer saw the process."""
        self.last_life = max(self.last_life, time)
        self.sighted = max(self.sighted or time, time)
        self.sightings = self.sightings.seen(time)

    def take_processes(self, summary: Window) -> None:
        """Take in which processes were sampled or announced themselves in a window."""
        self.remember(summary.stacks)
        seen = {span.pid: span.process_type for span in summary.stacks} | dict(summary.announced)
        mains = {pid for pid, kind in seen.items() if kind == "trainer" and pid} | set(self.pids)
        self.pids = dict.fromkeys(sorted(mains)[-KEPT_PIDS:], "trainer")
        said = {pid for pid, kind in summary.announced if kind == "trainer" and pid}
        self.announced = [*(pid for pid in self.announced if pid not in said), *sorted(said)][-KEPT_PIDS:]

    def take_devices(self, summary: Window) -> None:
        """Take in which devices its lines told and which were sampled by its processes in a window."""
        # Mostly they are those that are known, in order.
        if summary.devices and summary.devices != self.devices:
            self.devices = sorted({*self.devices, *summary.devices})[:KEPT_DEVICES]
        if summary.sampled_devices and summary.sampled_devices != self.sampled_devices:
            self.sampled_devices = sorted({*self.sampled_devices, *summary.sampled_devices})[:KEPT_DEVICES]

    def remember(self, spans: list[StackSpan]) -> None:
        """Take in a window's samples; a thread that is no longer sampled has ended."""
        self._remember_failures([span for span in spans if not span.frames])
        usable = [span for span in spans if span.frames]
        if not usable:
            return
        for span in usable:
            key = key_of(span)
            before = self.spans.get(key)
            if before is not None and before.position != span.position and _is_trainer(span):
                self.moved = (before.last, span.first)
            self.spans[key] = joined(before, span) if before and before.position == span.position else span
        newest = max((span.last for span in self.spans.values()), default=0)
        # Of equal ones the first are kept: in the order in which a view that was written down is read back.
        recent = [(key, span) for key, span in sorted(self.spans.items()) if span.last > newest - SAMPLES_KEPT_NS]
        self.spans = dict(recent[at] for at in telling([span for _, span in recent]))

    def _remember_failures(self, failed: list[StackSpan]) -> None:
        for span in failed:
            latest = (span.last, span.failure[:LONGEST_FAILURE] or "no frames")
            self.failures[span.process_type] = max(latest, self.failures.get(span.process_type, latest))
        if failed:
            latest_kinds = sorted(self.failures, key=lambda kind: (self.failures[kind], kind))[-KEPT_FAILURES:]
            self.failures = {kind: self.failures[kind] for kind in sorted(latest_kinds)}

    def main_span(self, since: int) -> StackSpan | None:
        """The main thread's latest sample from ``since`` on, or null.

        Children of a rank may be taken for trainers, too: compilers, writers of metrics. The process that announced
        itself last counts before them, and one that waits for others before one that does not: then the rank waits.
        """
        recent = [span for span in self.spans.values() if span.last >= since and _is_trainer(span)]
        if len(recent) < 2:
            return recent[0] if recent else None
        latest = next((pid for pid in reversed(self.announced) if any(span.pid == pid for span in recent)), None)
        told = [span for span in recent if latest in (None, span.pid)]
        return max(told, key=lambda span: (span.activity in WAITING, span.last, span.pid))

    @property
    def main_pid(self) -> int | None:
        """The pid of the rank's own process, the trainer, where known."""
        return max((pid for pid, kind in self.pids.items() if kind == "trainer"), default=None)

    @property
    def has_ended(self) -> bool:
        """Whether a launcher has said that it ended or was ended, or its process was last seen dead."""
        return self.exit is not None or self.requested is not None or self.zombie is not None


def first_seen(summary: Window) -> Member:
    """A rank that had not been seen before the window."""
    life = _last_life(summary, dead=_dead(summary))
    return Member(identity=summary.identity, first_seen=summary.start, last_life=life or summary.start)


def key_of(span: StackSpan) -> str:
    """What tells the threads of a rank apart."""
    return f"{span.process_type}|{span.pid}|{span.thread}"


def lives_of(members: dict[int, Member], expected: frozenset[int], now: int) -> Lives:
    """How long the ranks and what runs of them on each node have lived, and on which nodes one failed."""
    by_node: dict[str, int] = {}
    failing = set()
    for member in members.values():
        node = member.identity.node
        by_node[node] = max(member.last_life, by_node.get(node, 0))
        if member.exit is not None and failed(member.exit):
            failing.add(node)
    lives = sorted((member.last_life for member in members.values()), reverse=True)
    lived = lives[(len(lives) - 1) // 2] if lives else 0
    return Lives(now=now, ranks=expected, by_node=by_node, lived=lived, failing=frozenset(failing))


def _is_trainer(span: StackSpan) -> bool:
    return span.thread == MAIN_THREAD and span.process_type == "trainer"


def _last_life(summary: Window, *, dead: bool) -> int | None:
    """The latest sign that a worker's process lives; an announcement, its log lines and its waiting dump are too."""
    times = [span.last for span in summary.stacks if span.frames]
    if summary.collectives:
        times += _dumped(summary)
    if summary.last_log is not None:
        times.append(summary.last_log)
    if summary.announced or (not dead and (summary.measured or summary.pids)):
        times.append(summary.end)
    return max(times, default=None)


def _dumped(summary: Window) -> list[int]:
    """When the process itself wrote dumps in which it had enqueued nothing for a while.

    One that shows operations of just before is of a job that goes on, whose lines end for another reason: as a sign of
    life it would make a standstill of that.
    """
    told = [one for one in summary.collectives if one.completed_known and not one.printed and not one.inferred]
    newest = max((one.enqueued_at for one in told), default=0)
    return [one.captured for one in told if one.captured - newest >= WAITED_NS]


def _dead(summary: Window) -> bool:
    """Whether the worker's process was last seen dead, not yet collected by its parent."""
    zombie = summary.measured.own("process_zombie")
    return zombie is not None and zombie.last > 0


def _richer(before: Identity, after: Identity) -> Identity:
    """The two identities of one worker as one: what one source lacks the other may tell."""
    return msgspec.structs.replace(
        after,
        node=after.node or before.node,
        role=after.role or before.role,
        local_rank=after.local_rank if after.local_rank is not None else before.local_rank,
        coordinates=after.coordinates or before.coordinates,
        cluster=after.cluster or before.cluster,
    )
