"""What is known of a job by attempt: a later one may have been begun with other settings, and they matter then."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from schemas.identity import Identity
from schemas.jobs import JobDescription
from schemas.results import Window
from streams.job_description import JOB, merged_description, of_attempt
from streams.stages.split import attempt_of

_UNLESS_TOLD = Identity(job="").attempt


class Descriptions:
    """What workers have told, by attempt; ``told`` is all that is carried from window to window.

    What an attempt does not tell of itself is taken from what was told of the job.
    """

    def __init__(self, told: dict[str, JobDescription]) -> None:
        self.told = told
        self._known: dict[str, JobDescription | None] = {}

    def take(self, summaries: Iterable[Window], attempts: Collection[str]) -> None:
        """Take in what a window tells; ``attempts`` are those that are known."""
        given: dict[str, list[JobDescription]] = {}
        for one in summaries:
            if one.described is not None:
                given.setdefault(_whose(one, attempts), []).append(one.described)
        for name, told in given.items():
            both = merged_description([self.told.get(name), *told])
            if both is not None:
                self.told[name] = both
        if given:
            self._known = {}

    def of(self, attempt: str) -> JobDescription | None:
        """What is known of one attempt, null where that is nothing."""
        if attempt not in self._known:
            self._known[attempt] = of_attempt(attempt, self.told)
        return self._known[attempt]

    def of_all(self, attempts: Collection[str]) -> JobDescription | None:
        """What is known of these attempts together; of the job where there are none."""
        return merged_description(self.of(one) for one in sorted(attempts) or [JOB])

    def forget(self, attempt: str) -> None:
        """Nothing is heard of the attempt any more."""
        if self.told.pop(attempt, None) is not None:
            self._known = {}


def _whose(summary: Window, attempts: Collection[str]) -> str:
    """The attempt of which a worker tells; launchers and files mostly do not know it, and tell of the job."""
    name, identity = attempt_of(summary), summary.identity
    knows = identity.rank is not None or identity.attempt != _UNLESS_TOLD
    return name if knows and name in attempts else JOB
