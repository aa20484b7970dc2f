"""The shape of a line: peeled of prefixes, its variables masked, hashed.

A signature is a pure function of the line, so that every rank, partition and replay agrees. One pass, one combined
pattern, no nested quantifier: the work is linear in the line, of which the first 4,096 characters count.
"""

from __future__ import annotations

import re
from functools import lru_cache

from schemas.ids import stable_id
from streams.lines.traceback import Traceback, parse_traceback

LIMIT = 4096

_PREFIX = re.compile(
    r"""(?:
      \[rank[ ]?\d{1,7}\]:?
    | \[[A-Za-z_]{1,32}\d{1,7}\]:
    | \[\w{1,40}[ ]rank[ ]\d{1,7}\]
    | \[?\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?
    | \[?[VIWEFC]\d{3,4}[ ]\d\d:\d\d:\d\d\.\d{6,9}(?:[ ]\d{1,9})?
    | \[(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\]
    | -[ ](?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)[ ]-
    | (?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL):?(?=[ ])
    )[ \t]*""",
    re.VERBOSE,
)

VARIABLE = r"""
      (?P<TIME>(?<![\w.])\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?)
    | (?P<UUID>(?<![\w-])[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-]))
    | (?P<IP>(?<![\w.])(?:\[::(?:ffff:)?)?\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\]?(?::\d{1,5})?(?![\w.]))
    | (?P<URL>(?<!\w)(?:https?|s3|gs|hdfs|file)://[^\s"'<>]{1,1000})
    | (?P<PATH>(?<![\w.<])/(?:[\w.+@=-]{1,255}/?){1,64})
    | (?P<HEX>(?<![\w.])0[xX][0-9a-fA-F]{1,64}(?!\w)|(?<![\w.])(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{8,64}(?!\w))
    | (?P<NUM>(?<![A-Za-z_\d])[+-]?\d{1,64}(?:\.\d{1,64})?(?:[eE][+-]?\d{1,4})?|(?<=[:=][ ])(?i:nan|[+-]?inf)(?!\w))
    """
"""What a line's variables look like, the alternatives in order."""

# None of them begins within a word or with another character than these; asked first, it spares most places the search.
_VARIABLE = re.compile(rf"(?<![A-Za-z_\d])(?=[\da-fA-FhsgnNiI\u0130\u0131/\[+-])(?:{VARIABLE})", re.VERBOSE)
_MASKS = {name: f"<{name}>" for name in _VARIABLE.groupindex}


def peel(line: str) -> str:
    """The line without times, levels and rank prefixes, in whatever order they stand."""
    at = len(line) - len(line.lstrip())
    while found := _PREFIX.match(line, at):
        at = found.end()
    return line[at:].rstrip()


def mask(text: str) -> str:
    """The text with its variables replaced: ``step <NUM> took <NUM> ms``."""
    return _VARIABLE.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    return _MASKS[found.lastgroup or ""]


def _traceback_shape(traceback: Traceback) -> str:
    place = f" in {traceback.function}" if traceback.function else ""
    return mask(traceback.error[:LIMIT]) + place


def shape(text: str) -> str:
    """The masked text that stands for a record: its first line, or a traceback's error and innermost function."""
    traceback = parse_traceback(text)
    if traceback is not None:
        return _traceback_shape(traceback)
    return mask(peel(text.split("\n", 1)[0][:LIMIT]))


@lru_cache(maxsize=65536)
def signature_of(masked: str) -> str:
    """The id of a masked text."""
    return stable_id("signature", masked)
