"""The arguments of ``rankwatch silence``, and of a diagnosis that obeys silences."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from rankwatch.live import kafka_arguments, runs
from schemas.silences import Kind

EXAMPLES = """examples:
  rankwatch silence add --node gpu3 --for 2h --comment "new cable" --kafka broker1:9092
  rankwatch silence add --job 'bench-*' --label team!=speech --for 1d --kind test --file silences.json
  rankwatch silence list --kafka broker1:9092
  rankwatch silence end 3f9c2a7715d0be44 --kafka broker1:9092
  rankwatch diagnose DIR --silences silences.json

A hang is never silenced. In values, * stands for any characters and ? for one.
"""

COMMANDS = {"silence": runs("rankwatch.silences")}

OWN = ("job", "attempt", "node", "cluster", "symptom", "area", "severity")
"""Labels with an option of their own."""


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], command: Callable[..., argparse.ArgumentParser]
) -> None:
    """The parser of ``rankwatch silence``."""
    silence = command(commands, "silence", "page nobody for some incidents for a while; hangs always page", EXAMPLES)
    actions = silence.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = command(actions, "add", "begin a silence", EXAMPLES)
    for label in OWN:
        add.add_argument(f"--{label}", metavar=label.upper(), help=f"incidents of this {label}; may hold * and ?")
    add.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a label of the job, or NAME!=VALUE for what it must not be; may be given again",
    )
    long = add.add_mutually_exclusive_group(required=True)
    long.add_argument("--for", dest="lasts", metavar="TIME", help="how long: 45m, 2h, 1d")
    long.add_argument("--until", metavar="TIME", help="until when; ISO 8601 (UTC) or Unix seconds")
    add.add_argument("--starts", metavar="TIME", help="from when on (default now)")
    add.add_argument("--comment", default="", metavar="TEXT", help="for those who wonder")
    add.add_argument("--by", metavar="NAME", help="who silences (default $USER)")
    add.add_argument("--kind", choices=get_args(Kind), default="maintenance", help="why (default maintenance)")
    _place(add)
    listed = command(actions, "list", "silences that hold or will hold", EXAMPLES)
    listed.add_argument("--all", action="store_true", help="also those that have ended")
    listed.add_argument("--format", choices=("text", "json"), default="text", help="json: one object a line")
    _place(listed)
    end = command(actions, "end", "end a silence now", EXAMPLES)
    end.add_argument("id", metavar="ID")
    _place(end)


def _place(command: argparse.ArgumentParser) -> None:
    """Where silences are: in a deployment's topic, or in a file."""
    command.add_argument("--file", type=Path, metavar="FILE", help="a file of silences, instead of a deployment")
    kafka_arguments(command)


def add_silences(command: argparse.ArgumentParser) -> None:
    """Which silences a diagnosis obeys."""
    command.add_argument(
        "--silences", type=Path, metavar="FILE", help="silences, as `rankwatch silence add --file` wrote them"
    )
