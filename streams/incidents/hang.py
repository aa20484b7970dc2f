"""Hangs: whom stacks, dumps and ends single out while a job stands still, and why nobody is where they do not."""

from __future__ import annotations

from schemas.results import Anomaly, Area, Suspect
from streams.incidents.decision import Base, Decision, Reason, merged, ranks_of
from streams.incidents.situation import inexactness
from streams.printed_progress import PRINTED


def hang(anomalies: list[Anomaly], stalls: list[Anomaly], failures: list[Anomaly]) -> Decision:
    """The decision over a standstill that was there before the first of its ``failures``; ``stalls`` are not empty."""
    # What is seen once ranks fail or leave shows them leaving, not whom they had waited for.
    troubles = [*failures, *(one for one in anomalies if one.grounds == "cascade")]
    troubles = [one for one in troubles if not _waits_on(one, stalls)]
    trouble = min((one.onset - inexactness(one) for one in troubles), default=None)
    first = stalls[0].end
    # Counts that watchdogs print with the first failure are of before it, and never go back.
    before = [one for one in stalls if trouble is None or one.end <= max(trouble, first) or one.grounds in PRINTED]
    stacks = [one for one in before if one.detector == "stack_minority"]
    told = [one for one in before if one.detector == "collective_laggard"]
    dumps = [one for one in told if one.grounds not in PRINTED]
    printed = [one for one in told if one.grounds in PRINTED]
    groups = dumps if dumps and (dumps[-1].suspects or not printed) else printed
    base = Base.of(anomalies, stalls[0], symptom="hang")
    outside = [one for one in _apart_throughout(stacks) if one.rank not in _joined(groups)]
    behind = _behind(groups[-1], stacks) if groups else []
    gone = _left_early(anomalies, stalls[0]) if stacks or groups else []
    stopped = merged([one for one in before if one.grounds == "process_stopped"][-1:])
    kinds = [ranks_of(found) for found in (outside, behind, gone, stopped) if found]
    agreed = set.intersection(*kinds) if kinds else set()
    contradicted = _contradicted(dumps, printed) or (stacks and stacks[-1].suspects and not outside)
    if contradicted or (kinds and not agreed):
        return base.nobody(Reason.SOURCES_DISAGREE)
    area = stacks[-1].area if stacks else "unknown"
    whatever = _WHATEVER_STACKS_SAY.get(groups[-1].grounds) if groups else None
    order: list[tuple[list[Suspect], Reason, Area]] = [
        (outside, Reason.OUTSIDE_COMMUNICATION, area),
        (behind, whatever or Reason.NEVER_ENQUEUED, groups[-1].area if whatever else area),
        (stopped, Reason.PROCESS_STOPPED, "unknown"),
        (gone, Reason.LEFT_EARLY, "unknown"),
    ]
    for suspects, reason, side in order:
        if suspects:
            return base.named(reason, [one for one in suspects if one.rank in agreed], area=side)
    return _unnamed(base, stacks, groups)


def gainsaid(blamed: set[int | None], anomalies: list[Anomaly], stalls: list[Anomaly]) -> bool:
    """Whether a standstill shows that these have not begun it, or that others have; ``stalls`` are not empty.

    Who has joined all that is waited for came as far as its peers, whatever it printed on the way; so has who waits by
    its dump for somebody else, though it be not certain for whom.
    """
    told = hang(anomalies, stalls, [])
    latest = list({(one.detector, one.grounds): one for one in stalls}.values())
    others = ranks_of(told.suspects or merged(latest if told.reason is Reason.SOURCES_DISAGREE else []))
    others = others or ranks_of(_left_early(anomalies, stalls[0]))
    dumps = [one for one in stalls if one.detector == "collective_laggard" and one.grounds not in PRINTED]
    came = _joined(dumps) | (set(dumps[-1].victims) if dumps and dumps[-1].suspects else set())
    return (bool(others) and not others & blamed) or bool(blamed and blamed <= came)


def _waits_on(trouble: Anomaly, stalls: list[Anomaly]) -> bool:
    """Whether all who failed, or lost a peer, are seen by stacks to wait with their peers later: they have not left."""
    ranks = ranks_of(trouble.suspects) | set(trouble.victims)
    later = [one for one in stalls if one.detector == "stack_minority" and one.start > trouble.onset]
    return bool(ranks) and any(ranks <= set(one.victims) for one in later)


def _apart_throughout(stacks: list[Anomaly]) -> list[Suspect]:
    """Whom the latest stacks single out, in order of their windows; nobody where earlier ones point at others alone.

    Who has begun a standstill stands still from its onset on. So it is not who was seen waiting while stacks singled
    somebody out, and who was singled out before is among those of later. Information contradicts nothing: by it, who
    stood apart may only have had long work to do.
    """
    earlier = [one for one in stacks[:-1] if one.suspects and one.severity != "info"]
    waited = {rank for one in earlier for rank in one.victims}
    stayed = [suspect for one in stacks[-1:] for suspect in one.suspects if suspect.rank not in waited]
    return stayed if all(ranks_of(one.suspects) & ranks_of(stayed) for one in earlier) else []


