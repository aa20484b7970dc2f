"""The arguments of ``rankwatch stacks``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rankwatch.live import runs

EXAMPLES = """examples:
  rankwatch stacks /logs/job-812345               the standstill: who was where, as text and as pictures
  rankwatch stacks DIR --out /tmp/hang --format svg
  rankwatch stacks DIR --at 2026-11-29T18:11:20Z  as it was then, at most a minute before
  rankwatch stacks DIR --attempt 0                another attempt than the last one
"""
FORMATS = ("svg", "folded", "speedscope", "flame")

COMMANDS = {"stacks": runs("rankwatch.stacks")}


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], command: Callable[..., argparse.ArgumentParser]
) -> None:
    """The parser of ``rankwatch stacks``."""
    stacks = command(commands, "stacks", "where the threads of all ranks are, as one flame graph", EXAMPLES)
    stacks.add_argument("folder", type=Path, metavar="DIR", help="recorded files of a job, as for diagnose")
    stacks.add_argument(
        "--out",
        metavar="FOLDER",
        help="where the files go (default: JOB-stacks in the current folder); nothing foreign is overwritten",
    )
    stacks.add_argument(
        "--at",
        metavar="TIME",
        help="as each thread was last seen by then; ISO 8601 (UTC), Unix seconds, or milliseconds of 13 digits "
        "(default: the last standstill before ranks failed, else the newest samples)",
    )
    stacks.add_argument("--job", metavar="JOB", help="which job, where the folder holds several")
    stacks.add_argument("--attempt", metavar="N", help="which attempt (default: the last one that has stacks)")
    stacks.add_argument(
        "--format",
        action="append",
        choices=FORMATS,
        help="what to write; may be given again (default: all): svg for people, folded for flamegraph.pl and inferno, "
        "speedscope for speedscope.app, flame with the ranks at each frame",
    )
