"""What the platform tells of a node in one window, so much that its summary stays one record in a storm of alarms."""

from __future__ import annotations

import msgspec

from schemas.events import Alert
from schemas.identity import shortened
from schemas.results import PlatformAlert, Severity
from streams.lines.devices import pci_of

MOST_EACH = 32
"""Of one severity, so that a flood of warnings keeps no critical one out."""
LONGEST_TEXT = 300
LONGEST_NAME = 128
_CRITICAL = frozenset({"critical", "crit", "page", "emergency", "emerg", "fatal", "disaster"})
_WARNING = frozenset({"warning", "warn", "error", "err", "major", "minor", "high", "average"})


class Alerts:
    """Those ``kept``, in order of time; what is like one of them is counted there, ``left_out`` are the others."""

    def __init__(self) -> None:
        self.left_out = 0
        self._kept: dict[Severity, dict[tuple[object, ...], PlatformAlert]] = {}

    @property
    def kept(self) -> list[PlatformAlert]:
        """What a summary says of them."""
        found = [one for alike in self._kept.values() for one in alike.values()]
        return sorted(found, key=lambda one: (one.time, one.since, one.name, place_of(one), one.status, one.text))

    def add(self, event: Alert) -> None:
        """Keep it, count it where one like it is kept, or only count it where there is no room."""
        told = _told(event)
        kept = self._kept.setdefault(told.severity, {})
        since = told.since if told.status else 0
        name = (told.name, place_of(told), told.source, told.status, since, "" if told.status else told.text)
        if name in kept:
            kept[name] = msgspec.structs.replace(kept[name], count=kept[name].count + 1)
        elif len(kept) < MOST_EACH:
            kept[name] = told
        else:
            self.left_out += 1


def place_of(alert: PlatformAlert) -> tuple[str, str, str]:
    """Device, switch and storage that an alarm names."""
    return alert.device, alert.switch, alert.storage


def severity_of(word: str) -> Severity:
    """One of three severities for the words that sources have."""
    folded = word.strip().lower()
    return "critical" if folded in _CRITICAL else "warning" if folded in _WARNING else "info"


def _told(event: Alert) -> PlatformAlert:
    device = (event.device or "")[:LONGEST_NAME]
    return PlatformAlert(
        time=event.time,
        since=min(event.time, event.time if event.since is None else event.since),
        name=_plain(event.name, LONGEST_NAME),
        text=_plain(event.text, LONGEST_TEXT),
        severity=severity_of(event.severity),
        source=_plain(event.source, LONGEST_NAME),
        device=pci_of(device) or _plain(device, LONGEST_NAME),
        switch=_plain(event.switch, LONGEST_NAME),
        storage=_plain(event.storage, LONGEST_NAME),
        status=event.status,
        precision_ns=event.precision_ns,
    )


def _plain(text: str, most: int) -> str:
    """On one line, without what steers whatever shows it."""
    cut = text[: 2 * most]
    clean = cut if cut.isprintable() else "".join(one if one.isprintable() else " " for one in cut)
    return shortened(clean.strip(), most)
