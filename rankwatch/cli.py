"""``rankwatch``: parses arguments, calls, prints.

Exit codes: 2 cannot run, 141 nobody reads the output any more.
``diagnose``: 0 no critical or warning incident, 1 some. ``demo``: 1 if it found nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwatch import home, library_arguments, live, silences_arguments, stacks_arguments
from rankwatch.collector import collect_seldom
from rankwatch.errors import KNOWN, UsageError
from rankwatch.times import parse_time

if TYPE_CHECKING:
    from rankwatch.diagnose import Diagnosis
    from sinks.clickhouse import Client

NO_READER = 128 + signal.SIGPIPE
"""The exit code that a shell shows of programs that end by this signal, as most do."""

EXAMPLES = """examples:
  rankwatch demo                                  a recorded faulty job through the whole pipeline
  rankwatch diagnose /logs/job-812345             who is out of step, since when, on what evidence
  rankwatch diagnose DIR --until 2026-11-29T18:11:20Z --format json
  rankwatch diagnose DIR --baseline HEALTHY_DIR   also what healthy jobs do not print
  rankwatch stacks DIR                            where all ranks are, as one flame graph
  rankwatch sql "SELECT symptom, suspect_ranks, summary FROM incidents_latest"

over Kafka (--kafka HOST:PORT, --kafka-config FILE or KAFKA_BOOTSTRAP_SERVERS say where):
  rankwatch topics create                         once for a deployment
  rankwatch worker                                events in, anomalies and incidents out; as many as you like
  rankwatch sink                                  what they say into ClickHouse
  rankwatch feed                                  notices and incidents as they are published
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    main = argparse.ArgumentParser(
        prog="rankwatch",
        description="Tells which rank of a distributed training job is out of step, since when, and on what evidence.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main.add_argument("--version", action="version", version=f"rankwatch {version('rankwatch')}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _diagnose_arguments(_command(commands, "diagnose", "recorded files in, report out", EXAMPLES))
    stacks_arguments.add_command(commands, _command)
    demo = _command(commands, "demo", "stream a bundled real recording, with the live feed", EXAMPLES)
    _database(demo)
    sql = _command(
        commands,
        "sql",
        "ask the database",
        'example:\n  rankwatch sql "SELECT job, symptom, suspect_ranks FROM incidents_latest LIMIT 5"\n',
    )
    sql.add_argument("query", help="a statement that reads: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN ...")
    sql.add_argument("--format", choices=("table", "tsv", "json"), default="table")
    sql.add_argument(
        "--max-rows", type=_positive, default=1000, metavar="N", help="rows to show at most (default 1000)"
    )
    _database(sql)
    library_arguments.add_command(commands, _command)
    silences_arguments.add_command(commands, _command)
    migrate = _command(commands, "migrate", "bring the database's tables up to date", "")
    _database(migrate)
    _database(live.add_commands(commands, _command, _positive))
    return main


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, said: str, epilog: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=said, description=said, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return number


def _database(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--clickhouse",
        metavar="DSN",
        default=home.default_dsn(),
        help="chdb:///path for the embedded engine, http(s)://user:password@host:port/db for a server, "
        f"none for no database (default: $RANKWATCH_CLICKHOUSE, else the embedded engine in {home.DEFAULT_PLACE}, "
        "or below $XDG_DATA_HOME)",
    )


def _diagnose_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="recorded files of a job, in any layout known")
    command.add_argument(
        "--until",
        metavar="TIME",
        help="say what was said by then, of windows closed by then; ISO 8601 (UTC), Unix seconds, or 13 digits of ms",
    )
    command.add_argument("--format", choices=("text", "json", "html"), default="text")
    library_arguments.add_baseline(command)
    silences_arguments.add_silences(command)
    _database(command)


def _run_diagnose(arguments: argparse.Namespace) -> int:
    from producers.recording import read_recording
    from rankwatch import diagnose, library, page, terminal, text
    from rankwatch.progress import watching, working
    from rankwatch.silence_files import usable_silences

    until = None if arguments.until is None else parse_time(arguments.until)
    _check_address(arguments.clickhouse)
    silences, refused = usable_silences(arguments.silences)
    for one in refused:
        print(f"rankwatch: {one.file}: {one.reason}", file=sys.stderr)
    healthy = library.given(arguments.baseline, arguments.library)
    out, errors = terminal.console(), terminal.console(stderr=True)
    with working(errors, "reading"):
        recording = read_recording(arguments.folder)
    with watching(out, errors, *recording.span, feed=False) as watch:
        found = diagnose.run(recording, until=until, watch=watch, library=healthy, silences=silences, refused=refused)
    with working(errors, "storing"):
        _store(found, arguments.clickhouse)
    if arguments.format == "json":
        print(json.dumps(diagnose.as_json(found), indent=1, ensure_ascii=not _speaks_unicode()))
    elif arguments.format == "html":
        print(page.page(found, ascii_only=not _speaks_unicode()), end="")
    else:
        text.print_diagnosis(out, found)
    return 1 if found.pages else 0


def _check_address(dsn: str) -> None:
    """Notice an address that cannot be one before anything runs."""
    from sinks.address import check_dsn

    if dsn != home.NO_DATABASE:
        check_dsn(dsn)


