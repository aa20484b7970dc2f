"""Who an event belongs to, and the key under which it travels."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

NO_JOB = "-"
"""The job of what belongs to none: a node that is idle."""

MOST_RANKS = 1 << 17
"""More than any job has: nobody runs so many, and every set of ranks would be as large."""

Coordinate = int | list[int]
"""A parallel coordinate; a list where one rank holds several (interleaved pipeline stages)."""


class Identity(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The worker or node that events come from.

    ``rank`` is the global rank; null with ``rank_reason`` where it is not known.
    ``group`` is set where ranks restart per worker group (RL).
    """

    job: str
    attempt: str = "0"
    cluster: str = ""
    node: str = ""
    rank: int | None = None
    rank_reason: str = ""
    local_rank: int | None = None
    process_type: str = "trainer"
    role: str = ""
    group: str = ""
    coordinates: dict[str, Coordinate] = {}
    device: str | None = None

    @property
    def worker(self) -> str:
        """``5``, ``actor/5`` or ``node:node02``; the part of the key behind the job."""
        if self.rank is None:
            return f"node:{self.node}"
        return f"{self.group}/{self.rank}" if self.group else str(self.rank)

    @property
    def key(self) -> str:
        """The Kafka key, ``job|worker``."""
        return f"{self.job}|{self.worker}"


def is_node(worker: str) -> bool:
    """Whether a worker key stands for a node; node keys are never counted as ranks."""
    return worker.startswith("node:")


def rank_ranges(ranks: Iterable[int]) -> str:
    """Ranks as people write them: ``0-4,6-7``; empty for none."""
    return written_runs(rank_runs(ranks))


def rank_runs(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """Ranks as first and last of each run without a gap, in order."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], rank
        else:
            runs.append((rank, rank))
    return runs


def written_runs(runs: Iterable[tuple[int, int]], separator: str = ",") -> str:
    """The runs of ``rank_runs`` as people write them: ``0-4,6-7``."""
    return separator.join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def ranks_of(ranges: str, most: int) -> list[int]:
    """The ranks of ``rank_ranges``, in order. Raises ValueError for anything else, and for more ranks than ``most``."""
    found: list[int] = []
    for part in ranges.split(",") if ranges else ():
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        if not 0 <= end - begin < most - len(found):
            raise ValueError(f"no ranges of at most {most} ranks")
        found.extend(range(begin, end + 1))
    return found


def said_ranks(ranks: Iterable[int]) -> str:
    """Ranks in a sentence: ``rank 5``, ``ranks 0-4,6``, ``no rank``."""
    listed = sorted(set(ranks))
    if not listed:
        return "no rank"
    return f"rank{'s' if len(listed) > 1 else ''} {rank_ranges(listed)}"


def shortened(text: str, most: int) -> str:
    """The text, cut at ``most`` characters with an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
