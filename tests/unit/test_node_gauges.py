"""What was sampled of nodes as such comes to the job stage, and stands under the lowest rank of each node."""

from __future__ import annotations

from detection_support import closed, gauge, identity, new_view, summary
from streams_support import Script, agent, at, node_of, records, run, written_log

from schemas.events import Metric
from schemas.identity import Identity
from schemas.results import Window
from streams.node_gauges import node_table, on_nodes

RANKS = 8


def sampled(node: str, value: float) -> Window:
    who = Identity(job="job1", node=node, rank_reason="node", process_type="sampler")
    return summary(None, who=who, gauges=[gauge("gpu_temp", value, device="gpu0")])


def test_a_node_stands_under_its_lowest_rank_and_is_about_all_of_them() -> None:
    view = new_view()
    nodes = [sampled("node03", 63.0), sampled("node01", 61.0), sampled("elsewhere", 1.0), sampled("", 2.0)]
    window = closed([summary(rank) for rank in range(RANKS)], nodes=nodes)
    view.update(window)
    table = node_table(view, window)
    assert (table.ranks, table.means.tolist()) == ([2, 6], [[61.0, 63.0]])
    assert on_nodes(view, [2]) == [2, 3]


def test_ranks_without_a_node_stand_for_none() -> None:
    view = new_view()
    window = closed([summary(0, who=identity(0, node=""))], nodes=[sampled("", 2.0)])
    view.update(window)
    assert node_table(view, window).ranks == []


def test_metrics_of_nodes_come_from_the_log_to_a_finding() -> None:
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 59)
    for second in range(2, 60, 4):
        for node in sorted({node_of(rank) for rank in range(RANKS)}):
            value = 95.0 if node == node_of(5) else 60.0 + second % 3
            sample = Metric(time=at(second), name="gpu_temp", value=value, unit="C", device="gpu0")
            script.send(agent("job", node), sample)
    log = written_log(script.recording)
    run(log)
    (one,) = [one for one in records(log, "anomalies") if one.detector == "gauge_outlier"]
    assert (one.about, one.suspects) == ([4, 5], [])
    assert f"node {node_of(5)} unlike its peers" in one.text
