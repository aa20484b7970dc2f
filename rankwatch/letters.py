"""Tells whoever looks after a worker of dead letters: of the first at once, then once a minute at most."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from streams.ending import say
from streams.live import LiveStages
from streams.runner import Runner

LOOK_S = 1.0
"""How often it looks."""

QUIET_LOOKS = 60
"""How many looks it says nothing after it has spoken."""


class DeadLetters:
    """Counts on for all stages of a worker, whose own counts begin anew with each assignment."""

    def __init__(self, stages: Sequence[LiveStages], topic: str) -> None:
        self._stages = stages
        self._topic = topic
        self._seen: dict[tuple[str, int], tuple[Runner, int]] = {}
        self._untold = 0
        self._quiet = 0

    def look(self) -> str:
        """What is to be said now; mostly nothing."""
        for live in self._stages:
            for number, runner in list(live.runners.items()):
                place, count = (live.stage, number), runner.counts.dead_letters
                known, seen = self._seen.get(place, (runner, 0))
                self._untold += count - seen if known is runner else count
                self._seen[place] = runner, count
        self._quiet = max(self._quiet - 1, 0)
        if not self._untold or self._quiet:
            return ""
        told, self._untold, self._quiet = self._untold, 0, QUIET_LOOKS
        records = "1 record" if told == 1 else f"{told} records"
        return f"{records} could not be used; see topic {self._topic}, or the table dead_letters, for the reason"


def tell_dead_letters(letters: DeadLetters) -> None:
    """Begin to look, from a thread of its own."""
    threading.Thread(target=_watch, args=(letters,), name="dead letters", daemon=True).start()


def _watch(letters: DeadLetters) -> None:
    pause = threading.Event()
    while not pause.wait(LOOK_S):
        said = letters.look()
        if said:
            say(said)
