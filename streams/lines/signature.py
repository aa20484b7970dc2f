"""The shape of a line: peeled of prefixes, its variables masked, hashed.

A signature is a pure function of the line, so that every rank, partition and replay agrees. A line is first folded:
every run of digits becomes ``0`` and what is hexadecimal one character. Whatever differs only in its variables is one
folded line, mostly, and everything else is found out once for each of these. Folding and masking are a pass each, and
no repeat within a repeat has anything behind it that could fail: the work is linear in the line, of which the first
4,096 characters count.
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
    | \[?\d{1,4}-\d{1,2}-\d{1,2}[ T_]\d{1,2}:\d{1,2}:\d{1,2}(?:[.,]\d{1,9})?Z?\]?
    | \[?[VIWEFC]\d{1,4}[ ]\d{1,2}:\d{1,2}:\d{1,2}\.\d{1,9}(?:[ ]\d{1,9})?
    | \[(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\]
    | -[ ](?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)[ ]-
    | (?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL):?(?=[ ])
    )[ \t]*""",
    re.VERBOSE,
)

_DIGITS = re.compile(r"[0-9]+")

HEX, UUID = "\x01", "\x02"
"""What stands for a hexadecimal word, and for a UUID, in a folded text; both may be part of a path."""

_HEXADECIMAL = re.compile(
    r"""
    [0-9a-fA-F](?:
        [0-9a-fA-F]{7,63}(?:-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-]))?
      | [xX][0-9a-fA-F]{1,64}
    )(?!\w)
    """,
    re.VERBOSE,
)
"""What may be hexadecimal or a UUID; it begins with one class of characters, which the engine finds fast."""
_MIXED = re.compile(r"(?=[a-f]{0,63}[0-9])(?=[0-9]{0,63}[a-f])[0-9a-f]{8,64}\Z")
_UUID_HEAD = 8
_MAYBE_HEXADECIMAL = re.compile(r"0[a-fA-FxX]|[a-fA-F]0")
"""Where the folding of the digits lacks it nothing is hexadecimal but a UUID of blocks all of one kind."""

_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ]{1,2})?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]{1,2}0"
_DATE = rf"{_DAY}[ ](?:0[ ])?0:0:0(?:\.0)?(?:[ ][A-Z]{{3,4}})?(?:[ ]0)?"
_PORT = r"(?::0)?"
_COUNTRY = "cn|uk|de|fr|jp|kr|tw|hk|mx|br|eu|ru|nl|pl|ca|au|ch|se|io|ai"
_DURATION = "ns|us|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?"
_BYTES = "[KMGTP]i?B|B|bytes?"
_FOLDED_HEXADECIMAL = re.compile(
    r"""
      (?<![\w.])(?:0[xX][0a-fA-F]|(?=[a-f]{0,63}0)(?=0?[a-f])[0a-f]{2,64}(?!\w))
    | (?<![\w-])[0a-fA-F]{1,8}-[0a-fA-F]{1,4}-[0a-fA-F]{1,4}-[0a-fA-F]{1,4}-[0a-fA-F]{1,12}(?![\w-])
    """,
    re.VERBOSE,
)
"""What is hexadecimal looks so once its digits are folded, as do words that are none."""

VARIABLES = {
    "TIME": rf"(?<![\w.])0-0-0[ T_]0[:,]0[:,]0(?:[.,]0)?Z? | (?<!\w){_DATE}(?!\w)",
    # Of devices (PCI), adapters and networks (IPv6); a time of day looks like one of them once it is folded.
    "ADDR": r"(?<![\w:.])(?=[a-fA-F:]{0,40}0)[0a-fA-F]{1,8}:[0a-fA-F]{0,4}:[0a-fA-F:]{0,30}[0a-fA-F](?:\.0)?(?!:?\w)",
    "IP": rf"(?<![\w.])(?:\[::(?:ffff:)?)?0\.0\.0\.0\]?{_PORT}(?![\w.])",
    "URL": r"""(?<!\w)(?:https?|s3|s0|gs|hdfs|file)://[^\s"'<>]{1,1000}""",
    # Where the last name may also be a module's or a file's, a host has three names at least.
    "HOST": rf"""
        (?<![\w.@/-])[A-Za-z0][A-Za-z0.-]{{0,250}}\.(?:com|org|edu|gov|mil)(?:\.[a-z]{{2}})?{_PORT}(?!\.?[\w/-])
      | (?<![\w.@/-])[A-Za-z0][A-Za-z0-]{{0,63}}\.[A-Za-z0.-]{{1,250}}
        \.(?:net|local|localdomain|internal|lan|svc|arpa|{_COUNTRY}){_PORT}(?!\.?[\w/-])""",
    "PATH": r"""
        (?<![\w.<>)\]~])(?:\.{1,2}|~)?/(?:[\w.+@=%~\x01\x02-]{1,255}/{0,8}){1,64}(?:\?[^\s"'<>]{1,1000})?""",
    "UUID": r"\x02",
    "HEX": r"\x01 | (?<![\w.])[a-f]{8,64}(?!\w)",
    "DUR": rf"(?<![\w.])<?0(?:\.0)?[ ]?(?:{_DURATION})(?!\w)",
    # Some say a size twice: 1190 bytes (1.16 KB).
    "SIZE": rf"(?<![\w.])0(?:\.0)?(?:[ ]?(?:{_BYTES})|[KMGT])(?!\w)(?:[ ]\(0(?:\.0)?[ ]?(?:{_BYTES})\))?",
    "NUM": r"(?<![A-Za-z_0])[+-]?0(?:\.0)?(?:[eE][+-]?0)? | (?<=_)-0 | 0 | (?<=[:=][ ])(?i:nan|[+-]?inf)(?!\w)",
}
"""What the variables of a folded line look like, by name; the first that fits counts."""

