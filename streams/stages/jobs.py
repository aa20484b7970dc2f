"""One job in the job stage: its attempts, its templates, and one window's way through detectors and incidents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from schemas.comparison import Comparison
from schemas.jobs import JobDescription
from schemas.results import Anomaly, Axis, Exit, HardwareChange, Incident, MergedStacks, SuspiciousTemplate, Window
from streams.config import StreamConfig
from streams.detectors import registry
from streams.folding import folded, unfold
from streams.incidents.book import IncidentBook, IncidentBookState
from streams.job_description import merged
from streams.library.comparing import BesideLibrary, ComparedState, SettledState, settle
from streams.library.known import Known
from streams.merged_stacks import merged_stacks, what_it_says
from streams.packing import names_of, pack_of
from streams.stages.observing import observed
from streams.stages.outputs import Output
from streams.stages.owners import devices_of, processes_of, rank_of, users_of
from streams.stages.told import told_by
from streams.stall import StallRule, stall_of
from streams.templates import SUSPICIOUS_LIMIT, TemplateBook, TemplateState
from streams.view import AttemptView, AttemptWindow, Changed, Fault

STAGE = "job"
MOST_UNCLAIMED = 1000
SHOWN_ABSENT = 2
LONGEST_NUMBER = 10


class AttemptState(msgspec.Struct, kw_only=True):
    """What one attempt carries from window to window; ``stacks`` is a hash of what was last said of its stacks.

    ``compared`` is what it has shown beside the jobs of a library.
    """

    view: AttemptView
    detectors: dict[str, msgspec.Raw] = {}
    incidents: IncidentBookState = msgspec.field(default_factory=IncidentBookState)
    compared: ComparedState = msgspec.field(default_factory=ComparedState)
    stacks: str = ""
    idle: int = 0


class JobState(msgspec.Struct, kw_only=True):
    """What one job carries from window to window; ``layout`` is what workers without a rank say of it.

    ``description`` is what all of its workers have told of the job, whatever the attempt, ``settled`` by what of it
    those healthy jobs were chosen that it is held against.
    """

    job: str
    attempts: dict[str, AttemptState] = {}
    templates: TemplateState = msgspec.field(default_factory=TemplateState)
    unclaimed: list[tuple[str, Exit]] = []
    layout: dict[str, int] = {}
    description: JobDescription | None = None
    settled: SettledState = msgspec.field(default_factory=SettledState)
    idle: int = 0


class _Attempt:
    """An attempt's state with its live detectors and incidents."""

    def __init__(self, state: AttemptState, config: StreamConfig) -> None:
        self.state = state
        unfold(state.view)
        built = registry.build("job", config.detectors)
        self.detectors = [one for one in built if isinstance(one, registry.JobDetector)]
        for detector in self.detectors:
            if detector.name in state.detectors:
                detector.restore(state.detectors[detector.name])
        self.incidents = IncidentBook(state.incidents)

    def anew(self, stacks: MergedStacks | None) -> list[MergedStacks]:
        """The stacks, unless they say what was last said of this standstill."""
        before, self.state.stacks = self.state.stacks, "" if stacks is None else what_it_says(stacks)
        return [] if stacks is None or before == self.state.stacks else [stacks]

    def written(self) -> AttemptState:
        self.state.detectors = {detector.name: detector.snapshot() for detector in self.detectors}
        self.state.incidents = self.incidents.state
        return msgspec.structs.replace(self.state, view=folded(self.state.view))


