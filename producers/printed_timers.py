"""Step timers of all ranks that one of them prints, as metrics of those ranks beside the log's own lines.

Megatron prints with ``--timing-log-option all`` behind the line of an iteration ``times across ranks (ms):``, then
``  name:`` and ``     rank  0: 12.3`` for each rank of the world, per iteration. The numbers are global ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from producers.logfile import LogFile
from producers.observations import Observation
from producers.times import Moment
from schemas.events import Metric
from schemas.identity import MOST_RANKS, Identity

_HEAD = re.compile(r"[^\n]{0,200}?\btimes across ranks \(ms\):[ \t]*$")
_NAME = re.compile(r"[ \t]{0,8}([A-Za-z][\w/-]{0,60}):[ \t]*$")
_RANK = re.compile(r"[ \t]{0,16}rank[ \t]{1,8}(\d{1,7}):[ \t]{0,8}(\d{1,12}(?:\.\d{1,12})?)[ \t]*$")

WhoIs = Callable[[int, int], Identity]
"""The identity of a rank at a time (ns)."""


def printed_timers(log: LogFile, moments: Sequence[Moment], who: WhoIs) -> Iterable[Observation]:
    """A metric for every value of a block, at the iteration that was printed last before it; without one nothing."""
    iteration: int | None = None
    inside, name, latest = False, "", 0
    identities: dict[int, Identity] = {}
    for record, moment, told in zip(log.records, moments, log.iterations or [None] * len(moments), strict=True):
        latest = max(latest, moment.time)
        iteration = iteration if told is None else told
        if not inside and "times across ranks (ms):" not in record.text:
            continue
        for line in record.text.split("\n"):
            if _HEAD.match(line):
                inside, name = iteration is not None, ""
            elif inside and (title := _NAME.match(line)):
                name = title.group(1).lower().replace("-", "_") + "_ms"
            elif inside and name and (value := _RANK.match(line)) and int(value.group(1)) < MOST_RANKS:
                rank = int(value.group(1))
                if rank not in identities:
                    identities[rank] = who(rank, moment.time)
                event = Metric(
                    time=moment.time,
                    time_source=moment.source,
                    precision_ns=moment.precision,
                    iteration=iteration,
                    name=name,
                    value=float(value.group(2)),
                    unit="ms",
                )
                yield Observation(identities[rank], latest, event, log.file, record.line)
            else:
                inside = False
