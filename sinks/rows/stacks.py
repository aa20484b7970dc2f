"""Rows of merged stacks: where the ranks stood, a row for each place."""

from __future__ import annotations

from typing import Any

from schemas.identity import MOST_RANKS, rank_ranges, ranks_of
from schemas.results import MergedClass, MergedGroup, MergedStacks
from sinks.rows.common import Block, Columns


def merged_block(stacks: MergedStacks, run_id: str) -> Block:
    """A row for each group; one without ranks for a class of which nobody was observed."""
    columns: Columns = {}
    for at, kind in enumerate(stacks.classes):
        observed = set(_ranks(kind.observed))
        groups = kind.groups or [MergedGroup(ranks="", activity="unobserved", place="")]
        for number, group in enumerate(groups):
            numbers = {"class_number": at, "group_number": number}
            row = {**_same(stacks, run_id), **numbers, **_kind(kind), **_group(group, observed)}
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
    return Block("merged_stacks", columns)


def _same(stacks: MergedStacks, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "job": stacks.job,
        "attempt": stacks.attempt,
        "id": stacks.id,
        "ts": stacks.start,
        "window_end": stacks.end,
        "standstill_since": stacks.since,
        "phase": stacks.phase,
        "iteration": stacks.iteration,
        "more_classes": stacks.rest,
    }


def _kind(kind: MergedClass) -> dict[str, Any]:
    return {
        "process_type": kind.process_type,
        "role": kind.role,
        "thread": kind.thread,
        "observed": kind.observed,
        "unobserved": [one.ranks for one in kind.unobserved],
        "unobserved_reasons": [one.reason for one in kind.unobserved],
        "more_groups": kind.rest,
        "more_ranks": kind.rest_ranks,
        "text": kind.text,
    }


def _group(group: MergedGroup, observed: set[int]) -> dict[str, Any]:
    ranks = _ranks(group.ranks)
    return {
        "ranks": group.ranks,
        "rank_list": ranks,
        "missing": rank_ranges(observed.difference(ranks)),
        "minority": group.minority,
        "activity": group.activity,
        "place": group.place,
        "functions": [frame.function for frame in group.frames],
        "files": [frame.file for frame in group.frames],
        "lines": [frame.line for frame in group.frames],
        "outer_frames": group.outer,
        "since": group.since,
        "samples": group.samples,
    }


def _ranks(ranges: str) -> list[int]:
    """The ranks; of more than any job has only the text is kept, since a row would not fit into memory."""
    try:
        return ranks_of(ranges, MOST_RANKS)
    except ValueError:
        return []
