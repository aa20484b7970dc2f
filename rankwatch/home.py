"""Where Rankwatch keeps its own database by default."""

from __future__ import annotations

import os
from pathlib import Path

NO_DATABASE = "none"

DEFAULT_PLACE = "~/.local/share/rankwatch/clickhouse"
"""What ``default_dsn`` comes to where nothing is set, for people to read."""


def default_dsn() -> str:
    """``RANKWATCH_CLICKHOUSE``, else the embedded engine below ``XDG_DATA_HOME`` (or ``~/.local/share``)."""
    given = os.environ.get("RANKWATCH_CLICKHOUSE")
    if given:
        return given
    # The specification wants a relative path ignored.
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    base = base if base.is_absolute() else Path.home() / ".local" / "share"
    return f"chdb://{base.absolute() / 'rankwatch' / 'clickhouse'}"
