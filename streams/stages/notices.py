"""Early words on hard evidence, as it arrives: one alert an attempt that names nobody and waits for its incident.

Who prints first is mostly a victim, so only that something has happened is said. What only passes the loss of a peer on
counts if a worker ended by it; what libraries complain of beside it, and what follows an end that somebody asked for,
does not. All of it is a function of the log topic of one partition, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from schemas.events import Batch, Event, Log
from schemas.identity import NO_JOB, Identity
from schemas.ids import attempt_name, notification_key, stable_id
from schemas.results import Fatal, Notice
from streams.lines.facts import Facts
from streams.lines.fatal import fatal_of, loses_a_peer
from streams.lines.launcher import exits_of
from streams.lines.phases import SHUTDOWN
from streams.lines.stops import stop_of
from streams.stages.node import passes_on, trains
from streams.stages.split import number_of

V = TypeVar("V")

SECOND = 1_000_000_000
AGAIN_NS = 300 * SECOND
"""How long a rule is quiet for an attempt after it has spoken."""
KEPT_NS = 900 * SECOND
"""How long after the last word on an attempt, or of a job's ranks, it is remembered."""
MOST_RULES = 8
"""Rules that may speak for one attempt until one of them is quiet no longer."""
REMEMBERED = 4096
"""Attempts of which it is known what was said."""
WORKER_ENDED = "worker_ended"
ASKED_FOR = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals by which a worker ends that somebody told to."""


class AttemptNotices(msgspec.Struct, kw_only=True):
    """When each rule last spoke of an attempt (ns), and whether its end was asked for, or its training is done.

    ``heard`` is when something was last found out about it.
    """

    heard: int = 0
    spoke: dict[str, int] = {}
    stopped: bool = False
    done: bool = False


class NoticesState(msgspec.Struct, kw_only=True):
    """``attempts`` by job and attempt; by job the ``newest`` attempt of its ranks, and when these were last heard."""

    attempts: dict[str, AttemptNotices] = {}
    newest: dict[str, tuple[str, int]] = {}


class Notices:
    """What a partition number's log batches say early."""

    def __init__(self, state: NoticesState | None = None) -> None:
        self.state = state or NoticesState()

    def of_batch(self, batch: Batch[Event], facts: list[Facts], present: int) -> list[Notice]:
        """The notices of a batch, ``facts`` those of its lines; nothing in it is later than ``present`` (ns)."""
        identity = batch.identity
        if identity.job == NO_JOB:
            return []
        attempt = self._attempt_of(identity, present)
        notices = []
        for event, known in zip(batch.events, facts, strict=False):
            if not isinstance(event, Log) or (known.plain and not known.ends):
                continue
            for rule in self._rules(identity, attempt, event, known, present):
                time = min(event.time, present)
                if self._is_new(identity.job, attempt, rule, time, present):
                    notices.append(_notice(batch, attempt, rule, time))
        return notices

    def _attempt_of(self, identity: Identity, present: int) -> str:
        """The attempt whose incident would tell of it: of what belongs to a node the newest that ranks have told."""
        known = self.state.newest.get(identity.job)
        newest = identity.attempt if known is None or _order(known[0]) < _order(identity.attempt) else known[0]
        if identity.rank is None:
            return newest
        if known is None:
            _forget(
                self.state.newest, [job for job, (_, heard) in self.state.newest.items() if heard + KEPT_NS < present]
            )
        self.state.newest[identity.job] = newest, present
        return identity.attempt

    def _rules(self, identity: Identity, attempt: str, event: Log, facts: Facts, present: int) -> Iterator[str]:
        """The rules by which a line is hard evidence; takes in what tells that an end is none."""
        turned = facts.turn or facts.ends
        told = (
            self._told(identity.job, attempt, present)
            if turned
            else self.state.attempts.get(attempt_name(identity.job, attempt))
        )
        if told is not None and facts.turn:
            told.done = facts.turn == SHUTDOWN
        if told is not None and facts.ends and identity.rank is None:
            told.stopped = told.stopped or stop_of(event.text, trains=trains(identity, event)) in ("job", "agent")
        over = told is not None and (told.stopped or told.done)
        if facts.trouble:
            fatal = fatal_of(event, trained=True)
            if fatal is not None and is_hard(fatal) and _counts(identity, event, fatal, over=over):
                yield fatal.rule
        if facts.ends and identity.rank is None and not over and _ends_badly(event):
            yield WORKER_ENDED

    def _told(self, job: str, attempt: str, present: int) -> AttemptNotices:
        attempts, name = self.state.attempts, attempt_name(job, attempt)
        if name not in attempts:
            _forget(attempts, [one for one, told in attempts.items() if told.heard + KEPT_NS < present])
            attempts[name] = AttemptNotices()
        attempts[name].heard = present
        return attempts[name]

    def _is_new(self, job: str, attempt: str, rule: str, time: int, present: int) -> bool:
        spoke = self._told(job, attempt, present).spoke
        quiet = {name for name, last in spoke.items() if time < last + AGAIN_NS}
        if rule in quiet or len(quiet) >= MOST_RULES:
            return False
        spoke[rule] = time
        for name in [name for name in spoke if name not in quiet and name != rule]:
            del spoke[name]
        return True


def is_hard(fatal: Fatal) -> bool:
    """Whether a line shows that something has happened, whoever prints it.

    A timeout of a collective is only printed once a job stands still; the loss of a peer also by whoever is taken down.
    """
    return fatal.role == "candidate" or fatal.symptom == "hang" or (loses_a_peer(fatal) and fatal.rule != "terminated")


def _counts(identity: Identity, event: Log, fatal: Fatal, *, over: bool) -> bool:
    """Whether it is told by whom it is of, and no peer that goes away once all is over."""
    return not (over and fatal.role == "cascade") and not (identity.rank is None and passes_on(identity, event, fatal))


def _ends_badly(event: Log) -> bool:
    ends = [one for one in exits_of(event) if not one.requested]
    return any(one.code and one.signal not in ASKED_FOR for one in ends)


def _notice(batch: Batch[Event], attempt: str, rule: str, time: int) -> Notice:
    identity = batch.identity
    return Notice(
        id=stable_id("notice", identity.key, identity.attempt, batch.producer, batch.boot, batch.seq, rule),
        notification_key=notification_key(identity.job, attempt),
        job=identity.job,
        attempt=attempt,
        time=time,
        rule=rule,
        text=f"{rule} in job {identity.job}: attribution pending",
    )


def _order(attempt: str) -> tuple[int, str]:
    number = number_of(attempt)
    return number, "" if number >= 0 else attempt


def _forget(known: dict[str, V], old: list[str]) -> None:
    """Make room for one more: by what is old, else by whatever comes first by name, where there is too much."""
    for name in old:
        del known[name]
    if len(known) >= REMEMBERED:
        del known[min(known)]
