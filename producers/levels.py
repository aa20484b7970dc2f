"""The level of a log record, by the usual places at its head."""

from __future__ import annotations

import re

_HEAD = 120
_JSON_HEAD = 400
_LETTERS = {"V": "DEBUG", "D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "CRITICAL", "F": "CRITICAL"}
_LETTER = re.compile(
    r"(?:\[[A-Za-z_]{1,32}\d{1,6}\]: ?)?"
    r"(?:\[?([VDIWECF])(?:\d{3,8} \d\d:\d\d:\d\d| [A-Za-z]{1,64}\.cpp:)|\[NeMo ([DIWEC]) )"
)
_WORD = re.compile(r"(?:^|[\[(|\s])(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)(?=[\])|:\s]|$)")
_SAME = {"WARN": "WARNING", "FATAL": "CRITICAL"}
_JSON = re.compile(r"\"(?:level|levelname|severity)\": ?\"([A-Za-z]{1,16})\"")
# dmesg -x: "kern  :warn  : ".
_KERNEL = re.compile(r"[a-z]{3,8} {0,4}:([a-z]{2,6}) {0,4}:")
# /dev/kmsg: facility and level, number, microseconds since boot.
_RING = re.compile(r"(\d{1,4}),\d{1,20},\d{1,20},[-c+][^;\n]{0,200};")
# Storage Scale.
_SCALE = re.compile(r"[^\[\n]{0,60}: \[([XEWNI])\] ")
_SCALES = {"X": "CRITICAL", "E": "ERROR", "W": "WARNING", "N": "INFO", "I": "INFO"}
_SYSLOG = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
_SYSLOG_WORDS = dict(zip(("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"), _SYSLOG, strict=True))
_WORDS = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}


def level_of(text: str) -> str:
    """DEBUG, INFO, WARNING, ERROR or CRITICAL; empty where the head of a record names none."""
    head = text[:_HEAD]
    if letter := _LETTER.match(head):
        return _LETTERS[letter.group(1) or letter.group(2)]
    if head.startswith("{"):
        return _of_json(text[:_JSON_HEAD])
    word = _WORD.search(head.partition("\n")[0])
    if word:
        return _SAME.get(word.group(1), word.group(1))
    if kernel := _KERNEL.match(head):
        return _SYSLOG_WORDS.get(kernel.group(1), "")
    if ring := _RING.match(head):
        return _SYSLOG[int(ring.group(1)) % 8]
    scale = _SCALE.match(head)
    return _SCALES[scale.group(1)] if scale else ""


def _of_json(head: str) -> str:
    found = _JSON.search(head)
    word = found.group(1).upper() if found else ""
    word = _SAME.get(word, word)
    return word if word in _WORDS else ""
