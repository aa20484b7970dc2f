"""Incidents that came again in later attempts of their job: told as one block, with what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from schemas.results import Incident
from streams.report import surest

SHOWN_OTHERS = 12


class Block(msgspec.Struct, frozen=True):
    """An incident that is told whole, and the ``others`` of its series, the latest first."""

    whole: Incident
    others: list[Incident] = []


def blocks_of(incidents: Sequence[Incident], apart: Callable[[Incident], Hashable]) -> list[Block]:
    """Each incident in one block, in the order in which the first of each block comes; the most important come first.

    Incidents of one series share a block unless ``apart`` tells them apart, as where one of them is silenced. Told
    whole is the latest of those that are as severe and as sure as the surest: the very latest may not be understood
    yet.
    """
    series: dict[Hashable, list[Incident]] = {}
    for one in incidents:
        series.setdefault((one.job, one.series or one.id, apart(one)), []).append(one)
    return [_block(found) for found in series.values()]


def _block(found: Sequence[Incident]) -> Block:
    ordered = sorted(found, key=lambda one: (one.onset, one.published, one.id), reverse=True)
    best = surest(found)
    whole = next(one for one in ordered if (one.severity, one.verdict) == (best.severity, best.verdict))
    return Block(whole=whole, others=[one for one in ordered if one is not whole])


def other_lines(block: Block, told: Callable[[Incident], dict[str, str]]) -> list[str]:
    """Each other incident in a line: which attempt, and what of what ``told`` tells of it differs."""
    usual = told(block.whole)
    lines = []
    for one in block.others[:SHOWN_OTHERS]:
        differs = [_rest(value, usual[name]) for name, value in told(one).items() if value and value != usual[name]]
        attempt = f"attempt {one.attempt}" if one.attempt else "another attempt"
        lines.append(f"{attempt}: {'; '.join(differs)}  {one.id}")
    more = len(block.others) - len(lines)
    return [*lines, *([f"and {more} before these; --format json lists all"] if more else [])]


def _rest(text: str, usual: str) -> str:
    """What follows on the words before a colon, where both begin with these.

    >>> _rest("its own error: ValueError: 7", "its own error: ValueError: 8")
    'ValueError: 7'
    """
    head, _, rest = text.partition(": ")
    return rest if rest and usual.startswith(f"{head}: ") else text
