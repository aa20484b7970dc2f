"""A job's window by attempt: which summaries are whose, and what nodes tell of each."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.jobs import JobDescription
from schemas.results import Exit, HardwareChange, Window
from streams.attempt_window import Alarm, AttemptWindow, Changed, Fault
from streams.packing import names_of, pack_of
from streams.printed import Printed
from streams.stages.alarms import Placed, of_nodes, of_places
from streams.stages.owners import rank_of, users_of
from streams.stages.told import NodeSide
from streams.view import AttemptView

LONGEST_NUMBER = 10


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What all attempts of a job have in common in a window.

    ``owners`` are (attempt, rank) of processes by node and pid, ``gpus`` ranks by attempt, node and PCI id; ``exits``
    and ``sightings`` are by attempt; ``layout`` is what workers without a rank have said of it. ``alarms`` are the
    platform's, ``switches`` those that nodes hang under.
    """

    job: str
    start: int
    end: int
    told: NodeSide
    owners: dict[tuple[str, int], tuple[str, int]]
    gpus: dict[tuple[str, str, str], set[int]]
    exits: dict[str, list[tuple[int, Exit]]]
    sightings: dict[str, list[tuple[int, int]]]
    layout: dict[str, int]
    alarms: list[Placed]
    switches: dict[str, str]
    unavailable: bool


def window_of(
    view: AttemptView, own: list[Window], shared: Shared, printed: Printed, described: JobDescription | None
) -> AttemptWindow:
    """The window of one attempt; ``own`` are its ranks' summaries, ``described`` is what is known of it.

    What nodes say is mapped to ranks by process id.
    """
    name, told = view.attempt, shared.told
    places = places_of_attempt(view, own)
    among = told.among(places)
    users = users_of(name, shared.gpus)
    return AttemptWindow(
        job=shared.job,
        attempt=name,
        start=shared.start,
        end=shared.end,
        summaries=own,
        exits=shared.exits.get(name, []),
        sightings=shared.sightings.get(name, []),
        node_life=told.life,
        faults=[
            Fault(node, fatal, rank_of(name, node, fatal, shared.owners, shared.gpus)) for node, fatal in among.faults
        ],
        hardware=_changes(name, among, users),
        alarms=[
            Alarm(node, alert, users.get((node, alert.device)) if alert.device else None)
            for node, alert in of_places(shared.alarms, places)
        ],
        switches=of_nodes(shared.switches, places),
        nodes=among.measured,
        users=users,
        unplaced=[(one.node, fatal) for one, fatal in among.unplaced],
        # A launcher speaks of the attempt that it runs, not of those that it has given up.
        heard=max((time for _, time in among.heard), default=None),
        nobodys=view.nobodys.take(among.nobodys, names_of(own) if any(map(pack_of, among.nobodys)) else set()),
        nobodys_layout=dict(shared.layout),
        described=described,
        stopped=told.stopped if view.superseded is None else None,
        stops=told.stops if view.superseded is None else [],
        launchers=told.launchers,
        unavailable=shared.unavailable,
        printed=printed,
    )


def _changes(name: str, among: NodeSide, users: Mapping[tuple[str, str], int]) -> list[Changed]:
    """Changes of hardware that nodes tell, and those that ranks of the attempt tell of themselves."""
    return [
        Changed(one.identity.node, change, _user(one, change, users))
        for one, change in among.changes
        if one.identity.rank is None or attempt_of(one) == name
    ]


def _user(said: Window, change: HardwareChange, users: Mapping[tuple[str, str], int]) -> int | None:
    """Whose a change is: that of the device's only user; without a device the rank's that told it of itself.

    A rank may well sample all GPUs of its node.
    """
    return users.get((said.identity.node, change.device)) if change.device else said.identity.rank


def places_of_attempt(view: AttemptView, summaries: list[Window]) -> set[str] | None:
    """The nodes that an attempt may run on, null for any: none once it was given up, all where some are unknown."""
    if view.superseded is not None:
        return set()
    nodes = {member.identity.node for member in view.members.values()}
    nodes |= {summary.identity.node for summary in summaries}
    return None if not nodes or "" in nodes else {*nodes, ""}


def attempt_of(summary: Window) -> str:
    """The attempt, told apart by worker group where ranks restart per group: two ranks 0 are never one member."""
    identity = summary.identity
    return f"{identity.group}/{identity.attempt}" if identity.group else identity.attempt


def group_of(name: str) -> str:
    """The worker group of an attempt, empty where a job has none.

    >>> group_of("actor/3"), group_of("3")
    ('actor', '')
    """
    return name.rpartition("/")[0]


def number_of(name: str) -> int:
    """The attempt's number, -1 where its name is none.

    >>> number_of("actor/3"), number_of("3"), number_of("last")
    (3, 3, -1)
    """
    number = name.rpartition("/")[2]
    return int(number) if number.isdecimal() and len(number) < LONGEST_NUMBER else -1
