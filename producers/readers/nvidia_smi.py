"""Tables of ``nvidia-smi --query-gpu=… --format=csv``: columns by their header, units there or in the cells.

Source: nvidia-smi --help-query-gpu. Its times are local and name no zone; they are taken for UTC, as those of logs.
Without a header nothing tells what the columns are. Whether cells say that a GPU is lost is a sample of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from producers.inputs import Unused
from producers.lines import read_lines
from producers.measured import Measured, Sample
from producers.scan import Source
from producers.times import dated, possible
from schemas.identity import shortened
from schemas.measures import LOST, measure_of

_SEPARATOR = re.compile(r"\s{0,8},\s{0,8}")
_HEAD = re.compile(r"(?P<name>[a-z][\w.]{0,100})(?: \[(?P<unit>[^\]]{1,16})\])?")
_CELL = re.compile(r"(?P<value>[+-]?\d{1,30}(?:\.\d{1,30})?)(?: (?P<unit>[A-Za-z%/]{1,8}))?")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
_PSTATE = re.compile(r"P(\d{1,2})")
_PLACES = ("pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "index")
_TEXTS = frozenset(
    {
        *_PLACES,
        *("timestamp", "name", "gpu_name", "serial", "gpu_serial", "count", "driver_version", "vbios_version"),
        *(
            "pci.bus",
            "pci.device",
            "pci.device_id",
            "pci.domain",
            "pci.sub_device_id",
            "compute_mode",
            "mig.mode.current",
        ),
        *("persistence_mode", "display_mode", "display_active", "accounting.mode", "ecc.mode.current"),
    }
)
"""Columns that measure nothing."""
_ALIASES = {
    "clocks.current.sm": "clocks.sm",
    "clocks.current.graphics": "clocks.gr",
    "clocks.current.memory": "clocks.mem",
    "clocks.graphics": "clocks.gr",
    "clocks.memory": "clocks.mem",
    "power.draw.instant": "power.draw",
}
_WORDS = {"Active": 1.0, "Not Active": 0.0, "Yes": 1.0, "No": 0.0, "Enabled": 1.0, "Disabled": 0.0}
_MISSING = re.compile(
    r"\[?(?:N/A|Not Supported|Unknown Error|GPU requires reset|GPU is lost|Not Found|No Permission)\]?"
)
_LOST = re.compile(r"\[?GPU (?:requires reset|is lost)\]?")
_UNKNOWN = re.compile(r"\[?Unknown Error\]?")
MOST_COLUMNS = 300
MOST_GPUS = 1024


class _Column(msgspec.Struct, frozen=True):
    name: str
    unit: str


def _columns(text: str) -> list[_Column] | None:
    """The columns of a header, null where the line is none."""
    names = _SEPARATOR.split(text.strip())[:MOST_COLUMNS]
    heads = [_HEAD.fullmatch(name) for name in names]
    found = [_Column(_ALIASES.get(head["name"], head["name"]), head["unit"] or "") for head in heads if head]
    if len(found) != len(names) or len(found) < 2:
        return None
    measured = sum(measure_of(one.name) is not None for one in found)
    known = sum(one.name in _TEXTS for one in found)
    return found if measured and measured + known >= 2 else None


def recognised(texts: Sequence[str]) -> bool:
    """Whether the first line is a header of such a table."""
    first = next((text for text in texts if text.strip()), "")
    return _columns(first) is not None


def read(source: Source) -> Measured:
    """The samples of a file, which may hold several tables one after another. Raises OSError."""
    table = _Table(source.file)
    for line in read_lines(source.path):
        table.take(line.number, line.text.strip())
    return table.done()


class _Table:
    """A file being read."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._columns: list[_Column] = []
        self._samples: list[Sample] = []
        self._numbered: dict[str, str] = {}
        self._left_out: dict[str, tuple[int, int]] = {}
        self._unread: set[str] = set()

    def take(self, number: int, text: str) -> None:
        columns = _columns(text)
        if columns is not None:
            self._columns = columns
            return
        cells = _SEPARATOR.split(text)
        if len(cells) != len(self._columns):
            self._leave_out("not a row of the table above it", number)
            return
        told = dict(zip((one.name for one in self._columns), cells, strict=True))
        moment = dated(told.get("timestamp", ""))
        time = moment.time if moment and possible(moment.time) else None
        if "timestamp" in told and time is None:
            self._leave_out("not a time between 2000 and 2100", number)
            return
        device = self._device(told)
        measured = [pair for pair in zip(self._columns, cells, strict=True) if pair[0].name not in _TEXTS]
        lost = self._is_lost(device, cells, [cell for _, cell in measured])
        if lost is not None:
            self._samples.append(Sample(number, time, "", device, LOST, float(lost)))
        for column, cell in measured:
            found = _value(column, cell)
            if found is None:
                missing = _MISSING.fullmatch(cell)
                self._leave_out(f"cells that say {missing.group()}" if missing else "cells that hold no value", number)
                continue
            self._samples.append(Sample(number, time, "", device, column.name, found[0], found[1]))

    def _is_lost(self, device: str, cells: Sequence[str], measured: Sequence[str]) -> bool | None:
        """Whether a row says that its GPU is lost; null where that is not known yet.

        A GPU that is gone may say so in no cell: nothing of it is read but unknown errors. A driver that is busy may
        fail so once, therefore it has to twice in a row.
        """
        unread = any(map(_UNKNOWN.fullmatch, measured)) and all(map(_MISSING.fullmatch, measured))
        again = unread and device in self._unread
        if not unread:
            self._unread.discard(device)
        elif len(self._unread) < MOST_GPUS:
            self._unread.add(device)
        if again or any(map(_LOST.fullmatch, cells)):
            return True
        return None if unread else False

    def _device(self, told: dict[str, str]) -> str:
        """The GPU of a row: its PCI id, its UUID, or its number as the driver's device.

        One that is lost may not tell its id either; it is that of the rows before with its number.
        """
        index = "" if _MISSING.fullmatch(told.get("index", "")) else told.get("index", "")
        places = [told[name] for name in _PLACES if name in told and name != "index"]
        if places and places[0] and not _MISSING.fullmatch(places[0]):
            if index and (index in self._numbered or len(self._numbered) < MOST_GPUS):
                self._numbered[index] = places[0]
            return places[0]
        if index in self._numbered:
            return self._numbered[index]
        known = next((cell for cell in places if cell and not _MISSING.fullmatch(cell)), "")
        return known or (f"nvidia{shortened(index, 8)}" if index else "")

    def _leave_out(self, reason: str, line: int) -> None:
        first, count = self._left_out.get(reason, (line, 0))
        self._left_out[reason] = first, count + 1

    def done(self) -> Measured:
        """All samples."""
        unused = [Unused(self._file, line, why, count) for why, (line, count) in self._left_out.items()]
        return Measured(self._file, self._samples, unused, zoneless=True)


def _value(column: _Column, cell: str) -> tuple[float, str] | None:
    """Value and unit of a cell; the cell's own unit counts before that of the header."""
    if cell in _WORDS:
        return _WORDS[cell], ""
    if _HEX.fullmatch(cell):
        return float(int(cell, 16)), ""
    if found := _PSTATE.fullmatch(cell):
        return float(found.group(1)), ""
    found = _CELL.fullmatch(cell)
    return (float(found["value"]), found["unit"] or column.unit) if found else None
