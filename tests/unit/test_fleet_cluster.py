"""One cluster over time: revisions of what several jobs share, the history of its nodes, and bounds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fleet_support import at, crashed, report, told

from schemas.fleet import FleetReport, NodeHistory, StorageComplaint
from schemas.results import Incident
from streams.fleet import cluster as module
from streams.fleet.cluster import ClusterKeeper, ClusterState
from streams.fleet.compose import OVER, WITHDRAWN
from streams.fleet.together import Told
from streams.incidents.resolution import Resolution
from streams.state import written

OVER_NOW = {"status": "resolved", "resolution": Resolution.ITERATES.value}


class Play:
    """A cluster that is written down and read back after each window."""

    def __init__(self) -> None:
        self.keeper = ClusterKeeper(ClusterState(cluster="a"))
        self.revisions: list[Incident] = []
        self.histories: list[NodeHistory] = []

    def window(self, end: float, *reports: FleetReport) -> list[Incident]:
        revisions, histories = self.keeper.close(at(end), reports)
        raw = written(self.keeper.written())
        self.keeper = ClusterKeeper(msgspec.json.decode(raw, type=ClusterState))
        assert written(self.keeper.written()) == raw
        self.revisions += revisions
        self.histories += histories
        return revisions


def running(play: Play, jobs: str, end: float = 10, nodes: tuple[str, ...] = ("node02",)) -> None:
    play.window(end, *(report(job, end, nodes=[*nodes, f"own of {job}"]) for job in jobs))


def brief(found: list[Incident]) -> list[tuple[int, str, str, list[str]]]:
    return [(one.revision, one.status, one.severity, [member.job for member in one.members]) for one in found]


def test_a_failure_grows_and_is_over_once_all_its_members_are() -> None:
    play = Play()
    running(play, "abc")
    assert play.window(130, report(told("a"), 130)) == []
    assert brief(play.window(140, report(told("b", severity="warning"), 140))) == [
        (1, "open", "critical", ["a", "b"]),
    ]
    assert brief(play.window(150, report(told("c"), 150))) == [(2, "open", "critical", ["a", "b", "c"])]
    over = [report(told(job, revision=2, **OVER_NOW), 200) for job in "ab"]
    assert play.window(200, *over) == []
    (last,) = play.window(210, report(told("c", revision=2, **OVER_NOW), 210))
    assert brief([last]) == [(3, "resolved", "critical", ["a", "b", "c"])]
    assert (last.resolution, last.onset, last.scope.kind, last.scope.name) == (OVER, at(100), "node", "node02")
    assert (last.job, last.attempt, last.cluster) == ("-", "", "a")
    assert len({one.id for one in play.revisions}) == 1


def test_a_failure_has_the_labels_that_all_its_jobs_have() -> None:
    play = Play()
    running(play, "abc")
    labels = [{"team": "x", "queue": "long"}, {"team": "x", "queue": "short"}, {"queue": "short"}]
    one, two, three = (report(told(job, labels=own), 130) for job, own in zip("abc", labels, strict=True))
    assert [found.labels for found in play.window(130, one, two)] == [{"team": "x"}]
    assert [found.labels for found in play.window(140, three)] == [{}]


def test_a_hang_that_is_found_late_joins_what_is_over() -> None:
    play = Play()
    running(play, "abc")
    play.window(130, *(report(told(job), 130) for job in "ab"))
    play.window(200, *(report(told(job, revision=2, **OVER_NOW), 200) for job in "ab"))
    found = play.window(1900, report(told("c", 110), 1900))
    assert brief(found) == [(3, "open", "critical", ["a", "b", "c"])]
    assert len({one.id for one in play.revisions}) == 1


def test_who_is_withdrawn_takes_the_failure_back_and_who_comes_back_finds_its_id() -> None:
    play = Play()
    running(play, "ab")
    play.window(130, *(report(told(job), 130) for job in "ab"))
    (gone,) = play.window(140, report(told("b", revision=2, severity="info"), 140))
    assert brief([gone]) == [(2, "resolved", "info", [])]
    assert gone.resolution == WITHDRAWN
    again = play.window(150, report(told("b", revision=3), 150))
    assert brief(again) == [(3, "open", "critical", ["a", "b"])]
    assert len({one.id for one in play.revisions}) == 1


def test_two_failures_that_were_one_have_two_ids() -> None:
    play = Play()
    running(play, "abcd")
    for job in "xyz" * 20:
        running(play, job, 20, ("node07",))
    first = play.window(130, *(report(told(job), 130) for job in "abc"))
    moved = [report(told("a", 420, revision=2), 450), report(told("d", 425), 450)]
    found = play.window(450, *moved)
    assert brief(first) == [(1, "open", "critical", ["a", "b", "c"])]
    assert brief(found) == [(2, "open", "critical", ["b", "c"]), (1, "open", "critical", ["a", "d"])]
    assert [one.id == first[0].id for one in found] == [True, False]
    again = play.window(460, report(told("c", revision=2, **OVER_NOW), 460), report(told("d", 425, revision=2), 460))
    assert again == []


def test_what_is_found_once_more_after_it_was_forgotten_is_another() -> None:
    play = Play()
    running(play, "ab")
    play.window(130, *(report(told(job), 130) for job in "ab"))
    withdrawn = {**OVER_NOW, "severity": "info"}
    play.window(140, report(told("a", revision=2, **OVER_NOW), 140), report(told("b", revision=2, **withdrawn), 140))
    running(play, "ab", 9000)
    assert play.keeper.state.failures == []
    found = play.window(9010, *(report(told(job, revision=3), 9010) for job in "ab"))
    assert brief(found) == [(1, "open", "critical", ["a", "b"])]
    assert found[0].id != play.revisions[0].id


def test_nodes_without_a_job_are_none() -> None:
    play = Play()
    running(play, "ab", nodes=())
    lustre = StorageComplaint(storage="Lustre s", node="idle", first=at(20), last=at(20))
    play.window(30, report("-", 30, complaints=[lustre]))
    assert sorted(play.keeper.state.jobs) == ["a", "b"]
    assert play.keeper.state.complaints == {"Lustre s": {"idle": (at(20), at(20))}}


def test_jobs_that_are_stopped_together_were_none() -> None:
    """A scheduler takes all jobs of a node: some ranks are seen to die before the word of it."""
    play = Play()
    running(play, "ab")
    play.window(130, *(report(crashed(job, 120), 130) for job in "ab"))
    stopped = {"status": "resolved", "resolution": Resolution.STOPPED.value, "published": at(140)}
    found = play.window(140, *(report(crashed(job, 120, revision=2, **stopped), 140) for job in "ab"))
    assert brief(found) == [(2, "resolved", "info", [])]


def test_a_failure_that_proves_to_be_one_of_storage_keeps_its_id_and_takes_others_in() -> None:
    play = Play()
    running(play, "ab")
    running(play, "cd", 20, ("node07",))
    for node in range(60):
        running(play, f"{node:02d}", 30, (f"x{node}",))
    first = play.window(130, *(report(told(job), 130) for job in "ab"))
    second = play.window(140, *(report(told(job, 101, "node07"), 140) for job in "cd"))
    assert [one.scope.name for one in [*first, *second]] == ["node02", "node07"]
    nfs = [
        StorageComplaint(storage="NFS server nas1", node=node, first=at(90), last=at(145))
        for node in ("node02", "node07")
    ]
    found = play.window(150, report("x", 150, complaints=nfs))
    whole, merged = sorted(found, key=lambda one: not one.members)
    assert (whole.id, whole.scope.name, len(whole.members)) == (first[0].id, "storage NFS server nas1", 4)
    assert (merged.id, merged.merged_into, merged.status) == (second[0].id, whole.id, "resolved")


def test_a_node_that_takes_one_job_after_another_has_a_history_and_no_failure_of_several() -> None:
    play = Play()
    for number, job in enumerate("abc"):
        start = 7200.0 * number
        play.window(start + 10, report(job, start + 10, nodes=["node02", "other"]))
        one = crashed(job, start + 100, since=start)
        play.window(start + 130, report(one, start + 130))
        play.window(start + 900, report(job, start + 900, left=True))
    assert play.revisions == []
    told_of = [one for one in play.histories if one.node == "node02"]
    assert [one.counted for one in told_of] == [1, 2, 3]
    assert told_of[-1].incidents == pytest.approx(3, abs=0.02)
    assert told_of[-1].score > 3
    assert {one.node for one in play.histories} == {"node02"}


def test_one_failure_of_several_jobs_counts_once_for_its_node() -> None:
    play = Play()
    running(play, "abcd")
    play.window(130, *(report(told(job), 130) for job in "abcd"))
    assert [(one.node, one.counted) for one in play.histories] == [("node02", 1)]


@pytest.mark.parametrize(
    "changes",
    [{"area": "code"}, {"verdict": "ambiguous"}, {"severity": "info"}, {"nodes": [f"n{n}" for n in range(9)]}],
)
def test_what_says_nothing_of_a_node_is_not_counted(changes: dict[str, Any]) -> None:
    play = Play()
    running(play, "a")
    play.window(130, report(told("a", **changes), 130))
    assert play.histories == []


def test_what_is_taken_back_is_no_longer_counted() -> None:
    play = Play()
    running(play, "a")
    play.window(130, report(told("a"), 130))
    play.window(140, report(told("a", revision=2, severity="info"), 140))
    assert [(one.counted, round(one.incidents, 3)) for one in play.histories] == [(1, 1.0), (0, 0.0)]


def test_the_past_of_a_node_is_shown_as_context() -> None:
    play = Play()
    running(play, "z")
    play.window(130, report(crashed("z"), 130))
    running(play, "ab", 90_000)
    (found,) = play.window(90_130, *(report(told(job, 90_100, since=89_000), 90_130) for job in "ab"))
    assert found.evidence[-1].text.startswith("node02: 2.0 failures in 1.0 node-days, this one counted; in the rest")


def test_an_old_revision_that_comes_again_changes_nothing() -> None:
    play = Play()
    running(play, "ab")
    play.window(130, *(report(told(job, revision=2), 130) for job in "ab"))
    assert play.window(140, report(told("b", revision=1, severity="info"), 140)) == []


def test_what_a_job_left_open_is_over_once_it_is_gone() -> None:
    play = Play()
    running(play, "ab")
    play.window(130, *(report(told(job), 130) for job in "ab"))
    found = play.window(900, *(report(job, 900, left=True) for job in "ab"))
    assert brief(found) == [(2, "resolved", "critical", ["a", "b"])]
    play.window(9000, report("c", 9000, nodes=["x"]))
    state = play.keeper.state
    assert (state.incidents, state.failures, sorted(state.jobs)) == ([], [], ["c"])


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_what_a_job_says_in_the_window_in_which_it_leaves_does_not_bring_it_back(order: str) -> None:
    """It ran on its nodes until then, for what is found late; it counts there no longer as time without a failure."""
    play = Play()
    running(play, "a")
    play.window(130, report(told("a"), 130))
    last = msgspec.structs.replace(report(told("a", revision=2, **OVER_NOW), 900, nodes=[]), id=order[0])
    play.window(900, last, msgspec.structs.replace(report("a", 900, left=True), id=order[1]))
    job = play.keeper.state.jobs["a"]
    assert (job.gone, job.since, job.at, job.nodes) == (True, at(10), at(900), ["node02", "own of a"])
    assert [one.busy for one in play.keeper.state.tallies.nodes.values()] == [0, 0]
    assert play.keeper.state.tallies.whole.busy == 0


def test_a_job_that_runs_nowhere_any_more_has_run_where_it_ran() -> None:
    play = Play()
    running(play, "a")
    play.window(100, report("a", 100, nodes=[]))
    play.window(200, report(told("a", 50), 200))
    job = play.keeper.state.jobs["a"]
    assert (job.gone, job.since, job.at, job.nodes) == (True, at(10), at(100), ["node02", "own of a"])
    play.window(300, report("a", 300, nodes=["node07"]))
    job = play.keeper.state.jobs["a"]
    assert (job.gone, job.since, job.nodes) == (False, at(300), ["node07"])


def test_a_job_that_restarts_every_minute_holds_no_more_than_its_share() -> None:
    play = Play()
    for minute in range(200):
        one = crashed("a", 60.0 * minute, incident=f"i{minute}", attempt=str(minute), since=60.0 * minute - 30)
        play.window(60.0 * minute + 10, report(one, 60.0 * minute + 10))
    assert len(play.keeper.state.incidents) <= module.MOST_OF_A_JOB
    assert play.keeper.state.dropped > 0
    assert play.revisions == []


def test_state_is_bounded_whatever_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_JOBS", "MOST_INCIDENTS", "MOST_PLACES"):
        monkeypatch.setattr(module, name, 20)
    monkeypatch.setattr("streams.fleet.tallies.MOST_NODES", 20)
    play = Play()
    for number in range(60):
        end = 1000.0 * number + 100
        complaint = StorageComplaint(storage=f"s{number}", node="n", first=at(end), last=at(end))
        one: Told = told(f"j{number}", end - 50, f"n{number}")
        more = {"nodes": [f"n{number}"], "complaints": [complaint], "switches": {f"n{number}": f"l{number}"}}
        play.window(end, report(one, end, **more))
    state = play.keeper.state
    assert "n59" in state.switches
    assert len(state.jobs) <= 20 and len(state.incidents) <= 20 and len(state.tallies.nodes) <= 20
    assert len(state.complaints) <= 20 and len(state.switches) <= 20
    assert state.dropped > 0
    assert state.tallies.whole.busy == sum(one.busy for one in state.tallies.nodes.values())


def test_failures_that_are_found_and_taken_back_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were taken back go; what has members stays, with its id."""
    monkeypatch.setattr(module, "MOST_FAILURES", 3)
    play = Play()
    (first,) = play.window(130, *(report(told(job), 130) for job in "ab"))
    for number in range(1, 12):
        second = 100.0 + 400 * number
        names = [f"{job}{number}" for job in "cd"]
        play.window(second + 30, *(report(told(job, second, f"n{number}"), second + 30) for job in names))
        gone = [
            report(told(job, second, f"n{number}", revision=2, severity="info", **OVER_NOW), second + 40)
            for job in names
        ]
        play.window(second + 40, *gone)
        assert len(play.keeper.state.failures) <= 4
    assert play.keeper.state.dropped > 0
    (last,) = play.window(9_000, *(report(told("c", revision=1), 9_000),))
    assert (last.id, len(last.members)) == (first.id, 3)