XID = re.compile(r"(?:Xid \([^()\n]{1,100}\):|NVSwitch (?:non-)?fatal error) (\d{1,6})\b")
"""The code of an Xid or SXid line, or of the fabric manager's word on one: the number that tells two lines apart."""
_MASKED_XID = re.compile(r"((?:Xid \([^()\n]{1,1000}\):|NVSwitch (?:non-)?fatal error) )<NUM>")

_VARIABLE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in VARIABLES.items()), re.VERBOSE)
MASKS = {name: f"<{name}>" for name in VARIABLES}
"""What stands for each kind of variable in a masked text."""

MASKS_ID = stable_id("masks", _PREFIX.pattern, _HEXADECIMAL.pattern, _VARIABLE.pattern)
"""Names the masks: under others all signatures are others, so what was written down under them is of no use."""


def peel(line: str) -> str:
    """The line without times, levels and rank prefixes, in whatever order they stand; folded or not."""
    at = len(line) - len(line.lstrip())
    while found := _PREFIX.match(line, at):
        at = found.end()
    return line[at:].rstrip()


def fold(text: str) -> str:
    """The text with each run of digits as ``0`` and each hexadecimal word as one character."""
    folded = fold_digits(text)
    return fold_hexadecimal(text) if may_be_hexadecimal(folded) else folded


def fold_digits(text: str) -> str:
    """The text with each run of digits as ``0``: all of its folding unless that may be hexadecimal."""
    return _DIGITS.sub("0", text)


def may_be_hexadecimal(folded: str) -> bool:
    """Whether there may have been a hexadecimal word in the text before its digits were folded."""
    return _MAYBE_HEXADECIMAL.search(folded) is not None and _FOLDED_HEXADECIMAL.search(folded) is not None


def fold_hexadecimal(text: str) -> str:
    """``fold`` of a text that may be hexadecimal."""
    return fold_digits(fold_words(text))


def fold_words(text: str) -> str:
    """The text with each hexadecimal word and each UUID as one character."""
    return _HEXADECIMAL.sub(_folded, text)


def _folded(found: re.Match[str]) -> str:
    begin = found.start()
    return _folded_word(found[0], found.string[begin - 1] if begin else "")


def _folded_word(word: str, before: str) -> str:
    """What stands for a word behind a character: it must begin there, and a number alone is not hexadecimal."""
    within = before.isalnum() or before == "_"
    head, dash, rest = word.partition("-")
    if dash:
        is_uuid = len(head) == _UUID_HEAD and not within and before != "-"
        return UUID if is_uuid else _folded_word(head, before) + dash + _HEXADECIMAL.sub(_folded, rest)
    if within or before == ".":
        return word
    if word[1] in "xX":
        return HEX if word[0] == "0" else word
    return HEX if _MIXED.match(word) else word


def mask(folded: str) -> str:
    """A folded text with its variables named: ``step <NUM> took <NUM> ms``."""
    return _VARIABLE.sub(_masked, folded)


def _masked(found: re.Match[str]) -> str:
    return MASKS[found.lastgroup or ""]


def shape_of_line(folded: str) -> str:
    """The masked text that stands for a folded line."""
    return mask(peel(folded))


def _with_code(masked: str, line: str) -> str:
    """A masked Xid line with its code: that is no variable but what the line says."""
    found = XID.search(line)
    return masked if found is None else _MASKED_XID.sub(rf"\g<1>{int(found.group(1))}", masked, count=1)


def _traceback_shape(traceback: Traceback) -> str:
    place = f" in {traceback.function}" if traceback.function else ""
    return mask(fold(traceback.error[:LIMIT])) + place


def shape(text: str) -> str:
    """The masked text that stands for a record: its first line, or a traceback's error and innermost function."""
    traceback = parse_traceback(text)
    if traceback is not None:
        return _traceback_shape(traceback)
    line = text.split("\n", 1)[0][:LIMIT]
    return _with_code(shape_of_line(fold(line)), line)


@lru_cache(maxsize=4096)
def signature_of(masked: str) -> str:
    """The id of a masked text."""
    return stable_id("signature", masked)
