"""Errors of workers whose rank is not known (crash, memory): something failed of its own, and nobody can say who."""

from __future__ import annotations

import msgspec

from schemas.identity import shortened
from schemas.results import Anomaly, Fatal
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.lines.fatal import loses_a_peer
from streams.stops import TERMINATED
from streams.troubles import of_the_stop
from streams.view import AttemptView


class UnplacedErrorsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed this long before the owner's stop still belongs to it, the loss of a peer this long."""

    own_slack_s: float = 1.0
    stop_slack_s: float = 5.0

    def __post_init__(self) -> None:
        require(self, above_0=("own_slack_s", "stop_slack_s"))


class UnplacedErrorsState(msgspec.Struct, kw_only=True):
    """No state: incidents remember."""


@register
class UnplacedErrors(JobDetector[UnplacedErrorsConfig, UnplacedErrorsState]):
    """Reports candidates that no rank can be held against.

    What a lost peer causes says nothing without its rank, but that the job has failed where no rank is known at all.
    """

    name = "unplaced_errors"
    grounds = frozenset({"unplaced_error", "unplaced_besides", "cascade"})
    config_type = UnplacedErrorsConfig
    state_type = UnplacedErrorsState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each signature."""
        found: dict[str, list[tuple[str, Fatal]]] = {}
        for node, fatal in window.unplaced:
            if fatal.role == "candidate" and not of_the_stop(fatal, view.stopped, self.config.own_slack_s):
                found.setdefault(fatal.signature, []).append((node, fatal))
        if not found and not view.members and not view.finished:
            # Who was told to end has lost nobody.
            telling = [(node, fatal) for node, fatal in window.unplaced if fatal.template != TERMINATED]
            lost = [(node, fatal) for node, fatal in telling if loses_a_peer(fatal)]
            left = [(node, fatal) for node, fatal in lost if not of_the_stop(fatal, view.stopped, self._slack_s(fatal))]
            return [self._lost(view, window, left)] if left else []
        return [self._anomaly(view, window, group) for _, group in sorted(found.items())]

    def _grounds(self, window: AttemptWindow, group: list[tuple[str, Fatal]]) -> str:
        """Whether others have printed it than ranks that are known to: oftener than those ranks' own files hold it."""
        signature = group[0][1].signature
        known = sum(fatal.signature == signature for summary in window.summaries for fatal in summary.fatals)
        return "unplaced_besides" if 0 < known < len(group) else "unplaced_error"

    def _slack_s(self, fatal: Fatal) -> float:
        return self.config.stop_slack_s if fatal.role == "cascade" else self.config.own_slack_s

    def _lost(self, view: AttemptView, window: AttemptWindow, group: list[tuple[str, Fatal]]) -> Anomaly:
        first = min((fatal for _, fatal in group), key=lambda fatal: fatal.time)
        return self.anomaly(
            window,
            "cascade",
            onset=first.time,
            precision_ns=first.precision_ns,
            axis="space",
            layer="log",
            symptom=first.symptom,
            area=first.area,
            grounds="cascade",
            severity="critical",
            text=f"workers whose rank is not known lost their peers or waited in vain: {shortened(first.text, 200)}",
            peers="no rank of the job is known",
            iteration=view.clock.iteration,
            phase=view.phase,
        )

    def _anomaly(self, view: AttemptView, window: AttemptWindow, group: list[tuple[str, Fatal]]) -> Anomaly:
        first = min((fatal for _, fatal in group), key=lambda fatal: fatal.time)
        nodes = sorted({node for node, _ in group if node})
        where = f" on {', '.join(nodes)}" if nodes else ""
        times = f"{len(group)} times" if len(group) > 1 else "once"
        return self.anomaly(
            window,
            first.signature,
            onset=first.time,
            precision_ns=first.precision_ns,
            axis="space",
            layer="log",
            symptom=first.symptom,
            area=first.area,
            grounds=self._grounds(window, group),
            severity="critical",
            text=f"a worker whose rank is not known{where}: {shortened(first.text, 500)}",
            peers=f"{len(view.members)} ranks were observed; printed {times} in files of nobody known",
            iteration=view.clock.iteration,
            phase=view.phase,
            templates=[first.signature],
        )
