"""What one source tells of a job: put into facets, without secrets, in one form, bounded, the rest counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from producers.hiding import hidden, hidden_value, hidden_words, names_secret
from producers.own_values import OWN, in_one_form, is_own_name, is_own_option, is_own_variable
from producers.rows import printable
from producers.setting_names import MODEL_NAMES, SCALE, WORLD, axis_of, facet_of, last_of
from schemas.events import Job, TimeSource
from schemas.jobs import HIDDEN, LONGEST_NAME, LONGEST_VALUE, MOST_NAMES, MOST_WORDS

MOST_SIZE = 2**31 - 1
MOST_SCANNED = 8192
"""Characters of a value that are looked at."""
MOST_LOOKED_AT = 250_000
"""Characters of all values of a source that are looked at."""
MOST_KEPT = 100_000
"""Characters of all names and values of a source that are told, so that one record holds them."""
MOST_DEPTH, MOST_LEAVES, LONGEST_LIST = 12, 4000, 16
"""Of a nested configuration: how deep, how many values, and how many items of a list are told one by one."""
SHORTEST_SECRET = 6
"""What is shorter may be an ordinary word elsewhere."""
SECRET, TOO_MANY, TOO_DEEP = "secret", "too many", "too deep"
_AS_IT_IS = ("versions", "code")
"""Facets in which numbers with dots are no addresses."""
_TEXTS = ("versions", "code", "data", "launch", "environment", "flags", "hyperparameters", "scale", "labels")


class JobFacts:
    """Grows while a source is read; ``event`` is what it came to. What is told again replaces what was told before."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.framework = ""
        self.command: list[str] = []
        self.world_size: int | None = None
        self.left_out: dict[str, int] = {}
        self._facets: dict[str, dict[str, str]] = {name: {} for name in (*_TEXTS, "model")}
        self._axes: dict[str, dict[str, int]] = {}
        self._secrets: set[str] = set()
        self._looked_at = self._kept = 0

    def __bool__(self) -> bool:
        told = any(self._facets.values()) or self._axes or self.command
        return bool(told or self.framework or self.world_size is not None)

    def tell(self, facet: str, name: str, value: object) -> None:
        """One name of a facet, as it is but for secrets and what is each run's own."""
        text = _text(value)
        if not name or not text or self._is_spent(text):
            return
        told, secrets = hidden_value(name, text[:MOST_SCANNED], hashes=facet in _AS_IT_IS)
        self.leave_out(SECRET, secrets)
        if told == HIDDEN and len(text) >= SHORTEST_SECRET and len(self._secrets) < MOST_NAMES:
            self._secrets.add(printable(text)[:LONGEST_VALUE])
        self._put(facet, printable(name), told if facet in _AS_IT_IS else in_one_form(told))

    def setting(self, name: str, value: object) -> None:
        """A setting of the training, whichever facet it belongs to."""
        text = _text(value)
        if not text or is_own_name(name):
            self.leave_out(OWN, int(bool(text)))
        elif last_of(name) in WORLD:
            self.world_size = _size(text) or self.world_size
        elif (axis := axis_of(name)) and (size := _size(text)) is not None:
            self._axes.setdefault(axis, {})[name] = size
        else:
            self._setting(name, text)

    def _setting(self, name: str, text: str) -> None:
        facet = facet_of(name, text)
        told = text.lower() if facet == "flags" else text
        if facet == "model" and last_of(name) in MODEL_NAMES:
            name = "name"
        if facet == "versions":
            name = last_of(name).removesuffix("_version")
        self.tell(facet, SCALE[last_of(name)] if facet == "scale" else name, told)

    def settings(self, nested: Mapping[Any, Any], prefix: str = "") -> None:
        """The settings of a nested configuration, by their dotted names."""
        left = MOST_LEAVES
        pending: list[tuple[str, Any, int]] = [(prefix, nested, 0)]
        while pending:
            name, value, depth = pending.pop()
            if isinstance(value, Mapping):
                if name and names_secret(name.rpartition(".")[2]):
                    self.leave_out(SECRET)
                elif depth >= MOST_DEPTH or len(value) > left:
                    self.leave_out(TOO_DEEP if depth >= MOST_DEPTH else TOO_MANY)
                else:
                    items = [(_joined(name, key), one, depth + 1) for key, one in value.items()]
                    pending += reversed(items)
                    left -= len(items)
            else:
                self.setting(name[:MOST_SCANNED], self._listed(value) if isinstance(value, _LISTS) else value)

    def _listed(self, values: Iterable[Any]) -> str:
        """A list as one text; an empty one is nothing. What stands in one item may name what the next one is."""
        items = sorted(values, key=_text) if isinstance(values, set | frozenset) else list(values)
        told = [_text(one) if not isinstance(one, dict | list | tuple) else "…" for one in items[:LONGEST_LIST]]
        words, secrets = hidden_words([one[:MOST_SCANNED] for one in told])
        self.leave_out(SECRET, secrets)
        return ", ".join(words) + (f", … {len(items) - LONGEST_LIST} more" if len(items) > LONGEST_LIST else "")

    def frame(self, framework: str) -> None:
        """The framework, where none is told yet."""
        self.framework = self.framework or printable(hidden(framework[:MOST_SCANNED])[0])[:LONGEST_NAME]

    def size(self, axis: str, value: object) -> None:
        """The size of an axis of the layout, by its own name."""
        if (size := _size(_text(value))) is not None:
            self._axes.setdefault(printable(axis)[:LONGEST_NAME], {})[axis] = size

    def variable(self, name: str, value: str) -> None:
        """A variable of the environment."""
        if is_own_variable(name):
            self.leave_out(OWN)
        else:
            self.tell("environment", name, value)

    def words(self, words: Iterable[str]) -> None:
        """A command, which is kept where it is fuller than the one before."""
        told = list(words)
        if self._is_spent("".join(told)):
            return
        self.leave_out(TOO_MANY, max(len(told) - MOST_WORDS, 0))
        kept, own = _without_own([word[:MOST_SCANNED] for word in told[:MOST_WORDS]])
        kept, secrets = hidden_words(kept)
        if len(kept) <= len(self.command):
            return
        self.leave_out(OWN, own)
        self.leave_out(SECRET, secrets)
        self.command = [printable(in_one_form(word))[:LONGEST_VALUE] for word in kept]

    def _is_spent(self, text: str) -> bool:
        """Whether the source has told more than is looked at; ``text`` is what it tells now."""
        self._looked_at += min(len(text), MOST_SCANNED)
        if self._looked_at > MOST_LOOKED_AT:
            self.leave_out(TOO_MANY)
        return self._looked_at > MOST_LOOKED_AT

    def label(self, name: str, value: object) -> None:
        """A label of the scheduler or of Kubernetes."""
        self.tell("labels", name, value)

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count what is not told."""
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _put(self, facet: str, name: str, value: str) -> None:
        names = self._facets[facet]
        told = printable(value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + "…")
        self._kept += len(name) + len(told)
        if len(name) > LONGEST_NAME or (name not in names and len(names) >= MOST_NAMES) or self._kept > MOST_KEPT:
            self.leave_out(TOO_MANY)
            return
        names[name] = told

    def event(self, time: int, source: TimeSource = "inferred", precision_ns: int = 0) -> Job:
        """All of it as one event."""
        layout = {}
        for axis, told in sorted(self._axes.items()):
            if len(set(told.values())) == 1:
                layout[axis] = next(iter(told.values()))
            else:
                # Several parts of a job are laid out differently, as actor and rollout of reinforcement learning.
                for name, size in told.items():
                    self._put("hyperparameters", name, str(size))
        facets = {
            name: {key: self._without_secrets(value) for key, value in sorted(values.items())}
            for name, values in self._facets.items()
        }
        model = facets.pop("model")
        event = Job(
            time=time,
            time_source=source,
            precision_ns=precision_ns,
            source=printable(self.source)[:LONGEST_VALUE],
            framework=self.framework,
            model=model.pop("name", ""),
            model_sizes=model,
            layout=layout,
            command=[self._without_secrets(word) for word in self.command],
            world_size=self.world_size,
            left_out=dict(sorted(self.left_out.items())),
        )
        return msgspec.structs.replace(event, **facets)

    def _without_secrets(self, text: str) -> str:
        """The text, hidden where it is a secret under another name, as where ``-p`` repeats ``--password``."""
        return HIDDEN if text in self._secrets else text


def _without_own(words: list[str]) -> tuple[list[str], int]:
    """The words without options of this run alone, and how many of these there were."""
    kept: list[str] = []
    skips = False
    own = 0
    for word in words:
        if skips and not word.startswith("-"):
            skips = False
            continue
        skips = False
        name, equals, _ = word.partition("=")
        if name.startswith("-") and is_own_option(name):
            own += 1
            skips = not equals
        else:
            kept.append(word)
    return kept, own


_LISTS = (list, tuple, set, frozenset)


def _joined(name: str, key: object) -> str:
    # What is too long for a name is long enough to be counted as that.
    text = _text(key)[: 2 * LONGEST_NAME]
    return f"{name}.{text}" if name else text


def _text(value: object) -> str:
    """A value as it is told, empty for what is not set."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    text = "" if value is None else str(value)[: MOST_SCANNED * 2].strip()
    return "" if text.lower() in ("none", "null", "~") else text


def _size(text: str) -> int | None:
    size = int(text) if text.isdecimal() and len(text) < 11 else 0
    return size if 0 < size <= MOST_SIZE else None
