"""The database that a command works with, and what is said while another command has it open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sinks.address import safe_dsn
from sinks.clickhouse import Client, open_client
from sinks.errors import OtherBuildError, SinkError
from sinks.lock import Wait
from streams.ending import say

WAIT_S = 5.0
"""How long a command waits for another one to let go of the embedded database; most need less for all they do."""


@contextmanager
def database(dsn: str, command: str, *, read_only: bool = False) -> Iterator[Client]:
    """The database, for as long as the context lasts; others who want it are told the command. Raises SinkError.

    Of one whose tables another build made it is said where it lies and what to do.
    """
    wait = Wait(seconds=WAIT_S, pause=time.sleep, say=say)  # noqa: TID251 - the wiring may wait
    try:
        with open_client(dsn, wait=wait, who=f"rankwatch {command}", read_only=read_only) as client:
            yield client
    except OtherBuildError as error:
        kind, _, path = dsn.partition("://")
        here = f"move the folder {path} away and run this again" if kind == "chdb" else f"it is {safe_dsn(dsn)}"
        raise SinkError(
            f"another build of Rankwatch made this database: {here}, or give another with --clickhouse ({error})"
        ) from None
