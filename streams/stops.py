"""Whether an attempt was told to end from outside, and since when: then what follows is no incident of it.

A scheduler's word, or the job's own, speaks for the job. That a step was ended speaks for it where nothing had failed
before. What an agent or a rank is told it is told alone: the job was stopped where all were. A node that is drained
takes its agent along, and the out-of-memory killer a rank: such a job was not stopped, it has lost them.

A word is believed for as long as an end takes. Where half of the ranks live on beyond that it has ended nothing, and
what stands still then stands still: no word ever quiets a hang.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

import msgspec

from schemas.identity import MOST_RANKS
from schemas.results import Exit, Fatal, Stop, Window
from streams.bounds import MOST_NODES, kept

SECOND = 1_000_000_000
STAGGER_NS = 35 * SECOND
"""A large job may be ended node by node: the next is told once the one before is gone, at the latest when it is killed
after half a minute. Whoever lives for longer after the last that was told was not."""
ALL_WITHIN_NS = 60 * SECOND
GOES_ON_NS = 60 * SECOND
"""A job that iterates for longer than this after a word to end was not ended by it."""
END_NS = 180 * SECOND
"""Within so long whoever is told to end has ended: schedulers and launchers wait for half a minute before they kill,
those that let a job save before for some minutes."""
SAVE_NS = 60 * SECOND
"""The same where all that ranks were told is a signal by which jobs are mostly asked to save, and may go on."""
FAILED_NS = 600 * SECOND
LOSS_SLACK_NS = 5 * SECOND
MOST_OWN = 32
TERMINATED = "process.terminated"
TOLD_CODES = frozenset({-1, -2, -10, -12, -15, 129, 130, 138, 140, 143})
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
    CRASHED = "somebody had failed of its own just before the agents were told"
    OUTLIVED = "half of the ranks live on for longer than an end takes"


class Stops(msgspec.Struct, kw_only=True):
    """What an attempt was told, times in ns: the ``job``, in words that were ``said``, its ``step``; agents by node,
    ranks by number, and those ``saving`` that were told by a signal that mostly asks to save.

    ``loose`` is by how much these times may be off at most.
    ``launchers`` are the nodes whose launcher was ever heard, ``lone`` when those were that were told alone;
    ``failed`` is when anything was last known to fail, ``own`` between which times ranks failed of their own, the first
    ones; ``node`` is when a scheduler last said that a node had failed.
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
    own: list[tuple[int, int]] = []
    node: int | None = None

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
    first, early = min(stops.agents.values()), _together(stops)
    if _crashed(stops, first, LOSS_SLACK_NS):
        return None, Why.CRASHED
    others = {*stops.launchers, *stops.agents} - set(early)
    if not others or len(early) > len(others):
        return first, Why.MOST_AGENTS if others else Why.AGENTS
    later = [stops.agents[node] for node in others if node in stops.agents]
    if len(later) == len(others):
        return min(later), Why.AGENTS
    return _some_agents(lives, others, first, max(early.values()))


def _some_agents(lives: Lives, others: set[str], first: int, last: int) -> tuple[int | None, Why]:
    """What it means that some were told between ``first`` and ``last``, and ``others`` not."""
    if others & lives.failing and lives.now > first + LOSS_SLACK_NS:
        return None, Why.ALONE
    if lives.now <= last + STAGGER_NS:
        return first, Why.NOT_YET
    living = any(lives.by_node.get(node, 0) > last + STAGGER_NS for node in others)
    return (None, Why.ALONE) if living else (first, Why.SILENT)


def _together(stops: Stops) -> dict[str, int]:
    """The nodes whose agents were told first, with when: all at once, or each soon after the one before."""
    found: dict[str, int] = {}
    last: int | None = None
    for time, node in sorted((time, node) for node, time in stops.agents.items()):
        if last is not None and time > last + STAGGER_NS:
            break
        found[node] = last = time
    return found


