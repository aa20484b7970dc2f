"""``rankwatch library``: what healthy jobs print, learned from recordings, into a file, to and from a deployment."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rankwatch.deployments import deployment_of
from rankwatch.diagnose import diagnose
from rankwatch.errors import UsageError
from rankwatch.terminal import printable
from rankwatch.text_library import said_job
from schemas.library import Library
from streams.library.file import read_library, write_library
from streams.library.learning import learned
from streams.library.record import checked, merged_library
from streams.log.kafka_library import store_library, stored_library
from streams.profiles import called

BASELINE = "baseline"
"""What a library is called that is learned for one diagnosis."""


def run(arguments: argparse.Namespace) -> int:
    """Learn, merge, show, import or export."""
    return ACTIONS[arguments.action](arguments)


def given(baselines: Sequence[Path] | None, file: Path | None) -> Library | None:
    """What a job is to be held against, as the command line says; null for nothing."""
    if baselines:
        return learn(baselines, BASELINE)
    return None if file is None else checked(read_library(file))


def learn(folders: Sequence[Path], name: str, *, even_unhealthy: bool = False) -> Library:
    """What recorded jobs print. Raises UsageError for one in which an incident is found that pages."""
    libraries = []
    for folder in folders:
        found = diagnose(folder)
        if found.pages and not even_unhealthy:
            worst = found.incidents[0]
            raise UsageError(
                f"{folder} is no healthy job, {worst.severity} incident: {printable(worst.summary)}; "
                "`rankwatch library learn --even-unhealthy` learns from it all the same"
            )
        libraries.append(learned(found.log, name))
    return merged_library(libraries, name)


def _learn(arguments: argparse.Namespace) -> int:
    library = learn(arguments.folders, arguments.name, even_unhealthy=arguments.even_unhealthy)
    return _written(library, arguments.out)


def _merge(arguments: argparse.Namespace) -> int:
    return _written(merged_library([read_library(file) for file in arguments.files], arguments.name), arguments.out)


def _written(library: Library, file: Path) -> int:
    write_library(file, library)
    print("\n".join(_summary(library)))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    library = checked(read_library(arguments.file))
    print("\n".join(_summary(library)))
    for template in library.templates:
        where = ", ".join(f"{share:.0%} in {phase or 'no phase'}" for phase, share in library.shares(template).items())
        print(printable(f"{template.text}  ({len(template.printed)} jobs; {where})"))
    for function in library.functions:
        largest = max((held.share for held in function.held.values()), default=0.0)
        print(printable(f"{called(function.kind, function.name)}  ({len(function.held)} jobs; {largest:.1%} at most)"))
    return 0


def _summary(library: Library) -> list[str]:
    lines = [f"library {library.label}, learned by Rankwatch {library.rankwatch}"]
    for job in library.jobs:
        kind = f"{job.framework}, " if job.framework else ""
        ranks = max(job.ranks.values(), default=0)
        profiled = f", profiles of {job.profiled}" if job.profiled else ""
        lines.append(f"job {job.id}: {kind}{ranks} ranks, at least {job.iterations} iterations{profiled}")
        lines += [f"  {line}" for line in said_job(job)]
    shared = sum(len(template.printed) == len(library.jobs) for template in library.templates)
    lines.append(f"{shared} of {len(library.templates)} templates shared by all jobs")
    if library.functions:
        shared = sum(len(one.held) == len(library.jobs) for one in library.functions)
        lines.append(f"{shared} of {len(library.functions)} functions of profiles shared by all jobs")
    if library.left_out:
        lines.append(f"{library.left_out} templates beyond the bound were left out")
    return [printable(line) for line in lines]


def _export(arguments: argparse.Namespace) -> int:
    with deployment_of(arguments) as (log, _):
        library = stored_library(log, arguments.name)
    return _written(library, arguments.file)


def _import(arguments: argparse.Namespace) -> int:
    library = checked(read_library(arguments.file))
    with deployment_of(arguments) as (log, _):
        there, new = store_library(log, library)
    said = f"imported library {there.label}" if new else f"library {there.label} is there already"
    print(f"{said}; workers that are started with --library {there.name} use it")
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "learn": _learn,
    "merge": _merge,
    "show": _show,
    "export": _export,
    "import": _import,
}
