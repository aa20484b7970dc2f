"""Observations into batches, as a producer on the node would have sent them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from producers.observations import Observation
from producers.times import SECOND
from schemas.codec import encode, kind_of
from schemas.events import Batch, Event
from schemas.identity import Identity

PRODUCER = "recorded"


class Arrival(msgspec.Struct, frozen=True):
    """A batch and the event time (ns) at which it stands in the log."""

    time: int
    batch: Batch[Event]


def batch(observations: Iterable[Observation]) -> list[Arrival]:
    """One batch for each worker, kind and second of arrival, in canonical order (time, key, kind), numbered so."""
    groups: dict[tuple[bytes, str, int], list[Observation]] = defaultdict(list)
    names: dict[tuple[object, ...], bytes] = {}
    for observation in observations:
        name = _name(observation.identity, names)
        groups[name, kind_of(observation.event), observation.arrival // SECOND].append(observation)
    ordered = sorted(
        (max(o.arrival for o in found), found[0].identity.key, kind, name, found)
        for (name, kind, _), found in groups.items()
    )
    return [Arrival(time, _batch(seq, found)) for seq, (time, _, _, _, found) in enumerate(ordered)]


def _name(identity: Identity, names: dict[tuple[object, ...], bytes]) -> bytes:
    """The identity's bytes, which tell identities apart; encoded once for all that look alike."""
    if identity.coordinates:
        return encode(identity)
    fields = (
        identity.job,
        identity.attempt,
        identity.node,
        identity.rank,
        identity.local_rank,
        identity.process_type,
        identity.role,
        identity.rank_reason,
    )
    found = names.get(fields)
    if found is None:
        found = names[fields] = encode(identity)
    return found


def _batch(seq: int, found: list[Observation]) -> Batch[Event]:
    events = [o.event for o in sorted(found, key=lambda o: (o.arrival, o.file, o.place))]
    return Batch(producer=PRODUCER, boot="0", seq=seq, identity=found[0].identity, events=events)
