"""The writers of a file that several write to, told apart by what envelopes and labels prove.

A label is one of two things: torchrun's tee prints the local rank, PyTorch's own loggers and hook the global one. Where
neither stands, lines of one pod or one task may be of all the ranks that run there, so nobody is named for them. NCCL
puts host and process before its own lines: these tell who it is that writes under a label, where only one does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from producers.envelopes.evidence import HEAD, WORLD
from producers.grouping import Record
from producers.introductions import NOBODY, Introduced, Process, Self, process_of, self_of
from producers.logfile import LogFile, of_logger
from producers.readers import launcher, torchrun
from producers.sole import sole

_STARTED = re.compile(
    r"- \((?:node_id=\w{1,128}, )?ip=([\w.:]{2,45}), pid=(\d{1,9})\) world_rank=(\d{1,7}), local_rank=(\d{1,5})"
)
_ITSELF = re.compile(r"\bworld rank: (\d{1,7})\b|\[rank=(\d{1,7}), world_size=\d")
_OF_WORLD = re.compile(r"\b[Rr]ank[ :=]{1,2}(\d{1,7})(?:/| of )(\d{1,7})\b")
_EQUALS = re.compile(r"\brank=(\d{1,7})\b")
_HOST = re.compile(r"\bhost(?:name)?(?:[=:] ?([\w.-]{1,253})|[ ](?=[\w.-]{0,60}\d)([\w.-]{1,253}))")
"""Behind a blank a host has a digit in its name; ``host is up`` names none."""
_PID = re.compile(r"\bpid[=: ]{1,2}(\d{1,9})\b")
_NO_ROLE = ("", "default", "rank")
_POD = re.compile(
    r"(?:^|/)[\w.-]{1,253}_([\w.-]{1,253})_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/[^/]{1,253}/\d{1,9}\.log$"
)
"""Where a kubelet keeps what one container of a pod prints."""


class Voice(msgspec.Struct, frozen=True, order=True):
    """One writer of a file: where it runs as far as envelopes say, and the number of its label.

    ``local`` is a local rank, ``rank`` a global one; null where the labels do not tell. ``label`` is a number that may
    be either. ``shared`` where workers of several nodes may have the same local rank or label here.
    """

    pod: str = ""
    container: str = ""
    actor: str = ""
    pid: int = -1
    ip: str = ""
    component: int = -1
    task: int = -1
    role: str = ""
    local: int | None = None
    rank: int | None = None
    label: int | None = None
    shared: bool = False

    @property
    def alone(self) -> bool:
        """Whether this is one process, so that what one of its lines says of itself holds for all of them."""
        numbered = self.local is not None or self.label is not None
        return self.pid >= 0 or (numbered and not self.shared)

    @property
    def node(self) -> tuple[str, str, int, int]:
        """What tells the node apart on which it runs."""
        return self.pod, self.ip, self.component, self.task

    @property
    def nobody(self) -> bool:
        """Whether no envelope and no label says anything of it."""
        return self == Voice()


class Spoken(msgspec.Struct, frozen=True):
    """What a voice said, and who it is: rank and local rank with the reason where the rank is null.

    ``pid`` is its process as far as NCCL tells. ``by_name`` where the name of the file tells the rank, ``confirmed``
    where its lines say the same.
    """

    voice: Voice
    log: LogFile
    rank: int | None = None
    local: int | None = None
    rank_reason: str = ""
    role: str = ""
    group: str = ""
    node: str = ""
    pid: int | None = None
    launcher: bool = False
    by_name: bool = False
    confirmed: bool = False
    job: str = ""
    stream: str = ""


def voices_of(log: LogFile, introduced: Introduced = NOBODY) -> list[Spoken]:
    """The writers of a file, each with its own records, in order of their envelopes.

    ``introduced`` is what NCCL's lines tell of the job's processes.
    """
    log = _in_pod(log)
    labels = _labels_of(log)
    placed = [_voice(record, labels) for record in log.records]
    shared = _shared(log, labels)
    alone = _introduced(log.records, placed, shared, introduced)
    records: dict[Voice, list[Record]] = defaultdict(list)
    for record, (place, rank) in zip(log.records, placed, strict=True):
        voice = place if place in alone else _of_label(place, rank, shared)
        prefix = "" if rank is None else f"[rank{rank}]: "
        records[voice].append(msgspec.structs.replace(record, prefix=prefix))
    logs = {voice: LogFile(log.file, records[voice], []) for voice in sorted(records, key=_order)}
    started = _started(log.records)
    tasks = _tasks_are_ranks(logs)
    # Such envelopes are around all that workers print; PyTorch's own label is not.
    labelled = any(msgspec.structs.replace(voice, rank=None) != Voice() for voice in logs)
    found = [_spoken(voice, one, started, tasks, labelled, alone.get(voice)) for voice, one in logs.items()]
    actors = {spoken.voice.actor for spoken in found if spoken.voice.actor and spoken.rank is not None}
    # Ranks of several kinds of actors begin at 0 in each of them.
    if len(actors) > 1:
        found = [
            msgspec.structs.replace(spoken, group=spoken.voice.actor) if spoken.voice.actor else spoken
            for spoken in found
        ]
    return [part for spoken in found for part in _parted(spoken, introduced)]


def _of_label(voice: Voice, rank: int | None, shared: set[tuple[str, str, int, int]]) -> Voice:
    """The voice of a line whose label names a global rank: where several may write there, it is that rank's own."""
    if (voice.local is not None or voice.label is not None) and voice.node in shared:
        voice = msgspec.structs.replace(voice, shared=True)
    return voice if voice.alone else msgspec.structs.replace(voice, rank=rank)


