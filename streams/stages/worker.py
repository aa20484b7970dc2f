"""One worker's closed, sorted window: events in, one summary and the stamped events out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from schemas import events, results
from schemas.identity import Identity
from schemas.ids import stable_id
from schemas.jobs import JobDescription
from streams.bounds import take_layout
from streams.config import StreamConfig
from streams.hardware import WatchState
from streams.job_description import described_by, merged_description, with_layout
from streams.lines.devices import device_of, pci_of
from streams.lines.facts import Facts, facts_of_all
from streams.lines.fatal import fatal_of, follow
from streams.lines.iterations.report import Report
from streams.lines.launcher import exits_of
from streams.lines.layout import layout_of
from streams.lines.phases import QUIET_PHASES, SHUTDOWN, phase_after
from streams.lines.series import NOTHING, report_of
from streams.lines.watchdog import TELLING
from streams.stacks import spans_of, telling
from streams.stages import node
from streams.stages.alerts import Alerts
from streams.stages.columns import Reached, Timed
from streams.stages.fatals import Fatals
from streams.stages.measured import Measured
from streams.stages.signatures import Signatures
from streams.stages.sketches import Sketches
from streams.stages.stop_words import StopWords, StopWordsState
from streams.stages.tail import tail_of
from streams.stages.timelines import Timelines
from streams.stages.watched import Watched
from streams.switches import path_of_address

T = TypeVar("T")

MOST_DEVICES = 64
LONGEST_SWITCH = 256
MOST_EXITS = 16_384
"""Ends that a launcher may report in a window; one with many more would be too large for its topic, and be lost."""
MOST_PROCESSES = 16_384
"""Processes that are seen, or announce themselves, in a window."""


class WorkerState(msgspec.Struct, kw_only=True):
    """What a worker carries from window to window. ``names`` are its metrics; further ones are dropped and counted.

    ``quiet_since`` is the iteration behind which a checkpoint or evaluation was told to begin.
    ``ended`` once workers of an unknown rank have said that training is done, until one reports an iteration again.
    """

    phase: str = ""
    iteration: int | None = None
    quiet_since: int | None = None
    trained: bool = False
    ended: bool = False
    names: list[str] = []
    hardware: WatchState = msgspec.field(default_factory=WatchState)
    stops: StopWordsState = msgspec.field(default_factory=StopWordsState)
    detectors: dict[str, msgspec.Raw] = {}


class _Draft:
    """A window being summed up."""

    def __init__(self, state: WorkerState, config: StreamConfig) -> None:
        self.measured = Measured(state.names, state.hardware)
        self.signatures = Signatures(config.signatures_per_window)
        self.fatals = Fatals()
        self.watched = Watched()
        self.timed = Timed()
        self.timelines = Timelines()
        self.sketches = Sketches()
        self.alerts = Alerts()
        self.switch = ""
        self.shifted_ns = 0
        self.exits: list[results.Exit] = []
        self.reached = Reached()
        self.stacks: list[events.Stack] = []
        self.announced: set[tuple[int, str]] = set()
        self.pids: set[int] = set()
        self.layout: dict[str, int] = {}
        self.described: JobDescription | None = None
        self.devices: set[str] = set()
        self.sampled_devices: set[str] = set()
        self.heartbeats = 0
        self.log_records = 0
        self.world_size: int | None = None
        self.iteration: int | None = None
        self.iteration_time: int | None = None
        self.iteration_within_ns = 0
        self.phase_time: int | None = None
        self.total: int | None = None
        self.last_log: int | None = None
        self.stops = StopWords(state.stops)
        self.finished: int | None = None
        self.dropped: dict[str, int] = {}


def summarise(
    identity: Identity,
    state: WorkerState,
    ordered: list[events.Event],
    window: int,
    config: StreamConfig,
    known: list[Facts] | None = None,
) -> tuple[results.Window, list[events.Event]]:
    """Sum up a worker's events of window number ``window``, in canonical order; ``state`` moves on.

    ``known`` are the facts of the log lines among them, in order, where somebody has asked for them before.
    Returns the summary, without drifts, and the events stamped with phase, iteration and signature.
    """
    draft = _Draft(state, config)
    logs = [event for event in ordered if isinstance(event, events.Log)]
    facts = facts_of_all([event.text for event in logs]) if known is None else known
    draft.log_records = len(logs)
    draft.last_log = logs[-1].time if logs else None
    for event, fact in zip(logs, facts, strict=True):
        draft.signatures.take(event, fact)
    stamped = _taken(draft, identity, state, ordered, facts)
    return _summary(draft, identity, state, stamped, window * config.window_ns, config), stamped


def _summary(
    draft: _Draft, identity: Identity, state: WorkerState, stamped: list[events.Event], start: int, config: StreamConfig
) -> results.Window:
    signatures = list(draft.signatures.counted())
    spans = spans_of(draft.stacks)
    kept = telling(spans)
    return results.Window(
        id=stable_id("window", identity.key, identity.attempt, start, config.hash),
        identity=identity,
        start=start,
        end=start + config.window_ns,
        phase=state.phase,
        phase_time=draft.phase_time,
        iteration=draft.iteration,
        iteration_time=draft.iteration_time,
        iteration_within_ns=draft.iteration_within_ns,
        total_iterations=draft.total,
        log_records=draft.log_records,
        last_log=draft.last_log,
        pids=sorted(draft.pids),
        heartbeats=draft.heartbeats,
        world_size=draft.world_size,
        layout=draft.layout,
        devices=sorted(draft.devices)[:MOST_DEVICES],
        sampled_devices=sorted(draft.sampled_devices)[:MOST_DEVICES],
        announced=sorted(draft.announced),
        signatures=signatures,
        tail=tail_of(stamped, signatures),
        series=draft.measured.series(),
        gauge_columns=draft.measured.gauges(),
        stacks=[spans[at] for at in kept],
        fatals=draft.fatals.kept,
        exits=draft.exits,
        stopped=draft.stops.stopped,
        stops=draft.stops.found,
        launcher=draft.stops.launcher,
        finished=draft.finished,
        collectives=[*draft.reached.states(), *draft.watched.states(identity)],
        operations=draft.timed.columns(),
        timelines=draft.timelines.kept(),
        hardware=draft.measured.hardware.changes,
        sketches=draft.sketches.kept(),
        described=with_layout(draft.described, draft.layout, draft.world_size),
        alerts=draft.alerts.kept,
        switch=draft.switch,
        shifted_ns=draft.shifted_ns,
        # Last: parts know what they left out once they have been asked for what they keep.
        dropped=_dropped(draft, stacks=len(spans) - len(kept)),
    )


def _dropped(draft: _Draft, *, stacks: int) -> dict[str, int]:
    """By reason what was left out; ``stacks`` are those of further threads, and each part of the draft has its own."""
    left_out = {
        "alerts": draft.alerts.left_out,
        "awaited sends": draft.reached.left_out,
        "fatals": draft.fatals.left_out,
        "hardware": draft.measured.hardware.left_out,
        "operations": draft.timed.left_out,
        "profiles": draft.sketches.left_out,
        "signatures": draft.signatures.left_out,
        "stacks": stacks,
        "timelines": draft.timelines.left_out,
        "watchdog groups": draft.watched.left_out,
        "watchdog operations": draft.watched.operations_left_out,
    }
    dropped = {**draft.dropped, **draft.measured.left_out, **{one: count for one, count in left_out.items() if count}}
    return dict(sorted(dropped.items()))


def _taken(
    draft: _Draft, identity: Identity, state: WorkerState, ordered: list[events.Event], known: list[Facts]
) -> list[events.Event]:
    """Take the events in, in order; returns them stamped."""
    replace = msgspec.structs.replace
    of_log = iter(known)
    draft.measured.look_ahead(event for event in ordered if isinstance(event, events.Metric))
    stamped: list[events.Event] = []
    for event in ordered:
        if not isinstance(event, events.Log):
            _take(draft, state, event)
            iteration = state.iteration if event.iteration is None else event.iteration
            stamped.append(replace(event, phase=state.phase, iteration=iteration))
            continue
        facts = next(of_log)
        if facts.ends:
            draft.stops.take(event, trains=identity.rank is not None or node.trains(identity, event))
        if identity.rank is None:
            trains = node.trains(identity, event)
            draft.stops.heard(identity, event)
            if facts.ends or not facts.plain or (trains and (event.iteration is not None or not state.phase)):
                _node_line(draft, identity, state, event, facts, trains=trains)
            if not trains:
                stamped.append(replace(event, signature=facts.signature))
                continue
        elif not facts.plain or event.iteration is not None or not state.phase:
            _training_line(draft, state, event, facts)
        iteration = state.iteration if event.iteration is None else event.iteration
        stamped.append(replace(event, phase=state.phase, iteration=iteration, signature=facts.signature))
    return stamped


def _take(draft: _Draft, state: WorkerState, event: events.Event) -> None:
    match event:
        case events.Metric():
            _metric(draft, event)
        case events.Stack():
            draft.stacks.append(event)
        case events.Collective():
            draft.timed.take(event)
            draft.reached.take(event)
        case events.Profile():
            draft.sketches.take(event)
        case events.Timeline():
            draft.timelines.take(event)
        case events.Heartbeat():
            draft.heartbeats += 1
            _processes(draft, draft.pids, event.pids, "pids")
        case events.Topology():
            draft.shifted_ns = event.shifted_ns or draft.shifted_ns
            if event.pid or not (event.switch or event.shifted_ns):
                _processes(draft, draft.announced, [(event.pid, event.process_type)], "announced")
            draft.world_size = event.world_size or draft.world_size
            draft.switch = event.switch[:LONGEST_SWITCH] or draft.switch
        case events.Alert():
            draft.alerts.add(event)
        case events.Job():
            # What a configuration asks for is no proof of how the job really runs, or of whom to miss.
            if not event.source:
                _layout(draft, event.layout)
                draft.world_size = event.world_size or draft.world_size
            draft.described = merged_description((draft.described, described_by(event)))
            draft.switch = path_of_address(event.environment.get("SLURM_TOPOLOGY_ADDR", "")) or draft.switch


def _node_line(
    draft: _Draft, identity: Identity, state: WorkerState, event: events.Log, facts: Facts, *, trains: bool
) -> None:
    """A line of no rank: of a launcher, a kernel, or a worker whose rank is not known, which ``trains``."""
    for found in exits_of(event):
        if len(draft.exits) < MOST_EXITS:
            draft.exits.append(found)
        else:
            _drop(draft, "exits")
    if facts.turn == SHUTDOWN and trains:
        state.ended = True
    if facts.trouble:
        node.take(draft.fatals, identity, event, ended=state.ended)
    if not trains:
        return
    report, iteration = _turned(draft, state, event, facts)
    if facts.turn == SHUTDOWN:
        draft.finished = min(event.time, draft.finished or event.time)
    if facts.layout:
        _layout(draft, layout_of(event.text))
    if iteration is not None and report.readings:
        state.ended = False
    _readings(draft, state, event, report, iteration)


def _training_line(draft: _Draft, state: WorkerState, event: events.Log, facts: Facts) -> None:
    report, iteration = _turned(draft, state, event, facts)
    if facts.trouble and _fatal(draft, state, event, facts):
        return
    if facts.turn == SHUTDOWN:
        draft.finished = min(event.time, draft.finished or event.time)
    if facts.device and (device := device_of(event.text)):
        draft.devices.add(device)
    if facts.layout:
        _layout(draft, layout_of(event.text))
    _readings(draft, state, event, report, iteration)


def _turned(draft: _Draft, state: WorkerState, event: events.Log, facts: Facts) -> tuple[Report, int | None]:
    """What a line reports and the iteration that it tells; the worker's phase goes on with it."""
    report = report_of(event.text) if facts.readings else NOTHING
    iteration = _reached(state, event, report)
    turned = phase_after(
        state.phase,
        iteration,
        turn=facts.turn,
        downloads=facts.downloads,
        reports=bool(report.readings),
        since=state.quiet_since,
    )
    if facts.turn in QUIET_PHASES:
        # Timers of the iteration that is just done are often printed a moment later, and by another stream.
        state.quiet_since = (state.iteration or 0) + 1 if iteration is None else iteration
    if facts.turn or turned != state.phase:
        draft.phase_time = event.time
    state.phase = turned
    return report, iteration


