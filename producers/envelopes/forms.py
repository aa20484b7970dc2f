"""The forms of envelopes, one function each: a text in, what the envelope says and the text inside out, or null."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from producers.envelopes.wrap import Wrap
from producers.times import dated, possible

Peel = Callable[[str, Wrap], "Peeled | None"]

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
_CRI = re.compile(rf"({_STAMP}) (stdout|stderr) ([FP])(?::\w{{1,32}}){{0,4}}(?: |$)")
_TIMESTAMP = re.compile(rf"({_STAMP})(?: |$)")
_POD = re.compile(r"\[pod/([a-z0-9][a-z0-9.-]{0,252})/([a-z0-9][a-z0-9-]{0,62})\](?: |$)")
_RAY = re.compile(r"\((?:([\w.:<>=-]{1,128}) )?pid=(\d{1,9})(?:, ip=([\w.:]{2,45}))?\)(?: |$)")
_TASK = re.compile(r"(?:P(\d{1,4}) {1,4})? {0,8}(\d{1,7}):(?: |$)")
_MPI = re.compile(r"\[([\w.-]{1,253}@)?\d{1,10},(\d{1,7})\]<(stdout|stderr)>:")
_HOST = re.compile(r"([a-z][a-z0-9.-]{1,62}):(\d{1,6}): ")
_LABEL = re.compile(r"\[([A-Za-z_][A-Za-z0-9_-]{0,31}?)(\d{1,6})\]:")
_XTUNER = re.compile(r"\[[A-Za-z][A-Za-z0-9_-]{0,31}\]\[RANK (\d{1,6})\](?=\[)")
_LOGGER = re.compile(
    # A time, then at most three words, each in brackets or with a separator behind it, such as a level and a name.
    r"(?:[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[ T_])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[\])]?[ :,|-]{0,4})?"
    r"(?:(?:\[[A-Za-z][\w.-]{0,63}\]|[A-Za-z][\w.]{0,63}(?= ?[:|-])|[A-Z]{4,8}(?= ))[ :|-]{1,4}){0,3}"
    r"(?:\[[Rr](?:ank|ANK)[ :=]?(\d{1,6})\]|\([Rr](?:ank|ANK)[ :=]?(\d{1,6})\)|rank=(\d{1,6})(?=[ ,:|\]]))"
)
_DOCKER_KEYS = {"log", "stream", "time", "attrs"}
_TORN = '{"log":"'
_MESSAGE = 1_024
"""Bytes that ``srun`` takes of a task at a time; a line that fills them has not ended (``SLURM_IO_MAX_MSG_LEN``)."""


class Peeled(msgspec.Struct, frozen=True, gc=False):
    """The text inside an envelope, the wrap with what it says, and its time (ns UTC), null if it has none.

    ``joins``: such envelopes cut long lines up. ``partial``: the line goes on in the next one. ``torn``: the envelope
    itself was cut off.
    """

    text: str
    wrap: Wrap
    stamp: int | None = None
    joins: bool = False
    partial: bool = False
    torn: bool = False


def cri(text: str, wrap: Wrap) -> Peeled | None:
    """``2016-10-06T00:17:09.669794202Z stdout F text``, of the container runtimes of Kubernetes."""
    found = None if wrap.stream else _CRI.match(text)
    stamp = _time(found.group(1)) if found else None
    if found is None or stamp is None:
        return None
    inside = _with(wrap, stream=found.group(2))
    return Peeled(text[found.end() :], inside, stamp, joins=True, partial=found.group(3) == "P")


def docker(text: str, wrap: Wrap) -> Peeled | None:
    r"""``{"log":"text\n","stream":"stdout","time":"…"}``; without the line feed the line goes on."""
    if wrap.stream or not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _torn(text, wrap)
    if not _is_docker(value):
        return None
    stamp = _time(value["time"])
    if stamp is None:
        return None
    log = value["log"]
    return Peeled(
        log.removesuffix("\n"), _with(wrap, stream=value["stream"]), stamp, joins=True, partial=not log.endswith("\n")
    )


def _is_docker(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= _DOCKER_KEYS
        and isinstance(value.get("log"), str)
        and value.get("stream") in ("stdout", "stderr")
        and isinstance(value.get("time"), str)
    )


def _torn(text: str, wrap: Wrap) -> Peeled | None:
    """What can still be read of a line that was cut off inside its text."""
    if not text.startswith(_TORN):
        return None
    # The cut may have fallen into an escape, of which the longest has twelve characters.
    for end in range(len(text), max(len(text) - 13, len(_TORN)) - 1, -1):
        try:
            inside = json.loads('"' + text[len(_TORN) : end] + '"', strict=False)
        except ValueError:
            continue
        return Peeled(str(inside), wrap, torn=True)
    return None


def timestamp(text: str, wrap: Wrap) -> Peeled | None:
    """``2016-10-06T00:17:09.669794202Z text``, of ``kubectl logs --timestamps``."""
    found = _TIMESTAMP.match(text)
    stamp = _time(found.group(1)) if found else None
    return None if found is None or stamp is None else Peeled(text[found.end() :], wrap, stamp)


def pod(text: str, wrap: Wrap) -> Peeled | None:
    """``[pod/NAME/CONTAINER] text``, of ``kubectl logs --prefix``."""
    found = None if wrap.pod else _POD.match(text)
    return found and Peeled(text[found.end() :], _with(wrap, pod=found.group(1), container=found.group(2)))


def ray(text: str, wrap: Wrap) -> Peeled | None:
    """``(RayTrainWorker pid=123, ip=10.0.0.2) text``, of a Ray driver."""
    found = None if wrap.pid is not None else _RAY.match(text)
    if found is None:
        return None
    actor, pid, ip = found.groups()
    return Peeled(text[found.end() :], _with(wrap, actor=actor or "", pid=int(pid), ip=ip or ""))


def task(text: str, wrap: Wrap) -> Peeled | None:
    """`` 7: text`` or ``P0  7: text``, of ``srun --label``."""
    found = None if wrap.task is not None else _TASK.match(text)
    if found is None:
        return None
    inside = text[found.end() :]
    component = None if found.group(1) is None else int(found.group(1))
    partial = len(inside) <= _MESSAGE and len(inside.encode("utf-8", "replace")) == _MESSAGE
    return Peeled(inside, _with(wrap, component=component, task=int(found.group(2))), joins=True, partial=partial)


def mpi(text: str, wrap: Wrap) -> Peeled | None:
    """``[1,7]<stdout>:text`` or ``[prterun-host-123@1,7]<stdout>: text``, of ``mpirun --tag-output``."""
    found = None if wrap.task is not None or wrap.stream else _MPI.match(text)
    if found is None:
        return None
    inside = text[found.end() :]
    # The newer form has a blank of its own.
    inside = inside.removeprefix(" ") if found.group(1) else inside
    return Peeled(inside, _with(wrap, task=int(found.group(2)), stream=found.group(3)))


def host(text: str, wrap: Wrap) -> Peeled | None:
    """``node08:3: text``, as templates of torchrun's prefix make it; the number may be a local or a global rank."""
    found = None if wrap.task is not None or wrap.pod else _HOST.match(text)
    return found and Peeled(text[found.end() :], _with(wrap, pod=found.group(1), task=int(found.group(2))))


