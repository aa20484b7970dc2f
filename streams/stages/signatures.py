"""The shapes of a worker's lines in one window, counted: what templates, tails and blame read of the log."""

from __future__ import annotations

from collections.abc import Iterator

from schemas import events, results
from streams.lines.facts import Facts

LONGEST_EXAMPLE = 500


class Signatures:
    """Counts lines by shape, in canonical order; ``left_out`` counts lines of shapes without room."""

    def __init__(self, most: int) -> None:
        self.left_out = 0
        self._most = most
        self._found: dict[str, _Signature] = {}

    def take(self, event: events.Log, facts: Facts) -> None:
        """Count a line."""
        counted = self._found.get(facts.signature)
        if counted is not None:
            counted.count += 1
            counted.last = event.time
        # What is predefined has as much room again, so that no flood of other lines keeps it out.
        elif len(self._found) < self._most * (2 if facts.predefined else 1):
            self._found[facts.signature] = _Signature(facts, event)
        else:
            self.left_out += 1

    def counted(self) -> Iterator[results.SignatureCount]:
        """Each shape, in order of signatures."""
        for key in sorted(self._found):
            yield self._found[key].counted


class _Signature:
    """Lines of one shape being counted, in order of time."""

    def __init__(self, facts: Facts, event: events.Log) -> None:
        self.facts = facts
        self.count = 1
        self.first = self.last = event.time
        self.example = event.text[:LONGEST_EXAMPLE]

    @property
    def counted(self) -> results.SignatureCount:
        return results.SignatureCount(
            signature=self.facts.signature,
            masked=self.facts.masked,
            predefined=self.facts.predefined,
            chatter=self.facts.chatter,
            count=self.count,
            first=self.first,
            last=self.last,
            example=self.example,
        )
