"""The arguments of ``rankwatch library``, and of ``diagnose`` against healthy jobs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rankwatch.live import kafka_arguments, runs

EXAMPLES = """examples:
  rankwatch library learn /logs/job-1 /logs/job-2 --out healthy.json
  rankwatch library show healthy.json             what healthy jobs print, and by what share of their ranks
  rankwatch library merge a.json b.json --out healthy.json
  rankwatch library import healthy.json --kafka broker1:9092
  rankwatch library export healthy.json --kafka broker1:9092
"""

DEFAULT_NAME = "healthy"

COMMANDS = {"library": runs("rankwatch.library")}


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], command: Callable[..., argparse.ArgumentParser]
) -> None:
    """The parser of ``rankwatch library``."""
    library = command(commands, "library", "learn what healthy jobs print, for others to be held against", EXAMPLES)
    actions = library.add_subparsers(dest="action", required=True, metavar="ACTION")
    learn = command(actions, "learn", "recorded healthy jobs in, a file out", EXAMPLES)
    learn.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="recorded files of a healthy job")
    learn.add_argument(
        "--even-unhealthy",
        action="store_true",
        help="also from jobs in which a critical incident or a warning is found",
    )
    _out(learn)
    merge = command(actions, "merge", "several libraries as one, each job once", EXAMPLES)
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE")
    _out(merge)
    command(actions, "show", "what is in a library", EXAMPLES).add_argument("file", type=Path, metavar="FILE")
    export = command(actions, "export", "from a deployment's topic into a file", EXAMPLES)
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument("--name", metavar="NAME", help="which library, where there are several")
    kafka_arguments(export)
    import_ = command(actions, "import", "from a file into a deployment's topic, as a new version", EXAMPLES)
    import_.add_argument("file", type=Path, metavar="FILE")
    kafka_arguments(import_)


def _out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the library is written")
    command.add_argument(
        "--name", default=DEFAULT_NAME, metavar="NAME", help=f"what the library is called (default {DEFAULT_NAME})"
    )


def add_baseline(command: argparse.ArgumentParser) -> None:
    """Against which healthy jobs to hold a job."""
    either = command.add_mutually_exclusive_group()
    either.add_argument(
        "--baseline",
        type=Path,
        action="append",
        metavar="DIR",
        help="recorded files of a healthy job: its templates are compared; may be given again",
    )
    either.add_argument(
        "--library", type=Path, metavar="FILE", help="what healthy jobs print, as `rankwatch library learn` wrote it"
    )
