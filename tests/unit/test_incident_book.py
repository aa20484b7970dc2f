"""Which anomalies are one incident, and how it is revised as windows close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from detection_support import anomaly, at, closed, ended, healthy, new_view, series, still

from schemas.events import Frame
from schemas.ids import notification_key
from schemas.results import Anomaly, Incident, MergedClass, MergedGroup, MergedStacks, SuspiciousTemplate
from streams.attempt_window import AttemptWindow
from streams.incidents import book
from streams.incidents.book import IncidentBook
from streams.incidents.evidence import SHOWN_SUPPORT
from streams.incidents.opened import KEPT_ANOMALIES, KEPT_SUPPORT, IncidentBookState
from streams.incidents.situation import QUIET_WINDOWS
from streams.library.healthy_contrast import HealthyContrast
from streams.view import AttemptView

RANKS = 8
ALL = list(range(RANKS))


class Story:
    """An attempt of eight ranks whose windows close one after another."""

    def __init__(self, first: AttemptWindow | None = None) -> None:
        self.view: AttemptView = new_view()
        self.state = IncidentBookState()
        self.start = 0.0
        self.templates: list[SuspiciousTemplate] = []
        self.view.update(first or healthy(RANKS))

    def close(
        self,
        *grounds: Anomaly,
        window: Callable[[float], AttemptWindow] | None = None,
        stacks: list[str] | None = None,
    ) -> list[Incident]:
        """The next window with these anomalies, moved into it; the job stands still unless ``window`` says else.

        ``stacks`` are the ranks of each place where stacks show somebody.
        """
        self.start += 10
        made = window(self.start) if window else still(RANKS, self.start)
        self.view.update(made)
        seen = None if stacks is None else merged(made, stacks)
        return IncidentBook(self.state).close(self.view, made, list(grounds), lambda *_: self.templates, seen)

    def here(self, kind: str, *args: Any, **fields: Any) -> Anomaly:
        """An anomaly of the window that closes next."""
        return anomaly(kind, *args, **({"start": self.start + 10} | fields))

    def restored(self) -> None:
        self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=IncidentBookState)


def merged(window: AttemptWindow, places: list[str]) -> MergedStacks:
    groups = [
        MergedGroup(
            ranks=ranks,
            activity="own" if n else "communication",
            place=f"place {n}",
            frames=[Frame("f", "a.py")],
            since=window.start,
            samples=n,
        )
        for n, ranks in enumerate(places)
    ]
    kinds = [
        MergedClass(process_type="trainer", thread="MainThread", observed="0-7", groups=groups, text="; ".join(places)),
        MergedClass(process_type="trainer", thread="dumper", observed="0-7"),
    ]
    names = {"id": "m", "job": window.job, "attempt": window.attempt}
    return MergedStacks(**names, start=window.start, end=window.end, since=at(9), classes=kinds)


def iterating(start: float) -> AttemptWindow:
    return healthy(RANKS, start, int(start) + 1)


def rest(*apart: int) -> list[int]:
    return [rank for rank in ALL if rank not in apart]


def hang(story: Story) -> list[Anomaly]:
    return [story.here("no_iteration", onset=9), story.here("outside_communication", [5], rest(5), onset=9)]


def test_an_incident_keeps_its_id_over_revisions_that_count_up() -> None:
    story = Story()
    revisions = [
        *story.close(story.here("no_iteration", onset=9)),
        *story.close(*hang(story)),
        *story.close(*hang(story), story.here("cascade", [], rest(5), subject="c")),
    ]
    assert len(revisions) == 3
    assert len({one.id for one in revisions}) == 1
    assert [one.revision for one in revisions] == [1, 2, 3]
    assert [one.published for one in revisions] == [at(20), at(30), at(40)]
    assert [[suspect.rank for suspect in one.suspects] for one in revisions] == [[], [5], [5]]


def test_one_more_window_of_the_same_is_no_revision() -> None:
    story = Story()
    assert len(story.close(*hang(story))) == 1
    assert [story.close(*hang(story)) for _ in range(5)] == [[]] * 5


def told(incidents: list[Incident]) -> list[list[str]]:
    return [[kind.text for kind in one.stacks] for one in incidents]


def test_an_incident_says_where_everybody_stands_of_what_tells_and_without_frames() -> None:
    story = Story()
    (one,) = story.close(*hang(story), stacks=["0-4,6-7", "5"])
    (kind,) = one.stacks
    assert (kind.text, [group.ranks for group in kind.groups]) == ("0-4,6-7; 5", ["0-4,6-7", "5"])
    assert all(not group.frames and not group.samples for group in kind.groups)


def test_ranks_that_stand_apart_are_a_revision_and_where_they_do_is_none() -> None:
    story = Story()
    assert told(story.close(*hang(story))) == [[]]
    assert told(story.close(*hang(story), stacks=["0-7"])) == [["0-7"]]
    assert told(story.close(*hang(story), stacks=["0-4,6-7", "5"])) == [["0-4,6-7; 5"]]
    assert told(story.close(*hang(story), stacks=["0-3,7", "4-6"])) == [["0-3,7; 4-6"]]
    assert told(story.close(*hang(story), stacks=["0-3,7", "4,6", "5"])) == []
    story.templates = [SuspiciousTemplate(id="t", text="x", first_seen=at(9), ranks="5", axis="space")]
    assert told(story.close(*hang(story), stacks=["0-3,7", "4,6", "5"])) == [["0-3,7; 4,6; 5"]]


@pytest.mark.parametrize(
    ("failure", "found"),
    [
        # When a rank failed, in which window that is found, and what was seen last before it, or first of all.
        (None, "5; 0-3"),
        ((45, 40), "5; 0-2"),
        ((35, 40), "5; 0-1"),
        ((25, 20), "5; 0"),
        ((25, 40), "5; 0"),
        ((12, 40), "5; 0"),
        # Before the standstill: the job has gone on after it.
        ((5, 20), "5; 0-3"),
    ],
)
def test_what_is_seen_once_ranks_fail_is_not_where_they_stood(failure: tuple[int, int] | None, found: str) -> None:
    story = Story()
    for seen in (["5", "0"], ["5", "0-1"], ["5", "0-2"], ["5", "0-3"]):
        found_now = failure is not None and story.start + 10 == failure[1]
        failures = [story.here("cascade", [], [1], onset=failure[0])] if failure and found_now else []
        story.close(*hang(story), *failures, stacks=seen)
        story.restored()
    (revision,) = story.close(
        *hang(story), story.here("own_death", [2], onset=70), window=lambda start: closed([], start, stopped=at(start))
    )
    assert told([revision]) == [[found]]


def test_stacks_are_no_part_of_what_is_no_standstill_and_few_are_kept() -> None:
    story = Story()
    (slow,) = story.close(story.here("slow_and_changed", [3]), stacks=["0-7"])
    assert slow.stacks == []
    for last in range(9):
        story.close(*hang(story), stacks=[f"0-{last}"])
    assert [kept.classes[0].text for kept in story.state.incidents[-1].stacks] == ["0-0", "0-6", "0-7", "0-8"]


def test_new_templates_are_a_revision() -> None:
    story = Story()
    story.close(*hang(story))
    story.templates = [SuspiciousTemplate(id="t", text="x", first_seen=at(9), ranks="5", axis="space")]
    (revision,) = story.close(*hang(story))
    assert revision.templates == story.templates


def test_a_hang_and_the_cascades_that_follow_are_one_incident() -> None:
    story = Story()
    story.close(*hang(story))
    story.close(*hang(story), story.here("cascade", [], rest(5), subject="c", symptom="hang"))
    story.close(story.here("own_death", [2], subject="killed"), story.here("told_to_end", [], [3]))
    assert len(story.state.incidents) == 1
    latest = story.state.incidents[0].latest
    assert latest is not None
    assert (latest.symptom, [suspect.rank for suspect in latest.suspects]) == ("hang", [5])


def test_memory_and_crash_are_one_incident() -> None:
    story = Story()
    story.close(story.here("own_error", [4], symptom="memory", area="memory"))
    story.close(story.here("cascade", [], rest(4), subject="c"))
    assert len(story.state.incidents) == 1


def test_a_slowdown_and_a_crash_are_two() -> None:
    story = Story()
    story.close(story.here("slow_and_changed", [3]), window=iterating)
    story.close(story.here("own_error", [6]), story.here("slow_and_changed", [3]), window=iterating)
    assert [one.family for one in story.state.incidents] == ["slowdown", "standstill"]
    assert len({one.first for one in story.state.incidents}) == 2


@pytest.mark.parametrize("grounds", ["unlike_peers", "own_shift", "shared_shift", "told_to_end", "unobserved"])
def test_information_opens_nothing(grounds: str) -> None:
    story = Story()
    assert story.close(story.here(grounds, [3])) == []
    assert story.state.incidents == []


def test_information_from_before_supports_the_incident_to_come() -> None:
    story = Story()
    story.close(story.here("own_shift", [3]), window=iterating)
    (incident,) = story.close(story.here("slow_against_peers", [3]), window=iterating)
    assert {piece.detector for piece in incident.evidence} == {"step_outlier", "timer_shift"}


def novelty(story: Story, **fields: Any) -> Anomaly:
    return story.here("novel_templates", library="healthy 1 (v)", **fields)


def test_a_difference_to_healthy_jobs_opens_nothing_and_supports_any_incident() -> None:
    story = Story()
    assert story.close(novelty(story, onset=12), window=iterating) == []
    (incident,) = story.close(story.here("slow_and_changed", [3]), window=iterating)
    assert [piece.detector for piece in incident.evidence] == ["step_outlier", "log_novelty"]
    assert (incident.symptom, incident.severity) == ("slowdown", "critical")


def test_a_difference_to_healthy_jobs_long_before_or_after_is_no_evidence() -> None:
    story = Story()
    story.close(novelty(story, onset=-30), window=iterating)
    (first,) = story.close(*hang(story))
    assert {piece.detector for piece in first.evidence} == {"no_iteration", "stack_minority"}
    assert story.close(*hang(story), novelty(story, onset=45)) == []
    (later,) = story.close(*hang(story), novelty(story, onset=25))
    assert later.evidence[-1].detector == "log_novelty"


def test_a_difference_to_healthy_jobs_decides_nothing_and_keeps_nothing_open() -> None:
    plain, beside = Story(), Story()
    for story in (plain, beside):
        said = [novelty(story, onset=12, subject=str(n)) for n in range(30)] if story is beside else []
        story.close(story.here("slow_and_changed", [3]), *said, window=iterating)
    for _ in range(QUIET_WINDOWS):
        (one, two) = (
            story.close(*([novelty(story)] if story is beside else []), window=iterating) for story in (plain, beside)
        )
        assert [(found.status, found.suspects) for found in one] == [(found.status, found.suspects) for found in two]
    assert one and one[0].status == "resolved"
    assert len(beside.state.support) <= KEPT_SUPPORT
    beside.restored()


def test_an_incident_says_which_library_it_was_held_against() -> None:
    story = Story()
    contrast = HealthyContrast(library="healthy 1 (v)", jobs=1, novel=[], absent=[])
    (incident,) = story.close(*hang(story))
    assert incident.library == ""
    other = Story()
    (incident,) = other.close(
        *hang(other), window=lambda start: msgspec.structs.replace(still(RANKS, start), contrast=contrast)
    )
    assert incident.library == "healthy 1 (v)"


def test_an_old_short_silence_does_not_make_a_later_crash_a_hang() -> None:
    story = Story()
    story.close(story.here("no_iteration", onset=9, severity="info"))
    for _ in range(60):
        story.close(window=iterating)
    story.close(story.here("own_error", [6], onset=story.start + 12))
    (revision,) = story.close(story.here("cascade", [], rest(6), subject="c"))
    assert (revision.symptom, [suspect.rank for suspect in revision.suspects]) == ("crash", [6])


@pytest.mark.parametrize(
    ("grounds", "window", "change", "resolution"),
    [
        ("own_error", still, "stopped", "the job was stopped by its owner"),
        ("own_error", still, "superseded", "a new attempt has begun"),
        ("own_error", iterating, "", "iterations go on"),
        ("no_iteration", iterating, "", "iterations go on"),
    ],
)
def test_an_incident_is_over_for_a_reason(grounds: str, window: Any, change: str, resolution: str) -> None:
    story = Story()
    story.close(story.here(grounds, [6] if grounds == "own_error" else []))
    if change:
        setattr(story.view, change, at(25))
    (last,) = story.close(window=iterating if window is iterating else None)
    assert (last.status, last.resolution) == ("resolved", resolution)


def test_what_is_slow_now_and_then_is_one_incident_that_waits_longer_each_time() -> None:
    story = Story()
    told = []
    for lull in (QUIET_WINDOWS, 2 * QUIET_WINDOWS):
        told += story.close(story.here("slow_and_changed", [5], onset=5), window=iterating)
        for _ in range(lull):
            told += story.close(window=iterating)
    told += story.close(story.here("slow_and_changed", [5], onset=story.start), window=iterating)
    assert [(one.revision, one.status, one.onset) for one in told] == [
        (1, "open", at(5)),
        (2, "resolved", at(5)),
        (3, "open", at(5)),
    ]
    for _ in range(4 * QUIET_WINDOWS):
        told += story.close(window=iterating)
    assert (len(told), told[-1].status) == (4, "resolved")
    (later,) = story.close(story.here("slow_and_changed", [5], onset=story.start), window=iterating)
    assert (later.revision, later.onset) == (1, at(story.start - 10))


def test_the_end_of_the_attempt_ends_its_incidents() -> None:
    story = Story()
    story.close(story.here("own_error", [6]))
    ends = [(rank, ended(21, 1)) for rank in ALL]
    revisions = story.close(window=lambda start: closed([], start, exits=ends))
    assert [(one.status, one.resolution) for one in revisions] == [("resolved", "the attempt has ended")]


def test_a_slowdown_is_over_once_it_has_not_shown_for_a_while() -> None:
    story = Story()
    story.close(story.here("slow_and_changed", [3]), window=iterating)
    quiet = [story.close(window=iterating) for _ in range(QUIET_WINDOWS)]
    assert quiet[:-1] == [[]] * (QUIET_WINDOWS - 1)
    assert [one.resolution for one in quiet[-1]] == ["it no longer shows"]


def told_of(revisions: list[Incident]) -> list[tuple[str, str, list[int | None], int]]:
    return [(one.status, one.severity, [suspect.rank for suspect in one.suspects], one.onset) for one in revisions]


def slowed(story: Story, windows: int, *kinds: str, ranks: tuple[int, ...] = (), **fields: Any) -> list[Incident]:
    """So many windows in which the job iterates, with one finding of each of these grounds."""
    found: list[Incident] = []
    for _ in range(windows):
        said = [story.here(kind, ranks if kind != "job_shift" else [], **fields.get(kind, {})) for kind in kinds]
        found += story.close(*said, window=iterating)
    return found


def test_a_straggler_that_is_over_is_not_kept_by_information_that_the_job_is_slower() -> None:
    story = Story()
    shift = {"job_shift": {"severity": "info", "onset": 9}}
    slowed(story, 5, "job_shift", **shift)
    first = slowed(story, 10, "slow_and_changed", "job_shift", ranks=(5,), **shift)
    over = slowed(story, 60, "job_shift", **shift)
    assert told_of(first) == [("open", "critical", [5], at(60))]
    assert told_of(over) == [("resolved", "critical", [5], at(60))]
    later = slowed(story, 3, "slow_and_changed", "job_shift", ranks=(6,), **shift)
    assert told_of(later) == [("open", "critical", [6], at(story.start - 20))]
    assert later[0].id != first[0].id


def test_a_straggler_that_is_over_is_named_no_more_while_a_warning_goes_on() -> None:
    story = Story()
    shift = {"job_shift": {"severity": "warning", "onset": 9}}
    slowed(story, 5, "job_shift", **shift)
    slowed(story, 100, "slow_and_changed", "job_shift", ranks=(5,), **shift)
    over = slowed(story, 60, "job_shift", **shift)
    assert told_of(over) == [("open", "warning", [], at(9))]
    later = slowed(story, 100, "slow_and_changed", "job_shift", ranks=(6,), **shift)
    assert told_of(later) == [("open", "critical", [6], at(1660))]


@pytest.mark.parametrize("kind", ["what_if_workers", "slow_function_and_changed"])
def test_whom_a_single_look_found_is_named_until_the_job_has_come_back(kind: str) -> None:
    story = Story()
    shift = {"job_shift": {"severity": "warning", "onset": 9}}
    assert told_of(slowed(story, 1, kind, "job_shift", ranks=(5,), **shift))[0][2] == [5]
    assert slowed(story, 2 * QUIET_WINDOWS, "job_shift", **shift) == []
    assert slowed(story, 60, "job_shift", **shift) == []
    anew = {"job_shift": {"severity": "warning", "onset": story.start}}
    assert told_of(slowed(story, QUIET_WINDOWS + 1, "job_shift", **anew))[0][2] == []


def test_a_straggler_that_tells_its_timers_no_more_is_named_until_the_job_has_come_back() -> None:
    story = Story()
    shift = {"job_shift": {"severity": "warning", "onset": 9}}

    def timed(start: float) -> AttemptWindow:
        told = {"series": [series("compute_ms", int(start) + 1, [1.0] * 10, start)]}
        return still(RANKS, start, dict.fromkeys(ALL, told))

    found = [story.here("slow_and_changed", [5]), story.here("job_shift", **shift["job_shift"])]
    assert told_of(story.close(*found, window=timed))[0][2] == [5]
    assert slowed(story, 60, "job_shift", **shift) == []
    assert told_of(story.close(story.here("job_shift", **shift["job_shift"]), window=timed))[0][2] == []


@pytest.mark.parametrize(("timer", "ranks", "named"), [("compute_ms", 8, []), ("compute_ms", 4, [5]), ("loss", 8, [5])])
def test_one_look_names_nobody_where_timers_of_most_ranks_see_nobody(timer: str, ranks: int, named: list[int]) -> None:
    story = Story()

    def timed(start: float) -> AttemptWindow:
        told = {"series": [series(timer, int(start) + 1, [1.0] * 10, start)]}
        return still(RANKS, start, dict.fromkeys(range(ranks), told))

    story.close(window=timed)
    (revision,) = story.close(story.here("slow_function_and_changed", [5]), window=iterating)
    assert [suspect.rank for suspect in revision.suspects] == named


def test_a_detector_that_judges_rarely_does_not_end_what_it_found() -> None:
    story = Story()
    story.view.clock.steps = [20 * 10**9]
    assert len(story.close(story.here("slow_and_changed", [5]))) == 1
    for _ in range(3):
        assert [story.close() for _ in range(QUIET_WINDOWS + 2)] == [[]] * (QUIET_WINDOWS + 2)
        assert story.close(story.here("slow_and_changed", [5])) == []


def test_a_resolved_incident_stays_as_it_is_and_one_of_other_ranks_is_another() -> None:
    story = Story()
    (first,) = story.close(*hang(story))
    story.close(window=iterating)
    assert story.close(window=iterating) == []
    other = [story.here("no_iteration"), story.here("outside_communication", [2], rest(2))]
    (again,) = story.close(*other)
    assert again.id != first.id
    assert again.revision == 1


def test_a_hang_that_was_over_and_shows_again_goes_on_under_its_id() -> None:
    story = Story()
    revisions = []
    for _ in range(2):
        since = story.start + 9
        found = [
            story.here("no_iteration", onset=since),
            story.here("outside_communication", [5], rest(5), onset=since),
        ]
        revisions += story.close(*found)
        story.restored()
        revisions += story.close(window=iterating)
        revisions += story.close(window=iterating)
    assert len({one.id for one in revisions}) == 1
    assert [(one.revision, one.status, one.onset) for one in revisions] == [
        (1, "open", at(9)),
        (2, "resolved", at(9)),
        (3, "open", at(39)),
        (4, "resolved", at(39)),
    ]


def test_an_incident_beside_the_one_that_notices_announce_has_an_alert_of_its_own() -> None:
    story = Story()
    (slow,) = story.close(story.here("slow_and_changed", [3]), window=iterating)
    (failed,) = story.close(story.here("own_error", [6], onset=20), window=iterating)
    assert failed.notification_key == notification_key(failed.job, failed.attempt) != slow.notification_key
    story.restored()
    (again,) = story.close(story.here("cascade", [], rest(6), subject="c"))
    assert again.notification_key == failed.notification_key


def test_what_has_come_back_several_times_is_not_over_at_once() -> None:
    story = Story()
    told = []
    for _ in range(4):
        told += story.close(story.here("no_iteration"), story.here("outside_communication", [5], rest(5)))
        told += story.close(window=iterating)
        told += story.close(window=iterating)
    assert [one.status for one in told] == ["open", "resolved", "open", "resolved", "open", "open"]
    for _ in range(2 * QUIET_WINDOWS):
        told += story.close(window=iterating)
    assert ([one.status for one in told][-1], len({one.id for one in told})) == ("resolved", 1)


def test_an_error_that_the_job_survives_names_nobody() -> None:
    # A logged traceback of an upload that is tried again; iterations never stop.
    story = Story()
    revisions = story.close(story.here("own_error", [0], templates=["a"]), window=iterating)
    for _ in range(3):
        revisions += story.close(window=iterating)
    assert all(one.suspects == [] for one in revisions)


def test_a_job_that_its_owner_stopped_pages_nobody() -> None:
    story = Story()
    story.view.stopped = at(12)
    for revision in story.close(story.here("own_error", [6], onset=13)):
        assert (revision.severity, revision.status) == ("info", "resolved")


def test_a_fault_before_the_owners_stop_stays_critical() -> None:
    story = Story()
    story.close(*hang(story))
    story.view.stopped = at(25)
    (last,) = story.close()
    assert (last.severity, last.status) == ("critical", "resolved")


def test_anomalies_are_kept_within_a_bound_and_the_first_stays() -> None:
    story = Story()
    for _ in range(3 * KEPT_ANOMALIES):
        story.close(*hang(story))
    (one,) = story.state.incidents
    assert len(one.anomalies) <= KEPT_ANOMALIES
    assert one.anomalies[0].id == one.first
    assert one.latest is not None
    assert one.latest.revision == 1


def test_context_is_bounded() -> None:
    story = Story()
    for _ in range(3 * KEPT_ANOMALIES):
        story.close(story.here("unlike_peers", [3]), window=iterating)
    assert len(story.state.context) <= KEPT_ANOMALIES


@pytest.mark.parametrize("cut", range(5))
def test_a_restore_between_any_two_windows_changes_nothing(cut: int) -> None:
    def told(restored_at: int | None) -> list[Incident]:
        story, revisions = Story(), []
        for number in range(5):
            if number == restored_at:
                story.restored()
            found = [story.here("no_iteration", onset=9)] if number == 0 else hang(story) if number < 3 else []
            revisions += story.close(*found, window=iterating if number > 3 else None)
        return revisions

    assert told(cut) == told(None)


@pytest.fixture
def backing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Anomaly]:
    """Makes findings of a supporting detector."""
    monkeypatch.setattr(book, "is_supporting", lambda name: name == "backer")

    def made(story: Story, symptom: str = "slowdown", grounds: str = "alone", **fields: Any) -> Anomaly:
        found = {"detector": "backer", "symptom": symptom, "severity": "info", "grounds": grounds} | fields
        return msgspec.structs.replace(story.here("unlike_peers", [], subject=grounds), **found)

    return made


def growth(story: Story) -> Anomaly:
    return story.here("memory_growth", [3], onset=0, area="memory")


def test_memory_that_grew_is_part_of_the_death_that_comes_of_it() -> None:
    story = Story()
    revisions = [one for _ in range(4) for one in story.close(growth(story), window=iterating)]
    assert [(one.symptom, one.severity, [s.rank for s in one.suspects]) for one in revisions] == [
        ("memory", "warning", [3])
    ]
    death = [story.here("own_death", [3], area="memory"), story.here("cascade", [], rest(3), subject="c")]
    (dead,) = story.close(*death)
    assert (dead.id, dead.symptom, dead.severity) == (revisions[0].id, "crash", "critical")
    assert [suspect.rank for suspect in dead.suspects] == [3]
    assert "memory_growth" in {piece.detector for piece in dead.evidence}


def test_memory_that_grows_hides_no_hang_and_keeps_none_open() -> None:
    story = Story()
    (grows,) = story.close(growth(story), window=iterating)
    (stands,) = story.close(growth(story), *hang(story))
    assert (stands.symptom, [suspect.rank for suspect in stands.suspects]) == ("hang", [5])
    (over,) = story.close(growth(story), window=iterating)
    assert (over.id, over.status, over.resolution) == (stands.id, "resolved", "iterations go on")
    assert story.close(growth(story), window=iterating) == []
    (still_,) = story.state.incidents
    assert still_.latest == grows


def test_memory_that_grows_of_whom_the_job_waits_for_is_part_of_the_hang() -> None:
    story = Story()
    (grows,) = story.close(growth(story), window=iterating)
    found = [story.here("no_iteration", onset=19), story.here("outside_communication", [3], rest(3), onset=19)]
    part, stands = story.close(growth(story), *found)
    assert (part.id, part.status, part.severity, part.merged_into) == (grows.id, "resolved", "info", stands.id)
    assert (stands.symptom, stands.revision) == ("hang", 1)
    assert stands.evidence[-1].detector == "memory_growth"
    story.restored()
    assert story.close(growth(story), *found) == []


def test_a_crash_beside_growing_memory_of_another_rank_is_an_incident_of_its_own() -> None:
    story = Story()
    (grows,) = story.close(growth(story), window=iterating)
    (crash,) = story.close(story.here("cascade", [], [0, 1], subject="c"), growth(story))
    (named,) = story.close(story.here("own_error", [6], onset=22), growth(story))
    assert named.id == crash.id != grows.id
    assert ([suspect.rank for suspect in named.suspects], named.reason) == (
        [6],
        "one failed by an error of its own, the others by its loss",
    )
    assert [one.latest.symptom for one in story.state.incidents if one.latest] == ["memory", "crash"]


def test_memory_that_no_longer_grows_is_no_incident_any_more() -> None:
    story = Story()
    story.close(growth(story), window=iterating)
    closed_ = [story.close(window=iterating) for _ in range(QUIET_WINDOWS)]
    assert [one.resolution for one in closed_[-1]] == ["it no longer shows"]
    assert story.state.incidents == []


def test_what_is_about_the_named_is_shown_before_other_support(backing: Callable[..., Anomaly]) -> None:
    story = Story()
    more = [backing(story, grounds=f"g{rank}", about=[rank], text=f"rank {rank}") for rank in (0, 1, 2, 3, 4, 5)]
    (one,) = story.close(*more, *hang(story))
    shown = [piece.text for piece in one.evidence if piece.detector == "backer"]
    assert shown == ["rank 5", "rank 0", "rank 1", "rank 2"]


@pytest.mark.parametrize(("windows", "shown"), [(7, True), (10, False)])
def test_what_is_about_ranks_holds_until_it_would_have_been_said_again(
    backing: Callable[..., Anomaly], windows: int, *, shown: bool
) -> None:
    story = Story()
    story.close(backing(story, about=[5]), window=iterating)
    for _ in range(windows):
        story.close(window=iterating)
    (one,) = story.close(*hang(story))
    assert ("backer" in {piece.detector for piece in one.evidence}) == shown


@pytest.mark.parametrize("severity", ["info", "warning", "critical"])
def test_a_supporting_finding_opens_nothing_whatever_it_says(backing: Callable[..., Anomaly], severity: str) -> None:
    story = Story()
    assert story.close(backing(story, severity=severity)) == []
    assert story.state.incidents == []


@pytest.mark.parametrize("symptom", ["hang", "crash", "slowdown", "numerics"])
@pytest.mark.parametrize("before", [False, True])
def test_a_supporting_finding_is_shown_behind_the_evidence_of_any_incident(
    backing: Callable[..., Anomaly], symptom: str, *, before: bool
) -> None:
    plain, story = Story(), Story()
    if before:
        story.close(backing(story, symptom, onset=at(1), unobserved=[1]), window=iterating)
        plain.close(window=iterating)
    more = [] if before else [backing(story, symptom, onset=at(1), unobserved=[1])]
    (expected,), (revision,) = plain.close(*hang(plain)), story.close(*more, *hang(story))
    *decisive, last = revision.evidence
    assert (decisive, last.detector) == (expected.evidence, "backer")
    assert msgspec.structs.replace(revision, evidence=expected.evidence) == expected


def test_a_supporting_finding_from_long_before_says_nothing_of_an_incident(backing: Callable[..., Anomaly]) -> None:
    story = Story()
    story.close(backing(story), window=iterating)
    for _ in range(5):
        story.close(window=iterating)
    (revision,) = story.close(*hang(story))
    assert "backer" not in {piece.detector for piece in revision.evidence}


def test_a_supporting_finding_keeps_no_incident_open(backing: Callable[..., Anomaly]) -> None:
    story = Story()
    story.close(story.here("slow_and_changed", [3]), window=iterating)
    closed_ = [story.close(backing(story), window=iterating) for _ in range(QUIET_WINDOWS)]
    assert [one.resolution for one in closed_[-1]] == ["it no longer shows"]


def test_supporting_findings_are_bounded_and_displace_no_other(backing: Callable[..., Anomaly]) -> None:
    story = Story()
    for number in range(3 * KEPT_ANOMALIES):
        story.close(*hang(story), *(backing(story, grounds=f"{number % 10}{letter}") for letter in "ab"))
    (one,) = story.state.incidents
    assert max(len(one.support), len(story.state.support)) <= 2 * KEPT_SUPPORT
    assert one.latest is not None
    assert [suspect.rank for suspect in one.latest.suspects] == [5]
    assert len([piece for piece in one.latest.evidence if piece.detector == "backer"]) <= SHOWN_SUPPORT


def test_signatures_of_supporting_findings_are_asked_for_among_the_templates(backing: Callable[..., Anomaly]) -> None:
    story = Story()
    asked = []
    window = still(RANKS, 10)
    story.view.update(window)
    found = [anomaly("no_iteration", start=10, onset=9), backing(story, templates=["a"], axis="cross-job")]

    def suspicious(*given: Any) -> list[SuspiciousTemplate]:
        asked.append(given)
        return []

    IncidentBook(story.state).close(story.view, window, found, suspicious)
    assert [given[3] for given in asked] == [{"a": "cross-job"}]


def test_a_fault_that_the_job_has_lived_through_is_no_second_one_of_the_hang_that_comes_later() -> None:
    story = Story()
    fault: dict[str, Any] = {"area": "hardware", "subject": "gpu"}
    said = []
    for number in range(12):
        again = story.here("rank_fault", [2], **fault)
        said += story.close(again, window=lambda start, number=number: healthy(RANKS, start, 11 + 10 * number))
    for _ in range(3):
        hung = [story.here("no_iteration", onset=129), story.here("outside_communication", [5], onset=129)]
        said += story.close(*hung)
        story.restored()
    (fault_id, hang_id) = dict.fromkeys(one.id for one in said)
    assert [one.symptom for one in said if one.id == hang_id] == ["hang"]
    numbers = [one.revision for one in said if one.id == fault_id]
    assert numbers == list(range(1, len(numbers) + 1))


def test_two_nodes_that_report_faults_within_a_hang_are_one_incident_beside_it() -> None:
    story = Story()
    said = story.close(story.here("no_iteration", onset=9), story.here("outside_communication", [5], onset=9))
    for rank in (2, 6, 2):
        said += story.close(story.here("rank_fault", [rank], area="hardware", subject=str(rank)))
        story.restored()
    latest = {one.id: one for one in said}
    assert [(one.symptom, [suspect.rank for suspect in one.suspects]) for one in latest.values()] == [
        ("hang", [5]),
        ("crash", []),
    ]
    assert len({one.notification_key for one in latest.values()}) == 2
