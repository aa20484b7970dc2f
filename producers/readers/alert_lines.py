"""Alarms that schedulers and switch managers write as lines: Slurm's controller, ``sinfo -R``, UFM's event log.

Sources: Slurm's ``src/slurmctld`` (ping_nodes.c, node_mgr.c, job_mgr.c) and the manual page of sinfo; UFM's event log
as guides to it show it. A reason without a state, as sinfo lists it, may be that of a drained node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from producers.hostlists import nodes_of
from producers.lines import read_lines
from producers.readers.alerts import Alarm, Alarms, Place, merged
from producers.scan import Source
from producers.times import SECOND, dated, possible

SCHEDULER = "slurm"
_SHARE = 50
"""Percent of the lines of a file that must have the form."""
_LONGEST = 2_048
MOST_NAMED = 4_096
"""Nodes of one line."""

_REASONS = re.compile(r"REASON {1,40}USER {1,40}TIMESTAMP {1,40}(?:STATE {1,40})?NODELIST\s*$")
_REASON = re.compile(
    r"(?P<reason>\S.{0,200}?) {1,60}(?P<user>[\w.()+-]{1,40}) {1,40}(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) {1,40}"
    r"(?:(?P<state>[a-z*~#!%$@^+-]{1,40}) {1,40})?(?P<nodes>\S{1,1500})\s*$"
)
_CONTROLLER = re.compile(
    r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?\] |"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?[+-]\d\d:?\d\d \S{1,253} slurmctld\[\d{1,10}\]: "
)
_CONTROLLERS = re.compile(
    r"\]:? (?:error: |debug\d?: |info: )?(?:sched: |backfill: |_slurm_rpc_|_job_complete: |update_node: |cleanup_compl|"
    r"Nodes? \S{1,1000} (?:not responding|now responding)|slurmctld|Node \S{1,253} |Killing JobId=|agent/is_node_resp)"
)
_NODES = r"(?P<nodes>\S{1,1500}?)"
_SAID: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("NodeDown", "critical", re.compile(rf"Nodes? {_NODES} not responding, setting DOWN")),
    ("NodeFailed", "critical", re.compile(rf"Killing JobId=\S{{1,60}} on failed node {_NODES}(?:\s|$)")),
    ("NodeRebooted", "critical", re.compile(rf"Node {_NODES} unexpectedly rebooted\b")),
    ("NodeDown", "critical", re.compile(rf"update_node: node {_NODES} state set to DOWN\b")),
    ("NodeDrained", "warning", re.compile(rf"update_node: node {_NODES} state set to DRAIN\w{{0,5}}\b")),
    ("NodeReason", "warning", re.compile(rf"update_node: node {_NODES} reason set to: ")),
    ("NodeNotResponding", "warning", re.compile(rf"Nodes? {_NODES} not responding\b")),
)
_FABRIC = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) \[\d{1,12}\] \[\d{1,9}\] +(?P<severity>[A-Z]{4,9}) +"
    r"\[(?P<category>[\w &]{1,60})\] (?P<kind>\w{1,60}) \[(?P<source>[^\]\n]{1,300})\](?P<text>.*)"
)
_SWITCH = re.compile(r"\bSwitch: ([\w.-]{1,253})(?: / [^/\]]{1,100} / (\d{1,5}))?")
_COMPUTER = re.compile(r"\bComputer: ([\w.-]{1,253})(?: ([\w.-]{1,60}) ?/ ?(\d{1,5}))?")
_LEVELS = {"CRITICAL": "critical", "MINOR": "warning", "WARNING": "warning"}

_Read = Callable[[int, str], "Iterator[Alarm | tuple[int, str]]"]


def recognised(texts: Sequence[str]) -> bool:
    """Whether sampled lines are such a file's."""
    return _reader(texts) is not None


def read(source: Source, texts: Sequence[str]) -> Alarms:
    """The alarms of a file whose sampled lines these are; what tells none is left aside silently. Raises OSError."""
    reader = _reader(texts) or _nothing
    found = (one for line in read_lines(source.path) for one in reader(line.number, line.text[:_LONGEST]))
    return merged(source.file, found)


def _reader(texts: Sequence[str]) -> _Read | None:
    shown = [text[:_LONGEST] for text in texts if text.strip()]
    if any(_REASONS.match(text) for text in shown[:3]):
        return _of_reason
    if _most(shown, _CONTROLLER) and any(_CONTROLLERS.search(text) for text in shown):
        return _of_controller
    return _of_fabric if _most(shown, _FABRIC) else None


def _most(texts: Sequence[str], form: re.Pattern[str]) -> bool:
    return bool(texts) and sum(form.search(text) is not None for text in texts) * 100 >= _SHARE * len(texts)


def _nothing(_number: int, _text: str) -> Iterator[Alarm | tuple[int, str]]:
    return iter(())


def _of_reason(number: int, text: str) -> Iterator[Alarm | tuple[int, str]]:
    found = _REASON.match(text)
    if found is None:
        if _REASONS.match(text) is None:
            yield number, "no row of sinfo -R"
        return
    state, reason = found["state"] or "", found["reason"]
    # A reason may be that of a drained node; that it does not respond is the controller's own.
    gone = state.startswith("down") or (not state and reason == "Not responding")
    name = "NodeDown" if gone else "NodeUnavailable"
    said = f"state set to DOWN: {reason}" if state.startswith("down") else f"{state}: {reason}" if state else reason
    yield from _alarms(number, found["time"], found["nodes"], name, said, "critical" if gone else "warning", "firing")


def _of_controller(number: int, text: str) -> Iterator[Alarm | tuple[int, str]]:
    for name, severity, pattern in _SAID:
        if (found := pattern.search(text)) is not None:
            said = text[head.end() :] if (head := _CONTROLLER.match(text)) is not None else text
            yield from _alarms(number, text, found["nodes"], name, said, severity)
            return


def _of_fabric(number: int, text: str) -> Iterator[Alarm | tuple[int, str]]:
    found = _FABRIC.search(text)
    if found is None:
        return
    moment = dated(found["time"])
    if moment is None or not possible(moment.time):
        yield number, "no time between 2000 and 2100"
        return
    # A link has two ends: that of a node is the smaller place.
    switch, computer = _SWITCH.search(text), _COMPUTER.search(text)
    if computer is not None:
        device = f"{computer.group(2)}/{computer.group(3)}" if computer.group(2) else ""
        place = Place(node=computer.group(1), device=device)
    else:
        port = f"port {switch.group(2)}" if switch is not None and switch.group(2) else ""
        place = Place(switch=switch.group(1) if switch is not None else "", device=port)
    yield Alarm(
        line=number,
        name=found["kind"],
        text=f"[{found['source']}]{found['text']}",
        since=moment.time,
        precision=min(moment.precision, SECOND),
        severity=_LEVELS.get(found["severity"], "info"),
        source="ufm",
        place=place,
    )


def _alarms(
    number: int, time: str, nodes: str, name: str, text: str, severity: str, status: Literal["", "firing"] = ""
) -> Iterator[Alarm | tuple[int, str]]:
    moment = dated(time)
    if moment is None or not possible(moment.time):
        yield number, "no time between 2000 and 2100"
        return
    for node in nodes_of(nodes.rstrip(".,;:"), MOST_NAMED):
        yield Alarm(
            line=number,
            name=name,
            text=text,
            since=moment.time,
            status=status,
            precision=min(moment.precision, SECOND),
            severity=severity,
            source=SCHEDULER,
            place=Place(node=node),
        )
