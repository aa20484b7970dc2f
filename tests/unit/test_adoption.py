"""What becomes of an early notice: an incident adopts it, or it is said that nothing followed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sink_support as support

from rankwatch.adoption import FOLLOWS_NS, NEAR_NS, REMEMBERED, Adoption, Word
from schemas.results import Incident, Notice
from streams.incidents.decision import Reason

S = 1_000_000_000
T0 = support.T0


def notice(second: float = 0, **changes: Any) -> Notice:
    plain = Notice(
        id="n", notification_key="k", job="job1", attempt="0", time=T0 + round(second * S), rule="exception", text="x"
    )
    return msgspec.structs.replace(plain, **changes)


def incident(revision: int = 1, **changes: Any) -> Incident:
    return support.incident(revision, **{"notification_key": "k", "onset": T0, **changes})


@pytest.mark.parametrize(
    ("name", "of_notice", "of_incident", "adopts"),
    [
        ("the same alert", {}, {}, True),
        ("an attempt that keeps the key of the one before", {}, {"notification_key": "first"}, True),
        ("a worker group", {}, {"attempt": "actor/0", "notification_key": "other"}, True),
        ("a node that does not know the attempt", {"attempt": "7"}, {"notification_key": "other"}, True),
        ("another attempt, long ago", {"attempt": "7", "time": T0 - NEAR_NS - 1}, {"notification_key": "other"}, False),
        ("another job", {"job": "job2"}, {"notification_key": "other"}, False),
        ("no key at all", {"job": "job2"}, {"notification_key": ""}, False),
    ],
)
def test_an_incident_adopts_what_told_of_it(
    name: str, of_notice: dict[str, Any], of_incident: dict[str, Any], adopts: bool
) -> None:
    book, early = Adoption(), notice(**of_notice)
    assert book.heard(early) is Word.NEW
    assert book.followed(incident(**of_incident)) == (early if adopts else None), name
    assert bool(book.passed(T0 + 10 * FOLLOWS_NS)) is not adopts, "none stays unexplained"
    assert book.passed(T0 + 20 * FOLLOWS_NS) == [], "said once"


def test_further_notices_add_nothing_to_the_first_nor_to_an_open_incident() -> None:
    book = Adoption()
    assert book.heard(notice(0)) is Word.NEW
    assert book.heard(notice(1, id="n2", rule="collective_timeout")) is Word.WAITS
    assert book.followed(incident(1)) == notice(0)
    assert book.followed(incident(2)) == notice(0), "every revision stands for it"
    assert book.heard(notice(90)) is Word.OPEN
    assert book.followed(incident(3, status="resolved")) == notice(0)
    assert book.heard(notice(300)) is Word.NEW, "the attempt went on and something else happened"


def test_an_incident_without_a_notice_adopts_none_and_one_notice_is_adopted_once() -> None:
    book = Adoption()
    assert book.followed(incident(1, id="a")) is None
    assert book.heard(notice(5)) is Word.OPEN
    book.followed(incident(2, id="a", status="resolved"))
    book.heard(notice(30))
    assert book.followed(incident(1, id="b")) == notice(30)
    assert book.followed(incident(1, id="c")) is None


OLD = {"onset": T0 - 3600 * S, "published": T0 - 3000 * S}
SLOW = {"symptom": "slowdown", "severity": "warning"}


@pytest.mark.parametrize(
    ("name", "of_incident", "word"),
    [
        ("a hang that goes on, however long", OLD, Word.OPEN),
        ("a crash", {"symptom": "crash"}, Word.OPEN),
        ("a process that memory killed", {"symptom": "memory"}, Word.OPEN),
        ("a worker group's hang", {"attempt": "actor/0", "notification_key": "other"}, Word.OPEN),
        ("a warning of now", {"symptom": "crash", "severity": "warning"}, Word.OPEN),
        (
            "an old warning, which the job has lived through",
            {**OLD, "symptom": "crash", "severity": "warning"},
            Word.NEW,
        ),
        ("a slowdown", SLOW, Word.NEW),
        ("an old slowdown", {**SLOW, **OLD}, Word.NEW),
        ("a slowdown under another key", {**SLOW, "notification_key": "own"}, Word.NEW),
        ("numbers that are none", {"symptom": "numerics"}, Word.NEW),
        ("memory that grows", {"symptom": "memory", "reason": Reason.MEMORY_GROWS.value}, Word.NEW),
        ("what pages nobody", {"severity": "info"}, Word.NEW),
        ("what is part of another", {"merged_into": "x"}, Word.NEW),
        ("what is over", {"status": "resolved"}, Word.NEW),
        ("what begins later", {"onset": T0 + 600 * S, "published": T0 + 610 * S}, Word.NEW),
        ("another job's", {"job": "job2", "notification_key": "other"}, Word.NEW),
    ],
)
def test_a_notice_is_known_only_behind_an_open_incident_that_stands_still_or_fails(
    name: str, of_incident: dict[str, Any], word: Word
) -> None:
    book = Adoption()
    book.followed(incident(**of_incident))
    assert book.heard(notice(20)) is word, name


@pytest.mark.parametrize(
    ("name", "of_incident", "adopts"),
    [
        ("a hang that began long before its watchdogs spoke", {"onset": T0 - 1800 * S, "published": T0 + 10 * S}, True),
        ("a crash that is over as it is told", {"symptom": "crash", "status": "resolved"}, True),
        ("a revision of an old slowdown", {**SLOW, "onset": T0 - 3600 * S}, False),
        ("a slowdown that begins now", SLOW, False),
        ("memory that grows", {"symptom": "memory", "reason": Reason.MEMORY_OF_ALL_GROWS.value}, False),
        ("what pages nobody", {"severity": "info"}, False),
        ("what is part of another", {"status": "resolved", "severity": "info", "merged_into": "x"}, False),
        ("the end of another attempt", {"status": "resolved", "attempt": "7", "notification_key": "other"}, False),
    ],
)
def test_only_what_stands_still_or_fails_adopts(name: str, of_incident: dict[str, Any], adopts: bool) -> None:
    book = Adoption()
    book.heard(notice())
    assert (book.followed(incident(**of_incident)) is not None) is adopts, name


def test_a_slowdown_leaves_the_notice_to_the_crash_behind_it() -> None:
    book, slow = Adoption(), {**SLOW, "id": "slow", "notification_key": "own"}
    book.followed(incident(1, **slow, **OLD))
    assert book.heard(notice()) is Word.NEW
    assert book.followed(incident(2, **slow)) is None
    assert book.followed(incident(1, symptom="crash")) == notice()


def test_an_old_warning_that_becomes_a_failure_adopts() -> None:
    book, plain = Adoption(), {"symptom": "crash", "onset": T0 - 3600 * S}
    book.followed(incident(1, **plain, severity="warning", published=T0 - 3000 * S))
    assert book.heard(notice()) is Word.NEW
    assert book.followed(incident(2, **plain, severity="warning")) is None
    assert book.followed(incident(3, **plain)) == notice()


@pytest.mark.parametrize("told_before", [True, False])
def test_what_proves_to_be_part_of_another_hands_its_notice_on(told_before: bool) -> None:
    book = Adoption()
    book.heard(notice())
    if told_before:
        assert book.followed(incident(1, id="part", symptom="crash")) == notice()
    part = {"id": "part", "symptom": "crash", "status": "resolved", "severity": "info", "merged_into": "whole"}
    assert book.followed(incident(2, **part)) is None
    assert book.followed(incident(5, id="whole", symptom="numerics")) == notice()
    assert book.passed(T0 + 10 * FOLLOWS_NS) == [], "it is explained"


def test_an_incident_whose_key_changes_leaves_nothing_behind_under_the_old_one() -> None:
    book = Adoption()
    book.followed(incident(1, notification_key="k"))
    book.followed(incident(2, notification_key="first"))
    book.followed(incident(3, notification_key="first", status="resolved"))
    assert book.heard(notice(60)) is Word.NEW


def test_a_notice_waits_from_the_last_word_on() -> None:
    book = Adoption()
    book.heard(notice(0))
    book.heard(notice(60))
    assert book.passed(T0 + FOLLOWS_NS + 59 * S) == []
    assert book.passed(T0 + FOLLOWS_NS + 60 * S) == [notice(0)]


def test_what_is_remembered_is_bounded() -> None:
    book = Adoption()
    for number in range(REMEMBERED + 5):
        book.heard(notice(0, notification_key=f"k{number}", job=f"job{number}"))
        if number % 1000 == 0:
            book.followed(incident(1, id=f"i{number}", notification_key=f"i{number}", job=f"other{number}"))
    assert len(book.passed(T0 + FOLLOWS_NS)) == REMEMBERED
