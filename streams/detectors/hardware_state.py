"""Static rules on metrics of nodes (crash, hang): ports, links, Xid, ECC, throttling, PCIe, temperature.

What changed is told with the values before and after. Hardware is rarely why a job is slow, so most changes are
information: an incident shows them where they came before it, at its place. A fault, as a port that goes down or falls
to a lower rate, warns of its node; a rank is named only where the GPU is known to be its own and the vendor's catalog
calls the code an error.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Area, HardwareChange, Severity, Suspect, Symptom
from streams.again import forget_oldest, is_due
from streams.attempt_window import AttemptWindow, Changed
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.hardware import PORT_UP, falls
from streams.hardware_words import said_change, said_device
from streams.incidents.hardware_beside import PORT_WORKS
from streams.lines.vocabulary.xid import CODES, code_of
from streams.troubles import of_others
from streams.view import AttemptView


class HardwareStateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``again_s``: what goes on changing is told again after this long. ``own_slack_s``, ``undated_s``, ``gone_s`` as
    of ``node_faults``; how exact a change is hangs on how often its metric was sampled.
    """

    again_s: float = 300.0
    own_slack_s: float = 1.0
    undated_s: float = 300.0
    gone_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("again_s", "own_slack_s", "undated_s", "gone_s"))


class HardwareStateState(msgspec.Struct, kw_only=True):
    """When each change was last told, by node, device and kind; the oldest are forgotten beyond a bound."""

    told: dict[str, int] = {}


class Rule(msgspec.Struct, frozen=True):
    """What a kind of change means: on which side the trouble is, and whether it is a fault by itself."""

    area: Area
    symptom: Symptom = "crash"
    fault: bool = False


_RULES: dict[str, Rule] = {
    "port_state": Rule("network", "hang", fault=True),
    "port_physical_state": Rule("network", "hang", fault=True),
    "link_downed": Rule("network", "hang", fault=True),
    "port_rate": Rule("network", "slowdown", fault=True),
    "link_errors": Rule("network", "slowdown"),
    "symbol_errors": Rule("network", "slowdown"),
    "receive_errors": Rule("network", "slowdown"),
    "nvlink_errors": Rule("hardware", "slowdown"),
    "pcie_replays": Rule("hardware", "slowdown"),
    "pcie_width": Rule("hardware", "slowdown"),
    "ecc_uncorrected": Rule("hardware", fault=True),
    "gpu_lost": Rule("hardware", fault=True),
    "row_remap_failure": Rule("hardware", fault=True),
    "rows_remapped_uncorrectable": Rule("hardware"),
    "rows_remapped_correctable": Rule("hardware"),
    "host_memory_errors": Rule("hardware", fault=True),
    "oom_kills": Rule("memory", "memory"),
    "throttle_reasons": Rule("hardware", "slowdown"),
    "throttle_hw_slowdown": Rule("hardware", "slowdown"),
    "throttle_hw_thermal": Rule("hardware", "slowdown"),
    "throttle_power_brake": Rule("hardware", "slowdown"),
    "throttle_sw_thermal": Rule("hardware", "slowdown"),
    "thermal_violation": Rule("hardware", "slowdown"),
}
_FOLLOWS = {
    "port_physical_state": ("port_state",),
    "port_rate": ("port_state", "port_physical_state"),
    "link_downed": ("port_state", "port_physical_state"),
}


