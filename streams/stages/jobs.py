"""One job in the job stage: its attempts, its templates, and one window's way through detectors and incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from schemas.identity import MOST_RANKS
from schemas.jobs import JobDescription
from schemas.results import Anomaly, Axis, Exit, Incident, SuspiciousTemplate, Window
from streams.attempt_window import AttemptWindow
from streams.bounds import MOST_NODES, take_layout
from streams.config import StreamConfig
from streams.incidents.groups import awaiting_turn, wait_for_others
from streams.incidents.recurrence import Past, past_of, with_series
from streams.incidents.revising import Draft
from streams.job_meta import JobMeta, JobMetaState
from streams.library.comparing import BesideLibrary, SettledState, settle
from streams.library.known import Known
from streams.merged_stacks import merged_stacks
from streams.stages.alarms import Placed, remembered, switches_of
from streams.stages.attempt import Attempt, AttemptState
from streams.stages.claims import claimed
from streams.stages.dead_letters import dead_letter_output, invented_ranks
from streams.stages.descriptions import Descriptions
from streams.stages.outputs import Output
from streams.stages.owners import devices_of, processes_of
from streams.stages.split import Shared, attempt_of, group_of, number_of, window_of
from streams.stages.told import told_by
from streams.stall import StallRule, over, stall_of
from streams.templates import SUSPICIOUS_LIMIT, TemplateBook, TemplateState
from streams.view import AttemptView

STAGE = "job"
SHOWN_ABSENT = 2


class JobState(msgspec.Struct, kw_only=True):
    """What one job carries from window to window; ``layout`` is what workers without a rank say of it.

    ``past`` are its latest incidents, by which one of a later attempt is known to recur.
    ``told`` is what its workers have told of the job, by attempt, ``settled`` by what of it those healthy jobs were
    chosen that it is held against.
    ``alarms`` are the platform's, ``switches`` those that nodes hang under.
    """

    job: str
    attempts: dict[str, AttemptState] = {}
    templates: TemplateState = msgspec.field(default_factory=TemplateState)
    unclaimed: list[tuple[str, Exit]] = []
    layout: dict[str, int] = {}
    past: list[Past] = []
    told: dict[str, JobDescription] = {}
    settled: SettledState = msgspec.field(default_factory=SettledState)
    alarms: list[Placed] = []
    switches: dict[str, str] = {}
    idle: int = 0
    meta: JobMetaState = msgspec.field(default_factory=JobMetaState)


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a window shows of one attempt, and what would be said of its incidents."""

    outputs: list[Output]
    drafts: list[Draft]
    window: AttemptWindow
    anomalies: list[Anomaly]


