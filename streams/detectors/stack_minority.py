"""Stacks during a stall (hang): who is outside communication while the peers wait inside it.

Victims wait in a collective; the one they wait for does not. The minority is compared only while the job stands still,
by samples taken after the last iteration, so that ordinary work between two steps is never taken for a fault.
"""

from __future__ import annotations

import msgspec

from schemas.identity import rank_ranges
from schemas.results import Activity, Anomaly, Area, StackSpan, Suspect
from streams.detectors.registry import JobDetector, register
from streams.stacks import is_main, joined, place
from streams.stall import Stall, StallRule, stall_of
from streams.view import AttemptView, AttemptWindow

WAITING: frozenset[Activity] = frozenset({"communication", "engine"})


class StackMinorityConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``observed`` is the least share of ranks that must have a sample, ``settle_steps`` when a sample counts."""

    stall: StallRule = StallRule()
    observed: float = 0.6
    settle_steps: float = 2.0
    settle_s: float = 1.0


class StackMinorityState(msgspec.Struct, kw_only=True):
    """Each rank's latest span by ``process type|pid|thread``; one entry a thread."""

    spans: dict[int, dict[str, StackSpan]] = {}


@register
class StackMinority(JobDetector[StackMinorityConfig, StackMinorityState]):
    """Contrasts the ranks' main threads, and looks at a suspect's loader for what it does."""

    name = "stack_minority"
    config_type = StackMinorityConfig
    state_type = StackMinorityState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only during a stall."""
        self._remember(window)
        stall = stall_of(view, window, self.config.stall)
        if stall is None:
            return []
        settled = stall.since + int(max(self.config.settle_steps * stall.step, self.config.settle_s * 1e9))
        main = {}
        for rank in sorted(view.members):
            span = self._main_span(rank, settled)
            if span is not None:
                main[rank] = span
        if len(main) < self.config.observed * len(view.expected):
            return []
        return self._contrast(view, window, stall, main)

    def _remember(self, window: AttemptWindow) -> None:
        for summary in window.summaries:
            if summary.identity.rank is None or not summary.stacks:
                continue
            latest = self.state.spans.setdefault(summary.identity.rank, {})
            for span in summary.stacks:
                key = f"{span.process_type}|{span.pid}|{span.thread}"
                before = latest.get(key)
                same = before is not None and before.position == span.position
                latest[key] = joined(before, span) if same and before is not None else span
            newest = max(span.last for span in latest.values())
            # A thread that is no longer sampled has ended.
            self.state.spans[summary.identity.rank] = {
                key: span for key, span in latest.items() if span.last > newest - 60_000_000_000
            }

    def _main_span(self, rank: int, settled: int) -> StackSpan | None:
        spans = [
            span
            for span in self.state.spans.get(rank, {}).values()
            if span.process_type == "trainer" and is_main(span) and span.last >= settled
        ]
        return max(spans, key=lambda span: (span.last, span.pid), default=None)

    def _contrast(
        self, view: AttemptView, window: AttemptWindow, stall: Stall, main: dict[int, StackSpan]
    ) -> list[Anomaly]:
        waiting = [rank for rank, span in main.items() if span.activity in WAITING]
        outside = [rank for rank, span in main.items() if span.activity not in WAITING and span.frames]
        unobserved = sorted(view.expected - set(main))
        if not waiting or len(outside) >= len(waiting):
            return []
        grounds = _grounds(outside, main)
        named = outside if grounds == "outside_communication" else []
        area = self._area(view, stall, main[outside[0]]) if named else "unknown"
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
                severity="critical" if stall.critical else "warning",
                text=self._text(view, outside, waiting, main),
                peers=f"ranks {rank_ranges(waiting)} wait in {where}",
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
        said = [f"rank {rank} in {place(main[rank].frames)}{self._helpers(rank)}" for rank in outside[:4]]
        more = f" and {len(outside) - 4} more" if len(outside) > 4 else ""
        return f"{'; '.join(said)}{more}, while ranks {rank_ranges(waiting)} wait in communication"

    def _helpers(self, rank: int) -> str:
        """What the rank's loader processes do, where one of them is at work rather than idle."""
        spans = sorted(self.state.spans.get(rank, {}).items())
        busy = [span for _, span in spans if span.process_type == "dataloader" and is_main(span)]
        working = [span for span in busy if span.activity != "idle" and span.frames]
        return f", its loader in {place(working[0].frames)}" if working else ""

    def _suspect(self, view: AttemptView, rank: int, span: StackSpan) -> Suspect:
        identity = view.members[rank].identity
        samples = f"{span.samples} samples at one place" if span.samples > 1 else "one sample during the stall"
        return Suspect(
            rank=rank,
            node=identity.node,
            role=identity.role,
            coordinates=view.coordinates(rank),
            score=0.95 if span.samples > 1 else 0.85,
            why=f"outside communication while its peers wait: {place(span.frames)}{self._helpers(rank)} ({samples})",
        )

    def _area(self, view: AttemptView, stall: Stall, span: StackSpan) -> Area:
        if span.activity == "data":
            return "data"
        if span.activity == "checkpoint" or stall.phase == "checkpoint":
            return "checkpoint"
        return "unknown"


def _grounds(outside: list[int], main: dict[int, StackSpan]) -> str:
    """Why these are named, or are not: several at different places outside may be each other's victims."""
    if not outside:
        return "all_in_communication"
    if len(outside) == 1 or len({main[rank].identity for rank in outside}) == 1:
        return "outside_communication"
    return "several_outside"
