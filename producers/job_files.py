"""Files that tell what a job is, told by what lies in them; asked only where no reader of recordings knows one."""

from __future__ import annotations

import re
from pathlib import Path

from producers.job_facts import JobFacts
from producers.lines import is_binary, is_packed
from producers.readers import code_state, environment, job_config, launch_script, scheduler
from producers.scan import Source

MOST_BYTES = 1024 * 1024
"""A file that tells of a job is smaller."""
_RANK = re.compile(r"(?:^|[^a-z])rank[-_]?(\d{1,7})(?:[^0-9]|$)")


def read(source: Source) -> JobFacts | None:
    """What a file tells of its job, null where it tells nothing. Raises OSError."""
    if not 0 < source.size <= MOST_BYTES or is_packed(source.path) or is_binary(source.path):
        return None
    text = _text(source.path)
    facts = _of_script(text, source.file) or _of_nested(text, source.file)
    for reader in (scheduler, environment, code_state):
        facts = facts or reader.read(text, source.file)
    return facts or None


def is_script(source: Source) -> bool:
    """Whether a file begins as scripts do. Raises OSError."""
    with source.path.open("rb") as file:
        return file.read(2) == b"#!"


def rank_of(file: str) -> int | None:
    """The rank whose a file is by its name, null where it names none."""
    found = _RANK.search(file.rpartition("/")[2].lower())
    return int(found[1]) if found else None


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")


def _of_script(text: str, file: str) -> JobFacts | None:
    return launch_script.read(text, file) if launch_script.recognised(text) else None


def _of_nested(text: str, file: str) -> JobFacts | None:
    kubernetes = "apiVersion" in text[:65_536] and "kind" in text
    if not kubernetes and not job_config.may_be(text, file):
        return None
    found: JobFacts | None = None
    for nested in job_config.documents(text):
        if scheduler.is_kubernetes(nested):
            one: JobFacts | None = scheduler.of_kubernetes(nested, file)
        else:
            one = job_config.read(nested, file)
        found = found or one
    return found
