"""Silences: whom they are for, whom never, until when; what cannot be one; and that patterns cannot hang anybody."""

from __future__ import annotations

import time

import msgspec
import pytest
from silence_support import CASES, HOUR, INCIDENT, NOW, TOGETHER, members, several, silence, suspects

from schemas.codec import encode, headers
from schemas.ports import Entry
from schemas.silences import Matcher, Silence
from streams.silencing import (
    LONGEST_NS,
    MOST_KEPT,
    SilenceError,
    SilenceReason,
    checked,
    fits_pattern,
    kept,
    labels_of,
    newest,
    silence_of,
    silenced_by,
    silenced_with,
)


@pytest.mark.parametrize(("incident", "asked", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_incident_is_silenced_only_where_all_that_is_asked_for_is_known_to_fit(
    incident: dict[str, object], asked: str, why: SilenceReason
) -> None:
    given = silence(asked)
    verdict = silenced_by(msgspec.structs.replace(INCIDENT, **incident), [given], NOW)
    assert verdict.why is why
    assert verdict.silence == (given if why is SilenceReason.SILENCED else None)


def test_every_reason_is_reached() -> None:
    reached = {case[3] for case in CASES} | {case[4] for case in TOGETHER}
    assert reached | {SilenceReason.NO_SILENCE, SilenceReason.NOT_BEGUN, SilenceReason.ENDED} == set(SilenceReason)


@pytest.mark.parametrize(
    ("changes", "told", "asked", "why"), [case[1:] for case in TOGETHER], ids=[c[0] for c in TOGETHER]
)
def test_one_of_several_jobs_is_silenced_while_each_that_it_is_made_of_is(
    changes: dict[str, object], told: set[str], asked: list[str], why: SilenceReason
) -> None:
    whole, known = several(changes), {(one.job, one.id): labels_of(one) for one in members(told)}
    silences = [silence(text, id=text, ends=NOW + HOUR - at) for at, text in enumerate(asked)]
    for order in (silences, silences[::-1]):
        verdict = silenced_with(whole, known, order, NOW)
        assert verdict.why is why
        assert (verdict.silence is not None) is (why in (SilenceReason.SILENCED, SilenceReason.MEMBERS_SILENCED))
        if why is SilenceReason.MEMBERS_SILENCED:
            assert verdict.silence == silences[-1], "that which ends first"
    assert silenced_with(whole, known, silences, NOW + HOUR).silence is None


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (NOW - HOUR - 1, SilenceReason.NOT_BEGUN),
        (NOW - HOUR, SilenceReason.SILENCED),
        (NOW + HOUR - 1, SilenceReason.SILENCED),
        (NOW + HOUR, SilenceReason.ENDED),
    ],
)
def test_it_holds_from_its_beginning_until_before_its_end(at: int, why: SilenceReason) -> None:
    assert silenced_by(INCIDENT, [silence("job=run-7")], at).why is why


def test_of_several_the_one_that_ends_last_is_named_whatever_their_order() -> None:
    ones = [silence("job=run-7", id="a"), silence("team=speech", id="b", ends=NOW + 2 * HOUR), silence("job=x", id="c")]
    for order in (ones, ones[::-1]):
        found = silenced_by(INCIDENT, order, NOW)
        assert found.silence is not None and found.silence.label == "b 1"
    assert silenced_by(INCIDENT, [], NOW).why is SilenceReason.NO_SILENCE


def test_labels_are_all_that_is_known_and_those_of_the_job_do_not_hide_them() -> None:
    own = msgspec.structs.replace(INCIDENT, labels={"team": "speech", "node": "n9", "empty": ""}, cluster="")
    assert labels_of(own) == {
        "job": ("run-7",),
        "attempt": ("0",),
        "node": ("n1",),
        "symptom": ("crash",),
        "area": ("hardware",),
        "severity": ("critical",),
        "team": ("speech",),
    }
    assert "node" not in labels_of(msgspec.structs.replace(own, suspects=suspects("n1", "")))


def test_the_latest_version_counts_in_whatever_order_they_come() -> None:
    first, second = silence("job=run-7"), silence("job=run-7", number=2, ends=NOW)
    assert newest([first, second]) == newest([second, first]) == [second]
    same = silence("job=run-7", ends=NOW)
    assert newest([first, same]) == newest([same, first]) == [same]


def test_of_too_many_those_that_end_last_are_kept() -> None:
    many = [silence("job=run-7", id=f"{number:05d}", ends=NOW + number) for number in range(MOST_KEPT + 9)]
    assert [one.id for one in kept(many)] == [one.id for one in many[9:]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"matchers": []}, "1 to 16 labels"),
        ({"matchers": [Matcher(label="job", value="a")] * 17}, "1 to 16 labels"),
        ({"matchers": [Matcher(label="job", value="a" * 201)]}, "over 200 characters"),
        ({"matchers": [Matcher(label="", value="a")]}, "empty"),
        ({"matchers": [Matcher(label="job", value="*?*", pattern=True)]}, "silence everything"),
        ({"matchers": [Matcher(label="job", value="a", negated=True)]}, "silence everything"),
        ({"matchers": [Matcher(label="symptom", value="hang")]}, "a hang is never silenced"),
        ({"ends": NOW - 2 * HOUR}, "ends before it begins"),
        ({"ends": NOW + 2 * LONGEST_NS}, "longer than a year"),
        ({"number": 0}, "number"),
        ({"comment": "a" * 501}, "comment"),
        ({"id": ""}, "empty"),
    ],
)
def test_what_would_silence_everything_or_nothing_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(SilenceError, match=reason):
        checked(silence("job=run-7", **changes))


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("", "", True),
        ("*", "", True),
        ("?", "", False),
        ("run-?", "run-7", True),
        ("run-?", "run-77", False),
        ("*-7", "run-7-7", True),
        ("r*n*7", "run-7", True),
        ("[a-z]un-7", "run-7", False),
        (".*", "run-7", False),
        ("run-7*", "run-7", True),
        ("größe-?", "größe-ä", True),
    ],
)
def test_a_pattern_knows_stars_and_question_marks_only(pattern: str, text: str, fits: bool) -> None:
    assert fits_pattern(pattern, text) is fits


def test_no_pattern_takes_long() -> None:
    before = time.monotonic()
    assert not fits_pattern("*a" * 100, "a" * 5_000 + "b")
    assert time.monotonic() - before < 2


@pytest.mark.parametrize(
    "value", [b"", b"no json", b'{"id": "a"}', encode(silence("job=run-7", number=0)), b'{"id": "a", "number": "x"}']
)
def test_a_record_that_is_no_silence_silences_nothing(value: bytes) -> None:
    assert isinstance(silence_of(Entry(0, b"a", value, headers("silence"), 0)), str)


def test_a_record_of_a_silence_is_one() -> None:
    given = silence("job=run-7")
    assert silence_of(Entry(0, b"a", encode(given), headers("silence"), 0)) == given
    assert isinstance(silence_of(Entry(0, b"a", encode(given), headers("incident"), 0)), str)
    assert isinstance(given, Silence) and given.text == "job=run-7"