@pytest.mark.parametrize(("severities", "worst"), [("cw", "critical"), ("ww", "warning")])
def test_how_bad_it_is_follows_from_its_members_and_how_sure_from_chance(severities: str, worst: str) -> None:
    """Two jobs of few may well be hit on one node by chance: that makes neither of them any better."""
    play = Play()
    running(play, "ab")
    words = {"c": "critical", "w": "warning"}
    jobs = zip("ab", severities, strict=True)
    (found,) = play.window(130, *(report(told(job, severity=words[severity]), 130) for job, severity in jobs))
    assert (found.verdict, found.severity) == ("ambiguous", worst)


def test_what_was_left_out_is_told_once_and_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_JOBS", 2)
    play, said = Play(), []
    for number in range(20):
        end = 10.0 * number + 10
        play.window(end, report("ab"[number % 2] if number > 4 else f"j{number}", end, nodes=["n"]))
        said += [(one.status, one.severity, one.cluster, number) for one in play.keeper.left_out(at(end))]
    assert said == [("firing", "info", "a", 2), ("resolved", "info", "a", 12)]


def test_a_hundred_incidents_of_a_fleet_of_a_thousand_jobs_are_told_apart() -> None:
    """Ten nodes take ten jobs each at once; each is one failure, and nobody else is touched."""
    keeper = ClusterKeeper(ClusterState(cluster="a"))
    jobs = {f"j{n:04d}": [f"node{n // 10:03d}", f"n{n}"] for n in range(1000)}
    keeper.close(at(10), [report(job, 10, nodes=nodes) for job, nodes in jobs.items()])
    hit = [told(f"j{n:04d}", 100 + n % 10, f"node{n // 10:03d}") for n in range(0, 100)]
    revisions, histories = keeper.close(at(130), [report(one, 130) for one in hit])
    assert sorted(one.scope.name for one in revisions) == [f"node{n:03d}" for n in range(10)]
    assert {len(one.members) for one in revisions} == {10}
    assert sorted(one.node for one in histories) == [f"node{n:03d}" for n in range(10)]
