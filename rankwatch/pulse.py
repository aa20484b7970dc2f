"""Whether the pipeline is heard: what its watchdog last said of each partition, held against the reader's clock."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rankwatch.adoption import remember
from schemas.identity import rank_ranges
from schemas.meta import WATCHDOG, MetaAlert, meta_id
from streams.meta import BEAT_NS, subject_of
from streams.report import moment
from streams.worker_meta import SINK, WORKER

SECOND = 1_000_000_000
SILENT_NS = 300 * SECOND
"""Without a beat for so long a partition counts as silent; there is one a minute."""
NAME = "pipeline_silent"


class Pulse:
    """Expects beats of so many ``partitions`` from ``began`` on; times are ns of a clock that the workers share."""

    def __init__(self, partitions: int, began: int) -> None:
        self._numbers = {subject_of(number): number for number in range(partitions)}
        self._beats: dict[int, int] = {}
        self._began = began
        self._since: int | None = None
        self._told: set[int] = set()

    @property
    def reached(self) -> int | None:
        """Up to when all partitions were heard to be through; null while one was not heard at all."""
        return min(self._beats.values()) if self._beats and len(self._beats) == len(self._numbers) else None

    def heard(self, alerts: Iterable[MetaAlert]) -> None:
        """Take in beats among these alerts."""
        for one in alerts:
            number = self._numbers.get(one.subject) if one.name == WATCHDOG else None
            if number is not None:
                self._beats[number] = max(self._beats.get(number, one.time), one.time)

    def look(self, now: int) -> MetaAlert | None:
        """What has changed as of ``now``: the pipeline or more of it has fallen silent, or all of it is heard again."""
        heard = {number: max(self._beats.get(number, 0), self._began) for number in self._numbers.values()}
        silent = [number for number, last in heard.items() if now - last >= SILENT_NS]
        self._told = {number for number in self._told if now - heard[number] >= SILENT_NS - BEAT_NS}
        if set(silent) <= self._told and bool(silent) == (self._since is not None):
            return None
        if silent:
            last = min(heard[number] for number in silent)
            # Those that fell silent with the first are told with it.
            silent = [number for number, at in heard.items() if at <= last + BEAT_NS or number in silent]
            self._told |= set(silent)
            self._since = last if self._since is None else self._since
            numbers = f"partition{'s' if len(silent) > 1 else ''} {rank_ranges(silent)}"
            which = "all partitions" if len(silent) == len(heard) else numbers
            text = (
                f"the pipeline is silent: of {which} no window was closed since {moment(last)}, "
                f"{(now - last) // (60 * SECOND)} minutes ago; what happens in jobs is not seen"
            )
            return _alert(self._since, now, text, firing=True)
        since, self._since = self._since or now, None
        return _alert(
            since, now, f"the pipeline is back: windows are closed up to {moment(self.reached or now)}", firing=False
        )


class Repeated:
    """Alerts that a worker or sink says of itself, again and again while they fire; its own end it cannot say."""

    def __init__(self) -> None:
        self._heard: dict[str, MetaAlert] = {}

    def heard(self, alerts: Iterable[MetaAlert]) -> None:
        """Take in what workers and sinks say."""
        for one in alerts:
            if not one.subject.startswith((WORKER, SINK)):
                continue
            if one.status == "resolved":
                self._heard.pop(one.id, None)
            else:
                remember(self._heard, one.id, one)

    def look(self, now: int) -> list[MetaAlert]:
        """What is over as of ``now`` (ns), since it is said no more."""
        gone = [one for one in self._heard.values() if now - one.time >= SILENT_NS]
        for one in gone:
            del self._heard[one.id]
        return [
            msgspec.structs.replace(
                one, status="resolved", time=now, text=f"{one.subject} says nothing more of it: it may be gone"
            )
            for one in gone
        ]


def _alert(since: int, now: int, text: str, *, firing: bool) -> MetaAlert:
    return MetaAlert(
        id=meta_id(NAME, "pipeline", since),
        name=NAME,
        subject="pipeline",
        status="firing" if firing else "resolved",
        severity="critical",
        since=since,
        time=now,
        text=text,
    )
