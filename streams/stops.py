"""Whether an attempt was told to end from outside, and since when: then what follows is no incident of it.

A scheduler's word, or the job's own, speaks for the job. That a step was ended speaks for it where nothing had failed
before. What an agent or a rank is told it is told alone: the job was stopped where all were. A node that is drained
takes its agent along, and the out-of-memory killer a rank: such a job was not stopped, it has lost them.

A word is believed for as long as an end takes. Where half of the ranks live on beyond that it has ended nothing, and
what stands still then stands still: no word ever quiets a hang.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from schemas.results import Exit, Fatal, Stop, Window

SECOND = 1_000_000_000
SPREAD_NS = 20 * SECOND
"""Those who are told together are told within so long; whoever lives so long after another was told was not."""
ALL_WITHIN_NS = 60 * SECOND
GOES_ON_NS = 60 * SECOND
"""A job that iterates for longer than this after a word to end was not ended by it."""
END_NS = 180 * SECOND
"""Within so long whoever is told to end has ended: schedulers and launchers wait for half a minute before they kill,
those that let a job save before for some minutes."""
SAVE_NS = 60 * SECOND
"""The same where all that ranks were told is a signal by which jobs are mostly asked to save, and may go on."""
FAILED_NS = 600 * SECOND
OWN_SLACK_NS = SECOND
LOSS_SLACK_NS = 5 * SECOND
TERMINATED = "process.terminated"
_TOLD = frozenset({-1, -2, -10, -12, -15, 129, 130, 138, 140, 143})
"""Exit codes of those whom a signal ended that asks for an end."""


class Why(Enum):
    """Why an attempt counts as stopped, or not."""

    NOBODY = "nobody was told to end"
    JOB = "the job was ended"
    STEP = "its step was ended and nothing had failed before"
    RANKS = "all ranks were told to end"
    SAVED = "all ranks were told to save or to end"
    AGENTS = "all agents that were heard were told to end"
    MOST_AGENTS = "most agents that were heard were told to end"
    NOT_YET = "the other agents may be told yet"
    SILENT = "the others are not seen to live on"
    ALONE = "some were told to end, and others live on"
    SOME_RANKS = "some ranks were told to end"
    OUTLIVED = "half of the ranks live on for longer than an end takes"


class Stops(msgspec.Struct, kw_only=True):
    """What an attempt was told, times in ns: the ``job``, in words that were ``said``, its ``step``; agents by node,
    ranks by number, and those ``saving`` that were told by a signal that mostly asks to save.

    ``loose`` is by how much these times may be off at most.
    ``launchers`` are the nodes whose launcher was ever heard, ``lone`` when those were that were told alone;
    ``failed`` is when anything was last known to fail.
    """

    job: int | None = None
    said: str = ""
    step: int | None = None
    agents: dict[str, int] = {}
    ranks: dict[int, int] = {}
    saving: dict[int, int] = {}
    loose: int = 0
    launchers: list[str] = []
    lone: dict[str, int] = {}
    failed: int | None = None

    @property
    def told(self) -> bool:
        """Whether anybody was told anything."""
        return self.job is not None or self.step is not None or bool(self.agents or self.ranks or self.saving)


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known of an attempt besides: its ranks' last signs of life by node, and all that it must have.

    ``lived`` is until when half of the ranks showed life; ``failing`` are nodes whose launcher reports ends that nobody
    had asked for.
    """

    now: int
    ranks: frozenset[int]
    by_node: dict[str, int] = {}
    lived: int = 0
    failing: frozenset[str] = frozenset()


def decided(stops: Stops, lives: Lives) -> tuple[int | None, Why]:
    """Since when the attempt is stopped (ns), null where it is not, and why: of several reasons the earliest."""
    found: list[tuple[int, Why]] = []
    if stops.job is not None:
        found.append((stops.job, Why.JOB))
    if stops.step is not None:
        found.append((stops.step, Why.STEP))
    for told, meaning in ((stops.ranks, Why.RANKS), ({**stops.saving, **stops.ranks}, Why.SAVED)):
        times = [told[rank] for rank in lives.ranks if rank in told]
        if 0 < len(times) == len(lives.ranks) and max(times) - min(times) <= ALL_WITHIN_NS:
            found.append((min(times), meaning))
    some = Why.SOME_RANKS if stops.ranks or stops.saving else Why.NOBODY
    since, why = _agents(stops, lives) if stops.agents else (None, some)
    if since is not None:
        found.append((since, why))
    believed = [
        (since, why) for since, why in found if lives.lived <= since + (SAVE_NS if why is Why.SAVED else END_NS)
    ]
    return min(believed, key=lambda one: one[0], default=(None, Why.OUTLIVED if found else why))


