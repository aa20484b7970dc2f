"""A learned library as a value: made, checked and merged. The same jobs give the same bytes, in whatever order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from schemas.identity import shortened
from schemas.jobs import LONGEST_NAME, LONGEST_VALUE, MOST_NAMES, MOST_WORDS, JobDescription
from schemas.library import FunctionHeld, HealthyJob, JobPace, LearnedFunction, LearnedTemplate, Library, version_of
from streams.lines.signature import MASKS_ID
from streams.versions import versions

MOST_JOBS, MOST_TEMPLATES, MOST_TEXT = 32, 4000, 1000
"""Jobs, templates, and characters of a template's text; a longer text is cut and known by its id alone."""
MOST_FUNCTIONS, MOST_FUNCTION_NAME = 1000, 200
MOST_PHASES = 16
MOST_SYMPTOMS = 5
MOST_RATE = 1e6
MOST_NUMBER = 1_000_000
MOST_COUNT = 1 << 53
MOST_TIME = 2**63 - 1
MOST_SECONDS = 1e9

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class LibraryError(Exception):
    """A library that cannot be used; the message is one line for the user."""


def check_name(name: str) -> None:
    """Raise LibraryError for what cannot be a library's name."""
    if not _NAME.fullmatch(name):
        raise LibraryError(
            f"{shortened(name, 80)!r} is no name of a library: up to 60 letters, digits, '.', '_' and '-', "
            "a letter or digit first"
        )


def made(
    name: str,
    jobs: Iterable[HealthyJob],
    templates: Iterable[LearnedTemplate],
    *,
    functions: Iterable[LearnedFunction] = (),
    number: int = 1,
    left_out: int = 0,
) -> Library:
    """A library in its one order, with its version. Raises LibraryError for a name that cannot be one.

    Beyond the bounds the templates that most ranks of most jobs print stay, and the functions of the largest shares.
    """
    check_name(name)
    kept = sorted(templates, key=lambda one: (-len(one.printed), -_ranks_of(one), one.text, one.id))
    ordered = sorted(kept[:MOST_TEMPLATES], key=lambda one: (one.text, one.id))
    listed = sorted(jobs, key=lambda one: one.id)
    largest = sorted(
        functions, key=lambda one: (-max((held.share for held in one.held.values()), default=0.0), *_key(one))
    )
    profiled = sorted(largest[:MOST_FUNCTIONS], key=_key)
    return Library(
        name=name,
        number=number,
        version=version_of(MASKS_ID, listed, ordered, profiled),
        masks=MASKS_ID,
        rankwatch=versions()["rankwatch"],
        jobs=listed,
        templates=ordered,
        left_out=left_out + max(len(kept) - MOST_TEMPLATES, 0),
        functions=profiled,
    )


def _key(function: LearnedFunction) -> tuple[str, str]:
    return function.kind, function.name


def _ranks_of(template: LearnedTemplate) -> int:
    return sum(sum(phases.values()) for phases in template.printed.values())


