"""Lines out of their envelopes, with those that a runtime had cut up put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from producers.envelopes.evidence import Form
from producers.envelopes.forms import Peeled
from producers.envelopes.wrap import Wrap
from producers.lines import LIMIT, Line, plain, spread

_MOST_PIECES = 4_096
"""Pieces of one line; Kubernetes cuts at 16 KiB, so a line of 64 MiB is still one."""
_MOST_LABELS = 2
_MOST_OPEN = 1_024
"""Writers whose line has not ended; more are not waited for."""


def unwrapped(lines: Iterable[Line], forms: Sequence[Form]) -> Iterator[Line]:
    """The lines without the envelopes of these forms, in the order in which they end, without blanks at their ends."""
    # Each turn goes down to the next envelope that cuts lines up: what lies deeper stands only in the first piece.
    starts = tuple({start for form in forms for start in form.starts})
    for _ in range(sum(form.name in _JOINING for form in forms)):
        lines = _joined(_peeled(line, forms) if _may(line, starts) else _Piece(line) for line in lines)
    for line in (_peeled(line, forms).line if _may(line, starts) else line for line in lines):
        yield line if not line.text[-1:].isspace() else msgspec.structs.replace(line, text=line.text.rstrip())


_JOINING = ("cri", "docker", "task")


class _Piece(msgspec.Struct, frozen=True, gc=False):
    line: Line
    joins: bool = False
    partial: bool = False


def _may(line: Line, starts: tuple[str, ...]) -> bool:
    """Whether an envelope may stand around a line; before nearly all lines of a worker's own log none does."""
    return line.text.startswith(starts) or line.head != ""


def _peeled(line: Line, forms: Sequence[Form]) -> _Piece:
    if line.head:
        # A progress bar was written over; the envelope stands before it, and maybe another one behind it.
        outer = _peel(msgspec.structs.replace(line, text=line.head, head=""), forms)
        inner = _peel(msgspec.structs.replace(line, head=""), forms)
        return _Piece(_behind(line.wrap, outer, inner), outer.joins or inner.joins, outer.partial or inner.partial)
    return _peel(line, forms)


def _behind(known: Wrap, outer: _Piece, inner: _Piece) -> Line:
    before, line = outer.line, inner.line
    # What labels a progress bar is a launcher, and what stands behind the bar may have a label of its own.
    labels = (*before.wrap.labels, *line.wrap.labels[len(known.labels) :])
    wrap = line.wrap.over(before.wrap)
    return msgspec.structs.replace(
        line,
        wrap=msgspec.structs.replace(wrap, labels=labels) if len(labels) <= _MOST_LABELS else wrap,
        stamp=before.stamp if line.stamp is None else line.stamp,
        # What lies deeper is looked for in the next turn, before the carriage return as well.
        head=before.text if outer.joins and not inner.joins else line.head,
    )


def _peel(line: Line, forms: Sequence[Form]) -> _Piece:
    text, wrap, stamp, torn = line.text, line.wrap, line.stamp, line.torn
    head = ""
    while (peeled := _next(text, wrap, forms, stamped=stamp is not None)) is not None:
        text, wrap, torn = peeled.text, peeled.wrap, torn or peeled.torn
        stamp = peeled.stamp if stamp is None else stamp
        if peeled.joins:
            return _Piece(_inside(line, text, wrap, stamp), True, peeled.partial)
        if peeled.torn:
            head, text = spread(plain(text.replace("\0", "")))
    if text is line.text and wrap is line.wrap:
        return _Piece(line)
    return _Piece(msgspec.structs.replace(line, text=text, wrap=wrap, stamp=stamp, torn=torn, head=head))


def _inside(line: Line, text: str, wrap: Wrap, stamp: int | None) -> Line:
    # JSON hides from the reading of lines what only a terminal needs.
    head, text = spread(plain(text.replace("\0", "")))
    return msgspec.structs.replace(line, text=text, wrap=wrap, stamp=stamp, head=head)


def _next(text: str, wrap: Wrap, forms: Sequence[Form], *, stamped: bool) -> Peeled | None:
    for form in forms:
        if stamped and form.name == "timestamp":
            continue
        if (peeled := form.peel(text, wrap)) is not None:
            return peeled
    return None


class _Open:
    """A line of which the end has not come yet; what is beyond the bound of a line is only counted."""

    def __init__(self, first: Line) -> None:
        self._first = first
        self._texts = [first.text]
        self._room = LIMIT - len(first.text)
        self.pieces = 1
        self._size = first.size
        self._cut = first.cut

    def add(self, line: Line) -> None:
        self._cut = self._cut or line.cut or len(line.text) > self._room
        if self._room > 0:
            self._texts.append(line.text[: self._room])
        self._room -= len(line.text)
        self._size += line.size
        self.pieces += 1

    def whole(self, *, torn: bool = False) -> Line:
        return msgspec.structs.replace(
            self._first, text="".join(self._texts), size=self._size, cut=self._cut, torn=torn or self._first.torn
        )


def _joined(pieces: Iterable[_Piece]) -> Iterator[Line]:
    started: dict[Wrap, _Open] = {}
    for piece in pieces:
        line = piece.line
        if not piece.joins:
            yield line
            continue
        begun = started.pop(line.wrap, None)
        if begun is None and not piece.partial:
            yield line
            continue
        if begun is None:
            begun = _Open(line)
        else:
            begun.add(line)
        if not piece.partial:
            yield begun.whole()
        elif begun.pieces >= _MOST_PIECES:
            yield begun.whole(torn=True)
        else:
            if len(started) >= _MOST_OPEN:
                yield started.pop(next(iter(started))).whole(torn=True)
            started[line.wrap] = begun
    for begun in started.values():
        yield begun.whole(torn=True)
