"""No pattern that reads a line can be made to run away: shown by construction, not by a clock.

Three simple rules over the parse tree of every compiled pattern of ``streams.lines``, ``schemas.text`` and what reads
lines in ``producers`` and holds them against a library:

1. A repeat that may run more than ``SMALL`` times holds no repeat of variable length, unless nothing that could fail
   stands behind it: only a failure makes the engine try the other ways to cut the text up (exponential work).
2. An open repeat is not followed at once by another that could begin with what it takes itself (quadratic work).
3. An open repeat that something can fail behind does not follow a start that it could take itself: a search would
   run on to the end from each such start (quadratic work over a text that repeats the start). No start at all is
   such a start; that of a line is a line feed.

A repeat is *open* where it may run more than ``LONG`` times, the length to which lines are cut.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import msgspec
import pytest

import streams.lines

READERS = [
    *(
        "producers.heads",
        "producers.readers.json_log",
        "producers.printed_stacks",
        "producers.readers.plain",
        "producers.readers.system",
    ),
    *(
        "producers.samples",
        "producers.printed_timers",
        "producers.unnumbered",
        "producers.stacktext",
        "producers.readers.stackfile",
        "producers.readers.ras",
    ),
    *(f"producers.{name}" for name in ("grouping", "levels", "lines", "logfile", "timing", "times", "voices")),
    *(f"producers.envelopes.{name}" for name in ("evidence", "forms", "unwrap", "wrap")),
    *(
        "producers.hiding",
        "producers.program_secrets",
        "producers.job_lines",
        "producers.own_values",
        "producers.printed_versions",
    ),
    *(f"producers.readers.{name}" for name in ("code_state", "environment", "launch_script", "scheduler")),
    *("producers.readers.job_config", "producers.job_files", "producers.shell"),
    *("producers.exposition", "producers.readers.infiniband"),
    *("producers.readers.nvidia_smi", "producers.readers.prometheus", "schemas.measures"),
    "streams.library.known",
]
SMALL = 4
LONG = 4096
ALPHABET = frozenset(chr(code) for code in range(128))
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT)
ASSERTIONS = (c.AT, c.ASSERT, c.ASSERT_NOT)
Item = tuple[Any, Any]


def patterns_in(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, dict) and depth < 4:
        for key, one in value.items():
            yield from patterns_in(one, f"{name}.{key}", depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 4:
        for index, one in enumerate(value):
            yield from patterns_in(one, f"{name}.{index}", depth + 1)
    elif isinstance(value, msgspec.Struct):
        label = getattr(value, "name", "")
        for field in value.__struct_fields__:
            yield from patterns_in(getattr(value, field), f"{name}({label}).{field}", depth + 1)


def all_patterns() -> dict[str, re.Pattern[str]]:
    names = [module.name for module in pkgutil.walk_packages(streams.lines.__path__, "streams.lines.")]
    found = {}
    for module in [*names, "schemas.text", *READERS]:
        for key, value in vars(importlib.import_module(module)).items():
            if not key.startswith("__"):
                found.update(patterns_in(value, f"{module.rsplit('.', 1)[-1]}.{key}"))
    return found


def characters(tree: Any) -> frozenset[str]:
    """The ASCII characters that may stand in what the items match; look-around takes nothing."""
    found: frozenset[str] = frozenset()
    for op, value in tree:
        if op is c.LITERAL:
            found |= {chr(value), chr(value).lower(), chr(value).upper()}
        elif op is c.NOT_LITERAL:
            found |= ALPHABET - {chr(value)}
        elif op is c.ANY:
            found |= ALPHABET - {"\n"}
        elif op is c.IN:
            found |= members(value)
        elif op in REPEATS:
            found |= characters(value[2])
        elif op is c.SUBPATTERN:
            found |= characters(value[3])
        elif op is c.BRANCH:
            for branch in value[1]:
                found |= characters(branch)
        elif op not in ASSERTIONS:
            raise AssertionError(f"the checker does not know {op}")
    return found


def members(items: list[Item]) -> frozenset[str]:
    found: set[str] = set()
    negated = False
    for op, value in items:
        if op is c.NEGATE:
            negated = True
        elif op is c.LITERAL:
            found.add(chr(value))
        elif op is c.RANGE:
            found |= {one for one in ALPHABET if value[0] <= ord(one) <= value[1]}
        else:
            found |= {one for one in ALPHABET if CATEGORIES[value](one)}
    return frozenset(ALPHABET - found if negated else found)


CATEGORIES = {
    c.CATEGORY_DIGIT: str.isdigit,
    c.CATEGORY_NOT_DIGIT: lambda one: not one.isdigit(),
    c.CATEGORY_SPACE: str.isspace,
    c.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    c.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
    c.CATEGORY_NOT_WORD: lambda one: not (one.isalnum() or one == "_"),
}


def first(tree: Any) -> frozenset[str]:
    """The ASCII characters with which what the items match may begin."""
    found: frozenset[str] = frozenset()
    for op, value in tree:
        if op in ASSERTIONS:
            continue
        if op in REPEATS:
            found |= first(value[2])
            if value[0] == 0:
                continue
        elif op is c.SUBPATTERN:
            found |= first(value[3])
        elif op is c.BRANCH:
            found |= frozenset().union(*(first(branch) for branch in value[1]))
        else:
            found |= characters([(op, value)])
        break
    return found


def variable(tree: Any) -> bool:
    """Whether a repeat of variable length stands anywhere in the items."""
    for op, value in tree:
        if op in REPEATS and (value[0] != value[1] or variable(value[2])):
            return True
        if op is c.SUBPATTERN and variable(value[3]):
            return True
        if op is c.BRANCH and any(variable(branch) for branch in value[1]):
            return True
    return False


def can_fail(tree: Any) -> bool:
    """Whether the items may refuse a text: anything that must match, or an assertion."""
    return any(op in ASSERTIONS or not (op in REPEATS and value[0] == 0) for op, value in tree)


def faults(
    tree: Any, before: frozenset[str] | None = frozenset(), *, failing: bool = False, multiline: bool = False
) -> Iterator[str]:
    """What breaks a rule. ``before``: what the match has taken so far, null once that is kept apart from the rest."""
    items = list(tree)
    for index, (op, value) in enumerate(items):
        behind = items[index + 1 :]
        fails = failing or can_fail(behind)
        if op in REPEATS:
            least, most, body = value
            taken = characters(body)
            if most > SMALL and variable(body) and fails:
                yield f"a repeat in a repeat over {shown(taken)}"
            if most > LONG:
                yield from _open(taken, behind, before if fails else None)
            yield from faults(body, before, failing=fails or most > 1, multiline=multiline)
            before = _taken(before, taken) if least else before
        elif op is c.SUBPATTERN:
            yield from faults(value[3], before, failing=fails, multiline=multiline)
            before = _taken(before, characters(value[3]))
        elif op is c.BRANCH:
            for branch in value[1]:
                yield from faults(branch, before, failing=fails, multiline=multiline)
            before = _taken(before, characters([(op, value)]))
        elif op is c.AT and value is c.AT_BEGINNING and not index:
            before = frozenset("\n") if before is not None and multiline else None
        elif op not in ASSERTIONS:
            before = _taken(before, characters([(op, value)]))


def _taken(before: frozenset[str] | None, more: frozenset[str]) -> frozenset[str] | None:
    return None if before is None else before | more


def _open(taken: frozenset[str], behind: list[Item], before: frozenset[str] | None) -> Iterator[str]:
    for op, value in behind:
        if op in REPEATS and first(value[2]) & taken:
            yield f"an open repeat over {shown(taken)} before another"
        if op in ASSERTIONS or (op in REPEATS and value[0] == 0):
            continue
        break
    if before is not None and before <= taken:
        yield f"an open repeat over {shown(taken)} behind a start that it could take itself"


def shown(taken: frozenset[str]) -> str:
    return "".join(sorted(taken & frozenset("aA0 _-./:\n[|"))).replace("\n", "\\n")


def check(pattern: re.Pattern[str]) -> list[str]:
    tree = parser.parse(pattern.pattern, pattern.flags)
    return list(faults(tree, multiline=bool(pattern.flags & re.MULTILINE)))


PATTERNS = all_patterns()


def test_all_patterns_are_found() -> None:
    assert {name.split(".")[0] for name in PATTERNS} >= {"fatal", "launcher", "layout", "phases", "series", "signature"}
    assert {name.split(".")[0] for name in PATTERNS} >= {"barred", "bars", "dashed", "deepspeed", "megatron", "timers"}
    assert {name.split(".")[0] for name in PATTERNS} >= {"printed_dict", "reading", "torchtitan"}
    assert {name.split(".")[0] for name in PATTERNS} >= {"forms", "grouping", "levels", "times", "voices"}
    assert sum(name.startswith("fatal.RULES") for name in PATTERNS) >= 5


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_pattern_cannot_run_away(name: str) -> None:
    assert check(PATTERNS[name]) == []


@pytest.mark.parametrize(
    "bad",
    [
        r"(a+)+$",
        r"(?:a|b+)*c",
        r"(?:\w{1,64} ?){1,64}!",
        r"(?:x*){2,100}y",
        r"\s*\s*x",
        r"\w+\d*:",
        r"[a-z]+[^:]*:",
        r"ab\w+ c",
        r".*.*x",
        r"((?:\d+,?)+)\]",
        r"\d+-",
        r"(?m)^\s*File",
    ],
)
def test_the_checker_sees_patterns_that_can(bad: str) -> None:
    assert check(re.compile(bad)) != []


@pytest.mark.parametrize(
    "good",
    [
        r"#\d+-\d+",
        r"^\s*File",
        r"(?m)^[ \t]*File",
        r"a|b\s+",
        r"x(?:a|b)*c",
        r"rank\s*:\s*(\d{1,7})",
        r"(?:\w{1,64}/?){1,64}",
        r"x \w+ y",
        r"(?:,\d{1,4})?$",
        r"\[(?:INFO|WARN)\][ \t]*",
    ],
)
def test_the_checker_lets_harmless_patterns_pass(good: str) -> None:
    assert check(re.compile(good)) == []
