"""What is shown of work that takes long: on a terminal, never among what others read."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from rankwatch.progress import watching, working


def console(*, terminal: bool) -> Console:
    return Console(file=StringIO(), force_terminal=terminal, width=100)


def said(of: Console) -> str:
    assert isinstance(of.file, StringIO)
    return of.file.getvalue()


@pytest.mark.parametrize("out_is_terminal", [False, True])
def test_a_bar_is_shown_on_standard_error_alone(out_is_terminal: bool) -> None:
    out, errors = console(terminal=out_is_terminal), console(terminal=True)
    with working(errors, "reading"):
        pass
    with watching(out, errors, 0, 10_000_000_000, feed=False) as watch:
        watch(5_000_000_000, [])
    assert said(out) == ""
    assert "reading" in said(errors)
    assert "50%" in said(errors)


def test_a_feed_and_its_bar_share_a_terminal() -> None:
    out, errors = console(terminal=True), console(terminal=True)
    with watching(out, errors, 0, 10_000_000_000, feed=True) as watch:
        watch(5_000_000_000, [])
    assert "50%" in said(out)
    assert said(errors) == ""


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    out, errors = console(terminal=False), console(terminal=False)
    with working(errors, "storing"), watching(out, errors, 0, 10_000_000_000, feed=False) as watch:
        watch(5_000_000_000, [])
    assert said(out) == said(errors) == ""
