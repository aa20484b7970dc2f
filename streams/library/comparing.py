"""An attempt beside the jobs of a library: what it shows, what else differs, and which of it goes together.

Said once, and again whenever it has become another. It opens nothing, names nobody and claims no cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.comparison import Association, Comparison, Setting, Shown
from schemas.identity import said_ranks, shortened
from schemas.ids import stable_id
from schemas.jobs import JobDescription
from schemas.library import HealthyJob
from schemas.results import Anomaly, Incident, Symptom
from streams.attempt_window import AttemptWindow
from streams.library.associations import ABSENT, Beside, associations, said_setting
from streams.library.healthy_contrast import HealthyContrast
from streams.library.likeness import WEIGHTS, Described, described

MOST_SETTINGS = 60
QUOTED, SHOWN_TEXT = 3, 120
MOST_INCIDENTS = 64

NOTHING_DIFFERS = "nothing that is known of the jobs differs"
ONE_PAIR = "one pair of jobs cannot tell which of what differs matters"
ONE_SHOWS = "only this job shows it, so whatever is its own goes with it"
NOTHING_KNOWN = "nothing is known of what this job is, so it cannot be told what else differs"
ITSELF = "it is this job itself"
ONLY_ITSELF = "the library knows this job alone, so there is no other to compare it with"
NOT_DESCRIBED = "the library does not describe its jobs, so it cannot be told what else differs"


class SettledState(msgspec.Struct, kw_only=True):
    """Which description of a job its baseline was chosen by.

    ``heard`` names what was known of it at the end of the last window, ``description`` is what was known at first, or
    when it last stayed the same for a window, and ``chosen`` the end of the window in which that was; ``first`` is the
    end of the first window of all.
    """

    heard: str = ""
    description: JobDescription | None = None
    chosen: int = 0
    first: int = 0


def settle(state: SettledState, description: JobDescription | None, end: int) -> bool:
    """Take in what is known of the job at the end of a window; returns whether its baseline is to be chosen anew.

    That is so at the first word, and then once what is known has stayed the same from one window to the next, so that
    jobs are not compared by half of what they will have said in a moment. What was left out says nothing of the job.
    """
    if description is None:
        return False
    known = msgspec.structs.replace(description, left_out={})
    heard = stable_id("description", msgspec.json.encode(known, order="deterministic").decode())
    settled = state.description is None or (heard == state.heard and known != state.description)
    state.heard = heard
    if settled:
        state.description, state.chosen, state.first = known, end, state.first or end
    return settled


class ComparedState(msgspec.Struct, kw_only=True):
    """What an attempt has shown so far: symptoms by incident, findings by kind; ``said`` names the last word."""

    symptoms: dict[str, Symptom] = {}
    shown: dict[str, Shown] = {}
    said: str = ""


class _Others(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a library that a job stands beside: all but the job itself, which may be in it, too.

    ``settings`` are those of the job that no other of its baseline has.
    """

    job: str = ""
    itself: frozenset[str] = frozenset()
    jobs: list[tuple[HealthyJob, Described]] = []
    settings: list[Setting] = []


class BesideLibrary:
    """A job beside the jobs of a library: what follows from what they are is found once for each description."""

    def __init__(self, jobs: Sequence[HealthyJob], read: Mapping[str, Described]) -> None:
        self._jobs = [(job, read[job.id]) for job in jobs]
        self._first = self.chosen = 0
        self._here = described(None)
        self._baseline: frozenset[str] = frozenset()
        self._others: _Others | None = None
        self._associations: dict[tuple[Symptom, ...], list[Association]] = {}

    def held_against(self, settled: SettledState, baseline: Sequence[HealthyJob]) -> None:
        """The job is what is settled of it, and is held against these of the library's jobs."""
        self._first, self.chosen = settled.first, settled.chosen
        self._here = described(settled.description)
        self._baseline = frozenset(job.id for job in baseline)
        self._others = None
        self._associations = {}

    def compared(
        self,
        state: ComparedState,
        window: AttemptWindow,
        anomalies: Sequence[Anomaly],
        revisions: Sequence[Incident],
    ) -> Comparison | None:
        """An attempt beside the library's jobs at the end of a window; null where that is what was last said."""
        contrast = window.contrast
        if contrast is None:
            return None
        _take(state, anomalies, revisions)
        symptoms: list[Symptom] = sorted(set(state.symptoms.values()))
        others = self._beside(window.job)
        found = Comparison(
            id="",
            job=window.job,
            attempt=window.attempt,
            start=window.start,
            end=window.end,
            library=contrast.library,
            verdict=contrast.choice.verdict,
            chosen=self.chosen,
            jobs=[
                msgspec.structs.replace(one, reason=ITSELF) if one.id in others.itself else one
                for one in contrast.choice.jobs
            ],
            shows=[*_templates(contrast), *(state.shown[kind] for kind in sorted(state.shown))],
            symptoms=symptoms,
            settings=others.settings[:MOST_SETTINGS],
            associations=self._going_with(symptoms, others),
            caution=self._caution(symptoms, others),
            left_out=max(len(others.settings) - MOST_SETTINGS, 0),
        )
        timeless = msgspec.structs.replace(found, start=0, end=0)
        said = stable_id("comparison", msgspec.json.encode(timeless, order="deterministic").decode())
        if said == state.said:
            return None
        state.said = said
        whole = (window.job, window.attempt, window.start, said)
        return msgspec.structs.replace(found, id=stable_id("comparison", *whole))

    def _beside(self, name: str) -> _Others:
        """The others of a job of that name."""
        if self._others is None or self._others.job != name:
            jobs = [(job, one) for job, one in self._jobs if not is_itself(job, name, self._first)]
            self._others = _Others(
                job=name,
                itself=frozenset(job.id for job, _ in self._jobs) - {job.id for job, _ in jobs},
                jobs=jobs,
                settings=differing(self._here, [one for job, one in jobs if job.id in self._baseline]),
            )
        return self._others

    def _all(self, symptoms: Sequence[Symptom], others: _Others) -> list[Beside]:
        """All jobs of which anything is known, this one first."""
        jobs = [(self._here, frozenset(symptoms)), *((one, frozenset(job.symptoms)) for job, one in others.jobs)]
        return [Beside(one, shown) for one, shown in jobs if one.settings]

    def _going_with(self, symptoms: list[Symptom], others: _Others) -> list[Association]:
        if not self._here.settings:
            return []
        key = tuple(symptoms)
        if key not in self._associations:
            self._associations = {key: associations(self._all(symptoms, others), symptoms)}
        return self._associations[key]

    def _caution(self, symptoms: Sequence[Symptom], others: _Others) -> str:
        """What so few jobs cannot tell, in words."""
        if not self._here.settings:
            return NOTHING_KNOWN
        if not any(one.settings for _, one in others.jobs):
            return ONLY_ITSELF if others.itself and not others.jobs else NOT_DESCRIBED
        if not symptoms:
            return ""
        if not others.settings:
            return NOTHING_DIFFERS
        jobs = self._all(symptoms, others)
        if len(jobs) == 2:
            return ONE_PAIR
        shared = any(sum(symptom in one.symptoms for one in jobs) > 1 for symptom in symptoms)
        return "" if shared else ONE_SHOWS


