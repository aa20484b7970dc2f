"""What a report says of an incident: the place, also where nobody is named, ranks in sentences, what templates are."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console
from streams_support import steady

from producers.times import EARLIEST, HOUR, SECOND
from rankwatch import diagnose
from rankwatch.page import card
from rankwatch.text import (
    SHOWN_BLOCKS,
    headline,
    how_sure,
    print_diagnosis,
    print_incident,
    said_count,
    said_peers,
    since,
    what,
    where,
)
from rankwatch.text_ranks import MOST_RUNS, with_few_ranks
from rankwatch.text_series import SHOWN_OTHERS, blocks_of
from rankwatch.text_suspects import SHOWN_SUSPECTS, suspect_line, suspect_lines
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


def suspects(*ranks: int, **changes: Any) -> list[Suspect]:
    return [msgspec.structs.replace(NAMED.suspects[0], rank=rank, **changes) for rank in ranks]


def test_of_very_many_suspects_the_first_are_told() -> None:
    many = [one for rank in range(10_240) for one in suspects(rank, why=f"it took {rank} s")]
    lines = suspect_lines(msgspec.structs.replace(NAMED, suspects=many))
    assert len(lines) == SHOWN_SUSPECTS + 1
    assert lines[-1] == f"and {10_240 - SHOWN_SUSPECTS} more; --format json lists all"


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (suspects(5, 4, 7), ["ranks 4-5,7 on node02, score 0.90: a reason"]),
        (
            [*suspects(4, coordinates={"pp": 1, "dp": 0}), *suspects(6, node="node03", coordinates={"pp": 1, "dp": 1})],
            ["ranks 4,6 on node02, node03 pp=1, score 0.90: a reason"],
        ),
        (
            [*suspects(4), *suspects(5, score=0.8), *suspects(6, role="actor"), *suspects(7, kind="blocker")],
            [
                "rank 4 on node02, score 0.90: a reason",
                "rank 5 on node02, score 0.80: a reason",
                "rank 6 actor on node02, score 0.90: a reason",
                "rank 7 on node02, score 0.90, blocker: a reason",
            ],
        ),
        (suspects(*range(10_240)), ["ranks 0-10239 on node02, score 0.90: a reason"]),
        (
            [
                Suspect(rank=None, node="", score=0.9, why="w", switch="leaf3"),
                Suspect(rank=None, node="n1", score=0.9, why="w", device="mlx5_0"),
                Suspect(rank=None, node="n1", score=0.9, why="w"),
            ],
            [
                "switch leaf3, score 0.90: w",
                "device mlx5_0 on n1, score 0.90: w",
                "unknown rank on n1, score 0.90: w",
            ],
        ),
    ],
)
def test_suspects_of_whom_the_same_is_said_are_told_in_one_line(found: list[Suspect], lines: list[str]) -> None:
    assert suspect_lines(msgspec.structs.replace(NAMED, suspects=found)) == lines


@pytest.mark.parametrize(
    ("peers", "said"),
    [
        ("ranks 0-4 wait", "peers: ranks 0-4 wait"),
        ("peers' median 1 s", "peers' median 1 s"),
        ("its peers: 7", "its peers: 7"),
    ],
)
def test_whose_values_are_shown_is_said_once(peers: str, said: str) -> None:
    assert said_peers(peers) == said


def again(number: int, **changes: Any) -> Incident:
    """The incident of an attempt of a series that attempt 0 began."""
    series = {"id": f"i{number}", "attempt": str(number), "recurs": number, "series": "i0" if number else ""}
    why = f"its own error: ValueError: {number}"
    return msgspec.structs.replace(
        NAMED, onset=EARLIEST + 48 * HOUR + number * 60 * SECOND, **series, suspects=suspects(5, why=why), **changes
    )


def report(incidents: list[Incident]) -> str:
    found = msgspec.structs.replace(diagnose.run(steady(seconds=20).recording), incidents=incidents)
    out = Console(record=True, file=io.StringIO(), soft_wrap=True)
    print_diagnosis(out, found)
    return out.export_text()


def test_a_series_is_one_block_with_what_differs() -> None:
    open_ = {"verdict": "ambiguous", "area": "unknown"}
    latest = msgspec.structs.replace(
        again(5, status="open", **open_), suspects=[], scope=Scope(kind="job", name="run-7")
    )
    found = [*(again(number) for number in range(5)), latest]
    shown = report(found)
    assert shown.count("  suspects ") == 1
    assert "its own error: ValueError: 4" in shown, "the latest of those that name somebody is told whole"
    rows = shown[shown.index("  again ") :].splitlines()[1:6]
    assert [row.split()[1] for row in rows] == ["5:", "3:", "2:", "1:", "0:"]
    assert "hang; no rank is named; ambiguous" in rows[0]
    for number, row in zip((3, 2, 1, 0), rows[1:], strict=True):
        assert row.endswith(f"; ValueError: {number}  i{number}")
    assert all(one.id in shown for one in found)
    assert "6 incidents, the most important first: 6 critical" in shown


def test_of_a_long_series_the_latest_are_told() -> None:
    shown = report([again(number) for number in range(100)])
    assert shown.count("attempt ") == SHOWN_OTHERS
    assert f"and {100 - 1 - SHOWN_OTHERS} before these; --format json lists all" in shown
    assert "attempt 98: " in shown and "attempt 2: " not in shown


@pytest.mark.parametrize(
    ("found", "sizes"),
    [
        ([again(0), again(1), again(2)], [3]),
        ([again(0), again(1), msgspec.structs.replace(again(2), job="run-8")], [2, 1]),
        ([again(0), msgspec.structs.replace(again(1), series="i9"), again(2)], [2, 1]),
        ([again(0), again(1), msgspec.structs.replace(NAMED, id="else")], [2, 1]),
        ([], []),
    ],
)
def test_only_incidents_of_one_series_share_a_block(found: list[Incident], sizes: list[int]) -> None:
    blocks = blocks_of(found, lambda _: None)
    assert [1 + len(one.others) for one in blocks] == sizes
    assert sorted(one.id for block in blocks for one in (block.whole, *block.others)) == sorted(one.id for one in found)
    apart = blocks_of(found, lambda one: one.id)
    assert [block.whole for block in apart] == found


def test_of_very_many_incidents_the_first_are_told_whole_and_each_has_a_line() -> None:
    found = [msgspec.structs.replace(NAMED, id=f"i{number:03}", attempt=str(number)) for number in range(100)]
    shown = report(found)
    assert shown.count("  suspects ") == SHOWN_BLOCKS
    assert all(one.id in shown for one in found)
    assert f"\n{100 - SHOWN_BLOCKS} more, which --format html shows whole:\n" in shown
    assert "  CRITICAL  hang, data  job run-7, rank 5 on node02, since capture time unknown  i099\n" in shown


@pytest.mark.parametrize(
    ("severities", "said"),
    [
        ([], "no incident"),
        (["critical"], ""),
        (["warning", "critical", "warning"], "3 incidents, the most important first: 1 critical, 2 warning"),
    ],
)
def test_how_many_incidents_there_are_is_said_first(severities: list[Any], said: str) -> None:
    assert said_count([msgspec.structs.replace(NAMED, severity=one) for one in severities]) == said


def test_long_lists_of_ranks_are_shortened_and_others_are_not() -> None:
    few, many = (",".join(str(2 * rank) for rank in range(count)) for count in (MOST_RUNS, MOST_RUNS + 1))
    assert with_few_ranks(f"ranks {few} wait") == f"ranks {few} wait"
    assert with_few_ranks(f"ranks {many} wait") == f"ranks {few},… ({MOST_RUNS + 1} ranks) wait"
    assert with_few_ranks(f"ranks {many},30-39") == f"ranks {few},… ({MOST_RUNS + 11} ranks)"
    for other in (f"shapes {many}", f"ranks {many}-x", f"frank {many}", "ranks 0-10239"):
        assert with_few_ranks(other) == other
    shown = report([msgspec.structs.replace(NAMED, victims=Ranks(ranks=many), suspects=[])])
    assert f"victims    ranks {few},… ({MOST_RUNS + 1} ranks)\n" in shown


def test_a_line_of_a_feed_says_what_and_where_in_which_area_and_what_next() -> None:
    line = headline(WHOLE).plain
    assert line.endswith("job run-7  a summary  [data: stack]  next: a step  a")
    over = headline(msgspec.structs.replace(WHOLE, status="resolved", resolution=Resolution.ITERATES.value)).plain
    assert "next: " not in over
