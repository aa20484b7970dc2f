"""Numbers that lines carry: iteration lines and step timers become metrics by iteration.

Names are as printed, in lower case with underscores, and end in their unit where the line gives one: ``compute_ms``.
``streams/lines/names.py`` says which of them mean the same in several frameworks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from schemas.text import iteration_of
from streams.lines.iterations.barred import barred
from streams.lines.iterations.bars import bar
from streams.lines.iterations.dashed import dashed
from streams.lines.iterations.deepspeed import deepspeed
from streams.lines.iterations.loop import loop, step_of
from streams.lines.iterations.megatron import across_ranks
from streams.lines.iterations.overflow import overflow
from streams.lines.iterations.printed_dict import printed_dict
from streams.lines.iterations.reading import Reading
from streams.lines.iterations.report import Report
from streams.lines.iterations.timers import timers
from streams.lines.iterations.torchtitan import torchtitan
from streams.lines.signature import peel

LONGEST = 16_384
"""Characters of a line that are read; verl's lines have thousands."""

MOST_LINES = 4_096
"""Lines of a record of timers that are read."""

MOST_BRACKETS = 8

_SEEN = 1 << 17
_ANSI = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_ACROSS = re.compile(r"times? across ranks \(ms\):|\.\.: \(?\d")

_READERS: tuple[tuple[str, Callable[[str], Report | None]], ...] = (
    ("timers", timers),
    ("{", printed_dict),
    ("%|", bar),
    ("step=", deepspeed),
    (" loss scale", overflow),
    ("step:", torchtitan),
    ("|", barred),
    (":", dashed),
    ("oss", loop),
)
"""Readers in the order in which they are asked, each behind what is in every line that it reads."""

NOTHING = Report()


def report_of(text: str) -> Report:
    """What an iteration line says; ``NOTHING`` for any other line."""
    seen = text[:_SEEN]
    plain = _ANSI.sub("", seen) if "\x1b" in seen else seen
    line = _bare(plain.partition("\n")[0])
    if "..: " in plain or "across ranks" in line:
        report = _timers_over_ranks(plain)
        if report is not None:
            return report
    for mark, read in _READERS:
        if mark in line:
            report = read(line)
            if report is not None and report.readings:
                return _placed(report, line)
    return NOTHING


def _bare(line: str) -> str:
    """What is read of a line: all behind its prefixes, of which glog's ends in a bracket behind a number of its own."""
    bare = peel(line)[:LONGEST]
    for _ in range(MOST_BRACKETS):
        if not bare.startswith("] "):
            break
        bare = peel(bare[2:])
    return bare


def _timers_over_ranks(plain: str) -> Report | None:
    lines = [_bare(one) for one in plain.split("\n", MOST_LINES)[:MOST_LINES]]
    return across_ranks(lines) if _ACROSS.search(lines[0]) else None


def _placed(report: Report, line: str) -> Report:
    """The report with the iteration that its line speaks of; who prints one needs none to be counted."""
    if report.iteration is not None:
        return report
    iteration = iteration_of(line)
    if iteration is None and report.place == "printed":
        iteration = step_of(line)
    if iteration is None:
        return report
    return msgspec.structs.replace(report, iteration=iteration, place="printed")


def readings_of(text: str) -> list[Reading]:
    """The numbers of a timer or iteration line, in order; empty for any other line."""
    return report_of(text).readings


def total_iterations(text: str) -> int | None:
    """How many iterations the run will have, where an iteration line says so."""
    return report_of(text).total
