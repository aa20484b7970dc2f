"""What only a running process knows of itself: a worker how far it is behind, a sink that it cannot store.

Decisions on numbers that somebody has counted, at times that somebody has looked at; this is live only and no fact of
the log. While an alert fires it is said again now and then, so that one whose worker is gone is known to be old.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from schemas.meta import MetaAlert, Status, meta_id
from schemas.results import Severity

SECOND = 1_000_000_000
WORKER, SINK = "worker ", "sink "
"""What the subject of such an alert begins with, by whose it is."""
AGAIN_NS = 60 * SECOND
"""How often what goes on is said again."""
LAG_NS = 60 * SECOND
"""How far behind the present windows may be closed before it counts as lag."""
LASTS_NS = 30 * SECOND
"""How long something must be so, or no longer so, until it counts."""
UNREADABLE_SHARE = 0.01
UNREADABLE_LEAST = 10
"""Of so many entries at least, the share since the last look that could not be read, summed up or appended."""


class Kind(Enum):
    """What a process says of itself."""

    LAG = "lag"
    STALLED = "worker_stalled"
    UNPARSED = "unparsed"
    NOT_STORED = "not_stored"


_SEVERITY: dict[Kind, Severity] = {
    Kind.LAG: "warning",
    Kind.STALLED: "critical",
    Kind.UNPARSED: "warning",
    Kind.NOT_STORED: "warning",
}


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What is seen of a worker at one moment.

    ``behind_ns`` is by how much the last window of each stage lies behind the present, beyond what it has to, ``waits``
    which partitions of the stage before it a stage waits for, in words;
    ``stalled`` what stands still, in words, empty if nothing does; ``entries`` and ``letters`` count what was read and
    what of it became dead letters. They begin anew when partitions move.
    """

    behind_ns: Mapping[str, int]
    stalled: str
    entries: int
    letters: int
    waits: Mapping[str, str] = {}


class _Watched(msgspec.Struct):
    """Since when it is so, or no longer so, and since when it fires; null for not."""

    turned: int | None = None
    since: int | None = None
    said: int = 0
    text: str = ""


class OwnWords:
    """What ``subject`` says of itself: when something begins, now and then while it lasts, and when it is over."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._watched: dict[Kind, _Watched] = {}

    def turn(self, kind: Kind, now: int, text: str) -> MetaAlert | None:
        """What is to be said now of what is so, in words, or no longer so: empty; ``now`` in ns."""
        one = self._watched.setdefault(kind, _Watched())
        if bool(text) == (one.since is not None):
            one.turned = None
            if one.since is None or now < one.said + AGAIN_NS:
                return None
            one.said, one.text = now, text
            return self._alert(kind, one.since, now, "firing", text)
        one.turned = now if one.turned is None else one.turned
        # A worker that stands still has been watched for long before it is said.
        if kind is not Kind.STALLED and now < one.turned + LASTS_NS:
            return None
        since, one.turned, one.said = one.since, None, now
        if since is None:
            one.since, one.text = now, text
            return self._alert(kind, now, now, "firing", text)
        one.since = None
        return self._alert(kind, since, now, "resolved", f"over: {one.text}")

    def _alert(self, kind: Kind, since: int, now: int, status: Status, text: str) -> MetaAlert:
        return MetaAlert(
            id=meta_id(kind.value, self._subject, since),
            name=kind.value,
            subject=self._subject,
            status=status,
            severity=_SEVERITY[kind],
            since=since,
            time=now,
            text=text,
        )


class WorkerMeta:
    """Follows the worker called ``name``; ``look`` again and again, with a clock in ns that only goes forward."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._words = OwnWords(WORKER + name)
        self._entries = self._letters = 0
        self._counted: int | None = None
        self._unread = ""

    def look(self, now: int, seen: Look) -> list[MetaAlert]:
        """What is to be said now."""
        texts = {Kind.LAG: self._lag(seen), Kind.STALLED: self._stalled(seen), Kind.UNPARSED: self._unparsed(now, seen)}
        return [alert for kind, text in texts.items() if (alert := self._words.turn(kind, now, text)) is not None]

    def _lag(self, seen: Look) -> str:
        behind = {stage: ns for stage, ns in seen.behind_ns.items() if ns > LAG_NS}
        parts = [
            f"stage {stage} is {ns // SECOND} s behind{_waiting(seen.waits.get(stage, ''))}"
            for stage, ns in sorted(behind.items())
        ]
        return f"worker {self._name}: {', '.join(parts)}; what happens now is told so much later" if parts else ""

    def _stalled(self, seen: Look) -> str:
        return f"worker {self._name} stands still: {seen.stalled}" if seen.stalled else ""

    def _unparsed(self, now: int, seen: Look) -> str:
        """The share of what was read in the last while; judged once for each ``LASTS_NS``."""
        if self._counted is None or now >= self._counted + LASTS_NS:
            entries, letters = seen.entries - self._entries, seen.letters - self._letters
            counted = self._counted is not None and entries >= 0 and letters >= 0
            bad = counted and letters >= max(UNREADABLE_LEAST, UNREADABLE_SHARE * entries)
            self._unread = (
                f"worker {self._name}: {letters} of {entries} records could not be used; see table dead_letters"
                if bad
                else ""
            )
            self._entries, self._letters, self._counted = seen.entries, seen.letters, now
        return self._unread


def _waiting(what: str) -> str:
    return f" and waits for {what}" if what else ""


class SinkMeta:
    """Follows the sink called ``name`` in the same way: why nothing is stored, empty while all is well."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._words = OwnWords(SINK + name)

    def look(self, now: int, trouble: str) -> list[MetaAlert]:
        """What is to be said now."""
        text = f"sink {self._name} stores nothing: {trouble}; what it has not read waits in Kafka" if trouble else ""
        alert = self._words.turn(Kind.NOT_STORED, now, text)
        return [] if alert is None else [alert]
