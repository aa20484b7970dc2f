"""What a report says of an incident: the place, also where nobody is named, ranks in sentences, what templates are."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from producers.times import EARLIEST, SECOND
from rankwatch.page import card
from rankwatch.text import (
    SHOWN_SUSPECTS,
    headline,
    how_sure,
    print_incident,
    since,
    suspect_line,
    suspect_lines,
    what,
    where,
)
from schemas.results import Evidence, Incident, MergedClass, Ranks, Scope, Suspect, SuspiciousTemplate
from streams.incidents.resolution import Resolution
from streams.report import as_json

NAMED = Incident(
    id="a",
    revision=1,
    published=0,
    job="run-7",
    attempt="0",
    symptom="hang",
    area="data",
    severity="critical",
    verdict="supported",
    reason="a reason",
    status="open",
    onset=0,
    summary="a summary",
    next_step="a step",
    scope=Scope(kind="rank", name="rank 5", ranks="5", nodes=["node02"]),
    suspects=[Suspect(rank=5, node="node02", score=0.9, why="a reason")],
)


def test_the_keys_of_a_place_and_of_a_suspect_are_always_the_same() -> None:
    full = Scope(kind="switch", name="leaf3", ranks="5", nodes=["n"], devices=["d"], groups=["g"], switches=["leaf3"])
    full = msgspec.structs.replace(full, left_out=2)
    plain, other = as_json(NAMED), as_json(msgspec.structs.replace(NAMED, scope=full))
    assert plain["scope"].keys() == other["scope"].keys() == set(Scope.__struct_fields__)
    assert (plain["scope"]["switches"], plain["scope"]["left_out"]) == ([], 0)
    switch = Suspect(rank=None, node="", score=0.9, why="a reason", switch="leaf3")
    (told,) = as_json(msgspec.structs.replace(NAMED, suspects=[switch]))["suspects"]
    assert (told["switch"], plain["suspects"][0]["switch"]) == ("leaf3", "")
    assert told.keys() == set(Suspect.__struct_fields__)


@pytest.mark.parametrize(
    ("incident", "said"),
    [
        (NAMED, "rank 5 on node02"),
        (
            msgspec.structs.replace(NAMED, suspects=[], scope=Scope(kind="job", name="job")),
            "job run-7; no rank is named",
        ),
        (
            msgspec.structs.replace(NAMED, suspects=[], scope=Scope(kind="node", name="n1", nodes=["n1"])),
            "node n1; no rank is named",
        ),
    ],
)
def test_a_place_is_said_also_where_no_rank_is_named(incident: Incident, said: str) -> None:
    assert where(incident) == said


@pytest.mark.parametrize(
    ("onset", "said"),
    [
        (EARLIEST + 10 * SECOND, "capture time unknown, after iteration 7"),
        (1_795_975_830 * SECOND, "2026-11-29T18:10:30.000Z, after iteration 7"),
    ],
)
def test_a_time_that_nothing_told_is_not_said(onset: int, said: str) -> None:
    assert since(msgspec.structs.replace(NAMED, onset=onset, iteration=7)) == said


def test_one_rank_is_no_ranks_and_what_a_template_stands_out_against_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    templates = [
        SuspiciousTemplate(id="a", text="one", first_seen=0, ranks="4", axis="space"),
        SuspiciousTemplate(id="b", text="two", first_seen=0, ranks="0-3,5", axis="cross-job"),
    ]
    stacks = [
        MergedClass(process_type="trainer", thread="MainThread", text="ranks 0-4,6-7 in all_reduce\x1b[2J"),
        MergedClass(process_type="writer", thread="MainThread", text="writer: rank 5 in write"),
    ]
    found = msgspec.structs.replace(NAMED, victims=Ranks(ranks="7"), templates=templates, stacks=stacks)
    print_incident(Console(soft_wrap=True), found)
    shown = capsys.readouterr().out
    assert "victims    rank 7\n" in shown
    assert "  stacks     ranks 0-4,6-7 in all_reduce [2J\n             writer: rank 5 in write\n" in shown
    assert "one  (rank 4, unlike its peers)" in shown and "two  (ranks 0-3,5, unlike healthy jobs)" in shown


def test_what_a_suspect_is_in_a_hang_is_said() -> None:
    suspect = NAMED.suspects[0]
    assert suspect_line(suspect) == "rank 5 on node02, score 0.90: a reason"
    stopped = msgspec.structs.replace(suspect, kind="stopped_device")
    assert suspect_line(stopped) == "rank 5 on node02, score 0.90, stopped device: a reason"


_SAID = dict.fromkeys(("ITERATES", "GOES_ON", "QUIET"), "resolved") | {"MERGED": "merged"}


@pytest.mark.parametrize(
    ("resolution", "status"), [(one.value, _SAID.get(one.name, "over")) for one in Resolution] + [("", "open")]
)
def test_of_a_job_that_is_dead_it_is_not_said_that_its_incident_is_resolved(resolution: str, status: str) -> None:
    out = Console(record=True, file=io.StringIO(), width=200)
    print_incident(out, msgspec.structs.replace(NAMED, status="resolved", resolution=resolution))
    shown = out.export_text()
    assert f"supported, {status}" in shown
    assert ("resolved" in shown) == (status == "resolved")


def test_of_which_other_one_is_part_and_how_often_it_came_before_is_said() -> None:
    out = Console(record=True, file=io.StringIO(), width=200)
    part = {"status": "resolved", "resolution": Resolution.MERGED.value, "merged_into": "ab12", "recurs": 3}
    print_incident(out, msgspec.structs.replace(NAMED, **part))
    shown = out.export_text()
    assert "it proved to be part of another incident, ab12" in shown
    assert "3 earlier attempts had one like it" in shown


def test_what_is_said_of_one_is_said_of_each_of_several() -> None:
    one = msgspec.structs.replace(NAMED, reason="one never enqueued what its group waits for")
    assert how_sure(one) == "supported: one never enqueued what its group waits for; area data"
    two = msgspec.structs.replace(one, suspects=[*one.suspects, msgspec.structs.replace(one.suspects[0], rank=6)])
    assert how_sure(two) == "supported: each of these never enqueued what its group waits for; area data"


WHOLE = msgspec.structs.replace(
    NAMED,
    scope=msgspec.structs.replace(NAMED.scope, groups=["pipeline stage 1"], switches=["s0.leaf1"]),
    victims=Ranks(ranks="0-3"),
    missing=Ranks(ranks="8"),
    unobserved=Ranks(ranks="7"),
    evidence=[Evidence(layer="stack", detector="d", start=0, end=1, text="rank 5 in load", peers="they wait")],
    templates=[SuspiciousTemplate(id="a", text="retry", first_seen=0, ranks="5", axis="space")],
    stacks=[MergedClass(process_type="trainer", thread="MainThread", text="rank 5 in a loader")],
)
ORDER = (
    *("hang, data", "rank 5 on node02", "pipeline stage 1; switch s0.leaf1", "since", "score 0.90", "rank 5 in load"),
    *("they wait", "retry", "ranks 0-3", "rank 8", "rank 7", "supported: a reason", "a step"),
)
"""What, where, since when, who on which evidence beside which peers, who suffers, is unseen, how sure, what next."""


def test_an_incident_reads_in_one_order_as_text_and_on_a_page() -> None:
    out = Console(record=True, file=io.StringIO(), width=200)
    print_incident(out, WHOLE)
    for shown in (out.export_text(), card(WHOLE, ())):
        places = [shown.index(words) for words in ORDER]
        assert places == sorted(places)


def test_a_terminal_of_eighty_columns_is_enough() -> None:
    out = Console(record=True, file=io.StringIO(), width=80, force_terminal=True)
    print_incident(out, msgspec.structs.replace(WHOLE, next_step="look at this " * 40))
    assert max(map(len, out.export_text().splitlines())) <= 80


def test_the_area_is_said_with_the_symptom_unless_it_says_nothing_more() -> None:
    assert [what(msgspec.structs.replace(NAMED, area=area)) for area in ("unknown", "network")] == [
        "hang",
        "hang, network",
    ]
    assert what(msgspec.structs.replace(NAMED, symptom="memory", area="memory")) == "memory"


def test_of_very_many_suspects_the_first_are_told() -> None:
    many = [msgspec.structs.replace(NAMED.suspects[0], rank=rank) for rank in range(10_240)]
    lines = suspect_lines(msgspec.structs.replace(NAMED, suspects=many))
    assert len(lines) == SHOWN_SUSPECTS + 1
    assert lines[-1] == f"and {10_240 - SHOWN_SUSPECTS} more; --format json lists all"


def test_a_line_of_a_feed_says_what_and_where_in_which_area_and_what_next() -> None:
    line = headline(WHOLE).plain
    assert line.endswith("job run-7  a summary  [data: stack]  next: a step  a")
    over = headline(msgspec.structs.replace(WHOLE, status="resolved", resolution=Resolution.ITERATES.value)).plain
    assert "next: " not in over