def _readings(draft: _Draft, state: WorkerState, event: events.Log, report: Report, iteration: int | None) -> None:
    """Take in what a line measures of an iteration."""
    if not report.readings:
        return
    if iteration is not None:
        state.trained = True
        draft.total = report.total or draft.total
        if draft.iteration is None or iteration >= draft.iteration:
            draft.iteration, draft.iteration_time = iteration, event.time
            draft.iteration_within_ns = event.precision_ns if event.time_source == "inferred" else 0
            state.iteration = iteration
        draft.measured.read(report.readings, iteration, event.time)
    elif report.place == "present":
        if state.iteration is None:
            _drop(draft, "readings before the first iteration")
        else:
            draft.measured.read(report.readings, state.iteration, event.time)


def _fatal(draft: _Draft, state: WorkerState, event: events.Log, facts: Facts) -> bool:
    """Take in a line that may mean trouble; returns whether it does by itself."""
    if facts.predefined in TELLING:
        draft.watched.take(event.text, event.time)
    fatal = fatal_of(event, trained=state.trained)
    if fatal is None:
        follow(draft.fatals.kept, event.text)
        return False
    draft.fatals.add(fatal)
    return True


def _reached(state: WorkerState, event: events.Log, report: Report) -> int | None:
    """The iteration that a line says the worker has come to, or null; reports that number nothing are counted."""
    if event.iteration is not None:
        return event.iteration
    if report.place == "next" and report.iteration is None:
        return (state.iteration or 0) + 1
    return report.iteration


