"""``rankwatch silence``: silences begun, listed and ended, in a deployment's topic or in a file."""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import msgspec

from rankwatch.deployments import deployment_of
from rankwatch.errors import UsageError
from rankwatch.silence_files import read_silences, write_silences
from rankwatch.silences_arguments import OWN
from rankwatch.terminal import printable
from rankwatch.times import parse_time
from schemas.identity import shortened
from schemas.ids import stable_id
from schemas.results import Area, Severity, Symptom
from schemas.silences import Matcher, Silence
from streams.log.kafka_silences import store_silence, stored_silences
from streams.report import moment
from streams.silencing import MOST_NUMBER, MOST_SILENCES, SilenceError, checked, fits_pattern, newest

_LASTS = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LABEL = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]{0,99})(!?)=(.+)", re.DOTALL)

KNOWN: dict[str, tuple[str, ...]] = {
    "symptom": get_args(Symptom),
    "area": get_args(Area),
    "severity": get_args(Severity),
}
"""All values of the labels that have few."""

Store = Callable[[Silence], None]


def now_ns() -> int:
    """The time by this machine's clock (ns)."""
    return time.time_ns()


def run(arguments: argparse.Namespace) -> int:
    """Add, list or end."""
    return ACTIONS[arguments.action](arguments)


@contextmanager
def _there(arguments: argparse.Namespace) -> Iterator[tuple[list[Silence], Store]]:
    """The silences that there are, and how one more version is stored."""
    if arguments.file is None:
        with deployment_of(arguments) as (log, _):
            yield stored_silences(log), lambda silence: store_silence(log, silence)
        return
    if arguments.kafka or arguments.kafka_config:
        raise UsageError("silences lie in a file or in a deployment: give --file or where the cluster is")
    known = read_silences(arguments.file) if arguments.action != "add" or arguments.file.exists() else []
    yield known, lambda silence: write_silences(arguments.file, newest([*known, checked(silence)]))


def _add(arguments: argparse.Namespace) -> int:
    silence = _asked(arguments, now_ns())
    with _there(arguments) as (known, store):
        before = next((one for one in known if one.id == silence.id), None)
        if before is None and sum(one.ends > silence.starts for one in known) >= MOST_SILENCES:
            raise SilenceError(f"there are {MOST_SILENCES} silences; end some first")
        store(silence if before is None else _next(before, silence.ends))
    print(printable(f"silenced until {moment(silence.ends)}: {silence.text} ({silence.id})"))
    return 0


def _asked(arguments: argparse.Namespace, now: int) -> Silence:
    """The silence that the command line asks for. Raises UsageError and SilenceError."""
    matchers = [_matcher(label, value) for label in OWN if (value := getattr(arguments, label)) is not None]
    for given in arguments.label:
        found = _LABEL.fullmatch(given)
        if found is None:
            raise UsageError(f"{shortened(given, 60)!r} is no label; write NAME=VALUE or NAME!=VALUE")
        matchers.append(_matcher(found[1], found[3], negated=bool(found[2])))
    for one in matchers:
        _check_known(one)
    if not matchers:
        raise UsageError("say what to silence: by --job, --node, --cluster, --label ...")
    starts = now if arguments.starts is None else parse_time(arguments.starts)
    ends = parse_time(arguments.until) if arguments.until is not None else starts + _lasts(arguments.lasts)
    if ends <= starts:
        raise UsageError(f"the silence would end at {moment(ends)}, before it begins")
    by = arguments.by or os.environ.get("USER") or os.environ.get("LOGNAME") or "unknown"
    parts = [part for one in matchers for part in (one.label, one.value, int(one.negated), int(one.pattern))]
    return checked(
        Silence(
            id=stable_id("silence", starts, ends, by, arguments.comment, arguments.kind, *parts),
            number=1,
            matchers=matchers,
            starts=starts,
            ends=ends,
            created_by=by,
            comment=arguments.comment,
            kind=arguments.kind,
        )
    )


def _matcher(label: str, value: str, *, negated: bool = False) -> Matcher:
    return Matcher(label=label, value=value, negated=negated, pattern="*" in value or "?" in value)


def _check_known(matcher: Matcher) -> None:
    """Raise UsageError for a value that no incident ever has, since such a silence would hold for nothing."""
    known = KNOWN.get(matcher.label)
    if known is None:
        return
    fits = [one for one in known if (fits_pattern(matcher.value, one) if matcher.pattern else one == matcher.value)]
    if not fits:
        value = shortened(matcher.value, 40)
        raise UsageError(f"no incident has the {matcher.label} {value!r}; it is one of {', '.join(known)}")


def _lasts(text: str) -> int:
    found = _LASTS.fullmatch(text)
    if found is None:
        raise UsageError(f"{shortened(text, 30)!r} is no length of time; write 45m, 2h or 1d")
    return int(found[1]) * _SECONDS[found[2]] * 1_000_000_000


def _next(before: Silence, ends: int) -> Silence:
    if before.number >= MOST_NUMBER:
        raise SilenceError(f"silence {before.id} has had its last number, {MOST_NUMBER}; add another one")
    return msgspec.structs.replace(before, number=before.number + 1, ends=ends)


def _list(arguments: argparse.Namespace) -> int:
    now = now_ns()
    with _there(arguments) as (known, _):
        shown = [one for one in known if arguments.all or one.ends > now]
    for silence in sorted(shown, key=lambda one: (one.starts, one.id)):
        if arguments.format == "json":
            print(json.dumps({**as_json(silence), "state": _state(silence, now)}))
        else:
            print(printable(_line(silence, now)))
    if not shown and arguments.format == "text":
        print("no silence")
    return 0


def _line(silence: Silence, now: int) -> str:
    comment = f": {silence.comment}" if silence.comment else ""
    span = f"{moment(silence.starts)} to {moment(silence.ends)}"
    return (
        f"{silence.id}  {_state(silence, now)}  {span}  {silence.text}  {silence.kind}, {silence.created_by}{comment}"
    )


def _state(silence: Silence, now: int) -> str:
    if now < silence.starts:
        return "to come"
    return "holds" if now < silence.ends else "ended"


def as_json(silence: Silence) -> dict[str, Any]:
    """The silence under the keys of the record, with times that people read."""
    plain = {name: getattr(silence, name) for name in ("id", "number", "created_by", "comment", "kind")}
    matchers = [msgspec.structs.asdict(matcher) for matcher in silence.matchers]
    return {**plain, "matchers": matchers, "starts": moment(silence.starts), "ends": moment(silence.ends)}


def _end(arguments: argparse.Namespace) -> int:
    now = now_ns()
    with _there(arguments) as (known, store):
        before = next((one for one in known if one.id == arguments.id), None)
        if before is None:
            raise UsageError(
                f"there is no silence {shortened(arguments.id, 40)!r}; `rankwatch silence list` shows them"
            )
        if before.ends <= now:
            print(f"silence {before.id} has ended at {moment(before.ends)} already")
            return 0
        ended = _next(before, max(now, before.starts))
        store(ended)
    print(printable(f"ended silence {ended.label}: {ended.text}"))
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {"add": _add, "list": _list, "end": _end}
