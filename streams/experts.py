"""Whether how long a rank computes may hang on where a router sends tokens (mixture of experts).

Whoever holds an expert that is asked for computes longer, on sound hardware and for as long as the data is such. A slow
device is slow in all that it computes, so work without experts, as attention, still tells; what contains experts does
not. A timer of an expert's kind of layer says nothing of whether there are several, so it never tells by itself.
"""

from __future__ import annotations

import re

from streams.step_tables import StepTables, timer_of
from streams.timers import ROUTED, is_of_data
from streams.view import AttemptView

_BEGINS, _ENDS = r"(?:^|[_/. -])", r"(?:$|[_/. -])"
_SHOWN = re.compile(rf"{_BEGINS}(?:{ROUTED}|all_?to_?all|a2a){_ENDS}")
_LAYER = re.compile(rf"{_BEGINS}(?:mlp|ffn|feed_?forward|fc\d?|moe|experts?){_ENDS}")
_WITHOUT = re.compile(r"attention|attn|norm|embed|logits|lm_head")


def may_be_routed(view: AttemptView, tables: StepTables, key: str, ranks: list[int]) -> bool:
    """Whether these ranks may work longer by the timer ``key`` because more is sent to their experts.

    Ranks of one expert group hold the same experts; where it is known, they are only held against each other.
    """
    timer = timer_of(key).lower()
    if is_of_data(timer) or all("ep" in view.coordinates(rank) for rank in ranks):
        return False
    # What holds a layer of experts besides attention does not tell.
    return _LAYER.search(timer) is not None or (_WITHOUT.search(timer) is None and _has_experts(view, tables))


def _has_experts(view: AttemptView, tables: StepTables) -> bool:
    """Whether start-up lines, coordinates or the names of timers show experts."""
    if max(view.layout.get("ep", 1), view.layout.get("experts", 1)) > 1:
        return True
    return any("ep" in view.coordinates(rank) for rank in view.members) or any(
        _SHOWN.search(timer_of(key).lower()) for kind in ("own", "wait", "mixed") for key in tables.of(kind)
    )