class JobKeeper:
    """Takes a job's windows in order; ``known`` is what healthy jobs print, where that was learned."""

    def __init__(self, state: JobState, config: StreamConfig, known: Known | None = None) -> None:
        self._state = state
        self._config = config
        self._known = known.for_a_job() if known else None
        self._library = BesideLibrary(known.library.jobs, known.described) if known else BesideLibrary((), {})
        self._choose_baseline()
        self._templates = TemplateBook(state.templates, state.job, config.templates_per_job)
        self._attempts = {name: _Attempt(attempt, config) for name, attempt in state.attempts.items()}

    def _choose_baseline(self) -> None:
        """Hold the job against those healthy jobs that are like what is settled of it."""
        if self._known is not None:
            self._known.held_against(self._state.settled.description)
            self._library.held_against(self._state.settled, self._known.choice.baseline)

    def written(self) -> JobState:
        """The state to write down."""
        self._state.templates = self._templates.state
        self._state.attempts = {name: self._attempts[name].written() for name in sorted(self._attempts)}
        return self._state

    @property
    def idle(self) -> bool:
        """Whether the job can be forgotten."""
        return self._state.idle > self._config.idle_windows

    def close(self, end: int, summaries: list[Window], *, unavailable: bool) -> list[Output]:
        """Take in the window that ends at ``end``; returns templates, anomalies, stacks and incident revisions."""
        start = end - self._config.window_ns
        self._state.idle = 0 if summaries else self._state.idle + 1
        self._state.description = merged([self._state.description, *(one.described for one in summaries)])
        if self._known is not None and settle(self._state.settled, self._state.description, end):
            self._choose_baseline()
        templates = self._templates.learn(summaries)
        windows = self._split(start, end, summaries, unavailable=unavailable)
        outputs = [self._out("templates", f"{self._state.job}|{one.id}", one, end) for one in templates]
        for name in sorted(self._attempts):
            outputs += self._close_attempt(self._attempts[name], windows[name])
        ended = self._forget_idle(windows)
        return outputs + [self._out("incidents", self._state.job, one, end) for one in ended]

    def _forget_idle(self, windows: dict[str, AttemptWindow]) -> list[Incident]:
        """Forget attempts of which nothing is heard any more; their open incidents end with a last revision."""
        ended: list[Incident] = []
        for name in sorted(self._attempts):
            attempt = self._attempts[name]
            if attempt.state.idle > self._config.idle_windows:
                window = self._contrasted(attempt.state.view, windows[name])
                ended += attempt.incidents.end(attempt.state.view, window, partial(self._suspicious, window))
                del self._attempts[name]
                self._templates.forget(name)
        return ended

    def _out(self, topic: str, key: str, record: msgspec.Struct, time: int) -> Output:
        return Output(topic=topic, key=key, record=record, time=time)

    def _close_attempt(self, attempt: _Attempt, window: AttemptWindow) -> list[Output]:
        view = attempt.state.view
        signs = bool(window.summaries or window.sightings or window.nobodys is not None)
        attempt.state.idle = 0 if signs else attempt.state.idle + 1
        view.update(window)
        self._templates.note(window.attempt, window.printed)
        window = self._contrasted(view, window)
        anomalies, failures = observed(attempt.detectors, view, window, STAGE)
        stall = stall_of(view, window, StallRule())
        stacks = merged_stacks(view, window, stall) if stall else None
        revisions = attempt.incidents.close(view, window, anomalies, partial(self._suspicious, window), stacks)
        beside = self._beside(attempt, window, anomalies, revisions)
        told = (
            ("anomalies", anomalies),
            ("merged.stacks", attempt.anew(stacks)),
            ("incidents", revisions),
            ("comparisons", beside),
        )
        outputs = [self._out(topic, self._state.job, one, window.end) for topic, found in told for one in found]
        return failures + outputs

    def _contrasted(self, view: AttemptView, window: AttemptWindow) -> AttemptWindow:
        """The window with what tells the attempt from healthy jobs, where it is known what those print."""
        if self._known is None:
            return window
        contrast = self._known.contrast(self._templates, view)
        return msgspec.structs.replace(window, contrast=contrast)

    def _beside(
        self, attempt: _Attempt, window: AttemptWindow, anomalies: list[Anomaly], revisions: list[Incident]
    ) -> list[Comparison]:
        """What is new of the attempt beside the jobs of the library, where there is one."""
        found = self._library.compared(attempt.state.compared, window, anomalies, revisions)
        return [] if found is None else [found]

    def _suspicious(
        self, window: AttemptWindow, view: AttemptView, onset: int, suspects: list[int], backed: Mapping[str, Axis]
    ) -> list[SuspiciousTemplate]:
        """What stands out around an onset; what healthy jobs print and this one does not has the room that is left."""
        if window.contrast is None:
            return self._templates.suspicious(view, onset, suspects, backed)
        elsewhere = {one.id: one.elsewhere for one in window.contrast.novel}
        alone = {id_ for id_, jobs in elsewhere.items() if not jobs}
        found = self._templates.suspicious(view, onset, suspects, backed, alone)
        if len(alone) < len(elsewhere):
            shown = {one.id for one in found}
            others = self._templates.suspicious(view, onset, suspects, backed, elsewhere.keys())
            found += [
                msgspec.structs.replace(one, elsewhere=elsewhere[one.id])
                for one in others
                if one.id in elsewhere and one.id not in shown
            ]
        return [*found, *window.contrast.absent[:SHOWN_ABSENT]][:SUSPICIOUS_LIMIT]

    def _split(self, start: int, end: int, summaries: list[Window], *, unavailable: bool) -> dict[str, AttemptWindow]:
        """The window by attempt; what nodes say is mapped to ranks by process id."""
        ranked: dict[str, list[Window]] = {}
        nodes = []
        for summary in summaries:
            if summary.identity.rank is None:
                nodes.append(summary)
            else:
                ranked.setdefault(_attempt_of(summary), []).append(summary)
        told = told_by(nodes, summaries)
        self._open_attempts(start, ranked)
        if not self._attempts:
            self._open_attempts(start, {one.attempt: [] for one in told.of_attempts})
        # It is mostly said before anything shows that there is an attempt.
        self._state.layout.update(told.layout)
        views = {name: attempt.state.view for name, attempt in self._attempts.items()}
        owners = processes_of(views, ranked)
        gpus = devices_of(views, ranked) if told.asks_for_devices else {}
        exits, sightings = self._claim(nodes, owners, end)
        windows = {}
        for name, view in views.items():
            own = ranked.get(name, [])
            among = told.among(self._places(name, own))
            users = users_of(name, gpus)
            windows[name] = AttemptWindow(
                job=self._state.job,
                attempt=name,
                start=start,
                end=end,
                summaries=own,
                exits=exits.get(name, []),
                sightings=sightings.get(name, []),
                node_life=told.life,
                faults=[Fault(node, fatal, rank_of(name, node, fatal, owners, gpus)) for node, fatal in among.faults],
                hardware=[
                    Changed(one.identity.node, change, _user(one, change, users))
                    for one, change in among.changes
                    if one.identity.rank is None or _attempt_of(one) == name
                ],
                nodes=among.measured,
                users=users,
                unplaced=[(one.node, fatal) for one, fatal in among.unplaced],
                # A launcher speaks of the attempt that it runs, not of those that it has given up.
                heard=max((time for _, time in among.heard), default=None),
                nobodys=view.nobodys.take(among.nobodys, names_of(own) if any(map(pack_of, among.nobodys)) else set()),
                nobodys_layout=dict(self._state.layout),
                described=self._state.description,
                stopped=told.stopped if view.superseded is None else None,
                unavailable=unavailable,
                printed=self._templates.printed(name, own, view.members),
            )
        return windows

    def _places(self, name: str, summaries: list[Window]) -> set[str] | None:
        """The nodes that an attempt may run on, null for any: none once it was given up, all where some are unknown."""
        view = self._attempts[name].state.view
        if view.superseded is not None:
            return set()
        nodes = {member.identity.node for member in view.members.values()}
        nodes |= {summary.identity.node for summary in summaries}
        return None if not nodes or "" in nodes else {*nodes, ""}

    def _open_attempts(self, start: int, ranked: dict[str, list[Window]]) -> None:
        for name in sorted(ranked, key=lambda name: (_number(name), name)):
            if name in self._attempts:
                continue
            siblings = {other: self._attempts[other] for other in self._attempts if _group_of(other) == _group_of(name)}
            for other, sibling in siblings.items():
                if sibling.state.view.superseded is None and self._order(other) < (_number(name), start):
                    sibling.state.view.superseded = start
            newest = max((self._order(other) for other in siblings), default=(-1, start))
            # A last word of an attempt that is over already does not end the one that runs.
            superseded = start if newest > (_number(name), start) else None
            view = AttemptView(job=self._state.job, attempt=name, first=start, superseded=superseded)
            self._attempts[name] = _Attempt(AttemptState(view=view), self._config)

    def _order(self, name: str) -> tuple[int, int]:
        """Attempts in order: by number, those without one by when they began."""
        return _number(name), self._attempts[name].state.view.first

    def _claim(
        self, nodes: list[Window], owners: dict[tuple[str, int], tuple[str, int]], end: int
    ) -> tuple[dict[str, list[tuple[int, Exit]]], dict[str, list[tuple[int, int]]]]:
        """Exits and sightings by attempt. An exit whose process nobody knows yet waits for its rank to appear."""
        exits: dict[str, list[tuple[int, Exit]]] = {}
        sightings: dict[str, list[tuple[int, int]]] = {}
        waiting: list[tuple[str, Exit]] = []
        reported = [*self._state.unclaimed, *((node.identity.node, one) for node in nodes for one in node.exits)]
        for node_name, exit_ in reported:
            owner = owners.get((node_name, exit_.pid)) or self._by_rank(exit_)
            if owner is None:
                waiting.append((node_name, exit_))
            else:
                exits.setdefault(owner[0], []).append((owner[1], exit_))
        for node in nodes:
            for pid in node.pids:
                owner = owners.get((node.identity.node, pid))
                if owner is not None:
                    sightings.setdefault(owner[0], []).append((owner[1], node.end))
        oldest = end - self._config.idle_windows * self._config.window_ns
        self._state.unclaimed = [one for one in waiting if one[1].time >= oldest][-MOST_UNCLAIMED:]
        return exits, sightings

    def _by_rank(self, exit_: Exit) -> tuple[str, int] | None:
        """Where no process id is known, a global rank belongs to the newest attempt that had begun by then."""
        begun = [name for name, attempt in self._attempts.items() if attempt.state.view.first <= exit_.time]
        if exit_.rank is None or not begun:
            return None
        newest = max(begun, key=self._order)
        known = self._attempts[newest].state.view.members.get(exit_.rank)
        if known is None or known.main_pid is not None:
            return None
        return newest, exit_.rank


def _user(said: Window, change: HardwareChange, users: Mapping[tuple[str, str], int]) -> int | None:
    """Whose a change is: that of the device's only user; without a device the rank's that told it of itself.

    A rank may well sample all GPUs of its node.
    """
    return users.get((said.identity.node, change.device)) if change.device else said.identity.rank


def _attempt_of(summary: Window) -> str:
    """The attempt, told apart by worker group where ranks restart per group: two ranks 0 are never one member."""
    identity = summary.identity
    return f"{identity.group}/{identity.attempt}" if identity.group else identity.attempt


def _group_of(name: str) -> str:
    return name.rpartition("/")[0]


def _number(name: str) -> int:
    """The attempt's number, -1 where its name is none."""
    number = name.rpartition("/")[2]
    return int(number) if number.isdecimal() and len(number) < LONGEST_NUMBER else -1
