"""What the detectors of fatal lines have in common: which belong to the owner's stop, and what is said beside one."""

from __future__ import annotations

from schemas.results import Fatal
from streams.view import AttemptView

NODE_FAILED = "slurm.node_failed"
"""What a scheduler says of a node, wherever it is printed."""


def of_the_stop(fatal: Fatal, stopped: int | None, slack_s: float) -> bool:
    """Whether a line may be of the owner's stop (ns, null for none): printed no earlier than ``slack_s`` before it."""
    return stopped is not None and fatal.time + fatal.precision_ns >= stopped - int(slack_s * 1e9)


def of_others(view: AttemptView, time: int, precision_ns: int, *, slack_s: float, gone_s: float) -> bool:
    """Whether what a node reports at ``time`` has nothing to do with an attempt any more.

    It may be of the owner's stop, or it comes more than ``gone_s`` after all ranks were last seen alive.
    """
    alive = max((member.last_life for member in view.members.values()), default=time)
    stopped = view.stopped is not None and time + precision_ns >= view.stopped - int(slack_s * 1e9)
    return stopped or time > alive + int(gone_s * 1e9)


def beside(fatal: Fatal) -> str:
    """What the vendor says to do, and which codes of the same GPU came after."""
    said = [
        f"the vendor says {fatal.values['action']}" if "action" in fatal.values else "",
        f"followed by Xid {fatal.values['followed_by'].replace(' ', ', ')}" if "followed_by" in fatal.values else "",
    ]
    return f" ({'; '.join(one for one in said if one)})" if any(said) else ""
