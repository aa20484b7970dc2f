"""What the job stage finds: templates, anomalies with suspects and evidence, early notices."""

from __future__ import annotations

from schemas.results.words import Area, Axis, Layer, Record, Severity, Symptom


class Template(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A log template of a job. ``aliases`` are the ids it had before it generalised.

    The id is a hash of the text, or, of lines that the field knows, a name that never changes (``xid.79``).
    """

    id: str
    job: str
    text: str
    signatures: list[str]
    first_seen: int
    aliases: list[str] = []


class Suspect(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A worker that stands apart; never a root cause. ``score`` is between 0 and 1.

    ``kind`` is what it is while its peers wait: a ``blocker`` (it does not wait), an ``early_exit`` (its process has
    ended), ``mismatched`` (it enqueued something else, or in another order) or a ``stopped_device`` (which completes
    nothing); of who printed an error ``caught``, where what caught it printed it; empty where nothing says it. A place
    without a rank may be a ``switch``.
    """

    rank: int | None
    node: str
    score: float
    why: str
    role: str = ""
    coordinates: dict[str, int | list[int]] = {}
    device: str | None = None
    kind: str = ""
    switch: str = ""


class Evidence(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What one detector saw in one window, and what the peers showed."""

    layer: Layer
    detector: str
    start: int
    end: int
    text: str
    peers: str = ""


class Anomaly(Record, frozen=True, omit_defaults=True, kw_only=True):
    """One detector's finding in one closed window of one job.

    ``suspects`` are the ranks it singles out, ``victims`` those it shows waiting or failing with others,
    ``onset`` the earliest time that the evidence supports, within ``precision_ns`` to either side. ``grounds`` is the
    detector's reason, a stable word. ``templates`` are signatures of lines, or ids of templates where the axis is
    ``cross-job``; ``library`` is the version of the learned library that it rests on. ``about`` are the ranks that a
    supporting finding speaks of: it accuses none of them. ``metric`` is the timer, without its unit, the sampled
    metric or the alert that it rests on; empty where it rests on no one.
    """

    id: str
    detector: str
    version: int
    config: str
    job: str
    attempt: str
    start: int
    end: int
    onset: int
    axis: Axis
    layer: Layer
    symptom: Symptom
    area: Area
    grounds: str
    text: str
    severity: Severity
    precision_ns: int = 0
    peers: str = ""
    iteration: int | None = None
    phase: str = ""
    suspects: list[Suspect] = []
    victims: list[int] = []
    unobserved: list[int] = []
    templates: list[str] = []
    library: str = ""
    about: list[int] = []
    metric: str = ""


class Notice(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An early word on a fatal line, sent on arrival: it names nobody, attribution is pending."""

    id: str
    notification_key: str
    job: str
    attempt: str
    time: int
    rule: str
    text: str
