"""What a worker's or a node's samples tell of its hardware: counters as rates, and changes that mean something.

A level is no event: a counter that was 7 all the time, or a port that never was up, says nothing. Every sample is held
against the one before of the same metric and device, so two exporters of one device are two series.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from schemas.events import Metric
from schemas.measures import Measure, measure_of
from schemas.results import HardwareChange
from streams.counters import Counted, counted, rate
from streams.lines.devices import pci_of

T = TypeVar("T")

MOST_SERIES = 8_192
"""Metrics by device that are followed; a node of eight GPUs and sixteen ports has a thousand."""
MOST_CODED = 512
"""Devices whose codes are remembered."""
UNSEEN_NS = 600_000_000_000
"""What was not sampled for so long is forgotten where there is no room; what invents names takes it from nobody."""
MOST_CHANGES = 64
"""Of one window."""
_MOST_CODES = 16
_CODES_BELOW = 1e6
_FORGOTTEN_NS = 120_000_000_000
"""A code that was not seen for so long is a new one: an exporter that lags shows the old value now and then."""

PORT_UP: dict[str, tuple[float, ...]] = {"port_state": (4, 5), "port_physical_state": (5,)}
"""In which states a port works, by kind: ACTIVE, or ACTIVE_DEFER, which is in passing; LinkUp.

0 is no state of a port, but how one asks for no change of it: what shows it has failed to read.
"""
_FALLS = frozenset({"port_rate", "pcie_width"})
_RISES = frozenset(
    {
        "gpu_lost",
        "row_remap_failure",
        "throttle_hw_slowdown",
        "throttle_hw_thermal",
        "throttle_power_brake",
        "throttle_sw_thermal",
    }
)
_SLOWED = {0x8: "hardware slowdown", 0x20: "thermal (software)", 0x40: "thermal (hardware)", 0x80: "power brake"}
"""Bits of the reasons for lower clocks that are no ordinary ones, by NVML; a cap on power is ordinary."""


class Shown(msgspec.Struct):
    """What a metric showed last, and the most it has shown since it began."""

    last: Counted
    peak: float


class WatchState(msgspec.Struct, kw_only=True):
    """What is remembered of a worker's metrics, by name, device and process; ``codes`` when each Xid was last seen."""

    shown: dict[str, Shown] = {}
    codes: dict[str, dict[int, int]] = {}


