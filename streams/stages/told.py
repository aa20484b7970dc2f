"""What nodes, and workers whose rank is not known, tell in one window, and what of it may be of one attempt."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from schemas.identity import Identity
from schemas.results import Fatal, HardwareChange, PlatformAlert, Stop, Window
from streams.iterations import TIMED_NS
from streams.lines.fatal import loses_a_peer
from streams.packing import pack_of
from streams.troubles import NODE_FAILED

OF_NODES = ("kernel", "system")
"""Process types that speak of a node."""


class NodeSide(msgspec.Struct, frozen=True, kw_only=True):
    """What was told, in order of summaries: each with its node, or with who said it.

    ``unplaced`` are errors of no known rank, ``faults`` those of nodes, ``heard`` when iterations were spoken of (ns).
    ``measured`` and ``nobodys`` are the windows of those that tell metrics of nodes, and what is the job's own word.
    ``of_attempts`` is who shows that there is an attempt, ``life`` when nodes were alive. ``stopped`` is when a window
    that knows no more said that the job was ended, ``stops`` are the words by which it was, ``launchers`` the nodes on
    which any printed. ``changes`` are those of ranks as well. ``alerts`` are the
    platform's, and ``switches`` those that nodes hang under.
    """

    unplaced: list[tuple[Identity, Fatal]]
    faults: list[tuple[str, Fatal]]
    changes: list[tuple[Window, HardwareChange]]
    heard: list[tuple[str, int]]
    measured: list[Window]
    nobodys: list[Window]
    of_attempts: list[Identity]
    life: list[tuple[str, int]]
    stopped: int | None
    stops: list[tuple[str, Stop]]
    launchers: list[str]
    layout: dict[str, int]
    alerts: list[tuple[str, PlatformAlert]]
    switches: list[tuple[str, str]]

    @property
    def asks_for_devices(self) -> bool:
        """Whether anything must be known whose devices are."""
        return bool(self.faults or self.changes or self.measured)

    def among(self, places: set[str] | None) -> NodeSide:
        """What was told of these nodes; all of it where they are not known."""
        if places is None:
            return self
        return msgspec.structs.replace(
            self,
            unplaced=[one for one in self.unplaced if one[0].node in places],
            faults=[one for one in self.faults if one[0] in places],
            changes=[one for one in self.changes if one[0].identity.node in places],
            heard=[one for one in self.heard if one[0] in places],
            measured=[one for one in self.measured if one.identity.node in places],
            nobodys=[one for one in self.nobodys if one.identity.node in places],
        )


def told_by(nodes: Sequence[Window], summaries: Sequence[Window]) -> NodeSide:
    """What the windows of no rank tell among all ``summaries``."""
    fatals = [(one.identity, fatal) for one in nodes for fatal in one.fatals]
    unplaced = [(who, fatal) for who, fatal in fatals if not _of_a_node(fatal)]
    # An error of nobody known is one of the attempt that its log speaks of, and so is an iteration.
    attempts = [who for who, fatal in unplaced if fatal.role == "candidate" or loses_a_peer(fatal)]
    return NodeSide(
        unplaced=unplaced,
        faults=[(_node_of(who, fatal), fatal) for who, fatal in fatals if _of_a_node(fatal)],
        changes=[(one, change) for one in summaries for change in one.hardware],
        heard=[
            (one.identity.node, one.iteration_time)
            for one in nodes
            if one.iteration_time is not None and one.iteration_within_ns <= TIMED_NS
        ],
        measured=[one for one in nodes if one.measured],
        nobodys=[one for one in nodes if pack_of(one) or one.phase_time is not None or one.finished is not None],
        of_attempts=[*attempts, *(one.identity for one in nodes if one.iteration is not None)],
        life=sorted((one.identity.node, one.end) for one in nodes if one.heartbeats),
        stopped=min((one.stopped for one in nodes if one.stopped is not None and not one.stops), default=None),
        stops=[(one.identity.node, stop) for one in nodes for stop in one.stops],
        launchers=sorted({one.identity.node for one in nodes if one.launcher}),
        layout={axis: size for one in nodes for axis, size in one.layout.items()},
        alerts=[(one.identity.node, alert) for one in summaries for alert in one.alerts],
        switches=[(one.identity.node, one.switch) for one in summaries if one.switch and one.identity.node],
    )


def _of_a_node(fatal: Fatal) -> bool:
    return fatal.process_type in OF_NODES or fatal.template == NODE_FAILED


def _node_of(who: Identity, fatal: Fatal) -> str:
    """The node that has the fault; where a scheduler does not say which has failed it is none that is known."""
    return fatal.values.get("node", "") if fatal.template == NODE_FAILED else who.node
