"""Logs whose lines are JSON objects with rank, step and numbers: ``{"rank": 3, "step": 10, "forward_time": 0.31}``.

Such a line may also speak of another rank (``{"event": "straggler", "rank": 5, "step": 10}``). So the ranks of those
rows that are most common in a file (by their event or message) are its writers. Of one writer are all lines but those
that name another rank; where several write, of each only its rows of that kind and those in which it introduces itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from producers.grouping import Record
from producers.logfile import LogFile, read_log
from producers.rows import Fields, is_number, parse, printable
from producers.scan import Source
from producers.times import dated, from_seconds
from producers.voices import Spoken, Voice
from schemas.identity import MOST_RANKS

T = TypeVar("T")

_FEWEST = 2
_RANKS = ("rank", "global_rank")
_STEPS = ("step", "global_step", "iteration")
_CLOCKS = ("timestamp", "asctime", "time", "ts", "@timestamp")
_KINDS = ("event", "message", "msg", "type")
_HOSTS = ("host", "hostname", "node")
_NO_MEASURE = frozenset((*_RANKS, *_STEPS, *_CLOCKS, "local_rank", "world_size", "epoch"))
_DIGITS = re.compile(r"\d+")
_OF_ANOTHER = "a line that speaks of a rank, which need not be the one that wrote it"


def fits(fields: Fields) -> bool:
    """Whether a row tells what a rank measured in a step, and when; samples of processes have a process id."""
    measured = any(is_number(value) for name, value in fields.items() if name not in _NO_MEASURE)
    numbered = any(_count(fields.get(name)) is not None for name in _STEPS)
    return measured and numbered and _rank(fields) is not None and "pid" not in fields and _has_time(fields)


def recognised(rows: Sequence[Fields]) -> bool:
    """Whether sampled rows are those of such a log."""
    return sum(map(fits, rows)) >= _FEWEST


def read(source: Source) -> list[Spoken]:
    """What each writer of a file says, nobody's lines last; only the first has the notes. Raises OSError."""
    log = read_log(source, ())
    rows = [_fields(record.text) for record in log.records]
    kind, writers = _writers(rows)
    records: dict[int | None, list[Record]] = defaultdict(list)
    own: dict[int, list[Fields]] = defaultdict(list)
    for record, fields in zip(log.records, rows, strict=True):
        rank = _writer(fields, kind, writers)
        records[rank].append(msgspec.structs.replace(record, stamp=_stamp(fields)))
        if rank is not None:
            own[rank].append(fields)
    found = [_spoken(source, rank, records[rank], own[rank]) for rank in sorted(own)]
    if None in records:
        found.append(Spoken(Voice(), LogFile(source.file, records[None], []), rank_reason=_OF_ANOTHER))
    first = msgspec.structs.replace(found[0], log=msgspec.structs.replace(found[0].log, unused=log.unused))
    return [first, *found[1:]]


def _spoken(source: Source, rank: int, records: list[Record], rows: list[Fields]) -> Spoken:
    return Spoken(
        voice=Voice(rank=rank),
        log=LogFile(source.file, records, []),
        rank=rank,
        local=_one([_count(fields.get("local_rank")) for fields in rows if "local_rank" in fields]),
        node=_one([_host(fields) for fields in rows if _host(fields)]) or "",
        # As with names of files, a number that files of several folders have at once is no global rank.
        by_name=True,
    )


def _writers(rows: Sequence[Fields]) -> tuple[str, frozenset[int]]:
    """The kind of row that tells most of steps, and the ranks in such rows."""
    measured = [fields for fields in rows if fits(fields)]
    kinds = Counter(_kind(fields) for fields in measured)
    kind = min(kinds, key=lambda one: (-kinds[one], one), default="")
    ranks = {_rank(fields) for fields in measured if _kind(fields) == kind}
    return kind, frozenset(rank for rank in ranks if rank is not None)


def _writer(fields: Fields, kind: str, writers: frozenset[int]) -> int | None:
    """Who wrote a line, null where that is not certain."""
    rank = _rank(fields)
    if len(writers) == 1:
        return None if rank not in (None, *writers) else min(writers)
    introduced = "local_rank" in fields and bool(_host(fields))
    return rank if rank in writers and (introduced or (fits(fields) and _kind(fields) == kind)) else None


def _kind(fields: Fields) -> str:
    """What a row is about; rows that do not say are all of one kind."""
    said = next((value for name in _KINDS if isinstance(value := fields.get(name), str)), "")
    return _DIGITS.sub("0", said[:200])


def _fields(text: str) -> Fields:
    """The fields of a line, none if it is no JSON object."""
    if not text.startswith("{"):
        return {}
    try:
        value = parse(text.encode("utf-8", "replace"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _rank(fields: Fields) -> int | None:
    found = [fields[name] for name in _RANKS if name in fields]
    rank = _count(found[0]) if found else None
    return None if rank is None or rank >= MOST_RANKS else rank


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None


def _host(fields: Fields) -> str:
    said = next((value for name in _HOSTS if isinstance(value := fields.get(name), str)), "")
    return printable(said[:253])


def _has_time(fields: Fields) -> bool:
    if _stamp(fields) is not None:
        return True
    return any(isinstance(value := fields.get(name), str) and dated(value) is not None for name in _CLOCKS)


def _stamp(fields: Fields) -> int | None:
    """The time of a row that gives it in Unix seconds; ``time`` may as well be how long something took."""
    times = [from_seconds(fields.get(name)) for name in _CLOCKS]
    return next((time for time in times if time is not None), None)


def _one(found: list[T]) -> T | None:
    """What all rows say."""
    return found[0] if found and all(one == found[0] for one in found) else None
