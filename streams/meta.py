"""What the pipeline says of itself as far as the log shows it: pure decisions from window to window.

An alert begins once its condition has held for some windows, and is over once it has not held for some: each is said
once. Nothing here reads a clock, and all state is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from schemas.meta import WATCHDOG, MetaAlert, Status, meta_id
from schemas.results import Severity

SECOND = 1_000_000_000
BEAT_NS = 60 * SECOND
"""How often the watchdog is heard, in event time."""
MOST_NAMED = 16
"""Subjects of one name that fire at once; how many more there are is said in one alert."""
MOST_WATCHED = 4096
"""Subjects of one name that are followed."""


class Rule(NamedTuple):
    """For how many windows in a row a condition has to hold, and then not to hold, until it counts."""

    severity: Severity
    after: int
    over: int


class Condition(NamedTuple):
    """What a window shows of one subject: ``bad`` or not; ``since`` (ns) when it is, in words for both."""

    subject: str
    bad: bool
    since: int
    text: str
    over: str


class Streak(msgspec.Struct, array_like=True):
    """How often in a row a condition held, or did not hold; ``since`` when it began to."""

    since: int
    bad: int = 0
    good: int = 0
    fires: bool = False


class AlertsState(msgspec.Struct, kw_only=True):
    """The alerts of one name: streaks by subject, and since when there are more than can be named, 0 if not."""

    streaks: dict[str, Streak] = {}
    more_since: int = 0


class Alerts:
    """The alerts of one name over many subjects that share ``whole``, the subject of what is said of all of them."""

    def __init__(self, name: str, rule: Rule, whole: str, state: AlertsState) -> None:
        self.state = state
        self._name = name
        self._rule = rule
        self._whole = whole

    def follows(self, subject: str) -> bool:
        """Whether the subject was found bad lately: only then it matters that it is not."""
        return subject in self.state.streaks

    def close(self, now: int, cluster: str, found: Sequence[Condition]) -> list[MetaAlert]:
        """What a window that ends at ``now`` changes. Who is not among ``found`` was not seen, and stays as it is."""
        said = [alert for one in sorted(found) if (alert := self._turned(one, now, cluster)) is not None]
        return said + self._more(now, cluster)

    def end(self, now: int, cluster: str, subjects: Sequence[str], why: str) -> list[MetaAlert]:
        """Nothing more will be seen of these subjects: those of them that fire are over."""
        said = []
        for subject in sorted(subjects):
            streak = self.state.streaks.pop(subject, None)
            if streak is not None and streak.fires:
                said.append(self._alert(subject, streak.since, now, cluster, "resolved", why))
        return said + self._more(now, cluster)

    def end_all(self, now: int, cluster: str, why: str) -> list[MetaAlert]:
        """Nothing more will be seen of any subject."""
        return self.end(now, cluster, list(self.state.streaks), why)

    def _turned(self, one: Condition, now: int, cluster: str) -> MetaAlert | None:
        streaks, rule = self.state.streaks, self._rule
        streak = streaks.get(one.subject)
        if streak is None:
            if not one.bad or len(streaks) >= MOST_WATCHED:
                return None
            streak = streaks[one.subject] = Streak(one.since)
        streak.bad, streak.good = (streak.bad + 1, 0) if one.bad else (streak.bad, streak.good + 1)
        if streak.fires and streak.good >= rule.over:
            del streaks[one.subject]
            return self._alert(one.subject, streak.since, now, cluster, "resolved", one.over)
        if not streak.fires and not one.bad:
            del streaks[one.subject]
        elif not streak.fires and streak.bad >= rule.after and self._firing < MOST_NAMED:
            streak.fires = True
            return self._alert(one.subject, streak.since, now, cluster, "firing", one.text)
        return None

    @property
    def _firing(self) -> int:
        return sum(streak.fires for streak in self.state.streaks.values())

    def _more(self, now: int, cluster: str) -> list[MetaAlert]:
        """The word on those for whom there was no room, and that there are none any more."""
        count = sum(not one.fires and one.bad >= self._rule.after for one in self.state.streaks.values())
        since = self.state.more_since
        if bool(count) == bool(since):
            return []
        self.state.more_since = now if count else 0
        if count:
            text = f"{count} more beside the {MOST_NAMED} that are named"
            return [self._alert(self._whole, now, now, cluster, "firing", text)]
        return [self._alert(self._whole, since, now, cluster, "resolved", "none but those that are named")]

    def _alert(self, subject: str, since: int, now: int, cluster: str, status: Status, text: str) -> MetaAlert:
        return MetaAlert(
            id=meta_id(self._name, subject, since),
            name=self._name,
            subject=subject,
            status=status,
            severity=self._rule.severity,
            since=since,
            time=now,
            text=text,
            cluster=cluster,
        )


def beat(partition: int, before: int | None, end: int) -> MetaAlert | None:
    """The watchdog's word of a partition whose last window ended at ``before`` and whose next one ends at ``end``.

    It is heard once for each full minute that windows have reached; where many were passed over together, for the last.
    """
    time = end // BEAT_NS * BEAT_NS
    if before is not None and time <= before // BEAT_NS * BEAT_NS:
        return None
    subject = subject_of(partition)
    return MetaAlert(
        id=meta_id(WATCHDOG, subject, time),
        name=WATCHDOG,
        subject=subject,
        status="firing",
        severity="info",
        since=time,
        time=time,
        text=f"windows of {subject} are closed up to here",
    )


def subject_of(partition: int) -> str:
    """How a partition of the stages is called."""
    return f"partition {partition}"


SKIPPED = Rule("warning", 1, 1)


def skips(state: AlertsState, now: int, skipped: Mapping[int, bool]) -> list[MetaAlert]:
    """What is said of partitions that a window was closed without (true), and of those that it was not (false)."""
    found = [
        Condition(
            subject_of(number),
            bad,
            now,
            f"windows are closed without {subject_of(number)}: what its ranks do is not seen",
            f"{subject_of(number)} reports again",
        )
        for number, bad in skipped.items()
    ]
    return Alerts("partition_skipped", SKIPPED, "partitions", state).close(now, "", found)