class HardwareWatch:
    """Takes the samples of one window in order of time; ``state`` moves on."""

    def __init__(self, state: WatchState) -> None:
        self._state = state
        self._found: dict[tuple[str, str, int], HardwareChange] = {}
        self._made_room: set[int] = set()
        self.left_out = 0

    def take(self, sample: Metric) -> Metric | None:
        """The sample as it is to be summed up: a counter as what it gains in a second, null where that is not known."""
        measure = measure_of(sample.name)
        counts = sample.counter or (measure is not None and measure.counter)
        if measure is None and not counts:
            return sample
        measure = measure or _UNKNOWN
        if not counts and (not measure.kind or (measure.kind in PORT_UP and not sample.value)):
            return sample
        before = self._before(sample)
        if sample.time_source == "inferred":
            # Nobody knows whether it came before or after the others.
            return None if counts else sample
        self._remember(sample, before)
        if before is not None and before.last.unit == sample.unit and measure.kind:
            self._judge(sample, measure.kind, before, counts=counts)
        elif measure.kind == "xid":
            self._see(sample)
        if not counts:
            return sample
        gain = None if before is None or _returns(before, sample) else rate(before.last, counted(sample), measure)
        return None if gain is None else msgspec.structs.replace(sample, value=gain, unit=f"{sample.unit}/s")

    def shown_last(self, sample: Metric) -> float | None:
        """What the metric of a sample showed last, null where that is not known."""
        before = self._before(sample)
        return None if before is None else before.last.value

    @property
    def changes(self) -> list[HardwareChange]:
        """The changes of the window, in order of time."""
        return sorted(self._found.values(), key=lambda one: (one.time, one.kind, one.device, one.after))

    def _key(self, sample: Metric) -> str:
        return f"{sample.name}|{sample.device or ''}|{'' if sample.pid is None else sample.pid}"

    def _before(self, sample: Metric) -> Shown | None:
        return self._state.shown.get(self._key(sample))

    def _remember(self, sample: Metric, before: Shown | None) -> None:
        now, value = counted(sample), sample.value or 0.0
        if before is None:
            shown = self._state.shown
            self._make_room(shown, MOST_SERIES, lambda one: now.time - one.last.time > UNSEEN_NS)
            if len(shown) >= MOST_SERIES:
                self.left_out += 1
                return
            shown[self._key(sample)] = Shown(now, value)
        elif now.time >= before.last.time:
            fell_back = before.last.value < before.peak and before.last.value < value < before.peak
            peak = value if fell_back or now.unit != before.last.unit else max(before.peak, value)
            self._state.shown[self._key(sample)] = Shown(now, peak)

    def _judge(self, sample: Metric, kind: str, before: Shown, *, counts: bool) -> None:
        # What no reboot repairs is not new when it is told again.
        was, value = before.peak if kind == "row_remap_failure" else before.last.value, sample.value or 0.0
        if sample.time <= before.last.time:
            return
        if kind == "xid":
            if self._see(sample) and value != was:
                self._note(sample, kind, before.last, was, code=int(value))
        elif kind == "throttle_reasons":
            if _slowed(value) & ~_slowed(was):
                self._note(sample, kind, before.last, was)
        elif counts:
            # After a fall: up to where it was is another exporter's word, anything between is new since a reset.
            beyond = value > before.peak
            if beyond or was < value < before.peak:
                self._note(sample, kind, before.last, before.peak if beyond else was, counts=True)
        elif (kind in PORT_UP and value != was) or (kind in _FALLS and value < was) or (kind in _RISES and value > was):
            self._note(sample, kind, before.last, was)

    def _see(self, sample: Metric) -> bool:
        """Whether the code was not seen of late on this device."""
        value, device = sample.value or 0.0, _device(sample)
        code = int(value) if 0 <= value < _CODES_BELOW else 0
        if not code:
            return False
        known = self._state.codes
        if device not in known:
            since = sample.time - _FORGOTTEN_NS
            self._make_room(known, MOST_CODED, lambda codes: max(codes.values(), default=0) < since)
            if len(known) >= MOST_CODED:
                self.left_out += 1
                return True
        codes = known.setdefault(device, {})
        latest = codes.get(code)
        codes[code] = sample.time
        if len(codes) > _MOST_CODES:
            del codes[min(codes, key=lambda one: (codes[one], one))]
        return latest is None or sample.time - latest > _FORGOTTEN_NS

    def _make_room(self, kept: dict[str, T], most: int, is_old: Callable[[T], bool]) -> None:
        """Forget what is old where there is no room; once a window, so that nobody makes it cost."""
        if len(kept) >= most and most not in self._made_room:
            self._made_room.add(most)
            for key in [key for key, one in kept.items() if is_old(one)]:
                del kept[key]

    def _note(
        self, sample: Metric, kind: str, last: Counted, was: float, *, code: int = 0, counts: bool = False
    ) -> None:
        value = sample.value or 0.0
        # A port that falls and comes back has done both.
        key = (kind, _device(sample), int(falls(kind, was, value)) if kind in PORT_UP else code)
        known = self._found.get(key)
        if known is not None:
            # Of a counter the window tells the first value and the last, of a state what changed first; two metrics of
            # one kind count the same.
            if counts and known.name == sample.name:
                self._found[key] = msgspec.structs.replace(known, after=value)
            return
        if len(self._found) >= MOST_CHANGES:
            self.left_out += 1
            return
        self._found[key] = HardwareChange(
            time=sample.time,
            kind=kind,
            name=sample.name,
            device=_device(sample),
            before=was,
            after=value,
            unit=sample.unit,
            precision_ns=sample.time - last.time,
        )


_UNKNOWN = Measure()


def _returns(before: Shown, sample: Metric) -> bool:
    """Whether a counter comes back from 0 to where it was: it was not read in between, nobody knows what it gained."""
    return before.last.value == 0 < before.peak <= (sample.value or 0.0)


def falls(kind: str, before: float, after: float) -> bool:
    """Whether a port that worked no longer does, by its state; of any other kind whether the value is lower."""
    if kind in PORT_UP:
        return before in PORT_UP[kind] and after not in PORT_UP[kind]
    return after < before


def slowed_by(value: float) -> list[str]:
    """What lowers the clocks out of the ordinary, in words, by the bits of a sample."""
    found = _slowed(value)
    return [words for bit, words in _SLOWED.items() if found & bit]


def _slowed(value: float) -> int:
    """The bits that are no ordinary ones."""
    return int(value) & sum(_SLOWED) if 0 <= value < 2**53 else 0


def _device(sample: Metric) -> str:
    return pci_of(sample.device or "") or sample.device or ""
