"""Known-fatal lines: candidates one by one, cascades together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import FRAME, at, closed, fatal, healthy, known_fatal, named, new_view, run, summary, traceback

from schemas.results import Anomaly, Fatal
from streams.attempt_window import AttemptWindow
from streams.detectors.fatal_lines import FatalLines
from streams.lines.fatal import follow
from streams.view import AttemptView

RANKS = 8
OWN = traceback("ValueError: bad shard /data/shard_00045.bin")
CLOSED = traceback("RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:11662")
LATE = traceback("RuntimeError: [unbound_buffer.cc:129] Timed out waiting 25000ms for send operation to complete")


def printed(fatals: dict[int, list[Fatal]], start: float = 10, **fields: Any) -> AttemptWindow:
    return closed((summary(rank, start, fatals=fatals.get(rank, [])) for rank in range(RANKS)), start, **fields)


def found(*windows: AttemptWindow) -> list[Anomaly]:
    return run(FatalLines(), new_view(), [healthy(RANKS), *windows])[-1]


def line(text: str, second: float) -> Fatal:
    return known_fatal(text, at(second))


def test_a_candidate_is_the_suspect_and_the_cascades_are_its_victims() -> None:
    others = {rank: [line(CLOSED, 12)] for rank in range(RANKS) if rank != 6}
    own, cascade = found(printed(others | {6: [line(OWN, 13)]}))
    assert (named([own, cascade]), own.grounds, cascade.grounds) == ([[6], []], "own_error", "cascade")
    assert cascade.victims == [0, 1, 2, 3, 4, 5, 7]
    assert cascade.peers == "rank 6, 1 of 8, printed none of it in that window"
    assert (own.area, own.symptom, own.onset, own.suspects[0].node) == ("data", "crash", at(13), "node03")


def test_an_early_cascade_is_no_candidate() -> None:
    assert named(found(printed({2: [line(CLOSED, 11)]}))) == [[]]


def test_an_error_after_the_loss_of_a_peer_says_who_had_lost_one() -> None:
    after, before = [line(CLOSED, 12), line(OWN, 13)], [line(OWN, 12), line(CLOSED, 13)]
    own = [one for one in found(printed({1: after, 2: before, 3: [line(OWN, 13)]})) if one.grounds == "own_error"]
    assert (named(own), own[0].victims) == ([[1, 2, 3]], [1])


def test_an_error_is_a_caught_one_unless_its_rank_prints_it_from_where_its_program_begins() -> None:
    whole = traceback(
        "ValueError: bad shard /data/shard_00045.bin", '  File "t.py", line 9, in <module>\n    s()\n' + FRAME
    )
    (own,) = found(printed({1: [line(OWN, 12)], 2: [line(whole, 12)], 3: [line(OWN, 12), line(whole, 13)]}))
    assert {one.rank: one.kind for one in own.suspects} == {1: "caught", 2: "", 3: ""}


def test_only_late_peers_make_a_hang_any_lost_one_a_crash() -> None:
    assert [one.symptom for one in found(printed({2: [line(LATE, 11)], 3: [line(LATE, 12)]}))] == ["hang"]
    assert [one.symptom for one in found(printed({2: [line(LATE, 11)], 3: [line(CLOSED, 12)]}))] == ["crash"]


def test_the_same_error_of_all_ranks_is_one_finding_a_different_one_another() -> None:
    alike = {rank: [line(OWN, 12)] for rank in range(RANKS)}
    assert named(found(printed(alike))) == [list(range(RANKS))]
    other = line(traceback("KeyError: 'tokens'"), 12)
    assert sorted(named(found(printed({1: [line(OWN, 12)], 2: [other]})))) == [[1], [2]]


def test_the_layer_of_a_hardware_error_is_hardware() -> None:
    (one,) = found(printed({4: [line(traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered"), 12)]}))
    assert (one.layer, one.area) == ("hardware", "hardware")


def test_confirmations_and_advice_raise_nothing_and_name_nobody() -> None:
    own = line(OWN, 12)
    quiet = [msgspec.structs.replace(own, role=role) for role in ("confirmation", "advice")]
    assert found(printed(dict.fromkeys(range(RANKS), quiet))) == []
    assert found(printed({6: [own, *quiet], 3: quiet})) == found(printed({6: [own]}))


def test_a_code_comes_with_the_vendors_action_and_its_followers() -> None:
    fatals = [line("NVRM: Xid (PCI:0000:04:00): 79, pid=7, GPU has fallen off the bus", 12)]
    follow(fatals, "NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0x1")
    (one,) = found(printed({4: fatals}))
    assert (named([one]), one.layer) == ([[4]], "hardware")
    assert one.text.endswith("(the vendor says RESTART_BM; followed by Xid 154)")


def test_what_is_printed_around_the_owners_stop_belongs_to_it() -> None:
    term = traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15")
    assert found(printed({1: [line(OWN, 16)], 2: [line(term, 18)]}, stopped=at(17))) == []
    assert named(found(printed({1: [line(OWN, 11)]}, stopped=at(17)))) == [[1]]


def test_peers_that_go_away_after_the_training_are_no_loss() -> None:
    # Who exits last always prints this: rank 0 closes the store first.
    gone = "[rank3]:[W1129 18:15:22.525816018 TCPStore.cpp:125] [c10d] recvValue failed: failed to recv, got 0 bytes"
    assert fatal(gone) is not None
    done = healthy(RANKS, finished=at(9))
    windows = [done, printed({rank: [line(gone, 12)] for rank in range(1, RANKS)})]
    assert run(FatalLines(), new_view(), windows)[-1] == []


def test_nothing_fatal_is_nothing_found() -> None:
    assert found(printed({})) == []


def test_whether_training_is_done_is_asked_once_however_many_ranks_lose_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    # It is asked of all members: once a line of ten thousand ranks that would take minutes.
    asked = []
    monkeypatch.setattr(AttemptView, "finished", property(lambda view: bool(asked.append(view))))
    (cascade,) = found(printed({rank: [line(CLOSED, 12)] * 3 for rank in range(RANKS)}))
    assert (len(cascade.victims), len(asked)) == (RANKS, 2)
    assert cascade.peers == "0 of 8 ranks printed none of it in that window"
