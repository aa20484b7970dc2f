"""A job beside healthy jobs: what it shows, what else differs between them, and which of it goes together."""

from __future__ import annotations

import msgspec

from schemas.results import Record, Symptom, Verdict


class LikeJob(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A job of the library, and how like the job it is.

    ``likeness`` is between 0 and 1 by the ``facets`` that are known of both, which have the share ``certainty`` of what
    counts. ``baseline``: the job is held against it; ``like``: since it is like. ``reason`` says why it is, or not.
    """

    id: str
    likeness: float
    certainty: float
    reason: str
    baseline: bool = False
    like: bool = False
    facets: dict[str, float] = msgspec.field(default_factory=dict)
    symptoms: list[Symptom] = msgspec.field(default_factory=list)


class Shown(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What the job shows and its baseline does not: ``kind`` is a stable word, ``text`` says it.

    ``peers`` is what those show.
    """

    kind: str
    text: str
    peers: str = ""


class Setting(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A setting of the job that none of its baseline has: its value ``here``, empty for none, and those ``there``."""

    facet: str
    name: str
    here: str = ""
    there: list[str] = msgspec.field(default_factory=list)
    text: str = ""


class Association(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Settings that go with a symptom: jobs that have them all show it more often than jobs that have none of them.

    ``having`` jobs have them, of which ``having_shown`` show it; ``others`` do not, of which ``others_shown`` do.
    Several settings are confounded: they separate the jobs equally well, so nothing tells which of them it is.
    """

    symptom: Symptom
    settings: list[Setting]
    having: int
    having_shown: int
    others: int
    others_shown: int
    text: str
    left_out: int = 0


class Comparison(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An attempt of a job beside the jobs of a library, as of the window ``[start, end)``; it claims no cause.

    ``verdict`` is how sure it can be at most what rests on it: ``ambiguous`` where no job of the library is like it.
    ``chosen`` is the end of the window in which its baseline was chosen. ``jobs`` are those of the library, the
    baseline first, ``shows`` and ``symptoms`` what the attempt shows, ``settings`` what else differs from its baseline.
    ``caution`` says what cannot be told from so few jobs, ``left_out`` how many settings there was no room for.
    """

    id: str
    job: str
    attempt: str
    start: int
    end: int
    library: str
    verdict: Verdict
    chosen: int
    jobs: list[LikeJob]
    shows: list[Shown] = msgspec.field(default_factory=list)
    symptoms: list[Symptom] = msgspec.field(default_factory=list)
    settings: list[Setting] = msgspec.field(default_factory=list)
    associations: list[Association] = msgspec.field(default_factory=list)
    caution: str = ""
    left_out: int = 0
