"""Observations into batches, as a producer on the node would have sent them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from producers.observations import Observation
from producers.times import SECOND
from schemas.codec import encode, kind_of, parts_of
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
    whole = [(place[0], _batch(found)) for place, found in ordered]
    boot = _boot(whole)
    parts = [(time, one, part) for time, one in whole for part in parts_of(one, MOST_BYTES)]
    return [
        Arrival(time, msgspec.structs.replace(one, boot=boot, seq=seq, events=part))
        for seq, (time, one, part) in enumerate(parts)
    ]


def _boot(whole: list[tuple[int, Batch[Event]]]) -> str:
    """A name of all that is said and when: batches of another recording must never be taken for these."""
    digest = hashlib.blake2b(digest_size=8)
    for time, one in whole:
        body = encode(one)
        digest.update(f"{time}:{len(body)};".encode())
        digest.update(body)
    return digest.hexdigest()


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


def _batch(found: list[Observation]) -> Batch[Event]:
    """One batch, not numbered yet, its events in the order of their places."""
    ordered = sorted(found, key=lambda o: (o.arrival, o.file, o.place))
    return Batch(producer=PRODUCER, boot="", seq=0, identity=ordered[0].identity, events=[o.event for o in ordered])
