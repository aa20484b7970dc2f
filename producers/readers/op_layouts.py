"""The parallel layout of a job whose operations were timed, as a small YAML beside the table has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from producers.readers.op_tables import LONGEST_NAME, Timings, first_line
from producers.rows import printable
from producers.scan import Source
from schemas.identity import MOST_RANKS

MOST_BYTES = 16_384
_SIZES = {"tp_size": "tp", "dp_size": "dp", "pp_size": "pp", "dsp_size": "dsp", "vpp_size": "vpp"}
_LAYOUT = re.compile(rb"^(?:pp|dp)_size:", re.MULTILINE)
_REFERENCES = re.compile(rb"[&*]\S|<<")


class Layout(msgspec.Struct, frozen=True):
    """What a YAML says: whose the layout is, and the sizes by axis."""

    file: str
    trial: str
    sizes: dict[str, int]


def is_layout(source: Source) -> bool:
    """Whether a file is a small YAML that gives sizes of a parallel layout. Raises OSError."""
    if not source.file.lower().endswith((".yaml", ".yml")) or source.size > MOST_BYTES:
        return False
    return _LAYOUT.search(source.path.read_bytes()) is not None


def read_layout(source: Source) -> Layout:
    """The layout that a YAML holds. Raises OSError, and ValueError with the reason."""
    raw = source.path.read_bytes()
    if _REFERENCES.search(raw):
        # A small text with references may stand for a huge value.
        raise ValueError("a layout with references between its parts, which are not followed")
    try:
        value = yaml.safe_load(raw)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"not a YAML that can be read: {first_line(error)}") from None
    known = value if isinstance(value, dict) else {}
    sizes = {axis: known[name] for name, axis in _SIZES.items() if _is_size(known.get(name))}
    if not sizes:
        raise ValueError("a layout whose sizes are no numbers of ranks")
    trial = known.get("trial_name")
    return Layout(source.file, printable(str(trial)[:LONGEST_NAME]) if isinstance(trial, str | int) else "", sizes)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_RANKS


def layout_of(found: Timings, layouts: Sequence[Layout], tables: int) -> Layout | None:
    """The layout whose trial the file is named after, or the only one beside the only table; null if none fits it."""
    words = set(re.split(r"[^A-Za-z0-9]+", found.file.rpartition("/")[2]))
    named = [one for one in layouts if one.trial and set(re.split(r"[^A-Za-z0-9]+", one.trial)) <= words]
    fitting = named or (list(layouts) if tables == 1 else [])
    fitting = [one for one in fitting if _fits(found, one)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(found: Timings, layout: Layout) -> bool:
    """Whether all replicas and stages of the table are within the sizes."""
    largest = {axis: int(found.columns[name].max(initial=-1)) for axis, name in (("dp", "dp_rank"), ("pp", "stage"))}
    return all(layout.sizes.get(axis, MOST_RANKS) > most for axis, most in largest.items())
