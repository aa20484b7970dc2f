"""What a worker says of itself: once when it begins, now and then while it lasts, once when it is over."""

from __future__ import annotations

import pytest

from rankwatch.meta_teller import said_waits
from rankwatch.pulse import SILENT_NS, Repeated
from schemas.results import Progress
from streams.stages.progress import PartitionProgress
from streams.worker_meta import AGAIN_NS, LAG_NS, LASTS_NS, Look, SinkMeta, WorkerMeta

S = 1_000_000_000


def look(*, behind: int = 0, stalled: str = "", entries: int = 0, letters: int = 0) -> Look:
    return Look(behind_ns={"rank": behind, "job": 0}, stalled=stalled, entries=entries, letters=letters)


def said(looks: list[Look], step_ns: int = 10 * S) -> list[str]:
    meta = WorkerMeta("gpu1-77")
    found = [(number, one) for number, seen in enumerate(looks) for one in meta.look(number * step_ns, seen)]
    assert all(one.subject == "worker gpu1-77" for _, one in found)
    return [f"{number} {one.name} {one.status}" for number, one in found]


LAGS, FINE = look(behind=LAG_NS + 1), look()


@pytest.mark.parametrize(
    ("name", "looks", "expected"),
    [
        ("all is well", [FINE] * 20, []),
        ("a short lag is none", [FINE, LAGS, LAGS, LAGS, FINE], []),
        ("a lag that lasts", [FINE, *[LAGS] * 5, *[FINE] * 5], ["4 lag firing", "9 lag resolved"]),
        ("a lag that goes on is said again", [LAGS] * 17, ["3 lag firing", "9 lag firing", "15 lag firing"]),
        ("a standstill at once", [FINE, look(stalled="the event loop"), FINE], ["1 worker_stalled firing"]),
    ],
)
def test_what_lasts_is_said(name: str, looks: list[Look], expected: list[str]) -> None:
    found = said(looks)
    assert found[: len(expected)] == expected, name
    assert found[len(expected) :] in ([], ["2 worker_stalled resolved"]), name


def test_a_lag_names_the_partition_that_is_waited_for_and_how_far_it_was_heard() -> None:
    progress = PartitionProgress(3)
    heard = []
    for number, (partition, end) in enumerate([(0, 10), (2, 10), (1, 10), (0, 20), (2, 20), (1, 20)]):
        progress.report(number, Progress(partition=partition, end=end * S))
        heard.append(said_waits(progress.waited_for) if progress.waited_for else "")
    first = "partitions 1-2, heard up to 1970-01-01T00:00:10.000Z"
    last = first.replace("partitions 1-2", "partition 1")
    assert heard == ["partitions 1-2, never heard", "partition 1, never heard", "", first, last, ""]
    looks = [Look(behind_ns={"job": LAG_NS + 1}, stalled="", entries=0, letters=0, waits={"job": last})] * 5
    meta = WorkerMeta("gpu1-77")
    [alert] = [one for number, seen in enumerate(looks) for one in meta.look(number * 10 * S, seen)]
    assert alert.text.startswith(f"worker gpu1-77: stage job is 60 s behind and waits for {last}; what happens now")


def test_both_words_on_a_lag_are_one_alert_and_say_how_much() -> None:
    meta = WorkerMeta("gpu1-77")
    alerts = [one for second in range(0, 200, 10) for one in meta.look(second * S, LAGS if second < 100 else FINE)]
    assert len({(one.id, one.since) for one in alerts}) == 1
    assert alerts[0].text == "worker gpu1-77: stage rank is 60 s behind; what happens now is told so much later"
    assert alerts[-1].status == "resolved" and alerts[-1].text.startswith("over: worker gpu1-77: stage rank")
    assert AGAIN_NS < SILENT_NS, "who is heard again is not taken for gone"


@pytest.mark.parametrize(
    ("name", "entries", "letters", "fires"),
    [
        ("one in a thousand", 10_000, 10, False),
        ("one in fifty", 10_000, 200, True),
        ("a few are no share", 20, 9, False),
        ("nothing else came", 10, 10, True),
    ],
)
def test_records_that_cannot_be_read_are_told_by_their_share(
    name: str, entries: int, letters: int, fires: bool
) -> None:
    steps = [look(entries=number * entries, letters=number * letters) for number in range(8)]
    assert any("unparsed firing" in one for one in said(steps, LASTS_NS)) is fires, name


def test_counts_that_begin_anew_are_no_news() -> None:
    steps = [look(entries=number * 1000, letters=0 if number < 4 else 3) for number in range(4)]
    assert said([*steps, look(entries=10, letters=0), look(entries=2000, letters=0)], LASTS_NS) == []


def test_an_alert_whose_worker_is_gone_is_over_once_it_is_said_no_more() -> None:
    (alert,) = WorkerMeta("gpu1-77").look(7 * S, look(stalled="the event loop"))
    heard = Repeated()
    heard.heard([alert])
    assert heard.look(alert.time + SILENT_NS - 1) == []
    (over,) = heard.look(alert.time + SILENT_NS)
    assert (over.id, over.status) == (alert.id, "resolved")
    assert over.text == "worker gpu1-77 says nothing more of it: it may be gone"
    assert heard.look(alert.time + 2 * SILENT_NS) == []


def test_a_sink_that_stores_nothing_for_long_says_so_and_that_it_goes_on() -> None:
    meta, away = SinkMeta("db1-9"), "cannot reach ClickHouse at db:8123: connection refused"
    alerts = [one for second in range(0, 130, 10) for one in meta.look(second * S, away if second < 80 else "")]
    assert [(one.name, one.subject, one.status, one.severity) for one in alerts] == [
        ("not_stored", "sink db1-9", "firing", "warning"),
        ("not_stored", "sink db1-9", "resolved", "warning"),
    ]
    assert alerts[0].text == f"sink db1-9 stores nothing: {away}; what it has not read waits in Kafka"
    assert [
        one for second in (0, 10, 20, 30) for one in SinkMeta("x").look(second * S, away if second < 30 else "")
    ] == []
    repeated = Repeated()
    repeated.heard(alerts[:1])
    assert [one.status for one in repeated.look(alerts[0].time + SILENT_NS)] == ["resolved"], "a sink that is gone"
