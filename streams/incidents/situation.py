"""What blame must know besides the anomalies: how long findings stand, whether a job has gone on after an error."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly
from streams.alike import NEAR_STEPS
from streams.falls import Fall
from streams.incidents.decision import LOST, most, ranks_of, victims_of
from streams.regular_lines import REACHES_NS, Regular, going_on, regular_until, went_on
from streams.rhythm import OVERDUE_PAUSES, Rhythm

SECOND = 1_000_000_000
STANDSTILL = frozenset({"no_iteration", "stack_minority", "collective_laggard", "stopped_process"})
"""Detectors that speak only while the job stands still."""
QUIET_WINDOWS = 6
"""For so many windows what was found stands while nothing more is heard of it."""
ONE_LOOK = 5
"""What a single look at a job found, as traced steps and profiles, stands for so many times as long."""
_MAY_PASS = frozenset(
    {"own_error", "cascade", "unplaced_error", "unplaced_besides", "rank_fault", "node_fault", "exit_code"}
)
"""Grounds of what a job may live through."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What blame must know besides the anomalies. ``members`` maps rank to node; ``now`` is the window's end.

    ``iterated`` is when an iteration was last reported, ``step_ns`` how long one takes, ``silence_ns`` how long none
    must come for a standstill, ``exited`` has the times of ends with a failure, ``living`` who showed life within the
    last window, ``seen`` when each last did, ``lapsed`` whose process was looked at regularly and no longer is seen,
    ``watched`` when those that are suspected were last seen by such a look, ``unobserved`` whose node's producer is
    silent as well, ``ended`` when the attempt was told to end or gave way to the next, ``superseded`` when it did the
    latter, ``expected`` is how many ranks there should be, ``timed`` whether most ranks say how long their own work
    takes. ``regular`` are the lines that the job prints in a rhythm, ``spoke`` when, and how regularly, ranks that are
    suspected print anything, ``repeated`` when they last printed what they had printed before, ``told`` the end of the
    window in which they last said how long their own work takes. ``leading`` is whether steps are held up by one rank
    first, whose timers may differ too little, ``led_within`` whether within one in which it may wait for others.
    ``working`` is when ports were found to work again, by node and device. ``beside``: the incident is of what came
    while the job already stood still for another. ``falls`` are where the numbers of iterations fell back, ``named``
    the ranks that the incident names so far.
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
    seen: dict[int, int] = {}
    lapsed: list[int] = []
    watched: dict[int, int] = {}
    unobserved: list[int] = []
    finished: bool = False
    ended: int | None = None
    superseded: int | None = None
    expected: int | None = None
    timed: bool = False
    regular: dict[str, Regular] = {}
    spoke: dict[int, Rhythm] = {}
    repeated: dict[int, int] = {}
    told: dict[int, int] = {}
    leading: bool = False
    led_within: bool = False
    working: dict[tuple[str, str], int] = {}
    beside: bool = False
    falls: list[Fall] = []
    named: frozenset[int] = frozenset()

    @property
    def unheard(self) -> int:
        """How many ranks there should be of which nothing was ever heard."""
        return len(set(range(self.expected or 0)).difference(self.members))

    def near(self, one: int, other: int) -> bool:
        """Whether two detectors may date the same change so: each needs some steps to see it."""
        return abs(one - other) <= max(self.quiet_ns, NEAR_STEPS * self.step_ns)

    @property
    def quiet_ns(self) -> int:
        """How long what was found stands: a detector judges no more often than iterations are reported."""
        return max(QUIET_WINDOWS * self.window_ns, self.silence_ns)

    def standing(self, findings: list[Anomaly], among: list[Anomaly], longer: int = 1) -> list[Anomaly]:
        """Those of the findings that are not too old, held against the newest finding of the incident.

        ``longer`` is for findings of single looks at a job, which stand for so many times as long.
        """
        oldest = max((one.end for one in among), default=0) - longer * self.quiet_ns
        return [one for one in findings if one.end >= oldest]

    def by_timers(self, findings: list[Anomaly], among: list[Anomaly]) -> list[Anomaly]:
        """Those that stand, and those that nothing could take back: that a rank tells nothing more acquits nobody."""
        standing = self.standing(findings, among)
        left = [one for one in findings if one not in standing and self._is_silent_since(one)]
        return [*standing, *(one for one in left if self._is_slower_since(one, among))]

    def of_looks(self, findings: list[Anomaly], among: list[Anomaly]) -> list[Anomaly]:
        """The same of single looks: older ones stand as long as the job, and where no timers could show otherwise."""
        standing = self.standing(findings, among, ONE_LOOK)
        return standing or [one for one in findings if not self.timed and self._is_slower_since(one, among)]

    def _is_slower_since(self, one: Anomaly, among: list[Anomaly]) -> bool:
        """Whether the job has never come back to its level since before a finding."""
        shifts = self.standing([other for other in among if other.grounds == "job_shift"], among)
        return bool(shifts) and max(shifts, key=lambda other: (other.end, other.onset)).onset <= one.end

    def _is_silent_since(self, one: Anomaly) -> bool:
        """Whether all whom a finding tells have not said since how long their own work takes."""
        ranks = [suspect.rank for suspect in one.suspects if suspect.rank is not None]
        return bool(ranks) and all(rank in self.told and self.told[rank] <= one.end + self.window_ns for rank in ranks)

    def run_to(self, last: Anomaly, findings: list[Anomaly], longer: int = 1) -> list[Anomaly]:
        """The findings that lead to this one without a gap: of the same ranks or, where it tells none, grounds."""
        ranks = ranks_of(last.suspects)
        alike = [one for one in findings if (ranks & ranks_of(one.suspects) if ranks else one.grounds == last.grounds)]
        run: list[Anomaly] = []
        for one in sorted(alike, key=lambda one: one.end, reverse=True):
            if one.end > last.end or (run and one.end < run[-1].end - longer * self.quiet_ns):
                continue
            run.append(one)
        return run

    def survived(self, failure: Anomaly, anomalies: list[Anomaly]) -> bool:
        """Whether the job, or the rank, went on after an error.

        Iterations came when none could have been under way any more, while the rank had not ended, and not from a lower
        number again, as once the job has begun anew; where none are printed, all that was regularly printed until then
        did; training came to its own end, and nobody waited in vain after that; or the rank was seen waiting with its
        peers after an iteration that followed the error.
        """
        if failure.grounds not in _MAY_PASS:
            return False
        ranks = {suspect.rank for suspect in failure.suspects if suspect.rank is not None}
        ends = [self.exited[rank] for rank in ranks if rank in self.exited and not self._began_since(rank, failure)]
        if self.finished and not ends and not self._waits_for_its_end(failure):
            return True
        if ranks and ranks <= _seen_waiting(failure, anomalies):
            return True
        if self.iterated is None:
            return not ends and self._lines_went_on(failure, ranks)
        if any(end <= self.iterated for end in ends) or self.iterated <= _by_then(failure) + margin_ns(self.step_ns):
            return False
        told = bool(ranks & self.named) or most(self.members.keys(), victims_of(anomalies, LOST))
        return not self.began_anew(earliest(failure), _by_then(failure), told=told)

    def began_anew(self, since: int, by_then: int, *, told: bool) -> bool:
        """Whether the first iterations after what was between the two times (ns) came again from a lower number.

        Where that may have been the end of an epoch it counts only if something else ``told`` that the job has failed.
        """
        by_then += margin_ns(self.step_ns)
        return any(fall.since <= by_then and fall.time > since and (told or fall.is_certain) for fall in self.falls)

    def _began_since(self, rank: int, failure: Anomaly) -> bool:
        """Whether the job has begun anew between the end of a rank and a failure: then another process has failed."""
        return any(self.exited[rank] < one.time <= earliest(failure) and one.is_certain for one in self.falls)

    def _waits_for_its_end(self, failure: Anomaly) -> bool:
        """Whether ranks have waited in vain after the last iteration: then training is done, and the job is not."""
        waited = failure.grounds == "cascade" and failure.symptom == "hang"
        return waited and self.iterated is not None and failure.onset > self.iterated + margin_ns(self.step_ns)

    def _lines_went_on(self, failure: Anomaly, ranks: set[int]) -> bool:
        """Whether the job's lines went on after a failure, and its ranks' own unless they were silent before."""
        since, by_then = failure.onset - inexactness(failure), _by_then(failure)
        told = [self.spoke[rank].last for rank in ranks if rank in self.spoke]
        if any(since - REACHES_NS <= time <= by_then + REACHES_NS for time in told):
            return False
        return went_on(regular_until(self.regular, since), by_then)

    def may_go_on(self, failure: Anomaly, rank: int | None) -> bool:
        """Whether nothing shows yet that a failure has stopped its rank, or else its job.

        What came regularly until then has not failed to come: lines of the rank's own where it prints any, else
        iterations, or what others print. Where nothing came any more already, nothing has failed to come.
        """
        if self.beside:
            return True
        own = self.spoke.get(-1 if rank is None else rank, Rhythm())
        if own.earlier and own.last >= earliest(failure) - OVERDUE_PAUSES * max(own.pause, own.earlier):
            return not own.overdue(self.now)
        if self.iterated is not None:
            return self.now < self.iterated + self.silence_ns
        return going_on(regular_until(self.regular, earliest(failure)), self.now)