@contextmanager
def _opened(command: str, dsn: str, *, read_only: bool) -> Iterator[Client]:
    """The database that a command cannot do without."""
    from rankwatch.database import database

    if dsn == home.NO_DATABASE:
        raise UsageError(f"{command} needs a database: give --clickhouse DSN")
    with database(dsn, command, read_only=read_only) as client:
        yield client


def _speaks_unicode() -> bool:
    """Whether standard output takes any character."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _store(found: Diagnosis, dsn: str) -> None:
    """Store a run; a database that cannot be written to does not take the report away."""
    from rankwatch import diagnose
    from sinks.errors import SinkError

    try:
        diagnose.store(found, dsn, kind="diagnose")
    except (SinkError, OSError) as error:
        print(f"rankwatch: the report was not stored: {error}", file=sys.stderr)


def _run_demo(arguments: argparse.Namespace) -> int:
    from producers.recording import read_recording
    from rankwatch import demo, diagnose, terminal, text
    from rankwatch.progress import watching

    _check_address(arguments.clickhouse)
    out, errors = terminal.console(), terminal.console(stderr=True)
    with demo.bundled_recording() as folder:
        recording = read_recording(folder)
    out.print(f"streaming job {recording.job}, recorded from torchrun with 8 ranks on 4 nodes\n")
    with watching(out, errors, *recording.span, feed=True) as watch:
        found = diagnose.run(recording, watch=watch)
    for incident in found.incidents:
        out.print()
        text.print_incident(out, incident)
    counts = diagnose.store(found, arguments.clickhouse, kind="demo")
    if counts:
        rows = ", ".join(f"{counts[table]} {table}" for table in demo.TABLES if table in counts)
        out.print(f"\nstored in ClickHouse: {rows}\n\nthe same in SQL:\n")
        shown, *others = [sql.format(run_id=found.run_id) for sql in demo.QUERIES]
        out.print(f'  {_program()} sql "{shown}"\n')
        out.print(textwrap.indent(_answer(arguments.clickhouse, shown), "  "))
        for other in others:
            out.print(f'  {_program()} sql "{other}"')
    return 0 if found.incidents else 1


def _answer(dsn: str, sql: str) -> str:
    """The table that answers a query."""
    from sinks import tables
    from sinks.query import query

    with _opened("demo", dsn, read_only=True) as client:
        columns, _, rows = query(client, sql, 20)
    return tables.format_table(columns, rows)


def _program() -> str:
    """How the user can call this program again."""
    if shutil.which("rankwatch"):
        return "rankwatch"
    called = Path(sys.argv[0])
    return "python -m rankwatch" if called.name == "__main__.py" else os.path.relpath(called)


def _run_sql(arguments: argparse.Namespace) -> int:
    from sinks import tables
    from sinks.errors import SinkError
    from sinks.migrate import behind
    from sinks.query import query, reading_verb

    reading_verb(arguments.query)
    with _opened("sql", arguments.clickhouse, read_only=True) as client:
        try:
            columns, _, rows = query(client, arguments.query, arguments.max_rows + 1)
        except SinkError as error:
            raise SinkError("; ".join(filter(None, (str(error), behind(client))))) from None
        hint = "" if rows else behind(client)
    show: dict[str, Callable[[list[str], list[list[Any]]], str]] = {
        "table": tables.format_table,
        "tsv": tables.format_tsv,
        "json": partial(tables.format_json_lines, ascii_only=not _speaks_unicode()),
    }
    print(show[arguments.format](columns, rows[: arguments.max_rows]).rstrip("\n"))
    if hint:
        print(f"rankwatch: {hint}", file=sys.stderr)
    if len(rows) > arguments.max_rows:
        print(f"rankwatch: only the first {arguments.max_rows} rows are shown; see --max-rows", file=sys.stderr)
    return 0


def _run_migrate(arguments: argparse.Namespace) -> int:
    from sinks.migrate import migrate

    with _opened("migrate", arguments.clickhouse, read_only=False) as client:
        applied = migrate(client)
    print("\n".join(f"applied {name}" for name in applied) or "nothing to do")
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "diagnose": _run_diagnose,
    "demo": _run_demo,
    "sql": _run_sql,
    "migrate": _run_migrate,
    **stacks_arguments.COMMANDS,
    **library_arguments.COMMANDS,
    **silences_arguments.COMMANDS,
    **live.COMMANDS,
}


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        arguments = parser().parse_args(argv)
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _without_reader()


def _run(arguments: argparse.Namespace) -> int:
    try:
        return COMMANDS[arguments.command](arguments)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        print("rankwatch: interrupted", file=sys.stderr)
        return 130
    except KNOWN as error:
        print(f"rankwatch: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"rankwatch: {error.name} is not installed; install Rankwatch's dependencies anew", file=sys.stderr)
        return 2


def _without_reader() -> int:
    """The reader of our output has gone (`| head`): that is its right, and no news."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            # What is left in its buffer would be written, and fail, once more in the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return NO_READER


def _standard_streams() -> None:
    """Make the standard streams safe to use: exit if there is no output, and never fail over a character."""
    # A descriptor that is closed would be given to the next file that is opened, and be written to.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
    if sys.stdout is None:
        print("rankwatch: standard output is closed", file=sys.stderr)
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def entry() -> None:
    """The console script."""
    _standard_streams()
    # From here on an interrupt is answered in order, by `run`.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    collect_seldom()
    sys.exit(run())
