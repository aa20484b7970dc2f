"""The command line with a worker that stands still: after its first window ``HANG_IN`` (take or loop) never returns."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import rankwatch.worker
from rankwatch.cli import entry
from streams import app
from streams.live import LiveStages

WHERE = os.environ["HANG_IN"]
_closed: list[int] = []


def hang() -> None:
    print(f"hangs in {WHERE}", flush=True)
    time.sleep(3600)


class Stages(LiveStages):
    def take(self, read: Any) -> Any:
        if _closed and WHERE == "take":
            hang()
        safe = super().take(read)
        if safe:
            _closed.append(1)
        return safe


class Wiring(app.Wiring):
    async def _commit(self, offsets: Any) -> bool:
        done = await super()._commit(offsets)
        if _closed and WHERE == "loop":
            hang()
        return done


assert WHERE in ("take", "loop"), WHERE
setattr(rankwatch.worker, "LiveStages", Stages)  # noqa: B010
setattr(app, "Wiring", Wiring)  # noqa: B010

if __name__ == "__main__":
    sys.argv[0] = "rankwatch"
    entry()
