"""Alerts about the pipeline: each begins once and ends once, by what windows show and by nothing else."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from schemas.meta import MetaAlert
from schemas.results import Window
from streams import meta
from streams.job_meta import SILENT_NS, JobMeta, JobMetaState
from streams.meta import BEAT_NS, MOST_NAMED, Alerts, AlertsState, Condition, Rule
from streams.state import written

SECOND = 1_000_000_000
W = 10 * SECOND
ROWS = [
    ("a bad window is a hint", "x", Rule("warning", 2, 2), ""),
    ("two in a row count", "xx", Rule("warning", 2, 2), " F"),
    ("a good one between begins anew", "x.x", Rule("warning", 2, 2), ""),
    ("it is over after two good ones", "xx..", Rule("warning", 2, 2), " F R"),
    ("one good one does not end it", "xx.x.", Rule("warning", 2, 2), " F"),
    ("it may begin again", "xx..xx", Rule("warning", 2, 2), " F R F"),
    ("at once", "x.", Rule("warning", 1, 1), "FR"),
    ("who is not seen stays as it is", "xx  .", Rule("warning", 2, 2), " F"),
]


def condition(subject: str, bad: bool, since: int) -> Condition:
    return Condition(subject, bad, since, f"{subject} is wrong", f"{subject} is right")


def letters(alerts: list[MetaAlert]) -> str:
    return "".join("F" if one.status == "firing" else "R" for one in alerts)


@pytest.mark.parametrize(("name", "windows", "rule", "said"), ROWS, ids=[row[0] for row in ROWS])
def test_an_alert_begins_once_and_ends_once(name: str, windows: str, rule: Rule, said: str) -> None:
    alerts, found = Alerts("skew", rule, "all", AlertsState()), []
    for number, window in enumerate(windows):
        seen = [] if window == " " else [condition("a", window == "x", number * W)]
        found += alerts.close(number * W, "c1", seen)
        restored = msgspec.json.decode(written(alerts.state), type=AlertsState)
        alerts = Alerts("skew", rule, "all", restored)
    assert letters(found) == said.replace(" ", ""), name
    if letters(found)[:2] == "FR":
        begun, over = found[:2]
        assert (begun.id, begun.since, begun.cluster) == (over.id, over.since, "c1")
        assert (begun.text, over.text) == ("a is wrong", "a is right")
        assert begun.time < over.time


def test_an_alert_whose_cluster_becomes_known_while_it_fires_is_over_under_the_same_id() -> None:
    alerts = Alerts("skew", Rule("warning", 1, 1), "job", AlertsState())
    (begun,) = alerts.close(10, "", [condition("a", True, 7)])
    (over,) = alerts.close(20, "c1", [condition("a", False, 20)])
    assert (begun.id, begun.status, over.status) == (over.id, "firing", "resolved")


def test_a_thousand_subjects_are_some_names_and_one_number() -> None:
    alerts = Alerts("skew", Rule("warning", 1, 1), "all", AlertsState())
    many = [condition(f"n{number:03d}", True, 0) for number in range(1000)]
    said = alerts.close(W, "", many[::-1])
    assert [one.subject for one in said] == [*(f"n{number:03d}" for number in range(MOST_NAMED)), "all"]
    assert said[-1].text == f"{1000 - MOST_NAMED} more beside the {MOST_NAMED} that are named"
    assert alerts.close(2 * W, "", many) == [], "each once"
    over = alerts.close(3 * W, "", [condition(one.subject, False, 0) for one in many])
    assert letters(over) == "R" * (MOST_NAMED + 1)
    assert not alerts.state.streaks and not alerts.state.more_since


def test_what_is_followed_is_bounded() -> None:
    alerts = Alerts("skew", Rule("warning", 3, 1), "all", AlertsState())
    alerts.close(W, "", [condition(f"n{number}", True, 0) for number in range(meta.MOST_WATCHED + 10)])
    assert len(alerts.state.streaks) == meta.MOST_WATCHED


@pytest.mark.parametrize(
    ("before", "end", "beat"),
    [
        (None, 5 * W, 0),
        (None, BEAT_NS + W, BEAT_NS),
        (BEAT_NS - W, BEAT_NS, BEAT_NS),
        (BEAT_NS, BEAT_NS + W, None),
        (BEAT_NS, 5 * BEAT_NS + W, 5 * BEAT_NS),
        (BEAT_NS + W, 2 * BEAT_NS - W, None),
    ],
)
def test_the_watchdog_is_heard_once_for_each_full_minute(before: int | None, end: int, beat: int | None) -> None:
    found = meta.beat(3, before, end)
    assert (found and found.time) == (beat if beat is not None else None)
    if found is not None:
        assert (found.name, found.subject, found.status) == ("watchdog", "partition 3", "firing")


def test_a_partition_that_is_left_out_is_told_and_its_return_too() -> None:
    state = AlertsState()
    said = [meta.skips(state, number * W, {0: False, 1: number in (1, 2)}) for number in range(4)]
    assert [[(one.subject, one.status) for one in found] for found in said] == [
        [],
        [("partition 1", "firing")],
        [],
        [("partition 1", "resolved")],
    ]


def window(node: str, *, worker: int | None = None, heartbeats: int = 0, **more: object) -> Window:
    identity = {"job": "job", "node": node, "rank": worker, "cluster": "c1"}
    plain = {"id": "w", "identity": identity, "start": 0, "end": 0, "heartbeats": heartbeats, **more}
    return msgspec.convert(plain, Window)


def play(windows: list[list[Window] | None], left: set[str] | None = None, runs_for: int = 0) -> list[str]:
    """What is said of windows, as name, subject's node, status and number of the window; null is an unavailable one.

    The job is at work for so many windows as far as anything tells.
    """
    job, said = JobMeta("job", JobMetaState()), []
    for number, summaries in enumerate(windows, 1):
        runs = number <= runs_for
        found = job.close(
            number * W, summaries or [], lambda: left or set(), partial(bool, runs), unavailable=summaries is None
        )
        said += [f"{number} {one.name} {one.subject.rpartition('|')[2]} {one.status}" for one in found]
        job = JobMeta("job", msgspec.json.decode(written(job.state), type=JobMetaState))
    return said


def beats(*nodes: str) -> list[Window]:
    return [window(node, heartbeats=1) for node in nodes]


BOTH, ONE = beats("a", "b"), beats("a")
SILENT_WINDOWS = SILENT_NS // W


@pytest.mark.parametrize(
    ("name", "windows", "said"),
    [
        ("both go on", [BOTH] * 20, []),
        ("one falls silent", [BOTH] * 5 + [ONE] * 6, ["8 producer_silent b firing"]),
        (
            "it comes back",
            [BOTH, *[ONE] * 4, *[BOTH] * 3],
            ["4 producer_silent b firing", "7 producer_silent b resolved"],
        ),
        ("all fall silent together", [BOTH] * 5 + [[]] * 20, []),
        ("one job ends a little earlier on one node", [BOTH] * 5 + [ONE] * 2 + [[]] * 20, []),
        ("ranks that print show that it lives", [BOTH] * 2 + [[*ONE, window("b", worker=1)]] * 20, []),
        (
            "who never sent heartbeats is not expected to",
            [[*ONE, *beats("c"), window("b", worker=1)]] + [beats("a", "c")] * 20,
            [],
        ),
        ("one node alone tells nothing", [beats("b"), *[[]] * 20], []),
        ("one that is heard seldom", [BOTH, ONE, ONE, BOTH, *[ONE] * 8, BOTH], []),
        ("an unavailable window tells nothing", [BOTH, ONE, None, ONE, BOTH, ONE, None, ONE, BOTH], []),
        ("nor that it is back", [BOTH] + [ONE] * 3 + [None] * 2 + [ONE] * 2, ["4 producer_silent b firing"]),
    ],
)
def test_a_producer_is_silent_if_others_go_on_without_it(
    name: str, windows: list[list[Window]], said: list[str]
) -> None:
    assert play(windows) == said, name


def test_a_node_that_the_job_has_left_is_not_missed() -> None:
    assert play([BOTH] * 2 + [ONE] * 10, left={"b"}) == []


def test_a_silent_producer_ends_with_its_job() -> None:
    job = JobMeta("job", JobMetaState())
    for number, summaries in enumerate([BOTH, ONE, ONE, ONE], 1):
        said = job.close(number * W, summaries, set, bool, unavailable=False)
    (begun,) = said
    assert begun.text == (
        "the producer on b has said nothing of job job for 30 s, while that on 1 other node goes on: "
        "what happens there is not seen"
    )
    (over,) = job.end(9 * W)
    assert (over.id, over.status, over.text) == (begun.id, "resolved", "nothing more is heard of job job")


NOTHING: list[Window] = []


@pytest.mark.parametrize(
    ("name", "windows", "runs_for", "said"),
    [
        ("all fall silent at work", [BOTH] * 5 + [NOTHING] * 5, 99, ["8 job_silent job firing"]),
        ("of one node, too", [ONE] * 2 + [NOTHING] * 5, 99, ["5 job_silent job firing"]),
        ("a job that has told its end", [BOTH] * 5 + [NOTHING] * 20, 5, []),
        (
            "it comes back",
            [BOTH, *[NOTHING] * 4, *[BOTH] * 3],
            99,
            ["4 job_silent job firing", "7 job_silent job resolved"],
        ),
        (
            "what is known of it is given up",
            [BOTH, *[NOTHING] * 8],
            6,
            ["4 job_silent job firing", "7 job_silent job resolved"],
        ),
        ("one that is heard seldom", [BOTH, NOTHING, NOTHING, BOTH, *[NOTHING] * 8, BOTH], 99, []),
        ("an unavailable window tells nothing", [BOTH, NOTHING, None, NOTHING, NOTHING, BOTH], 99, []),
        ("nor that it is back", [BOTH, *[NOTHING] * 3, None, None, NOTHING], 99, ["4 job_silent job firing"]),
        ("without heartbeats nobody knows that it should be heard", [[window("a", worker=1)], *[NOTHING] * 9], 99, []),
        (
            "first one node, then the others",
            [BOTH] * 2 + [ONE] * 3 + [NOTHING] * 4,
            99,
            ["5 producer_silent b firing", "8 job_silent job firing"],
        ),
    ],
)
def test_a_job_at_work_of_which_nothing_is_heard_is_told(
    name: str, windows: list[list[Window] | None], runs_for: int, said: list[str]
) -> None:
    assert play(windows, runs_for=runs_for) == said, name


def test_what_is_said_of_a_silent_job_names_no_node_and_ends_with_it() -> None:
    job = JobMeta("job", JobMetaState())
    for number, summaries in enumerate([BOTH, NOTHING, NOTHING, NOTHING], 1):
        said = job.close(number * W, summaries, set, lambda: True, unavailable=False)
    (begun,) = said
    assert (begun.subject, begun.severity, begun.since, begun.cluster) == ("job", "warning", W, "c1")
    assert begun.text == (
        "job job is silent: from all of its 2 nodes nothing was heard of it for 30 s, and nothing has told that it "
        "ends; what happens in it is not seen, and what is open of it stays open"
    )
    (over,) = job.end(9 * W)
    assert (over.id, over.status, over.text) == (begun.id, "resolved", "nothing more is heard of job job")


def test_a_clock_that_runs_ahead_is_told_by_the_workers_of_the_node() -> None:
    moved = {"retimed": 4}
    ahead = [window("a", worker=0, dropped=moved), window("a", worker=1, dropped=moved), window("b", worker=2)]
    fine = [window("a", worker=0), window("a", worker=1), window("b", worker=2)]
    one = [window("b", worker=rank, dropped=moved if rank == 2 else {}) for rank in range(2, 6)]
    assert play([ahead] * 2 + [fine] * 5) == []
    assert play([ahead] * 4 + [fine] * 6) == ["3 skew a firing", "10 skew a resolved"]
    assert play([one] * 6) == []
    late = [window("a", worker=0, dropped={"late": 3}), window("a", worker=1)]
    assert play([late] * 4 + [fine] * 6) == ["3 skew a firing", "10 skew a resolved"]


def test_lines_of_too_many_shapes_are_told_by_their_share() -> None:
    def lines(count: int, unused: int) -> list[Window]:
        return [window("a", worker=0, log_records=count, dropped={"signatures": unused})]

    assert play([lines(1000, 300)] * 3 + [lines(1000, 100)] * 6) == ["3 unparsed job firing", "9 unparsed job resolved"]
    assert play([lines(1000, 150)] * 6) == []
    assert play([lines(50, 40)] * 6) == [], "few lines are no share"
