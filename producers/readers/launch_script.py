"""Scripts that launch a job, and commands by which it was launched. They are read, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from producers.job_facts import JobFacts
from producers.setting_names import SCALE
from producers.shell import MOST_LINE, SUBSTITUTED, commands_in, expanded, flat, lines_of, split

LAUNCHERS = (
    "srun",
    "torchrun",
    "deepspeed",
    "accelerate",
    "mpirun",
    "mpiexec",
    "horovodrun",
    "colossalai",
    "ray",
    "python",
)
_SHEBANG = re.compile(r"#![^\n]{0,200}\b(?:ba|z|k|da)?sh\b")
_SBATCH = re.compile(r"^[ \t]{0,8}#SBATCH[ \t]{1,8}([^\n]{1,1000})$", re.MULTILINE)
_STARTS = re.compile(
    r"^[^#\n]{0,2000}?(?<![\w.-])(?:srun|torchrun|deepspeed|accelerate[ \t]{1,8}launch|mpirun|mpiexec|horovodrun"
    r"|colossalai|ray[ \t]{1,8}job|python3?(?:\.\d{1,2})?)[ \t]",
    re.MULTILINE,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,100})=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(?:\S{0,400}/)?python(?:3(?:\.\d{1,2})?)?")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,100}(?:=|$)")
_OVERRIDE = re.compile(r"(?:\+{1,2}|~)?([A-Za-z_][\w./@-]{0,200})=(.*)", re.DOTALL)
_OF_SLURM = {
    "partition": ("labels", "queue"), "p": ("labels", "queue"),
    "account": ("labels", "team"), "A": ("labels", "team"),
    "qos": ("labels", "qos"), "q": ("labels", "qos"),
    "job-name": ("labels", "job_name"), "J": ("labels", "job_name"),
    "constraint": ("labels", "constraint"), "C": ("labels", "constraint"),
    "reservation": ("labels", "reservation"),
    "nodes": ("scale", "nodes"), "N": ("scale", "nodes"),
    "ntasks-per-node": ("launch", "tasks_per_node"), "ntasks": ("launch", "tasks"), "n": ("launch", "tasks"),
    "gpus-per-node": ("scale", "gpus_per_node"), "gres": ("launch", "gres"), "gpus": ("scale", "gpus"),
    "G": ("scale", "gpus"), "cpus-per-task": ("launch", "cpus_per_task"), "c": ("launch", "cpus_per_task"),
    "mem": ("launch", "mem"), "time": ("launch", "time_limit"), "t": ("launch", "time_limit"),
    "exclusive": ("launch", "exclusive"), "container-image": ("launch", "image"),
    "cpu-bind": ("launch", "cpu_bind"), "gpu-bind": ("launch", "gpu_bind"), "mpi": ("launch", "mpi"),
}  # fmt: skip
"""Options of sbatch and srun by the facet and name that they tell."""


def recognised(text: str) -> bool:
    """Whether a text is a script of a shell that launches something."""
    if "#SBATCH" in text and _SBATCH.search(text):
        return True
    return _SHEBANG.match(text) is not None and _STARTS.search(text.replace("\\\n", " ")) is not None


def read(text: str, file: str) -> JobFacts:
    """What a script tells: the scheduler's options, exported variables, and its fullest command."""
    facts = JobFacts(file)
    for options in _SBATCH.findall(text):
        _slurm(split(options), facts)
    take_script(text, facts)
    facts.tell("launch", "file", file.rpartition("/")[2])
    return facts


def take_script(text: str, facts: JobFacts) -> None:
    """Take in the lines of a script: the variables that it exports and the commands that launch something."""
    known: dict[str, str] = {}
    for line in lines_of(text):
        for words in commands_in(line):
            _take(words, known, facts)


def _take(words: list[str], known: dict[str, str], facts: JobFacts) -> None:
    """Take in one command of a script; ``known`` are the variables that were set before it."""
    exported = words[:1] in (["export"], ["declare"]) and "-x" not in words[2:]
    words = [word for word in words[1:] if not word.startswith("-")] if exported else words
    count = 0
    while count < len(words) and (found := _ASSIGNMENT.fullmatch(words[count])) is not None:
        count += 1
        name, value = found[1], expanded(found[2], known)
        # What a command would print here nobody knows.
        if SUBSTITUTED in value:
            known.pop(name, None)
            continue
        known[name] = value[:MOST_LINE]
        if exported or count < len(words):
            facts.variable(name, value)
    if not exported and count < len(words):
        take_command([expanded(word, known) for word in flat(words[count:], known)], facts)