def is_itself(job: HealthyJob, name: str, first: int) -> bool:
    """Whether a job of the library is the job of that name of which ``first`` was known at that time.

    Names come again: it is the same only if it was seen at that time.
    """
    return job.job == name and job.began < first <= job.ended


def _take(state: ComparedState, anomalies: Sequence[Anomaly], revisions: Sequence[Incident]) -> None:
    """Remember what was found in a window: what pages, and what detectors tell against the baseline."""
    symptoms = dict(state.symptoms)
    for one in revisions:
        symptoms.pop(one.id, None)
        if one.severity in ("critical", "warning") and not one.merged_into:
            symptoms[one.id] = one.symptom
    state.symptoms = dict(list(symptoms.items())[-MOST_INCIDENTS:])
    told = {
        one.grounds: Shown(kind=one.grounds, text=one.text, peers=one.peers)
        for one in anomalies
        if one.axis == "cross-job" and one.grounds not in ("novel_templates", "absent_templates")
    }
    if told:
        state.shown = {**state.shown, **told}


def _templates(contrast: HealthyContrast) -> list[Shown]:
    """New and vanished templates so far."""
    alone = [f"{_quoted(one.text)} (by {said_ranks(one.ranks)})" for one in contrast.novel if not one.elsewhere]
    others = [f"{_quoted(one.text)} (by {', '.join(one.elsewhere)})" for one in contrast.novel if one.elsewhere]
    absent = [_quoted(one.text) for one in contrast.absent]
    found = []
    for kind, texts, who in (
        ("novel_templates", alone, "no job of the library prints"),
        ("templates_of_others", others, "no job of the baseline prints, but others of the library do"),
        ("absent_templates", absent, "nearly all ranks of the baseline print and nobody here"),
    ):
        if texts:
            many = f"{len(texts)} template{'s' if len(texts) > 1 else ''}"
            more = f" and {len(texts) - QUOTED} more" if len(texts) > QUOTED else ""
            found.append(Shown(kind=kind, text=f"{many} that {who}: {', '.join(texts[:QUOTED])}{more}"))
    return found


def _quoted(text: str) -> str:
    return f"'{shortened(text, SHOWN_TEXT)}'"


def differing(here: Described, others: Sequence[Described]) -> list[Setting]:
    """The settings of a job that none of the others has, those that weigh most first."""
    found = []
    for facet in WEIGHTS:
        names = {name for one in (here, *others) for name in one.settings.get(facet, {})}
        for name in sorted(names):
            telling = [one for one in others if one.tells(facet, name)]
            if not telling or not here.tells(facet, name):
                continue
            own = here.settings[facet].get(name, ABSENT)
            if any(one.settings[facet].get(name, ABSENT) == own for one in telling):
                continue
            raw = here.raw[facet].get(name, ABSENT)
            there = sorted({one.raw[facet].get(name, ABSENT) for one in telling})
            found.append(Setting(facet=facet, name=name, here=raw, there=there, text=_said(facet, name, raw, there)))
    return found


def _said(facet: str, name: str, here: str, there: Sequence[str]) -> str:
    values = " or ".join(value or "none" for value in there[:3]) + (" or others" if len(there) > 3 else "")
    if here == ABSENT:
        return f"no {name} here, {values} there"
    own = said_setting(facet, name, here)
    return f"{own}, which the baseline has not" if list(there) == [ABSENT] else f"{own} here, {values} there"
