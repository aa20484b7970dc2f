"""``rankwatch feed``: early notices and incident revisions as they are published, a line each.

Below a hang stands where its ranks are, once and when that changes; below one of several jobs which incidents it is
made of, and below these that they are part of it.
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from typing import TypeVar

from rankwatch.deployments import deployment_of
from rankwatch.outages import outages_told
from rankwatch.signals import stopping
from rankwatch.text import console, headline, notice_line, printable, stack_lines
from rankwatch.text_fleet import fleet_lines
from schemas.entries import read_entry
from schemas.ports import Entry
from schemas.results import DeadLetter, Incident, Notice
from streams.ending import say
from streams.log.kafka_tail import KafkaTail
from streams.memberships import Memberships
from streams.report import as_json, moment, publication

TOPICS = ("incidents", "notices")
WAIT_S = 0.5

V = TypeVar("V")

REMEMBERED = 10_000
"""Incidents and alerts of which it is known what was said."""


class Feed:
    """Says each revision and each notice once, whoever appended it twice; of an incident only what is newer."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._out = console()
        self._revisions: dict[str, int] = {}
        self._notices: dict[str, int] = {}
        self._stacks: dict[str, list[str]] = {}
        self._fleet = Memberships()

    def show(self, found: list[tuple[str, Entry]]) -> None:
        """Show what arrived together, in order of publication."""
        records = [record for topic, entry in found if (record := self._read(topic, entry)) is not None]
        for notice in [record for record in records if isinstance(record, Notice)]:
            self._notice(notice)
        for incident in sorted((one for one in records if isinstance(one, Incident)), key=publication):
            self._incident(incident)

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
        members = self._fleet.take(incident)
        if self._as_json:
            self._print_json("incident", as_json(incident, self._fleet.of(incident)))
        else:
            self._out.print(headline(incident))
            for line in fleet_lines(incident, members, self._fleet):
                self._out.print(f"    {printable(line)}")
            lines = stack_lines(incident)
            if lines and lines != self._stacks.get(incident.id):
                _remember(self._stacks, incident.id, lines)
                self._out.print("\n".join(f"    {line}" for line in lines))

    def _notice(self, notice: Notice) -> None:
        # One alert an attempt: the incident that follows adopts it.
        if notice.notification_key in self._notices:
            return
        _remember(self._notices, notice.notification_key, 0)
        if self._as_json:
            plain = {"time": moment(notice.time), "job": notice.job, "attempt": notice.attempt, "rule": notice.rule}
            self._print_json("notice", {**plain, "text": notice.text, "notification_key": notice.notification_key})
        else:
            self._out.print(notice_line(notice))

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
    with deployment_of(arguments) as (log, _), ExitStack() as stack:
        tail = KafkaTail(log, TOPICS, beginning=arguments.from_beginning)
        stack.callback(tail.close)
        stack.enter_context(outages_told(log.settings))
        feed, stop = Feed(as_json=arguments.format == "json"), stopping()
        while not stop.is_set():
            feed.show(tail.poll(500, WAIT_S))
    return 0
