"""What the job stage tells the fleet stage: at which nodes incidents point, where jobs run, what nodes complain of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from predefined_samples import LINES as SAMPLES
from streams_support import BASE, SECOND, at, worker

from schemas.fleet import FleetReport, StorageComplaint
from schemas.identity import NO_JOB, Identity
from schemas.results import Incident, Scope, SignatureCount, Suspect, SuspiciousTemplate, Window
from streams.attempt_window import AttemptWindow
from streams.fleet import storage
from streams.fleet.storage import complaints_of, storage_of
from streams.lines.facts import facts_of
from streams.stages.fleet_reports import MOST_PLACES, Reporter, ReporterState, pointed_at, reported
from streams.state import written
from streams.view import AttemptView

WINDOW = 10 * SECOND


def incident(revision: int = 1, **changes: Any) -> Incident:
    one = Incident(
        id="i",
        revision=revision,
        published=at(140),
        job="job",
        attempt="0",
        symptom="hang",
        area="data",
        severity="critical",
        verdict="supported",
        reason="why",
        status="open",
        onset=at(100),
        summary="",
        next_step="",
        scope=Scope(kind="rank", name="rank 5", ranks="5", nodes=["node02"], devices=["0000:0f:00"]),
        suspects=[Suspect(rank=5, node="node02", score=0.9, why="")],
        templates=[
            SuspiciousTemplate(id="t1", text="", first_seen=0, ranks="5", axis="space"),
            SuspiciousTemplate(id="t2", text="", first_seen=0, ranks="5", axis="cross-job"),
            SuspiciousTemplate(id="t3", text="", first_seen=0, ranks="", axis="time", absent=True),
        ],
    )
    return msgspec.structs.replace(one, **changes)


def view_of(ranks: int, attempt: str = "0", number: int = 0, cluster: str = "a") -> AttemptView:
    """An attempt that was seen in one window."""
    start = BASE + number * WINDOW
    view = AttemptView(job="job", attempt=attempt, first=start)
    summaries = [
        Window(id=f"{rank}", identity=worker("job", rank, attempt, cluster=cluster), start=start, end=start + WINDOW)
        for rank in range(ranks)
    ]
    view.update(AttemptWindow(job="job", attempt=attempt, start=start, end=start + WINDOW, summaries=summaries))
    return view


def place(kind: Any, *nodes: str, name: str = "") -> Scope:
    return Scope(kind=kind, name=name, nodes=list(nodes))


@pytest.mark.parametrize(
    ("suspects", "scope", "nodes"),
    [
        (["node02"], place("rank", "node02"), ["node02"]),
        (["node02", "node01", "node02"], place("group", "node01", "node02"), ["node01", "node02"]),
        ([""], place("rank"), []),
        ([], place("node", "node02"), ["node02"]),
        ([], place("device", "node02"), ["node02"]),
        ([], place("job", "node01", "node02"), ["node01", "node02"]),
        ([], place("job"), []),
        ([], msgspec.structs.replace(place("job", "node01", "node02"), ranks="0-15"), []),
        # Whom a decision concerns it does not accuse.
        ([], place("rank", "node02"), []),
        ([], place("group", "node01", "node02"), []),
        ([], place("stage", "node01", "node02"), []),
        ([], place("job", *(f"n{number}" for number in range(MOST_PLACES + 1))), []),
    ],
    ids=str,
)
def test_at_which_nodes_an_incident_points(suspects: list[str], scope: Scope, nodes: list[str]) -> None:
    named = [Suspect(rank=number, node=node, score=0.9, why="") for number, node in enumerate(suspects)]
    assert pointed_at(incident(suspects=named, scope=scope)) == nodes


def test_an_incident_in_short() -> None:
    view = view_of(4)
    view.clock.steps = [50 * SECOND]
    found = reported(incident(), view)
    assert (found.place, found.named, found.nodes) == ("rank 5 on node02", True, ["node02"])
    assert reported(incident(labels={"team": "x"}), view).labels == {"team": "x"}
    assert (found.devices, found.errors) == (["0000:0f:00"], ["t1"])
    assert (found.started, found.within_ns) == (BASE, 160 * SECOND)
    assert reported(incident(symptom="crash"), view).within_ns == 30 * SECOND
    assert reported(incident(), None).started == at(100)


class Play:
    """A reporter that is written down and read back after each window."""

    def __init__(self) -> None:
        self.reporter = Reporter("job")

    def window(self, number: int, views: list[AttemptView], *incidents: Incident, **more: Any) -> list[FleetReport]:
        found = self.reporter.report(BASE + number * WINDOW, views, incidents, **more)
        state = msgspec.json.decode(written(self.reporter.state), type=ReporterState)
        self.reporter = Reporter("job", state)
        return found


def test_where_a_job_runs_is_told_once_when_it_changes_and_every_ten_minutes() -> None:
    play, small, large = Play(), [view_of(4)], [view_of(6)]
    told = {number: found[0].nodes for number in range(1, 130) if (found := play.window(number, small))}
    assert told == {number: ["node00", "node01"] for number in (1, 61, 121)}
    assert play.window(130, large) == []
    (moved,) = [found[0] for number in range(131, 140) if (found := play.window(number, large))]
    assert (moved.nodes, moved.cluster) == (["node00", "node01", "node02"], "a")


def test_an_incident_brings_where_the_job_runs_up_to_date() -> None:
    play = Play()
    play.window(1, [view_of(4)])
    (found,) = play.window(2, [view_of(6)], incident())
    assert (found.nodes, [one.incident for one in found.incidents]) == (["node00", "node01", "node02"], ["i"])
    (found,) = play.window(3, [view_of(6)], incident(2))
    assert (found.nodes, [one.revision for one in found.incidents]) == (None, [2])


def test_switches_are_told_with_the_nodes_below_them() -> None:
    play, view = Play(), view_of(4)
    (found,) = play.window(1, [view])
    assert found.switches == {}
    view.switches = {"node00": "s0.leaf0", "node07": "s0.leaf1"}
    (found,) = play.window(2, [view], incident())
    assert found.switches == {"node00": "s0.leaf0"}
    (found,) = play.window(3, [view], incident(2))
    assert found.switches == {}


def test_an_attempt_that_was_given_up_runs_nowhere() -> None:
    old, new = view_of(6), view_of(2, "1")
    old.superseded = BASE
    (found,) = Play().window(1, [old, new])
    assert found.nodes == ["node00"]


def test_a_job_leaves_its_cluster_when_it_is_gone_or_proves_to_be_of_another() -> None:
    play = Play()
    assert play.reporter.gone(at(10)) == []
    play.window(1, [view_of(2, cluster="")])
    left, came = play.window(2, [view_of(2)])
    assert [(one.cluster, one.left, one.nodes) for one in (left, came)] == [("", True, None), ("a", False, ["node00"])]
    (gone,) = play.reporter.gone(at(30))
    assert (gone.cluster, gone.left) == ("a", True)
    assert len({left.id, came.id, gone.id}) == 3


def test_what_is_told_of_a_job_that_is_silent_by_now_is_told_to_its_cluster() -> None:
    play = Play()
    play.window(1, [view_of(2)])
    (last,) = play.window(2, [], incident())
    assert (last.cluster, last.left, last.nodes) == ("a", False, [])
    assert [one.cluster for one in play.reporter.gone(at(30))] == ["a"]


def test_a_job_over_two_clusters_accuses_no_node_of_the_other() -> None:
    """Nodes of both may have one name; the job is of the last by name, without the nodes that it has in another."""
    view, here, complaints = view_of(4, cluster="b"), "node01", []
    for rank, member in view.members.items():
        cluster = "a" if rank == 0 else "b"
        node = ("node00", "node00", here, here)[rank]
        member.identity = msgspec.structs.replace(member.identity, cluster=cluster, node=node)
    named = [Suspect(rank=rank, node=node, score=0.9, why="") for rank, node in ((0, "node00"), (2, here))]
    complaints = [StorageComplaint(storage="s", node=node, first=at(0), last=at(5)) for node in ("node00", here)]
    (found,) = Play().window(1, [view], incident(suspects=named), complaints=complaints)
    assert (found.cluster, found.nodes, found.incidents[0].nodes) == ("b", [here], [here])
    assert [one.node for one in found.complaints] == [here]


def test_a_complaint_is_told_again_after_a_minute() -> None:
    play = Play()
    one = StorageComplaint(storage="NFS server nas1", node="node00", first=at(0), last=at(5))
    told = [number for number in range(1, 20) if play.window(number, [], complaints=[one])]
    assert told == [1, 7, 13, 19]
    assert play.reporter.state.cluster == ""


def test_nodes_without_a_job_complain_to_their_own_clusters_and_are_no_job() -> None:
    reporter = Reporter(NO_JOB)
    lustre = StorageComplaint(storage="Lustre s", node="idle1", first=at(1), last=at(2))
    told = reporter.of_no_job(at(10), {"b": [], "a": [lustre]}) + reporter.of_no_job(at(20), {"a": [lustre]})
    assert [(one.cluster, one.job, one.nodes, one.complaints, one.left) for one in told] == [
        ("a", NO_JOB, None, [lustre], False)
    ]
    (other,) = reporter.of_no_job(at(30), {"b": [lustre]})
    assert other.cluster == "b"
    assert reporter.gone(at(40)) == []


def node_window(text: str, node: str = "node00", rank: int | None = None) -> Window:
    facts = facts_of(text)
    line = SignatureCount(
        signature=facts.signature,
        masked=facts.masked,
        count=2,
        first=at(1),
        last=at(5),
        example=text,
        predefined=facts.predefined,
    )
    who = Identity(job="job", node=node, rank=rank, rank_reason="log of a node")
    return Window(id=text, identity=who, start=BASE, end=BASE + WINDOW, signatures=[line])


LOST = "Lustre: scratch-OST0003-osc-ffff9e0c1a2b3c4d: Connection to scratch-OST0003 (at 10.0.0.5@o2ib) was lost"
LINES = {
    LOST: "Lustre scratch",
    "nfs: server nas1.example not responding, still trying": "NFS server nas1.example",
    "nfs: server nas1.example OK": "",
    "Lustre: 1234:0:(client.c:2116:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply": "",
    "hello": "",
}


@pytest.mark.parametrize("text", LINES)
def test_which_storage_a_line_complains_of(text: str) -> None:
    found = complaints_of([node_window(text)])
    assert [(one.storage, one.node, one.first, one.last) for one in found] == (
        [(LINES[text], "node00", at(1), at(5))] if LINES[text] else []
    )


def test_a_rank_that_repeats_such_a_line_and_an_unknown_node_complain_of_nothing() -> None:
    assert complaints_of([node_window(LOST, rank=3), node_window(LOST, node="")]) == []


def test_which_predefined_lines_name_storage() -> None:
    named = {
        template: found[0].storage for template, _, text, _ in SAMPLES if (found := complaints_of([node_window(text)]))
    }
    assert named == {
        "lustre.evicted": "Lustre X",
        "lustre.connection_lost": "Lustre X",
        "gpfs.membership_lost": "GPFS cluster remote.cluster",
        "nfs.not_responding": "NFS server filer12",
    }
    assert set(named) == set(storage._KINDS)


def test_what_is_no_target_names_no_file_system() -> None:
    assert storage_of("lustre.evicted", "MGC10.0.0.1@o2ib") == ""
