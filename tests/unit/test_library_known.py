"""A job held against a library: what is novel, what is absent, and when nothing can be said."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import healthy, new_view, printed
from streams_support import (
    CONFIG,
    TRACEBACK,
    Script,
    any_of,
    folded,
    hanging,
    library_of,
    put,
    records,
    restarting,
    run,
    steady,
    tick,
    worker,
    written_log,
)
from streams_support import lines as lines_of

from schemas.library import HealthyJob, LearnedTemplate, Library
from streams.driver import Driver
from streams.iterations import ProgressClock
from streams.library.known import Known
from streams.library.record import LibraryError, made
from streams.lines.form import form_of
from streams.log.memory import MemoryLog
from streams.snapshots import MemorySnapshots
from streams.templates import PrintedTemplate, template_id

TEXTS = {"start-up": ["store is ready", "model built", "loader has <*> workers"], "train": ["step <*>", "loss <*>"]}


def library(iterations: int = 20, ranks: int = 8, **printing: int) -> Library:
    """One job of ``ranks`` ranks that all print ``TEXTS``, or as many of them as ``printing`` says by phase."""
    job = HealthyJob(id="j", job="j", ranks=dict.fromkeys(TEXTS, ranks), iterations=iterations)
    templates = [
        LearnedTemplate(id=template_id(text), text=text, printed={"j": {phase: printing.get(phase, ranks)}})
        for phase, texts in TEXTS.items()
        for text in texts
    ]
    return made("healthy", [job], templates)


def lines(*texts: str) -> list[PrintedTemplate]:
    """Each line as a template of its own, as a job has it in which nothing generalised."""
    forms = [form_of(printed(text, 1).masked) for text in texts]
    return [PrintedTemplate(ids=[template_id(form)], forms=[form]) for form in forms]


def clock(steps: int) -> ProgressClock:
    """A clock that has seen so many steps of a second."""
    view = new_view()
    for window in range(steps // 10 + 1):
        view.update(healthy(2, window * 10, window * 10 + 1))
    return view.clock if steps else ProgressClock()


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("store is ready", True),
        ("loader has 7 workers", True),
        ("loss undefined", True),
        ("store is ruined", False),
        ("loss is undefined", False),
        ("loss", False),
        ("", False),
    ],
)
def test_a_template_is_known_by_a_text_that_covers_it_word_by_word(line: str, known: bool) -> None:
    (one,) = lines(line)
    assert Known(library()).knows(one) is known


def test_a_text_of_wildcards_covers_nothing() -> None:
    job = HealthyJob(id="j", job="j", ranks={"train": 1})
    text = LearnedTemplate(id="t", text="<*> <*> done", printed={"j": {"train": 1}})
    known = Known(made("healthy", [job], [text]))
    (one,) = lines("reactor meltdown done")
    assert not known.knows(one)


def test_a_template_is_known_by_any_id_that_it_ever_had() -> None:
    (one,) = lines("model built")
    grown = PrintedTemplate(ids=[one.id, "later"], forms=[])
    assert Known(library()).knows(grown)


@pytest.mark.parametrize(
    ("line", "other", "same"),
    [
        ('GET 200 "etag": "7f3c1",', 'GET 200 "etag": "9ae0f7",', True),
        ("at commit 3f2a9cd now", "at commit 81e0b7c now", True),
        ("decoded 12 of 13", "encoded 12 of 13", False),
        ("grad7 12 of 13", "load7 12 of 13", False),
    ],
)
def test_short_hexadecimal_words_are_variables(line: str, other: str, same: bool) -> None:
    (one,) = lines(line)
    job = HealthyJob(id="j", job="j", ranks={"train": 1})
    learned = LearnedTemplate(id=one.ids[0], text=one.forms[0], printed={"j": {"train": 1}})
    (two,) = lines(other)
    assert Known(made("healthy", [job], [learned])).knows(two) is same


ALL_BUT_ONE = lines("store is ready", "model built")


@pytest.mark.parametrize(
    ("name", "printed_", "steps", "absent"),
    [
        ("one of three is missing", ALL_BUT_ONE, 5, ["loader has <*> workers"]),
        ("before it trains nothing is missed", ALL_BUT_ONE, 0, []),
        ("nothing is missing", [*ALL_BUT_ONE, *lines("loader has 3 workers")], 5, []),
        ("a form of it was seen", [*ALL_BUT_ONE, *lines("loader has no workers")], 5, []),
        ("most is missing: not observed", lines("model built"), 5, []),
        ("another kind of job", lines("something else"), 50, []),
        ("training, too early to tell", [*ALL_BUT_ONE, *lines("loader has 1 workers", "step 1")], 15, []),
        ("half of what is printed in training", [*ALL_BUT_ONE, *lines("loader has 1 workers", "step 1")], 50, []),
    ],
)
def test_what_is_absent(name: str, printed_: list[PrintedTemplate], steps: int, absent: list[str]) -> None:
    found = Known(library()).lacking(printed_, clock(steps))
    assert [one.text for one in found] == absent, name


def test_what_is_printed_in_training_is_missed_once_the_job_is_as_far_as_the_healthy_ones() -> None:
    job = HealthyJob(id="j", job="j", ranks={"train": 8}, iterations=20)
    texts = ["step <*>", "loss falls", "cache warm"]
    known = Known(made("l", [job], [LearnedTemplate(id=t, text=t, printed={"j": {"train": 8}}) for t in texts]))
    seen = lines("step 3", "cache warm")
    assert known.lacking(seen, clock(10)) == []
    assert [one.text for one in known.lacking(seen, clock(40))] == ["loss falls"]


def test_what_fewer_than_nearly_all_ranks_print_is_not_missed() -> None:
    seen = lines("store is ready", "model built")
    assert Known(library(**{"start-up": 7})).lacking(seen, clock(5)) == []


def test_a_library_of_other_masks_is_refused() -> None:
    with pytest.raises(LibraryError, match="learn it anew"):
        Known(msgspec.structs.replace(library(), masks="another"))


# Through both stages.


def failing(job: str = "job", ranks: int = 4) -> Script:
    """Rank 2 says something that no healthy job says, then fails; its peers lose it."""
    script = restarting(job, ranks)
    script.log(worker(job, 2), 24.3, "shard index is behind the catalogue, going on")
    return script


def log_of(script: Script, known: Known | None, partitions: int = 2) -> MemoryLog:
    log = written_log(script.recording, partitions)
    run(log, known=known)
    return log


@pytest.fixture(scope="module")
def known() -> Known:
    return Known(library_of(steady("fine", 4, 30), steady("well", 8, 40)))


def test_an_incident_shows_what_no_healthy_job_prints_and_says_which_library(known: Known) -> None:
    log = log_of(failing(), known)
    latest = max(records(log, "incidents"), key=lambda one: one.revision)
    assert latest.library == known.label
    (novel, *others) = latest.templates
    assert (novel.axis, novel.ranks, novel.text) == ("cross-job", "2", "shard index is behind the catalogue, going on")
    assert [one.axis for one in others].count("cross-job") == len(others) > 0
    assert [suspect.rank for suspect in latest.suspects] == [2], "as without a library"
    assert "log_novelty" in {piece.detector for piece in latest.evidence}


def test_novelty_alone_opens_nothing_and_names_nobody(known: Known) -> None:
    script = steady("job", 4, 40)
    script.log(worker("job", 2), 24.3, "shard index is behind the catalogue, going on")
    log = log_of(script, known)
    assert records(log, "incidents") == []
    (one,) = records(log, "anomalies")
    assert (one.detector, one.grounds, one.severity, one.axis) == (
        *("log_novelty", "novel_templates", "info"),
        "cross-job",
    )
    assert (one.suspects, one.victims, one.library) == ([], [], known.label)
    assert "that no healthy job prints: 'shard index is behind" in one.text and "(by rank 2)" in one.text


def test_an_incident_shows_what_healthy_jobs_print_and_nobody_here() -> None:
    fine, faulty = steady("fine", 4, 15), steady("job", 4, 40)
    for rank in range(4):
        fine.log(worker("fine", rank), 3.2, "kernel cache is warm")
    faulty.log(worker("job", 2), 41.0, TRACEBACK)
    log = log_of(faulty, Known(library_of(fine)))
    latest = max(records(log, "incidents"), key=lambda one: one.revision)
    (absent,) = [one for one in latest.templates if one.absent]
    assert (absent.text, absent.axis, absent.ranks) == ("kernel cache is warm", "cross-job", "")
    assert absent is latest.templates[-1] and absent.first_seen < latest.onset
    (said,) = [one for one in records(log, "anomalies") if one.grounds == "absent_templates"]
    assert (said.templates, said.suspects, said.severity) == ([absent.id], [], "info")


def verdicts(log: MemoryLog) -> list[object]:
    return [
        (one.id, one.symptom, one.verdict, one.severity, one.reason, one.onset, one.suspects, one.victims)
        for one in sorted(records(log, "incidents"), key=lambda one: (one.id, one.published))
    ]


@pytest.mark.parametrize("script", [failing(), hanging("hang", 4)], ids=["crash", "hang"])
def test_a_library_changes_no_verdict(script: Script, known: Known) -> None:
    with_, without = verdicts(log_of(script, known)), verdicts(log_of(script, None))
    assert with_[-1] == without[-1]
    assert {one[0] for one in with_} == {one[0] for one in without}  # type: ignore[index]


def test_what_healthy_jobs_print_too_is_left_out() -> None:
    # Everybody says it at the onset: without a library it stands out, with one that knows it it does not.
    said = "saving a little state, all is well"
    faulty, fine = hanging("hang", 4), steady("fine", 4, 40)
    for rank in range(4):
        faulty.log(worker("hang", rank), 31.0, said)
        fine.log(worker("fine", rank), 22.0, said)
    shown = {
        bool(known): [one.text for one in records(log_of(faulty, known), "incidents")[-1].templates]
        for known in (None, Known(library_of(fine)))
    }
    assert said in shown[False] and said not in shown[True]


def test_a_predefined_template_is_shown_although_healthy_jobs_print_it() -> None:
    said = "[pair.cc:1] Connection closed by peer [127.0.0.1]:11662, going on"
    faulty, fine = hanging("hang", 4), steady("fine", 4, 40)
    for rank in range(4):
        faulty.log(worker("hang", rank), 31.0, said)
        fine.log(worker("fine", rank), 22.0, said)
    library = library_of(fine)
    assert "gloo.connection_closed" in {one.id for one in library.templates}
    latest = records(log_of(faulty, Known(library)), "incidents")[-1]
    assert [(one.id, one.axis) for one in latest.templates if "closed" in one.text] == [
        ("gloo.connection_closed", "time")
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_log_gives_the_same_whatever_is_read_first(seed: int, known: Known) -> None:
    expected = folded(log_of(failing(), known, 3))
    log = written_log(failing().recording, 3)
    run(log, known=known, choose=any_of(seed))
    assert folded(log) == expected


def test_a_snapshot_is_taken_up_under_another_library(known: Known) -> None:
    log, store = written_log(steady("job", 4, 40).recording), MemorySnapshots()
    run(log, store=store)
    Driver(log, CONFIG, store=store, known=known).run()
    put(log, lines_of([65.0], job="job", rank=2, text="shard index is behind the catalogue, going on"))
    tick(log, 90.0)
    Driver(log, CONFIG, store=store, known=known).run()
    assert records(log, "dead-letters") == []
    (one,) = [one for one in records(log, "anomalies") if one.grounds == "novel_templates"]
    assert one.library == known.label
