"""How the lines of a node's own logs begin: the kernel's ring buffer, syslog, the journal, file systems, NVSwitches.

A head says when its line was written, by the date or in seconds since the node's boot, and sometimes where, by whom
and how grave it is. Sources: dmesg(1), syslog(3), RFC 5424, systemd.journal-fields(7), the kernel's ABI of /dev/kmsg.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from producers.times import SECOND, possible

KERNEL = "kernel"
_USER = "user"
MICROSECOND = SECOND // 1_000_000

LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
"""By the number of a syslog level."""
_WORDS = dict(zip(("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"), LEVELS, strict=True))
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d:\d\d:\d\d"
_ISO = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)"
_HOST = r"(?P<host>[A-Za-z0-9][\w.-]{0,252})"
_TAG = r"(?P<program>[\w./@+-]{1,128})(?:\[(?P<pid>\d{1,10})\])?: ?"
_MARKED = (
    r"(?:(?:<(?P<priority>\d{1,5})>)"
    rf"|(?:(?P<facility>[a-z]{{3,8}}) {{0,4}}:(?P<word>{'|'.join(_WORDS)}) {{0,4}}: ?))?"
)
_RING = re.compile(
    _MARKED
    # The kernel pads the seconds to five characters; who prints seconds of his own does not, mostly.
    + r"\[(?=[ \d]{5,22}\.) {0,12}(?P<seconds>\d{1,10})\.(?P<fraction>\d{6})\](?:\[ {0,8}[TC]\d{1,10}\])? ?"
    + rf"(?:{_HOST} (?P<program>kernel|[\w./@+-]{{1,128}}\[\d{{1,10}}\]): ?)?"
)
_UPTIME = re.compile(r"\[ {0,12}(?P<seconds>\d{1,10})\.(?P<fraction>\d{6})\] ?")
_KMSG = re.compile(r"(?P<priority>\d{1,5}),(?P<number>\d{1,19}),(?P<micros>\d{1,16}),[-c+][^;\n]{0,200};")
_CTIME = re.compile(_MARKED + rf"(?P<time>\[{_WEEKDAY} {_MONTH} {{1,2}}\d{{1,2}} {_CLOCK} \d{{4}}\]) ?")
_DATED = re.compile(_MARKED + rf"(?P<time>\d{{4}}-\d\d-\d\dT{_CLOCK},\d{{1,9}}(?:Z|[+-]\d\d:\d\d)) ")
_SYSLOG = re.compile(
    rf"(?:<(?P<priority>\d{{1,5}})>)?(?P<time>{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?:\.\d{{1,9}})?) {_HOST} {_TAG}"
)
_ISO_SYSLOG = re.compile(rf"(?:<(?P<priority>\d{{1,5}})>)?(?P<time>{_ISO}) {_HOST} {_TAG}")
_FULL = re.compile(rf"{_WEEKDAY} (?P<time>\d{{4}}-\d\d-\d\d {_CLOCK}(?:\.\d{{1,9}})?)(?: (?:UTC|GMT))? {_HOST} {_TAG}")
_RFC5424 = re.compile(
    rf"<(?P<priority>\d{{1,5}})>1 (?P<time>{_ISO}) {_HOST} (?P<program>[\w./@+-]{{1,128}}) (?P<pid>[^ ]{{1,128}})"
    r" [^ ]{1,64} (?:-|\[[^\]\n]{0,1000}\]) ?"
)
_SCALE = re.compile(rf"(?P<time>\d{{4}}-\d\d-\d\d_{_CLOCK}\.\d{{3}}[+-]\d{{4}}): (?:\[(?P<letter>[XEWNI])\] )?")
_OLD_SCALE = re.compile(rf"(?P<time>{_WEEKDAY} {_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?:\.\d{{3}})? \d{{4}}:) ")
_FABRIC = re.compile(
    rf"(?P<time>\[{_MONTH} \d{{1,2}} \d{{4}} {_CLOCK}\]) \[(?P<name>[A-Z]{{4,8}})\] \[tid \d{{1,10}}\] "
)
_BARE = re.compile(
    r"(?=(?:NVRM|Lustre|LustreError|LNet|LNetError|mlx5_core [0-9a-f:.]{7,12}|nvidia-nvswitch\d{1,3}): )"
)
_SCALES = {"X": "CRITICAL", "E": "ERROR", "W": "WARNING", "N": "INFO", "I": "INFO"}
_NAMES = {"WARNING": "WARNING", "WARN": "WARNING", "ERROR": "ERROR", "FATAL": "CRITICAL", "CRITICAL": "CRITICAL"}


class Head(msgspec.Struct, frozen=True, gc=False):
    """What stands before a line, and the ``text`` behind it.

    ``printed`` is the printed time with what has to follow it to be known for one; ``uptime`` (ns since boot) and
    ``number`` are those of the ring buffer; ``time`` (ns UTC) is one that needs no reading.
    """

    form: str
    text: str
    host: str = ""
    program: str = KERNEL
    level: str = ""
    printed: str = ""
    uptime: int | None = None
    number: int | None = None
    time: int | None = None

    @property
    def of_kernel(self) -> bool:
        """Whether the kernel wrote the line, not a program of the node."""
        return self.program == KERNEL


def head_of(text: str) -> Head | None:
    """The head of a line, null where it has none that is known."""
    if not text or (text[0] not in _BEGINNINGS):
        return None
    return next((head for read in _FORMS if (head := read(text)) is not None), None)


def continues(text: str) -> bool:
    """Whether a line without a head belongs to the one before: /dev/kmsg prints its fields behind a blank."""
    return text.startswith((" ", "\t"))


def _kmsg(text: str) -> Head | None:
    found = _KMSG.match(text)
    if found is None:
        return None
    priority = int(found["priority"])
    return Head(
        form="kmsg",
        text=text[found.end() :],
        program=KERNEL if priority < 8 else _USER,
        level=LEVELS[priority % 8],
        uptime=int(found["micros"]) * MICROSECOND,
        number=int(found["number"]),
    )


def _ring(text: str) -> Head | None:
    found = _RING.match(text)
    if found is None:
        return None
    return Head(
        form="ring",
        text=text[found.end() :],
        host=found["host"] or "",
        program=(found["program"] or _program(found)).partition("[")[0],
        level=_level(found),
        uptime=_since_boot(found),
    )


def _since_boot(found: re.Match[str]) -> int:
    return int(found["seconds"]) * SECOND + int(found["fraction"]) * MICROSECOND


def _program(found: re.Match[str]) -> str:
    """Programs may write into the ring buffer, too; their facility is not 0, the kernel's."""
    facility = found["facility"] or "kern"
    return KERNEL if facility == "kern" and int(found["priority"] or 0) < 8 else _USER


