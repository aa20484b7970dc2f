"""State as JSON: written with sorted keys, so that equal states are equal bytes."""

from __future__ import annotations

import msgspec

_SORTED = msgspec.json.Encoder(order="deterministic")


def written(state: msgspec.Struct) -> msgspec.Raw:
    """The state's JSON; integer keys become strings, which reading turns back, and nested JSON is taken in."""
    return msgspec.Raw(_SORTED.encode(msgspec.json.decode(msgspec.json.encode(state))))
