"""Which incidents staff have silenced: a pure decision about one incident, with its reason.

A hang is never silenced: nothing gets better by waiting for it. What a silence asks for and an incident does not tell
fits no silence, also where it asks for what it must not be: it may be just that. An incident of several jobs is
silenced by itself, or while each incident that it is made of is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from schemas.entries import read_entry
from schemas.identity import NO_JOB, shortened
from schemas.ports import Entry
from schemas.results import DeadLetter, Incident
from schemas.silences import Matcher, Silence

TOPIC = "silences"

LABELS = ("job", "attempt", "cluster", "node", "symptom", "area", "severity")
"""What every incident tells by itself; a job's own label of such a name is not asked."""

MOST_SILENCES, MOST_MATCHERS, MOST_VALUE, MOST_COMMENT = 1000, 16, 200, 500
MOST_NUMBER = 1_000_000
MOST_KEPT = 5_000
LONGEST_NS = 366 * 24 * 3600 * 1_000_000_000
LATEST_NS = (1 << 63) - 1
NEVER = "hang"
"""The symptom that no silence is for."""

Labels = Mapping[str, tuple[str, ...]]
"""All values that an incident has of each label: the nodes of all whom it names, mostly one of anything else."""


class SilenceError(Exception):
    """A silence that cannot be used; the message is one line for the user."""


class SilenceReason(Enum):
    """Why an incident is silenced or not, the nearer to being so the later."""

    NO_SILENCE = "there is no silence"
    HANG = "a hang is never silenced"
    OTHER = "no silence is for such an incident"
    NODE_UNKNOWN = "a silence is for a node, and it is not known which nodes the incident is of"
    NODE_NOT_COVERED = "a silence is for some of the nodes that the incident names, not for all"
    NOT_BEGUN = "the silence has not begun"
    ENDED = "the silence has ended"
    MEMBER_UNKNOWN = "an incident that it is made of is not known here"
    MEMBER_NOT_COVERED = "some of the incidents that it is made of are silenced, not all"
    SILENCED = "silenced"
    MEMBERS_SILENCED = "all the incidents that it is made of are silenced"


class Verdict(msgspec.Struct, frozen=True):
    """The silence that holds, or null, and why."""

    silence: Silence | None
    why: SilenceReason


def labels_of(incident: Incident) -> dict[str, tuple[str, ...]]:
    """What the incident can be silenced by; a label that is not known is left out.

    Its nodes are those of all suspects and of its scope, and not known while that of any suspect is not. One of several
    jobs has the names of all of them.
    """
    jobs = [incident.job] if incident.job != NO_JOB else [member.job for member in incident.members]
    nodes = [suspect.node for suspect in incident.suspects]
    nodes = [] if "" in nodes else [*nodes, *incident.scope.nodes]
    own = {name: [value] for name, value in incident.labels.items() if name not in LABELS}
    told: dict[str, list[str]] = {
        **own,
        "job": jobs,
        "attempt": [incident.attempt],
        "cluster": [incident.cluster],
        "node": nodes,
        "symptom": [incident.symptom],
        "area": [incident.area],
        "severity": [incident.severity],
    }
    known = {name: tuple(sorted({value for value in values if value})) for name, values in told.items()}
    return {name: values for name, values in known.items() if values}


def silenced_by(incident: Incident, silences: Iterable[Silence], at: int) -> Verdict:
    """Which of the silences holds for the incident at a time (ns): of several that which ends last.

    ``silences`` has one version of each, in any order.
    """
    return held_by(labels_of(incident), silences, at)


def held_by(labels: Labels, silences: Iterable[Silence], at: int) -> Verdict:
    """As ``silenced_by``, for what has these labels."""
    best = Verdict(None, SilenceReason.NO_SILENCE)
    for silence in sorted(silences, key=lambda one: (-one.ends, one.id)):
        why = judged(silence, labels, at)
        if why is SilenceReason.SILENCED:
            return Verdict(silence, why)
        if _ORDER[why] > _ORDER[best.why]:
            best = Verdict(None, why)
    return best


def silenced_with(
    incident: Incident, members: Mapping[tuple[str, str], Labels], silences: Sequence[Silence], at: int
) -> Verdict:
    """As ``silenced_by``; one of several jobs is silenced as well while all that it is made of is, each by its own.

    ``members`` has the labels of what is known, by job and incident. Of the members' silences that is named which ends
    first: from then on it is no longer so.
    """
    own = silenced_by(incident, silences, at)
    if own.silence is not None or own.why is SilenceReason.HANG or not incident.members:
        return own
    known = [members.get((one.job, one.incident)) for one in incident.members]
    found = [held_by(labels, silences, at).silence for labels in known if labels is not None]
    holding = [one for one in found if one is not None]
    if not holding:
        return own
    if len(holding) < len(known):
        return Verdict(
            None, SilenceReason.MEMBER_UNKNOWN if len(found) < len(known) else SilenceReason.MEMBER_NOT_COVERED
        )
    return Verdict(min(holding, key=lambda one: (one.ends, one.id)), SilenceReason.MEMBERS_SILENCED)


