"""``rankwatch feed``: early notices, incident revisions and alerts about the pipeline as they are published.

A line each; below a hang stands where its ranks are, once and when that changes; below an incident of several jobs of
which it is made, and below these that they are part of it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from rich.text import Text

from rankwatch.adoption import Adoption, Word, remember
from rankwatch.deployments import deployment_of
from rankwatch.feed_lines import (
    closed_line,
    incident_json,
    incident_line,
    meta_json,
    meta_line,
    notice_json,
    notice_line,
)
from rankwatch.outages import outages_told
from rankwatch.pulse import Pulse, Repeated
from rankwatch.signals import stopping
from rankwatch.silenced import SilencedFeed, dimmed, silence_json
from rankwatch.silences import now_ns
from rankwatch.terminal import console, printable, put
from rankwatch.text import stack_lines
from rankwatch.text_fleet import fleet_lines, is_fleet
from schemas.entries import read_entry
from schemas.meta import WATCHDOG, MetaAlert
from schemas.ports import Entry
from schemas.results import DeadLetter, Incident, Notice
from schemas.silences import Silence
from streams.ending import say
from streams.log.backlog import backlog, ends_of
from streams.log.kafka_silences import stored_silences
from streams.log.kafka_tail import KafkaTail
from streams.memberships import Memberships
from streams.report import moment, publication
from streams.silencing import TOPIC as SILENCES

TOPICS = ("incidents", "notices", "meta")
WAIT_S = 0.5

Published = Incident | Notice | MetaAlert


class Feed:
    """Says each revision, each alert and the first notice of each attempt once, whoever appended it twice.

    Of an incident only what is newer. Beats of the watchdog are told in JSON only: they are for machines.
    """

    def __init__(self, *, as_json: bool, silenced: SilencedFeed | None = None, pulse: Pulse | None = None) -> None:
        self._as_json = as_json
        self._silenced = silenced or SilencedFeed((), None)
        self._pulse = pulse
        self._out = console()
        self._adoption = Adoption()
        self._revisions: dict[str, int] = {}
        self._adopters: dict[str, bool] = {}
        self._stacks: dict[str, list[str]] = {}
        self._fleet = Memberships()
        self._alerts: dict[str, str] = {}
        self._repeated = Repeated()

    def show(self, found: Sequence[tuple[str, Entry]]) -> None:
        """Show what arrived together, in the order in which it was told, and what is no longer silenced."""
        for why in self._silenced.take(entry for topic, entry in found if topic == SILENCES):
            say(f"{SILENCES}: {why}")
        found = [(topic, entry) for topic, entry in found if topic != SILENCES]
        records = [record for topic, entry in found if (record := self._read(topic, entry)) is not None]
        for record in sorted((one for one in records if not isinstance(one, MetaAlert)), key=_told_at):
            if isinstance(record, Notice):
                self._notice(record)
            else:
                self._incident(record)
        for incident in self._silenced.over():
            self._say(incident, None)
        alerts = [one for one in records if isinstance(one, MetaAlert)]
        self._repeated.heard(alerts)
        for alert in sorted(alerts, key=lambda one: (one.time, one.name, one.subject, one.status)):
            self._alert(alert)
        if self._pulse is not None and alerts:
            self._pulse.heard(alerts)
            self._close(self._pulse.reached)

    def look(self, now: int) -> None:
        """Say if the pipeline or a worker has fallen silent, or is back, as of ``now`` (ns)."""
        changed = self._pulse.look(now) if self._pulse is not None else None
        if changed is not None:
            self._alerts.pop(changed.id, None)  # It says only what is new: also who falls silent besides.
        for alert in [*([] if changed is None else [changed]), *self._repeated.look(now)]:
            self._alert(alert)

    @staticmethod
    def _read(topic: str, entry: Entry) -> Published | None:
        read = read_entry(entry, topic, -1, "feed")
        if isinstance(read, DeadLetter):
            say(f"{topic}, offset {entry.offset}: {read.reason}")
            return None
        record: Published = read[1]
        return record

    def _incident(self, incident: Incident) -> None:
        if self._revisions.get(incident.id, 0) >= incident.revision:
            return
        remember(self._revisions, incident.id, incident.revision)
        self._say(incident, self._silenced.of(incident))

    def _say(self, incident: Incident, silence: Silence | None) -> None:
        adopted, members = self._adoption.followed(incident), self._fleet.take(incident)
        if self._as_json:
            told = incident_json(incident, adopted, self._fleet.of(incident))
            self._print_json("incident", {**told, "silenced": silence_json(silence)})
            return
        first = adopted is not None and incident.id not in self._adopters
        if first:
            remember(self._adopters, incident.id, True)
        line = incident_line(incident, adopted if first else None)
        if silence is not None:
            self._print(dimmed(line, silence))
            return
        self._print(line)
        for below in fleet_lines(incident, members, self._fleet):
            self._print(Text(f"    {printable(below)}"))
        lines = stack_lines(incident)
        if lines and lines != self._stacks.get(incident.id):
            remember(self._stacks, incident.id, lines)
            for below in lines:
                self._print(Text(f"    {below}"))

    def _notice(self, notice: Notice) -> None:
        # One alert an attempt: the incident that follows adopts it.
        if self._adoption.heard(notice) is not Word.NEW:
            return
        silence = self._silenced.of_notice(notice)
        if self._as_json:
            self._print_json("notice", {**notice_json(notice), "silenced": silence_json(silence)})
        else:
            line = notice_line(notice)
            self._print(line if silence is None else dimmed(line, silence))

    def _close(self, reached: int | None) -> None:
        for notice in self._adoption.passed(reached) if reached is not None else ():
            if self._as_json:
                self._print_json("notice_over", {**notice_json(notice), "closed": moment(reached or 0)})
            else:
                self._print(closed_line(notice, reached or 0))

    def _alert(self, alert: MetaAlert) -> None:
        """An alert about the pipeline, once while it fires and once when it is over."""
        if self._alerts.get(alert.id) in (alert.status, "resolved"):
            return
        remember(self._alerts, alert.id, alert.status)
        if self._as_json:
            self._print_json("meta", meta_json(alert))
        elif alert.name != WATCHDOG:
            self._print(meta_line(alert))

    def _print(self, line: Text) -> None:
        put(self._out, line)

    @staticmethod
    def _print_json(kind: str, value: dict[str, Any]) -> None:
        print(json.dumps({"kind": kind, **value}), flush=True)


def _told_at(record: Incident | Notice) -> tuple[int, int, tuple[int, str, str, int]]:
    """By time: notices, then what may adopt them, parts before what they are part of, which is known by them."""
    if isinstance(record, Notice):
        return record.time, 0, (0, record.job, record.id, 0)
    place = 1 if record.merged_into else 3 if is_fleet(record) else 2
    return record.published, place, publication(record)


def run(arguments: argparse.Namespace) -> int:
    """Follow the feed until told to stop."""
    with deployment_of(arguments) as (log, deployment), ExitStack() as stack:
        kept = ends_of(log, TOPICS) if arguments.from_beginning else {}
        tail = KafkaTail(log, TOPICS, beginning=False, ends=kept)
        stack.callback(tail.close)
        # What holds now was mostly said before this feed began.
        silences = KafkaTail(log, (SILENCES,), beginning=True)
        stack.callback(silences.close)
        stack.enter_context(outages_told(log.settings))
        live = deployment.ticks == "workers"
        silenced = SilencedFeed(stored_silences(log), now_ns if live else None)
        # Recordings have a time of their own, and end: whether it is silent only a live pipeline can be asked.
        pulse = Pulse(log.partitions("windows"), time.time_ns() if live else 0)
        feed, stop = Feed(as_json=arguments.format == "json", silenced=silenced, pulse=pulse), stopping()
        for found in backlog(log, kept):
            if stop.is_set():
                break
            feed.show(found)
        while not stop.is_set():
            feed.show([*silences.poll(500, 0), *tail.poll(500, WAIT_S)])
            if live:
                feed.look(time.time_ns())
    return 0
