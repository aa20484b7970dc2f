"""What workers tell of their job as one description; in which order they are heard does not matter.

Of a name's values those that were told are kept, up to a few, so merging is a union: whoever merges what in which order
gets the same, and merging the same again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from schemas.events import Job
from schemas.identity import shortened
from schemas.jobs import FACETS, LONGEST_NAME, LONGEST_VALUE, MOST_NAMES, MOST_VALUES, MOST_WORDS, JobDescription

FRAMEWORKS = (
    "verl",
    "nemo",
    "deepspeed",
    "megatron",
    "torchtitan",
    "lightning",
    "accelerate",
    "huggingface",
    "pytorch",
)
"""The outermost first: what several of them show in one job is a job of the first."""
MOST_REASONS = 32
MOST_SIZE = 2**53
"""Beyond this a size is none."""

JOB = ""
"""Stands for no attempt: what is told of a job as a whole."""
WORLD, LAYOUT = "world_size", "layout"
LONG_NAME, LONG_VALUE, LONG_COMMAND = "name too long", "value too long", "command too long"

_Told = dict[str, dict[str, set[str] | None]]
"""By facet and name the values that were told, null where these are more than are kept."""


def described_by(job: Job) -> JobDescription:
    """One event's word, within bounds; what it has beyond them is counted."""
    left_out = _Counts(job.left_out)
    facets = {
        **{name: getattr(job, name) for name in FACETS if name != "model"},
        "model": {**job.model_sizes, **({"name": job.model} if job.model else {})},
    }
    bounded = {name: left_out.bounded(values) for name, values in facets.items()}
    told: _Told = {facet: {name: {value} for name, value in values.items()} for facet, values in bounded.items()}
    told[LAYOUT] = {name: {value} for name, value in left_out.bounded(_texts(job.layout)).items()}
    told[WORLD] = {"": {str(job.world_size)}} if job.world_size is not None and 0 < job.world_size <= MOST_SIZE else {}
    command = [shortened(word, LONGEST_VALUE) for word in job.command[:MOST_WORDS]]
    left_out.add(LONG_COMMAND, max(len(job.command) - MOST_WORDS, 0))
    framework = shortened(job.framework, LONGEST_NAME)
    return _made(told, framework, command, frozenset(), left_out.kept())


