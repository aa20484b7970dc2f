"""Which lines are chatter: what one rank, or the control plane, prints for all.

Progress bars, access lines of HTTP servers and clients, what is said of a checkpoint's files: who prints them and how
often is a matter of the set-up, so they are compared only among ranks that print that kind of them. A line that says
that others were left out tells something of its neighbours: their counts mean nothing.
"""

from __future__ import annotations

import re
from typing import Literal

from streams.lines.phases import CHECKPOINT, turn_of
from streams.lines.signature import peel

Chatter = Literal["", "progress", "http", "checkpoint", "limited"]

LONGEST = 400
"""Characters of a line that count."""

_PROGRESS = re.compile(
    r"""\d{1,3}%\|
      | \b\d{1,12}(?:it)?(?:/(?:\d{1,12}|\?))?[ ]\[\d{1,6}:\d{1,2}(?::\d{1,2})?(?:<|,[ ])
      | [━╸╺█▉▊▋▌▍▎▏]{3}
      | \b(?:\d{1,6}\.)?\d{1,6}[ ]?(?:it/s|s/it)\b""",
    re.VERBOSE,
)
_HTTP = re.compile(
    r"""["'](?:GET|POST|PUT|HEAD|DELETE|PATCH|OPTIONS|CONNECT)[ ]\S{1,300}
          (?:[ ]HTTP/\d{1,2}(?:\.\d{1,2})?)?["'][ ]\d{1,4}\b
      | \bHTTP[ ]Request:[ ][A-Z]{3,7}[ ]""",
    re.VERBOSE,
)
_CHECKPOINT = re.compile(
    r"""\b(?:checkpoint|ckpt)s?[ _-]?(?:metadata|manifest|index)\b
      | \bmetadata[ ](?:of|for|from|to)[ ](?:the[ ]|a[ ])?checkpoint
      | \.distcp\b | \.safetensors\b | (?:model|optim)_states\.pt\b | latest_checkpointed_iteration
      | \bsharded[ _]state[ _]?dict\b""",
    re.VERBOSE | re.IGNORECASE,
)
_LIMITED = re.compile(
    r"""\b(?:callbacks?|messages?|lines?)[ ](?:were[ ]|was[ ])?suppressed\b
      | \bsuppressed[ ]\d{1,12}[ ](?:\w{1,20}[ ])?(?:messages?|lines?|records?)\b
      | \blast[ ]message[ ]repeated[ ]\d{1,12}[ ]times""",
    re.VERBOSE | re.IGNORECASE,
)


def chatter_of(line: str) -> Chatter:
    """The kind of chatter that a line is, folded or not; nothing where it speaks for its own rank."""
    head = peel(line[:LONGEST])
    if _LIMITED.search(head):
        return "limited"
    if _HTTP.search(head):
        return "http"
    if _PROGRESS.search(head):
        return "progress"
    turn = turn_of(head)
    if turn == CHECKPOINT or (turn and "checkpoint" in head.casefold()) or _CHECKPOINT.search(head):
        return "checkpoint"
    return ""
