"""Floods of fatal lines: what is kept of them tells all that there was, and the worker is not lost by them."""

from __future__ import annotations

import msgspec
from detection_support import known_fatal, traceback
from streams_support import CONFIG, lines, put, records, run, tick

from schemas.results import Window
from schemas.topics import TOPICS
from streams.log.memory import MemoryLog
from streams.stages.fatals import MOST_ALIKE, MOST_FATALS, Fatals

LOST = "RuntimeError: CUDA error: an illegal memory access was encountered"


def test_a_flood_of_errors_leaves_the_worker_its_summary() -> None:
    log = MemoryLog(1)
    text = "NCCL WARN socketProgress: Connection closed by remote peer node1<1>"
    put(log, lines([1] * 3 * MOST_ALIKE, text=text))
    tick(log, 12.5)
    run(log, CONFIG)
    (window,) = [one for one in records(log, "windows") if isinstance(one, Window)]
    assert (len(window.fatals), window.dropped) == (MOST_ALIKE, {"fatals": 2 * MOST_ALIKE})


def test_as_many_as_are_kept_are_half_a_record_at_most() -> None:
    longest = known_fatal(traceback("RuntimeError: " + "\U0001f600" * 600), 5)
    assert 2 * MOST_FATALS * len(msgspec.json.encode(longest)) < TOPICS["windows"].most_bytes


def test_one_line_over_and_over_leaves_room_for_others() -> None:
    fatals = Fatals()
    one, other = known_fatal(traceback(LOST), 5), known_fatal(traceback("AssertionError: a"), 6)
    elsewhere = msgspec.structs.replace(one, values={"pci": "0000:1b:00.0"})
    for fatal in [*[one] * 2 * MOST_FATALS, other, elsewhere]:
        fatals.add(fatal)
    assert fatals.kept == [one] * MOST_ALIKE + [other, elsewhere]
    assert fatals.left_out == 2 * MOST_FATALS - MOST_ALIKE


def test_many_kinds_of_lines_are_bounded_as_well() -> None:
    fatals, one = Fatals(), known_fatal(traceback(LOST), 5)
    for number in range(2 * MOST_FATALS):
        fatals.add(msgspec.structs.replace(one, signature=str(number)))
    assert (len(fatals.kept), fatals.left_out) == (MOST_FATALS, MOST_FATALS)
