"""Configurations of training in JSON, YAML and TOML, told by the names of their settings.

Hugging Face (``config.json``, arguments, ``trainer_state.json``), Megatron, NeMo, Hydra, verl, DeepSpeed, torchtitan,
Accelerate; and ``job.json``, which has the facets of a job by their own names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from producers.job_facts import JobFacts
from producers.rows import parse
from producers.setting_names import AXES, is_telling, last_of
from schemas.jobs import FACETS

FEWEST_TELLING = 3
MOST_BYTES = 1024 * 1024
MOST_YAML, MOST_DOCUMENTS = 256 * 1024, 8
MOST_MERGED, MOST_IN_MERGE = 10_000, 64
_MOST_WALKED = 4000
_SETTING = re.compile(
    r"(?:^[ \t]{0,80}(?:- )?|[{,][ \t]{0,8})[\"']?([A-Za-z_][\w.-]{0,80})[\"']?[ \t]{0,8}[:=]", re.MULTILINE
)
_TABLE = re.compile(r"^[ \t]{0,8}\[{1,2}[A-Za-z_][\w.\"-]{0,100}\]{1,2}[ \t]{0,8}(?:#[^\n]{0,400})?$", re.MULTILINE)

Nested = Mapping[Any, Any]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Builds plain values only; merging must not grow without end."""

    def flatten_mapping(self, node: Any) -> None:
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge" and len(getattr(value, "value", ())) > MOST_IN_MERGE:
                raise yaml.YAMLError("merges too much")
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise yaml.YAMLError("merges too much")


def documents(text: str) -> list[Nested]:
    """The nested values that a text holds as JSON, TOML or YAML; none where it is no such text."""
    if text.lstrip().startswith("{"):
        try:
            value = parse(text.encode("utf-8", "replace"))
        except ValueError:
            value = None
        if isinstance(value, dict):
            return [value]
    if _TABLE.search(text):
        try:
            return [tomllib.loads(text)]
        except (ValueError, RecursionError):
            return []
    return yaml_documents(text)


def yaml_documents(text: str) -> list[Nested]:
    """The mappings in a YAML text, as far as it can be read."""
    found: list[Nested] = []
    try:
        for count, value in enumerate(yaml.load_all(text[:MOST_YAML], _Loader)):
            if isinstance(value, dict):
                found.append(value)
            if count + 1 >= MOST_DOCUMENTS:
                break
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return found
    return found


def may_be(text: str, file: str) -> bool:
    """Whether a text has enough names of settings that it is worth being parsed."""
    names = {name for name in _SETTING.findall(text) if is_telling(name) or name in _OWN}
    return len(names) >= FEWEST_TELLING or _is_own_text(text, file)


def read(nested: Nested, file: str) -> JobFacts | None:
    """What a configuration tells, null where it is none of training."""
    facts = JobFacts(file)
    if _is_own(nested, file):
        _take_own(nested, facts)
        return facts
    names = list(_names(nested))
    telling = {last_of(name) for name in names if is_telling(name)}
    # Sizes of a layout stand beside results, too.
    if len(telling) < FEWEST_TELLING or telling <= AXES.keys():
        return None
    facts.framework = framework_of(nested, names)
    facts.settings(nested)
    return facts


def framework_of(nested: Nested, names: list[str]) -> str:
    """Whose configuration it is, by names that only that framework has; empty where nothing tells."""
    top, last = {str(key) for key in nested}, {last_of(name) for name in names}
    for framework, holds in (
        ("verl", "actor_rollout_ref" in top),
        ("nemo", "exp_manager" in top),
        ("torchtitan", len(top & {"parallelism", "training", "activation_checkpoint", "job", "model", "float8"}) > 2),
        ("megatron", {"tensor_model_parallel_size", "num_layers"} <= last),
        ("deepspeed", bool(last & {"zero_optimization", "train_micro_batch_size_per_gpu"})),
        ("accelerate", {"distributed_type", "mixed_precision"} <= last),
        ("huggingface", bool(last & {"per_device_train_batch_size", "transformers_version"})),
    ):
        if holds:
            return framework
    return ""


def _names(nested: Nested) -> Iterator[str]:
    """The dotted names of some settings."""
    pending: list[tuple[str, Any, int]] = [("", nested, 0)]
    left = _MOST_WALKED
    while pending and left > 0:
        name, value, depth = pending.pop()
        if name:
            yield name
        if isinstance(value, Mapping) and depth < 8:
            for key, one in list(value.items())[:left]:
                left -= 1
                if isinstance(key, str):
                    pending.append((f"{name}.{key[:120]}" if name else key[:120], one, depth + 1))


_OWN = frozenset((*FACETS, "layout", "framework", "command", "world_size"))
_WHOSE = frozenset(("job", "id", "name", "attempt", "cluster"))
"""What else a description may say; a recording tells it by itself."""
OWN_FILE = "job.json"
UNKNOWN = "unknown name"
_OWN_TEXT = re.compile(rf"\"(?:framework|layout|{'|'.join(FACETS)})\"\s{{0,8}}:")


def _is_own_text(text: str, file: str) -> bool:
    return text.lstrip().startswith("{") and len(set(_OWN_TEXT.findall(text))) >= _fewest(file)


def _fewest(file: str) -> int:
    """How many facets a file has to tell: other records have labels or an environment, too, but not that name."""
    return 1 if file.rpartition("/")[2] == OWN_FILE else 2


def _is_own(nested: Nested, file: str) -> bool:
    """Whether it says a job by the names of a description, beside whose it is: no others, unless its name says so."""
    told = {str(key) for key in nested} - _WHOSE
    facets = [value for key, value in nested.items() if key in FACETS or key == "layout"]
    known = told <= _OWN or _fewest(file) == 1
    return len(told & _OWN) >= _fewest(file) and known and bool(facets) and all(isinstance(one, dict) for one in facets)


def _take_own(nested: Nested, facts: JobFacts) -> None:
    framework, command, world = (nested.get(name) for name in ("framework", "command", "world_size"))
    if isinstance(framework, str):
        facts.frame(framework)
    if isinstance(command, list):
        facts.words(str(word) for word in command)
    facts.setting("world_size", world)
    for facet in FACETS:
        for name, value in dict(nested.get(facet) or {}).items():
            if facet == "environment":
                facts.variable(str(name), str(value))
            elif isinstance(value, str | int | float):
                facts.tell(facet, str(name), value)
    for axis, size in dict(nested.get("layout") or {}).items():
        facts.size(str(axis), size)
    facts.leave_out(UNKNOWN, len({str(key) for key in nested} - _OWN - _WHOSE))