@register
class HardwareState(JobDetector[HardwareStateConfig, HardwareStateState]):
    """Reports each change once, and again while it goes on."""

    name = "hardware_state"
    grounds = frozenset({"rank_fault", "node_fault", "port_slower", "hardware_change", PORT_WORKS})
    config_type = HardwareStateConfig
    state_type = HardwareStateState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each kind of change at each device."""
        found: dict[tuple[str, str, str], Changed] = {}
        for changed in window.hardware:
            change = changed.change
            if change.kind != "xid" and change.kind not in _RULES:
                continue
            if not _beside_a_fall(changed, window.hardware) and not self._of_others(view, change):
                found.setdefault((changed.node, change.device, _subject(change)), changed)
        alike: dict[str, int] = {}
        for _, _, subject in found:
            alike[subject] = alike.get(subject, 0) + 1
        told = [
            self._anomaly(view, window, changed, key[2], alike[key[2]])
            for key, changed in sorted(found.items())
            if is_due(self.state.told, "|".join(key), changed.change.time, self.config.again_s)
        ]
        forget_oldest(self.state.told)
        return told

    def _of_others(self, view: AttemptView, change: HardwareChange) -> bool:
        own_slack_s, gone_s = self.config.own_slack_s, self.config.gone_s
        return of_others(view, change.time, change.precision_ns, slack_s=own_slack_s, gone_s=gone_s)

    def _anomaly(self, view: AttemptView, window: AttemptWindow, changed: Changed, subject: str, alike: int) -> Anomaly:
        change, rule = changed.change, _rule_of(changed.change)
        # What may lie before the attempt is not known to be of it.
        dated = change.precision_ns <= self.config.undated_s * 1e9 and change.time - change.precision_ns >= view.first
        fault = rule.fault and dated
        fatal = fault and changed.rank is not None and change.kind == "xid" and _is_the_gpus(int(change.after))
        severity: Severity = "critical" if fatal else "warning" if fault else "info"
        used = "" if changed.rank is None else f"rank {changed.rank}'s "
        return self.anomaly(
            window,
            f"{changed.node}|{change.device}|{subject}",
            onset=change.time,
            precision_ns=change.precision_ns,
            axis="time",
            layer="hardware",
            symptom=rule.symptom,
            area=rule.area,
            grounds="rank_fault" if fatal else _grounds(change, fault=fault),
            severity=severity,
            text=f"{used}{said_device(changed.node, change.device, change.kind)}: {said_change(change)}",
            peers=f"devices that changed alike: {alike}; nodes that run the job: {len(view.node_names)}",
            metric=change.name,
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[_suspect(view, changed, fault=fault, fatal=fatal)],
        )


def _suspect(view: AttemptView, changed: Changed, *, fault: bool, fatal: bool) -> Suspect:
    """The place of a change; with the rank whose device it is where that is an error of it, or only information."""
    device, why = changed.change.device or None, f"its hardware changed: {said_change(changed.change)}"
    if changed.rank is None or (fault and not fatal):
        return Suspect(rank=None, node=changed.node, device=device, score=0.5, why=why)
    return msgspec.structs.replace(view.suspect(changed.rank, 0.9 if fatal else 0.3, why), device=device)


def _grounds(change: HardwareChange, *, fault: bool) -> str:
    """A port that is slower stops nothing, any other fault may; one that works again takes back that it did not."""
    if fault:
        return "port_slower" if change.kind == "port_rate" else "node_fault"
    works = change.kind in PORT_UP and falls(change.kind, change.after, change.before)
    return PORT_WORKS if works else "hardware_change"


def _is_the_gpus(code: int) -> bool:
    """Whether the catalog calls it an error of the GPU; what a program did wrong may be another process's there."""
    return code in CODES and CODES[code].area != "code"


def _subject(change: HardwareChange) -> str:
    """What tells findings of one device apart: errors of a link go on, each code and each fall is one of its own."""
    if change.kind in ("xid", "port_state", "port_physical_state", "port_rate"):
        return f"{change.kind}={change.after:g}"
    return change.kind


def _beside_a_fall(changed: Changed, all_of_them: list[Changed]) -> bool:
    """Whether a change only follows from a port's state: a port that is down shows another rate and physical state."""
    followed = _FOLLOWS.get(changed.change.kind, ())
    return any(
        one.change.kind in followed
        and (one.node, one.change.device) == (changed.node, changed.change.device)
        and falls(one.change.kind, one.change.before, one.change.after)
        for one in all_of_them
    )


def _rule_of(change: HardwareChange) -> Rule:
    if change.kind == "xid":
        code = code_of(f"{change.after:.0f}")
        return Rule(code.area, fault=code.role == "candidate")
    rule = _RULES[change.kind]
    comes_up = change.kind in PORT_UP and not falls(change.kind, change.before, change.after)
    return msgspec.structs.replace(rule, fault=False) if comes_up else rule
