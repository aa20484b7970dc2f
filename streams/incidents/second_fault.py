"""Whether a finding within a standstill that names somebody is another fault, as a pure decision with its reason.

What stops a job makes everything else stop or fail: timeouts, aborts, whoever is killed so that all end. None of that
is a second fault. But no standstill makes the kernel of another node report its hardware, or that it has killed a
process for want of memory; and who fails while all wait, before anybody has lost a peer, has not failed by waiting.
It stays evidence of the standstill, and is an incident beside it, so that neither hides the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from schemas.results import Anomaly
from streams.incidents.decision import LOSSES, LOST, Decision, ranks_of, victims_of
from streams.incidents.joining import nodes_in, ranks_in
from streams.incidents.situation import Situation, came_before, earliest

MAY_BE_SECOND = frozenset({"own_error", "rank_fault", "node_fault"})
"""Grounds of what may be another fault; a death alone may be one that people brought about to end the job."""
_FAILED = frozenset({"own_error", "own_death", "unplaced_error", "unplaced_besides"})
_TELLS_OF_WAITING = re.compile(
    r"time[sd]?[ -]?out|deadline|heartbeat|watchdog|\bhung\b|\bhangs?\b|\bstuck\b|\bstall|no progress|\bwait|\babort"
    r"|\bpeer|\bconnection|\bstore\b|\bbarrier\b|\binterrupt|\bsignal\b|\bterminat|\bclosed\b|\bpipe\b",
    re.I,
)


class Second(Enum):
    """Why a finding is another fault than the standstill it came in, or not."""

    OTHER_GROUNDS = "what it tells may be a consequence of anything"
    NOBODY_NAMED = "whom the standstill is of is not known, so it may be of that"
    ITS_FIRST = "the incident is known by it"
    ITS_PLACE = "it is of whom the standstill names, of that node, or of no known place"
    NOT_LATER = "it may have been there before the job stood still"
    REACTED = "others failed, lost peers or were told to end by then"
    OF_WAITING = "it tells of waiting, or of an end"
    LIVES_ON = "its process has not been seen to end yet"
    OF_ANOTHER_NODE = "another node reports its own hardware or memory"
    BEFORE_ANY_LOSS = "a rank of another node has failed of its own before anybody lost a peer"


SECOND = frozenset({Second.OF_ANOTHER_NODE, Second.BEFORE_ANY_LOSS})
"""Reasons for which it is another fault."""


def second_fault(found: Anomaly, among: Sequence[Anomaly], first: str, says: Decision, situation: Situation) -> Second:
    """Whether ``found`` is another fault than that of its incident, of which ``first`` is the first finding's id.

    ``among`` are all findings of the incident, ``says`` is what blame makes of them.
    """
    if found.grounds not in MAY_BE_SECOND or found.severity == "info":
        return Second.OTHER_GROUNDS
    if not says.suspects:
        return Second.NOBODY_NAMED
    if found.id == first:
        return Second.ITS_FIRST
    nodes, named = nodes_in([found]), {one.node for one in says.suspects}
    if not nodes or "" in named or nodes & named or ranks_in([found]) & ranks_of(says.suspects):
        return Second.ITS_PLACE
    if found.grounds == "own_error":
        return _of_its_own(found, among, says, situation)
    # A GPU does not fall off its bus because a job ends; what programs do wrong they may do while they are torn down.
    by_itself = found.area == "hardware" or (found.area == "memory" and not _lost(found, among))
    return Second.OF_ANOTHER_NODE if by_itself else Second.REACTED


def _lost(found: Anomaly, among: Sequence[Anomaly]) -> bool:
    """Whether those whom a finding names had lost a peer, or had been told to end, by then."""
    by_then = [one for one in among if not came_before(found, one)]
    return bool(ranks_in([found]) & victims_of(by_then, LOSSES))


def _of_its_own(found: Anomaly, among: Sequence[Anomaly], says: Decision, situation: Situation) -> Second:
    """The same of an error that a rank has printed: it must have ended that rank, soon and before anything else did."""
    if says.symptom != "hang" or earliest(found) <= says.onset + situation.silence_ns:
        return Second.NOT_LATER
    several = len(nodes_in([found])) > 1
    if several or any(_may_have_come_first(one, found) for one in among):
        return Second.REACTED
    if _TELLS_OF_WAITING.search(found.text):
        return Second.OF_WAITING
    ranks = ranks_in([found])
    # Where nothing is heard of anybody nothing is known of one.
    silent = bool(situation.living) and not ranks & {*situation.living, *situation.unobserved}
    gone = silent or ranks & situation.exited.keys()
    # What peers print at about that time may be told in the next window.
    settled = found.end + situation.window_ns <= situation.now <= found.end + situation.quiet_ns
    waited = bool(ranks & victims_of(among, LOST))
    return Second.BEFORE_ANY_LOSS if gone and settled and not waited else Second.LIVES_ON


def _may_have_come_first(one: Anomaly, found: Anomaly) -> bool:
    """Whether others had lost a peer or been told to end, or have failed on another node: then all of them react."""
    if one.grounds in LOSSES:
        return not came_before(found, one)
    elsewhere = not nodes_in([one]) or not nodes_in([one]) <= nodes_in([found])
    return one.grounds in _FAILED and elsewhere and not came_before(found, one)
