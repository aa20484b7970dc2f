"""Whether an attempt stands still: its iterations have stopped although its processes live.

A stall says nothing about who; stacks and collectives contrast the ranks only while there is one.
"""

from __future__ import annotations

import msgspec

from streams.view import AttemptView, AttemptWindow

SECOND = 1_000_000_000
QUIET_PHASES = frozenset({"checkpoint", "evaluation"})


class StallRule(msgspec.Struct, frozen=True, kw_only=True):
    """Silence of at least ``steps`` median steps and ``silence_s`` seconds.

    Phases that are quiet anyway need ``quiet_silence_s``, unless all processes are frozen there: at most
    ``frozen_cpu_percent`` of a core and ``frozen_switches`` context switches in a window.
    """

    steps: float = 5.0
    silence_s: float = 8.0
    quiet_silence_s: float = 600.0
    frozen_cpu_percent: float = 2.0
    frozen_switches: float = 5.0


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` is the latest iteration's time, ``silence`` how long ago that is at the window's end."""

    since: int
    silence: int
    step: int
    iteration: int
    phase: str


def stall_of(view: AttemptView, window: AttemptWindow, rule: StallRule) -> Stall | None:
    """The stall at the window's end, or null where there is none or none can be known."""
    clock = view.clock
    step = clock.step_ns
    if clock.time is None or clock.iteration is None or step is None or over(view):
        return None
    silence = window.end - clock.time
    if silence < max(rule.steps * step, rule.silence_s * SECOND):
        return None
    if not alive_since(view, clock.time + min(silence // 2, 10 * SECOND)):
        return None
    phase = view.phase
    if phase in QUIET_PHASES and silence < rule.quiet_silence_s * SECOND and not frozen(window, rule):
        return None
    return Stall(since=clock.time, silence=silence, step=step, iteration=clock.iteration, phase=phase)


def over(view: AttemptView) -> bool:
    """Whether the attempt has ended, was stopped by its owner or gave way to the next."""
    if view.finished or view.stopped is not None or view.superseded is not None:
        return True
    members = view.members.values()
    return bool(members) and all(member.exit is not None for member in members)


def alive_since(view: AttemptView, time: int) -> bool:
    """Whether at least half of the ranks showed life after ``time``; silence of all sources is no stall."""
    living = sum(member.last_life > time for member in view.members.values())
    return 2 * living >= len(view.members) > 0


def frozen(window: AttemptWindow, rule: StallRule) -> bool:
    """Whether every rank whose process was sampled neither computed nor switched context in the window."""
    seen = False
    for summary in window.summaries:
        gauges = {gauge.name: gauge for gauge in summary.gauges}
        cpu, switches = gauges.get("cpu_percent"), gauges.get("ctx_switches")
        if cpu is None or switches is None:
            continue
        if cpu.mean > rule.frozen_cpu_percent or switches.last - switches.first > rule.frozen_switches:
            return False
        seen = True
    return seen
