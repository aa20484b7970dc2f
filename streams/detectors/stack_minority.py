"""Stacks during a stall (hang): who is outside communication while the peers wait inside it.

Victims wait in a collective; the one they wait for does not. The minority is compared only while the job stands still,
by samples taken after the last iteration, so that ordinary work between two steps is never taken for a fault. It is
named only where it makes no progress by all that is seen of it: the same place over samples, or a process that does
nothing, and no line of its own. Roles may differ by design, a controller or rollout worker idles while trainers wait,
and so may a whole pipeline stage: who stands outside with most of its role, or with all of its stage, is held against
nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, Severity, SignatureCount, StackSpan, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.member import WAITING
from streams.stack_classes import by_reason
from streams.stacks import frame_name, function_of, is_main, place, python_frames
from streams.stall import Stall, StallRule, active, stall_of, stands, stuck
from streams.view import AttemptView

SAID_FAILURES = 3
LONGEST_REASON = 80
_TRYING = ("retry", "retries", "attempt", "timeout", "timed out", "waiting", "still", "slow", "stall", "fail", "error")
"""Words of who does not get on."""
_COLLECTING = re.compile(r"^_?(?:Py)?_?gc_?collect|^collect_with_callback$|^delete_garbage$|^subtract_refs$")


class StackMinorityConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``observed`` is the least share of ranks that must have a sample."""

    stall: StallRule = StallRule()
    observed: float = 0.6

    def __post_init__(self) -> None:
        require(self, shares=("observed",))


class StackMinorityState(msgspec.Struct, kw_only=True):
    """No state: the attempt's view remembers the samples."""


class _Sides(msgspec.Struct, frozen=True):
    """The ranks with a sample: who waits in communication, who stands outside, and of those who has peers that wait.

    Who collects garbage is on neither side.
    """

    waiting: list[int]
    outside: list[int]
    apart: list[int]


@register
class StackMinority(JobDetector[StackMinorityConfig, StackMinorityState]):
    """Contrasts the ranks' main threads, and looks at a suspect's loader for what it does."""

    name = "stack_minority"
    grounds = frozenset(
        {
            "outside_communication",
            "several_outside",
            "perhaps_outside",
            "outside_by_design",
            "all_in_communication",
            "one_unsampled",
        }
    )
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
        sides = _sides(view, main)
        if not sides.waiting:
            sides = _at_one_place(main, self.config.stall)
        outside, waiting = sides.outside, sides.waiting
        unobserved = sorted(view.expected - set(main))
        if not waiting or (len(outside) >= len(waiting) and not sides.apart):
            return []
        rule = self.config.stall
        certain = [rank for rank in main if stuck(view, window, stall, rank, rule)]
        moving = _talking(window, stall, sides, main)
        if unobserved:
            # Own code may wait in a way of its own, as the others do in theirs, for one that is not seen.
            moving.update(rank for rank in sides.apart if main[rank].activity == "own")
        moving.update(_on_the_way(sides, main))
        silent = [rank for rank in certain if rank not in moving]
        grounds = _grounds(sides, main, silent, unobserved)
        named = sides.apart if grounds == "outside_communication" else []
        # A window that began before the stall shows what the process did before it.
        busy = window.start >= stall.since and any(active(window, rank, rule) for rank in sides.apart)
        area = self._area(stall, main[sides.apart[0]]) if sides.apart else "unknown"
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
                text=self._text(view, stall, sides, main, unobserved),
                peers=f"{said_ranks(waiting)} wait in {where}",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[self._suspect(view, rank, main[rank]) for rank in named],
                victims=waiting,
                unobserved=unobserved,
            )
        ]

    def _text(
        self, view: AttemptView, stall: Stall, sides: _Sides, main: dict[int, StackSpan], unobserved: list[int]
    ) -> str:
        unseen = _unseen(view, stall, unobserved)
        shown = sides.apart or sides.outside
        if not shown and len(unobserved) == 1:
            return f"{unseen}; all {len(sides.waiting)} others wait in communication"
        more = f"; {unseen}" if unseen else ""
        if not shown:
            return f"all {len(sides.waiting)} observed ranks wait in communication; no stack tells them apart{more}"
        said = [f"rank {rank} in {place(main[rank].frames)}{self._helpers(view, rank)}" for rank in shown[:4]]
        rest = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
        like = "" if sides.apart else ", as all of their role or stage are"
        return f"{'; '.join(said)}{rest}{like}, while {said_ranks(sides.waiting)} wait in communication{more}"

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
        return view.suspect(rank, 0.95 if span.samples > 1 else 0.85, why, "blocker")

    def _area(self, stall: Stall, span: StackSpan) -> Area:
        if span.activity == "data":
            return "data"
        if span.activity == "checkpoint" or stall.phase == "checkpoint":
            return "checkpoint"
        return "unknown"


def _sides(view: AttemptView, main: dict[int, StackSpan]) -> _Sides:
    waiting = [rank for rank, span in main.items() if span.activity in WAITING]
    outside = [rank for rank, span in main.items() if span.activity not in WAITING and not _collects(span)]
    waits, out = set(waiting), set(outside)
    by_design: set[int] = set()
    for role in _roles(view, main):
        if len(out.intersection(role)) >= len(waits.intersection(role)):
            by_design.update(role)
    for stage in _stages(view, main):
        if len(stage) > 1 and out.issuperset(stage):
            by_design.update(stage)
    return _Sides(waiting, outside, [rank for rank in outside if rank not in by_design])


