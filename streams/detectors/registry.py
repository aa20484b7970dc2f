"""What a detector is, and the register in which each puts itself.

A detector is one class in one file: a frozen config, a state that can be written down, one ``observe``.
It knows no clock and no transport: closed windows in, findings out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from schemas.ids import stable_id
from schemas.results import Anomaly, Drift, Series, Suspect
from streams.attempt_window import AttemptWindow
from streams.state import written
from streams.view import AttemptView

C = TypeVar("C", bound=msgspec.Struct)
S = TypeVar("S", bound=msgspec.Struct)
D = TypeVar("D", bound="type[Detector[Any, Any]]")

Stage = Literal["rank", "job"]
MOST_DETAILED = 64
"""Suspects of one finding of whom all is told; who else there is stands there with place, score and kind."""


class Detector(Generic[C, S]):
    """Base of all detectors. ``state`` is all that one carries from window to window; it must stay bounded.

    Findings of a ``supporting`` detector are evidence beside others' findings: they are information, name nobody, open
    no incident, keep none open and decide nothing, whatever their symptom. ``grounds`` are all that findings of any
    other detector of the job stage may give; what blame makes of them stands in ``streams/incidents/grounds.py``.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    supporting: ClassVar[bool] = False
    stage: ClassVar[Stage]
    grounds: ClassVar[frozenset[str]] = frozenset()
    config_type: type[C]
    state_type: type[S]

    def __init__(self, config: C | None = None) -> None:
        self.config: C = config if config is not None else self.config_type()
        self.state: S = self.state_type()

    def snapshot(self) -> msgspec.Raw:
        """The state as JSON."""
        return written(self.state)

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a state that ``snapshot`` wrote."""
        self.state = msgspec.json.decode(raw, type=self.state_type)

    @property
    def config_hash(self) -> str:
        """Names the configuration in the ids of results."""
        return stable_id(self.name, self.version, msgspec.json.encode(self.config, order="deterministic").decode())


class SeriesDetector(Detector[C, S]):
    """Watches one worker's own series in the rank stage."""

    stage = "rank"

    def observe(self, series: list[Series]) -> list[Drift]:
        """Take one window's series in; returns shifts that are certain by now."""
        raise NotImplementedError


class JobDetector(Detector[C, S]):
    """Contrasts the workers of one attempt in the job stage."""

    stage = "job"

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """Take one closed window in; ``view`` already knows it. Returns this window's findings."""
        raise NotImplementedError

    def anomaly(self, window: AttemptWindow, subject: str, **fields: Any) -> Anomaly:
        """A finding with its deterministic id; ``subject`` tells findings of one window apart."""
        identity = (self.name, self.version, self.config_hash, window.job, window.attempt, window.start, subject)
        return Anomaly(
            id=stable_id("anomaly", *identity),
            detector=self.name,
            version=self.version,
            config=self.config_hash,
            job=window.job,
            attempt=window.attempt,
            start=window.start,
            end=window.end,
            **fields | {"suspects": briefly(fields.get("suspects", []))},
        )


def briefly(suspects: list[Suspect]) -> list[Suspect]:
    """The suspects, of many the later ones without what people do not read of thousands: nobody is left out.

    What blame goes by stays: rank, node, device, score, kind and switch; whom it then names is described anew.
    """
    if len(suspects) <= MOST_DETAILED:
        return suspects
    later = [msgspec.structs.replace(one, why="", role="", coordinates={}) for one in suspects[MOST_DETAILED:]]
    return [*suspects[:MOST_DETAILED], *later]


_REGISTER: dict[str, type[Detector[Any, Any]]] = {}


def register(detector: D) -> D:
    """Class decorator: make a detector known by its name."""
    if detector.name in _REGISTER:
        raise ValueError(f"two detectors are called {detector.name}")
    _REGISTER[detector.name] = detector
    return detector


def registered(stage: Stage) -> list[type[Detector[Any, Any]]]:
    """The detectors of a stage, by name."""
    return [_REGISTER[name] for name in sorted(_REGISTER) if _REGISTER[name].stage == stage]


def is_supporting(name: str) -> bool:
    """Whether findings of the detector of this name only support."""
    return name in _REGISTER and _REGISTER[name].supporting


def build(stage: Stage, settings: Mapping[str, Mapping[str, Any]]) -> list[Detector[Any, Any]]:
    """New detectors of a stage with their settings by name.

    Raises ValueError for settings of an unknown detector, an unknown parameter or a value out of bounds.
    """
    unknown = sorted(set(settings) - set(_REGISTER))
    if unknown:
        raise ValueError(f"no detector is called {', '.join(unknown)}")
    built = []
    for detector in registered(stage):
        given = dict(settings.get(detector.name, {}))
        strange = sorted(given.keys() - set(detector.config_type.__struct_fields__))
        if strange:
            raise ValueError(f"{detector.name} has no parameter {', '.join(strange)}")
        built.append(detector(msgspec.convert(given, detector.config_type)))
    return built
