"""What is known of one attempt of a job: who belongs to it, how far it has come, who ended how.

The job stage keeps one view per attempt and updates it before detectors see the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import msgspec

from schemas.events import MAIN_THREAD
from schemas.identity import MOST_RANKS, Identity
from schemas.jobs import JobDescription
from schemas.library import HealthyJob, LearnedFunction
from schemas.results import (
    Activity,
    Exit,
    Fatal,
    HardwareChange,
    PlatformAlert,
    StackSpan,
    Stop,
    Suspect,
    SuspiciousTemplate,
    Window,
)
from streams.device_gauges import with_devices
from streams.gauges import GaugeTable, gauge_table
from streams.iterations import ProgressClock
from streams.library.choice import Choice
from streams.lines.layout import coordinates_of
from streams.lines.phases import QUIET_PHASES, TRAIN
from streams.nobodys import NOBODY, Nobodys
from streams.printed import NOTHING_PRINTED, Printed
from streams.rhythm import Rhythm, Rounds
from streams.series_table import Reports, series_table
from streams.stacks import joined, telling
from streams.stops import GOES_ON_NS, Lives, Stops, Why, alone, decided, failed, take

T = TypeVar("T")

KEPT_PIDS = 8
KEPT_DEVICES = 64
WORD_NS = 2_000_000_000
"""How far the word that training is done may lie from the last iteration: some print it to the second."""
WAITED_NS = 8_000_000_000
QUIET_NS = 60_000_000_000
"""A rank's checkpoint through which the job has iterated for so long does not hold it up; some print no end of it."""
SAMPLES_KEPT_NS = 60_000_000_000
KEPT_FAILURES = 8
LONGEST_FAILURE = 300
KNOWN = 0.9
"""Of how many ranks the stage must be known for stages to be known."""
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


def key_of(span: StackSpan) -> str:
    """What tells the threads of a rank apart."""
    return f"{span.process_type}|{span.pid}|{span.thread}"


def _is_trainer(span: StackSpan) -> bool:
    return span.thread == MAIN_THREAD and span.process_type == "trainer"


