"""The profiles of a worker in one window as sketches: bounded, whoever sent them."""

from __future__ import annotations

import msgspec

from schemas import events, results

MOST_SKETCHES = 4
"""Profiles of one worker in a window; of more the last ones are kept."""
MOST_FUNCTIONS = 32
LONGEST_NAME = 200
LONGEST_S = 1e9
"""No call and no step takes so long; what says so counts in other units than it says."""
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Sketches:
    """Events are functions; those of one time are one profile. ``left_out`` counts functions without room or sense."""

    def __init__(self) -> None:
        self.left_out = 0
        self._found: dict[int, dict[tuple[str, str], events.Profile]] = {}

    def take(self, event: events.Profile) -> None:
        """Take in a function; of what is said twice of one function the larger share counts."""
        if not _possible(event):
            self.left_out += 1
            return
        functions = self._found.setdefault(event.time, {})
        key = event.name[:LONGEST_NAME], event.kind
        before = functions.get(key)
        self.left_out += before is not None
        functions[key] = event if before is None else max(event, before, key=_order)

    def kept(self) -> list[results.Sketch]:
        """The last profiles, each with the functions of the largest shares."""
        last = sorted(self._found)[-MOST_SKETCHES:]
        self.left_out += sum(len(functions) for time, functions in self._found.items() if time not in set(last))
        return [self._sketch(time) for time in last]

    def _sketch(self, time: int) -> results.Sketch:
        found = sorted(self._found[time].values(), key=lambda one: (-one.share, one.name, one.kind))
        told = max(found, key=lambda one: (one.duration, one.steps, _order(one)))
        left_out = found[MOST_FUNCTIONS:]
        self.left_out += len(left_out)
        return results.Sketch(
            captured=time,
            functions=[_function(one) for one in found[:MOST_FUNCTIONS]],
            duration=told.duration,
            steps=told.steps,
            first_step=told.first_step,
            world_size=told.world_size,
            unlisted=max([*(one.unlisted for one in found), *(one.share for one in left_out)]),
            recorded=told.recorded[:LONGEST_NAME],
            inferred=any(one.time_source == "inferred" for one in found),
        )


def _possible(event: events.Profile) -> bool:
    """Whether a function's numbers can be; records hold no NaN."""
    scale = _SECONDS.get(event.unit)
    if scale is None or not (0 <= event.share <= 1 and 0 <= event.unlisted <= 1 and event.count >= 0):
        return False
    return all(0 <= value * scale <= LONGEST_S for value in (event.mean, event.spread, event.typical, event.unrest))


def _order(event: events.Profile) -> tuple[float, bytes]:
    return event.share, msgspec.json.encode(event)


def _function(event: events.Profile) -> results.FunctionShare:
    scale = _SECONDS[event.unit]
    return results.FunctionShare(
        name=event.name[:LONGEST_NAME],
        kind=event.kind,
        share=event.share,
        mean=event.mean * scale,
        spread=event.spread * scale,
        count=event.count,
        typical=event.typical * scale,
        unrest=event.unrest * scale,
    )
