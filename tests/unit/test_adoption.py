"""What becomes of an early notice: an incident adopts it, or it is said that nothing followed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sink_support as support

from rankwatch.adoption import FOLLOWS_NS, NEAR_NS, REMEMBERED, Adoption, Word
from schemas.results import Incident, Notice

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
    assert book.heard(notice(1, id="n2", rule="collective_timeout")) is Word.KNOWN
    assert book.followed(incident(1)) == notice(0)
    assert book.followed(incident(2)) == notice(0), "every revision stands for it"
    assert book.heard(notice(90)) is Word.KNOWN
    assert book.followed(incident(3, status="resolved")) == notice(0)
    assert book.heard(notice(300)) is Word.NEW, "the attempt went on and something else happened"


def test_an_incident_without_a_notice_adopts_none_and_one_notice_is_adopted_once() -> None:
    book = Adoption()
    assert book.followed(incident(1, id="a")) is None
    assert book.heard(notice(5)) is Word.KNOWN
    book.followed(incident(2, id="a", status="resolved"))
    book.heard(notice(30))
    assert book.followed(incident(1, id="b")) == notice(30)
    assert book.followed(incident(1, id="c")) is None


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
