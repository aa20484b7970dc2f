"""What libraries log, for the operator: each kind of message once a minute, with how often it came meanwhile.

What they say of lost connections is left out: of an outage the operator is told in our words.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TextIO

EVERY_S = 60.0
MOST_KINDS = 1_000

DOUBT_S = 15.0
"""How long connections may be complained of before it is said although the cluster answers.

Longer than it takes to notice that it does not.
"""

_CLIENTS = ("aiokafka", "faust.transport")
_CONNECTIONS = re.compile(
    "[Cc]onnect|NodeNotReady|NotAvailable|TimedOut|[Cc]oordinator|Heartbeat|Unable to update metadata"
)
_GUESSES = re.compile("has not (?:sent|received|started) (?:fetch|processing)|multiple possible explanations")
"""What Faust says where nothing was fetched for a while; our own watchdog knows whether there was anything to fetch."""


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


class Connections(logging.Filter):
    """Leaves out what clients of Kafka say of connections, unless it goes on while the cluster is not ``away``.

    Then it is news: as where one broker of several is out of reach.
    """

    def __init__(self, away: Callable[[], bool]) -> None:
        super().__init__()
        self._away = away
        self._first = self._last = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to say it."""
        if record.exc_info or not record.name.startswith(_CLIENTS):
            return True
        said = record.getMessage()
        if _GUESSES.search(said):
            return False
        if not _CONNECTIONS.search(said):
            return True
        if self._away():
            self._last = float("-inf")
            return False
        if not 0 <= record.created - self._last < EVERY_S:
            self._first = record.created
        self._last = record.created
        return record.created - self._first >= DOUBT_S


def complain_on(stream: TextIO, away: Callable[[], bool]) -> None:
    """Let errors of libraries be said on ``stream``, in one line each but for tracebacks."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(Connections(away))
    handler.addFilter(Seldom())
    handler.setFormatter(logging.Formatter("rankwatch: %(name)s: %(message)s%(more)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
