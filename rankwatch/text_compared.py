"""How jobs stand beside healthy jobs, for people: in the text report and on the page."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from rankwatch.terminal import printable, put, put_facts
from schemas.comparison import Comparison
from streams.compared import lines

TITLE = "beside the jobs of the library"


def _heading(found: Comparison, *, several: bool) -> str:
    attempt = f", attempt {found.attempt}" if several else ""
    return f"job {found.job}{attempt} {TITLE}" if several else TITLE


def print_comparisons(out: Console, found: list[Comparison], *, several: bool) -> None:
    """What differs between a job and its baseline, and what else does; it accuses nobody."""
    for one in found:
        out.print()
        put(out, Text(printable(_heading(one, several=several)), style="bold"))
        put_facts(out, lines(one))


def comparisons_html(found: list[Comparison], escape: Callable[[str], str], *, several: bool) -> str:
    """The same as sections of the page."""
    sections = []
    for one in found:
        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(line)}</td></tr>" for label, line in lines(one))
        heading = _heading(one, several=several)
        sections.append(f"<h2>{escape(heading[0].upper() + heading[1:])}</h2><table>{rows}</table>")
    return "".join(sections)