def rank_label(text: str, wrap: Wrap) -> Peeled | None:
    """``[rank7]:``, a global rank by PyTorch, or a local one by torchrun's ``--role rank``."""
    return _label(text, wrap, well_known=True)


def role_label(text: str, wrap: Wrap) -> Peeled | None:
    """``[trainer3]:``, by torchrun's tee under a role of any name."""
    return _label(text, wrap, well_known=False)


def _label(text: str, wrap: Wrap, *, well_known: bool) -> Peeled | None:
    # Behind a label with a blank, which torchrun's tee does not put, PyTorch's own may stand.
    spaced = bool(wrap.labels) and text.startswith(" [")
    if not (spaced or text.startswith("[")) or len(wrap.labels) > 1:
        return None
    found = _LABEL.match(text, int(spaced))
    if found is None or (well_known and found.group(1) not in ("rank", "default")):
        return None
    label = (found.group(1), int(found.group(2)))
    return Peeled(text[found.end() :], _with(wrap, labels=(*wrap.labels, label), spaced=spaced))


def xtuner(text: str, wrap: Wrap) -> Peeled | None:
    """``[XTuner][RANK 7][2025-11-04 10:00:00][INFO] text``: the first two, which name the global rank."""
    found = None if wrap.rank is not None else _XTUNER.match(text)
    return found and Peeled(text[found.end() :], _with(wrap, rank=int(found.group(1))))


def logger_label(text: str, wrap: Wrap) -> Peeled | None:
    """``2025-11-04 10:00:00 [INFO] [rank 7] text`` and the like, as programs set up their loggers; nothing goes."""
    found = None if wrap.rank is not None or wrap.labels else _LOGGER.match(text)
    number = found and next(filter(None, found.groups()))
    return None if not number else Peeled(text, _with(wrap, rank=int(number)))


def _with(wrap: Wrap, **said: Any) -> Wrap:
    return msgspec.structs.replace(wrap, **said)


def _time(text: str) -> int | None:
    # Docker and Kubernetes print nine digits, which are all true.
    moment = dated(text)
    return moment.time if moment is not None and possible(moment.time) else None
