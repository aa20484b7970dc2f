"""The one error of this package."""

from __future__ import annotations

import re

_BODY = re.compile(r"(?:Code: (\d+)\. )?DB::Exception: (.*)", re.DOTALL)
_NOISE = re.compile(
    r"(?:,? ?Stack trace[: (].*|\s*\(version [^()]*(?:\([^()]*\))?[^()]*\)|\s*\(for url [^()]*\))", re.DOTALL
)
_TRANSPORT = re.compile(
    r"Connection refused|Name or service not known|Temporary failure in name resolution|No route to host|timed out"
    r"|Remote end closed connection|Connection reset by peer|Broken pipe|connection closed by server"
)
_EXPECTED = re.compile(r"[.:] Expected one of: .*?(?= \([A-Z_]+\)$|$)", re.DOTALL)


class SinkError(Exception):
    """ClickHouse cannot be reached, opened or asked; the message is one line and holds no password."""


class OtherBuildError(SinkError):
    """The tables were made by a build whose migrations have another text."""


def one_line(error: BaseException) -> str:
    """What ClickHouse says in ``error``, on one line, without stack trace and version.

    >>> one_line(ValueError("Code: 62. DB::Exception: Syntax error:\\n at 1. (SYNTAX_ERROR) (version 26.9)"))
    'Syntax error: at 1. (SYNTAX_ERROR)'
    """
    text = str(error)
    if cause := no_answer(error):
        return f"no answer from ClickHouse: {cause}"
    found = _BODY.search(text)
    text = _EXPECTED.sub("", _NOISE.sub("", found.group(2) if found else text))
    return " ".join(text.split()) or type(error).__name__


def no_answer(error: BaseException) -> str | None:
    """Why the connection gave no answer, in small letters; null where ClickHouse itself said something.

    >>> no_answer(OSError("Max retries exceeded with url: /?database=x (Caused by ... Connection refused)"))
    'connection refused'
    """
    text = str(error)
    # What the library says of a lost connection quotes the whole address with every setting in it.
    found = None if _BODY.search(text) else _TRANSPORT.search(text)
    return found and found[0].lower()
