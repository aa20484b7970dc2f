"""How people are told of which incident of several jobs each is part: reports, pages and the feed."""

from __future__ import annotations

import json

import msgspec
import pytest
import sink_support as support
from silence_support import HOUR, silence
from streams_support import JOBS

from rankwatch import diagnose
from rankwatch.feed import Feed
from rankwatch.page import page
from rankwatch.silenced import SilencedFeed
from rankwatch.terminal import console
from rankwatch.text import print_diagnosis
from rankwatch.text_fleet import SHOWN_JOBS, jobs_of, whose
from schemas.codec import encode, headers
from schemas.ports import Entry
from schemas.results import Incident, JobIncident
from streams import memberships as module
from streams.memberships import Memberships, memberships
from streams.report import latest


def one_of(job: str, **changes: object) -> Incident:
    return support.incident(job=job, id=f"of {job}", **changes)


def whole_of(*jobs: str, revision: int = 1, **changes: object) -> Incident:
    members = [JobIncident(job=job, attempt="0", incident=f"of {job}") for job in jobs]
    changes = {"id": "f1", "job": "-", "attempt": "", "members": members, "cluster": "east", **changes}
    return support.incident(revision, **changes)


def test_the_newest_revision_says_who_is_a_member() -> None:
    known = Memberships()
    assert known.take(one_of("a")) == []
    assert known.of(one_of("a")) == ""
    assert known.take(whole_of("a", "b")) == [("a", "of a"), ("b", "of b")]
    assert known.take(whole_of("a", "b", "c", revision=2)) == [("c", "of c")]
    assert known.take(whole_of("a")) == [], "an old revision that comes again"
    assert [known.of(one_of(job)) for job in "abcd"] == ["f1", "f1", "f1", ""]
    known.take(whole_of("b", revision=3))
    assert [known.of(one_of(job)) for job in "abc"] == ["", "f1", ""]
    known.take(whole_of(revision=4))
    assert known.of(one_of("b")) == ""


def test_a_member_that_went_over_to_another_stays_there() -> None:
    found = memberships([whole_of("a", "b"), whole_of("a", "b", "c", id="f2"), whole_of(revision=2)])
    assert [found.of(one_of(job)) for job in "abc"] == ["f2"] * 3


def test_of_two_that_have_one_member_the_later_counts_in_whatever_order() -> None:
    ones = [whole_of("a", revision=1), whole_of("a", revision=2, id="f0")]
    assert [memberships(order).of(one_of("a")) for order in (ones, ones[::-1])] == ["f0"] * 2


def test_reports_tell_several_jobs_first_then_what_that_is_made_of_then_the_rest() -> None:
    mild = {"severity": "warning"}
    found = [
        one_of("x", onset=1),
        whole_of("a", "b", **mild),
        one_of("a", **mild),
        one_of("b"),
        whole_of("c", id="f0"),
        one_of("c", severity="info"),
        whole_of(id="f2", severity="info", status="resolved"),
        one_of("y", **mild),
    ]
    wanted = ["f0", "of c", "f1", "of b", "of a", "of x", "of y", "f2"]
    assert [one.id for one in latest(iter(found))] == wanted
    assert [one.id for one in latest(iter(found[::-1]))] == wanted


def test_what_is_open_and_what_has_stopped_a_job_come_first_among_the_as_severe() -> None:
    over = {"status": "resolved"}
    found = [
        one_of("a", symptom="slowdown", verdict="supported", onset=1, **over),
        one_of("b", symptom="crash", verdict="supported", onset=2, **over),
        one_of("c", symptom="numerics", verdict="supported", onset=3),
        one_of("d", symptom="hang", verdict="unavailable", onset=4),
        one_of("e", symptom="crash", verdict="supported", onset=5),
        one_of("f", symptom="memory", verdict="supported", onset=6),
        one_of("g", symptom="crash", verdict="supported", onset=0, severity="warning"),
    ]
    wanted = [f"of {job}" for job in "efdcbag"]
    assert [one.id for one in latest(iter(found))] == wanted
    assert [one.id for one in latest(iter(found[::-1]))] == wanted


