"""``rankwatch stacks``: where the threads of all ranks are, said in a few lines and written as pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

from producers.recording import Recording, read_recording
from producers.workers import NO_RANK
from rankwatch import diagnose, terminal
from rankwatch.errors import UsageError
from rankwatch.progress import watching
from rankwatch.stackviews import files, folded
from rankwatch.stackviews.attempts import Attempt, anomalies_of, attempts_of, jobs_of, newest, strangers
from rankwatch.stackviews.chosen import NO_FRAMES, OTHER_TIMES, REACH_NS, Chosen, at_time, chosen, untimed
from rankwatch.stackviews.picture import Picture
from rankwatch.stackviews.variants import by_kind, lines_apart
from rankwatch.times import parse_time
from schemas.identity import said_ranks, shortened
from streams.report import moment
from streams.stack_classes import StackClass, by_reason, classes_of
from streams.stack_words import said
from streams.stall import SECOND

LONGEST_LINE = 2_000
"""Characters of a line on the terminal; ranks that alternate make very long ones."""
MOST_REASONS = 8
READ = "they are read from py-spy (text, JSON, JSON lines), pystack, faulthandler and gdb, in files or in logs"


def run(arguments: argparse.Namespace) -> int:
    """Read, choose, say and write."""
    at = None if arguments.at is None else parse_time(arguments.at)
    if arguments.out == "":
        raise UsageError("--out names no folder; without it the files go into JOB-stacks in the current folder")
    recording = read_recording(arguments.folder)
    job = _job(recording, arguments.folder, arguments.job)
    out, errors = terminal.console(), terminal.console(stderr=True)
    with watching(out, errors, *recording.span, feed=False) as watch:
        found = diagnose.run(recording, until=at, watch=watch)
    attempts = attempts_of(recording, found.log, job)
    shown = _attempts(recording, job, attempts, arguments.attempt)
    pictures = [_picture(found, job, attempt, at) for attempt in shown]
    lines = [line for picture in pictures for line in ("", picture.title, *picture.lines)][1:]
    folder = Path(arguments.out or f"{files.safe_name(job) or 'job'}-stacks")
    texts = _texts(shown, pictures, arguments.format or list(files.FORMATS))
    shows = "".join(map(folded.render, pictures)) + "\n".join(lines)
    try:
        # Before anything is said: whoever reads may go, and what cannot be written is to be read all the same.
        written, removed = files.write(folder, texts, shows)
    finally:
        _print(out, [*lines, *_others(recording, job, attempts, shown), ""])
    _print(out, [f"wrote {file}" for file in written])
    _print(out, [f"removed {file}, which showed other stacks" for file in removed])
    return 0


def _print(out: Console, lines: Iterable[str]) -> None:
    for line in lines:
        out.print(terminal.printable(shortened(line, LONGEST_LINE)))


def _texts(shown: list[Attempt], pictures: list[Picture], formats: list[str]) -> dict[str, str]:
    """The files by name; several pictures are told apart by their attempts."""
    texts: dict[str, str] = {}
    for number, (attempt, picture) in enumerate(zip(shown, pictures, strict=True)):
        stem = "stacks" if len(shown) == 1 else f"stacks-{number}-{files.safe_name(attempt.name)}"
        for name in formats:
            end, render = files.FORMATS[name]
            texts[f"{stem}{end}"] = render(picture)
    return texts


def _job(recording: Recording, folder: Path, asked: str | None) -> str:
    """The job to show. Raises UsageError where it has no stacks."""
    jobs = jobs_of(recording)
    if not jobs:
        raise UsageError(f"no stacks in {folder}; {READ}")
    if asked is not None and asked not in jobs:
        raise UsageError(
            terminal.printable(f"no stacks of job {asked} in {folder}; there are some of {', '.join(jobs)}")
        )
    return jobs[0] if asked is None else asked


def _attempts(recording: Recording, job: str, attempts: list[Attempt], asked: str | None) -> list[Attempt]:
    """Those to show: more than one only where ranks are numbered anew in each worker group."""
    if not attempts:
        counted = strangers(recording, job)
        reasons = "; ".join(f"{_stacks(count)}: {reason}" for reason, count in counted.items())
        # A name does not help where something contradicts it.
        hint = "; a name such as rank3.txt would" if NO_RANK in counted else ""
        raise UsageError(terminal.printable(f"nothing tells whose the stacks of job {job} are ({reasons}){hint}"))
    if asked is None:
        return newest(attempts)
    found = [one for one in attempts if asked in (one.name, one.name.rpartition("/")[2])]
    if not found:
        names = ", ".join(one.name for one in attempts)
        raise UsageError(terminal.printable(f"no stacks of attempt {asked}; there are some of {names}"))
    return found


def _picture(found: diagnose.Diagnosis, job: str, attempt: Attempt, at: int | None) -> Picture:
    if at is None:
        incidents = [one for one in found.incidents if (one.job, one.attempt) == (job, attempt.name)]
        taken = chosen(attempt, incidents, anomalies_of(found.log, job, attempt.name))
    else:
        taken = at_time(attempt, at)
    classes = classes_of(taken.samples, attempt.roles)
    if not any(one.groups for one in classes):
        raise UsageError(_nothing(job, attempt, taken, at))
    samples = by_kind(taken.samples)
    apart = [line for one in classes if one.is_main for line in lines_apart(one, samples)]
    lines = [*_when(taken, at), *said(classes), *apart, *_unseen(classes, attempt, taken)]
    ends = [end.time for end in attempt.ends.values()]
    if taken.why == "newest" and taken.last is not None and min(ends, default=taken.last) < taken.last:
        lines.append(f"some ranks had ended by then; --at {moment(min(ends) - SECOND)} shows them before")
    return Picture(title=f"job {job}, attempt {attempt.name}", lines=lines, classes=classes, samples=taken.samples)


def _nothing(job: str, attempt: Attempt, taken: Chosen, at: int | None) -> str:
    whose = f"no sample of job {job}, attempt {attempt.name},"
    times = sorted(stack.time for _, stack in attempt.stacks if not untimed(stack))
    when = ""
    if at is not None:
        when = f" in the minute before {moment(at)}"
        if times:
            span = f"the first is of {moment(times[0])}, the last of {moment(times[-1])}"
            if not any(at - REACH_NS <= time <= at for time in times):
                return terminal.printable(f"{whose} lies{when}; {span}")
            when += f"; {span}"
    failures = sorted({sample.failure for sample in taken.samples} - {NO_FRAMES, OTHER_TIMES})
    why = f"; {', '.join(failures[:MOST_REASONS])}" if failures else ""
    return terminal.printable(f"{whose} shows frames{when}{why}")


def _when(taken: Chosen, at: int | None) -> Iterator[str]:
    """Which samples are shown, and why these."""
    if at is not None:
        why = f"each thread as last seen in the minute before {moment(at)}"
    elif taken.since is None:
        why = "no standstill found; each thread as last seen"
    elif taken.why == "newest":
        why = f"standstill since {moment(taken.since)}, of which no sample is known; each thread as last seen"
    else:
        before = f", before {taken.bound} at {moment(taken.until)}" if taken.until is not None else ""
        why = f"standstill since {moment(taken.since)}; each thread as last seen in it{before}"
    yield why
    if taken.first is None or taken.last is None:
        yield "nothing tells when the samples were taken"
    else:
        yield f"samples from {moment(taken.first)} to {moment(taken.last)}"


def _unseen(classes: list[StackClass], attempt: Attempt, taken: Chosen) -> Iterator[str]:
    """Who is not in the picture and why, and who is by an older sample because a newer one failed."""
    reasons = by_reason(item for one in classes if one.is_main for item in one.unobserved.items())
    for reason, ranks in reasons[:MOST_REASONS]:
        yield f"not observed: {said_ranks(ranks)} ({shortened(reason, 200)})"
    if len(reasons) > MOST_REASONS:
        yield f"and for {len(reasons) - MOST_REASONS} more reasons"
    if attempt.of_unknown_role:
        yield f"nothing was heard of {said_ranks(attempt.of_unknown_role)}, whose roles are not known"
    for reason, ranks in by_reason(taken.outdated.items())[:MOST_REASONS]:
        yield f"shown by an older sample: {said_ranks(ranks)} (a newer one failed: {shortened(reason, 200)})"


def _others(recording: Recording, job: str, attempts: list[Attempt], shown: list[Attempt]) -> Iterator[str]:
    """What else is there."""
    for reason, count in strangers(recording, job).items():
        yield f"left out: {_stacks(count)} of nobody known ({shortened(reason, 200)})"
    names = [one.name for one in attempts if one not in shown]
    if names:
        yield f"there are stacks of attempt{'s' if len(names) > 1 else ''} {', '.join(names)} too; --attempt shows one"
    if notes := len(recording.inputs.unused):
        said = "note" if notes == 1 else "notes"
        yield f"{notes} {said} on what was not used, or with doubt; rankwatch diagnose has them"
    jobs = [other for other in jobs_of(recording) if other != job]
    if jobs:
        yield f"there are stacks of job{'s' if len(jobs) > 1 else ''} {', '.join(jobs)} too; --job shows one"


def _stacks(count: int) -> str:
    return f"{count} stack{'s' if count > 1 else ''}"
