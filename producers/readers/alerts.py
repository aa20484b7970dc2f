"""Recorded alarms of the platform, in JSON: Alertmanager's, Kubernetes' and DeepTrace's events, and rows of one's own.

A row of one's own is ``{time, name, text, severity, node}`` with ``device``, ``switch``, ``storage``, ``status`` and
``source`` where these are known. Alertmanager's ``endsAt`` says when a firing alarm lapses unless it is sent again, so
of several the last counts; one without a status that has lapsed is over, as Alertmanager itself takes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from producers.inputs import Unused
from producers.jsonstream import head_of
from producers.rows import MOST_ARRAY_BYTES, Fields, parse, printable, values
from producers.scan import Source
from producers.times import SECOND, dated, from_seconds, possible

MOST_ALARMS = 100_000
"""Different alarms of one file; what comes behind them is counted."""
MOST_TOLD = 1_000_000
"""Alarms of one file, however often each was sent."""
_HEAD = 65_536
_WHOLE = re.compile(r"\s*\{\s*\"")
_TELLS = re.compile(r"\"(?:startsAt|alertname|involvedObject)\"|\"events\"\s*:\s*\[\s*(?:\]|\{)|\"alerts\"\s*:\s*\[")
_NODES = (
    "node",
    "nodename",
    "node_name",
    "hostname",
    "Hostname",
    "host",
    "kubernetes_node",
    "exported_node",
    "instance",
)
_DEVICES = ("pci_bus_id", "device", "interface", "port", "gpu", "UUID", "gpu_uuid")
_SWITCHES = ("switch", "switch_name", "leaf", "leaf_switch")
_STORAGES = ("storage", "filesystem", "fsname", "fs", "ost", "volume", "persistentvolumeclaim")
_JOBS = ("job_id", "slurm_job_id", "slurm_job", "hpc_job", "training_job")
_TEXTS = ("summary", "description", "message")
_PORT = re.compile(r"^(.{1,253}?):\d{1,5}$")
_LARGE = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""From which number on Unix times count in ns, us and ms, and their seconds."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What an alarm names; empty where it names none."""

    node: str = ""
    device: str = ""
    switch: str = ""
    storage: str = ""
    job: str = ""


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One alarm of a file. Times in ns; ``ended`` is null unless it is over, ``status`` as of the event ``Alert``."""

    line: int
    name: str
    text: str
    since: int
    ended: int | None = None
    status: Literal["", "firing"] = ""
    precision: int = 0
    severity: str = ""
    source: str = ""
    place: Place = Place()

    @property
    def named(self) -> tuple[object, ...]:
        """What makes two that were sent one alarm."""
        return self.name, self.place, self.since, "" if self.status else self.text


class Alarms(msgspec.Struct, frozen=True):
    """The alarms of a file, in order of its lines, and what could not be read."""

    file: str
    alarms: list[Alarm]
    unused: list[Unused] = []


def fits(fields: Fields) -> bool:
    """Whether a row is an alarm, or some of them as Alertmanager sends them on."""
    return any(one(fields) for one in (_is_listed, _is_sent, _is_stored, _is_list, _is_of_object, _is_plain))


def recognised(source: Source) -> bool:
    """Whether a file is one JSON object over many lines that holds alarms. Raises OSError."""
    head = head_of(source.path, _HEAD)
    if _WHOLE.match(head) is None or _TELLS.search(head) is None:
        return False
    value = _whole(source)
    return isinstance(value, dict) and fits(value)


def read(source: Source) -> Alarms:
    """The alarms of a file of rows, an array or one object. Raises OSError."""
    whole = _whole(source)
    rows = iter([(1, whole)]) if isinstance(whole, dict) else values(source.path)
    return merged(source.file, _alarms(rows))


def merged(file: str, told: Iterator[Alarm | tuple[int, str]]) -> Alarms:
    """The alarms of a file, those that were sent again as one; a line with a reason is one that cannot be used."""
    found: dict[tuple[object, ...], Alarm] = {}
    notes: dict[str, tuple[int, int]] = {}
    for number, one in enumerate(told):
        if number >= MOST_TOLD:
            line = one[0] if isinstance(one, tuple) else one.line
            notes[f"more than {MOST_TOLD} alarms; the rest was not read"] = line, 1
            break
        if isinstance(one, tuple):
            reason = one[1]
        elif one.named in found:
            found[one.named] = _again(found[one.named], one)
            continue
        elif len(found) < MOST_ALARMS:
            found[one.named] = one
            continue
        else:
            reason = f"more than {MOST_ALARMS} different alarms"
        line = one[0] if isinstance(one, tuple) else one.line
        first, count = notes.get(reason, (line, 0))
        notes[reason] = first, count + 1
    return Alarms(file, list(found.values()), [Unused(file, line, why, n) for why, (line, n) in notes.items()])


def _whole(source: Source) -> Any:
    """The only value of a file, null where it is none, or rows line by line."""
    if source.size > MOST_ARRAY_BYTES or not isinstance(
        next((one for _, one in values(source.path)), None), ValueError
    ):
        return None
    with source.path.open("rb") as file:
        raw = file.read(MOST_ARRAY_BYTES)
    try:
        return parse(raw)
    except ValueError:
        return None


def _again(one: Alarm, other: Alarm) -> Alarm:
    """Two that were sent of one alarm: over if the later word says so."""
    if one.ended is None or other.ended is None:
        ended = one.ended if one.ended is not None else other.ended
    else:
        ended = max(one.ended, other.ended)
    return msgspec.structs.replace(one, ended=ended)


def _is_listed(fields: Fields) -> bool:
    labels = fields.get("labels")
    return isinstance(labels, dict) and "alertname" in labels and "startsAt" in fields


def _is_sent(fields: Fields) -> bool:
    listed = fields.get("alerts")
    if not isinstance(listed, list) or not {"status", "receiver"} <= fields.keys():
        return False
    return all(isinstance(one, dict) and _is_listed(one) for one in listed[:20])


def _is_stored(fields: Fields) -> bool:
    """Events as DeepTrace's agent keeps them."""
    listed = fields.get("events")
    return isinstance(listed, list) and bool(listed) and all(_is_event(one) for one in listed[:20])


