"""A decision as people read it: where, how bad, on what evidence, what next."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import anomaly, at, closed, identity, new_view, situation, summary

from schemas.results import Anomaly, Exit, Incident, Scope, Suspect, Symptom
from streams.incidents.blame import decide
from streams.incidents.compose import compose
from streams.incidents.evidence import evidence_of
from streams.incidents.resolution import Resolution
from streams.incidents.scope import said_place, scope_of
from streams.incidents.wording import said_symptom
from streams.view import AttemptView

PIPELINE = {"world": 12, "dp": 4, "cp": 1, "tp": 1, "pp": 3}


def view(
    ranks: int = 8, per_node: int = 2, layout: dict[str, int] | None = None, world: int | None = None
) -> AttemptView:
    made = new_view()
    summaries = [summary(r, who=identity(r, per_node), layout=layout or {}, world_size=world) for r in range(ranks)]
    made.update(closed(summaries))
    return made


def composed(anomalies: list[Anomaly], seen: AttemptView | None = None, **fields: Any) -> Incident:
    known = seen or view()
    members = {rank: known.node_of(rank) for rank in sorted(known.members)}
    decision = decide(anomalies, msgspec.structs.replace(situation(), members=members))
    values: dict[str, Any] = {
        "incident_id": "i",
        "revision": 1,
        "published": at(100),
        "templates": [],
        "resolution": "",
    }
    return compose(view=known, decision=decision, anomalies=anomalies, **(values | fields))


def slow(ranks: list[int], per_node: int = 2) -> Anomaly:
    return anomaly("slow_and_changed", ranks, area="compute", per_node=per_node)


@pytest.mark.parametrize(
    ("ranks", "per_node", "layout", "kind", "name"),
    [
        ([], 2, {}, "job", "job1"),
        ([5], 2, {}, "rank", "rank 5"),
        ([4, 5], 2, {}, "node", "node02"),
        ([4, 5], 4, {}, "group", "ranks 4-5"),
        ([3, 4], 2, {}, "group", "ranks 3-4"),
        ([4, 6], 2, PIPELINE, "stage", "pipeline stage 1"),
        ([4, 6], 2, {"pp": 1, "dp": 12, "tp": 1, "cp": 1}, "group", "ranks 4,6"),
        ([4, 9], 2, PIPELINE, "group", "ranks 4,9"),
        ([0, 1, 2, 3], 4, PIPELINE, "node", "node00"),
    ],
)
def test_the_scope_is_the_smallest_place_that_covers_the_suspects(
    ranks: list[int], per_node: int, layout: dict[str, int], kind: str, name: str
) -> None:
    known = view(12 if layout else 8, per_node, layout)
    found = [slow(ranks, per_node)] if ranks else [anomaly("many_slow")]
    scope = scope_of(known, decide(found, situation(ranks=12, per_node=per_node)))
    assert (scope.kind, scope.name) == (kind, name)


def test_what_is_found_on_two_grounds_in_the_same_words_is_said_once() -> None:
    found = [anomaly("outside_communication", [5], start=start, text="rank 5 in f") for start in (10, 20, 30)]
    found[0] = msgspec.structs.replace(found[0], grounds="perhaps_outside")
    other = anomaly("several_outside", start=40, text="ranks 5-6 in f")
    pieces = evidence_of([*found, other])
    assert [(piece.text, piece.start, piece.end) for piece in pieces] == [
        ("rank 5 in f", at(10), at(40)),
        ("ranks 5-6 in f", at(40), at(50)),
    ]


def test_evidence_stands_in_order_of_its_windows_and_cascades_come_last() -> None:
    cascade = anomaly("cascade", [], [0, 1], start=0, subject="c")
    pieces = evidence_of(
        [
            cascade,
            anomaly("no_iteration", start=10),
            anomaly("outside_communication", [5], start=20),
            anomaly("own_error", [6], start=30),
        ]
    )
    assert [piece.detector for piece in pieces] == ["no_iteration", "stack_minority", "fatal_lines", "fatal_lines"]
    assert pieces[-1].text == cascade.text


def test_evidence_of_many_windows_is_one_piece_with_its_latest_words() -> None:
    (piece,) = evidence_of([anomaly("no_iteration", start=start, text=f"since {start}") for start in (10, 20, 30)])
    assert (piece.start, piece.end, piece.text) == (at(10), at(40), "since 30")


def test_each_error_of_its_own_is_a_piece_and_there_are_few() -> None:
    assert len(evidence_of([anomaly("own_error", [rank], subject=str(rank)) for rank in range(3)])) == 3
    assert len(evidence_of([anomaly("own_error", [rank], subject=str(rank)) for rank in range(50)])) <= 8


def test_cascades_of_a_later_window_leave_those_before_in_the_evidence() -> None:
    first = anomaly("cascade", [], [4, 5, 7], start=10, text="ranks 4-5,7 lost their peers")
    later = anomaly("cascade", [], [0, 1], start=20, text="ranks 0-1 lost their peers")
    assert [piece.text for piece in evidence_of([first, later, later])] == [first.text, later.text]


def test_peers_values_stand_with_the_evidence() -> None:
    (piece,) = evidence_of([anomaly("slow_and_changed", [3], peers="peers' median 130.0")])
    assert piece.peers == "peers' median 130.0"


def test_the_severity_is_the_worst_of_the_anomalies() -> None:
    warning = anomaly("slow_and_changed", [3], severity="warning")
    assert composed([warning]).severity == "warning"
    assert composed([warning, anomaly("slow_and_changed", [3], start=10)]).severity == "critical"


@pytest.mark.parametrize(
    ("grounds", "severity"),
    [
        ("slow_first_rank", "warning"),
        ("slow_unseen", "warning"),
        ("slow_but_waits", "warning"),
        ("slow_or_waits", "warning"),
        ("slow_unwitnessed", "warning"),
        ("slow_within_group", "warning"),
        ("slow_stage", "warning"),
        ("slow_replica", "warning"),
        ("rotating", "warning"),
        ("many_slow", "critical"),
        ("slow_and_changed", "critical"),
    ],
)
def test_what_may_be_slow_by_design_or_by_its_inputs_pages_nobody(grounds: str, severity: str) -> None:
    found = anomaly(grounds, [0] if grounds == "slow_first_rank" else [3], severity="critical")
    assert composed([found]).severity == severity


@pytest.mark.parametrize(("stopped", "severity"), [(5, "info"), (10.5, "info"), (14, "critical"), (None, "critical")])
def test_a_job_that_its_owner_stopped_pages_nobody(stopped: float | None, severity: str) -> None:
    known = view()
    known.stopped = None if stopped is None else at(stopped)
    assert composed([anomaly("own_error", [6], start=10, onset=10)], known).severity == severity


def test_missing_and_unobserved_ranks_are_said() -> None:
    known = view(world=10)
    found = composed([anomaly("outside_communication", [5], [0, 1, 2, 3], unobserved=[6, 7])], known)
    assert (found.missing.ranks, found.unobserved.ranks, found.victims.ranks) == ("8-9", "6-7", "0-3")


def test_the_summary_says_where_and_why_and_never_claims_a_root_cause() -> None:
    found = composed([anomaly("outside_communication", [5], [0, 1], iteration=40, area="data")])
    assert found.summary == (
        "hang after iteration 40: rank 5 on node02 (supported; one stands outside communication while its peers wait)"
    )
    assert "root cause" not in found.summary + found.next_step


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (Scope(kind="job", name="run-7"), "job run-7"),
        (Scope(kind="node", name="n1", nodes=["n1"]), "node n1"),
        (Scope(kind="device", name="device 0000:9b:00.0", nodes=["n1"]), "device 0000:9b:00.0 on n1"),
        (Scope(kind="rank", name="rank 5", nodes=["n1"]), "rank 5 on n1"),
        (Scope(kind="rank", name="rank 5"), "rank 5 on an unknown node"),
    ],
)
def test_a_scope_is_said_in_words(scope: Scope, said: str) -> None:
    assert said_place(scope) == said


@pytest.mark.parametrize(
    ("anomalies", "words"),
    [
        ([anomaly("outside_communication", [5], area="data")], "data loader"),
        ([anomaly("outside_communication", [5], area="checkpoint")], "checkpoint storage"),
        ([anomaly("own_error", [4], symptom="memory", area="memory")], "memory"),
        ([anomaly("own_error", [4], area="hardware")], "hardware checks"),
        ([anomaly("own_error", list(range(8)), area="configuration", templates=["a"])], "launch configuration"),
        ([anomaly("own_death", [4, 5])], "node node02"),
        ([anomaly("after_reduction")], "learning rate"),
        ([anomaly("many_slow")], "nobody is to be moved"),
        ([anomaly("no_iteration")], "all ranks at once"),
        ([anomaly("own_death", [4])], "kernel log of node02"),
        ([anomaly("never_enqueued", [4])], "compare"),
        ([anomaly("outside_communication", [5])], "what the suspect waits for"),
        ([anomaly("vanished", [4], symptom="crash")], "still runs on node02"),
    ],
)
def test_the_next_step_follows_the_scope_and_the_area(anomalies: list[Anomaly], words: str) -> None:
    assert words in composed(anomalies).next_step


@pytest.mark.parametrize(
    ("waited", "symptom", "words"),
    [
        (range(5), "hang", "take stacks and dumps at once of ranks that still run"),
        (range(4), "hang", "take stacks and flight-recorder dumps of all ranks at once"),
        (range(5), "crash", "take stacks and flight-recorder dumps of all ranks at once"),
    ],
)
def test_where_most_ranks_have_timed_out_stacks_are_asked_of_who_still_runs(
    waited: range, symptom: Symptom, words: str
) -> None:
    cascade = msgspec.structs.replace(anomaly("cascade", victims=waited), symptom=symptom)
    decision = msgspec.structs.replace(decide([anomaly("no_iteration")], situation()), symptom="hang", suspects=[])
    made = compose(
        view=view(),
        decision=decision,
        anomalies=[anomaly("no_iteration"), cascade],
        incident_id="i",
        revision=1,
        published=at(100),
        templates=[],
        resolution="",
    )
    assert words in made.next_step


@pytest.mark.parametrize(
    ("anomalies", "before", "after"),
    [
        ([anomaly("never_enqueued", [4])], "take stacks of the suspect", "it is gone"),
        ([anomaly("no_iteration")], "take stacks and flight-recorder dumps", "no longer be seen"),
        ([anomaly("outside_communication", [5], area="data")], "data loader", "data loader"),
        ([anomaly("many_slow")], "nobody is to be moved", "nobody is to be moved"),
    ],
)
def test_stacks_are_only_to_be_taken_of_who_still_runs(anomalies: list[Anomaly], before: str, after: str) -> None:
    alive, some, dead = view(), view(), view()
    some.members[0].zombie = at(50)
    for number, member in enumerate(dead.members.values()):
        if number % 2:
            member.requested = at(50)
        else:
            member.exit = Exit(time=at(50), pid=7, code=1)
    assert all(before in composed(anomalies, seen).next_step for seen in (alive, some))
    assert after in composed(anomalies, dead).next_step
    for resolution, words in ((Resolution.SUPERSEDED, after), (Resolution.ITERATES, before)):
        assert words in composed(anomalies, alive, resolution=resolution.value).next_step


@pytest.mark.parametrize(("grounds", "suspects", "symptom"), [("node_fault", [], "fault"), ("own_error", [3], "error")])
def test_what_the_job_lived_through_is_no_hang_or_crash_of_it(grounds: str, suspects: list[int], symptom: str) -> None:
    found = [anomaly(grounds, suspects, start=10, area="hardware")]
    if not suspects:
        place = Suspect(rank=None, node="node01", score=0.5, why="")
        found = [msgspec.structs.replace(found[0], suspects=[place])]
    decision = decide(found, situation(iterated=at(90), step_ns=10**9))
    known = view()
    one = compose(
        incident_id="i",
        revision=1,
        published=at(100),
        view=known,
        decision=decision,
        anomalies=found,
        templates=[],
        resolution="iterations go on",
    )
    assert said_symptom(one.symptom, one.reason, one.scope) == symptom
    assert one.summary.startswith(f"{symptom}: " if one.iteration is None else f"{symptom} after")


def test_open_and_resolved_are_told_by_the_resolution() -> None:
    found = [anomaly("own_error", [6])]
    assert composed(found).status == "open"
    assert composed(found, resolution="a new attempt has begun").status == "resolved"


def test_one_attempts_incidents_share_their_notification_key() -> None:
    one, two = composed([anomaly("own_error", [6])]), composed([slow([3])], incident_id="j")
    assert one.notification_key == two.notification_key != ""
