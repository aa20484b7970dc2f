"""Logs of a node itself: the kernel's ring buffer in all its forms, syslog, the journal, file systems, NVSwitches.

They are told by how their lines begin. Each host of a file has a log of its own; a line in seconds since boot gets its
time from what the same node tells of its boot.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from producers.clocks import by_neighbour
from producers.grouping import Record, clipped
from producers.heads import KERNEL, Head, continues, head_of
from producers.inputs import Unused
from producers.lines import Line, read_lines
from producers.logfile import LogFile, Notes
from producers.scan import Source
from producers.times import HOUR, SECOND, SOME_YEAR, Moment, dated, possible, printed

_SHARE = 50
"""Percent of the lines of a file that must have a head."""
_MANY_HOSTS = 1_000
_MOST_MERGED = 1_000
_REBOOT = 60 * SECOND
"""How far the seconds since boot must fall to be of another boot; processors print a little out of order."""
_DRIFT = 10_000
"""The kernel's clock gains or loses less than one part in so many against the node's."""
_ONE_BOOT = 600 * SECOND
"""How far apart what tells of a boot may lie and still be of one."""
_RTC = re.compile(r"setting system clock to (\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d) UTC")
_AUDIT = re.compile(r"\baudit(?:\(|: type=\d{1,5} audit\()(\d{9,10})\.(\d{3}):")
_OF_NODES = re.compile(r"kernel|systemd|CRON|sshd|slurmd|slurmstepd|dockerd|containerd|kubelet|nvidia-fabricmanager")
_WORDS = re.compile(r"[^/_.-]+")
_A_NODE = re.compile(r"(?i)(?:^|(?<=[/_.-]))(?:node|host|nid)-?[0-9]{1,10}(?=$|[/_.-])")
"""A part of a path that says by itself that it is a node."""
_USUAL = frozenset(
    (
        *("dmesg", "kern", "kernel", "kmsg", "syslog", "messages", "journal", "journalctl", "fabricmanager", "nvidia"),
        *("system", "node", "nodes", "host", "hosts", "var", "log", "logs", "out", "txt", "json", "jsonl"),
    )
)
"""Words in the paths of nodes' logs that are no node's name."""

UNDATED = "seconds since boot, and nothing tells when that was; the times are not known"


class Anchor(msgspec.Struct, frozen=True, order=True):
    """A moment of which both are known: ``uptime`` (ns since boot) and ``time`` (ns UTC)."""

    uptime: int
    time: int


class NodeLog(msgspec.Struct, frozen=True):
    """What one host has written into a file; ``heads`` stand beside the records of ``log``.

    ``boots`` numbers the boot of each record within the file.
    """

    log: LogFile
    heads: list[Head]
    boots: list[int]
    host: str


def recognised(texts: Sequence[str]) -> bool:
    """Whether sampled lines are of a node's own log.

    A form that programs may have, too (a time, a word, another word and a colon), counts where some line is of a
    program that only a node has.
    """
    shown = [text for text in texts if text.strip()]
    heads = [head for text in shown if (head := head_of(text)) is not None]
    wrapped = sum(continues(text) for text in shown)
    if not heads or (len(heads) + min(wrapped, len(heads))) * 100 < _SHARE * len(shown):
        return False
    certain = [head for head in heads if head.form != "syslog" or _OF_NODES.fullmatch(head.program)]
    return bool(certain)


def read(source: Source) -> list[NodeLog]:
    """The logs in a file, one for each host, in order of their names, not yet timed. Raises OSError."""
    hosts: dict[str, _Draft] = {}
    notes = Notes(source.file)
    current: _Draft | None = None
    for line in notes.noted(notes.read(read_lines(source.path))):
        head = head_of(line.text)
        if head is None and current is not None and current.merge(line.text):
            continue
        name = "" if head is None else head.host
        if name not in hosts and len(hosts) >= _MANY_HOSTS:
            name = ""
        current = hosts.setdefault(name, _Draft(source.file))
        current.add(line, head or Head(form="", text=line.text, program="unknown"))
    logs = [draft.done(name) for name, draft in sorted(hosts.items())]
    if not logs:
        return []
    # What was mended in the file is told once.
    mended = msgspec.structs.replace(logs[0].log, unused=[*notes.all(), *logs[0].log.unused])
    return [msgspec.structs.replace(logs[0], log=mended), *logs[1:]]


class _Draft:
    """The log of one host being read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: list[Line] = []
        self._heads: list[Head] = []
        self._texts: list[list[str]] = []
        self._boots: list[int] = []
        self._boot = 0
        self._latest: Head | None = None
        self._lost = 0
        self._first_lost = 0

    def add(self, line: Line, head: Head) -> None:
        before = self._latest
        if head.uptime is not None:
            if before is not None and (before.uptime or 0) - head.uptime > _REBOOT:
                self._boot += 1
            elif before is not None and head.number is not None and before.number is not None:
                self._missed(line, head.number - before.number - 1)
            self._latest = head
        if not head.text.strip():
            return
        self._lines.append(line)
        self._heads.append(head)
        self._texts.append([head.text.rstrip()])
        self._boots.append(self._boot)

    def _missed(self, line: Line, count: int) -> None:
        if count > 0:
            self._first_lost = self._first_lost or line.number
            self._lost += count

    def merge(self, text: str) -> bool:
        """Takes a line without a head as part of the record before it."""
        if not self._texts or len(self._texts[-1]) >= _MOST_MERGED:
            return False
        self._texts[-1].append(text.rstrip())
        return True

    def done(self, host: str) -> NodeLog:
        records = [
            Record(line.number, line.offset, clipped("\n".join(texts)), lines=len(texts))
            for line, texts in zip(self._lines, self._texts, strict=True)
        ]
        unused = []
        if self._lost:
            reason = "lines that the ring buffer had lost before they were read"
            unused.append(Unused(self._file, self._first_lost, reason, self._lost))
        heads = [msgspec.structs.replace(head, text="") for head in self._heads]
        return NodeLog(LogFile(self._file, records, unused), heads, self._boots, host)