def _agents(stops: Stops, lives: Lives) -> tuple[int | None, Why]:
    first = min(stops.agents.values())
    early = alone(stops)
    heard = {*stops.launchers, *stops.agents}
    if not early:
        return first, Why.AGENTS
    if 2 * len(early) > len(heard):
        return first, Why.MOST_AGENTS
    others = heard - set(early)
    later = [stops.agents[node] for node in others if node in stops.agents]
    if len(later) == len(others):
        return min(later), Why.AGENTS
    if others & lives.failing and lives.now > first + LOSS_SLACK_NS:
        return None, Why.ALONE
    if lives.now <= first + SPREAD_NS:
        return first, Why.NOT_YET
    living = any(lives.by_node.get(node, 0) > first + SPREAD_NS for node in others)
    return (None, Why.ALONE) if living else (first, Why.SILENT)


def alone(stops: Stops) -> dict[str, int]:
    """The nodes whose agents were told, with when, while others that were heard were not, or much later."""
    first = min(stops.agents.values(), default=0)
    early = {node: time for node, time in sorted(stops.agents.items()) if time <= first + SPREAD_NS}
    return early if {*stops.launchers, *stops.agents} - set(early) else {}


def take(
    stops: Stops,
    summaries: list[Window],
    words: list[tuple[str, Stop]],
    exits: list[tuple[int, Exit]],
    iterated: int | None,
) -> None:
    """Take in one window's words: of ranks by ``summaries``, of nodes by ``words``, and the ends of ranks.

    A step that was ended counts only where nothing had failed before that the job has not survived: ``iterated`` is
    when it last did.
    """
    if stops.failed is not None and (iterated or 0) > stops.failed + LOSS_SLACK_NS:
        stops.failed = None
    # Of thousands of ranks hardly any says anything of this kind.
    speaking = [one for one in summaries if one.fatals or one.stops]
    for summary in speaking:
        if summary.identity.rank is not None:
            _take_rank(stops, summary.identity.rank, summary)
    for rank, end in exits:
        if end.requested or end.code in _TOLD:
            stops.ranks[rank] = min(end.time, stops.ranks.get(rank, end.time))
    said = [*(stop for _, stop in words), *(stop for summary in speaking for stop in summary.stops)]
    fell = [one for summary in speaking for one in summary.fatals if one.template == TERMINATED]
    stops.loose = max([stops.loose, *(stop.precision_ns for stop in said), *(one.precision_ns for one in fell)])
    for node, stop in words:
        if stop.word == "job":
            _take_job(stops, stop)
        elif stop.word == "agent":
            stops.agents[node] = min(stop.time, stops.agents.get(node, stop.time))
        elif stop.word == "step" and not _had_failed(stops, speaking, exits, stop.time):
            stops.step = min(stop.time, stops.step or stop.time)
    failures = [*_failures(speaking), *(end.time for _, end in exits if failed(end))]
    stops.failed = max([*failures, stops.failed or 0]) or None


def _take_job(stops: Stops, stop: Stop) -> None:
    """The earliest word counts; of several at once the one whose text comes first, so that no order decides."""
    if stops.job is None or (stop.time, stop.said) < (stops.job, stops.said):
        stops.job, stops.said = stop.time, stop.said


def _take_rank(stops: Stops, rank: int, summary: Window) -> None:
    told = [one.time for one in summary.fatals if one.template == TERMINATED]
    told += [stop.time for stop in summary.stops if stop.word == "rank"]
    saving = [stop.time for stop in summary.stops if stop.word == "save"]
    for stop in summary.stops:
        if stop.word == "job":
            _take_job(stops, stop)
    for times, known in ((told, stops.ranks), (saving, stops.saving)):
        if times:
            known[rank] = min([*times, known.get(rank, times[0])])


def failed(end: Exit) -> bool:
    """Whether an end is a failure: it was not asked for, by a launcher or by a signal that asks."""
    return not end.requested and end.code not in (None, 0) and end.code not in _TOLD


def _failures(summaries: list[Window]) -> list[int]:
    return [one.time for summary in summaries for one in summary.fatals if _fails(one)]


def _fails(fatal: Fatal) -> bool:
    return fatal.role in ("candidate", "cascade") and fatal.template != TERMINATED


def _had_failed(stops: Stops, summaries: list[Window], exits: list[tuple[int, Exit]], time: int) -> bool:
    """Whether anything had failed shortly before: what peers lose at about that time they may lose by the stop."""
    if stops.failed is not None and stops.failed >= time - FAILED_NS:
        return True
    before = [one for summary in summaries for one in summary.fatals if _fails(one)]
    slack = {"candidate": OWN_SLACK_NS, "cascade": LOSS_SLACK_NS}
    lost = any(one.time + one.precision_ns < time - slack[one.role] for one in before)
    return lost or any(failed(end) and end.time < time - LOSS_SLACK_NS for _, end in exits)
