"""State as JSON: written with sorted keys, so that equal states are equal bytes."""

from __future__ import annotations

import msgspec


def written(state: msgspec.Struct) -> msgspec.Raw:
    """The state's JSON; integer keys become strings, which reading turns back."""
    plain = msgspec.to_builtins(state, str_keys=True, order="deterministic")
    return msgspec.Raw(msgspec.json.encode(plain))