def _is_event(fields: Any) -> bool:
    return isinstance(fields, dict) and {"id", "source", "type", "message", "timestamp", "severity"} <= fields.keys()


def _is_list(fields: Fields) -> bool:
    """A list of events as Kubernetes has them."""
    items = fields.get("items")
    return isinstance(items, list) and bool(items) and all(_is_of_object(one) for one in items[:20])


def _is_of_object(fields: Any) -> bool:
    return isinstance(fields, dict) and {"involvedObject", "reason", "type"} <= fields.keys()


def _is_plain(fields: Fields) -> bool:
    placed = {"node", "switch", "storage"} & fields.keys()
    named = all(isinstance(fields.get(name), str) for name in ("name", "text", "severity"))
    return named and bool(placed) and "time" in fields and not {"value", "rank", "pid"} & fields.keys()


def _alarms(rows: Iterator[tuple[int, Any]]) -> Iterator[Alarm | tuple[int, str]]:
    for line, value in rows:
        if isinstance(value, ValueError):
            yield line, str(value)
            continue
        for entry in _entries(value):
            found = _alarm(line, entry)
            if found is not None:
                yield found


def _entries(value: Any) -> list[Any]:
    """The alarms of a value that holds many, else the value itself."""
    if isinstance(value, dict):
        for holds, key in ((_is_sent, "alerts"), (_is_stored, "events"), (_is_list, "items")):
            if holds(value):
                return list(value[key])
    return [value]


def _alarm(line: int, fields: Any) -> Alarm | tuple[int, str] | None:
    """One alarm, or why it cannot be used; null for what is none, but stands among them rightly."""
    if not isinstance(fields, dict):
        return line, "not a JSON object"
    for fits_one, read_one in _FORMS:
        if fits_one(fields):
            return read_one(line, fields)
    return line, "not a row like the others of this file"


