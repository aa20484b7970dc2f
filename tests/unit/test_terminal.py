"""Lines on terminals of any width, and in pipes, where nothing is cut."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rankwatch.terminal import HANGING, LABELS, NARROWEST, printable, put, put_facts

RANKS = ",".join(f"{first}-{first + 5}" for first in range(0, 700, 7))
SAID = (
    "one stands outside communication while its peers wait",
    f"ranks {RANKS} wait",
    "Connection closed in [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:129] at once",
    "ランク五は通信の外に立っている " * 8,
    "x" * 300,
    "",
)


def terminal(width: int, *, piped: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    out = Console(
        file=file, width=width, force_terminal=not piped, color_system=None, markup=False, highlight=False, emoji=False
    )
    return out, file


def words(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("said", SAID)
def test_what_does_not_fit_goes_on_below_and_nothing_is_lost(said: str, width: int) -> None:
    out, file = terminal(width)
    put(out, said)
    first, *rest = file.getvalue().splitlines()
    assert words(first + "".join(rest)) == words(said)
    assert all(cell_len(line) <= width for line in (first, *rest))
    assert all(line.startswith(" " * HANGING) and line == line.rstrip() for line in rest)
    assert bool(rest) == (cell_len(said) > width)


@pytest.mark.parametrize("said", SAID)
def test_a_pipe_gets_each_line_whole(said: str) -> None:
    out, file = terminal(20, piped=True)
    out.soft_wrap = True
    put(out, said)
    put_facts(out, [("sure", said)])
    assert file.getvalue() == f"{said}\n  sure       {said}\n"


def test_lists_are_cut_between_their_members() -> None:
    out, file = terminal(80)
    put_facts(out, [("victims", f"ranks {RANKS} wait")])
    lines = [line[LABELS:] for line in file.getvalue().splitlines()]
    assert len(lines) > 5
    assert all(line.endswith(",") for line in lines[1:-1])


def test_a_line_goes_on_below_its_beginning_behind_its_label() -> None:
    out, file = terminal(60)
    put_facts(out, [("evidence", "[log] " + "word " * 20), ("", "    peers: " + "word " * 20)])
    lines = file.getvalue().splitlines()
    label, *more = [line for line in lines if "peers" not in line][:3]
    assert label.startswith("  evidence   [log] word")
    assert all(line.startswith(" " * LABELS + "word") for line in more)
    peers = lines.index(next(line for line in lines if "peers" in line))
    assert all(line.startswith(" " * (LABELS + 4)) and line[LABELS + 4] != " " for line in lines[peers:])


def test_styles_stay_with_their_words_and_escapes_stay_out() -> None:
    file = io.StringIO()
    out = Console(file=file, width=NARROWEST + HANGING, force_terminal=True, color_system="standard")
    line = Text()
    line.append("CRITICAL", style="bold red")
    line.append(" word" * 20)
    put(out, line)
    assert file.getvalue().startswith("\x1b[1;31mCRITICAL\x1b[0m word")
    assert file.getvalue().count("\x1b[1;31m") == 1
    assert printable("a\x1b[2J\nb\u202e") == "a [2J b "


def test_a_terminal_too_narrow_to_read_on_wraps_by_itself() -> None:
    out, file = terminal(10)
    put_facts(out, [("sure", "word " * 20)])
    assert words(file.getvalue()) == "sure" + "word" * 20
