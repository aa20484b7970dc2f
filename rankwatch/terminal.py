"""Lines on a terminal or in a pipe: in colour on terminals only, wrapped to their width, never with control characters.

A pipe gets each line whole, so that what it says can be searched and cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

LABELS = 13
"""The columns that a label takes, with what stands before and behind it."""
HANGING = 4
NARROWEST = 20
"""Of columns: a narrower terminal wraps by itself."""
_WORDS = re.compile(r"\S+\s*|^\s+")
_PARTS = re.compile(r"[^,/]*[,/]|[^,/]+")


def printable(text: str) -> str:
    """The text on one line without control characters: a log line must not steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # It would end the program with 1, which means something else here.
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that colours on terminals only and obeys NO_COLOR; pipes get unwrapped lines."""
    return _Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def put(out: Console, line: str | Text) -> None:
    """Print a line; on a terminal what does not fit goes on below, indented."""
    text = Text(printable(line)) if isinstance(line, str) else line
    for number, part in enumerate(_parts(out, text, HANGING)):
        out.print(Text(" " * HANGING).append_text(part) if number else part)


def put_facts(out: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print lines beside their labels; what a line begins with blanks for, goes on below behind as many."""
    for label, line in facts:
        text = printable(line)
        told = text.lstrip(" ")
        indent = LABELS + len(text) - len(told)
        for number, part in enumerate(_parts(out, Text(told), indent)):
            row = Text(f"  {'' if number else label:<{LABELS - 2}}".ljust(indent), style="dim")
            row.append(part.plain, style="default")
            out.print(row)


def _parts(out: Console, text: Text, indent: int) -> list[Text]:
    """The text in parts that fit behind ``indent`` columns of a terminal; whole in a pipe."""
    if not out.is_terminal or text.cell_len + indent <= out.width:
        return [text]
    parts = list(text.divide(_cuts(text.plain, max(out.width - indent, NARROWEST))))
    for part in parts:
        part.rstrip()
    return parts


def _cuts(text: str, width: int) -> list[int]:
    """Where to cut a text so that each part fits ``width`` columns."""
    cuts, at, column = [], 0, 0
    for piece in _pieces(text, width):
        if column and column + cell_len(piece.rstrip()) > width:
            cuts.append(at)
            column = 0
        column += cell_len(piece)
        at += len(piece)
    return cuts


def _pieces(text: str, width: int) -> Iterator[str]:
    """Words with the blanks behind them; longer ones, as paths and lists of ranks, behind each comma and slash."""
    for word in _WORDS.findall(text):
        if cell_len(word.rstrip()) <= width:
            yield word
        else:
            for part in _PARTS.findall(word):
                yield from chop_cells(part, width) if cell_len(part.rstrip()) > width else [part]
