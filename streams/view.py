"""What is known of one attempt of a job: who belongs to it, how far it has come, who ended how.

The job stage keeps one view per attempt and updates it before detectors see the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import msgspec

from schemas.identity import MOST_RANKS
from schemas.results import StackSpan, Stop, Suspect, Window
from streams.attempt_window import AttemptWindow
from streams.bounds import MOST_NODES, admitted, kept, take_layout
from streams.iterations import ProgressClock
from streams.lines.layout import coordinates_of
from streams.lines.phases import QUIET_PHASES, TRAIN
from streams.member import WORD_NS, Member, first_seen, lives_of
from streams.nobodys import NOBODY, Nobodys
from streams.peers import Coordinates, has_one_stage, peers_of, role_of
from streams.stops import GOES_ON_NS, Stops, Why, alone, bound, decided, take

QUIET_NS = 60_000_000_000
"""A rank's checkpoint through which the job has iterated for so long does not hold it up; some print no end of it."""
MOST_QUIET = 8
"""So many checkpoints and evaluations that are over are kept of those behind one iteration."""
KNOWN = 0.9
"""Of how many ranks the stage must be known for stages to be known."""


class AttemptView(msgspec.Struct, kw_only=True, dict=True):
    """One attempt of a job, as far as closed windows tell.

    ``phases`` are the ranks' own, ``turned`` the times at which a line last told each; ``entered`` since when those are
    in a checkpoint or evaluation that have not said that it is over, ``quiet`` from when to when others were, the last
    ones behind the latest iteration; ``stood`` since when the attempt stood still when it was judged last. ``heard`` is
    when a worker whose rank is not known last reported an iteration, ``said_done`` when one said that training was
    done; ``nobodys`` is what such workers have told; ``labels`` are the job's. ``places`` is empty but where the view
    is written down. ``switches`` are those that nodes hang under, with all above them; ``clocks`` by how much (ns)
    printed times of nodes were set back, ``retimed`` the end of the last window in which a rank's times ran ahead and
    were not believed.
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
    entered: dict[int, int] = {}
    quiet: list[tuple[int, int]] = []
    stood: int | None = None
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
            take_layout(self.layout, summary.layout)
            self._believe(summary.world_size)
            if summary.shifted_ns:
                self.clocks[summary.identity.node] = summary.shifted_ns
            if summary.dropped and summary.dropped.get("retimed"):
                self.retimed[rank] = summary.end
        self.clocks = {node: self.clocks[node] for node in self._of_nodes(dict.fromkeys(self.clocks, 0))}
        self.layout = {**self._layout_of_nobody(window), **self.layout}
        self._believe(self.layout.get("world"))
        self.clock.advance(window.summaries)
        self._nobodys(window.nobodys)
        self._note_quiet(window.start)
        before = self.iterated
        self._node_side(window)
        self._note_stops(window, before)
        # What was found out of it is found anew: many detectors ask for the same. Who is whose peer seldom changes.
        kept = () if moved or self.layout != layout else ("_peers", "_coordinates", "sharing")
        known = {name: self.__dict__[name] for name in kept if name in self.__dict__}
        self.__dict__.clear()
        self.__dict__.update(known)

    def admits(self, summaries: list[Window]) -> tuple[list[Window], list[Window]]:
        """The ranks' summaries that count, and the others: whoever invents ranks gets little room beside the world."""
        told = {summary.identity.rank for summary in summaries if summary.identity.rank is not None}
        if told <= self.members.keys():
            return summaries, []
        sizes = {size or 0 for one in summaries for size in (one.world_size, one.layout.get("world"))}
        world = max([self.world_size or 0, *(size for size in sizes if size <= MOST_RANKS)])
        members = admitted(told, self.members, world)
        if told <= members:
            return summaries, []
        left_out = [one for one in summaries if one.identity.rank not in members]
        return [one for one in summaries if one.identity.rank in members], left_out

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

    def _note_quiet(self, start: int) -> None:
        """Note who has gone into a checkpoint or evaluation, and whose is over, in the window that begins at ``start``.

        A phase that was told several times in a window may have begun with the first of these lines: its beginning is
        taken to lie as near to the latest iteration as it may.
        """
        iterated = self.clock.time or 0
        over = [rank for rank in self.entered if self.phases.get(rank) == TRAIN and rank in self.turned]
        if over:
            told = (min(self.entered[rank] for rank in over), max(self.turned[rank] for rank in over))
            self.quiet = [one for one in [*self.quiet, told] if one[1] > iterated][-MOST_QUIET:]
        nearest = max(iterated, start)
        self.entered = {
            rank: self.entered.get(rank, min(nearest, self.turned.get(rank, nearest)))
            for rank, phase in self.phases.items()
            if phase in QUIET_PHASES
        }

    def _believe(self, world_size: int | None) -> None:
        if world_size is not None and 0 < world_size <= MOST_RANKS:
            self.world_size = world_size

    def _member(self, rank: int, summary: Window) -> bool:
        """Take in what one rank did; returns whether it is new, or another than it was thought to be."""
        known = self.members.get(rank)
        member = self.members[rank] = known or first_seen(summary)
        return member.take_window(summary) or known is None

    def _node_side(self, window: AttemptWindow) -> None:
        for rank, exit_ in window.exits:
            if rank in self.members:
                self.members[rank].take_exit(exit_)
        for rank, time in window.sightings:
            if rank in self.members:
                self.members[rank].take_sighting(time)
        self._note_rounds(window)
        for node, time in window.node_life:
            self.node_life[node] = max(time, self.node_life.get(node, time))
        self.node_life = self._of_nodes(self.node_life, newest=True)
        if window.heard is not None:
            self.heard = max(window.heard, self.heard or window.heard)
        if window.switches:
            switches = {**self.switches, **window.switches}
            new = {node: int(node not in self.switches) for node in switches}
            self.switches = {node: switches[node] for node in self._of_nodes(new)}

    def _of_nodes(self, told: Mapping[str, int], *, newest: bool = False) -> dict[str, int]:
        """What was told of no more nodes than a job has, those first on which ranks run."""
        return kept(told, set(self.node_names) if len(told) > MOST_NODES else (), MOST_NODES, newest=newest)

    def _note_stops(self, window: AttemptWindow, iterated: int | None) -> None:
        """Take in who was told to end, and whether that means the attempt; what it has outlived was no stop."""
        stops = self.stops
        if not set(window.launchers) <= set(stops.launchers):
            heard = {**dict.fromkeys(window.launchers, 1), **dict.fromkeys(stops.launchers, 0)}
            stops.launchers = sorted(self._of_nodes(heard))
        words = [*window.stops, *([("", Stop(time=window.stopped, word="job"))] if window.stopped is not None else [])]
        nodes = {*self.node_names, ""} if words else set()
        of_it = [(node, stop) for node, stop in words if stop.word != "agent" or nodes == {""} or node in nodes]
        take(stops, window.summaries, of_it, window.exits, iterated)
        if not stops.told:
            return
        bound(stops, self.node_names, range(self.world_size or 0))
        self.stopped, why = decided(stops, lives_of(self.members, self.expected, window.end))
        if why is Why.ALONE:
            stops.lone = self._of_nodes({**alone(stops), **stops.lone})
        elif self.stopped is not None:
            # Those that were ended with all others, only before them, were not alone.
            stops.lone = {node: time for node, time in stops.lone.items() if time < self.stopped}
        goes_on = self.stopped is not None and (self.iterated or 0) > self.stopped + GOES_ON_NS
        if goes_on or why is Why.OUTLIVED:
            known = Stops(launchers=stops.launchers, lone=stops.lone, failed=stops.failed, own=stops.own)
            self.stops, self.stopped = known, None

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

    def coordinates(self, rank: int) -> Coordinates:
        """The rank's parallel coordinates: its own, or those that the layout gives."""
        if rank not in self._coordinates:
            member = self.members.get(rank)
            own = member.identity.coordinates if member is not None else {}
            self._coordinates[rank] = own or dict(coordinates_of(rank, self.layout))
        return self._coordinates[rank]

    @cached_property
    def _coordinates(self) -> dict[int, Coordinates]:
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
        return (
            has_one_stage(self.layout, self.world_size)
            or sum("pp" in self.coordinates(rank) for rank in ranks) >= KNOWN * len(ranks) > 0
        )

    def of_their_roles(self, ranks: Iterable[int]) -> set[int]:
        """The ranks whose process type and role one of these has."""
        roles = {role_of(self.members[rank].identity) for rank in ranks if rank in self.members}
        return {rank for rank, member in self.members.items() if role_of(member.identity) in roles}

    def peer_groups(self) -> list[list[int]]:
        """The ranks that can be compared with one another, groups and ranks in canonical order."""
        return self._peers

    @cached_property
    def _peers(self) -> list[list[int]]:
        return peers_of(self.members, self.coordinates)

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