TOGETHER_NS = 2 * SECOND
"""What two clocks tell to be no further apart has no order."""
HARDWARE_STATE = "hardware_state"
"""The detector whose findings lie between two samples: the last that was good, and the first that was not."""
COLLECTED_NS = 30 * SECOND
"""How old what is sampled may be: exporters show what they collected last (dcgm-exporter by default each 30 s)."""


def earliest(one: Anomaly) -> int:
    """The earliest time at which it may have been (ns)."""
    return one.onset - one.precision_ns


def latest(one: Anomaly) -> int:
    """The latest time at which it may have been (ns); what was sampled had happened by then."""
    return one.onset if one.detector == HARDWARE_STATE else one.onset + one.precision_ns


def came_before(one: Anomaly, other: Anomaly) -> bool:
    """Whether ``one`` certainly came before ``other``; within their precision, and two seconds, there is no order.

    What was sampled may have been there before the last sample that was good, by as much as its exporter lags; of two
    that were sampled both may.
    """
    lags = other.detector == HARDWARE_STATE and one.detector != HARDWARE_STATE
    return latest(one) + TOGETHER_NS < earliest(other) - (COLLECTED_NS if lags else 0)


def _seen_waiting(failure: Anomaly, anomalies: list[Anomaly]) -> set[int]:
    """The ranks that were seen waiting with their peers after an iteration that followed an error."""
    later = [one for one in anomalies if one.onset >= failure.onset and one.end > failure.end]
    return {rank for one in later if one.detector in STANDSTILL for rank in one.victims}


def _by_then(failure: Anomaly) -> int:
    """The time from which on the failure is there for certain; cascades are taken as printed."""
    return min(latest(failure), failure.onset + inexactness(failure))


def settled_by(onset: int, anomalies: list[Anomaly]) -> int:
    """The time (ns) from which on what an incident with this onset is of is there for certain."""
    return max((_by_then(one) for one in anomalies if one.onset == onset), default=onset)


def margin_ns(step: int) -> int:
    """How long after an error an iteration that was under way may still be reported."""
    return 2 * max(step, SECOND)


def inexactness(trouble: Anomaly) -> int:
    """How far off a trouble may be when it is held against iterations and stalls (ns); cascades are taken as printed.

    Many ranks print those, and the first of all is not far off.
    """
    return 0 if trouble.grounds == "cascade" else trouble.precision_ns
