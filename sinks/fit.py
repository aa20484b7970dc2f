"""Whether values fit their ClickHouse types, asked before an insert so that one bad record cannot stop a batch.

Decoded records hold valid text and finite numbers, but integers of any size; nothing else can fail.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from itertools import chain
from typing import Any

_CODES = {"Int32": "i", "UInt32": "I", "Int64": "q", "UInt64": "Q", "DateTime64(9, 'UTC')": "q"}
_WRAPPED = re.compile(r"(LowCardinality|Nullable|Array|Map|SimpleAggregateFunction)\((.*)\)")


def misfit(values: Iterable[Any], type_name: str) -> str | None:
    """Why some value does not fit the type, or null.

    >>> misfit([1, None, 2**40], "Nullable(Int32)")
    'a value is out of the range of Int32'
    """
    while wrapped := _WRAPPED.fullmatch(type_name):
        outer, type_name = wrapped.groups()
        if outer == "Nullable":
            values = [value for value in values if value is not None]
        elif outer == "Array":
            values = list(chain.from_iterable(values))
        elif outer == "Map":
            values = list(chain.from_iterable(value.values() for value in values))
        if outer in ("Map", "SimpleAggregateFunction"):
            type_name = type_name.partition(", ")[2]
    code = _CODES.get(type_name)
    if code is None:
        return None
    try:
        array(code, values)
    except (OverflowError, TypeError):
        return f"a value is out of the range of {type_name}"
    return None