def reference_of(logs: Iterable[NodeLog]) -> list[int]:
    """Times with a year in logs of nodes."""
    return [
        moment.time
        for one in logs
        for record, head in zip(one.log.records, one.heads, strict=True)
        if (moment := _of_head(head) or _told(record.text)) is not None
    ]


def _of_head(head: Head, reference: int | None = None) -> Moment | None:
    if head.time is not None:
        return Moment(head.time, "printed", 1_000)
    if not head.printed:
        return None
    moment = dated(head.printed) if reference is None else printed(head.printed, reference)
    return moment if moment is not None and possible(moment.time) else None


def anchors_of(one: NodeLog, reference: int | None) -> dict[int, list[Anchor]]:
    """What the lines of a log tell of when its boots were, by the number of the boot."""
    found: dict[int, list[Anchor]] = defaultdict(list)
    for record, head, boot in zip(one.log.records, one.heads, one.boots, strict=True):
        if head.uptime is None:
            continue
        moment = _of_head(head, SOME_YEAR if reference is None else reference) or _told(record.text)
        if moment is not None:
            found[boot].append(Anchor(head.uptime, moment.time))
    return {boot: sorted(anchors) for boot, anchors in found.items()}


def _told(text: str) -> Moment | None:
    """A time of day in what the kernel says: of the clock that it reads at boot, of its audit."""
    if found := _RTC.search(text):
        moment = dated(found.group(1))
        return moment if moment is not None and possible(moment.time) else None
    if found := _AUDIT.search(text):
        time = int(found.group(1)) * SECOND + int(found.group(2)) * SECOND // 1_000
        return Moment(time) if possible(time) else None
    return None


class Boots:
    """When nodes were booted, as far as lines that name their host tell."""

    def __init__(self, told: Iterable[tuple[NodeLog, dict[int, list[Anchor]]]]) -> None:
        self._hosts: dict[str, list[Anchor]] = defaultdict(list)
        self._folders: dict[str, set[str]] = defaultdict(set)
        for one, boots in told:
            if one.host:
                self._folders[_folder(one)].add(_short(one.host))
                self._hosts[_short(one.host)].extend(anchor for anchors in boots.values() for anchor in anchors)

    def of(self, one: NodeLog) -> list[Anchor]:
        """What is known of the only boot of a log's node; nothing where there were several, or nobody knows the node.

        Lines without a host are of the only one that other files in their folder name.
        """
        hosts = {_short(one.host)} if one.host else self._folders[_folder(one)]
        found = sorted(self._hosts[next(iter(hosts))]) if len(hosts) == 1 else []
        boots = [anchor.time - anchor.uptime for anchor in found]
        return found if found and max(boots) - min(boots) <= _ONE_BOOT else []


