"""What libraries log, for the operator: each kind of message once a minute, with how often it came meanwhile."""

from __future__ import annotations

import logging
from typing import TextIO

EVERY_S = 60.0
MOST_KINDS = 1_000


class Seldom(logging.Filter):
    """Lets one message of each kind through in ``every_s``; a kind is a logger and a text before anything is filled in.

    A client that has lost its cluster would say the same thing thirty times a second otherwise.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        super().__init__()
        self._every_s = every_s
        self._said: dict[tuple[str, str], float] = {}
        self._left_out: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to say it."""
        kind = (record.name, str(record.msg))
        last = self._said.get(kind)
        if last is not None and 0 <= record.created - last < self._every_s:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        if len(self._said) >= MOST_KINDS:
            self._said.clear()
            self._left_out.clear()
        self._said[kind] = record.created
        left_out = self._left_out.pop(kind, 0)
        record.more = f" (and {left_out} more like this)" if left_out else ""
        return True


def complain_on(stream: TextIO) -> None:
    """Let errors of libraries be said on ``stream``, in one line each but for tracebacks."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(Seldom())
    handler.setFormatter(logging.Formatter("rankwatch: %(name)s: %(message)s%(more)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
