"""Progress bars with numbers behind: ``Epoch 0:   6%|▋    | 32040/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6]``.

Lightning counts batches of an epoch, so the second number is not the run's length.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number
from streams.lines.iterations.report import Report

_HEAD = re.compile(r"%\|[^|]{0,400}\|[ ]{0,8}\d{1,12}/\d{1,12}[ ]\[[\d:?]{1,16}<[\d:?]{1,16},?")
_SPEED = re.compile(r"[ ]{1,8}([\d.]{1,16})(it/s|s/it)(?=[,\]])")
_PAIR = re.compile(rf"(?<![\w/.@-])([A-Za-z][\w/.@-]{{0,120}})[=:][ ]?({NUMBER})(?=[,\] ]|$)")


def bar(line: str) -> Report | None:
    """The speed and the pairs behind the first bar."""
    head = _HEAD.search(line)
    if head is None:
        return None
    speed = _SPEED.match(line, head.end())
    found = [number(speed.group(2).replace("/", "_per_"), speed.group(1))] if speed else []
    # Numbers take the comma behind them along, and a number has none at its end.
    found += [number(named(name)[0], raw) for name, raw in _PAIR.findall(line, head.end())]
    return Report(readings=kept(found))
