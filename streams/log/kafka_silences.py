"""Silences in the compacted topic: the latest version under each id."""

from __future__ import annotations

from schemas.codec import encode, headers
from schemas.silences import Silence
from streams.log.kafka import KafkaLog
from streams.silencing import TOPIC, checked, kept, silence_of

READ = 500


def stored_silences(log: KafkaLog) -> list[Silence]:
    """The latest version of each, by id; what cannot be used is left out. Raises LogError."""
    found: list[Silence] = []
    since, until = log.begin(TOPIC, 0), log.end(TOPIC, 0)
    while since < until:
        entries = log.read(TOPIC, 0, since, min(READ, until - since))
        if not entries:
            break
        found = kept([*found, *(one for one in map(silence_of, entries) if isinstance(one, Silence))])
        since = entries[-1].offset + 1
    return found


def store_silence(log: KafkaLog, silence: Silence) -> None:
    """Append a version. Raises SilenceError for one that cannot be used, and LogError."""
    log.append(TOPIC, silence.id.encode(), encode(checked(silence)), headers("silence"), 0)
    log.flush()