def _drop(draft: _Draft, reason: str) -> None:
    draft.dropped[reason] = draft.dropped.get(reason, 0) + 1


def _processes(draft: _Draft, found: set[T], told: Iterable[T], reason: str) -> None:
    """Take in processes; of more than there is room for the first stay, and the others are counted."""
    for one in told:
        if one in found or len(found) < MOST_PROCESSES:
            found.add(one)
        else:
            _drop(draft, reason)


def _layout(draft: _Draft, told: Mapping[str, int]) -> None:
    left_out = take_layout(draft.layout, told)
    if left_out:
        draft.dropped["layout"] = draft.dropped.get("layout", 0) + left_out


def _metric(draft: _Draft, event: events.Metric) -> None:
    if event.pid is not None:
        _processes(draft, draft.pids, [event.pid], "pids")
        if event.device and (device := pci_of(event.device)):
            draft.sampled_devices.add(device)
    draft.measured.take(event)


def group_by_worker(items: list[tuple[Identity, Any]]) -> dict[tuple[str, str, str], list[tuple[Identity, Any]]]:
    """Items by (job, worker, attempt), in canonical order of those."""
    groups: dict[tuple[str, str, str], list[tuple[Identity, Any]]] = {}
    for identity, item in items:
        groups.setdefault((identity.job, identity.worker, identity.attempt), []).append((identity, item))
    return dict(sorted(groups.items()))
