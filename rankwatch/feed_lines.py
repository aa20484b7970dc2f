"""The lines of the feed: what an incident, a notice or an alert about the pipeline says, in the order people ask."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.text import Text

from rankwatch.terminal import printable
from rankwatch.text import COLOUR, how_sure, others, since, where
from rankwatch.text_fleet import is_fleet, whose
from rankwatch.text_ranks import with_few_ranks
from rankwatch.text_suspects import suspect_lines
from schemas.meta import MetaAlert
from schemas.results import Incident, Notice
from streams.incidents.resolution import said_recurrence, said_resolution, said_status
from streams.incidents.wording import said_symptom
from streams.report import as_json, moment


def incident_line(incident: Incident, adopted: Notice | None) -> Text:
    """A revision in one line: symptom and area, where, since when, suspects, who else, how sure, what next.

    ``adopted`` is the early notice that this revision is the first to stand for.
    """
    line = _head(incident.published, incident.severity)
    what = said_symptom(incident.symptom, incident.reason, incident.scope)
    parts = [
        f"{whose(incident)}: {what}, area {incident.area}",
        "the whole job; no rank is named" if _of_all(incident) else where(incident),
        f"since {since(incident)}",
        *(f"suspect {line}" for line in suspect_lines(incident)),
        *(f"{label} {ranks}" for label, ranks in others(incident)),
        how_sure(incident).rpartition("; area")[0],
        said_recurrence(incident.recurs),
        f"next: {incident.next_step}",
    ]
    line.append("  " + printable(with_few_ranks("; ".join(part for part in parts if part))))
    if adopted is not None:
        line.append(f"  [adopts the early notice of {moment(adopted.time)}]", style="bold")
    if incident.status == "resolved":
        status = said_status(incident.resolution)
        why = printable(said_resolution(incident.resolution, incident.merged_into))
        line.append(f"  [{status}: {why}]", style="green" if status == "resolved" else "")
    line.append(f"  {printable(incident.id)} revision {incident.revision}", style="dim")
    return line


def notice_line(notice: Notice) -> Text:
    """An early notice: something has happened, and who is to be looked at is not known yet."""
    return Text(f"{moment(notice.time)}  NOTICE  {printable(notice.text)}")


def closed_line(notice: Notice, time: int) -> Text:
    """The last word on a notice that nothing followed up to ``time``."""
    told = f"the early notice of {moment(notice.time)} ({notice.rule})"
    return Text(f"{moment(time)}  NOTICE OVER  {printable(f'job {notice.job}: nothing that pages followed {told}')}")


def meta_line(alert: MetaAlert) -> Text:
    """An alert about the pipeline."""
    if alert.status == "resolved":
        line = Text(f"{moment(alert.time)}  ")
        line.append("OVER", style="green")
    else:
        line = _head(alert.time, alert.severity)
    line.append(f"  pipeline  {printable(alert.name)}  {printable(alert.text)}")
    line.append(f"  {printable(alert.id)}", style="dim")
    return line


def _of_all(incident: Incident) -> bool:
    """Whether the job, which the line has named already, is all that can be said of where."""
    return incident.scope.kind == "job" and not incident.suspects and not is_fleet(incident)


def _head(time: int, severity: str) -> Text:
    line = Text(f"{moment(time)}  ")
    line.append(severity.upper(), style=COLOUR[severity])
    return line


def incident_json(incident: Incident, adopted: Notice | None, fleet: str = "") -> dict[str, Any]:
    """The report's keys, and ``adopts``: the early notice that became this incident, or null.

    ``fleet`` is the id of the incident of several jobs that it is part of.
    """
    adopts = None if adopted is None else {name: notice_json(adopted)[name] for name in ("time", "rule", "id")}
    return {**as_json(incident, fleet), "adopts": adopts}


def notice_json(notice: Notice) -> dict[str, Any]:
    """All that a notice says, its time in words."""
    return {**msgspec.structs.asdict(notice), "time": moment(notice.time)}


def meta_json(alert: MetaAlert) -> dict[str, Any]:
    """All that an alert about the pipeline says, its times in words."""
    return {**msgspec.structs.asdict(alert), "since": moment(alert.since), "time": moment(alert.time)}
