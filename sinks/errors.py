"""The one error of this package."""

from __future__ import annotations

import re

_BODY = re.compile(r"(?:Code: (\d+)\. )?DB::Exception: (.*)", re.DOTALL)
_NOISE = re.compile(
    r"(?:,? ?Stack trace[: (].*|\s*\(version [^()]*(?:\([^()]*\))?[^()]*\)|\s*\(for url [^()]*\))", re.DOTALL
)
_EXPECTED = re.compile(r"[.:] Expected one of: .*?(?= \([A-Z_]+\)$|$)", re.DOTALL)


class SinkError(Exception):
    """ClickHouse cannot be reached, opened or asked; the message is one line and holds no password."""


def one_line(error: BaseException) -> str:
    """What ClickHouse says in ``error``, on one line, without stack trace and version.

    >>> one_line(ValueError("Code: 62. DB::Exception: Syntax error:\\n at 1. (SYNTAX_ERROR) (version 26.9)"))
    'Syntax error: at 1. (SYNTAX_ERROR)'
    """
    text = str(error)
    found = _BODY.search(text)
    text = _EXPECTED.sub("", _NOISE.sub("", found.group(2) if found else text))
    return " ".join(text.split()) or type(error).__name__
