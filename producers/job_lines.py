"""What lines of a log tell of a job: arguments and configurations that frameworks print when they begin, versions.

This is the producer's work, not the rank stage's: what is printed spans many lines of one file, which only the producer
has side by side and in order (windows would cut it), and secrets have to be gone before anything is sent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from producers.job_facts import JobFacts
from producers.printed_versions import versions_in
from producers.readers import job_config
from producers.readers.launch_script import take_script
from producers.rows import parse

MOST_BLOCK_LINES, MOST_BLOCK = 3000, 256 * 1024
"""Lines and characters of one block; what is longer is not told."""
MOST_BRACKETS = 100
MOST_LINE = 65_536

_MEGATRON = re.compile(r"[ \t]{0,8}-{10,60} arguments -{10,60}")
_MEGATRON_END = re.compile(r"[ \t]{0,8}-{5,60} end of arguments -{5,60}")
_DOTTED = re.compile(
    r"(?:.{0,200}\[config\.py:\d{1,6}:print\(?\)?\])?[ \t]{0,8}([A-Za-z_]\w{0,100}) \.{2,100} ?(.{0,4000})"
)
_ARGUMENTS = re.compile(r".{0,200}?\b\w{0,40}TrainingArguments\(")
_ARGUMENT = re.compile(r"[ \t]{0,8}([A-Za-z_]\w{0,100})=(.{0,4000}?),?[ \t]{0,8}")
_BRACED = re.compile(
    r".{0,300}?(?:Running with (?:args|config|configuration):|[Mm]odel config\b[^{]{0,80}|\bjson =|Full config:|\bcfg:"
    r"|Training config\w{0,10}:|(?:Job )?[Cc]onfig(?:uration)?:)[ \t]{0,4}(\{.{0,65536})"
)
_RESOLVED = re.compile(
    r".{0,200}?(\{'(?:actor_rollout_ref|algorithm|data|trainer|critic|reward_model|ray_init|ray_kwargs"
    r"|custom_reward_function)': .{0,65536})"
)
"""The outermost names of verl's configuration, which is printed in their order."""
_NEMO = re.compile(r".{0,200}\*{4,40} (?:Experiment configuration|Hydra config) \*{4,40}")
_YAML_LINE = re.compile(r"[ \t]{0,80}(?:- )?[A-Za-z_'\"][^:\n]{0,120}:(?: .{0,4000})?|[ \t]{1,80}.{0,4000}|-.{0,4000}")
_MODEL_CONFIG = re.compile(r".{0,200}?\b[A-Z]\w{1,40}Config \{$")

_SET_BY = re.compile(r"NCCL INFO ((?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set by environment to (.{1,200}?)\.?(?:$|\n)")
_ENVIRONMENT = re.compile(r"(?:.{0,100}\bEnvironment: |\+{1,4} export |declare -x )([A-Z][A-Z0-9_]{1,100})=(.{0,4000})")
_ECHO = re.compile(
    r"(?:\+{1,4} |.{0,120}\bcmd = |.{0,120}\b(?:[Rr]unning|[Ll]aunch(?:ing)?|[Ee]xecuting)(?: command)?: )"
    r"(?=\S{0,200}(?:srun|torchrun|deepspeed|accelerate|mpirun|python))(.{1,16384})"
)
_PARAMETERS = re.compile(
    r"(?:building model: (\d{3,20}) parameters\b|Number of trainable parameters = (\d[\d,]{2,20})"
    r"|\bsize: (\d[\d,]{2,20}) total parameters\b)"
)
_BACKEND = re.compile(
    r"\b(?:initialized process group|init(?:ializing)? (?:torch )?distributed).{0,80}?\bbackend[=: ]{1,3}(\w{1,20})",
    re.IGNORECASE,
)
_COMMANDS = ("srun", "torchrun", "deepspeed", "accelerate", "mpirun", "python")
_ALONE = (
    *("ersion", "torch==", "set by environment", "Environment: ", "+ ", "declare -x ", "cmd = ", "unning", "unch"),
    *("xecuting", "building model", "trainable parameters", "total parameters", "backend"),
)
_TOGETHER = (
    " arguments -",
    "Arguments(",
    "[config.py:",
    "Config {",
    "onfig",
    "args: {",
    "cfg: {",
    "json = {",
    "{'",
    " ****",
)
"""A line that tells something by itself has one of the former, one that begins a block one of the latter."""


class Told(msgspec.Struct, frozen=True):
    """Where in a log something was told (the record's place), and all that the log tells of its job."""

    at: int
    facts: JobFacts


def told_by(texts: Iterable[str], file: str) -> Told | None:
    """What the logical records of one writer tell, null where that is nothing; ``at`` is the first that tells any."""
    facts = JobFacts(file)
    lines = _lines(texts)
    first = -1
    for at, line in lines:
        alone, begins = _has(line, _ALONE), _has(line, _TOGETHER)
        if alone:
            _single(line, facts)
        if begins:
            _block(line, lines, facts)
        if first < 0 and facts:
            first = at
    return Told(first, facts) if facts else None