def _roles(view: AttemptView, main: dict[int, StackSpan]) -> list[list[int]]:
    """The ranks of each role; of a rank whose role is not known it is the only one, where there is but one."""
    roles: dict[str, list[int]] = {}
    for rank in main:
        roles.setdefault(view.members[rank].identity.role, []).append(rank)
    return [roles[role] for role in sorted(roles)] if len(set(roles) - {""}) > 1 else [list(main)]


def _stages(view: AttemptView, main: dict[int, StackSpan]) -> list[list[int]]:
    """The ranks of each role and pipeline stage, where stages are known."""
    stages: dict[tuple[str, str], list[int]] = {}
    for rank in main:
        stage = view.coordinates(rank).get("pp")
        if stage is not None:
            stages.setdefault((view.members[rank].identity.role, str(stage)), []).append(rank)
    return [stages[key] for key in sorted(stages)]


def _collects(span: StackSpan) -> bool:
    """Whether the thread was met while it collected garbage, which it does anywhere."""
    last = span.frames[-1]
    return last.file.endswith("gc.py") or any(_COLLECTING.search(function_of(frame)) for frame in span.frames[-4:])


def _at_one_place(main: dict[int, StackSpan], rule: StallRule) -> _Sides:
    """Where nobody is seen in communication: most stand for long at one line, where they wait for their devices.

    Against them only those are held that are seen to load data or to write: other code may wait for its device, too.
    """
    still = {rank: span for rank, span in main.items() if span.activity == "own" and stands(span, rule)}
    positions = Counter(span.position for span in still.values())
    most = max(positions, key=lambda position: (positions[position], position), default="")
    waiting = [rank for rank, span in still.items() if span.position == most]
    if 2 * len(waiting) <= len(main):
        return _Sides([], [], [])
    outside = [rank for rank, span in main.items() if span.activity in ("data", "checkpoint")]
    return _Sides(waiting, outside, outside)


def _on_the_way(sides: _Sides, main: dict[int, StackSpan]) -> set[int]:
    """Who of those apart is in own code that the others came through: a call there may wait as theirs do."""
    through = {frame_name(frame) for rank in sides.waiting for frame in main[rank].frames}
    own = {rank: python_frames(main[rank].frames)[-1] for rank in sides.apart if main[rank].activity == "own"}
    return {rank for rank, frame in own.items() if frame_name(frame) in through}


def _talking(window: AttemptWindow, stall: Stall, sides: _Sides, main: dict[int, StackSpan]) -> set[int]:
    """Who of those apart printed, since it was first seen at its place, what most that wait do not print too.

    What libraries' own threads print of a hang is no progress, nor is the word that somebody waits or tries again.
    """
    apart, waiting = set(sides.apart), set(sides.waiting)
    own: dict[str, set[int]] = {}
    for rank, one in _printed(window, apart):
        if one.last > max(main[rank].first, stall.settled) and not (
            one.predefined or one.chatter or _tries(one.masked)
        ):
            own.setdefault(one.signature, set()).add(rank)
    shared: dict[str, set[int]] = {}
    for rank, one in _printed(window, waiting) if own else ():
        if one.signature in own:
            shared.setdefault(one.signature, set()).add(rank)
    few = [ranks for signature, ranks in own.items() if 2 * len(shared.get(signature, ())) <= len(waiting)]
    return {rank for ranks in few for rank in ranks}


def _printed(window: AttemptWindow, ranks: set[int]) -> Iterator[tuple[int, SignatureCount]]:
    for summary in window.summaries:
        if summary.identity.rank in ranks:
            yield from ((summary.identity.rank, one) for one in summary.signatures)


def _tries(text: str) -> bool:
    said = text.lower()
    return any(word in said for word in _TRYING)


def _unseen(view: AttemptView, stall: Stall, unobserved: list[int]) -> str:
    """Who could not be sampled, and why, where it is known."""
    why = {rank: _failure(view, stall, rank) for rank in unobserved}
    known = by_reason((rank, reason) for rank, reason in why.items() if reason)[:SAID_FAILURES]
    told = [f"{said_ranks(ranks)} could not be sampled ({reason})" for reason, ranks in known]
    rest = set(unobserved).difference(*(ranks for _, ranks in known))
    return "; ".join([*told, *([f"{said_ranks(rest)} could not be sampled"] if rest else [])])


def _failure(view: AttemptView, stall: Stall, rank: int) -> str:
    """Why the last sample of the rank failed in the stall, or nothing."""
    member = view.members.get(rank)
    time, reason = member.failures.get("trainer", (0, "")) if member is not None else (0, "")
    return reason[:LONGEST_REASON] if time >= stall.settled else ""


def _grounds(sides: _Sides, main: dict[int, StackSpan], silent: list[int], unobserved: list[int]) -> str:
    """Why these are named, or are not: several at different places outside may be each other's victims."""
    apart = sides.apart
    if not sides.outside:
        return "one_unsampled" if len(unobserved) == 1 else "all_in_communication"
    if not apart:
        return "outside_by_design"
    if not set(apart) <= set(silent):
        return "perhaps_outside"
    if len(apart) == 1 or len({main[rank].identity for rank in apart}) == 1:
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
