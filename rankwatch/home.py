"""Where Rankwatch keeps its own database by default."""

from __future__ import annotations

import os
import time
from pathlib import Path

NO_DATABASE = "none"

DEFAULT_PLACE = "~/.local/share/rankwatch/clickhouse"
"""What ``default_dsn`` comes to where nothing is set, for people to read."""

WAIT_S = 60.0
"""How long a command waits for another one to let go of the database."""

pause = time.sleep  # noqa: TID251 - waiting for the user's own database is the wiring's to allow


def default_dsn() -> str:
    """``RANKWATCH_CLICKHOUSE``, else the embedded engine below ``XDG_DATA_HOME`` (or ``~/.local/share``)."""
    given = os.environ.get("RANKWATCH_CLICKHOUSE")
    if given:
        return given
    # The specification wants a relative path ignored.
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = base if base.is_absolute() else Path.home() / ".local" / "share"
    return f"chdb://{base.absolute() / 'rankwatch' / 'clickhouse'}"


def prepare(dsn: str) -> None:
    """Make the folder that an embedded database will lie in."""
    place = dsn.removeprefix("chdb://")
    if dsn.startswith("chdb:///"):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
