"""Observations into batches, as a producer on the node would have sent them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from producers.observations import Observation
from producers.times import SECOND
from schemas.codec import encode, kind_of
from schemas.events import Batch, Event
from schemas.identity import Identity

PRODUCER = "recorded"

MOST_BYTES = 500_000
"""Of one batch, encoded; Kafka takes twice as much by default."""


class Arrival(msgspec.Struct, frozen=True):
    """A batch and the event time (ns) at which it stands in the log."""

    time: int
    batch: Batch[Event]


def batch(observations: Iterable[Observation]) -> list[Arrival]:
    """One batch for each worker, kind and second of arrival, in canonical order (time, key, kind), numbered so.

    What would be more than ``MOST_BYTES`` in one batch comes in several. The boot names the content: two recordings
    never share their numbers, the same one always does.
    """
    groups: dict[tuple[bytes, str, int], list[Observation]] = defaultdict(list)
    names: dict[tuple[object, ...], bytes] = {}
    for observation in observations:
        name = _name(observation.identity, names)
        groups[name, kind_of(observation.event), observation.arrival // SECOND].append(observation)
    ordered = sorted(
        ((max(o.arrival for o in found), found[0].identity.key, kind, name), found)
        for (name, kind, _), found in groups.items()
    )
    whole = [(place[0], _in_order(found)) for place, found in ordered]
    boot = _boot(whole)
    parts = [(time, part) for time, found in whole for part in _parts(boot, found)]
    return [Arrival(time, _batch(boot, seq, part)) for seq, (time, part) in enumerate(parts)]


def _boot(whole: list[tuple[int, list[Observation]]]) -> str:
    """A name of all that is said and when: batches of another recording must never be taken for these."""
    digest = hashlib.blake2b(digest_size=8)
    for time, found in whole:
        body = encode(_batch("", 0, found))
        digest.update(f"{time}:{len(body)};".encode())
        digest.update(body)
    return digest.hexdigest()


def _in_order(found: list[Observation]) -> list[Observation]:
    return sorted(found, key=lambda o: (o.arrival, o.file, o.place))


def _parts(boot: str, found: list[Observation]) -> list[list[Observation]]:
    if len(found) == 1 or len(encode(_batch(boot, 0, found))) <= MOST_BYTES:
        return [found]
    middle = len(found) // 2
    return _parts(boot, found[:middle]) + _parts(boot, found[middle:])


def _name(identity: Identity, names: dict[tuple[object, ...], bytes]) -> bytes:
    """The identity's bytes, which tell identities apart; encoded once for all that look alike."""
    if identity.coordinates:
        return encode(identity)
    fields = (
        identity.job,
        identity.attempt,
        identity.cluster,
        identity.node,
        identity.group,
        identity.rank,
        identity.local_rank,
        identity.process_type,
        identity.role,
        identity.rank_reason,
        identity.device,
    )
    found = names.get(fields)
    if found is None:
        found = names[fields] = encode(identity)
    return found


def _batch(boot: str, seq: int, found: list[Observation]) -> Batch[Event]:
    events = [o.event for o in found]
    return Batch(producer=PRODUCER, boot=boot, seq=seq, identity=found[0].identity, events=events)
