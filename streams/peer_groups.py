"""Peer groups as matrices of places, so that what is found within each is found for all groups at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Matrix = NDArray[np.float64]


def group_places(groups: list[list[int]], ranks: list[int], least: int) -> list[Places]:
    """Where the members of each group stand among ``ranks``, which ascend: [group, member], by sizes of groups.

    Members that are not among them are left out, and groups of fewer than ``least``.
    """
    at = {rank: place for place, rank in enumerate(ranks)}
    return by_size([[at[rank] for rank in group if rank in at] for group in groups], least)


def by_size(groups: list[list[int]], least: int) -> list[Places]:
    """The groups of ``least`` places or more as matrices [group, place], one for each size."""
    sizes: dict[int, list[list[int]]] = {}
    for group in groups:
        if len(group) >= least:
            sizes.setdefault(len(group), []).append(group)
    return [np.array(sizes[size]) for size in sorted(sizes)]


def shares_of(marks: NDArray[np.bool_], known: NDArray[np.bool_]) -> Matrix:
    """Which share of those known along the last axis is marked; the axis stays, and nothing is known as 0."""
    found: Matrix = (marks & known).sum(axis=-1, keepdims=True) / np.maximum(known.sum(axis=-1, keepdims=True), 1)
    return found
