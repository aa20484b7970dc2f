"""``rankwatch feed``: early notices and incident revisions as they are published, a line each.

Below a hang stands where its ranks are, once and when that changes.
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from typing import TypeVar

from rich.text import Text

from rankwatch.deployments import deployment_of
from rankwatch.outages import outages_told
from rankwatch.signals import stopping
from rankwatch.silenced import SilencedFeed, dimmed, silence_json
from rankwatch.silences import now_ns
from rankwatch.text import console, headline, notice_line, stack_lines
from schemas.entries import read_entry
from schemas.ports import Entry
from schemas.results import DeadLetter, Incident, Notice
from schemas.silences import Silence
from streams.ending import say
from streams.log.kafka_silences import stored_silences
from streams.log.kafka_tail import KafkaTail
from streams.report import as_json, moment, publication
from streams.silencing import TOPIC as SILENCES

TOPICS = ("incidents", "notices")
WAIT_S = 0.5

V = TypeVar("V")

REMEMBERED = 10_000
"""Incidents and alerts of which it is known what was said."""


class Feed:
    """Says each revision and each notice once, whoever appended it twice; of an incident only what is newer."""

    def __init__(self, silenced: SilencedFeed, *, as_json: bool) -> None:
        self._as_json = as_json
        self._silenced = silenced
        self._out = console()
        self._revisions: dict[str, int] = {}
        self._notices: dict[str, int] = {}
        self._stacks: dict[str, list[str]] = {}

    def show(self, found: list[tuple[str, Entry]]) -> None:
        """Show what arrived together, in order of publication, and what is no longer silenced."""
        for why in self._silenced.take(entry for topic, entry in found if topic == SILENCES):
            say(f"{SILENCES}: {why}")
        found = [(topic, entry) for topic, entry in found if topic != SILENCES]
        records = [record for topic, entry in found if (record := self._read(topic, entry)) is not None]
        for notice in [record for record in records if isinstance(record, Notice)]:
            self._notice(notice)
        for incident in sorted((one for one in records if isinstance(one, Incident)), key=publication):
            self._incident(incident)
        for incident in self._silenced.over():
            self._say(incident, None)

    @staticmethod
    def _read(topic: str, entry: Entry) -> Incident | Notice | None:
        read = read_entry(entry, topic, -1, "feed")
        if isinstance(read, DeadLetter):
            say(f"{topic}, offset {entry.offset}: {read.reason}")
            return None
        record: Incident | Notice = read[1]
        return record

    def _incident(self, incident: Incident) -> None:
        if self._revisions.get(incident.id, 0) >= incident.revision:
            return
        _remember(self._revisions, incident.id, incident.revision)
        self._say(incident, self._silenced.of(incident))

    def _say(self, incident: Incident, silence: Silence | None) -> None:
        if self._as_json:
            self._print_json("incident", {**as_json(incident), "silenced": silence_json(silence)})
        elif silence is not None:
            self._out.print(dimmed(headline(incident), silence))
        else:
            self._out.print(headline(incident))
            lines = stack_lines(incident)
            if lines and lines != self._stacks.get(incident.id):
                _remember(self._stacks, incident.id, lines)
                self._out.print("\n".join(f"    {line}" for line in lines))

    def _notice(self, notice: Notice) -> None:
        # One alert an attempt: the incident that follows adopts it.
        if notice.notification_key in self._notices:
            return
        _remember(self._notices, notice.notification_key, 0)
        silence = self._silenced.of_notice(notice)
        if self._as_json:
            plain = {"time": moment(notice.time), "job": notice.job, "attempt": notice.attempt, "rule": notice.rule}
            told = {"text": notice.text, "notification_key": notice.notification_key}
            self._print_json("notice", {**plain, **told, "silenced": silence_json(silence)})
        else:
            line = Text(notice_line(notice))
            self._out.print(line if silence is None else dimmed(line, silence))

    @staticmethod
    def _print_json(kind: str, value: dict[str, object]) -> None:
        print(json.dumps({"kind": kind, **value}), flush=True)


def _remember(known: dict[str, V], name: str, value: V) -> None:
    known.pop(name, None)
    known[name] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]


def run(arguments: argparse.Namespace) -> int:
    """Follow the feed until told to stop."""
    with deployment_of(arguments) as (log, deployment), ExitStack() as stack:
        tail = KafkaTail(log, TOPICS, beginning=arguments.from_beginning)
        stack.callback(tail.close)
        # What holds now was mostly said before this feed began.
        silences = KafkaTail(log, (SILENCES,), beginning=True)
        stack.callback(silences.close)
        stack.enter_context(outages_told(log.settings))
        silenced = SilencedFeed(stored_silences(log), now_ns if deployment.ticks == "workers" else None)
        feed, stop = Feed(silenced, as_json=arguments.format == "json"), stopping()
        while not stop.is_set():
            feed.show([*silences.poll(500, 0), *tail.poll(500, WAIT_S)])
    return 0