class JobKeeper:
    """Takes a job's windows in order; ``known`` is what healthy jobs print, where that was learned."""

    def __init__(self, state: JobState, config: StreamConfig, known: Known | None = None) -> None:
        self._state = state
        self._config = config
        self._known = known.for_a_job() if known else None
        self._library = BesideLibrary(known.library.jobs, known.described) if known else BesideLibrary((), {})
        self._choose_baseline()
        self._descriptions = Descriptions(state.told)
        self._templates = TemplateBook(state.templates, state.job, config.templates_per_job)
        self._attempts = {name: Attempt(attempt, config) for name, attempt in state.attempts.items()}
        self._meta = JobMeta(state.job, state.meta)

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
    def views(self) -> list[AttemptView]:
        """What is known of its attempts, in order of their names."""
        return [self._attempts[name].state.view for name in sorted(self._attempts)]

    @property
    def idle(self) -> bool:
        """Whether the job can be forgotten."""
        return self._state.idle > self._config.idle_windows

    def close(self, end: int, summaries: list[Window], *, unavailable: bool) -> list[Output]:
        """Take in the window that ends at ``end``; returns templates, anomalies, stacks and incident revisions."""
        start = end - self._config.window_ns
        self._state.idle = 0 if summaries else self._state.idle + 1
        templates = self._templates.learn(summaries)
        ranked, nodes, outputs = self._members(start, end, summaries)
        windows = self._split(start, end, summaries, ranked, nodes, unavailable=unavailable)
        if self._known is not None and settle(self._state.settled, self._descriptions.of_all(self._newest()), end):
            self._choose_baseline()
        outputs += [self._out("templates", f"{self._state.job}|{one.id}", one, end) for one in templates]
        for name in sorted(self._attempts):
            self._see(self._attempts[name], windows[name])
        judged = [name for name in sorted(self._attempts) if not self._attempts[name].is_past(windows[name])]
        seen = {name: self._contrast(self._attempts[name], windows[name]) for name in judged}
        outputs += [output for one in seen.values() for output in one.outputs]
        revisions = self._publish({name: one.drafts for name, one in seen.items()}, windows)
        outputs += [self._out("incidents", self._state.job, one, end) for one in revisions]
        outputs += self._comparisons(seen, revisions, end)
        ended = self._forget_idle(windows)
        outputs += [self._out("incidents", self._state.job, one, end) for one in ended]
        meta = self._meta.close(end, summaries, self._left, self._runs, unavailable=unavailable)
        meta += self._meta.end(end) if self.idle else []
        return outputs + [self._out("meta", one.cluster, one, end) for one in meta]

    def _left(self) -> set[str]:
        """The nodes of attempts that were given up, without those of attempts that go on."""
        nodes: dict[bool, set[str]] = {True: set(), False: set()}
        for attempt in self._attempts.values():
            view = attempt.state.view
            nodes[view.superseded is not None] |= {member.identity.node for member in view.members.values()}
        return nodes[True] - nodes[False]

    def _runs(self) -> bool:
        """Whether some attempt is at work, as far as is known: nothing has told its end, nor that it lost anybody."""
        return any(not over(view) and view.stops.failed is None for view in self.views)

    def _forget_idle(self, windows: dict[str, AttemptWindow]) -> list[Incident]:
        """Forget attempts of which nothing is heard any more; their open incidents end with a last revision."""
        ended: list[Incident] = []
        for name in sorted(self._attempts):
            attempt = self._attempts[name]
            if attempt.state.idle > self._config.idle_windows:
                window = self._contrasted(attempt.state.view, windows[name])
                suspicious, in_series = partial(self._suspicious, window), partial(self._in_series, name)
                ended += attempt.incidents.end(attempt.state.view, window, suspicious, in_series)
                del self._attempts[name]
                self._templates.forget(name)
                self._descriptions.forget(name)
        return ended

    def _out(self, topic: str, key: str, record: msgspec.Struct, time: int) -> Output:
        return Output(topic=topic, key=key, record=record, time=time)

    def _see(self, attempt: Attempt, window: AttemptWindow) -> None:
        """Take a window into the attempt's view, before anything of any attempt is judged."""
        signs = bool(window.summaries or window.sightings or window.nobodys is not None)
        attempt.state.idle = 0 if signs else attempt.state.idle + 1
        attempt.state.view.update(window)
        self._templates.note(window.attempt, window.printed)

    def _contrast(self, attempt: Attempt, window: AttemptWindow) -> _Seen:
        """What the detectors find in a window, and what would be said of the attempt's incidents by that."""
        view = attempt.state.view
        window = self._contrasted(view, window)
        found, failures = attempt.observe(window, STAGE)
        anomalies, waits = awaiting_turn(found, view, self._other_groups(view.attempt), window.end)
        stall = stall_of(view, window, StallRule())
        view.stood = stall.since if stall else None
        stacks = merged_stacks(view, window, stall) if stall else None
        drafts = attempt.incidents.drafts(view, window, anomalies, partial(self._suspicious, window), stacks)
        told = (("anomalies", [*anomalies, *waits]), ("merged.stacks", attempt.anew(stacks)))
        outputs = [self._out(topic, self._state.job, one, window.end) for topic, of in told for one in of]
        return _Seen(outputs=[*failures, *outputs], drafts=drafts, window=window, anomalies=anomalies)

    def _publish(self, drafts: dict[str, list[Draft]], windows: dict[str, AttemptWindow]) -> list[Incident]:
        """The revisions of all attempts, once it is known which group of workers only waits for another."""
        by_group: dict[str, list[Draft]] = {}
        for name, of in drafts.items():
            by_group.setdefault(group_of(name), []).extend(of)
        if len(by_group) > 1:
            now = [self._remembered(name, draft.says, []) for name, of in drafts.items() for draft in of]
            ids = {one.id for one in now}
            past = [*(one for one in self._state.past if one.id not in ids), *now]
            newest = {group_of(name): self._order(name) for name in self._newest()}
            wait_for_others(by_group, past, newest, max(one.end for one in windows.values()))
        return [
            one
            for name, of in drafts.items()
            for one in self._attempts[name].incidents.publish(of, windows[name], partial(self._in_series, name))
        ]

    def _newest(self) -> list[str]:
        """The latest attempt of each group of workers."""
        return sorted({group_of(name): name for name in sorted(self._attempts, key=self._order)}.values())

    def _other_groups(self, name: str) -> list[AttemptView]:
        """The views of the other groups of workers, without attempts that were given up."""
        others = [one.state.view for other, one in self._attempts.items() if group_of(other) != group_of(name)]
        return [view for view in others if view.superseded is None]

    def _in_series(self, name: str, incident: Incident, errors: Sequence[str]) -> Incident:
        """The revision with how often earlier attempts of the same workers had one like it."""
        said, self._state.past = with_series(incident, self._remembered(name, incident, errors), self._state.past)
        return said

    def _remembered(self, name: str, incident: Incident, errors: Sequence[str]) -> Past:
        return past_of(incident, errors, group_of(name), self._order(name))

    def _contrasted(self, view: AttemptView, window: AttemptWindow) -> AttemptWindow:
        """The window with what tells the attempt from healthy jobs, where it is known what those print."""
        if self._known is None:
            return window
        contrast = self._known.contrast(self._templates, view)
        return msgspec.structs.replace(window, contrast=contrast)

    def _comparisons(self, seen: Mapping[str, _Seen], revisions: list[Incident], end: int) -> list[Output]:
        """What is new of the attempts beside the jobs of the library, where there is one."""
        found = []
        for name, one in seen.items():
            state, own = self._attempts[name].state.compared, [of for of in revisions if of.attempt == name]
            found.append(self._library.compared(state, one.window, one.anomalies, own))
        return [self._out("comparisons", self._state.job, one, end) for one in found if one is not None]

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

    def _members(
        self, start: int, end: int, summaries: list[Window]
    ) -> tuple[dict[str, list[Window]], list[Window], list[Output]]:
        """The summaries of members by attempt, those of nodes, and a word on ranks that an attempt has no room for."""
        by_attempt, nodes = _by_attempt(summaries)
        # Ranks that no job has begin no attempt, by which another would be over.
        self._open_attempts(start, {name: own for name, own in by_attempt.items() if any(map(_may_be, own))})
        ranked, outputs = {}, []
        for name in sorted(by_attempt):
            left_out = by_attempt[name]
            if name in self._attempts:
                ranked[name], left_out = self._attempts[name].state.view.admits(by_attempt[name])
            if left_out:
                letter = invented_ranks(f"{self._state.job}|{name}", end, STAGE, left_out)
                outputs.append(dead_letter_output(letter, end))
        return ranked, nodes, outputs

    def _split(
        self,
        start: int,
        end: int,
        summaries: list[Window],
        ranked: dict[str, list[Window]],
        nodes: list[Window],
        *,
        unavailable: bool,
    ) -> dict[str, AttemptWindow]:
        """The window by attempt."""
        told = told_by(nodes, summaries)
        if not self._attempts:
            self._open_attempts(start, {one.attempt: [] for one in told.of_attempts})
        # It is mostly said before anything shows that there is an attempt.
        take_layout(self._state.layout, told.layout)
        oldest = end - self._config.idle_windows * self._config.window_ns
        self._state.alarms = remembered(self._state.alarms, told.alerts, oldest)
        self._state.switches = switches_of(told.switches, self._state.switches, MOST_NODES)
        self._descriptions.take(summaries, self._attempts)
        views = {name: attempt.state.view for name, attempt in self._attempts.items()}
        owners = processes_of(views, ranked)
        in_order = [views[name] for name in sorted(views, key=self._order)]
        claims = claimed(nodes, owners, in_order, self._state.unclaimed, oldest)
        self._state.unclaimed = claims.waiting
        asks = told.asks_for_devices or any(one.device for _, one in self._state.alarms)
        shared = Shared(
            job=self._state.job,
            start=start,
            end=end,
            told=told,
            owners=owners,
            gpus=devices_of(views, ranked) if asks else {},
            exits=claims.exits,
            sightings=claims.sightings,
            layout=self._state.layout,
            alarms=self._state.alarms,
            switches=self._state.switches,
            unavailable=unavailable,
        )
        windows = {}
        for name, view in views.items():
            own = ranked.get(name, [])
            printed = self._templates.printed(name, own, view.members)
            windows[name] = window_of(view, own, shared, printed, self._descriptions.of(name))
        return windows

    def _open_attempts(self, start: int, ranked: dict[str, list[Window]]) -> None:
        for name in sorted(ranked, key=lambda name: (number_of(name), name)):
            if name in self._attempts:
                continue
            siblings = {other: self._attempts[other] for other in self._attempts if group_of(other) == group_of(name)}
            for other, sibling in siblings.items():
                if sibling.state.view.superseded is None and self._order(other) < (number_of(name), start):
                    sibling.state.view.superseded = start
            newest = max((self._order(other) for other in siblings), default=(-1, start))
            # A last word of an attempt that is over already does not end the one that runs.
            superseded = start if newest > (number_of(name), start) else None
            view = AttemptView(job=self._state.job, attempt=name, first=start, superseded=superseded)
            self._attempts[name] = Attempt(AttemptState(view=view), self._config)

    def _order(self, name: str) -> tuple[int, int]:
        """Attempts in order: by number, those without one by when they began."""
        return number_of(name), self._attempts[name].state.view.first


def _may_be(summary: Window) -> bool:
    """Whether a job may have the rank."""
    return 0 <= (summary.identity.rank or 0) < MOST_RANKS


def _by_attempt(summaries: list[Window]) -> tuple[dict[str, list[Window]], list[Window]]:
    """The summaries of ranks by attempt, and those of nodes and of workers whose rank is not known."""
    ranked: dict[str, list[Window]] = {}
    nodes = []
    for summary in summaries:
        if summary.identity.rank is None:
            nodes.append(summary)
        else:
            ranked.setdefault(attempt_of(summary), []).append(summary)
    return ranked, nodes
