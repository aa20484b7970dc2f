"""A progress bar over event time, and a line for what has no such measure, on terminals only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from rankwatch.diagnose import Watch
from rankwatch.terminal import put
from rankwatch.text import headline
from schemas.results import Incident
from streams.report import moment


@contextmanager
def working(bar: Console, what: str) -> Iterator[None]:
    """Says what is being done for as long as it lasts."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), console=bar, transient=True, disable=not bar.is_terminal
    ) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def watching(out: Console, bar: Console, first: int, last: int, *, feed: bool) -> Iterator[Watch]:
    """A watcher that advances a bar from ``first`` to ``last`` (ns) and, with ``feed``, prints each revision."""
    # On a terminal both go through one console, or lines and bar would write over each other.
    bar = out if feed and out.is_terminal else bar
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=bar, transient=True, disable=not bar.is_terminal) as progress:
        task = progress.add_task("streaming", total=max(last - first, 1))

        def watch(time: int, revisions: list[Incident]) -> None:
            progress.update(task, completed=min(time, last) - first, description=moment(time)[11:19])
            for incident in revisions if feed else ():
                put(out, headline(incident))

        yield watch