def _listed(line: int, fields: Fields) -> Alarm | tuple[int, str]:
    labels = fields["labels"]
    notes = fields.get("annotations")
    since = _moment(fields.get("startsAt"))
    if since is None:
        return line, "startsAt is not a time between 2000 and 2100"
    status, lapses = fields.get("status"), _moment(fields.get("endsAt"))
    ended = None if lapses is None else max(lapses[0], since[0])
    if isinstance(status, dict) or status == "firing":
        ended = None
    elif status == "resolved" and ended is None:
        ended = since[0]
    return Alarm(
        line=line,
        name=_text(labels.get("alertname")),
        text=_first(notes if isinstance(notes, dict) else {}, _TEXTS),
        since=since[0],
        ended=ended,
        status="firing",
        precision=since[1],
        severity=_text(labels.get("severity")),
        source="alertmanager",
        place=_place(labels),
    )


def _stored(line: int, fields: Fields) -> Alarm | tuple[int, str]:
    moment = _moment(fields["timestamp"])
    if moment is None:
        return line, "timestamp is not a time between 2000 and 2100"
    more = fields.get("metadata")
    place = _place({"job_id": fields.get("job_id"), **(more if isinstance(more, dict) else {})})
    name, text, source = (_text(fields[key]) for key in ("type", "message", "source"))
    return Alarm(line=line, name=name, text=text, since=moment[0], precision=moment[1], source=source, place=place)


def _of_node(line: int, fields: Fields) -> Alarm | tuple[int, str] | None:
    """An event of a node in Kubernetes; of pods and the like there are very many, which tell no place."""
    about = fields["involvedObject"]
    if not isinstance(about, dict) or about.get("kind") != "Node":
        return None
    moments = [_moment(fields.get(key)) for key in ("lastTimestamp", "eventTime", "firstTimestamp")]
    moment = next((one for one in moments if one is not None), None)
    if moment is None:
        return line, "no time between 2000 and 2100"
    return Alarm(
        line=line,
        name=_text(fields["reason"]),
        text=_text(fields.get("message")),
        since=moment[0],
        precision=moment[1],
        severity=_text(fields["type"]),
        source="kubernetes",
        place=Place(node=_text(about.get("name"))),
    )


def _plain(line: int, fields: Fields) -> Alarm | tuple[int, str]:
    moment = _moment(fields["time"])
    if moment is None:
        return line, "time is not a time between 2000 and 2100"
    status, ended = _text(fields.get("status")), _moment(fields.get("ended"))
    since = _moment(fields.get("since")) or moment
    if status == "resolved":
        ended = ended or moment
    return Alarm(
        line=line,
        name=_text(fields["name"]),
        text=_text(fields["text"]),
        since=since[0],
        ended=None if ended is None else max(ended[0], since[0]),
        status="firing" if status in ("firing", "resolved") or ended is not None else "",
        precision=since[1],
        severity=_text(fields["severity"]),
        source=_text(fields.get("source")),
        place=_place(fields),
    )


_FORMS: tuple[tuple[Callable[[Fields], bool], Callable[[int, Fields], Alarm | tuple[int, str] | None]], ...] = (
    (_is_listed, _listed),
    (_is_event, _stored),
    (_is_of_object, _of_node),
    (_is_plain, _plain),
)


def _place(labels: Fields) -> Place:
    """What the labels tell of the place; an instance is a node with the port of its exporter."""
    node = _first(labels, _NODES)
    port = _PORT.match(node)
    device = _first(labels, _DEVICES)
    if device and device == _text(labels.get("device")) and (number := _text(labels.get("port"))):
        device = f"{device}:{number}"
    return Place(
        node=port.group(1) if port else node,
        device=device,
        switch=_first(labels, _SWITCHES),
        storage=_first(labels, _STORAGES),
        job=_first(labels, _JOBS),
    )


def _first(fields: Fields, names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return printable(str(value)[:4_096]).strip()


def _moment(value: Any) -> tuple[int, int] | None:
    """A time (ns) and how far off it may be: RFC 3339, or a Unix time in s, ms, us or ns. Null if it is none."""
    if isinstance(value, str):
        moment = dated(value.strip())
        if moment is not None:
            return (moment.time, min(moment.precision, SECOND)) if possible(moment.time) else None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        scale = next((scale for least, scale in _LARGE if value >= least), 1.0)
        time = from_seconds(value * scale if abs(value) < 1e300 else None)
        return None if time is None else (time, 0)
    return None
