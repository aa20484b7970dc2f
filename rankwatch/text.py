"""Incidents as text for people: what, where, since when, on what evidence, how sure, what next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from producers.recording import Inputs
from producers.times import EARLIEST, HOUR
from rankwatch.diagnose import Diagnosis
from rankwatch.silenced import silence_facts
from rankwatch.text_compared import print_comparisons
from rankwatch.text_fleet import fleet_facts, is_fleet, whose
from rankwatch.text_job import job_line
from schemas.results import Anomaly, Axis, Incident, Suspect, SuspiciousTemplate
from streams.compared import comparisons
from streams.incidents.resolution import said_recurrence, said_resolution, said_status
from streams.incidents.scope import said_more, said_place, said_ranks_of
from streams.incidents.wording import said_reason, said_symptom, since_iteration
from streams.judged import judged, said
from streams.report import differences, moment

COLOUR = {"critical": "bold red", "warning": "bold yellow", "info": "cyan"}
AXES: dict[Axis, str] = {"space": "unlike its peers", "time": "unlike before", "cross-job": "unlike healthy jobs"}
"""What a template stands out against, in words."""
SHOWN_UNUSED = 20
SHOWN_SUSPECTS = 16


def printable(text: str) -> str:
    """The text on one line without control characters: a log line must not steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # It would end the program with 1, which means something else here.
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that colours on terminals only and obeys NO_COLOR; pipes get unwrapped lines."""
    return _Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_diagnosis(out: Console, diagnosis: Diagnosis) -> None:
    """The whole report."""
    inputs = diagnosis.inputs
    out.print(f"{jobs_line(diagnosis)}: {inputs.records} records from {inputs.files} files, run {diagnosis.run_id}")
    if known := job_line(diagnosis.description):
        out.print(printable(f"known of the job: {known}"))
    out.print(printable(f"judged by: {said(judged(diagnosis.log))}"))
    if diagnosis.until is not None:
        out.print(f"seen up to {moment(diagnosis.until)}")
    if diagnosis.library is not None:
        out.print(f"held against library {diagnosis.library.label}")
    fleet, silenced = diagnosis.fleet, diagnosis.silenced
    for incident in diagnosis.incidents:
        out.print()
        several = len(diagnosis.jobs) > 1 or incident.job != diagnosis.recording.job
        first = [*fleet_facts(incident, fleet, several=several), *silence_facts(silenced.get(incident.id))]
        print_incident(out, incident, first)
    if not diagnosis.incidents:
        out.print("no incident")
    print_differences(out, differences(diagnosis.log), jobs=len(diagnosis.jobs) > 1)
    beside = comparisons(diagnosis.log)
    print_comparisons(out, beside, _wrapped, several=len(beside) > 1)
    print_unused(out, inputs)


def print_differences(out: Console, found: list[Anomaly], *, jobs: bool = False) -> None:
    """What profiles show to differ; it is no incident and accuses nobody."""
    if not found:
        return
    out.print()
    out.print(Text("profiles also show, as information", style="bold"))
    for one in found:
        whose = f"job {one.job}: " if jobs else ""
        for line in (f"{whose}{one.text}  ({AXES[one.axis]})", f"    {one.peers}"):
            for part in _wrapped(out, printable(line)):
                out.print(f"  {part}")


def jobs_line(diagnosis: Diagnosis) -> str:
    """``job a``, or ``jobs a, b`` where a folder holds several."""
    jobs = diagnosis.jobs
    return printable(f"job{'s' if len(jobs) > 1 else ''} {', '.join(jobs)}")


def print_incident(out: Console, incident: Incident, first: Sequence[tuple[str, str]] = ()) -> None:
    """One incident as a card; ``first`` are the labels and lines that come before all others."""
    title = Text()
    title.append(incident.severity.upper(), style=COLOUR[incident.severity])
    title.append(f"  {what(incident)}", style="bold")
    title.append(f"  {incident.verdict}, {said_status(incident.resolution)}")
    title.append(f"  {incident.id} revision {incident.revision}", style="dim")
    out.print(title)
    for label, line in [*first, *_lines(incident)]:
        for number, part in enumerate(_wrapped(out, printable(line))):
            row = Text(f"  {'' if number else label:<11}", style="dim")
            row.append(part, style="default")
            out.print(row)


def _wrapped(out: Console, line: str) -> list[str]:
    """The line in parts that fit beside their label on a terminal; whole in a pipe."""
    if not out.is_terminal:
        return [line]
    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(line, max(out.width - 14, 40), subsequent_indent=" " * indent) or [""]


def _lines(incident: Incident) -> Iterator[tuple[str, str]]:
    yield "where", where(incident)
    if more := said_more(incident.scope):
        yield "", more
    yield "since", since(incident)
    yield from (("", said) for said in incident.clocks)
    for at_suspect, line in enumerate(suspect_lines(incident)):
        yield "suspects" if at_suspect == 0 else "", line
    for number, piece in enumerate(incident.evidence):
        yield "evidence" if number == 0 else "", f"[{piece.layer}] {piece.text}"
        if piece.peers:
            yield "", f"    peers: {piece.peers}"
    for number, line in enumerate(stack_lines(incident)):
        yield "stacks" if number == 0 else "", line
    for number, template in enumerate(incident.templates):
        yield "templates" if number == 0 else "", f"{template.text}  ({who_prints(template)}, {AXES[template.axis]})"
    yield from others(incident)
    yield "sure", how_sure(incident)
    if incident.recurs:
        yield "again", said_recurrence(incident.recurs)
    if incident.resolution:
        yield said_status(incident.resolution), said_resolution(incident.resolution, incident.merged_into)
    yield "next", incident.next_step


def what(incident: Incident) -> str:
    """The symptom, and the area where that is known: ``hang, data``."""
    symptom = said_symptom(incident.symptom, incident.reason, incident.scope)
    return symptom if incident.area in ("unknown", symptom) else f"{symptom}, {incident.area}"


def where(incident: Incident) -> str:
    """The place of an incident; that nobody of a job is named there is said."""
    place = said_place(incident.scope) if incident.scope.kind != "job" else f"job {incident.job}"
    return place if incident.suspects or is_fleet(incident) else f"{place}; no rank is named"


def how_sure(incident: Incident) -> str:
    """The verdict with its reason, and what area it is of."""
    return f"{incident.verdict}: {said_reason(incident.reason, incident.suspects)}; area {incident.area}"


def who_prints(template: SuspiciousTemplate) -> str:
    """Who prints a template; that nobody was seen to is not to say that nobody did."""
    if template.absent:
        return "not seen here"
    others = f"; outside the baseline printed by {', '.join(template.elsewhere)}" if template.elsewhere else ""
    return f"{said_ranks_of(template.ranks)}{others}"


def since(incident: Incident) -> str:
    """Since when, after or from which iteration, and in which phase, as far as these are known.

    Where nothing in a recording tells a time it is read as one of the first day that can be.
    """
    at = since_iteration(incident.symptom, incident.iteration)
    phase = f"in {incident.phase}" if incident.phase else ""
    when = "capture time unknown" if incident.onset < EARLIEST + 24 * HOUR else moment(incident.onset)
    return ", ".join(part for part in (when, at, phase) if part)


def others(incident: Incident) -> list[tuple[str, str]]:
    """The ranks that are not suspected, each kind that there is with its label."""
    groups = (("victims", incident.victims), ("missing", incident.missing), ("unobserved", incident.unobserved))
    return [(label, said_ranks_of(ranks.ranks)) for label, ranks in groups if ranks.ranks]


def stack_lines(incident: Incident) -> list[str]:
    """Where the ranks stood while the job stood still, a line for each kind of threads that tells somebody."""
    return [printable(kind.text) for kind in incident.stacks]


def suspect_lines(incident: Incident) -> list[str]:
    """Each suspect in a line; of very many the first, and how many more there are."""
    more = len(incident.suspects) - SHOWN_SUSPECTS
    rest = [f"and {more} more; --format json lists all"] if more > 0 else []
    return [*map(suspect_line, incident.suspects[:SHOWN_SUSPECTS]), *rest]


def suspect_line(suspect: Suspect) -> str:
    """Which worker, where, and why it is suspected."""
    rank = "unknown rank" if suspect.rank is None else f"rank {suspect.rank}"
    role = f" {suspect.role}" if suspect.role else ""
    at = "".join(f" {axis}={value}" for axis, value in sorted(suspect.coordinates.items()))
    kind = f", {suspect.kind.replace('_', ' ')}" if suspect.kind else ""
    return f"{rank}{role} on {suspect.node or 'an unknown node'}{at}, score {suspect.score:.2f}{kind}: {suspect.why}"


def print_unused(out: Console, inputs: Inputs) -> None:
    """What was not used, or only with what was assumed, with file, line and reason."""
    if not inputs.unused:
        return
    out.print()
    out.print(f"not used, or with doubt ({len(inputs.unused)}):")
    for one in inputs.unused[:SHOWN_UNUSED]:
        line = f":{one.line}" if one.line else ""
        times = f" ({one.count} times)" if one.count > 1 else ""
        out.print(f"  {printable(one.file)}{line}: {printable(one.reason)}{times}")
    if len(inputs.unused) > SHOWN_UNUSED:
        out.print(f"  and {len(inputs.unused) - SHOWN_UNUSED} more; --format json lists all")


def headline(incident: Incident) -> Text:
    """A revision in one line, for a feed."""
    line = Text(f"{moment(incident.published)}  ")
    line.append(incident.severity.upper(), style=COLOUR[incident.severity])
    line.append(f"  {printable(whose(incident))}  {printable(incident.summary)}")
    layers = sorted({piece.layer for piece in incident.evidence})
    area = "" if incident.area == "unknown" else f"{incident.area}: "
    line.append(f"  [{area}{', '.join(layers)}]", style="dim")
    if incident.status == "resolved":
        status = said_status(incident.resolution)
        why = said_resolution(incident.resolution, incident.merged_into)
        line.append(f"  [{status}: {printable(why)}]", style="green" if status == "resolved" else "")
    else:
        line.append(f"  next: {printable(incident.next_step)}")
    line.append(f"  {incident.id}", style="dim")
    return line