def _contradicted(dumps: list[Anomaly], printed: list[Anomaly]) -> bool:
    """Whether printed counts name somebody else than dumps do, or somebody that by these has joined what is awaited."""
    if not dumps or not printed or "printed_perhaps" in (printed[-1].grounds, dumps[-1].grounds):
        return False
    named, told = ranks_of(printed[-1].suspects), ranks_of(dumps[-1].suspects)
    return (bool(told) and not named & told) or bool(named & _joined(dumps))


def _joined(groups: list[Anomaly]) -> set[int]:
    """Ranks that have joined all that anybody waits for: they hold nobody up, wherever their stacks stand.

    What waits for the device of its own rank need not look like it.
    """
    return set(groups[-1].victims) if groups and groups[-1].grounds in _ALL_JOINED else set()


_ALL_JOINED = frozenset({"none_completed", "one_unobserved", "some_unobserved"})
"""Grounds by which all whose dumps were seen have joined what they wait for."""


def _left_early(anomalies: list[Anomaly], stall: Anomaly) -> list[Suspect]:
    """Ranks that had ended before the job stood still, within the precision of both."""
    # The latest finding takes back what an earlier one said of ranks that were seen again.
    left = [one for one in anomalies if one.grounds == "left_early"][-1:]
    return merged([one for one in left if one.onset - one.precision_ns <= stall.onset + stall.precision_ns])


def _unnamed(base: Base, stacks: list[Anomaly], groups: list[Anomaly]) -> Decision:
    """Why nobody is named: what dumps show of groups says more than that all wait, unless somebody stands outside."""
    latest = [found[-1] for found in (groups, stacks) if found]
    if not latest:
        return base.unseen()
    unseen = set.intersection(*(set(one.unobserved) for one in latest))
    for one in latest:
        if one.grounds in _ONE_UNSEEN and len(unseen) == 1:
            return base.nobody(Reason.ONE_UNOBSERVED)
        if one.grounds in _NOBODY:
            return base.nobody(_NOBODY[one.grounds], area=one.area)
    return base.nobody(Reason.NOBODY_APART)


_ONE_UNSEEN = frozenset({"one_unsampled", "one_unobserved", "perhaps_unobserved"})
"""Grounds by which all that were observed wait."""
_NOBODY = {
    "unmatched": Reason.UNMATCHED,
    "none_completed": Reason.NONE_COMPLETED,
    "different_collectives": Reason.DIFFERENT_COLLECTIVES,
    "few_ahead": Reason.FEW_AHEAD,
    "outside_by_design": Reason.OUTSIDE_BY_DESIGN,
}
"""Grounds that explain why nobody is named."""
_WHATEVER_STACKS_SAY = {
    "out_of_order": Reason.OUT_OF_ORDER,
    "mismatched": Reason.MISMATCHED,
    "never_completed": Reason.NEVER_COMPLETED,
    "never_started": Reason.NEVER_STARTED,
    "printed_mismatched": Reason.MISMATCHED,
    "printed_never_completed": Reason.NEVER_COMPLETED,
}
"""Grounds of dumps of ranks that wait in communication like all others, so that no stack strikes them out."""


def _behind(group: Anomaly, stacks: list[Anomaly]) -> list[Suspect]:
    """Whom dumps single out, without those that never came to an operation and are shown waiting by a stack.

    A dump does not show every wait (a blocking send, a store). So of two without a stack either may wait; and where
    dumps show no sends, only the one counts that is left when stacks have struck out all others, and whose own stack
    was seen elsewhere: one without a stack may wait, too, for a rank that is no laggard by its dump.
    """
    certain = [one for one in group.suspects if group.grounds in _WHATEVER_STACKS_SAY and one.kind != "blocker"]
    perhaps = [one for one in group.suspects if one not in certain]
    waiting = set(stacks[-1].victims) if stacks else set()
    left = [suspect for suspect in perhaps if suspect.rank not in waiting]
    unseen = set(stacks[-1].unobserved) if stacks else set()
    if sum(suspect.rank in unseen for suspect in left) > 1:
        return certain
    if group.grounds in ("perhaps_waiting", "printed_perhaps"):
        alone = len(left) == 1 and bool(stacks) and left[0].rank not in unseen
        return [*certain, *left] if alone else certain
    return [suspect for suspect in group.suspects if suspect in certain or suspect in left]


GROUNDS = frozenset(
    {
        *_ALL_JOINED,
        *_ONE_UNSEEN,
        *_NOBODY,
        *_WHATEVER_STACKS_SAY,
        *PRINTED,
        "no_iteration",
        "outside_communication",
        "perhaps_outside",
        "several_outside",
        "all_in_communication",
        "never_enqueued",
        "perhaps_waiting",
        "process_stopped",
        "left_early",
    }
)
"""Grounds of what is found while a job stands still."""
