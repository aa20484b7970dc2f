"""Tells the operator when the cluster goes and when it is back, from a thread of its own; the work only waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from streams.ending import say
from streams.log.kafka_probe import KafkaProbe
from streams.log.kafka_settings import KafkaSettings
from streams.outage import Outage

LOOK_S = 5.0
"""How often the cluster is asked; a connection that breaks is asked about at once."""

ANSWER_S = 5.0
"""How long an answer may take before the cluster counts as away."""

AGAIN_S = 0.5
"""How long to rest between questions while it is away: each waits for ``ANSWER_S`` by itself."""


@contextmanager
def outages_told(settings: KafkaSettings) -> Iterator[Outage]:
    """While the context lasts, say on stderr what there is to say; yields what is known."""
    outage, over = Outage(settings.bootstrap), threading.Event()
    threading.Thread(target=_watch, args=(KafkaProbe(settings), outage, over), name="cluster", daemon=True).start()
    try:
        yield outage
    finally:
        over.set()


def _watch(probe: KafkaProbe, outage: Outage, over: threading.Event) -> None:
    while not over.is_set():
        asked = time.time()
        reason = probe.silent(ANSWER_S)
        line = outage.back(time.time()) if reason is None else outage.away(asked, reason)
        if line and not over.is_set():
            say(line)
        probe.rest(AGAIN_S if outage.is_on else LOOK_S)