def _folder(one: NodeLog) -> str:
    return one.log.file.rpartition("/")[0]


def _short(host: str) -> str:
    return host.partition(".")[0]


def timed(one: NodeLog, reference: int | None, known: Sequence[Anchor]) -> NodeLog:
    """The log with the times of its records, null where nothing tells them.

    ``known`` is what other files tell of the only boot of its node.
    """
    own = anchors_of(one, reference)
    moments: list[Moment | None] = []
    undated: list[int] = []
    for record, head, boot in zip(one.log.records, one.heads, one.boots, strict=True):
        moment = _of_head(head, SOME_YEAR if reference is None else reference)
        anchors = own.get(boot) or (known if boot == one.boots[-1] else ())
        if moment is None and head.uptime is not None and anchors:
            moment = _since(head.uptime, anchors)
        elif moment is None and head.uptime is not None:
            undated.append(record.line)
        moments.append(moment)
    unused = list(one.log.unused)
    if undated:
        unused.append(Unused(one.log.file, undated[0], UNDATED, len(undated)))
    iterations: list[int | None] = [None] * len(moments)
    log = msgspec.structs.replace(one.log, moments=moments, iterations=iterations, unused=unused)
    return msgspec.structs.replace(one, log=log)


def _since(uptime: int, anchors: Sequence[Anchor]) -> Moment | None:
    """The time of a line by the anchor that is nearest; the further that is, the further the clocks are apart."""
    at = bisect_left(anchors, Anchor(uptime, 0))
    near = min(anchors[max(0, at - 1) : at + 1], key=lambda anchor: abs(anchor.uptime - uptime))
    time = near.time + uptime - near.uptime
    if not possible(time):
        return None
    return Moment(time, "inferred", min(SECOND + abs(uptime - near.uptime) // _DRIFT, HOUR))


def node_of(one: NodeLog, known: Iterable[str]) -> str:
    """The node of a log."""
    return node_named(one.host, one.log.file, known)


def node_named(host: str, file: str, known: Iterable[str], usual: frozenset[str] = frozenset()) -> str:
    """The node of a file: the host that it names, a known node in its path, one as ``node07``, or the only known one.

    The last only where the path has none but usual words: any other may be the name of a node that nothing else knows.
    """
    nodes = sorted(node for node in set(known) if node)
    if host:
        short = _short(host)
        same = [node for node in nodes if host == node] or [n for n in nodes if _short(n) == short]
        return same[0] if len(same) == 1 else host
    named = [node for node in nodes if _names(file, node)]
    if named:
        longest = max(len(node) for node in named)
        found = [node for node in named if len(node) == longest]
        return found[0] if len(found) == 1 else ""
    said = set(_A_NODE.findall(file))
    if len(said) == 1:
        return str(next(iter(said)))
    words = {word for word in _WORDS.findall(file.lower()) if not word.isdigit()}
    return nodes[0] if len(nodes) == 1 and words <= _USUAL | usual else ""


def _names(file: str, node: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(node)}(?=$|[/_.-])", file) is not None


def filled(one: NodeLog, start: int, end: int) -> list[Moment]:
    """The moments of all records; of one of which nothing tells the time only that it was at some time or other."""
    known = any(moment is not None for moment in one.log.moments)
    return [
        msgspec.structs.replace(moment, precision=HOUR)
        if printed is None and (head.uptime is not None or not known)
        else moment
        for moment, printed, head in zip(
            by_neighbour(one.log.moments, start, end), one.log.moments, one.heads, strict=True
        )
    ]


def process_type(head: Head) -> str:
    """``kernel`` or ``system``: whose word a line is, since several write under one node's name."""
    return KERNEL if head.of_kernel else "system"
