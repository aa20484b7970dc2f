"""Stacks during a stall (hang): who is outside communication while the peers wait inside it.

Victims wait in a collective; the one they wait for does not. The minority is compared only while the job stands still,
by samples taken after the last iteration, so that ordinary work between two steps is never taken for a fault.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, Severity, StackSpan, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.stacks import is_main, place
from streams.stall import Stall, StallRule, active, stall_of, stuck
from streams.view import WAITING, AttemptView, AttemptWindow


class StackMinorityConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``observed`` is the least share of ranks that must have a sample."""

    stall: StallRule = StallRule()
    observed: float = 0.6

    def __post_init__(self) -> None:
        require(self, shares=("observed",))


class StackMinorityState(msgspec.Struct, kw_only=True):
    """No state: the attempt's view remembers the samples."""


@register
class StackMinority(JobDetector[StackMinorityConfig, StackMinorityState]):
    """Contrasts the ranks' main threads, and looks at a suspect's loader for what it does."""

    name = "stack_minority"
    config_type = StackMinorityConfig
    state_type = StackMinorityState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only during a stall."""
        stall = stall_of(view, window, self.config.stall)
        if stall is None:
            return []
        main = view.main_spans(stall.settled)
        if len(main) < self.config.observed * len(view.expected):
            return []
        return self._contrast(view, window, stall, main)

    def _contrast(
        self, view: AttemptView, window: AttemptWindow, stall: Stall, main: dict[int, StackSpan]
    ) -> list[Anomaly]:
        waiting = [rank for rank, span in main.items() if span.activity in WAITING]
        outside = [rank for rank, span in main.items() if span.activity not in WAITING and span.frames]
        unobserved = sorted(view.expected - set(main))
        if not waiting or len(outside) >= len(waiting):
            return []
        rule = self.config.stall
        certain = [rank for rank in main if stuck(view, window, stall, rank, rule)]
        grounds = _grounds(outside, main, certain)
        # A window that began before the stall shows what the process did before it.
        busy = window.start >= stall.since and any(active(window, rank, rule) for rank in outside)
        named = outside if grounds == "outside_communication" else []
        area = self._area(stall, main[outside[0]]) if named else "unknown"
        where = place(main[waiting[0]].frames)
        return [
            self.anomaly(
                window,
                "job",
                onset=stall.since,
                axis="space",
                layer="stack",
                symptom="hang",
                area=area,
                grounds=grounds,
                severity=_severity(stall, main, certain, grounds, busy),
                text=self._text(view, outside, waiting, main),
                peers=f"{said_ranks(waiting)} wait in {where}",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[self._suspect(view, rank, main[rank]) for rank in named],
                victims=waiting,
                unobserved=unobserved,
            )
        ]

    def _text(self, view: AttemptView, outside: list[int], waiting: list[int], main: dict[int, StackSpan]) -> str:
        if not outside:
            return f"all {len(waiting)} observed ranks wait in communication; no stack tells them apart"
        said = [f"rank {rank} in {place(main[rank].frames)}{self._helpers(view, rank)}" for rank in outside[:4]]
        more = f" and {len(outside) - 4} more" if len(outside) > 4 else ""
        return f"{'; '.join(said)}{more}, while {said_ranks(waiting)} wait in communication"

    def _helpers(self, view: AttemptView, rank: int) -> str:
        """What the rank's loader processes do, where one of them is at work rather than idle."""
        spans = sorted(view.members[rank].spans.items())
        busy = [span for _, span in spans if span.process_type == "dataloader" and is_main(span)]
        working = [span for span in busy if span.activity != "idle" and span.frames]
        return f", its loader in {place(working[0].frames)}" if working else ""

    def _suspect(self, view: AttemptView, rank: int, span: StackSpan) -> Suspect:
        where = f"{place(span.frames)}{self._helpers(view, rank)}"
        samples = f"{span.samples} samples at one place" if span.samples > 1 else "one sample during the stall"
        why = f"outside communication while its peers wait: {where} ({samples})"
        return view.suspect(rank, 0.95 if span.samples > 1 else 0.85, why)

    def _area(self, stall: Stall, span: StackSpan) -> Area:
        if span.activity == "data":
            return "data"
        if span.activity == "checkpoint" or stall.phase == "checkpoint":
            return "checkpoint"
        return "unknown"


def _grounds(outside: list[int], main: dict[int, StackSpan], certain: list[int]) -> str:
    """Why these are named, or are not: several at different places outside may be each other's victims."""
    if not outside:
        return "all_in_communication"
    if not set(outside) <= set(certain):
        return "perhaps_outside"
    if len(outside) == 1 or len({main[rank].identity for rank in outside}) == 1:
        return "outside_communication"
    return "several_outside"


def _severity(stall: Stall, main: dict[int, StackSpan], certain: list[int], grounds: str, busy: bool) -> Severity:
    """Information while some outside, or most of all, may still move: they must have been seen at one place twice.

    One whose process is active may only have long work to do, while the others wait for it.
    """
    if grounds == "perhaps_outside" or 2 * len(certain) < len(main):
        return "info"
    if busy:
        return "warning" if stall.critical else "info"
    return "critical" if stall.critical else "warning"
