"""Early notices: on hard evidence of every family, once an attempt and rule, never on chatter or an asked-for end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from predefined_samples import LINES

from schemas.events import Batch, Event, Log
from schemas.identity import NO_JOB, Identity
from schemas.ids import notification_key
from schemas.results import Notice
from streams.lines.facts import facts_of_all
from streams.stages.notices import AGAIN_NS, KEPT_NS, MOST_RULES, REMEMBERED, Notices, NoticesState
from streams.state import written

SECOND = 1_000_000_000
PRESENT = 10_000 * SECOND
RAISED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    f()\n'
OWN = RAISED + "ValueError: negative length"
TIMEOUT = "[rank3]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81, OpType=ALLREDUCE)"
LOST = "socketProgress: NCCL WARN Connection closed by remote peer node00<4711>"
XID = "NVRM: Xid (PCI:0000:0f:00): 79, pid=7, name=python3, GPU has fallen off the bus."
KILLED = "Out of memory: Killed process 4417 (python3) total-vm:1kB"
FAILED = "failed (exitcode: {}) local_rank: 0 (pid: 1000) of binary: python"
STOPPED = "Received 15 death signal, shutting down workers"
TIMEOUTS = {"gloo.timeout", "nccl.watchdog_timeout", "nccl.watchdog_failure", "nccl.watchdog_exception"}
TIMEOUTS |= {"nccl.heartbeat_timeout"}
DONE = "[after training is done] datetime: 2026-11-29 12:00:00"


def rank(number: int = 0, **more: Any) -> Identity:
    return Identity(**{"job": "job", "node": "n0", "rank": number, **more})


def node(kind: str, **more: Any) -> Identity:
    return Identity(**{"job": "job", "node": "n0", "rank_reason": "a node", "process_type": kind, **more})


class Story:
    def __init__(self) -> None:
        self.notices = Notices()
        self.seq = 0
        self.present = PRESENT

    def says(self, who: Identity, *texts: str, at: int = 1) -> list[Notice]:
        self.seq += 1
        events: list[Event] = [Log(time=at * SECOND, stream="stderr", text=text) for text in texts]
        batch = Batch(producer="p", boot="b", seq=self.seq, identity=who, events=events)
        found = self.notices.of_batch(batch, facts_of_all(list(texts)), self.present)
        self.notices = Notices(msgspec.json.decode(written(self.notices.state), type=NoticesState))
        return found


@pytest.mark.parametrize(
    ("name", "who", "text", "rule"),
    [
        ("an error of a rank's own", rank(), OWN, "exception"),
        ("a timeout that any rank prints", rank(), TIMEOUT, "collective_timeout"),
        ("a rank that an exception of a lost peer ends", rank(), RAISED + "ConnectionResetError: gone", "peer_lost"),
        ("an error of a worker whose rank nobody knows", node("trainer"), OWN, "exception"),
        ("a GPU that the kernel reports", node("kernel"), XID, "gpu_hardware"),
        ("a kill for want of memory", node("kernel"), KILLED, "out_of_memory"),
        ("a worker that failed", node("launcher"), FAILED.format(1), "worker_ended"),
        ("a worker that was killed", node("launcher"), FAILED.format(-9), "worker_ended"),
        ("a library's complaint of a lost peer", rank(), LOST, None),
        ("what passes the error of another on", node("launcher"), OWN, None),
        ("a worker that was told to end", node("launcher"), FAILED.format(-15), None),
        ("a worker that was told to end, by its error", rank(), RAISED + "SignalException: got signal: 15", None),
        ("a node that belongs to no job", node("kernel", job=NO_JOB), XID, None),
        ("an Xid that the vendor says to ignore", node("kernel"), XID.replace(": 79", ": 63"), None),
        ("what is no trouble", rank(), "iteration 3 of 10, ERROR rate 0", None),
    ],
)
def test_hard_evidence_of_every_kind_is_said_and_nothing_else(
    name: str, who: Identity, text: str, rule: str | None
) -> None:
    found = Story().says(who, text)
    assert [one.rule for one in found] == ([] if rule is None else [rule]), name
    for one in found:
        assert one.notification_key == notification_key("job", "0")
        assert one.text.endswith("attribution pending") and "n0" not in one.text and "rank" not in one.text


@pytest.mark.parametrize(("template", "role", "text"), [sample[:3] for sample in LINES], ids=[one[0] for one in LINES])
def test_each_family_of_the_field_is_said_by_its_role(template: str, role: str, text: str) -> None:
    found = Story().says(node("kernel") if template.startswith(("xid.", "host.")) else rank(), text)
    waits_in_vain = template in TIMEOUTS
    assert bool(found) == (role == "candidate" or waits_in_vain)


def test_a_thousand_ranks_that_print_a_timeout_are_one_notice() -> None:
    story = Story()
    found = [one for number in range(1000) for one in story.says(rank(number), TIMEOUT, TIMEOUT)]
    assert [one.rule for one in found] == ["collective_timeout"]


def test_a_rule_speaks_again_after_a_while_and_another_one_at_once() -> None:
    story, later = Story(), AGAIN_NS // SECOND
    assert len(story.says(rank(), OWN, at=1)) == 1
    assert len(story.says(rank(1), OWN, at=later)) == 0
    assert len(story.says(rank(1), TIMEOUT, at=later)) == 1
    assert len(story.says(rank(1), OWN, at=later + 1)) == 1
    assert len(story.says(rank(attempt="1"), OWN, at=later + 2)) == 1, "each attempt is an alert of its own"


def test_what_comes_from_the_future_silences_nobody() -> None:
    story = Story()
    (far,) = story.says(rank(), OWN, at=9_000_000_000)
    assert far.time == PRESENT
    assert len(story.says(rank(), OWN, at=(PRESENT + AGAIN_NS) // SECOND)) == 0


def test_an_attempt_has_few_rules_and_few_attempts_are_remembered() -> None:
    story = Story()
    texts = [text for _, role, text, _ in LINES if role == "candidate"]
    assert len({one.rule for text in texts for one in Story().says(node("kernel"), text)}) > MOST_RULES
    assert len(story.says(node("kernel"), *texts)) <= MOST_RULES
    for number in range(REMEMBERED + 10):
        story.says(rank(job=f"job{number}"), OWN)
        if number % 500 == 0:
            assert len(story.notices.state.attempts) <= REMEMBERED


def test_what_a_node_says_is_of_the_newest_attempt_that_ranks_have_told() -> None:
    story = Story()
    story.says(rank(attempt="2"), "hello")
    story.says(rank(attempt="10"), "hello")
    (notice,) = story.says(node("kernel", attempt="0"), XID)
    assert (notice.attempt, notice.notification_key) == ("10", notification_key("job", "10"))
    (later,) = story.says(node("kernel", attempt="11"), XID)
    assert later.attempt == "11"


def test_worker_groups_share_the_alert_of_their_attempt() -> None:
    story = Story()
    (notice,) = story.says(rank(group="actor", attempt="1"), OWN)
    assert notice.notification_key == notification_key("job", "1")
    assert story.says(rank(group="critic", attempt="1"), OWN) == []


@pytest.mark.parametrize(("who", "text"), [(node("launcher"), STOPPED), (rank(), DONE)])
def test_peers_that_go_away_once_all_is_over_are_no_evidence_but_an_own_error_is(who: Identity, text: str) -> None:
    story = Story()
    story.says(who, text)
    gone = RAISED + "ConnectionResetError: gone"
    assert story.says(rank(1), gone) == []
    assert story.says(node("launcher"), FAILED.format(1)) == []
    assert len(story.says(rank(1), OWN)) == 1
    assert len(story.says(rank(1, attempt="1"), gone)) == 1, "the next attempt is another story"


def test_attempts_of_which_nothing_is_heard_are_forgotten() -> None:
    story = Story()
    for number in range(50):
        story.present = PRESENT + number * 60 * SECOND
        story.says(rank(job="job", attempt=str(number)), OWN, DONE)
        story.says(rank(job=f"job{number}"), OWN)
        assert len(story.notices.state.attempts) <= 2 * (KEPT_NS // (60 * SECOND) + 2)
        assert len(story.notices.state.newest) <= KEPT_NS // (60 * SECOND) + 3