class _Counts:
    """What is left out, by reason."""

    def __init__(self, told: Mapping[str, int]) -> None:
        self._counts = {
            shortened(reason, LONGEST_NAME): min(max(count, 0), MOST_SIZE) for reason, count in told.items()
        }

    def add(self, reason: str, count: int = 1) -> None:
        if count:
            self._counts[reason] = self._counts.get(reason, 0) + count

    def bounded(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values within bounds; a name that is too long is left out, a value is cut."""
        self.add(LONG_NAME, sum(len(name) > LONGEST_NAME for name in values))
        self.add(LONG_VALUE, sum(len(value) > LONGEST_VALUE for value in values.values()))
        return {
            name: shortened(value, LONGEST_VALUE) for name, value in values.items() if 0 < len(name) <= LONGEST_NAME
        }

    def kept(self) -> dict[str, int]:
        return {reason: self._counts[reason] for reason in sorted(self._counts)[:MOST_REASONS] if self._counts[reason]}


def merged_description(descriptions: Iterable[JobDescription | None]) -> JobDescription | None:
    """What all of them tell, null where there is none."""
    given = [one for one in descriptions if one is not None]
    # Thousands of ranks tell the same.
    distinct = list({msgspec.json.encode(one): one for one in given}.values()) if len(given) > 1 else given
    return _all(distinct) if len(distinct) > 1 else next(iter(distinct), None)


def with_layout(
    description: JobDescription | None, layout: Mapping[str, int], world_size: int | None
) -> JobDescription | None:
    """The description with what lines have told of the layout, where that is anything."""
    sizes = {axis: size for axis, size in layout.items() if axis not in ("world", "experts")}
    world = world_size or layout.get("world")
    if not sizes and world is None:
        return description
    return merged_description((described_by(Job(time=0, layout=sizes, world_size=world)), description))


def of_attempt(attempt: str, told: Mapping[str, JobDescription]) -> JobDescription | None:
    """What is known of one attempt; ``told`` is by attempt, under ``JOB`` what nobody of an attempt told.

    Attempts of a job may differ in the one setting that matters. So of a facet of which the attempt tells anything its
    own word goes before the job's, and what only other attempts told does not count; of all others what anybody told.
    """
    whole = merged_description(told[name] for name in sorted(told))
    own = told.get(attempt)
    if whole is None or own is None:
        return whole
    shared, known = _told(told.get(JOB, JobDescription())), _told(whole)
    by_facet = _told(own)
    for facet, names in known.items():
        own_names = by_facet.get(facet)
        by_facet[facet] = {**shared.get(facet, {}), **own_names} if own_names else names
    return _made(
        by_facet, own.framework or whole.framework, own.command or whole.command, frozenset(whole.cut), whole.left_out
    )


def _all(distinct: list[JobDescription]) -> JobDescription:
    """What several tell."""
    told = _told(distinct[0])
    left_out: dict[str, int] = {}
    for one in distinct[1:]:
        for facet, names in _told(one).items():
            _add(told.setdefault(facet, {}), names)
    for one in distinct:
        for reason, count in one.left_out.items():
            left_out[reason] = max(count, left_out.get(reason, 0))
    return _made(
        told,
        min((one.framework for one in distinct), key=_place),
        max((one.command for one in distinct), key=lambda words: (len(words), words)),
        frozenset(facet for one in distinct for facet in one.cut),
        {reason: left_out[reason] for reason in sorted(left_out)[:MOST_REASONS]},
    )


def _add(known: dict[str, set[str] | None], names: Mapping[str, set[str] | None]) -> None:
    for name, values in names.items():
        before = known.get(name, set())
        if before is None or values is None:
            known[name] = None
        elif not values <= before:
            # What has more values than are kept need not be told further.
            both = before | values
            known[name] = both if len(both) <= MOST_VALUES else None


def _place(framework: str) -> tuple[bool, int, str]:
    """Where a framework stands; the outermost first, none last."""
    place = FRAMEWORKS.index(framework) if framework in FRAMEWORKS else -1
    return not framework, place, framework


def _told(description: JobDescription) -> _Told:
    told: _Told = {
        facet: {name: {value} for name, value in values.items()} for facet, values in description.facets.items()
    }
    told[WORLD] = {"": {str(description.world_size)}} if description.world_size is not None else {}
    for key, several in description.differing.items():
        facet, _, name = key.partition(".")
        told.setdefault(facet, {})[name] = set(several)
    for key in description.scattered:
        facet, _, name = key.partition(".")
        told.setdefault(facet, {})[name] = None
    return told


def _made(
    told: _Told, framework: str, command: list[str], cut: frozenset[str], left_out: dict[str, int]
) -> JobDescription:
    """The description in its one form."""
    kept = {facet: {name: told[facet][name] for name in sorted(told[facet])[:MOST_NAMES]} for facet in sorted(told)}
    agreed: dict[str, dict[str, str]] = {facet: {} for facet in kept}
    differing: dict[str, list[str]] = {}
    scattered: list[str] = []
    for facet, names in kept.items():
        for name, values in names.items():
            key = f"{facet}.{name}" if name else facet
            if values is None or len(values) > MOST_VALUES:
                scattered.append(key)
            elif len(values) == 1:
                agreed[facet][name] = next(iter(values))
            else:
                differing[key] = sorted(values)
    world = agreed.get(WORLD, {}).get("")
    return JobDescription(
        framework=framework,
        command=command,
        world_size=None if world is None else int(world),
        layout={axis: int(size) for axis, size in agreed.get(LAYOUT, {}).items()},
        **{facet: agreed.get(facet, {}) for facet in FACETS},
        differing=dict(sorted(differing.items())),
        scattered=sorted(scattered),
        cut=sorted(cut | {facet for facet in kept if len(told[facet]) > MOST_NAMES}),
        left_out=left_out,
    )


def _texts(sizes: Mapping[str, int]) -> dict[str, str]:
    return {axis: str(size) for axis, size in sizes.items() if 0 < size <= MOST_SIZE}
