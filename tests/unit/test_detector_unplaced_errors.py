"""Errors of workers whose rank is not known: an incident that names nobody, instead of none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import at as fixed_at
from detection_support import closed, healthy, known_fatal, named, new_view, run, summary, traceback
from streams_support import Script, agent, at, node_of, records, worker, written_log
from streams_support import run as through

from schemas.events import Log
from schemas.identity import Identity
from schemas.results import Anomaly, Fatal, Incident
from streams.detectors.unplaced_errors import UnplacedErrors

OWN = traceback("ValueError: bad shard /data/shard_00045.bin")
CLOSED = traceback("RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:11662")


def found(*fatals: tuple[str, Fatal], **fields: Any) -> list[Anomaly]:
    window = closed((summary(rank, 10) for rank in range(4)), 10, unplaced=list(fatals), **fields)
    return run(UnplacedErrors(), new_view(), [healthy(4), window])[-1]


def line(text: str, second: float) -> Fatal:
    return msgspec.structs.replace(known_fatal(text, fixed_at(second)), process_type="trainer")


def test_each_error_is_a_finding_that_names_nobody() -> None:
    same = line(OWN, 12), line(OWN, 13)
    one, other = found(("node01", same[0]), ("node02", same[1]), ("", line(traceback("KeyError: 'x'"), 14)))
    assert named([one, other]) == [[], []]
    assert {one.grounds, other.grounds} == {"unplaced_error"}
    assert {one.onset, other.onset} == {fixed_at(12), fixed_at(14)}
    assert any("on node01, node02" in text for text in (one.text, other.text))


@pytest.mark.parametrize(
    ("by_ranks", "by_others", "grounds"),
    [(0, 2, "unplaced_error"), (1, 1, "unplaced_error"), (2, 2, "unplaced_error"), (1, 2, "unplaced_besides")],
)
def test_what_is_printed_oftener_than_by_known_ranks_is_others_as_well(
    by_ranks: int, by_others: int, grounds: str
) -> None:
    summaries = [summary(0, 10, fatals=[line(OWN, 12)] * by_ranks), summary(1, 10)]
    window = closed(summaries, 10, unplaced=[("node01", line(OWN, 12))] * by_others)
    (one,) = run(UnplacedErrors(), new_view(), [healthy(4), window])[-1]
    assert one.grounds == grounds


def test_the_loss_of_a_peer_says_nothing_without_its_rank() -> None:
    assert found(("node01", line(CLOSED, 12))) == []


def test_what_is_printed_as_the_owner_stops_the_job_belongs_to_the_stop() -> None:
    assert found(("node01", line(OWN, 12)), stopped=fixed_at(12.5)) == []


def unknown(node: str, kind: str = "trainer") -> Identity:
    return Identity(job="job", node=node, rank_reason="no label", process_type=kind)


def crash(said: Identity | None, kind: str = "") -> list[Incident]:
    script = Script()
    script.start(4)
    script.train(4, 1, 20)
    script.alive(4, 0, 20)
    if said is not None:
        event = Log(time=at(20.6), stream="", text=OWN, process_type=kind)
        script.send(said, event)
    for rank in (0, 1, 3):
        script.log(worker("job", rank), 21, CLOSED)
    script.alive(4, 20, 60)
    log = written_log(script.recording)
    through(log)
    return list({one.id: one for one in records(log, "incidents")}.values())


@pytest.mark.parametrize("kind", ["trainer", "dataloader"])
def test_a_crash_whose_cause_nobody_can_place_is_ambiguous(kind: str) -> None:
    (incident,) = crash(unknown(node_of(2)), kind)
    assert (incident.verdict, incident.suspects, incident.severity) == ("ambiguous", [], "critical")
    assert incident.reason.startswith("an error was printed by a worker whose rank is not known")
    assert any("bad shard" in one.text for one in incident.evidence)


@pytest.mark.parametrize(
    "said, kind",
    [(agent("job", node_of(2)), ""), (unknown(node_of(2)), "launcher"), (unknown("elsewhere"), "trainer")],
)
def test_a_launchers_word_and_another_nodes_place_nothing(said: Identity, kind: str) -> None:
    (incident,) = crash(said, kind)
    assert incident.reason == crash(None)[0].reason


def test_a_job_of_which_no_rank_is_known_goes_on_after_an_error() -> None:
    script = Script()
    for step in range(60):
        line = f" iteration {step:8d}/     500 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.2E+01 |"
        script.send(unknown(""), Log(time=at(step), stream="", text=line, process_type="trainer"))
    script.send(unknown(""), Log(time=at(20.7), stream="", text=OWN, process_type="trainer"))
    log = written_log(script.recording)
    through(log)
    latest = list({one.id: one for one in records(log, "incidents")}.values())
    assert [(one.severity, one.status) for one in latest] == [("info", "resolved")]


@pytest.mark.parametrize(
    "texts, incidents",
    [
        ([CLOSED], 1),
        (["ECONNRESET: Connection closed by peer"], 0),
        (["trainer: training finished after 20 iterations", CLOSED], 0),
    ],
)
def test_a_job_of_which_no_rank_is_known_and_all_lost_their_peers_has_failed(texts: list[str], incidents: int) -> None:
    script = Script()
    for second in range(20):
        script.send(unknown(""), Log(time=at(second), stream="", text=f"step {second}", process_type="trainer"))
    for place, text in enumerate(texts):
        script.send(unknown(""), Log(time=at(20.6 + place / 10), stream="", text=text, process_type="trainer"))
    log = written_log(script.recording)
    through(log)
    latest = list({one.id: one for one in records(log, "incidents")}.values())
    assert [(one.verdict, one.suspects, one.onset, one.severity) for one in latest] == [
        ("ambiguous", [], at(20.6), "critical")
    ] * incidents


def test_a_job_of_which_no_rank_is_known_has_an_incident_all_the_same() -> None:
    script = Script()
    for second in range(20):
        script.send(unknown(""), Log(time=at(second), stream="", text=f"step {second}", process_type="trainer"))
    script.send(unknown(""), Log(time=at(20.6), stream="", text=CLOSED, process_type="trainer"))
    script.send(unknown(""), Log(time=at(20.7), stream="", text=OWN, process_type="trainer"))
    log = written_log(script.recording)
    through(log)
    latest = list({one.id: one for one in records(log, "incidents")}.values())
    assert [(one.symptom, one.verdict, one.suspects, one.onset) for one in latest] == [
        ("crash", "ambiguous", [], at(20.7))
    ]
