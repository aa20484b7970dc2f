"""The words in one worker's window by which a job, a launcher or a rank is told to end, and what went before them."""

from __future__ import annotations

import msgspec

from schemas.events import Log
from schemas.identity import Identity, shortened
from schemas.results import Stop
from streams.lines.stops import stop_of

FOLLOWS_NS = 600_000_000_000
"""What a scheduler ends so long after a task or a node has failed, it ends for that; and tasks end with that."""
LONGEST = 200


class StopWordsState(msgspec.Struct, kw_only=True):
    """When a task was last said to have ended by itself, a node to have failed, a job or a step to be ended (ns)."""

    task: int | None = None
    node: int | None = None
    ended: int | None = None


class StopWords:
    """Takes lines in order of time; ``found`` has the first of each word, ``launcher`` whether one printed anything."""

    def __init__(self, state: StopWordsState) -> None:
        self._state = state
        self._found: dict[str, Stop] = {}
        self.launcher = False

    def heard(self, identity: Identity, event: Log) -> None:
        """Note who prints a line of no rank."""
        self.launcher = self.launcher or (event.process_type or identity.process_type) == "launcher"

    def take(self, event: Log, *, trains: bool) -> None:
        """Take in a line that may be such a word, of a worker that ``trains`` or of whoever runs workers."""
        word, time = stop_of(event.text, trains=trains), event.time
        if not word or self._follows(word, time):
            return
        if word == "task":
            self._state.task = time
        elif word == "node":
            self._state.node = time
        elif word in ("job", "step"):
            self._state.ended = time
        said = shortened(event.text, LONGEST)
        self._found.setdefault(word, Stop(time=time, precision_ns=event.precision_ns, word=word, said=said))

    def _follows(self, word: str, time: int) -> bool:
        """Whether it came of what this writer said before: an end of a failure, or the end of a task of the job's."""
        before = {
            "job": (self._state.node,),
            "step": (self._state.node, self._state.task),
            "task": (self._state.ended,),
        }
        return any(one is not None and time <= one + FOLLOWS_NS for one in before.get(word, ()))

    @property
    def found(self) -> list[Stop]:
        """The words, in order of time."""
        return sorted(self._found.values(), key=lambda stop: (stop.time, stop.word))

    @property
    def stopped(self) -> int | None:
        """When the job or its launcher was first said to be ended."""
        return min((one.time for one in self._found.values() if one.word in ("job", "agent")), default=None)
