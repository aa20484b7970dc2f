"""Same-stage robust outlier (slowness): a rank whose own work takes longer than its peers', step after step.

Per step and timer of own work: above ``ratio`` times the peers' median and, with enough peers, above median + k MAD
(MAD floor 1 % of the median, detectors.md section 3.2). A verdict needs ``share`` of the last ``steps`` steps, more
where peers stand out now and then too, and an excess that matters to the step. Waiting is held against a suspect, never
for it: the culprit waits least. Where the slow rank moves from one to another, it is workload.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, Severity, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.innocence import GROUNDS_OF_STEPS, Case, grounds_of, grounds_of_place
from streams.places import Place, places_of
from streams.robust import Bounds
from streams.slow_at_times import Recurring, recurring
from streams.slow_beside import with_its_group
from streams.slow_cost import are_waited_for, with_costs
from streams.slow_episodes import Episodes
from streams.slow_ranks import (
    Shift,
    Standing,
    flag_steps,
    largest,
    shifted,
    standing_out,
    standings,
)
from streams.slow_together import by_beginning
from streams.stall import over
from streams.step_tables import StepTables, is_own, timer_of
from streams.steps import StepColumns, StepTable
from streams.timers import is_of_data
from streams.view import AttemptView

PLAUSIBLE = 3.0
"""Steps that own work of one may take: it is part of it, but how long a step takes is known late."""
MOST_NAMED = 64
"""Of more ranks at once no one is at fault."""
SINGLED_OUT = (
    "slow_and_changed",
    "slow_perhaps_with_others",
    "slow_against_peers",
    "slow_experts",
    "slow_first_rank",
    "slow_node",
    "slow_unseen",
    "slow_unwitnessed",
    "slow_or_waits",
    "slow_within_group",
    "slow_replica",
    "slow_stage",
)
"""Grounds that tell ranks; whether these are named is not decided here."""
WORKLOAD = ("rotating", "many_slow", "slow_replica", "slow_stage", "slow_experts")


class StepOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``bounds`` make a step stand out; ``share`` of the last ``steps`` must.

    ``impact`` is the excess as a share of the whole step, ``critical`` the impact that is critical. The first
    ``warm_up_steps`` of a rank do not count. More than a share of ``rotating`` ranks at once is workload. A rank that
    has not reported for ``patience_windows`` windows is not waited for.
    """

    bounds: Bounds = Bounds()
    steps: int = 20
    share: float = 0.5
    impact: float = 0.1
    critical: float = 0.2
    warm_up_steps: int = 5
    history_steps: int = 200
    rotating: float = 0.25
    patience_windows: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("impact", "critical", "patience_windows"), shares=("share", "rotating"))
        if not 2 <= self.steps <= self.history_steps:
            raise ValueError("step_outlier: 2 <= steps <= history_steps must hold")


class StepOutlierState(msgspec.Struct, kw_only=True):
    """Tables of steps, and by table who is slow; ``shifted`` is since which iteration and time a whole place is."""

    tables: dict[str, StepColumns] = {}
    slow: dict[str, Episodes] = {}
    shifted: dict[str, tuple[int, int]] = {}


