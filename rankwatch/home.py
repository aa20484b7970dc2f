"""Where Rankwatch keeps its own database by default."""

from __future__ import annotations

import os
from pathlib import Path

NO_DATABASE = "none"


def default_dsn() -> str:
    """``RANKWATCH_CLICKHOUSE``, else the embedded engine below ``XDG_DATA_HOME`` (or ``~/.local/share``)."""
    given = os.environ.get("RANKWATCH_CLICKHOUSE")
    if given:
        return given
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"chdb://{Path(base).absolute() / 'rankwatch' / 'clickhouse'}"


def prepare(dsn: str) -> None:
    """Make the folder that an embedded database will lie in."""
    place = dsn.removeprefix("chdb://")
    if dsn.startswith("chdb:///"):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