def judged(silence: Silence, labels: Labels, at: int) -> SilenceReason:
    """Whether one silence holds for what has these labels, and why not."""
    if NEVER in labels.get("symptom", ()):
        return SilenceReason.HANG
    unfit = [matcher.label for matcher in silence.matchers if not fits(matcher, labels)]
    if not silence.matchers or set(unfit) - {"node"}:
        return SilenceReason.OTHER
    if unfit:
        return _of_nodes(silence, labels)
    if at < silence.starts:
        return SilenceReason.NOT_BEGUN
    return SilenceReason.SILENCED if at < silence.ends else SilenceReason.ENDED


def _of_nodes(silence: Silence, labels: Labels) -> SilenceReason:
    if "node" not in labels:
        return SilenceReason.NODE_UNKNOWN
    of_node = [matcher for matcher in silence.matchers if matcher.label == "node"]
    some = any(all(_fits_one(matcher, node) for matcher in of_node) for node in labels["node"])
    return SilenceReason.NODE_NOT_COVERED if some else SilenceReason.OTHER


_ORDER = {why: place for place, why in enumerate(SilenceReason)}


def fits(matcher: Matcher, labels: Labels) -> bool:
    """Whether all that the incident tells of the label is as asked; what it does not tell is not."""
    values = labels.get(matcher.label, ())
    return bool(values) and all(_fits_one(matcher, value) for value in values)


def _fits_one(matcher: Matcher, value: str) -> bool:
    same = fits_pattern(matcher.value, value) if matcher.pattern else matcher.value == value
    return same != matcher.negated


def fits_pattern(pattern: str, text: str) -> bool:
    """Whether the whole text is as the pattern says; in steps of at most the product of their lengths.

    >>> fits_pattern("bench-*", "bench-7"), fits_pattern("gpu?", "gpu12"), fits_pattern("a*b*c", "aXbXXc")
    (True, False, True)
    """
    at, place, star, behind = 0, 0, -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, behind = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            # The last star takes one character more.
            behind += 1
            at, place = behind, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


def newest(silences: Iterable[Silence]) -> list[Silence]:
    """The latest version of each, by id; of two of one number the one that ends sooner, so that no order decides."""
    found: dict[str, Silence] = {}
    for silence in silences:
        before = found.setdefault(silence.id, silence)
        found[silence.id] = max(before, silence, key=lambda one: (one.number, -one.ends, msgspec.json.encode(one)))
    return [found[name] for name in sorted(found)]


def kept(silences: Iterable[Silence]) -> list[Silence]:
    """As ``newest``, but of too many those that end last: no flood of silences fills anybody's memory."""
    found = newest(silences)
    if len(found) > MOST_KEPT:
        found = sorted(sorted(found, key=lambda one: (-one.ends, one.id))[:MOST_KEPT], key=lambda one: one.id)
    return found


def checked(silence: Silence) -> Silence:
    """The silence, where it can be used. Raises SilenceError."""
    flaw = _flaw(silence)
    if flaw:
        raise SilenceError(f"silence {shortened(silence.id, 40)!r}: {flaw}")
    return silence


def _flaw(silence: Silence) -> str:
    """What is wrong with it, in words; empty if nothing is."""
    texts = [silence.id, silence.created_by, *(text for one in silence.matchers for text in (one.label, one.value))]
    for holds, flaw in (
        (
            all(0 < len(text) <= MOST_VALUE for text in texts),
            f"has a text that is empty or over {MOST_VALUE} characters",
        ),
        (len(silence.comment) <= MOST_COMMENT, f"its comment is longer than {MOST_COMMENT} characters"),
        (1 <= silence.number <= MOST_NUMBER, f"its number must lie between 1 and {MOST_NUMBER}"),
        (0 < len(silence.matchers) <= MOST_MATCHERS, f"it needs 1 to {MOST_MATCHERS} labels to go by"),
        (0 <= silence.starts <= silence.ends <= LATEST_NS, "it ends before it begins"),
        (silence.ends - silence.starts <= LONGEST_NS, "it lasts longer than a year"),
        (any(map(_says_something, silence.matchers)), "it would silence everything"),
        (not any(map(_asks_for_hangs, silence.matchers)), SilenceReason.HANG.value),
    ):
        if not holds:
            return flaw
    return ""


def _says_something(matcher: Matcher) -> bool:
    """Whether it asks for anything in particular; what something must not be alone would silence all others."""
    return not matcher.negated and not (matcher.pattern and not matcher.value.strip("*?"))


def _asks_for_hangs(matcher: Matcher) -> bool:
    return matcher.label == "symptom" and not matcher.negated and not matcher.pattern and matcher.value == NEVER


def silence_of(entry: Entry) -> Silence | str:
    """The silence in an entry of the topic, or why it is none: one that cannot be used silences nothing."""
    read = read_entry(entry, TOPIC, 0, "silences")
    if isinstance(read, DeadLetter):
        return read.reason
    silence: Silence = read[1]
    try:
        return checked(silence)
    except SilenceError as error:
        return str(error)
