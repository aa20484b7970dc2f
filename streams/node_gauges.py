"""What was sampled of nodes as such, as the matrix of those ranks that stand for them.

A node is told by its lowest rank: so nodes are held against nodes that run the same roles and stages, as ranks are.
"""

from __future__ import annotations

import msgspec

from streams.attempt_window import AttemptWindow
from streams.comparable import Comparable, comparable
from streams.device_gauges import without_devices
from streams.gauges import GaugeTable, gauge_table
from streams.view import AttemptView


def nodes_compared(view: AttemptView, window: AttemptWindow) -> Comparable:
    """What can be compared of the window's nodes, made once; its values are not to be changed."""
    return window.once("nodes_compared", view, lambda: comparable(node_table(view, window)))


def node_table(view: AttemptView, window: AttemptWindow) -> GaugeTable:
    """The gauges of the attempt's nodes, under the lowest rank of each; those of nodes without ranks are left out.

    So are those of devices that one rank is known to use: they are compared as that rank's. Made once.
    """
    return window.once("node_table", view, lambda: _node_table(view, window))


def _node_table(view: AttemptView, window: AttemptWindow) -> GaugeTable:
    lowest: dict[str, int] = {}
    for rank in sorted(view.members) if window.nodes else []:
        lowest.setdefault(view.node_of(rank), rank)
    found = []
    for one in without_devices(window.nodes, window.users):
        if one.identity.node and one.identity.node in lowest:
            standing = msgspec.structs.replace(one.identity, rank=lowest[one.identity.node])
            found.append(msgspec.structs.replace(one, identity=standing))
    return gauge_table(found)


def on_nodes(view: AttemptView, ranks: list[int]) -> list[int]:
    """All ranks on the nodes of these, ascending."""
    nodes = {view.node_of(rank) for rank in ranks}
    return [rank for rank in sorted(view.members) if view.node_of(rank) in nodes]