def take_command(words: list[str], facts: JobFacts) -> bool:
    """Take in a command, if it launches a job: who launches it, the script, and the settings behind that."""
    while words and (
        words[0] in ("exec", "time", "nohup", "sudo", "env", "-E", "+", "++", "+++") or _env(words[0], facts)
    ):
        words = words[1:]
    launcher = _launcher(words)
    script = _script_at(words)
    if not launcher or (script < 0 and launcher == "python"):
        return False
    facts.words(words)
    if launcher != "python":
        facts.tell("launch", "launcher", launcher)
    if launcher == "deepspeed":
        facts.frame("deepspeed")
    end = script if script >= 0 else len(words)
    _launch_options(words[1:end], launcher, facts)
    if script >= 0:
        facts.tell("launch", "script", words[script].rpartition("/")[2])
        _settings(words[script + 1 :], facts)
    return True


def _env(word: str, facts: JobFacts) -> bool:
    found = _ASSIGNMENT.fullmatch(word)
    if found is not None and not word.startswith("-"):
        facts.variable(found[1], found[2])
    return found is not None


def _launcher(words: list[str]) -> str:
    """The first launcher in a command; srun may run torchrun, which then is the one that counts."""
    names = [("python" if _PYTHON.fullmatch(word) else word.rpartition("/")[2]) for word in words]
    if not names or names[0] not in LAUNCHERS:
        return ""
    if "torch.distributed.run" in words or "torch.distributed.launch" in words:
        return "torchrun"
    if any(word.startswith("deepspeed.launcher") for word in words):
        return "deepspeed"
    inner = [name for name in names if name in LAUNCHERS and name not in ("python", "srun", "mpirun", "mpiexec")]
    return inner[0] if inner else names[0]


def _script_at(words: list[str]) -> int:
    """Where the script or module of Python stands, -1 for nowhere."""
    for at, word in enumerate(words):
        if word.endswith(".py") and not word.startswith("-"):
            return at
        if (
            word in ("-m", "--module")
            and at + 1 < len(words)
            and not words[at + 1].startswith(("torch.dist", "accelerate", "deepspeed"))
        ):
            return at + 1
    return -1


def _launch_options(words: list[str], launcher: str, facts: JobFacts) -> None:
    for name, value in _options(words):
        spelt = name.replace("-", "_")
        if spelt in SCALE and value.isdecimal():
            facts.tell("scale", SCALE[spelt], value)
        elif spelt in ("nproc", "num_processes", "np") and value.isdecimal() and launcher != "python":
            facts.setting("world_size", value)
        elif spelt == "max_restarts":
            facts.tell("launch", spelt, value)
    if "srun" in (words[:1] or [""])[0] or launcher == "srun":
        _slurm(words, facts)


def _settings(words: list[str], facts: JobFacts) -> None:
    for name, value in _options(words):
        facts.setting(name.replace("-", "_"), value)


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, *true* where there is none, and overrides such as ``model.lr=3``."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if _OPTION.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            values = []
            while not equals and at < len(words) and not _OPTION.match(words[at]):
                values.append(words[at])
                at += 1
            yield name, value if equals else " ".join(values) or "true"
        elif (found := _OVERRIDE.fullmatch(word)) is not None:
            yield found[1], found[2]


def _slurm(words: list[str], facts: JobFacts) -> None:
    for option, value in _options(words):
        name = (
            option
            if option in _OF_SLURM
            else option[:1]
            if len(option) > 1 and option[0] in "NpnAcGtqJ" and option[1:2].isdecimal()
            else ""
        )
        if not name and option not in _OF_SLURM:
            continue
        facet, told = _OF_SLURM[name]
        text = value if name == option else option[1:]
        facts.tell(facet, told, text.rpartition(":")[2] if facet == "scale" else text)