def merged_library(libraries: Sequence[Library], name: str) -> Library:
    """All that the libraries know, each job once; the number is the greatest of theirs.

    Raises LibraryError for more jobs than a library holds, and as ``checked`` does.
    """
    jobs: dict[str, HealthyJob] = {}
    texts: dict[str, str] = {}
    printed: dict[str, dict[str, dict[str, int]]] = {}
    rates: dict[str, dict[str, float]] = {}
    functions: dict[tuple[str, str], LearnedFunction] = {}
    for library in map(checked, libraries):
        for job in library.jobs:
            # Two that differ under one id were changed by hand; the greater is as good, and no order decides.
            jobs[job.id] = max(job, jobs.get(job.id, job), key=msgspec.json.encode)
        for template in library.templates:
            texts[template.id] = min(template.text, texts.get(template.id, template.text))
            known = printed.setdefault(template.id, {})
            for job_id, phases in template.printed.items():
                known[job_id] = _greater(phases, known.get(job_id, {}))
            told = rates.setdefault(template.id, {})
            for job_id, rate in template.rates.items():
                told[job_id] = max(rate, told.get(job_id, rate))
        for function in library.functions:
            before = functions.get(_key(function), function)
            functions[_key(function)] = msgspec.structs.replace(function, held=_largest(before.held, function.held))
    if len(jobs) > MOST_JOBS:
        raise LibraryError(f"a library holds {MOST_JOBS} jobs at most, these are {len(jobs)}")
    templates = [
        LearnedTemplate(id=id_, text=texts[id_], printed=printed[id_], rates=dict(sorted(rates[id_].items())))
        for id_ in texts
    ]
    number = max((library.number for library in libraries), default=1)
    return made(
        name,
        jobs.values(),
        templates,
        functions=functions.values(),
        number=number,
        left_out=max((one.left_out for one in libraries), default=0),
    )


def _largest(one: dict[str, FunctionHeld], other: dict[str, FunctionHeld]) -> dict[str, FunctionHeld]:
    """Both; of what was changed by hand under one job the greater, so that no order decides."""
    found = dict(one)
    for job, held in other.items():
        found[job] = max(held, found.get(job, held), key=msgspec.json.encode)
    return found


def _greater(phases: dict[str, int], others: dict[str, int]) -> dict[str, int]:
    return {phase: max(phases.get(phase, 0), others.get(phase, 0)) for phase in phases.keys() | others.keys()}


def checked(library: Library) -> Library:
    """The library as it may be used, in its one order and with its own version, also where it was changed by hand.

    Raises LibraryError for one learned under other masks, and for what is beyond its bounds or contradicts itself.
    """
    if library.masks != MASKS_ID:
        raise LibraryError(
            f"library {shortened(library.name, 60)!r} was learned under other masks of lines than those of this "
            "version, so its templates mean something else; learn it anew"
        )
    check_name(library.name)
    reason = _flaw(library)
    if reason:
        raise LibraryError(f"library {library.name}: {reason}")
    again = made(
        library.name,
        library.jobs,
        library.templates,
        functions=library.functions,
        number=library.number,
        left_out=library.left_out,
    )
    return msgspec.structs.replace(again, rankwatch=shortened(library.rankwatch, 60))


def _flaw(library: Library) -> str:
    """What is wrong with the numbers and names in it, in words; empty if nothing is."""
    jobs = {job.id: job for job in library.jobs}
    most = f"{MOST_JOBS} jobs and {MOST_TEMPLATES} templates are the most that it may have"
    for holds, flaw in (
        (1 <= library.number <= MOST_NUMBER, f"its number must lie between 1 and {MOST_NUMBER}"),
        (len(library.jobs) <= MOST_JOBS and len(library.templates) <= MOST_TEMPLATES, most),
        (0 <= library.left_out <= MOST_COUNT, "what was left out of it is no count"),
        (len(jobs) == len(library.jobs), "two of its jobs have one id"),
        (len({one.id for one in library.templates}) == len(library.templates), "two of its templates have one id"),
        (len(library.functions) <= MOST_FUNCTIONS, f"{MOST_FUNCTIONS} functions are the most that it may have"),
        (len(set(map(_key, library.functions))) == len(library.functions), "two of its functions have one name"),
    ):
        if not holds:
            return flaw
    flaws = [*map(_job_flaw, library.jobs), *(_template_flaw(template, jobs) for template in library.templates)]
    flaws += [_function_flaw(function, jobs) for function in library.functions]
    return next(filter(None, flaws), "")


