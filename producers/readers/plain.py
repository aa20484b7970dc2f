"""Plain logs of training without an envelope: told by what their lines say, or by the name that a launcher gave.

Names are those of Slurm (``slurm-%j.out``, ``slurm-%A_%a.out``, ``%x-%j-%t.out``), NeMo (``nemo_log_globalrank-G_
localrank-L.txt``), DeepSpeed (``YYYYmmddHHMMSS_rankN.log``) and Ray (``worker-HEX-JOB-PID.out``). The number of a task
or of a file is a rank only where the lines of several files prove it: with one task a node it is that of the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from producers.levels import level_of
from producers.scan import Source
from producers.times import SOME_YEAR, printed
from schemas.text import iteration_of

_FEWEST = 4
_FEWEST_OF_TRAINING = 2
_SHARE = 30
"""Percent of lines with a time, a level or a word of training, so that a text is a log."""
_OTHERS = (
    *(".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".xml", ".html"),
    *(".md", ".rst", ".py", ".sh", ".c", ".cpp", ".h", ".patch", ".diff", ".ipynb"),
)
"""Files of other kinds, in which lines of logs may stand, too."""
_ERROR = re.compile(r"[^\n]{0,300}?(?:Traceback \(most recent call last\):$|Fatal Python error: )")
_TRAINING = re.compile(
    r"[^\n]{0,300}?(?:\[\d{1,3}\] NCCL (?:INFO|WARN) |\[?[VDIWEC]\d{3,4} \d\d:\d\d:\d\d\.\d{6,9} [^\n]{0,200}?\]"
    r"|\b(?:local_rank|world_size|WORLD_SIZE|world size)\b|\tJob ID: [^\t\n]{0,64}\t# GPUs: \d"
    r"|\{'(?:loss|eval_loss|train_runtime)': "
    r"|\b(?:[Ss]tep|STEP|[Ii]ter(?:ation)?)[ \t]{0,4}[:=#]?[ \t]{0,4}\[?\d{1,12}[^\n\w]{1,8}(?:\w{1,20} )?[Ll]oss\b)"
)
_NEMO = re.compile(r"nemo_log_globalrank-(?P<rank>\d{1,7})_localrank-(?P<local>\d{1,5})\.txt")
_DEEPSPEED = re.compile(r"\d{14}_rank(?P<rank>\d{1,7})\.log")
_ARRAY = re.compile(r"(?:.{0,200}[-_.])?(?P<job>\d{1,12}_\d{1,9})\.(?:out|err|log)")
_TASK = re.compile(r"(?P<family>(?:.{0,200}?[-_.])?(?P<job>\d{3,12})[-.])(?P<task>\d{1,7})\.(?:out|err|log)")
_SLURM = re.compile(r"slurm-(?P<job>\d{1,12})\.(?:out|err)")
_NUMBERED = re.compile(
    r"(?P<family>(?:.{0,200}[^A-Za-z])?(?:rank|worker|trainer|process|proc|task)[-_]?)(?P<task>\d{1,7})"
    r"\.(?:out|err|log|txt)"
)
_RAY = re.compile(r"(?P<process>worker-[0-9a-f]{8,64}-(?:[0-9a-f]{1,32}|)-(?P<pid>\d{1,9}))\.(?:out|err)")
_WELL_KNOWN = re.compile(r"nemo_error_log\.txt|lightning_logs\.txt")


class Place(msgspec.Struct, frozen=True, order=True):
    """What the name of a file says: the job, a rank and local rank that are certain, or a number that may be a rank.

    ``family`` names the files that are numbered together, or that one process wrote.
    ``named`` if the name alone shows that it is a log.
    """

    job: str = ""
    rank: int = -1
    local: int = -1
    family: str = ""
    number: int = -1
    pid: int = -1
    stream: str = ""
    named: bool = False


def place(source: Source) -> Place:
    """Where a file stands among the logs of a job, by its name."""
    folder, _, name = source.file.rpartition("/")
    found = _by_name(folder, name)
    stream = {".out": "stdout", ".err": "stderr"}.get(name[-4:], "")
    return msgspec.structs.replace(found, stream=stream) if found.job or found.pid >= 0 else found


def _by_name(folder: str, name: str) -> Place:
    for pattern, say in _BY_NAME:
        found = pattern.fullmatch(name)
        if found is not None:
            return say(found, folder)
    return Place(named=_WELL_KNOWN.fullmatch(name) is not None)


def _numbered(found: re.Match[str], folder: str) -> Place:
    # What a task prints to its two streams may stand in two files.
    family = f"{folder}/{found['family']}"
    return Place(job=found.groupdict().get("job", ""), family=family, number=int(found["task"]))


_BY_NAME: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Place]], ...] = (
    (_NEMO, lambda found, _: Place(rank=int(found["rank"]), local=int(found["local"]), named=True)),
    (_DEEPSPEED, lambda found, _: Place(rank=int(found["rank"]), named=True)),
    (_RAY, lambda found, at: Place(family=f"{at}/{found['process']}", pid=int(found["pid"]), named=True)),
    (_SLURM, lambda found, _: Place(job=found["job"], named=True)),
    (_ARRAY, lambda found, _: Place(job=found["job"], named=found.string.startswith("slurm-"))),
    (_TASK, _numbered),
    (_NUMBERED, _numbered),
)


def recognised(source: Source, texts: Sequence[str], where: Place) -> bool:
    """Whether sampled lines are those of a log of training."""
    shown = [text for text in texts if text.strip()]
    if where.named:
        return bool(shown)
    if is_other(source.file):
        return False
    errors = sum(1 for text in shown if _ERROR.match(text))
    training = errors + sum(1 for text in shown if _TRAINING.match(text) or iteration_of(text) is not None)
    if len(shown) < _FEWEST or training < (1 if errors else _FEWEST_OF_TRAINING):
        return False
    marked = sum(1 for text in shown if _is_marked(text))
    return bool(errors) or marked * 100 >= _SHARE * len(shown)


def is_other(file: str) -> bool:
    """Whether a file's name says that it is a table, a document or source code, in which such lines may stand, too."""
    return file.lower().endswith(_OTHERS)


def _is_marked(text: str) -> bool:
    return bool(_TRAINING.match(text) or iteration_of(text) is not None or level_of(text) or printed(text, SOME_YEAR))