def _introduced(
    records: Sequence[Record],
    placed: Sequence[tuple[Voice, int | None]],
    shared: set[tuple[str, str, int, int]],
    introduced: Introduced,
) -> dict[Voice, Self]:
    """Who the voices are under which, as NCCL's lines show, one process alone writes; ``placed`` beside the records.

    Of several that may write there one alone does where all ranks have introduced themselves, the others elsewhere.
    """
    if not introduced.ranks:
        return {}
    own: dict[Voice, list[Record]] = defaultdict(list)
    labels: dict[Voice, set[int]] = defaultdict(set)
    for record, (voice, rank) in zip(records, placed, strict=True):
        own[voice].append(record)
        if rank is not None:
            labels[voice].add(rank)
    found: dict[Voice, Self] = {}
    for voice, said in own.items():
        itself = self_of(said, introduced)
        if itself is None:
            continue
        if not voice.alone or voice.node in shared:
            elsewhere = introduced.whole and labels[voice] <= {itself.rank}
            # An agent, or a launcher beside labelled workers, writes lines that are no worker's.
            if not elsewhere or (voice.nobody and (len(own) > 1 or launcher.speaks(LogFile("", said, [])))):
                continue
        found[voice] = itself
    return found


def _parted(spoken: Spoken, introduced: Introduced) -> list[Spoken]:
    """What a voice said of which nobody knows whose it is, without the lines of NCCL, which say it of themselves."""
    if spoken.rank is not None or spoken.voice.alone or not introduced.ranks:
        return [spoken]
    own: dict[Process | None, list[Record]] = defaultdict(list)
    for record in spoken.log.records:
        process = process_of(record.text)
        own[process if process in introduced.ranks else None].append(record)
    parts = [_of_process(spoken, process, own[process], introduced) for process in own if process is not None]
    rest = msgspec.structs.replace(spoken, log=msgspec.structs.replace(spoken.log, records=own[None]))
    parts.sort(key=lambda part: _order(part.voice))
    return [*([rest] if own[None] else []), *parts]


def _of_process(spoken: Spoken, process: Process, records: list[Record], introduced: Introduced) -> Spoken:
    host, pid = process
    voice = msgspec.structs.replace(spoken.voice, pod=spoken.voice.pod or host, pid=pid)
    log = msgspec.structs.replace(spoken.log, records=records)
    rank = introduced.ranks[process]
    return Spoken(voice=voice, log=log, rank=rank, node=spoken.node or host, pid=pid, role=spoken.role)


def _in_pod(log: LogFile) -> LogFile:
    """The log with the pod that its place tells, where its lines tell none."""
    found = _POD.search(log.file)
    if found is None or any(record.wrap.pod for record in log.records):
        return log
    records = [
        msgspec.structs.replace(record, wrap=msgspec.structs.replace(record.wrap, pod=found[1]))
        for record in log.records
    ]
    return msgspec.structs.replace(log, records=records)


def _order(voice: Voice) -> tuple[object, ...]:
    numbers = (-1 if number is None else number for number in (voice.local, voice.rank, voice.label))
    place = (voice.pod, voice.container, voice.actor, voice.pid, voice.ip, voice.component, voice.task, voice.role)
    return (*place, *numbers, voice.shared)


class _Labels(Enum):
    """Who put the outer labels of a file there."""

    PYTORCH = "before what it logs and before tracebacks, with the global rank"
    TEE = "torchrun's tee, before all lines, with the local rank"
    UNKNOWN = "a launcher or the program, before most lines, with whatever number"