def alone(stops: Stops) -> dict[str, int]:
    """The nodes whose agents were told, with when, while others that were heard were not, or much later."""
    early = _together(stops)
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
    when it last did. What a scheduler ends for a node that has failed is no stop either.
    """
    lived = (iterated or 0) - LOSS_SLACK_NS
    if stops.failed is not None and lived > stops.failed:
        stops.failed = None
    # Of thousands of ranks hardly any says anything of this kind.
    speaking = [one for one in summaries if one.fatals or one.stops]
    for summary in speaking:
        if summary.identity.rank is not None:
            _take_rank(stops, summary.identity.rank, summary)
    for rank, end in exits:
        if end.requested or end.code in TOLD_CODES:
            stops.ranks[rank] = min(end.time, stops.ranks.get(rank, end.time))
    said = [*(stop for _, stop in words), *(stop for summary in speaking for stop in summary.stops)]
    fell = [one for summary in speaking for one in summary.fatals if one.template == TERMINATED]
    stops.loose = max([stops.loose, *(stop.precision_ns for stop in said), *(one.precision_ns for one in fell)])
    own = {*stops.own, *_of_their_own(stops, speaking, exits, said)}
    stops.own = sorted(one for one in own if one[1] >= lived)[:MOST_OWN]
    stops.node = max([*(stop.time for stop in said if stop.word == "node"), stops.node or 0]) or None
    for node, stop in words:
        if stop.word == "job":
            _take_job(stops, stop)
        elif stop.word == "agent":
            stops.agents[node] = min(stop.time, stops.agents.get(node, stop.time))
        elif stop.word == "step" and not _had_lost(stops, speaking, stop.time):
            stops.step = min(stop.time, stops.step or stop.time)
    if stops.step is not None and (_crashed(stops, stops.step, FAILED_NS) or _for_a_node(stops, stops.step)):
        stops.step = None
    if stops.job is not None and _for_a_node(stops, stops.job):
        stops.job, stops.said = None, ""
    failures = [*_failures(speaking), *(end.time for _, end in exits if failed(end))]
    stops.failed = max([*failures, stops.failed or 0]) or None


def bound(stops: Stops, nodes: Collection[str], ranks: Collection[int]) -> None:
    """Keep no more nodes and ranks than a job has: those that are known of it first, then the earliest told."""
    stops.agents = kept(stops.agents, nodes, MOST_NODES)
    stops.ranks, stops.saving = kept(stops.ranks, ranks, MOST_RANKS), kept(stops.saving, ranks, MOST_RANKS)


def _of_their_own(
    stops: Stops, summaries: list[Window], exits: list[tuple[int, Exit]], said: list[Stop]
) -> list[tuple[int, int]]:
    """When anybody failed of its own, as (earliest, latest); who was told to end before may fail by that."""
    ends = [(rank, end.time, 0) for rank, end in exits if failed(end)]
    errors = [
        (summary.identity.rank, fatal.time, fatal.precision_ns)
        for summary in summaries
        for fatal in summary.fatals
        if summary.identity.rank is not None and fatal.role == "candidate"
    ]
    of_ranks = [
        (time - within, time + within)
        for rank, time, within in (*ends, *errors)
        if stops.ranks.get(rank, time + within + 1) > time + within
    ]
    tasks = [(stop.time - stop.precision_ns, stop.time + stop.precision_ns) for stop in said if stop.word == "task"]
    return [*of_ranks, *tasks]


def _crashed(stops: Stops, time: int, within: int) -> bool:
    """Whether anybody may have failed of its own at ``time`` or shortly before; where that is open, it did."""
    return any(earliest <= time + stops.loose and latest >= time - within for earliest, latest in stops.own)


def _for_a_node(stops: Stops, time: int) -> bool:
    """Whether what was ended at ``time`` was ended for a node that had failed; slurmstepds say so at about once."""
    return stops.node is not None and stops.node - SECOND - stops.loose <= time <= stops.node + FAILED_NS


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
    return not end.requested and end.code not in (None, 0) and end.code not in TOLD_CODES


def _failures(summaries: list[Window]) -> list[int]:
    return [one.time for summary in summaries for one in summary.fatals if _fails(one)]


def _fails(fatal: Fatal) -> bool:
    return fatal.role in ("candidate", "cascade") and fatal.template != TERMINATED


def _had_lost(stops: Stops, summaries: list[Window], time: int) -> bool:
    """Whether anybody had lost others before; what peers lose at about that time they may lose by the stop."""
    if stops.failed is not None and stops.failed >= time - FAILED_NS:
        return True
    lost = [one for summary in summaries for one in summary.fatals if _fails(one) and one.role == "cascade"]
    return any(one.time + one.precision_ns < time - LOSS_SLACK_NS for one in lost)