def _level(found: re.Match[str]) -> str:
    said = found.groupdict()
    if priority := said.get("priority"):
        return LEVELS[int(priority) % 8]
    return _WORDS.get(said.get("word") or "", "")


def _of_kernel(form: str, pattern: re.Pattern[str]) -> Callable[[str], Head | None]:
    """A form that only the kernel's lines have, with a date."""

    def read(text: str) -> Head | None:
        found = pattern.match(text)
        if found is None:
            return None
        program, level = _program(found), _level(found)
        return Head(form=form, text=text[found.end() :], program=program, level=level, printed=found["time"])

    return read


def _of_host(form: str, pattern: re.Pattern[str]) -> Callable[[str], Head | None]:
    """A form with a date, a host and a program; what the kernel says may have its seconds since boot as well."""

    def read(text: str) -> Head | None:
        found = pattern.match(text)
        if found is None:
            return None
        program = found["program"]
        inside = text[found.end() :]
        uptime = _UPTIME.match(inside) if program == KERNEL else None
        return Head(
            form=form,
            text=inside[uptime.end() :] if uptime else inside,
            host=found["host"],
            program=program,
            level=_level(found),
            printed=f"{found['time']} {found['host']} {program}:",
            uptime=_since_boot(uptime) if uptime else None,
        )

    return read


def _scale(text: str) -> Head | None:
    found = _SCALE.match(text) or _OLD_SCALE.match(text)
    if found is None:
        return None
    level = _SCALES.get(found.groupdict().get("letter") or "", "")
    return Head(form="scale", text=text[found.end() :], program="mmfs", level=level, printed=found["time"])


def _fabric(text: str) -> Head | None:
    found = _FABRIC.match(text)
    if found is None:
        return None
    level = _NAMES.get(found["name"], found["name"] if found["name"] in ("INFO", "DEBUG") else "")
    return Head(form="fabric", text=text[found.end() :], program="fabricmanager", level=level, printed=found["time"])


def _journal(text: str) -> Head | None:
    if not text.startswith("{") or '"__REALTIME_TIMESTAMP"' not in text:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    micros = _number(value.get("__REALTIME_TIMESTAMP"))
    message = value.get("MESSAGE")
    if micros is None or not isinstance(message, str) or not possible(micros * 1_000):
        return None
    kernel = value.get("_TRANSPORT") == KERNEL
    uptime = _number(value.get("_SOURCE_MONOTONIC_TIMESTAMP")) if kernel else None
    return Head(
        form="journal",
        text=message.encode("utf-8", "replace").decode("utf-8"),
        host=_word(value.get("_HOSTNAME")),
        program=KERNEL if kernel else _word(value.get("SYSLOG_IDENTIFIER")) or "unknown",
        level=LEVELS[priority] if (priority := _number(value.get("PRIORITY"))) is not None and priority < 8 else "",
        uptime=None if uptime is None else uptime * 1_000,
        time=micros * 1_000,
    )


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 17 else None


def _word(value: Any) -> str:
    return value[:253].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def _bare(text: str) -> Head | None:
    """What drivers and file systems say in the ring buffer, printed without its time (``dmesg -t``)."""
    return Head(form="bare", text=text) if _BARE.match(text) else None


_FORMS: tuple[Callable[[str], Head | None], ...] = (
    _kmsg,
    _ring,
    _of_kernel("ctime", _CTIME),
    _of_kernel("iso", _DATED),
    _of_host("syslog", _SYSLOG),
    _of_host("syslog", _ISO_SYSLOG),
    _of_host("syslog", _RFC5424),
    _of_host("full", _FULL),
    _scale,
    _fabric,
    _journal,
    _bare,
)
_BEGINNINGS = frozenset("0123456789[<{JFMASONDTWkudclmnasfLN")
"""With which letters the heads begin, so that most lines of other files need one look."""