def test_what_is_silenced_in_each_job_is_silenced_for_several(capsys: pytest.CaptureFixture[str]) -> None:
    crash = {"symptom": "crash", "labels": {}}
    ones = [whole_of("a", "b", **crash), one_of("a", **crash), one_of("b", **crash)]
    both = [silence(f"job={job}", id=f"s{job}", starts=support.T0, ends=support.T0 + HOUR) for job in "ab"]
    records = [("incidents", Entry(at, b"", encode(one), headers("incident"), 0)) for at, one in enumerate(ones)]
    times = [support.T0 + 10 * support.S]
    for silences, wanted in ((both, 3), (both[:1], 1)):
        feed = Feed(as_json=False, silenced=SilencedFeed(silences, lambda: times[0]))
        feed.show(records)
        lines = capsys.readouterr().out.splitlines()
        assert sum("[silenced until " in line for line in lines) == wanted
    feed = Feed(as_json=False, silenced=SilencedFeed(both, lambda: times[0]))
    feed.show(records)
    feed.show(records)
    capsys.readouterr()
    times[0] += 2 * HOUR
    feed.show([])
    assert len([line for line in capsys.readouterr().out.splitlines() if "revision 1" in line]) == 3, "it is over"


@pytest.mark.parametrize(
    ("changes", "silenced", "wanted"),
    [
        ({}, "", True),
        ({"severity": "warning"}, "", True),
        ({"severity": "info"}, "", False),
        ({"merged_into": "x"}, "", False),
        ({}, "ab", False),
        ({}, "a", True),
        ({"symptom": "hang"}, "ab", True),
    ],
)
def test_whom_a_diagnosis_pages(changes: dict[str, object], silenced: str, wanted: bool) -> None:
    plain = {"symptom": "crash", "labels": {}, **changes}
    silences = [silence(f"job={job}", id=job, starts=0, ends=4 * support.T0) for job in silenced]
    found = msgspec.structs.replace(
        diagnose.run(JOBS["killed"]()),
        incidents=[whole_of("a", "b", **plain), one_of("a", **plain), one_of("b", **plain)],
        silences=silences,
    )
    assert found.pages is wanted
    assert (whole_of("a", "b").id in found.silenced) is (silenced == "ab" and plain["symptom"] != "hang")


def test_members_are_forgotten_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 4)
    found = memberships(whole_of(f"a{n}", f"b{n}", id=f"f{n}") for n in range(100))
    assert found.of(one_of("a99")) == "f99"
    assert found.of(one_of("a0")) == ""
    assert len(found._whole) <= 4


def test_whose_an_incident_is() -> None:
    assert whose(one_of("a")) == "job a"
    assert whose(whole_of("a", "b")) == "2 jobs of cluster east"
    assert whose(whole_of("a", "b", cluster="")) == "2 jobs"
    assert whose(whole_of()) == "several jobs of cluster east"
    jobs = [f"j{number}" for number in range(SHOWN_JOBS + 3)]
    assert jobs_of(whole_of(*jobs)) == f"{', '.join(jobs[:SHOWN_JOBS])} and 3 more"


def shown(records: list[Incident], capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> list[str]:
    feed = Feed(as_json=as_json)
    for at, one in enumerate(records):
        feed.show([("incidents", Entry(at, b"", encode(one), headers("incident"), 0))])
    return capsys.readouterr().out.splitlines()


def test_the_feed_says_it_of_members_and_below_what_they_are_part_of(capsys: pytest.CaptureFixture[str]) -> None:
    later = msgspec.structs.replace(one_of("a"), revision=2)
    lines = shown([one_of("a"), one_of("b"), whole_of("a", "b"), later], capsys)
    told = [line.strip() for line in lines if "part of" in line]
    assert told == [
        "job a, incident of a: part of fleet incident f1",
        "job b, incident of b: part of fleet incident f1",
        "part of fleet incident f1",
    ]
    assert "2 jobs of cluster east" in next(line for line in lines if "f1" in line and "part of" not in line)
    as_json = [
        json.loads(line)["fleet"] for line in shown([whole_of("a"), one_of("a"), one_of("c")], capsys, as_json=True)
    ]
    assert as_json == ["", "f1", ""]


def test_reports_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = diagnose.run(JOBS["one node"]())
    whole, *rest = found.incidents
    assert (whole.job, len(whole.members), len(rest)) == ("-", 3, 3)
    assert {one["fleet"] for one in diagnose.as_json(found)["incidents"]} == {"", whole.id}
    print_diagnosis(console(), found)
    text = capsys.readouterr().out
    assert text.count(f"part of    fleet incident {whole.id}") == 3
    assert "jobs       dead-0, dead-1, dead-2" in text
    assert page(found).count(f"<dt>part of</dt><dd>fleet incident {whole.id}</dd>") == 3
