"""Which envelopes the lines of a file are in: decided once for each file, by what its first and last lines show.

What looks like an envelope need not be one: a program may log JSON with a key ``log``, or a listing ``12: text``. Forms
that nothing else looks like count wherever they stand; the others only where most lines have them, and where the
numbers that they carry behave like those of writers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from producers.envelopes import forms
from producers.envelopes.forms import Peel, Peeled
from producers.envelopes.wrap import NONE, Wrap
from producers.lines import plain, spread

_LOOKED_AT = 256 * 1024
"""Bytes at either end of a file."""
_FEWEST = 4
HEAD = 400
"""Characters of a record in which its writer may say of itself who it is."""
WORLD = re.compile(r"(?:\busing world size|\bWORLD_SIZE|\bworld_size)[=: ]{1,4}(\d{1,7})\b")
"""How many ranks there are."""
_SAID = re.compile(r"\brank=(\d{1,7}) (?:local_rank=(\d{1,5})|pid=)")
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WRAPPED = 30
"""Percent of the lines of a file that stand in envelopes, so that it is a log and not a text that quotes some."""
_DEEPEST = 8

Numbers = Callable[[list[Peeled]], bool]


def _any(found: list[Peeled]) -> bool:
    return bool(found)


def _of_tasks(found: list[Peeled]) -> bool:
    """Numbers of writers come again, and stand right-aligned in one width; those of a listing do not."""
    numbers = [peeled.wrap.task for peeled in found]
    return len(found) >= _FEWEST and 2 * len(set(numbers)) <= len(numbers) and _interleaved(numbers)


def _of_locals(found: list[Peeled]) -> bool:
    """One name, and numbers that do not count up as those of epochs do."""
    labels = [peeled.wrap.labels[-1] for peeled in found]
    one_name = len({name for name, _ in labels}) == 1
    return len(found) >= _FEWEST and one_name and _interleaved([number for _, number in labels])


def _of_ranks(found: list[Peeled]) -> bool:
    """Numbers of a program's own labels are global ranks only where lines show it.

    Either the labels are as many as the world has ranks, or the lines that say who their writer is agree with their
    labels, and of several labels one that cannot be a local rank.
    """
    labels = [peeled.wrap.rank for peeled in found]
    said = [(peeled.wrap.rank, match) for peeled in found if (match := _SAID.search(peeled.text[:HEAD]))]
    if len(found) < _FEWEST or not _interleaved(labels) or any(label != int(match[1]) for label, match in said):
        return False
    worlds = {int(world) for peeled in found for world in WORLD.findall(peeled.text[:HEAD])}
    if worlds == {len(set(labels))} and set(labels) == set(range(len(set(labels)))):
        return True
    return bool(said) and (len(set(labels)) == 1 or any(match[2] and match[1] != match[2] for _, match in said))


def _interleaved(numbers: list[int | None]) -> bool:
    known = [number for number in numbers if number is not None]
    falls = any(later < earlier for earlier, later in pairwise(known))
    return falls or len(set(known)) == 1


class Form(msgspec.Struct, frozen=True):
    """A form, how it may begin, the share of lines (percent) that must have it, and what must hold of those that do."""

    name: str
    peel: Peel
    starts: str
    share: int
    holds: Numbers = _any


FORMS = (
    Form("cri", forms.cri, _DIGITS, 50),
    Form("docker", forms.docker, "{", 50),
    Form("pod", forms.pod, "[", 50),
    Form("mpi", forms.mpi, "[", 50),
    Form("ray", forms.ray, "(", 0),
    Form("xtuner", forms.xtuner, "[", 0),
    Form("rank", forms.rank_label, "[", 0),
    Form("role", forms.role_label, "[", 50, _of_locals),
    Form("task", forms.task, " P" + _DIGITS, 80, _of_tasks),
    Form("host", forms.host, _LETTERS, 80, _of_tasks),
    Form("timestamp", forms.timestamp, _DIGITS, 90),
    Form("logger", forms.logger_label, f"[({_DIGITS}{_LETTERS}{_LETTERS.upper()}", 90, _of_ranks),
)
"""In the order in which they are tried; the most certain come first."""

OWN = tuple(form for form in FORMS if form.name == "rank")
"""What can stand before the lines of a log that torchrun writes for one worker alone."""


def forms_of(texts: list[str]) -> tuple[Form, ...]:
    """The forms of envelopes around the texts, in whatever order they lie in each other.

    Those that nothing else looks like are always among them: one line of such may stand where nobody looked.
    """
    inside = [(NONE, text) for text in texts if text.strip()]
    found = [form for form in FORMS if not form.share]
    inside = [_peeled(found, wrap, text) for wrap, text in inside]
    for _ in range(_DEEPEST):
        form = next((form for form in FORMS if form not in found and _fits(form, inside)), None)
        if form is None:
            break
        found.append(form)
        inside = [_peeled(found, wrap, text) for wrap, text in inside]
    return tuple(form for form in FORMS if form in found)


def _fits(form: Form, texts: list[tuple[Wrap, str]]) -> bool:
    found = [peeled for wrap, text in texts if (peeled := form.peel(text, wrap)) is not None]
    whole = sum(not peeled.torn for peeled in found)
    return whole > 0 and whole * 100 >= form.share * len(texts) and form.holds(found)


def _peeled(forms: Sequence[Form], wrap: Wrap, text: str) -> tuple[Wrap, str]:
    for _ in range(_DEEPEST):
        peeled = next((one for form in forms if (one := form.peel(text, wrap)) is not None), None)
        if peeled is None:
            break
        wrap, text = peeled.wrap, plain(peeled.text)
    return wrap, text


def is_wrapped(texts: list[str], forms: Sequence[Form]) -> bool:
    """Whether texts are a log because of the envelopes around them; a time alone may be anybody's."""
    shown = [text for text in texts if text.strip()]
    wrapped = sum(_peeled(forms, NONE, text)[0] != NONE for text in shown)
    return wrapped > 0 and wrapped * 100 >= _WRAPPED * len(shown)


def sample(path: Path) -> list[str]:
    """The lines at both ends of a file, as envelopes are looked for in them. Raises OSError."""
    return [_begun(line) for line in _ends(path)]


def shown(path: Path) -> list[str]:
    """The same lines as a terminal shows them in the end, without the progress bars in their place. Raises OSError."""
    return [spread(line)[1] for line in _ends(path)]


def _ends(path: Path) -> list[str]:
    with path.open("rb") as file:
        size = path.stat().st_size
        parts = [file.read(_LOOKED_AT)]
        if size > 2 * _LOOKED_AT:
            file.seek(size - _LOOKED_AT)
            # The first and the last line of what is looked at may be no whole ones.
            parts = [parts[0].rpartition(b"\n")[0], file.read(_LOOKED_AT).partition(b"\n")[2]]
        elif size > _LOOKED_AT:
            parts[0] += file.read(_LOOKED_AT)
    raw = b"\n".join(parts).removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"")
    return plain(raw.decode("utf-8", "replace")).split("\n")


def _begun(line: str) -> str:
    head, shown = spread(line)
    return head or shown
