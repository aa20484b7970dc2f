"""What is fixed when a deployment's topics are created, and is the same for all who use them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

DEFAULT_PARTITIONS = 8

MOST_PARTITIONS = 1_000
"""In each window every partition reports to every other: a thousand already make a million records."""

Ticks = Literal["workers", "publisher"]


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """``partitions`` of every topic that is keyed; ``ticks`` says who appends them to the raw topics.

    ``workers``: the worker that owns a partition, by its clock. ``publisher``: whoever publishes recordings, in event
    time.
    """

    partitions: Annotated[int, msgspec.Meta(ge=1)]
    ticks: Ticks = "workers"
