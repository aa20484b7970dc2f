"""What of a rank's records means trouble by itself, and whether it names a cause or only passes one on.

What the field knows stands in the vocabulary of predefined templates; the rest is told by tracebacks. A *cascade* is
what victims print: their peer went away or did not come. It never outranks a candidate. A chain of errors that holds a
cascade is one: a handler that wraps the loss of a peer does not make it the rank's own.
"""

from __future__ import annotations

import re

import msgspec

from schemas.events import Frame, Log
from schemas.identity import shortened
from schemas.results import Area, Fatal
from streams.lines.predefined import VOCABULARY, Spoken, follows, speaks, spoken_error, spoken_line
from streams.lines.signature import LIMIT, shape, signature_of
from streams.lines.traceback import Traceback, caught_in, has_traceback, parse_chain
from streams.lines.vocabulary.template import Predefined
from streams.stacks import activity_of

RULES = VOCABULARY

_EXCEPTION = Predefined(id="python.exception", name="exception", role="candidate", area="code", each=True)
_ASSERTION = Predefined(id="python.assertion_error", name="exception", role="candidate", area="code", each=True)
# What a collective raises is mostly the loss of a peer; taking it for a cause would name a victim.
_IN_COLLECTIVE = Predefined(
    id="collective.error", name="in_collective", role="cascade", area="network", layer="collective", each=True
)

_DATA = re.compile(r"DataLoader|[Dd]ataset|\bshard|\bsampler|\btokeniz", re.ASCII)
_CHECKPOINT = re.compile(r"checkpoint|ckpt", re.IGNORECASE)
_CONFIGURATION = re.compile(r"config|argument|yaml|hyperparam", re.IGNORECASE)


def speaks_of_trouble(text: str) -> bool:
    """Whether a record may be fatal or says anything predefined; few do, and only these need a closer look."""
    return has_traceback(text) or speaks(text)


def spoken_of(text: str) -> Spoken | None:
    """The predefined template of a record, or null; each traceback has one."""
    chain = parse_chain(text)
    return _spoken_chain(chain) if chain else spoken_line(text)


def predefined_id(text: str, signature: str) -> str:
    """The id that the template of a record with this signature has in every job; nothing where none is predefined."""
    spoken = spoken_of(text)
    if spoken is None:
        return ""
    # What stands for many texts is told by its text, too: two errors are not one template.
    return f"{spoken.template.id}.{signature}" if spoken.template.each else spoken.template.id


def fatal_of(event: Log, *, trained: bool) -> Fatal | None:
    """What is fatal about a record, or null; confirmations and advice are not, so nothing is raised by them alone.

    ``trained`` says whether the worker has done an iteration yet.
    """
    chain = parse_chain(event.text)
    spoken = _spoken_chain(chain) if chain else spoken_line(event.text)
    if spoken is None or not spoken.template.fatal:
        return None
    area = spoken.template.area
    if spoken.template in (_EXCEPTION, _ASSERTION):
        area = _area_of(chain[-1], event.text[:LIMIT], trained)
    elif area == "data" and _CHECKPOINT.search(spoken.said):
        area = "checkpoint"
    return _fatal(event, spoken, area, chain)


def loses_a_peer(fatal: Fatal) -> bool:
    """Whether a worker ended by an exception that a lost peer causes; a library's complaint alone may be of any end."""
    return fatal.role == "cascade" and bool(fatal.exception)


def follow(fatals: list[Fatal], text: str) -> None:
    """Attach an Xid that only speaks of another to the last one before it on the same GPU, where there is any."""
    spoken = spoken_line(text)
    if spoken is None or not follows(spoken):
        return
    for at in range(len(fatals) - 1, -1, -1):
        values = fatals[at].values
        if "code" in values and values.get("pci") == spoken.values["pci"]:
            known = values.get("followed_by", "").split()
            if spoken.values["code"] not in known:
                more = values | {"followed_by": " ".join([*known, spoken.values["code"]])}
                fatals[at] = msgspec.structs.replace(fatals[at], values=more)
            return


def _spoken_chain(chain: list[Traceback]) -> Spoken:
    """What a chain of errors means: a loss of peers anywhere in it, else what was raised last."""
    found = [_spoken_traceback(traceback) for traceback in chain]
    passed_on = next((one for one in found if one is not None and one.template.role == "cascade"), None)
    last = chain[-1]
    if passed_on is not None:
        return Spoken(passed_on.template, last.error, passed_on.values)
    otherwise = _ASSERTION if last.exception == "AssertionError" else _EXCEPTION
    return found[-1] or Spoken(otherwise, last.error)


def _spoken_traceback(traceback: Traceback) -> Spoken | None:
    spoken = spoken_error(traceback.error)
    if spoken is not None:
        return spoken
    return Spoken(_IN_COLLECTIVE, traceback.error) if in_communication(traceback) else None


def in_communication(traceback: Traceback) -> bool:
    """Whether the error was raised inside a collective call."""
    frame = Frame(traceback.function, traceback.file, traceback.line)
    return activity_of([frame]) == "communication"


def _area_of(traceback: Traceback, text: str, trained: bool) -> Area:
    places = " ".join(traceback.files)
    if _DATA.search(traceback.error) or "torch/utils/data" in places:
        return "data"
    if _CHECKPOINT.search(traceback.error):
        return "checkpoint"
    if not trained and (traceback.exception in ("KeyError", "ArgumentError") or _CONFIGURATION.search(text)):
        return "configuration"
    return "code"


def _fatal(event: Log, spoken: Spoken, area: Area, chain: list[Traceback]) -> Fatal:
    template = spoken.template
    more = {"action": template.action} if template.action else {}
    if where := caught_in(chain):
        more["caught_in"] = where
    return Fatal(
        time=event.time,
        precision_ns=event.precision_ns,
        rule=template.name,
        template=template.id,
        values=spoken.values | more,
        role=template.role,
        symptom=template.symptom,
        area=area,
        text=shortened(spoken.said, 500),
        exception=chain[-1].exception if chain else "",
        signature=signature_of(shape(event.text)),
    )