@register
class StepOutlier(JobDetector[StepOutlierConfig, StepOutlierState]):
    """Contrasts own-work timers within peer groups, per step."""

    name = "step_outlier"
    grounds = GROUNDS_OF_STEPS
    version = 2
    config_type = StepOutlierConfig
    state_type = StepOutlierState

    def __init__(self, config: StepOutlierConfig | None = None) -> None:
        super().__init__(config)
        self._tables = StepTables(self.config.warm_up_steps)

    def snapshot(self) -> msgspec.Raw:
        """The state as JSON, tables packed."""
        self.state.tables = self._tables.written()
        return super().snapshot()

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a state that ``snapshot`` wrote."""
        super().restore(raw)
        self._tables = StepTables(self.config.warm_up_steps, self.state.tables)

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """The slow ranks of one timer stand in one finding, unless some became so long after others elsewhere."""
        self._tables.collect(view, window)
        # What holds waiting tells nothing unless others time theirs.
        waits, mixed = self._tables.of("wait"), self._tables.of("mixed")
        to_judge = [*self._tables.of("own"), *(mixed if waits else [])]
        for key in (*waits, *self._tables.of("total"), *([] if waits else mixed)):
            self._settle(self._tables[key])
        judged = [key for key in to_judge if self._judge(view, self._tables[key])]
        step = view.clock.step_ns
        if over(view) or step is None:
            return []
        return [one for key in judged for one in self._contrast(view, window, key, step)]

    def _settle(self, table: StepTable) -> int:
        return table.settle(table.reported_by_all(self.config.patience_windows), self.config.history_steps)

    def _judge(self, view: AttemptView, table: StepTable) -> bool:
        """Judge the steps that all reporting ranks have reported. Returns whether there were any."""
        ready = self._settle(table)
        if ready:
            flag_steps(table, view.peer_groups(), self.config.bounds, table.judged - ready)
        return ready > 0

    def _contrast(self, view: AttemptView, window: AttemptWindow, key: str, step: int) -> list[Anomaly]:
        table, config, groups = self._tables[key], self.config, view.peer_groups()
        out = standing_out(table, groups, config.steps, config.share)
        apart = {rank for ranks in out for rank in ranks}
        shown = set(largest(table, sorted(apart), config.steps, MOST_NAMED))
        slow: list[Standing] = []
        for group, ranks in zip(groups, out, strict=True):
            if shown.intersection(ranks):
                slow += standings(table, group, sorted(shown.intersection(ranks)), config.steps, config.bounds)
        more = len(apart - shown)
        if not apart:
            often = recurring(table, groups, config.steps, config.bounds)
            slow, more = [*often[:MOST_NAMED]], len(often[MOST_NAMED:])
        # What takes longer than the step that it is part of is in another unit, or of more than this step.
        longest = PLAUSIBLE * max([step, *view.clock.steps[-3:]])
        known = self.state.slow.setdefault(key, Episodes())
        # Whoever is slow at times only must cost as much each time.
        slow = self._that_matter(view, key, slow, known if apart else Episodes(), longest, step) if slow else []
        told = {*known.ranks, *(one.rank for one in slow)}
        place = self._shifted_place(view, key, told, longest, step) if is_own(key) else None
        if place is not None:
            return [self._of_a_place(view, window, key, *place, step)]
        self.state.shifted.pop(key, None)
        known.note(slow, table.total, config.steps, config.bounds.ratio)
        if not slow:
            return []
        together = more or known.has_moved(table.total) or any(isinstance(one, Recurring) for one in slow)
        parts = [slow] if together else by_beginning(slow, known, view, step, window.end - window.start)
        return [self._finding(view, window, key, part, slow, more, step) for part in parts]

    def _that_matter(
        self, view: AttemptView, key: str, slow: list[Standing], known: Episodes, longest: float, step: int
    ) -> list[Standing]:
        """Those of the slow ranks that cost enough of a step, beyond noise, with others of their group."""
        table, config = self._tables[key], self.config
        slow = with_costs(view, self._tables, slow, config.steps)
        slow = [
            one
            for one in slow
            if one.middle(one.values, config.steps) <= longest
            and one.cost(config.steps) >= config.impact * known.part(one.rank) * step
            and (one.excess(config.steps) >= config.impact * known.part(one.rank) * step or one.lasts(config.steps))
            and one.is_beyond_noise(config.steps)
        ]
        if not slow or not (is_own(key) or are_waited_for(view, self._tables, slow, config.steps)):
            return []
        return with_its_group(view, table, slow, config.steps, config.bounds)

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        key: str,
        slow: list[Standing],
        all_slow: list[Standing],
        more: int,
        step: int,
    ) -> Anomaly:
        """What is said of those that are ``slow`` since about one time, among all that are."""
        config = self.config
        case = self._case(view, key, slow, all_slow, more, step)
        grounds = grounds_of(case)
        named = [one for one in slow if one.rank not in case.waiting] if grounds in SINGLED_OUT else []
        ranks = {one.rank for one in all_slow}
        mates = [one for one in case.replica if one.rank not in ranks] if grounds == "slow_replica" else []
        shown = [*named, *mates]
        known = self.state.slow[key]
        first = known.first([one.rank for one in named or slow])
        impact = max(one.cost(config.steps) for one in named or slow) / step
        worst = max(named or slow, key=lambda one: (one.middle(one.ratios, config.steps), -one.rank))
        later = known.first(case.ranks) is not known.first([one.rank for one in all_slow])
        return self.anomaly(
            window,
            f"{key}|{first.iteration}" if later else key,
            onset=first.time,
            axis="space",
            layer="metric",
            symptom="slowdown",
            area=_area(grounds, key),
            grounds=grounds,
            severity=_severity(grounds, impact, config.critical),
            text=self._text(case, worst, grounds),
            peers=f"peers' median {worst.middle(worst.medians, config.steps) / 1e6:.1f} ms; {impact:.0%} of a step",
            iteration=first.iteration,
            phase=view.phase,
            suspects=[self._suspect(view, key, one, step) for one in sorted(shown, key=lambda one: one.rank)],
            victims=sorted(set(view.members) - ranks - {one.rank for one in mates}),
            metric=timer_of(key),
        )

    def _case(
        self, view: AttemptView, key: str, slow: list[Standing], all_slow: list[Standing], more: int, step: int
    ) -> Case:
        """What grounds are asked of: those that are ``slow`` since about one time, with what is known of them."""
        return Case(
            view=view,
            tables=self._tables,
            key=key,
            slow=slow,
            more=more,
            known=self.state.slow[key],
            steps=self.config.steps,
            step_ns=step,
            bounds=self.config.bounds,
            crowd=self.config.rotating,
            others=[one.rank for one in all_slow if one not in slow],
        )

    def _shifted_place(
        self, view: AttemptView, key: str, slow: set[int], longest: float, step: int
    ) -> tuple[Shift, list[Place]] | None:
        """All ranks of a place, which have no peers or are half of them, against their own past and nobody else.

        What else is ``slow`` must be of that place: among so few fast ones now one, now another stands out.
        """
        table, config = self._tables[key], self.config
        found = shifted(table, config.steps, config.bounds.ratio)
        if found is None or not slow <= set(found.ranks) or self.state.slow[key].has_moved(table.total):
            return None
        excess = found.after - found.before
        if excess < config.impact * step or found.after > longest or not self._lacks_peers(view, table, found.ranks):
            return None
        places = places_of(view, found.ranks, table.ranks)
        return (found, places) if places else None

    def _of_a_place(
        self, view: AttemptView, window: AttemptWindow, key: str, found: Shift, places: list[Place], step: int
    ) -> Anomaly:
        excess = found.after - found.before
        iteration, time = self.state.shifted.setdefault(key, (found.iteration, found.time))
        grounds = grounds_of_place(view, self._tables, key, found.ranks, places, self.config.steps)
        why = f"own work {timer_of(key)} of all of {places[0].name} {found.after / found.before:.2f} times its own past"
        return self.anomaly(
            window,
            key,
            onset=time,
            axis="space",
            layer="metric",
            symptom="slowdown",
            area=_area(grounds, key),
            grounds=grounds,
            severity="critical" if excess >= self.config.critical * step else "warning",
            text=f"{timer_of(key)} of {said_ranks(found.ranks)}, all of {places[0].name}, rose from "
            f"{found.before / 1e6:.1f} to {found.after / 1e6:.1f} ms",
            peers=f"nobody else's did; {excess / step:.0%} of a step",
            iteration=iteration,
            phase=view.phase,
            suspects=[view.suspect(rank, 0.7, why) for rank in found.ranks],
            victims=sorted(set(view.members) - set(found.ranks)),
            metric=timer_of(key),
        )

    def _lacks_peers(self, view: AttemptView, table: StepTable, ranks: list[int]) -> bool:
        """Whether the ranks are too many among their peers for these to tell, or all of their peers."""
        groups = [set(group) & set(table.ranks) for group in view.peer_groups()]
        mine = [group for group in groups if group & set(ranks)]
        return any(len(group & set(ranks)) > self.config.rotating * len(group) for group in mine)

    def _text(self, case: Case, worst: Standing, grounds: str) -> str:
        steps = self.config.steps
        told = (
            f"{timer_of(case.key)} of rank {worst.rank} {worst.middle(worst.values, steps) / 1e6:.1f} ms, "
            f"{worst.middle(worst.ratios, steps):.2f} times its peers' median "
            f"in {len(worst.flagged(steps))} of the last {worst.judged_by(steps)} steps"
        )
        told += f"; all of {_said(case.places)} is slow" if case.places else ""
        if grounds == "slow_or_waits":
            told += f"; timers of {said_ranks(case.unaccounted)} leave as much of its steps open"
        return told + (f"; {said_ranks(case.waiting)} also waits longer than peers" if case.waiting else "")

    def _suspect(self, view: AttemptView, key: str, one: Standing, step: int) -> Suspect:
        flagged, steps = len(one.flagged(self.config.steps)), one.judged_by(self.config.steps)
        what = f"{'own work' if is_own(key) else 'time in'} {timer_of(key)}"
        ratio = one.middle(one.ratios, self.config.steps)
        why = f"{what} {ratio:.2f} times its peers' median, {flagged} of {steps} steps"
        weight = flagged / steps + min(1.0, one.cost(self.config.steps) / step)
        return view.suspect(one.rank, round(min(0.99, 0.5 + weight / 4), 2), why)


def _said(places: list[Place]) -> str:
    """What all of them are in words; what is a node and a replica as well may be slow as either."""
    replica = [one.name for one in places[1:] if one.kind == "replica"]
    return f"{places[0].name}, which is {replica[0]}," if replica else places[0].name


def _severity(grounds: str, impact: float, critical: float) -> Severity:
    """What rank 0 does more by design is nothing to wake anybody for."""
    if grounds == "slow_first_rank":
        return "info"
    return "critical" if impact >= critical else "warning"


def _area(grounds: str, key: str) -> Area:
    if grounds in WORKLOAD:
        return "workload"
    return "data" if is_of_data(timer_of(key)) else "compute"
