"""Whether an attempt stands still: its iterations have stopped although its processes live.

Iterations whose lines print no time may have gone on until now for all that is known, so they prove no stall.
A stall says nothing about who; stacks and collectives contrast the ranks only while there is one.
"""

from __future__ import annotations

import re

import msgspec

from schemas.results import StackSpan, Window
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.iterations import ProgressClock
from streams.lines.phases import QUIET_PHASES, SHUTDOWN
from streams.member import WAITING
from streams.stops import GOES_ON_NS
from streams.view import AttemptView

SECOND = 1_000_000_000
LATE_REPORTS = 2
"""Of so many intervals between lines that tell of several iterations at once none may have come."""
SEEN_NS = 120 * SECOND
"""What stacks showed standing longer ago may be over."""
SUSPENDED = 0.9
"""The share of a job's ranks whose processes a signal has stopped from which on the job is suspended."""


class StallRule(msgspec.Struct, frozen=True, kw_only=True):
    """Silence of at least ``steps`` median steps and ``silence_s`` seconds; from ``critical_s`` on it is critical.

    Before the first iteration only ``start_up_s`` without a line from anybody counts, with all processes frozen, or
    those frozen for which all others wait; ``warm_up_s`` where only stacks show that. Up to ``warm_up_steps``
    iterations kernels may be compiled anew: it takes ``warm_up_s`` then, unless so much is frozen. In both, who waits
    for a program that it has begun is not frozen.

    Phases that are quiet anyway need ``quiet_silence_s``, unless all processes are frozen there, and so does the time
    behind the last iteration, where stacks have to show who waits for whom as well. Frozen is what takes at most
    ``frozen_cpu_percent`` of a core and ``frozen_switches`` context switches in a window. A sample shows the stall
    if it was taken ``settle_steps`` steps and ``settle_s`` seconds after its beginning.
    """

    steps: float = 5.0
    silence_s: float = 8.0
    critical_s: float = 30.0
    start_up_s: float = 30.0
    warm_up_steps: int = 3
    warm_up_s: float = 180.0
    quiet_silence_s: float = 600.0
    frozen_cpu_percent: float = 2.0
    frozen_switches: float = 5.0
    settle_steps: float = 2.0
    settle_s: float = 1.0

    def __post_init__(self) -> None:
        require(self, above_0=("steps", "silence_s", "critical_s", "start_up_s", "quiet_silence_s", "warm_up_s"))


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` is the latest iteration's time, or when a checkpoint or evaluation behind it was over.

    ``silence`` is how long ago that is at the window's end.

    Before the first iteration, ``since`` is the latest line's time; there is no ``iteration``, and no ``step`` (0).
    """

    since: int
    silence: int
    step: int
    iteration: int | None
    phase: str
    critical: bool
    settled: int


def stall_of(view: AttemptView, window: AttemptWindow, rule: StallRule) -> Stall | None:
    """The stall at the window's end or, where it was told to end in it, before that; null where none can be known."""
    return window.once(("stall", rule), view, lambda: _stall_of(view, window, rule))


def _stall_of(view: AttemptView, window: AttemptWindow, rule: StallRule) -> Stall | None:
    if _ends_itself(view):
        return _in_shutdown(view, window, rule)
    now = _judged_at(view, window)
    if now is None or suspended(view, window) or not view.clock.is_timed:
        return None
    begins = view.clock.time is None
    stall = _start_up(view, window, rule, now) if begins else _in_training(view, window, rule, now)
    if stall is None or not alive_since(view, stall.since + min(stall.silence // 2, 10 * SECOND)):
        return None
    return None if at_work(view, window, stall, rule) or moving(view, stall) else stall


def _ends_itself(view: AttemptView) -> bool:
    """Whether training came to its own end, and some rank's process may still be there."""
    stopped = view.stopped is not None or view.superseded is not None
    return view.finished and not stopped and any(member.exit is None for member in view.members.values())


def _in_shutdown(view: AttemptView, window: AttemptWindow, rule: StallRule) -> Stall | None:
    """A stall behind the last iteration: to save or upload what was trained may take long, and iterations end anyway.

    So only stacks prove one: most ranks wait for few that stand, each at one line, for longer than a quiet phase lasts.
    """
    since = view.clock.time
    if since is None or window.end - since < rule.quiet_silence_s * SECOND:
        return None
    stall = Stall(
        since=since,
        silence=window.end - since,
        step=view.clock.step_ns or 0,
        iteration=view.clock.iteration,
        phase=SHUTDOWN,
        critical=True,
        settled=since + int(rule.settle_s * SECOND),
    )
    return stall if _few_stand(view, window, stall, rule) and alive_since(view, window.start) else None


def _judged_at(view: AttemptView, window: AttemptWindow) -> int | None:
    """As of when (ns) the attempt is judged: the window's end, or when it was told to end; null where that was before.

    What stood still before somebody was told to end did so, whatever has come of it by the end of the window. So does
    what was told no time: the earliest moment counts that the words leave open.
    """
    if view.stopped is None:
        return None if over(view) else window.end
    told = view.stopped - view.stops.loose
    ends = [member.exit.time if member.exit is not None else None for member in view.members.values()]
    gone = all(end is not None and end < told for end in ends)
    return None if gone or view.finished or view.superseded is not None or told <= window.start else told


def stopped_ranks(window: AttemptWindow, samples: int = 1) -> list[int]:
    """The ranks of which all samples of their process, at least so many, show that a signal has stopped it."""
    table = window.gauges
    sampled, stopped = table.own("process_running", "counts"), table.own("process_stopped", "counts")
    return table.where((sampled >= samples) & (sampled == stopped))


def suspended(view: AttemptView, window: AttemptWindow) -> bool:
    """Whether nearly all ranks' processes were seen stopped: then it is the job's owner who did so.

    Who was not sampled is not known to be stopped, so a few that are do not stand for the job.
    """
    stopped = view.members.keys() & stopped_ranks(window)
    return bool(stopped) and len(stopped) >= SUSPENDED * len(view.members)


def at_work(view: AttemptView, window: AttemptWindow, stall: Stall, rule: StallRule) -> bool:
    """Whether most sampled ranks are at work rather than waiting or frozen: then it is a quiet phase without a name.

    Who stands at one line for long does not work there: from its own code, too, a rank may wait for its device.
    """
    spans = view.main_spans(stall.settled)
    working = sum(
        span.activity not in WAITING and bool(span.frames) and not stands(span, rule) for span in spans.values()
    )
    return 2 * working > len(spans) and not frozen(window.summaries, rule)


def stands(span: StackSpan, rule: StallRule) -> bool:
    """Whether a thread was seen at one line again and again for as long as makes a stall critical."""
    return span.samples > 1 and span.last - span.first >= rule.critical_s * SECOND


def silence_ns(clock: ProgressClock, rule: StallRule) -> int:
    """How long no iteration must come for a standstill (ns): some lines tell of many iterations at once."""
    step = clock.step_ns or 0
    stride = LATE_REPORTS * clock.stride * step if clock.stride > 1 else 0
    return int(max(rule.steps * step, rule.silence_s * SECOND, stride))


def _in_training(view: AttemptView, window: AttemptWindow, rule: StallRule, now: int) -> Stall | None:
    clock = view.clock
    if clock.time is None or clock.step_ns is None:
        return None
    since = _awaited_since(view, rule, now)
    silence = now - since
    if silence < silence_ns(clock, rule):
        return None
    stall = Stall(
        since=since,
        silence=silence,
        step=clock.step_ns,
        iteration=clock.iteration,
        phase=view.phase,
        critical=silence >= rule.critical_s * SECOND,
        settled=since + int(max(rule.settle_steps * clock.step_ns, rule.settle_s * SECOND)),
    )
    warm = clock.told > rule.warm_up_steps
    quiet = view.phase in QUIET_PHASES and silence < rule.quiet_silence_s * SECOND
    if (quiet or (not warm and silence < rule.warm_up_s * SECOND)) and not _frozen_for_all(view, window, stall, rule):
        return None
    if not warm and silence < rule.quiet_silence_s * SECOND and _awaits_a_program(view, stall):
        return None
    return stall


def _awaited_since(view: AttemptView, rule: StallRule, now: int) -> int:
    """Since when (ns) an iteration is awaited: the latest one or, behind it, the end of a checkpoint or evaluation.

    Only of one into which ranks went from training, before no iteration had come for long, and once nobody is in one.
    What began before the latest iteration did not hold it up, and nothing moves a standstill that was there by then.
    """
    clock = view.clock
    since = iterated = clock.time or 0
    step = clock.step_ns or 0
    if view.stood is not None and view.stood >= iterated:
        return view.stood
    if view.phase in QUIET_PHASES:
        return iterated
    for began, ended in sorted(view.quiet):
        if iterated - 2 * step <= began <= since + silence_ns(clock, rule):
            since = max(since, min(ended, now))
    return since


def _frozen_for_all(view: AttemptView, window: AttemptWindow, stall: Stall, rule: StallRule) -> bool:
    """Whether everybody is frozen, or those few for which the others wait."""
    return frozen(window.summaries, rule) or blockers_frozen(view, window, stall, rule)


_PROGRAMS = re.compile(r"(?:^|/)(?:subprocess|cpp_extension|async_compile|subproc_pool)\.py$")


def _awaits_a_program(view: AttemptView, stall: Stall) -> bool:
    """Whether any rank outside communication waits for a program that it has begun, mostly a compiler."""
    spans = view.main_spans(stall.settled).values()
    return any(
        _PROGRAMS.search(frame.file) is not None
        for span in spans
        if span.activity not in WAITING
        for frame in span.frames
    )


def blockers_frozen(view: AttemptView, window: AttemptWindow, stall: Stall, rule: StallRule) -> bool:
    """Whether the few ranks outside communication are frozen; those that wait may well spin."""
    spans = view.main_spans(stall.settled)
    outside = {rank for rank, span in spans.items() if span.activity not in WAITING}
    if not outside or 2 * len(outside) >= len(spans):
        return False
    apart = [summary for summary in window.summaries if summary.identity.rank in outside]
    return frozen(apart, rule)


def _start_up(view: AttemptView, window: AttemptWindow, rule: StallRule, now: int) -> Stall | None:
    """A stall before the first iteration: nobody prints any more, and nobody does a thing for whom others wait."""
    since = max((member.last_log for member in view.members.values() if member.last_log is not None), default=None)
    if since is None or now - since < rule.start_up_s * SECOND:
        return None
    silence = now - since
    settled = since + int(rule.settle_s * SECOND)
    stall = Stall(
        since=since, silence=silence, step=0, iteration=None, phase=view.phase, critical=True, settled=settled
    )
    if not _frozen_for_all(view, window, stall, rule) and not _one_stands(view, window, stall, rule):
        return None
    return None if silence < rule.quiet_silence_s * SECOND and _awaits_a_program(view, stall) else stall


def _one_stands(view: AttemptView, window: AttemptWindow, stall: Stall, rule: StallRule) -> bool:
    """Whether stacks alone show few standing for whom most wait, for as long as first iterations may take.

    Who is known to compute builds or reads what training needs, which may take long at one line.
    """
    if stall.silence < rule.warm_up_s * SECOND or not _few_stand(view, window, stall, rule):
        return False
    spans = view.main_spans(stall.settled)
    return not any(active(window, rank, rule) for rank, span in spans.items() if span.activity not in WAITING)


def _few_stand(view: AttemptView, window: AttemptWindow, stall: Stall, rule: StallRule) -> bool:
    """Whether most sampled ranks wait in communication, and all others, at least one, were seen standing of late."""
    spans = view.main_spans(stall.settled)
    apart = [span for span in spans.values() if span.activity not in WAITING]
    few = 0 < 2 * len(apart) < len(spans)
    return few and all(stands(span, rule) and window.end - span.last < SEEN_NS for span in apart)


def moving(view: AttemptView, stall: Stall) -> bool:
    """Whether most sampled ranks were seen at two places since: iterations go on, only their lines are missing."""
    spans = view.main_spans(stall.settled)
    moved = [view.members[rank].moved for rank in spans]
    return 2 * sum(pair is not None and pair[0] >= stall.settled for pair in moved) > len(spans) > 0


def stuck(view: AttemptView, window: AttemptWindow, stall: Stall, rank: int, rule: StallRule) -> bool:
    """Whether a rank was seen at one place twice since, or once while its process neither computed nor switched."""
    span = view.members[rank].main_span(stall.settled)
    if span is None:
        return False
    if span.samples > 1 and span.first >= stall.since:
        return True
    return frozen(window.of(rank), rule)


def active(window: AttemptWindow, rank: int, rule: StallRule) -> bool:
    """Whether the rank's process is known to have computed or switched context in the window."""
    own = window.of(rank)
    sampled = any(summary.measured.own("cpu_percent") for summary in own)
    return sampled and not frozen(own, rule)


def over(view: AttemptView) -> bool:
    """Whether the attempt has ended, was stopped by its owner or gave way to the next.

    By the ends of ranks only once those of all that there should be are known, and no iterations have come long since.
    """
    if view.finished or view.stopped is not None or view.superseded is not None:
        return True
    ends = [member.exit.time if member.exit is not None else None for member in view.members.values()]
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends) or not view.expected <= view.members.keys():
        return False
    return (view.iterated or 0) <= max(known) + GOES_ON_NS


def alive_since(view: AttemptView, time: int) -> bool:
    """Whether at least half of the ranks showed life after ``time``; silence of all sources is no stall."""
    living = sum(member.last_life > time for member in view.members.values())
    return 2 * living >= len(view.members) > 0


def frozen(summaries: list[Window], rule: StallRule) -> bool:
    """Whether every process of ``summaries`` that was sampled neither computed nor switched context; one must be."""
    seen = False
    for summary in summaries:
        cpu, switches = summary.measured.own("cpu_percent"), summary.measured.own("ctx_switches")
        if cpu is None or switches is None:
            continue
        if cpu.mean > rule.frozen_cpu_percent or switches.last - switches.first > rule.frozen_switches:
            return False
        seen = True
    return seen
