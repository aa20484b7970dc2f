"""State as JSON: written with sorted keys, so that equal states are equal bytes."""

from __future__ import annotations

import msgspec

_SORTED = msgspec.json.Encoder(order="deterministic")


def written(state: msgspec.Struct) -> msgspec.Raw:
    """The state's JSON; integer keys become strings, which reading turns back.

    JSON that it holds is taken in as it is: it was written here too, so its keys are sorted.
    """
    return msgspec.Raw(_SORTED.encode(msgspec.to_builtins(state, str_keys=True, builtin_types=(msgspec.Raw,))))
