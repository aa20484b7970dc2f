"""What kernels and systems of nodes report (crash, memory, hang): GPUs, memory, switches, file systems that failed.

A line names a process or a PCI id, mostly. Where that is a rank's, the fault is the rank's; otherwise it is the node's,
and no rank is named. Confirmations, such as the Xid that follows another, raise nothing.
"""

from __future__ import annotations

import msgspec

from schemas.identity import shortened
from schemas.results import Anomaly, Fatal, Layer, Severity, Suspect
from streams.attempt_window import AttemptWindow, Fault
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.troubles import NODE_FAILED, beside, of_others, of_the_stop
from streams.view import AttemptView


class NodeFaultsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``own_slack_s``: what is printed this long before the owner's stop still belongs to it.

    ``undated_s``: what may be further off in time supports others and opens nothing. ``gone_s``: what comes so long
    after all ranks were last seen alive is of whoever uses the node next.
    """

    own_slack_s: float = 1.0
    undated_s: float = 300.0
    gone_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("own_slack_s", "undated_s", "gone_s"))


class NodeFaultsState(msgspec.Struct, kw_only=True):
    """No state: incidents remember."""


@register
class NodeFaults(JobDetector[NodeFaultsConfig, NodeFaultsState]):
    """Reports each fault once in a window, with its place."""

    name = "node_faults"
    grounds = frozenset({"rank_fault", "node_fault"})
    config_type = NodeFaultsConfig
    state_type = NodeFaultsState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each template at each place."""
        found: dict[tuple[str, str, str, int], list[Fault]] = {}
        for fault in window.faults:
            if fault.fatal.role == "candidate" and not self._of_others(view, fault.fatal):
                key = (fault.node, fault.fatal.template, fault.device, -1 if fault.rank is None else fault.rank)
                found.setdefault(key, []).append(fault)
        return [self._anomaly(view, window, group) for _, group in sorted(found.items())]

    def _of_others(self, view: AttemptView, fatal: Fatal) -> bool:
        """Whether it has nothing to do with the attempt; a scheduler tells of a node minutes after that fell silent."""
        own_slack_s, gone_s = self.config.own_slack_s, self.config.gone_s
        if fatal.template == NODE_FAILED and not view.finished:
            return of_the_stop(fatal, view.stopped, own_slack_s)
        return of_others(view, fatal.time, fatal.precision_ns, slack_s=own_slack_s, gone_s=gone_s)

    def _anomaly(self, view: AttemptView, window: AttemptWindow, group: list[Fault]) -> Anomaly:
        first = min(group, key=lambda fault: fault.fatal.time)
        fatal = first.fatal
        dated = fatal.precision_ns <= self.config.undated_s * 1e9
        rank = first.rank if dated else None
        severity: Severity = "info" if not dated else "warning" if rank is None else "critical"
        where = "" if rank is None else f"rank {rank}: "
        layer: Layer = "hardware" if fatal.area == "hardware" or first.device else "platform"
        return self.anomaly(
            window,
            f"{first.node}|{fatal.template}|{first.device}|{rank}",
            onset=fatal.time,
            precision_ns=fatal.precision_ns,
            axis="space",
            layer=layer,
            symptom=fatal.symptom,
            area=fatal.area,
            grounds="node_fault" if rank is None else "rank_fault",
            severity=severity,
            text=f"{where}{first.node or 'a node'} reports: {fatal.text}{beside(fatal)}",
            peers=f"such lines: {len(group)}; nodes that run the job: {len(view.node_names)}",
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[self._suspect(view, first, rank)],
            templates=[fatal.signature],
        )

    def _suspect(self, view: AttemptView, fault: Fault, rank: int | None) -> Suspect:
        why = f"its node reports a fault of its GPU or process: {shortened(fault.fatal.text, 200)}"
        if rank is None:
            return Suspect(rank=None, node=fault.node, device=fault.device or None, score=0.5, why=why)
        suspect = view.suspect(rank, 0.9, why)
        return msgspec.structs.replace(suspect, device=fault.device or suspect.device)
