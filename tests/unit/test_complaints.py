"""What libraries log is said once a minute a kind, nothing is left out uncounted; lost connections are ours to tell."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from streams.complaints import DOUBT_S, MOST_KINDS, Connections, Seldom, complain_on


def record(message: str, at: float, name: str = "aiokafka") -> logging.LogRecord:
    made = logging.LogRecord(name, logging.ERROR, __file__, 1, message, (), None)
    made.created = at
    return made


def test_a_kind_is_said_once_a_minute_with_the_number_left_out() -> None:
    seldom = Seldom(60.0)
    said = [one for n in range(1_300) if seldom.filter(one := record("cannot connect to %s", n * 0.1))]
    assert [round(one.created) for one in said] == [0, 60, 120]
    assert [one.__dict__["more"] for one in said] == ["", *[" (and 599 more like this)"] * 2]


def test_kinds_are_told_apart_by_logger_and_text_and_a_clock_set_back_silences_nobody() -> None:
    seldom = Seldom(60.0)
    assert seldom.filter(record("a", 100.0)) and seldom.filter(record("b", 100.0))
    assert seldom.filter(record("a", 100.0, "other")) and not seldom.filter(record("a", 101.0))
    assert seldom.filter(record("a", 50.0))


def test_texts_without_end_take_no_memory_without_end() -> None:
    seldom = Seldom(60.0)
    assert all(seldom.filter(record(f"offset {n}", 0.0)) for n in range(3 * MOST_KINDS))
    assert len(seldom._said) <= MOST_KINDS


LOST = "Unable connect to node with id 1: [Errno 111] Connect call failed"
GROUP = "Group Coordinator Request failed: NodeNotReadyError: Attempt to send a request to node which is not ready"


def test_lost_connections_are_left_out_while_the_cluster_is_away_and_when_it_goes_and_comes() -> None:
    away = False
    connections = Connections(lambda: away)
    assert not any(connections.filter(record(LOST, at * 0.1)) for at in range(100)), "nobody has noticed yet"
    away = True
    assert not any(connections.filter(record(GROUP, 10 + at)) for at in range(600))
    away = False
    assert not any(connections.filter(record(LOST, 610 + at * 0.1)) for at in range(100)), "it is just back"


def test_lost_connections_that_go_on_while_the_cluster_answers_are_said() -> None:
    connections = Connections(lambda: False)
    said = [at for at in range(40) if connections.filter(record(LOST, float(at)))]
    assert said == list(range(int(DOUBT_S), 40))
    assert not connections.filter(record(LOST, 200.0)), "and forgotten after a while"


def test_whatever_else_is_wrong_is_said_also_while_the_cluster_is_away() -> None:
    connections = Connections(lambda: True)
    assert connections.filter(record("Topic t is not authorized for this client", 0.0))
    assert connections.filter(record("connection lost", 0.0, "another"))
    try:
        raise ConnectionError
    except ConnectionError:
        crash = record("Crashed reason=ConnectionError()", 0.0, "faust.transport.consumer")
        crash.exc_info = sys.exc_info()
    assert connections.filter(crash)


@pytest.fixture
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers = []
    yield
    root.handlers, root.level = before, level


@pytest.mark.usefixtures("_logging_as_it_was")
def test_what_is_said_is_a_line_with_its_source() -> None:
    said = io.StringIO()
    complain_on(said, lambda: True)
    logging.getLogger("aiokafka").error("Unable to update metadata from %s", [1])
    logging.getLogger("aiokafka.cluster").error("Topic %s is not authorized for this client", "t")
    assert said.getvalue() == "rankwatch: aiokafka.cluster: Topic t is not authorized for this client\n"
