"""The table of runs: what wrote the rows of a run id."""

from __future__ import annotations

from typing import Literal

import msgspec

from sinks.clickhouse import Client
from sinks.writer import Writer


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the pipeline outside production. Times are event times in integer nanoseconds UTC.

    ``inputs`` counts the records read; ``versions`` names what the result depends on, by component.
    """

    run_id: str
    kind: Literal["diagnose", "replay", "demo"]
    job: str = ""
    started: int
    ended: int
    versions: dict[str, str] = {}
    inputs: int = 0


def record_run(client: Client, run: Run) -> None:
    """Store the run; of several records of one run the one with the latest end counts. Raises SinkError."""
    values = msgspec.structs.asdict(run)
    Writer(client).insert("runs", list(values), [list(values.values())])
