"""Whether a job's steps have taken longer than those of healthy jobs like it from its beginning on.

The same job on the same machines does not take the same time twice, and of one other job nobody knows by how much
jobs differ: so it takes more to be clear against one than against several that are all faster. Steps of another number
of ranks or another batch are other steps, and nothing is scaled to make them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from schemas.library import HealthyJob
from streams.library.likeness import DECIDES_STEP, SCALE, Described, alike, described
from streams.library.pace import StepPace

RATIO = 1.1
"""From so many times the slowest of the like jobs on there is a difference (GREYHOUND: at least 10 %)."""
RATIO_TO_ONE = 1.25
"""So many times where there is one like job alone: as where the lengths of inputs vary."""
EARLY_WINDOWS, LEAST_WINDOWS, LEAST_STEPS = 6, 3, 10
HELD, SIGMAS, FLOOR = 0.8, 4.0, 0.01
"""The share of windows that must be slower, and by how many deviations of the like job's; those have a floor."""


class Slower(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is slower than all of the like ``jobs`` that can be compared; durations of a step in seconds.

    It was so in ``held`` of its ``early`` first windows behind the warm-up; what came before these is not judged.
    ``clear``: by more than jobs differ. ``alike``: in all that decides how long a step takes; else ``unlike`` says what
    differs or is not known.
    """

    here_s: float
    there_s: float
    jobs: list[HealthyJob]
    clear: bool
    alike: bool
    early: int
    held: int
    unlike: str = ""

    @property
    def ratio(self) -> float:
        """How many times as long a step takes as in the slowest of them."""
        return self.here_s / self.there_s


def slower(pace: StepPace, here: Described, world_size: int | None, jobs: Sequence[HealthyJob]) -> Slower | None:
    """Null where the job is not slower, or cannot be compared with any of the like jobs."""
    early = pace.early[:EARLY_WINDOWS]
    held = [job for job in jobs if not why_not(pace, here, world_size, job)]
    if not held or len(early) < LEAST_WINDOWS or pace.counted < LEAST_STEPS:
        return None
    level = median(early)
    slowest = max(held, key=lambda job: (_step(job), job.id))
    there = _step(slowest)
    deviation = max(0.0 if slowest.pace is None else slowest.pace.spread_s, FLOOR * there)
    halfway = there * (1 + (RATIO - 1) / 2)
    if level < RATIO * there or level < there + SIGMAS * deviation or median(pace.recent) < halfway:
        return None
    slow = [seconds > halfway for seconds in early]
    if sum(slow) < HELD * len(early):
        return None
    differs = [text for job in held if (text := _unlike(here, job))]
    return Slower(
        here_s=level,
        there_s=there,
        jobs=held,
        clear=len(held) > 1 or level >= RATIO_TO_ONE * there,
        alike=not differs,
        early=len(early),
        held=sum(slow),
        unlike=min(differs, default=""),
    )


def why_not(pace: StepPace, here: Described, world_size: int | None, job: HealthyJob) -> str:
    """Why the steps of a healthy job cannot be compared with this one's; empty where they can."""
    if job.pace is None or job.pace.step_s <= 0 or job.pace.windows < LEAST_WINDOWS:
        return "too few steps of it are known"
    # Many jobs tell how many ranks they have only in what describes them.
    ranks = job.description.world_size if job.world_size is None and job.description else job.world_size
    if world_size is None or ranks is None:
        return "not of both it is known how many ranks they have"
    if world_size != ranks:
        return f"it has {ranks} ranks, this one {world_size}"
    if pace.batch == 0 or (pace.batch is not None and job.pace.batch not in (0, pace.batch)):
        return "its batches are of another size"
    there = described(job.description)
    for facet, name in _BATCHES:
        values = [one.settings.get(facet, {}).get(name) for one in (here, there)]
        if None not in values and values[0] != values[1]:
            return f"its {name} is another"
    return ""


_BATCHES = tuple(
    (facet, name)
    for facet in ("layout", "hyperparameters")
    for name in ("global_batch", "global_batch_size", "micro_batch", "micro_batch_size", "batch_size", "seq_length")
)


def _step(job: HealthyJob) -> float:
    return 0.0 if job.pace is None else job.pace.step_s


def _unlike(here: Described, job: HealthyJob) -> str:
    """What of all that decides how long a step takes is another or not known; empty where nothing is."""
    there = described(job.description)
    facets = alike(here, there).facets
    differs = [name for name in DECIDES_STEP if facets.get(name, 1.0) < 1]
    unknown = [name for name in DECIDES_STEP if name not in facets and name != SCALE]
    told = [f"{name} differs" for name in differs]
    return "; ".join([*told, *([f"{', '.join(unknown)} not known of both"] if unknown else [])])