def _job_flaw(job: HealthyJob) -> str:
    counts = [*job.ranks.values(), job.iterations, job.world_size or 0, job.profiled]
    names = [job.id, job.job, job.framework, job.recorded, *job.ranks]
    if len(job.ranks) > MOST_PHASES or any(len(name) > 200 for name in names):
        return f"job {shortened(job.id, 60)!r} has too many or too long names"
    if any(not 0 <= count <= MOST_COUNT for count in counts):
        return f"job {job.id!r} has a number that is no count"
    times = 0 <= job.began <= job.ended <= MOST_TIME and 0 <= job.step_s <= MOST_SECONDS
    if not (times and 0 <= job.unlisted <= 1):
        return f"job {job.id!r} has a number that no profile has"
    if len(job.symptoms) > MOST_SYMPTOMS or (job.pace is not None and not _can_be(job.pace)):
        return f"job {job.id!r} has a pace or symptoms that no job has"
    if job.description is not None and not _fits(job.description):
        return f"job {job.id!r} is described by more or longer words than there is room for"
    return ""


def _can_be(pace: JobPace) -> bool:
    """Whether a pace is one."""
    times = [pace.step_s, pace.spread_s, *pace.phases.values()]
    counts = [pace.windows, pace.steps]
    return (
        len(pace.phases) <= MOST_PHASES
        and all(len(name) <= LONGEST_NAME for name in pace.phases)
        and all(0 <= time <= MOST_SECONDS for time in times)
        and all(0 <= count <= MOST_COUNT for count in counts)
        and 0 <= pace.batch <= MOST_COUNT
    )


def _fits(description: JobDescription) -> bool:
    """Whether a description is within its bounds."""
    facets = description.facets
    several = {name: "".join(values) for name, values in description.differing.items()}
    names = [*facets, *several, *description.scattered, *description.cut, *description.left_out]
    values = [description.framework, *description.command]
    values += [value for held in facets.values() for pair in held.items() for value in pair]
    most = len(facets) * MOST_NAMES
    return (
        all(len(held) <= MOST_NAMES for held in facets.values())
        and len(description.command) <= MOST_WORDS
        and max(len(several), len(description.scattered), len(description.cut), len(description.left_out)) <= most
        and all(len(name) <= 2 * LONGEST_NAME for name in names)
        and all(len(value) <= LONGEST_VALUE for value in values)
        and all(len(value) <= 4 * LONGEST_VALUE for value in several.values())
    )


def _template_flaw(template: LearnedTemplate, jobs: dict[str, HealthyJob]) -> str:
    if not 0 < len(template.id) <= 100 or len(template.text) > MOST_TEXT:
        return f"template {shortened(template.id, 60)!r} has an id or a text that is too long, or none"
    for job_id, phases in template.printed.items():
        if job_id not in jobs:
            return f"template {template.id!r} names the job {shortened(job_id, 60)!r}, which is not one of its jobs"
        if any(not 0 < ranks <= jobs[job_id].ranks.get(phase, 0) for phase, ranks in phases.items()):
            return f"template {template.id!r} is printed by no rank or by more in a phase than job {job_id!r} has"
    if any(job_id not in jobs or not 0 <= rate <= MOST_RATE for job_id, rate in template.rates.items()):
        return f"template {template.id!r} has a rate that cannot be"
    return ""


def _function_flaw(function: LearnedFunction, jobs: dict[str, HealthyJob]) -> str:
    named = shortened(function.name, 60)
    if not 0 < len(function.name) <= MOST_FUNCTION_NAME:
        return f"function {named!r} has a name that is too long, or none"
    for job_id, held in function.held.items():
        if job_id not in jobs:
            return f"function {named!r} names the job {shortened(job_id, 60)!r}, which is not one of its jobs"
        times = (held.typical, held.mean)
        if not (0 < held.ranks <= jobs[job_id].profiled and 0 <= held.share <= 1):
            return f"function {named!r} is held by no rank or by more than job {job_id!r} has, or holds more than all"
        if any(not 0 <= time <= MOST_SECONDS for time in times):
            return f"function {named!r} has a time that cannot be"
    return ""
