"""How often nodes were where jobs failed, decayed over weeks and held against how long jobs ran on them.

What is ``HALF_LIFE_DAYS`` old counts half, failures and time alike: of a failure at t0 there is 2^-((t - t0) / H) left
at t, of time from t0 to t1 on a node the integral of that. With c failures in e node-days of a node and C in E of the
whole cluster the cluster's rate is r = (C + p * q) / (E + q), and the node's (c + r * k) / (e + k): both are drawn
towards what is usual, p failures a node-day, as if q and k node-days of it had been seen. So a node that was seen for
an hour and failed once is no worse than one that failed thrice in a fortnight.

Failures of several jobs on one node that began within ``ONE_FAILURE_NS`` count once, and a node's time is counted once
however many jobs run there.
"""

from __future__ import annotations

from math import log

import msgspec

HALF_LIFE_DAYS = 28.0
USUAL_A_DAY = 0.01
CLUSTER_PRIOR_DAYS = 100.0
NODE_PRIOR_DAYS = 28.0
ONE_FAILURE_NS = 600 * 1_000_000_000
DAY_NS = 86_400 * 1_000_000_000


class Tally(msgspec.Struct, kw_only=True):
    """Decayed sums as of ``at`` (ns): ``failures``, and ``days`` on which ``busy`` nodes ran jobs.

    ``counted`` is how many failures there were, ``last`` the onset of the latest. ``told`` are the ``days`` at which
    it was last told.
    """

    at: int
    failures: float = 0.0
    days: float = 0.0
    busy: int = 0
    counted: int = 0
    last: int | None = None
    told: float = 0.0

    def until(self, time: int) -> None:
        """Bring it up to a time; one that has passed changes nothing."""
        passed = (time - self.at) / DAY_NS
        if passed <= 0:
            return
        left = float(2.0 ** (-passed / HALF_LIFE_DAYS))
        self.failures *= left
        self.days = self.days * left + self.busy * (1.0 - left) * HALF_LIFE_DAYS / log(2.0)
        self.at = time


def cluster_rate(cluster: Tally) -> float:
    """Failures a node-day in the whole cluster, drawn towards what is usual."""
    return (cluster.failures + USUAL_A_DAY * CLUSTER_PRIOR_DAYS) / (cluster.days + CLUSTER_PRIOR_DAYS)


def node_rate(node: Tally, usual: float) -> float:
    """Failures a node-day on one node, drawn towards the cluster's rate."""
    return (node.failures + usual * NODE_PRIOR_DAYS) / (node.days + NODE_PRIOR_DAYS)


def said_history(node: str, own: Tally, cluster: Tally) -> str:
    """The history in words: how many failures in how many node-days, and how many the cluster has in as many."""
    rest = Tally(at=0, failures=cluster.failures - own.failures, days=cluster.days - own.days)
    usual = cluster_rate(rest) * own.days
    failures = "1 failure" if f"{own.failures:.1f}" == "1.0" else f"{own.failures:.1f} failures"
    return (
        f"{node}: {failures} in {own.days:.1f} node-days, this one counted; in the rest of the cluster {usual:.1f} "
        f"would be usual (what is {HALF_LIFE_DAYS:.0f} days old counts half)"
    )
