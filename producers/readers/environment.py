"""What surrounds a job: dumps of the environment, lists of packages (pip, conda), the head of nvidia-smi."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from producers.job_facts import JobFacts

MOST_LINES = 20_000
_FEWEST = 3
_SHARE = 80
"""Percent of lines that must have the form of a list."""
_VARIABLE = re.compile(r"(?:export |declare -x )?([A-Za-z_][A-Za-z0-9_]{0,120})=(.{0,32768})")
_UPPER = re.compile(r"[A-Z][A-Z0-9_]{1,120}")
_PINNED = re.compile(r"([A-Za-z0-9][\w.-]{0,100})(?:\[[\w, -]{0,100}\])?===?([^\s;#]{1,100})(?:[ ;#].{0,300})?")
_FROM = re.compile(r"([A-Za-z0-9][\w.-]{0,100}) @ (?:git\+)?(\S{1,2000})")
_EDITABLE = re.compile(r"-e (?:git\+)?(\S{1,2000})#egg=([\w.-]{1,100})(?:&\S{0,300})?")
_COLUMNS = re.compile(r"([A-Za-z0-9_][\w.-]{0,100}) {1,100}(\d[\w.+!-]{0,80})(?: {1,60}\S{0,200}){0,2} {0,100}")
_PIP_HEAD = re.compile(r"Package {1,100}Version\b")
_CONDA_HEAD = re.compile(r"# packages in environment at |# {1,20}Name {1,60}Version {1,60}Build")
_SMI = re.compile(
    r"NVIDIA-SMI +(\d[\d.]{2,20}) .{0,80}?Driver Version: +(\d[\d.]{2,20}) .{0,80}?CUDA Version: +(\d{1,3}\.\d{1,3})"
)
_GPU = re.compile(r"\| {1,6}\d{1,3}  ([A-Z][\w. +-]{3,60}?) {1,30}(?:On|Off|N/A|Persistence)[ .\w]{0,12}\|")
_COMMIT = re.compile(r"@([0-9a-f]{7,40})\b")


def read(text: str, file: str) -> JobFacts | None:
    """What a list tells, null where it is none of those."""
    lines = [line.rstrip() for line in text.splitlines()[:MOST_LINES] if line.strip()]
    facts = JobFacts(file)
    found = any(reader(lines, facts) for reader in (_smi, _conda, _pip, _variables))
    return facts if found and facts else None


def _mostly(lines: list[str], fits: Callable[[str], object]) -> bool:
    """Whether most lines have a form, and a few at least."""
    fitting = sum(1 for line in lines if fits(line))
    return fitting >= _FEWEST and fitting * 100 >= _SHARE * len(lines)


def package(name: str) -> str:
    """The name of a package in its one spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _smi(lines: list[str], facts: JobFacts) -> bool:
    head = next((found for line in lines[:40] if (found := _SMI.search(line))), None)
    if head is None:
        return False
    facts.tell("versions", "driver", head[2])
    facts.tell("versions", "cuda_driver", head[3])
    gpus = Counter(found[1].strip() for line in lines if (found := _GPU.match(line)))
    if gpus:
        facts.tell("scale", "gpu", ", ".join(sorted(gpus)))
        facts.tell("scale", "gpus_per_node", sum(gpus.values()))
    return True


def _conda(lines: list[str], facts: JobFacts) -> bool:
    if not any(_CONDA_HEAD.match(line) for line in lines[:4]):
        return False
    _columns(lines, facts)
    return True


def _pip(lines: list[str], facts: JobFacts) -> bool:
    if _PIP_HEAD.match(lines[0] if lines else ""):
        _columns(lines[1:], facts)
        return True
    told = [line for line in lines if not line.lstrip().startswith("#")]
    if not _mostly(told, lambda line: _PINNED.fullmatch(line) or _FROM.match(line) or _EDITABLE.match(line)):
        return False
    for line in told:
        if (pinned := _PINNED.fullmatch(line)) is not None:
            facts.tell("versions", package(pinned[1]), pinned[2])
        elif (editable := _EDITABLE.match(line)) is not None:
            facts.tell("versions", package(editable[2]), _of_address(editable[1]))
        elif (built := _FROM.match(line)) is not None:
            facts.tell("versions", package(built[1]), _of_address(built[2]))
    return True


def _of_address(address: str) -> str:
    """The commit in an address, else that it was built somewhere: where a wheel lay says nothing of what it is."""
    commit = _COMMIT.search(address)
    return commit[1] if commit else "local" if address.startswith("file:") else address


def _columns(lines: list[str], facts: JobFacts) -> None:
    for line in lines:
        if (found := _COLUMNS.fullmatch(line)) is not None:
            facts.tell("versions", package(found[1]), found[2])


def _variables(lines: list[str], facts: JobFacts) -> bool:
    """``env``, ``printenv``, ``export -p``; values of several lines are cut at the first."""
    found = [match for line in lines if (match := _VARIABLE.fullmatch(line))]
    upper = [one for one in found if _UPPER.fullmatch(one[1])]
    if not _mostly(lines, _VARIABLE.fullmatch) or len(upper) * 100 < _SHARE * len(found):
        return False
    for one in found:
        facts.variable(one[1], one[2].strip("\"'"))
    return True
