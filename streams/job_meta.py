"""What one job's windows show of the pipeline: producers that fell silent, one or all, clocks ahead, lines left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from schemas.identity import NO_JOB
from schemas.meta import MetaAlert
from schemas.results import Window
from streams.meta import SECOND, Alerts, AlertsState, Condition, Rule

SILENT_NS = 30 * SECOND
"""How long the other nodes of a job must have gone on without one until its producer counts as silent."""
GAPS = 3
"""Or so many times as long as the longest pause that this producer has made before."""
LONGEST_GAP_NS = 600 * SECOND
MOST_NODES = 4096
"""Nodes of a job whose producers are followed."""
SKEWED_SHARE = 0.5
"""The share of a node's workers of whom events were re-timed from which the node's clock counts as wrong."""
UNPARSED_SHARE = 0.2
UNPARSED_LEAST = 100
"""Of so many lines of a window at least, the share whose shapes there was no room for."""

SILENT = Rule("warning", 1, 2)
SKEW = Rule("warning", 3, 6)
UNPARSED = Rule("warning", 3, 6)


class Heard(msgspec.Struct, array_like=True):
    """The end (ns) of the last window in which a node was heard, and the longest pause between two such windows."""

    last: int
    gap: int = 0

    def hear(self, end: int) -> None:
        """Take in that it was heard in the window that ends at ``end``."""
        self.gap = min(max(self.gap, end - self.last), LONGEST_GAP_NS)
        self.last = end


class JobMetaState(msgspec.Struct, kw_only=True):
    """What is carried from window to window; ``nodes`` are those whose producers have sent heartbeats.

    ``heard`` is when any of them was, null while none has ever sent a heartbeat.
    """

    cluster: str = ""
    nodes: dict[str, Heard] = {}
    heard: Heard | None = None
    silent: AlertsState = msgspec.field(default_factory=AlertsState)
    all_silent: AlertsState = msgspec.field(default_factory=AlertsState)
    skew: AlertsState = msgspec.field(default_factory=AlertsState)
    unparsed: AlertsState = msgspec.field(default_factory=AlertsState)


class JobMeta:
    """The alerts about the pipeline that the windows of ``job`` give rise to."""

    def __init__(self, job: str, state: JobMetaState) -> None:
        self.state = state
        self._job = job
        self._silent = Alerts("producer_silent", SILENT, job, state.silent)
        self._all_silent = Alerts("job_silent", SILENT, job, state.all_silent)
        self._skew = Alerts("skew", SKEW, job, state.skew)
        self._unparsed = Alerts("unparsed", UNPARSED, job, state.unparsed)

    def close(
        self,
        end: int,
        summaries: Sequence[Window],
        left: Callable[[], set[str]],
        runs: Callable[[], bool],
        *,
        unavailable: bool,
    ) -> list[MetaAlert]:
        """What the window that ends at ``end`` says. ``left`` are the nodes that the job no longer runs on.

        ``runs`` is whether the job is at work and nothing has told its end, so that it should be heard.
        ``unavailable``: some partition was left out of the window, so who is not in it may have spoken.
        """
        state = self.state
        state.cluster = max((one.identity.cluster for one in summaries), default="") or state.cluster
        self._hear(end, summaries, unavailable=unavailable)
        # Who is silent in a window that some partition was left out of, or heard again, is not known.
        said = [] if unavailable else [*self._silence(end, left), *self._silence_of_all(end, runs)]
        said += self._skew.close(end, state.cluster, self._skews(end, summaries))
        return said + self._unparsed.close(end, state.cluster, self._left_out(end, summaries))

    def end(self, end: int) -> list[MetaAlert]:
        """The job is forgotten: what fires is over."""
        why = f"nothing more is heard of job {self._job}"
        return [
            alert
            for alerts in (self._silent, self._all_silent, self._skew, self._unparsed)
            for alert in alerts.end_all(end, self.state.cluster, why)
        ]

    def _subject(self, node: str) -> str:
        return f"{self._job}|{node}"

    def _hear(self, end: int, summaries: Sequence[Window], *, unavailable: bool) -> None:
        """Whatever comes from a node shows that its producer lives; only one that sends heartbeats is expected to."""
        nodes = self.state.nodes
        if self._job == NO_JOB:
            return  # an idle node is idle until some job runs on it
        heard = {one.identity.node for one in summaries}
        for node in sorted({one.identity.node for one in summaries if one.heartbeats} - nodes.keys() - {""}):
            if len(nodes) < MOST_NODES:
                nodes[node] = Heard(end)
        for node, known in nodes.items():
            if node in heard:
                known.hear(end)
            elif unavailable:
                known.last = end
        if nodes and self.state.heard is None:
            self.state.heard = Heard(end)
        elif self.state.heard is not None and summaries:
            self.state.heard.hear(end)
        elif self.state.heard is not None and unavailable:
            self.state.heard.last = end

    def _silence(self, end: int, left: Callable[[], set[str]]) -> list[MetaAlert]:
        """Producers that say nothing more although others of the job's have gone on since."""
        nodes = self.state.nodes
        latest = sorted((known.last for known in nodes.values()), reverse=True)[:2]
        silent = [] if len(latest) < 2 else [node for node in nodes if _is_silent(nodes[node], latest[0])]
        said: list[MetaAlert] = []
        gone = left() & set(silent) if silent else set()
        if gone:
            for node in gone:
                del nodes[node]
            why = f"job {self._job} no longer runs there"
            said += self._silent.end(end, self.state.cluster, [self._subject(node) for node in gone], why)
        others = len(nodes) - len(set(silent) - gone)
        found = [
            Condition(
                self._subject(node),
                node in silent,
                known.last,
                f"the producer on {node} has said nothing of job {self._job} for {(end - known.last) // SECOND} s, "
                f"while {_producers(others)}: what happens there is not seen",
                f"the producer on {node} is heard again",
            )
            for node, known in sorted(nodes.items())
            if node in silent or (known.last == end and self._silent.follows(self._subject(node)))
        ]
        return said + self._silent.close(end, self.state.cluster, found)

    def _silence_of_all(self, end: int, runs: Callable[[], bool]) -> list[MetaAlert]:
        """That of a job at work nothing at all is heard any more, while windows close: time goes on without it.

        The end of a job is silent, too. So nothing is said where anything has told that it ends, or that it has failed.
        """
        heard, job = self.state.heard, self._job
        if heard is None:
            return []
        silent, at_work = _is_silent(heard, end), runs()
        if self._all_silent.follows(job) and not at_work and heard.last != end:
            why = f"job {job} is over, by all that is known of it"
            return self._all_silent.end(end, self.state.cluster, [job], why)
        bad = silent and at_work
        if not bad and (heard.last != end or not self._all_silent.follows(job)):
            return []
        text = (
            f"job {job} is silent: {_from_any(len(self.state.nodes))} nothing was heard of it for "
            f"{(end - heard.last) // SECOND} s, and nothing has told that it ends; what happens in it is not seen, "
            "and what is open of it stays open"
        )
        found = Condition(job, bad, heard.last, text, f"job {job} is heard again")
        return self._all_silent.close(end, self.state.cluster, [found])

    def _skews(self, end: int, summaries: Sequence[Window]) -> list[Condition]:
        """Nodes of whose workers many have events that lie ahead of time, or that come behind their windows."""
        workers: dict[str, list[Window]] = {}
        for one in summaries:
            workers.setdefault(one.identity.node, []).append(one)
        found = []
        for node, told in sorted(workers.items()):
            ahead = sum("retimed" in one.dropped for one in told)
            late = sum("late" in one.dropped for one in told)
            if ahead or late or self._skew.follows(self._subject(node)):
                bad = max(ahead, late) >= SKEWED_SHARE * len(told)
                text = _skewed(node or "an unknown node", ahead, late, len(told), self._job)
                over = f"events of {node or 'an unknown node'} come in time again"
                found.append(Condition(self._subject(node), bad, end, text, over))
        return found

    def _left_out(self, end: int, summaries: Sequence[Window]) -> list[Condition]:
        lines = sum(one.log_records for one in summaries)
        unused = sum(one.dropped.get("signatures", 0) for one in summaries)
        if not lines:
            return []
        bad = lines >= UNPARSED_LEAST and unused > UNPARSED_SHARE * lines
        text = f"of {lines} lines of job {self._job} in a window {unused} were of more shapes than there is room for"
        return [Condition(self._job, bad, end, text, f"the lines of job {self._job} are taken in again")]


def _is_silent(heard: Heard, latest: int) -> bool:
    return latest - heard.last >= max(SILENT_NS, GAPS * heard.gap)


def _skewed(node: str, ahead: int, late: int, workers: int, job: str) -> str:
    if ahead >= late:
        return (
            f"the clock of {node} runs ahead: of {ahead} of its {workers} workers in job {job} events came from the "
            "future and were taken for those of now"
        )
    return (
        f"events of {node} come late: of {late} of its {workers} workers in job {job} some came behind their window "
        "and were left out; its clock runs behind, or its producer does"
    )


def _producers(count: int) -> str:
    return "that on 1 other node goes on" if count == 1 else f"those on {count} other nodes go on"


def _from_any(count: int) -> str:
    return "from its one node" if count == 1 else f"from all of its {count} nodes"