def _labels_of(log: LogFile) -> _Labels:
    """Whose the labels of a file are. PyTorch puts none before what a program prints.

    Where PyTorch's loggers have but one, nobody puts another before all lines.
    """
    if log.teed:
        return _Labels.TEE
    if log.logged:
        return _Labels.PYTORCH
    firsts: dict[int, Record] = {}
    labelled = 0
    for record in log.records:
        if record.wrap.labels and record.wrap.labels[0][0] == "rank":
            labelled += 1
            firsts.setdefault(record.wrap.labels[0][1], record)
    # Behind a traceback its message may go on, so only what a label stands before first counts.
    plain = any(record.shape == "line" and not of_logger(record.text) for record in firsts.values())
    return _Labels.UNKNOWN if plain and 2 * labelled >= len(log.records) else _Labels.PYTORCH


def _voice(record: Record, whose: _Labels) -> tuple[Voice, int | None]:
    """The voice of a record, and the global rank that its label names.

    A program may print such a label itself, with whatever number; PyTorch's loggers and hook mean the global rank.
    Where such labels stand before most lines anyway, one before a traceback need not be the hook's.
    """
    wrap = record.wrap
    place = Voice(
        pod=wrap.pod,
        container=wrap.container,
        actor=wrap.actor,
        pid=-1 if wrap.pid is None else wrap.pid,
        ip=wrap.ip,
        component=-1 if wrap.component is None else wrap.component,
        task=-1 if wrap.task is None else wrap.task,
    )
    labels = wrap.labels
    if labels and whose is _Labels.TEE:
        (role, local), *inner = labels
        place = msgspec.structs.replace(place, role=role, local=local)
        labels = tuple(inner)
    elif labels and whose is _Labels.UNKNOWN:
        place = msgspec.structs.replace(place, label=labels[0][1])
        labels = labels[1:]
    named = labels and labels[-1][0] == "rank" and (record.shape in ("traceback", "failure") or of_logger(record.text))
    return place, labels[-1][1] if named else wrap.rank


def _shared(log: LogFile, whose: _Labels) -> set[tuple[str, str, int, int]]:
    """The nodes that may be several: nothing tells them apart, or their global ranks do not fit one node.

    On one node the global ranks are the local ones and a number that is the same for all.
    """
    if whose is _Labels.PYTORCH:
        return set()
    locals_: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    bases: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    for record in log.records:
        voice, rank = _voice(record, whose)
        number = voice.label if voice.local is None else voice.local
        if number is not None:
            locals_[voice.node].add(number)
            if rank is not None:
                bases[voice.node].add(rank - number)
    whole = _worlds(log.records)
    return {
        node
        for node, found in locals_.items()
        if len(bases[node]) > 1 or (node == Voice().node and whole != {len(found)})
    }


def _worlds(records: Sequence[Record]) -> set[int]:
    return {int(world) for record in records for world in WORLD.findall(record.text[:HEAD])}


def _started(records: Sequence[Record]) -> dict[tuple[str, int], tuple[int, int] | None]:
    """Rank and local rank by address and process id, as Ray's trainer lists them; null where it contradicts itself."""
    found: dict[tuple[str, int], tuple[int, int] | None] = {}
    for record in records:
        if "world_rank=" not in record.text:
            continue
        for ip, pid, rank, local in _STARTED.findall(record.text):
            numbers = int(rank), int(local)
            for key in ((ip, int(pid)), ("", int(pid))):
                found[key] = numbers if found.get(key, numbers) == numbers else None
    return found


def _tasks_are_ranks(logs: dict[Voice, LogFile]) -> bool:
    """Whether ``srun`` started one task for each GPU, so that the number of a task is a global rank.

    Shown where several tasks name their own rank and it is always that number, where there are as many tasks as the
    world has ranks, or where each of all tasks first speaks of itself as rank 6 of 32 (``rank 6/32``). With one task a
    node the ranks of a task differ from its number on all nodes but the first.
    """
    tasks = {voice.task for voice in logs if voice.task >= 0}
    if not tasks or any(voice.local is not None or voice.component >= 0 for voice in logs):
        return False
    ranks: dict[int, set[int]] = defaultdict(set)
    worlds: set[int] = set()
    for voice, log in logs.items():
        worlds |= _worlds(log.records)
        rank = said_of(log) if voice.rank is None else voice.rank
        if voice.task >= 0 and rank is not None:
            ranks[voice.task].add(rank)
    places = {(voice.node[:2], voice.task) for voice in logs if voice.task >= 0}
    if any(found != {task} for task, found in ranks.items()) or len(places) > len(tasks):
        return False
    whole = len(tasks) > 1 and max(tasks) == len(tasks) - 1
    return len(ranks) > 1 or (whole and (worlds == {len(tasks)} or _introduce_themselves(logs)))


