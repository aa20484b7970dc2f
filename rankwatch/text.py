"""Incidents as text for people: what, where, since when, on what evidence, how sure, what next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from producers.recording import Inputs
from producers.times import EARLIEST, HOUR
from rankwatch.diagnose import Diagnosis
from rankwatch.silenced import silence_facts
from rankwatch.terminal import printable, put, put_facts
from rankwatch.text_compared import print_comparisons
from rankwatch.text_fleet import fleet_facts, is_fleet, whose
from rankwatch.text_job import job_line
from rankwatch.text_ranks import with_few_ranks
from rankwatch.text_series import Block, blocks_of, other_lines
from rankwatch.text_suspects import suspect_lines
from schemas.results import Anomaly, Axis, Incident, SuspiciousTemplate
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
SHOWN_BLOCKS = 20
"""So many incidents are told whole; a series is one."""


def print_diagnosis(out: Console, diagnosis: Diagnosis) -> None:
    """The whole report."""
    inputs = diagnosis.inputs
    put(out, f"{jobs_line(diagnosis)}: {inputs.records} records from {inputs.files} files, run {diagnosis.run_id}")
    if known := job_line(diagnosis.description):
        put(out, f"known of the job: {known}")
    put(out, f"judged by: {said(judged(diagnosis.log))}")
    if diagnosis.until is not None:
        begins = diagnosis.recording.span[0]
        if diagnosis.until < begins:
            put(out, f"nothing was there by {moment(diagnosis.until)}: the recording begins at {moment(begins)}")
        else:
            put(out, f"as told by {moment(diagnosis.until)}, of the windows that had closed by then")
    if diagnosis.library is not None:
        put(out, f"held against library {diagnosis.library.label}")
    if count := said_count(diagnosis.incidents):
        put(out, count)
    _print_blocks(out, diagnosis)
    print_differences(out, differences(diagnosis.log), jobs=len(diagnosis.jobs) > 1)
    beside = comparisons(diagnosis.log)
    print_comparisons(out, beside, several=len(beside) > 1)
    print_unused(out, inputs)


def said_count(incidents: Sequence[Incident]) -> str:
    """How many incidents there are, by severity; empty for one, which speaks for itself."""
    if len(incidents) < 2:
        return "" if incidents else "no incident"
    counts = Counter[str](one.severity for one in incidents)
    told = ", ".join(f"{counts[severity]} {severity}" for severity in COLOUR if counts[severity])
    return f"{len(incidents)} incidents, the most important first: {told}"


def _print_blocks(out: Console, diagnosis: Diagnosis) -> None:
    """The incidents, each series as one block; of very many the first are told whole, the others in a line each."""
    fleet, silenced = diagnosis.fleet, diagnosis.silenced
    blocks = blocks_of(diagnosis.incidents, lambda one: (fleet.of(one), one.id in silenced))
    for block in blocks[:SHOWN_BLOCKS]:
        out.print()
        one = block.whole
        several = len(diagnosis.jobs) > 1 or one.job != diagnosis.recording.job
        first = [*fleet_facts(one, fleet, several=several), *silence_facts(silenced.get(one.id))]
        print_incident(out, one, first, block.others)
    if len(blocks) > SHOWN_BLOCKS:
        out.print()
        put(out, f"{len(blocks) - SHOWN_BLOCKS} more, which --format html shows whole:")
    for block in blocks[SHOWN_BLOCKS:]:
        put(out, f"  {_short(block)}")


def _short(block: Block) -> str:
    """An incident in a line that tells no evidence."""
    one = block.whole
    again = f", and {len(block.others)} like it" if block.others else ""
    place = where(one)
    job = "" if place.startswith(whose(one)) else f"{whose(one)}, "
    return f"{one.severity.upper()}  {what(one)}  {job}{place}, since {since(one)}{again}  {one.id}"


def print_differences(out: Console, found: list[Anomaly], *, jobs: bool = False) -> None:
    """What profiles show to differ; it is no incident and accuses nobody."""
    if not found:
        return
    out.print()
    out.print(Text("profiles also show, as information", style="bold"))
    for one in found:
        whose = f"job {one.job}: " if jobs else ""
        put_facts(out, [("", f"{whose}{one.text}  ({AXES[one.axis]})"), ("", f"    {one.peers}")])


def jobs_line(diagnosis: Diagnosis) -> str:
    """``job a``, or ``jobs a, b`` where a folder holds several."""
    jobs = diagnosis.jobs
    return printable(f"job{'s' if len(jobs) > 1 else ''} {', '.join(jobs)}")


def print_incident(
    out: Console,
    incident: Incident,
    first: Sequence[tuple[str, str]] = (),
    others: Sequence[Incident] = (),
) -> None:
    """One incident as a card; ``first`` are the labels and lines that come before all others.

    ``others`` are those of its series, of which is told what differs.
    """
    title = Text()
    title.append(incident.severity.upper(), style=COLOUR[incident.severity])
    title.append(f"  {what(incident)}", style="bold")
    title.append(f"  {incident.verdict}, {said_status(incident.resolution)}")
    title.append(f"  {incident.id} revision {incident.revision}", style="dim")
    put(out, title)
    put_facts(out, ((label, with_few_ranks(line)) for label, line in (*first, *_lines(incident, others))))


def _lines(incident: Incident, series: Sequence[Incident]) -> Iterator[tuple[str, str]]:
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
            yield "", f"    {said_peers(piece.peers)}"
    for number, line in enumerate(stack_lines(incident)):
        yield "stacks" if number == 0 else "", line
    for number, template in enumerate(incident.templates):
        yield "templates" if number == 0 else "", f"{template.text}  ({who_prints(template)}, {AXES[template.axis]})"
    yield from others(incident)
    yield "sure", how_sure(incident)
    yield from (("" if number else "again", line) for number, line in enumerate(_again(incident, series)))
    if incident.resolution:
        yield said_status(incident.resolution), said_resolution(incident.resolution, incident.merged_into)
    yield "next", incident.next_step


def _again(incident: Incident, series: Sequence[Incident]) -> Iterator[str]:
    """How often it came before, and what differs in the others of its series."""
    if series:
        yield f"{said_recurrence(incident.recurs) or 'later attempts had one like it'}; others of the series:"
        yield from other_lines(Block(incident, list(series)), _differing)
    elif incident.recurs:
        yield said_recurrence(incident.recurs)


def _differing(incident: Incident) -> dict[str, str]:
    """What may differ between incidents of a series, as it is told."""
    return {
        "onset": _said_onset(incident),
        "iteration": since_iteration(incident.symptom, incident.iteration),
        "phase": f"in {incident.phase}" if incident.phase else "",
        "severity": incident.severity,
        "what": what(incident),
        "where": where(incident) if incident.scope.kind != "job" else "no rank is named",
        "verdict": incident.verdict,
        "why": "; ".join(dict.fromkeys(one.why for one in incident.suspects)),
        "status": said_resolution(incident.resolution, incident.merged_into) or said_status(incident.resolution),
    }


def said_peers(peers: str) -> str:
    """What peers show, with a word of whom it is where it does not begin with that."""
    return peers if peers.startswith(("peers", "its peers")) else f"peers: {peers}"


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
    """Since when, after or from which iteration, and in which phase, as far as these are known."""
    at = since_iteration(incident.symptom, incident.iteration)
    phase = f"in {incident.phase}" if incident.phase else ""
    return ", ".join(part for part in (_said_onset(incident), at, phase) if part)


def _said_onset(incident: Incident) -> str:
    """Where nothing in a recording tells a time it is read as one of the first day that can be."""
    return "capture time unknown" if incident.onset < EARLIEST + 24 * HOUR else moment(incident.onset)


def others(incident: Incident) -> list[tuple[str, str]]:
    """The ranks that are not suspected, each kind that there is with its label."""
    groups = (("victims", incident.victims), ("missing", incident.missing), ("unobserved", incident.unobserved))
    return [(label, said_ranks_of(ranks.ranks)) for label, ranks in groups if ranks.ranks]


def stack_lines(incident: Incident) -> list[str]:
    """Where the ranks stood while the job stood still, a line for each kind of threads that tells somebody."""
    return [printable(kind.text) for kind in incident.stacks]


def print_unused(out: Console, inputs: Inputs) -> None:
    """What was not used, or only with what was assumed, with file, line and reason."""
    if not inputs.unused:
        return
    out.print()
    put(out, f"not used, or with doubt ({len(inputs.unused)}):")
    for one in inputs.unused[:SHOWN_UNUSED]:
        line = f":{one.line}" if one.line else ""
        times = f" ({one.count} times)" if one.count > 1 else ""
        put(out, f"  {one.file}{line}: {one.reason}{times}")
    if len(inputs.unused) > SHOWN_UNUSED:
        put(out, f"  and {len(inputs.unused) - SHOWN_UNUSED} more; --format json lists all")


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
