"""Why ranks that work longer than their peers are singled out, or may be innocent: the rules, in the order of asking.

Each is a question to a ``Case``, which finds what it is asked for once and only then. The first rule that holds gives
the grounds of the finding; whom blame names by which grounds stands in ``streams/incidents/slowness.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import msgspec

from streams.experts import may_be_routed
from streams.held_within import is_unwitnessed, unaccounted, within_its_group
from streams.places import (
    Place,
    are_of_several_replicas,
    beside,
    is_by_position,
    may_be_their_nodes,
    places_of,
    replica_elsewhere,
)
from streams.robust import Bounds
from streams.slow_at_times import Recurring, stand_out_too
from streams.slow_beside import held_up, is_replica_unseen, of_their_replica
from streams.slow_episodes import Episodes
from streams.slow_ranks import Standing, changed_alike, with_a_past
from streams.step_tables import StepTables, timer_of
from streams.steps import StepTable
from streams.timers import is_of_data
from streams.view import AttemptView

NODE_SHARE = 1 / 3
"""Up to which share of the ranks a whole node is no majority."""
UNSEEN_SHARE = 0.1
"""Where stages are not known: of how many ranks no past may be known for a change to be one rank's."""
BY_DESIGN = ("stage", "experts")
"""Places whose ranks all may have more to do."""


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The ranks that are ``slow`` by one timer, and beside what they are seen.

    ``more`` are slow as well but not shown; more than a share of ``crowd`` of their peers are too many. ``step_ns`` is
    how long a step takes, ``steps`` are those by which who is slow was judged. ``others`` are slow since another time.
    """

    view: AttemptView
    tables: StepTables
    key: str
    slow: list[Standing]
    more: int
    known: Episodes
    steps: int
    step_ns: int
    bounds: Bounds
    crowd: float
    others: list[int] = []

    @cached_property
    def table(self) -> StepTable:
        """The steps of the timer."""
        return self.tables[self.key]

    @cached_property
    def ranks(self) -> list[int]:
        """The slow ranks."""
        return [one.rank for one in self.slow]

    @cached_property
    def places(self) -> list[Place]:
        """The places whose ranks they all are, and nobody else."""
        return places_of(self.view, self.ranks, self.table.ranks)

    @cached_property
    def is_whole_node(self) -> bool:
        """Whether they are all ranks of one node, and no majority."""
        return any(one.kind == "node" for one in self.places) and self.share <= NODE_SHARE

    @cached_property
    def is_node_as_such(self) -> bool:
        """Whether they are such a node and of several replicas; of one, its inputs or one of its ranks may be why."""
        return self.is_whole_node and are_of_several_replicas(self.view, self.ranks)

    @cached_property
    def share(self) -> float:
        """Which share of their peers these are, at most; 0 where it may be one alone of their tensor-parallel group."""
        slow, reporting = set(self.ranks), set(self.table.ranks)
        if "dp" in self.view.coordinates(self.ranks[0]) and slow <= beside(self.view, self.ranks[0], self.table.ranks):
            return 0.0
        groups = [set(group) & reporting for group in self.view.peer_groups()]
        return max(len(group & slow) / len(group) for group in groups if group & slow)

    @cached_property
    def waiting(self) -> list[int]:
        """Those of them that wait longer than their peers: they are held up themselves."""
        return held_up(self.view, self.tables, self.slow, self.steps, self.step_ns)

    @cached_property
    def replica(self) -> list[Standing]:
        """Who is slow in other stages of the one replica that they are of."""
        return of_their_replica(self.view, self.table, self.slow, self.steps, self.bounds)

    @cached_property
    def unaccounted(self) -> list[int]:
        """Ranks whose timers leave much of their steps open, so that a slow one may wait for them."""
        return unaccounted(self.view, self.tables, self.slow, self.steps, self.step_ns)

    @cached_property
    def changed(self) -> bool:
        """Whether all that are not held up became slow."""
        return self.known.all_changed([rank for rank in self.ranks if rank not in self.waiting])

    @cached_property
    def alike(self) -> bool:
        """Whether others have changed as well, or may have: who is of a stage that nobody knows of changes with it."""
        known = with_a_past(self.table, self.steps)
        mates = self.view.of_their_roles(self.ranks)
        unseen = 0 if self.view.knows_stages_beside(self.ranks) else len(mates - known) / max(len(mates), 1)
        if unseen > UNSEEN_SHARE:
            return True
        if any(isinstance(one, Recurring) for one in self.slow):
            return stand_out_too(self.table, self.ranks, self.steps)
        alike = changed_alike(self.table, self.ranks, self.steps)
        return any(rank not in self.others for rank in alike)


def _moves(case: Case) -> bool:
    return case.known.has_moved(case.table.total)


def _are_many(case: Case) -> bool:
    return bool(case.more) or (len(case.ranks) > 1 and case.share > case.crowd and not case.is_whole_node)


def _are_of_a_longer_replica(case: Case) -> bool:
    if case.is_node_as_such:
        return False
    outside = replica_elsewhere(case.view, case.ranks, case.view.members) - set(case.ranks)
    if case.is_whole_node and outside:
        # Inputs that took the stages on this node longer would take those elsewhere longer too.
        return any(one.rank in outside for one in case.replica)
    return bool(case.replica)


def _are_so_by_design(case: Case) -> bool:
    return any(one.kind in BY_DESIGN for one in case.places)


def _wait_longer(case: Case) -> bool:
    return set(case.waiting) == set(case.ranks)


def _may_wait_for_another(case: Case) -> bool:
    return bool(case.unaccounted)


def _may_wait_within(case: Case) -> bool:
    return not case.is_node_as_such and _is_group_work(case.view, case.tables, case.key, case.ranks)


def _may_be_routed(case: Case) -> bool:
    return may_be_routed(case.view, case.tables, case.key, case.ranks)


def _is_unwitnessed(case: Case) -> bool:
    return is_unwitnessed(case.view, case.tables, case.key, case.slow, case.steps)


def _is_of_an_unseen_replica(case: Case) -> bool:
    return not case.is_node_as_such and is_replica_unseen(case.view, case.table, case.slow, case.steps, case.bounds)


def _changed_alone(case: Case) -> bool:
    return case.changed and not case.alike


def _are_so_by_their_nodes(case: Case) -> bool:
    return not case.changed and may_be_their_nodes(case.view, case.ranks, case.table.ranks)


def _are_so_by_position(case: Case) -> bool:
    return is_by_position(case.view, case.ranks, case.table.ranks)


def _changed(case: Case) -> bool:
    return case.changed


_RULES: tuple[tuple[Callable[[Case], bool], str], ...] = (
    (_moves, "rotating"),
    (_are_many, "many_slow"),
    (_are_of_a_longer_replica, "slow_replica"),
    (_are_so_by_design, "slow_stage"),
    (_wait_longer, "slow_but_waits"),
    (_may_wait_for_another, "slow_or_waits"),
    (_may_wait_within, "slow_within_group"),
    (_may_be_routed, "slow_experts"),
    (_is_unwitnessed, "slow_unwitnessed"),
    (_is_of_an_unseen_replica, "slow_unseen"),
    (_changed_alone, "slow_and_changed"),
    (_are_so_by_position, "slow_first_rank"),
    (_are_so_by_their_nodes, "slow_node"),
    (_changed, "slow_perhaps_with_others"),
)


_ELSE = "slow_against_peers"


def grounds_of(case: Case) -> str:
    """Why the slow ranks are singled out, or nobody is."""
    return next((grounds for holds, grounds in _RULES if holds(case)), _ELSE)


GROUNDS_OF_STEPS = frozenset({*(grounds for _, grounds in _RULES), _ELSE, "slow_place"})
"""All that ``grounds_of`` and ``grounds_of_place`` may say."""
GROUNDS_OF_BUSY = frozenset({"busy_changed_and_cpu", "busy_and_changed", "busy_and_cpu", "busy_alone"})
"""All that ``grounds_of_busy`` may say."""


def grounds_of_place(
    view: AttemptView, tables: StepTables, key: str, ranks: list[int], places: list[Place], steps: int
) -> str:
    """The same of all ranks of places that take longer than their own past, where peers are too few to ask."""
    if any(one.kind in BY_DESIGN for one in places) or not _are_their_stages_seen(view, tables[key], ranks, steps):
        return "slow_stage"
    if places[0].kind == "replica" or (places[-1].kind == "replica" and replica_elsewhere(view, ranks, ranks)):
        return "slow_replica"
    if not are_of_several_replicas(view, ranks) and _is_group_work(view, tables, key, ranks):
        return "slow_within_group"
    return "slow_experts" if may_be_routed(view, tables, key, ranks) else "slow_place"


def grounds_of_busy(view: AttemptView, rank: int, *, timed: bool, changed: bool, busier: bool) -> str:
    """Why a rank that is hardly ever seen waiting is singled out, or not; ``busier`` is whether it uses more CPU.

    Where it is ``timed`` how long everybody works, samples only explain.
    """
    if timed:
        return "busy_alone"
    if changed:
        return "busy_changed_and_cpu" if busier else "busy_and_changed"
    return "busy_and_cpu" if busier and not is_by_position(view, [rank], view.members) else "busy_alone"


def _is_group_work(view: AttemptView, tables: StepTables, key: str, ranks: list[int]) -> bool:
    """Whether they may wait within this timer for others of their own replica."""
    return not is_of_data(timer_of(key)) and within_its_group(view, tables, key, ranks)


def _are_their_stages_seen(view: AttemptView, table: StepTable, ranks: list[int], steps: int) -> bool:
    """Whether of each stage of these ranks, as far as stages are known, another is seen that has not changed.

    What a whole stage has more to do shows on all of its ranks, and so on all that are observed.
    """
    others = with_a_past(table, steps) - set(ranks)
    seen = {str(view.coordinates(rank).get("pp")) for rank in others}
    return all("pp" not in at or str(at["pp"]) in seen for at in map(view.coordinates, ranks))
