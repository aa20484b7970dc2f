"""The evidence of an incident: one piece for what was found again and again, in the order in which people read it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from schemas.identity import rank_ranges
from schemas.results import Anomaly, Evidence
from streams.incidents.hardware_beside import GROUNDS

SHOWN_EVIDENCE = 8
SHOWN_SUPPORT = 4
_EACH = ("own_error", "own_death", "unplaced_error", "unplaced_besides", "rank_fault", "node_fault", *GROUNDS)
"""Grounds whose every finding is a piece of evidence of its own."""


def evidence_of(anomalies: Sequence[Anomaly]) -> list[Evidence]:
    """One piece for each detector and ground, from its first window to its latest, with its latest words.

    Errors, ends, cascades and differences to healthy jobs are pieces of their own, and so is what is about other ranks:
    what a later window saw does not cover who was seen before. What is said on several grounds in the same words is
    said once. Cascades come last: they show the damage, not its beginning.
    """
    pieces: dict[tuple[bool, str, str, str], list[Anomaly]] = {}
    for one in anomalies:
        late = one.grounds in ("cascade", "told_to_end")
        subject = one.text if late or one.grounds in _EACH or one.axis == "cross-job" else rank_ranges(one.about)
        pieces.setdefault((late, one.detector, one.grounds, subject), []).append(one)
    ordered = sorted(pieces.items(), key=lambda item: (item[0][0], item[1][0].end, item[0]))
    told: dict[tuple[str, str, str], Evidence] = {}
    for _, found in ordered:
        piece = _piece(found)
        same = told.get((piece.detector, piece.text, piece.peers), piece)
        span = {"start": min(same.start, piece.start), "end": max(same.end, piece.end)}
        told[piece.detector, piece.text, piece.peers] = msgspec.structs.replace(same, **span)
    return list(told.values())[:SHOWN_EVIDENCE]


def _piece(found: list[Anomaly]) -> Evidence:
    last = max(reversed(found), key=lambda one: one.end)
    return Evidence(
        layer=found[0].layer,
        detector=found[0].detector,
        start=min(one.start for one in found),
        end=max(one.end for one in found),
        text=last.text,
        peers=last.peers,
    )


def support_of(support: Sequence[Anomaly], named: list[int]) -> list[Evidence]:
    """What supports an incident, first what speaks of those whom it names."""
    of_them = [one for one in support if set(one.about) & set(named)]
    others = [one for one in support if one not in of_them]
    return [*evidence_of(of_them), *evidence_of(others)][:SHOWN_SUPPORT]