class AttemptView(msgspec.Struct, kw_only=True, dict=True):
    """One attempt of a job, as far as closed windows tell.

    ``phases`` are the ranks' own, ``turned`` the times at which a line last told each. ``heard`` is when a worker whose
    rank is not known last reported an iteration, ``said_done`` when one said that training was done; ``nobodys`` is
    what such workers have told; ``labels`` are the job's. ``places`` is empty but where the view is written down.
    ``switches`` are those that nodes hang under, with all above them; ``clocks`` by how much (ns) printed times of
    nodes were set back, ``retimed`` the end of the last window in which a rank's times ran ahead and were not believed.
    """

    job: str
    attempt: str
    first: int
    members: dict[int, Member] = {}
    layout: dict[str, int] = {}
    labels: dict[str, str] = {}
    world_size: int | None = None
    clock: ProgressClock = msgspec.field(default_factory=ProgressClock)
    phases: dict[int, str] = {}
    turned: dict[int, int] = {}
    stopped: int | None = None
    stops: Stops = msgspec.field(default_factory=Stops)
    superseded: int | None = None
    node_life: dict[str, int] = {}
    heard: int | None = None
    said_done: int | None = None
    nobodys: Nobodys = msgspec.field(default_factory=Nobodys)
    places: list[StackSpan] = []
    switches: dict[str, str] = {}
    clocks: dict[str, int] = {}
    retimed: dict[int, int] = {}

    def update(self, window: AttemptWindow) -> None:
        """Take in one closed window."""
        layout = dict(self.layout)
        if window.described is not None:
            self.labels = window.described.labels
        moved = False
        for summary in window.summaries:
            rank = summary.identity.rank
            if rank is None:
                continue
            moved |= self._member(rank, summary)
            self.phases[rank] = summary.phase
            if summary.phase_time is not None:
                self.turned[rank] = summary.phase_time
            self.layout.update(summary.layout)
            self._believe(summary.world_size)
            if summary.shifted_ns:
                self.clocks[summary.identity.node] = summary.shifted_ns
            if summary.dropped and summary.dropped.get("retimed"):
                self.retimed[rank] = summary.end
        self.layout = {**self._layout_of_nobody(window), **self.layout}
        self._believe(self.layout.get("world"))
        self.clock.advance(window.summaries)
        self._nobodys(window.nobodys)
        before = self.iterated
        self._node_side(window)
        self._note_stops(window, before)
        # What was found out of it is found anew: many detectors ask for the same. Who is whose peer seldom changes.
        kept = () if moved or self.layout != layout else ("_peers", "_coordinates", "sharing")
        known = {name: self.__dict__[name] for name in kept if name in self.__dict__}
        self.__dict__.clear()
        self.__dict__.update(known)

    def _layout_of_nobody(self, window: AttemptWindow) -> dict[str, int]:
        """What workers without a rank say of it; nobody is missed for what these say of how many ranks there are."""
        told = window.nobodys_layout
        return {axis: size for axis, size in told.items() if axis != "world" or size <= len(self.members)}

    def _nobodys(self, told: Window | None) -> None:
        """Take in what workers without a rank tell: how far the job is, unless ranks themselves say so."""
        if self.clock.reached.keys() - {NOBODY}:
            self.clock.reached.pop(NOBODY, None)
            self.phases.pop(NOBODY, None)
        elif told is not None:
            self.clock.advance([told])
            self.phases[NOBODY] = told.phase
            if told.phase_time is not None:
                self.turned[NOBODY] = told.phase_time
        if told is not None and told.finished is not None:
            self.said_done = told.finished

    def _believe(self, world_size: int | None) -> None:
        if world_size is not None and 0 < world_size <= MOST_RANKS:
            self.world_size = world_size

    def _member(self, rank: int, summary: Window) -> bool:
        """Take in what one rank did; returns whether it is new, or another than it was thought to be."""
        dead = _dead(summary)
        life = _last_life(summary, dead=dead)
        member = self.members.get(rank)
        moved = member is None
        if member is None:
            member = Member(identity=summary.identity, first_seen=summary.start, last_life=life or summary.start)
            self.members[rank] = member
        if summary.identity != member.identity:
            member.identity, before = _richer(member.identity, summary.identity), member.identity
            moved = member.identity != before
        if summary.stacks or summary.announced:
            member.take_processes(summary)
        member.take_devices(summary)
        if summary.measured or any(span.frames for span in summary.stacks):
            member.sampled = True
            member.samples = member.samples.seen(summary.end)
        if life is not None:
            member.last_life = max(member.last_life, life)
        if summary.last_log is not None:
            member.last_log = max(member.last_log or 0, summary.last_log)
            member.spoke = member.spoke.seen(summary.last_log)
        if summary.finished is not None:
            member.finished = min(summary.finished, member.finished or summary.finished)
        if member.finished is not None and (summary.iteration_time or 0) > member.finished + WORD_NS:
            member.finished = None
        if dead:
            member.zombie = summary.start if member.zombie is None else member.zombie
        elif life is not None:
            member.zombie = None
        return moved

    def _node_side(self, window: AttemptWindow) -> None:
        for rank, exit_ in window.exits:
            member = self.members.get(rank)
            if member is None:
                continue
            if exit_.code is None:
                member.requested = min(exit_.time, member.requested or exit_.time)
            elif member.exit is None or exit_.rank is not None:
                member.exit = exit_
        for rank, time in window.sightings:
            if rank in self.members:
                member = self.members[rank]
                member.last_life = max(member.last_life, time)
                member.sighted = max(member.sighted or time, time)
                member.sightings = member.sightings.seen(time)
        self._note_rounds(window)
        for node, time in window.node_life:
            self.node_life[node] = max(time, self.node_life.get(node, time))
        if window.heard is not None:
            self.heard = max(window.heard, self.heard or window.heard)
        if window.switches:
            self.switches = {**self.switches, **window.switches}

    def _note_stops(self, window: AttemptWindow, iterated: int | None) -> None:
        """Take in who was told to end, and whether that means the attempt; what it has outlived was no stop."""
        stops = self.stops
        if not set(window.launchers) <= set(stops.launchers):
            stops.launchers = sorted({*stops.launchers, *window.launchers})
        words = [*window.stops, *([("", Stop(time=window.stopped, word="job"))] if window.stopped is not None else [])]
        nodes = {*self.node_names, ""} if words else set()
        of_it = [(node, stop) for node, stop in words if stop.word != "agent" or nodes == {""} or node in nodes]
        take(stops, window.summaries, of_it, window.exits, iterated)
        if not stops.told:
            return
        self.stopped, why = decided(stops, self._lives(window.end))
        if why is Why.ALONE:
            stops.lone = {**alone(stops), **stops.lone}
        elif self.stopped is not None:
            # Those that were ended with all others, only before them, were not alone.
            stops.lone = {node: time for node, time in stops.lone.items() if time < self.stopped}
        goes_on = self.stopped is not None and (self.iterated or 0) > self.stopped + GOES_ON_NS
        if goes_on or why is Why.OUTLIVED:
            known = Stops(launchers=stops.launchers, lone=stops.lone, failed=stops.failed, own=stops.own)
            self.stops, self.stopped = known, None

    def _lives(self, now: int) -> Lives:
        by_node: dict[str, int] = {}
        failing = set()
        for member in self.members.values():
            node = member.identity.node
            by_node[node] = max(member.last_life, by_node.get(node, 0))
            if member.exit is not None and failed(member.exit):
                failing.add(node)
        lives = sorted((member.last_life for member in self.members.values()), reverse=True)
        lived = lives[(len(lives) - 1) // 2] if lives else 0
        return Lives(now=now, ranks=self.expected, by_node=by_node, lived=lived, failing=frozenset(failing))

    def _note_rounds(self, window: AttemptWindow) -> None:
        """Whom the nodes list that are seen to run anybody in this window, and whom they leave out.

        What a partition would have told that was left out is not known.
        """
        listed = {rank for rank, _ in window.sightings}
        nodes = {self.members[rank].identity.node for rank in listed if rank in self.members}
        for rank, member in self.members.items():
            if member.identity.node in nodes:
                if rank in listed:
                    member.rounds = member.rounds.with_it()
                elif not window.unavailable:
                    member.rounds = member.rounds.without_it(window.end)

    @cached_property
    def phase(self) -> str:
        """The attempt's phase: train as soon as any rank trains, else what most ranks say."""
        phases = Counter(self._phase_of(rank) for rank in self.phases)
        for dominant in ("shutdown", "checkpoint", "evaluation", "train"):
            if dominant in phases:
                return dominant
        return max(phases, key=lambda phase: (phases[phase], phase), default="")

    @cached_property
    def resumed(self) -> int | None:
        """When a rank that trains last said that a checkpoint or evaluation was over, or trained again after one."""
        told = (self.turned.get(rank) for rank, phase in self.phases.items() if phase == TRAIN)
        return max((time for time in told if time is not None), default=None)

    def _phase_of(self, rank: int) -> str:
        phase = self.phases[rank]
        if phase in QUIET_PHASES and (self.clock.time or 0) > self.turned.get(rank, self.first) + QUIET_NS:
            return TRAIN
        return phase

    @cached_property
    def expected(self) -> frozenset[int]:
        """The ranks that should be there, by the announced world size and by who was seen."""
        return frozenset(self.members) | frozenset(range(self.world_size or 0))

    @property
    def finished(self) -> bool:
        """Whether training came to its own end."""
        clock = self.clock
        if clock.total is not None and clock.iteration is not None and clock.iteration >= clock.total:
            return True
        ended = [member.finished for member in self.members.values() if member.finished is not None]
        if self.said_done is not None and NOBODY in clock.reached:
            ended.append(self.said_done)
        # Iterations after the word show that it did not mean the job.
        return bool(ended) and (clock.time is None or clock.time <= max(ended) + WORD_NS)

    def coordinates(self, rank: int) -> dict[str, int | list[int]]:
        """The rank's parallel coordinates: its own, or those that the layout gives."""
        if rank not in self._coordinates:
            member = self.members.get(rank)
            own = member.identity.coordinates if member is not None else {}
            self._coordinates[rank] = own or dict(coordinates_of(rank, self.layout))
        return self._coordinates[rank]

    @cached_property
    def _coordinates(self) -> dict[int, dict[str, int | list[int]]]:
        return {}

    @cached_property
    def sharing(self) -> dict[str, dict[str, frozenset[int]]]:
        """Ranks by what they share, for whoever asks: filled by ``streams/groups.py``, kept while nobody is another."""
        return {}

    @cached_property
    def knows_layout(self) -> bool:
        """Whether there is one stage, or that of nearly every rank is known; roles alone tell none."""
        return self._knows_stages(self.members)

    def knows_stages_beside(self, ranks: Iterable[int]) -> bool:
        """The same for the ranks of these ranks' roles only; of all where there are none."""
        return self._knows_stages(self.of_their_roles(ranks) or self.members)

    def _knows_stages(self, ranks: Collection[int]) -> bool:
        return self._has_one_stage or sum("pp" in self.coordinates(rank) for rank in ranks) >= KNOWN * len(ranks) > 0

    @property
    def _has_one_stage(self) -> bool:
        """Whether the layout tells one stage; where it tells all sizes they must fit the world."""
        whole = prod(self.layout.get(axis, 1) for axis in ("dp", "cp", "tp"))
        fits = "dp" not in self.layout or self.layout.get("world", self.world_size) in (None, whole)
        return self.layout.get("pp") == 1 and fits

    def of_their_roles(self, ranks: Iterable[int]) -> set[int]:
        """The ranks whose process type and role one of these has."""
        roles = {_role(self.members[rank].identity) for rank in ranks if rank in self.members}
        return {rank for rank, member in self.members.items() if _role(member.identity) in roles}

    def peer_groups(self) -> list[list[int]]:
        """The ranks that can be compared with one another, groups and ranks in canonical order."""
        return self._peers

    @cached_property
    def _peers(self) -> list[list[int]]:
        """Ranks of the same process type, role, pipeline stage and expert group, in canonical order."""
        groups: dict[tuple[str, str, str, str, str], list[int]] = {}
        for rank in sorted(self.members):
            identity = self.members[rank].identity
            at = self.coordinates(rank)
            key = (identity.process_type, identity.role, identity.group, str(at.get("pp")), str(at.get("ep")))
            groups.setdefault(key, []).append(rank)
        return [groups[key] for key in sorted(groups, key="|".join)]

    def main_spans(self, since: int) -> dict[int, StackSpan]:
        """Each rank's main thread as last sampled from ``since`` on; ranks without a sample are left out.

        Where somebody is after all were told to end shows how they end.
        """
        if since not in self._mains:
            spans = {rank: self.members[rank].main_span(since) for rank in sorted(self.members)}
            self._mains[since] = {
                rank: span
                for rank, span in spans.items()
                if span is not None and (self.stopped is None or span.first <= self.stopped)
            }
        return self._mains[since]

    @cached_property
    def _mains(self) -> dict[int, dict[int, StackSpan]]:
        return {}

    def suspect(self, rank: int, score: float, why: str, kind: str = "") -> Suspect:
        """The rank as a suspect, with its place."""
        member = self.members.get(rank)
        return Suspect(
            rank=rank,
            node=member.identity.node if member else "",
            role=member.identity.role if member else "",
            coordinates=self.coordinates(rank),
            device=member.identity.device if member else None,
            score=score,
            why=why,
            kind=kind,
        )

    def unobserved_since(self, time: int) -> list[int]:
        """Ranks that have shown nothing since, nor has their node's producer, while another node's has.

        They are not known to be silent. A rank whose end is reported is not among them; nor is anybody where no node
        reports any more, as once a job is over.
        """
        if not any(heard > time for heard in self.node_life.values()):
            return []
        return [
            rank
            for rank, member in sorted(self.members.items())
            if member.exit is None
            and member.last_life <= time
            and 0 < self.node_life.get(self.node_of(rank), 0) <= time
        ]

    @property
    def iterated(self) -> int | None:
        """When an iteration was last reported, by whomever; null also where those of late have no time."""
        own = self.clock.time if self.clock.is_timed else None
        return max((time for time in (own, self.heard) if time is not None), default=None)

    @property
    def node_names(self) -> list[str]:
        """The nodes that ranks are known to run on, sorted."""
        return sorted({member.identity.node for member in self.members.values()} - {""})

    @property
    def cluster(self) -> str:
        """The cluster that the attempt runs in, or an empty string."""
        return max((member.identity.cluster for member in self.members.values()), default="")

    def switch_of(self, node: str) -> str:
        """The switch that a node hangs under, with those above it, the uppermost first; empty where it is not known."""
        return self.switches.get(node, "")

    def node_of(self, rank: int) -> str:
        """The rank's node, or an empty string."""
        member = self.members.get(rank)
        return member.identity.node if member else ""


class NovelTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template that no job of the baseline prints: the ids that it had, the present one last.

    ``first`` is its first time, ``elsewhere`` the ids of the other jobs of the library that print it.
    """

    ids: list[str]
    text: str
    first: int
    ranks: list[int]
    elsewhere: list[str] = []

    @property
    def id(self) -> str:
        """Its present id."""
        return self.ids[-1]


class HealthyContrast(msgspec.Struct, frozen=True, kw_only=True):
    """What tells an attempt so far from its baseline, ``jobs`` healthy jobs of a library whose version ``library`` is.

    ``novel``: what none of those prints, in order of first lines; ``absent``: what nearly all ranks of those print and
    no rank of the attempt. ``functions`` are what the profiles of those show, as far as they have any; the jobs that
    have are ``profiled``. ``choice`` is which jobs of the library these are, and why;
    ``rates`` how many lines a rank and iteration like jobs print, by the template's id here.
    """

    library: str
    jobs: int
    novel: list[NovelTemplate]
    absent: list[SuspiciousTemplate]
    functions: list[LearnedFunction] = []
    profiled: list[HealthyJob] = []
    choice: Choice = Choice(like=False, baseline=[], jobs=[])
    rates: dict[str, list[float]] = {}


class Fault(msgspec.Struct, frozen=True):
    """What a node's kernel or system reports, and the rank whose process or GPU it speaks of, null where unknown."""

    node: str
    fatal: Fatal
    rank: int | None = None

    @property
    def device(self) -> str:
        """The PCI id, or what else the line calls the device; empty where it names none."""
        return self.fatal.values.get("pci") or self.fatal.values.get("device", "")


class Changed(msgspec.Struct, frozen=True):
    """A change of a node's hardware, and the rank that is known to use the device, null where none or several do."""

    node: str
    change: HardwareChange
    rank: int | None = None


class Alarm(msgspec.Struct, frozen=True):
    """What the platform tells, the node that it is of, and the rank that is known to use the device, or null.

    The node is empty where it is of a switch or a storage.
    """

    node: str
    alert: PlatformAlert
    rank: int | None = None


class AttemptWindow(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One closed window of an attempt: its ranks' summaries in canonical order, and the node side mapped to ranks.

    ``exits`` and ``sightings`` are (rank, what), ``unplaced`` are (node, error of a worker whose rank is not known),
    ``faults`` what the nodes' own logs report, ``hardware`` what changed of their devices, ``nodes`` the summaries of
    those that have gauges, ``alarms`` what the platform has told of their places of late, ``switches`` those that nodes
    hang under, ``users`` the rank that alone is known to use a device, by node and PCI id; ``heard`` is
    when one of those workers last reported an iteration, ``nobodys`` what they print, as one worker's window, and
    ``nobodys_layout`` what they have said of the layout;
    ``stopped`` is when it was said that the job ends, ``stops`` are such words with their nodes, ``launchers`` the
    nodes whose launchers printed; ``unavailable`` is set where a partition was left out. ``printed`` is who printed
    what, as one table; ``contrast``
    what tells the attempt from healthy jobs so far, null where no library of those is known. ``by_rank`` are the
    summaries once more; ``described`` is what is known of the job so far.
    """

    job: str
    attempt: str
    start: int
    end: int
    summaries: list[Window]
    exits: list[tuple[int, Exit]] = []
    sightings: list[tuple[int, int]] = []
    node_life: list[tuple[str, int]] = []
    unplaced: list[tuple[str, Fatal]] = []
    faults: list[Fault] = []
    hardware: list[Changed] = []
    alarms: list[Alarm] = []
    switches: dict[str, str] = {}
    nodes: list[Window] = []
    users: dict[tuple[str, str], int] = {}
    heard: int | None = None
    nobodys: Window | None = None
    nobodys_layout: dict[str, int] = {}
    described: JobDescription | None = None
    stopped: int | None = None
    stops: list[tuple[str, Stop]] = []
    launchers: list[str] = []
    unavailable: bool = False
    contrast: HealthyContrast | None = None
    printed: Printed = NOTHING_PRINTED
    by_rank: dict[int | None, list[Window]] = {}

    def __post_init__(self) -> None:
        found: dict[int | None, list[Window]] = {}
        for summary in self.summaries:
            found.setdefault(summary.identity.rank, []).append(summary)
        msgspec.structs.force_setattr(self, "by_rank", found)

    @cached_property
    def gauges(self) -> GaugeTable:
        """What was sampled on all ranks, as matrices, with what their nodes tell of their devices."""
        return gauge_table(with_devices(self.summaries, self.nodes, self.users) if self.users else self.summaries)

    @cached_property
    def series(self) -> dict[str, Reports]:
        """Each rank's series, by their names in order."""
        return series_table(self.summaries)

    @cached_property
    def of_job(self) -> dict[str, Reports]:
        """The same with what is only known to be the job's, under ``NOBODY``; for whom nobody is named by it."""
        told = series_table([self.nobodys]) if self.nobodys is not None else {}
        return dict(sorted({**told, **self.series}.items())) if told else self.series

    def once(self, what: Hashable, view: AttemptView, find: Callable[[], T]) -> T:
        """What ``find`` finds out of the window and the view, found once however many ask for it."""
        known = self._found.get(what)
        if known is None or known[0] is not view:
            known = self._found[what] = (view, find())
        found: T = known[1]
        return found

    @cached_property
    def _found(self) -> dict[Hashable, tuple[AttemptView, Any]]:
        return {}

    def of(self, rank: int) -> list[Window]:
        """The rank's summaries in this window."""
        return self.by_rank.get(rank, [])


def _role(identity: Identity) -> tuple[str, str]:
    return identity.process_type, identity.role


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
