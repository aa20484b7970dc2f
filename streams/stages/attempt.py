"""One attempt in the job stage: its view, its live detectors and its incidents."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, MergedStacks
from streams.attempt_window import AttemptWindow
from streams.config import StreamConfig
from streams.detectors import registry
from streams.folding import folded, unfold
from streams.incidents.book import IncidentBook
from streams.incidents.opened import IncidentBookState
from streams.library.comparing import ComparedState
from streams.merged_stacks import what_it_says
from streams.stages.observing import observed
from streams.stages.outputs import Output
from streams.view import AttemptView


class AttemptState(msgspec.Struct, kw_only=True):
    """What one attempt carries from window to window; ``stacks`` is a hash of what was last said of its stacks.

    ``compared`` is what it has shown beside the jobs of a library.
    """

    view: AttemptView
    detectors: dict[str, msgspec.Raw] = {}
    incidents: IncidentBookState = msgspec.field(default_factory=IncidentBookState)
    compared: ComparedState = msgspec.field(default_factory=ComparedState)
    stacks: str = ""
    idle: int = 0


class Attempt:
    """An attempt's state with its live detectors and incidents."""

    def __init__(self, state: AttemptState, config: StreamConfig) -> None:
        self.state = state
        unfold(state.view)
        built = registry.build("job", config.detectors)
        self.detectors = [one for one in built if isinstance(one, registry.JobDetector)]
        for detector in self.detectors:
            if detector.name in state.detectors:
                detector.restore(state.detectors[detector.name])
        self.incidents = IncidentBook(state.incidents)
        self._noted = False

    def is_past(self, window: AttemptWindow) -> bool:
        """Whether a new attempt has begun, all incidents are over, and the window tells nothing of this one."""
        past = self.state.view.superseded is not None and not self.state.incidents.incidents
        return past and not (window.summaries or window.exits or window.sightings or window.nobodys is not None)

    def observe(self, window: AttemptWindow, stage: str) -> tuple[list[Anomaly], list[Output]]:
        """What its detectors find in a window, and a dead letter for each that fails."""
        self._noted = False
        return observed(self.detectors, self.state.view, window, stage)

    def anew(self, stacks: MergedStacks | None) -> list[MergedStacks]:
        """The stacks, unless they say what was last said of this standstill."""
        before, self.state.stacks = self.state.stacks, "" if stacks is None else what_it_says(stacks)
        return [] if stacks is None or before == self.state.stacks else [stacks]

    def written(self) -> AttemptState:
        """The state to write down; that of detectors that have not run since is what it was."""
        if not self._noted:
            self.state.detectors = {detector.name: detector.snapshot() for detector in self.detectors}
            self._noted = True
        self.state.incidents = self.incidents.state
        return msgspec.structs.replace(self.state, view=folded(self.state.view))
