"""The report as one self-contained HTML page. Everything from a log is escaped; the page runs no script."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rankwatch.diagnose import Diagnosis
from rankwatch.silenced import silence_facts
from rankwatch.terminal import printable
from rankwatch.text import (
    AXES,
    how_sure,
    jobs_line,
    others,
    since,
    stack_lines,
    what,
    where,
    who_prints,
)
from rankwatch.text_compared import comparisons_html
from rankwatch.text_fleet import fleet_facts
from rankwatch.text_job import job_line
from rankwatch.text_suspects import suspect_lines
from schemas.results import Anomaly, Incident
from streams.compared import comparisons
from streams.incidents.resolution import said_recurrence, said_resolution, said_status
from streams.incidents.scope import said_more
from streams.judged import judged, said
from streams.report import differences, moment

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1c2330; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin: 0; }
article { border: 1px solid #d5dae3; border-left: 6px solid #8893a5; border-radius: 6px; }
article { padding: 1rem; margin: 1.5rem 0; }
article.critical { border-left-color: #c62828; } article.warning { border-left-color: #e69500; }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .3rem 1rem; margin: .8rem 0 0; }
dt { color: #5a6475; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin-top: .8rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-top: 1px solid #e5e9f0; }
td { overflow-wrap: anywhere; } td:first-child { overflow-wrap: normal; }
td.time { white-space: nowrap; }
th { color: #5a6475; font-weight: 500; white-space: nowrap; }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; } .quiet { color: #5a6475; }
@media (prefers-color-scheme: dark) {
  body { background: #12161d; color: #dfe4ec; } article { border-color: #2d3542; }
  th, td { border-color: #2d3542; } dt, th, .quiet { color: #94a0b3; } }
"""


def escape(text: str) -> str:
    """Text from outside as HTML on one line, without characters that steer whatever shows it."""
    return html.escape(printable(text))


def page(diagnosis: Diagnosis, *, ascii_only: bool = False) -> str:
    """The whole page; with ``ascii_only`` other characters are written as references."""
    whole = _page(diagnosis)
    return whole.encode("ascii", "xmlcharrefreplace").decode("ascii") if ascii_only else whole


def _page(diagnosis: Diagnosis) -> str:
    inputs = diagnosis.inputs
    several = len(diagnosis.jobs) > 1
    fleet, silenced = diagnosis.fleet, diagnosis.silenced
    told = [
        card(one, [*fleet_facts(one, fleet, several=several), *silence_facts(silenced.get(one.id))])
        for one in diagnosis.incidents
    ]
    cards = "".join(told) or "<p>No incident.</p>"
    cards += _differences(differences(diagnosis.log), several)
    beside = comparisons(diagnosis.log)
    cards += comparisons_html(beside, escape, several=len(beside) > 1)
    until = f" Seen up to {moment(diagnosis.until)}." if diagnosis.until is not None else ""
    rows = "".join(
        f"<tr><td><code>{escape(one.file)}{f':{one.line}' if one.line else ''}</code></td>"
        f"<td>{escape(one.reason)}</td><td>{one.count}</td></tr>"
        for one in inputs.unused
    )
    unused = f"<h2>Not used, or with doubt</h2><table><tr><th>where<th>why<th>times</tr>{rows}</table>" if rows else ""
    title = escape(jobs_line(diagnosis))
    job = job_line(diagnosis.description)
    known = f" Known of the job: {escape(job)}." if job else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Rankwatch: {title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{title[0].upper()}{title[1:]}</h1><p class=quiet>{inputs.records} records from {inputs.files} files, "
        f"run {diagnosis.run_id}.{known}{until} Judged by: {escape(said(judged(diagnosis.log)))}. "
        f"Suspects are ranks that stand apart, never root causes.</p>{cards}{unused}</body></html>\n"
    )


def _differences(found: list[Anomaly], several: bool) -> str:
    cells = [[*([one.job] if several else []), one.text, AXES[one.axis], one.peers] for one in found]
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    head = f"<tr>{'<th>job' if several else ''}<th>functions<th>which are<th>compared</tr>"
    return f"<h2>Profiles also show, as information</h2><table>{head}{rows}</table>" if found else ""


def card(incident: Incident, first: Sequence[tuple[str, str]]) -> str:
    """In the order in which an incident is read: what, where, since when, who and why, how sure, what next.

    ``first`` are the labels and lines that come before all others.
    """
    place = [*first, ("where", where(incident))]
    place += [("within", more)] if (more := said_more(incident.scope)) else []
    place += [("since", since(incident)), *(("clocks", said) for said in incident.clocks)]
    place += [("suspect", line) for line in suspect_lines(incident)]
    place += [("stacks", line) for line in stack_lines(incident)]
    judged_as = [*others(incident), ("how sure", how_sure(incident))]
    judged_as += [("healthy jobs", f"held against library {incident.library}")] if incident.library else []
    judged_as += [("again", said_recurrence(incident.recurs))] if incident.recurs else []
    why = said_resolution(incident.resolution, incident.merged_into)
    judged_as += [(said_status(incident.resolution), why)] if incident.resolution else []
    judged_as += [("next", incident.next_step)]
    return (
        f'<article class="{incident.severity}"><h2>{incident.severity.capitalize()}: {what(incident)}</h2>'
        f"{_listed(place)}{_evidence(incident)}{_templates(incident)}{_listed(judged_as)}"
        f"<p class=quiet>{incident.id}, revision {incident.revision}, {said_status(incident.resolution)}</p></article>"
    )


def _listed(facts: list[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{label}</dt><dd>{escape(text)}</dd>' for label, text in facts)}</dl>"


def _evidence(incident: Incident) -> str:
    rows = "".join(
        f"<tr><td>{piece.layer}</td><td>{escape(piece.text)}</td><td>{escape(piece.peers)}</td></tr>"
        for piece in incident.evidence
    )
    return f"<table><tr><th>layer<th>evidence<th>peers</tr>{rows}</table>"


def _templates(incident: Incident) -> str:
    if not incident.templates:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(one.text)}</code></td><td>{escape(who_prints(one))}</td>"
        f"<td class=time>{'' if one.absent else moment(one.first_seen)}</td><td>{AXES[one.axis]}</td></tr>"
        for one in incident.templates
    )
    return f"<table><tr><th>suspicious template<th>printed by<th>first seen<th>stands out</tr>{rows}</table>"