def _introduce_themselves(logs: dict[Voice, LogFile]) -> bool:
    """Whether the first rank of a world that each task speaks of is its own number, of as many as there are tasks.

    Later lines may speak of others (``rank 5/32 timed out``). Whose first one does, or who has none, proves nothing.
    """
    firsts: dict[int, tuple[int, int] | None] = {}
    for voice, log in logs.items():
        if voice.task >= 0 and firsts.get(voice.task) is None:
            firsts[voice.task] = _of_world(log)
    return all(said == (task, len(firsts)) for task, said in firsts.items())


def _of_world(log: LogFile) -> tuple[int, int] | None:
    heads = (record.text[:HEAD] for record in log.records)
    found = next((match for head in heads if "ank" in head and (match := _OF_WORLD.search(head))), None)
    return found and (int(found.group(1)), int(found.group(2)))


class Introduction(NamedTuple):
    """The host, empty, and the process, null, where the line in which a rank introduces itself names none."""

    host: str = ""
    pid: int | None = None


def introduction_of(log: LogFile, rank: int) -> Introduction:
    """What the line tells in which a rank first names itself and how many there are."""
    for record in log.records:
        head = record.text[:HEAD]
        if "ank" not in head or not (_OF_WORLD.search(head) or WORLD.search(head)):
            continue
        own = _OF_WORLD.search(head) or _EQUALS.search(head)
        if own is not None and int(own.group(1)) == rank:
            host, pid = _HOST.search(head), _PID.search(head)
            named = "" if host is None else (host.group(1) or host.group(2)).rstrip(".")
            return Introduction(named, None if pid is None else int(pid.group(1)))
    return Introduction()


def introduced_as(log: LogFile) -> int | None:
    """The rank of the first line that tells one (``rank=3``) beside how many there are, as a worker does of itself."""
    heads = (record.text[:HEAD] for record in log.records)
    found = (_EQUALS.search(head) for head in heads if "rank=" in head and WORLD.search(head))
    return next((int(one.group(1)) for one in found if one is not None), None)


def said_of(log: LogFile) -> int | None:
    """The rank that a process's lines name as their own, null if they name none or several."""
    itself = {int(one or other) for record in log.records for one, other in _ITSELF.findall(record.text[:HEAD])}
    itself |= torchrun.ranks_named(log)
    return sole(itself)


def _spoken(
    voice: Voice,
    log: LogFile,
    started: dict[tuple[str, int], tuple[int, int] | None],
    tasks: bool,
    labelled: bool,
    itself: Self | None,
) -> Spoken:
    listed = started.get((voice.ip, voice.pid)) if voice.pid >= 0 else None
    rank, local = listed or (voice.rank, voice.local)
    reason = ""
    if voice.alone or itself is not None:
        said = said_of(log)
        if rank is not None and said is not None and rank != said:
            rank, reason = None, f"sources disagree: rank {rank} by the launcher, rank {said} by its own lines"
        elif rank is None:
            rank = said
        if rank is not None and itself is not None and rank != itself.rank:
            rank, reason = None, f"sources disagree: rank {rank} by its own lines, rank {itself.rank} by NCCL's"
        elif rank is None and itself is not None and not reason:
            rank = itself.rank
    elif rank is None and voice.task >= 0 and tasks:
        rank = voice.task
    host = torchrun.said([log]).host if voice.alone else ""
    if not host and rank is not None and voice.task >= 0 and not voice.pod:
        host = introduction_of(log, rank).host
    host = host or voice.pod or voice.ip
    return Spoken(
        voice=voice,
        log=log,
        rank=rank,
        local=local,
        rank_reason="" if rank is not None else reason or _reason(voice, labelled),
        role=voice.actor or ("" if voice.role in _NO_ROLE else voice.role),
        node=host or (itself.host if itself is not None else ""),
        pid=itself.pid if itself is not None else None,
        launcher=voice.nobody and labelled,
    )


def _reason(voice: Voice, labelled: bool) -> str:
    if voice.local is not None or voice.label is not None:
        return _of_number(voice)
    if voice.pid >= 0:
        return "no line says which rank this process is"
    if voice.task >= 0 and voice.pod:
        return "numbered by its launcher's prefix, and nothing shows that the number is the global rank"
    if voice.task >= 0:
        return "a task of srun or mpirun, and nothing shows that there is one for each GPU"
    if voice.nobody and labelled:
        return "without the label that others in this file have"
    return "several ranks may write here, and no label tells them apart"


def _of_number(voice: Voice) -> str:
    if voice.local is None:
        return f"nothing shows whether the label rank{voice.label} is the local rank or the global one"
    several = ", and it may be of several nodes" if voice.shared else ", and nothing names the global one"
    return f"the label {voice.role}{voice.local} is a local rank{several}"