def _has(line: str, words: tuple[str, ...]) -> bool:
    """Whether any of the words stands in the line; most lines are asked nothing else, so this has to be quick."""
    for word in words:  # noqa: SIM110 - a generator takes several times as long
        if word in line:
            return True
    return False


def _lines(texts: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of the records with the places of these."""
    for at, text in enumerate(texts):
        if "\n" in text:
            for line in text.split("\n"):
                yield at, line[:MOST_LINE]
        else:
            yield at, text[:MOST_LINE]


def _single(line: str, facts: JobFacts) -> None:
    """What one line tells by itself."""
    for name, version in versions_in(line):
        facts.tell("versions", name, version)
    told = _SET_BY.search(line) if "set by env" in line else None
    variable = told or _ENVIRONMENT.match(line)
    if variable is not None:
        facts.variable(variable[1], variable[2].strip("\"'"))
    if _has(line, _COMMANDS) and (echo := _ECHO.match(line)) is not None:
        take_script(echo[1], facts)
    if "parameters" in line and (parameters := _PARAMETERS.search(line)) is not None:
        facts.tell("model", "parameters", next(filter(None, parameters.groups())).replace(",", ""))
    if "backend" in line and (backend := _BACKEND.search(line)) is not None:
        facts.setting("backend", backend[1])


def _block(line: str, lines: Iterator[tuple[int, str]], facts: JobFacts) -> None:
    """What a line and those behind it tell together."""
    if _MEGATRON.search(line):
        _megatron(lines, facts)
    elif "[config.py:" in line and (dotted := _DOTTED.fullmatch(line)) is not None:
        facts.frame("deepspeed")
        if not dotted[2].startswith("{"):
            facts.setting(dotted[1], dotted[2])
    elif _ARGUMENTS.fullmatch(line):
        _arguments(lines, facts)
    elif _MODEL_CONFIG.fullmatch(line):
        _braced("{", lines, facts)
    elif (braced := _BRACED.match(line)) is not None:
        _braced(braced[1], lines, facts)
    elif (resolved := _RESOLVED.match(line)) is not None:
        _braced(resolved[1], lines, facts)
    elif _NEMO.fullmatch(line):
        _nemo(lines, facts)


def _megatron(lines: Iterator[tuple[int, str]], facts: JobFacts) -> None:
    facts.frame("megatron")
    for count, (_, line) in enumerate(lines):
        if _MEGATRON_END.search(line) or count > MOST_BLOCK_LINES:
            return
        if (found := _DOTTED.fullmatch(line)) is not None:
            facts.setting(found[1], found[2])


def _arguments(lines: Iterator[tuple[int, str]], facts: JobFacts) -> None:
    facts.frame("huggingface")
    for count, (_, line) in enumerate(lines):
        if line.strip() == ")" or count > MOST_BLOCK_LINES:
            return
        if (found := _ARGUMENT.fullmatch(line)) is not None:
            facts.setting(found[1], found[2].strip("'\""))


def _nemo(lines: Iterator[tuple[int, str]], facts: JobFacts) -> None:
    facts.frame("nemo")
    block: list[str] = []
    for count, (_, line) in enumerate(lines):
        if count == 0 and line.startswith("[NeMo"):
            continue
        if _YAML_LINE.fullmatch(line) is None or len(block) >= MOST_BLOCK_LINES:
            break
        block.append(line)
    for nested in job_config.yaml_documents("\n".join(block)[:MOST_BLOCK]):
        _take(nested, facts)


def _braced(begun: str, lines: Iterator[tuple[int, str]], facts: JobFacts) -> None:
    """A configuration as JSON or as Python prints it, up to its last bracket."""
    block: list[str] = []
    depth = size = 0
    line = begun
    while True:
        block.append(line)
        size += len(line)
        depth += _opened(line)
        if depth <= 0 or depth > MOST_BRACKETS or size > MOST_BLOCK or len(block) > MOST_BLOCK_LINES:
            break
        after = next(lines, None)
        if after is None:
            break
        line = after[1]
    if depth > 0:
        return
    nested = _nested("\n".join(block))
    if nested is not None:
        _take(nested, facts)


_MARKS = re.compile(r"\\.|[\"'{}\[\]()]")


def _opened(line: str) -> int:
    """How many brackets more a line opens than it closes, those in quotes left out."""
    depth, quote = 0, ""
    for found in _MARKS.finditer(line):
        mark = found[0]
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        elif len(mark) == 1:
            depth += 1 if mark in "{[(" else -1
    return depth


def _nested(text: str) -> Mapping[Any, Any] | None:
    text = text[: text.rfind("}") + 1]
    try:
        value = parse(text.encode("utf-8", "replace"))
    except ValueError:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return value if isinstance(value, dict) else None


def _take(nested: Mapping[Any, Any], facts: JobFacts) -> None:
    """Take in a configuration where it is one of training."""
    told = job_config.read(nested, facts.source)
    if told is not None:
        facts.frame(told.framework)
        facts.settings(nested)
