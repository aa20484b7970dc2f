"""What blame must know besides the anomalies, and whether a job has gone on after one of them."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly

SECOND = 1_000_000_000
STANDSTILL = frozenset({"no_iteration", "stack_minority", "collective_laggard", "stopped_process"})
"""Detectors that speak only while the job stands still."""
_MAY_PASS = frozenset({"own_error", "cascade", "unplaced_error", "unplaced_besides", "rank_fault", "node_fault"})
"""Grounds of what a job may live through."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What blame must know besides the anomalies. ``members`` maps rank to node; ``now`` is the window's end.

    ``iterated`` is when an iteration was last reported, ``step_ns`` how long one takes, ``silence_ns`` how long none
    must come for a standstill, ``exited`` has the times of ends with a failure, ``living`` who showed life within the
    last window, ``unobserved`` whose node's producer is silent as well, ``expected`` is how many ranks there should be.
    """

    members: dict[int, str]
    now: int
    window_ns: int
    knows_layout: bool
    iterated: int | None = None
    step_ns: int = 0
    silence_ns: int = 8 * SECOND
    exited: dict[int, int] = {}
    living: list[int] = []
    unobserved: list[int] = []
    finished: bool = False
    expected: int | None = None

    def survived(self, failure: Anomaly, anomalies: list[Anomaly]) -> bool:
        """Whether the job, or the rank, went on after an error.

        Iterations came when none could have been under way any more, while the rank had not ended; training came to
        its own end; or the rank was seen waiting with its peers after an iteration that followed the error.
        """
        if failure.grounds not in _MAY_PASS:
            return False
        ranks = {suspect.rank for suspect in failure.suspects if suspect.rank is not None}
        ends = [self.exited[rank] for rank in ranks if rank in self.exited]
        if self.finished and not ends:
            return True
        waiting = {
            rank
            for one in anomalies
            if one.detector in STANDSTILL and one.onset >= failure.onset and one.end > failure.end
            for rank in one.victims
        }
        if ranks and ranks <= waiting:
            return True
        if self.iterated is None or any(end <= self.iterated for end in ends):
            return False
        return self.iterated > failure.onset + inexactness(failure) + margin_ns(self.step_ns)


def margin_ns(step: int) -> int:
    """How long after an error an iteration that was under way may still be reported."""
    return 2 * max(step, SECOND)


def inexactness(trouble: Anomaly) -> int:
    """How far off a trouble may be when it is held against iterations and stalls (ns); cascades are taken as printed.

    Many ranks print those, and the first of all is not far off.
    """
    return 0 if trouble.grounds == "cascade" else trouble.precision_ns
