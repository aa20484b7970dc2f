"""Log texts made to fit: surrogates replaced, the middle of what is too long cut out and its size said."""

from __future__ import annotations

import msgspec

from schemas.codec import encode
from schemas.events import Log

_MARK_BYTES = 64


def mended(event: Log) -> Log:
    """The event with text, file and stream that UTF-8 can carry: each lone surrogate is a question mark.

    Names of files hold surrogates where they are no UTF-8 on disk.
    """
    names = ("text", "file", "stream")
    better = {name: getattr(event, name).encode("utf-8", "replace").decode("utf-8") for name in names}
    same = all(getattr(event, name) == value for name, value in better.items())
    return event if same else msgspec.structs.replace(event, **better)


def cut_log(event: Log, most: int) -> Log:
    """The event encoded in less than ``most`` bytes, or as near as cutting its text comes.

    Both ends stay, the start three times as long as the end: a traceback begins with the time and ends with the error.
    """
    room = most - len(encode(msgspec.structs.replace(event, text=""))) - _MARK_BYTES
    start = _fitting(event.text, max(0, room * 3 // 4))
    end = _fitting(event.text[max(start, len(event.text) - most) :][::-1], max(0, room // 4))
    gone = len(event.text) - start - end
    text = f"{event.text[:start]}\n[... {gone} characters cut ...]\n{event.text[len(event.text) - end :]}"
    return msgspec.structs.replace(event, text=text)


def _fitting(text: str, room: int) -> int:
    """How many characters of the start take at most ``room`` bytes as JSON; escapes take up to six bytes each."""
    low, high = 0, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        if len(msgspec.json.encode(text[:middle])) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return low
