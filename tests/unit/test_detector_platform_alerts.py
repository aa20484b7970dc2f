"""What the platform tells: whose it is, what is told once, and when the scheduler's word is a fault."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import at, closed, new_view, run, summary

from schemas.results import Anomaly, PlatformAlert, Window
from streams.alert_words import area_of, layer_of, said_place, says_node_gone
from streams.attempt_window import Alarm, AttemptWindow
from streams.detectors.platform_alerts import MOST_A_WINDOW, PlatformAlerts


def alert(second: float = 3, **fields: Any) -> PlatformAlert:
    values: dict[str, Any] = {"time": at(second), "since": at(second), "name": "HostTooWarm", "text": "41 C"}
    return PlatformAlert(**(values | fields))


def window(*alarms: Alarm, start: float = 0, ranks: int = 4, **fields: Any) -> AttemptWindow:
    return closed([summary(rank, start) for rank in range(ranks)], start, alarms=list(alarms), **fields)


def found(*windows: AttemptWindow) -> list[list[Anomaly]]:
    return run(PlatformAlerts(), new_view(), windows)


def test_an_alarm_is_told_once_with_its_place_and_accuses_nobody() -> None:
    one = Alarm("node01", alert(severity="critical", status="firing", source="alertmanager", count=3))
    first, again = found(window(one), window(one, start=10))
    (told,) = first
    assert again == []
    assert (told.grounds, told.severity, told.onset) == ("platform_alert_fires", "warning", at(3))
    assert told.text == "node01: HostTooWarm: 41 C (3 times) (alertmanager, since 2025-11-29T12:00:03Z)"
    assert [(place.rank, place.node) for place in told.suspects] == [(None, "node01")]


def test_that_it_is_over_is_told_of_what_was_told() -> None:
    fires = Alarm("node01", alert(status="firing"))
    over = Alarm("node01", alert(5, since=at(3), status="resolved"))
    other = Alarm("node00", alert(5, since=at(3), status="resolved"))
    told = found(window(fires, over, other))[0]
    assert [(one.grounds, one.onset) for one in told] == [
        ("platform_alert_fires", at(3)),
        ("platform_alert_over", at(5)),
    ]


def test_the_rank_that_uses_the_device_is_told_with_it() -> None:
    (told,) = found(window(Alarm("node01", alert(device="0000:9b:00.0", name="GpuXid"), 3)))[0]
    assert [(one.rank, one.device) for one in told.suspects] == [(3, "0000:9b:00.0")]
    assert (told.area, told.layer, told.severity) == ("hardware", "hardware", "info")


def test_an_alarm_of_a_switch_is_of_the_nodes_under_it() -> None:
    switches = {"node00": "s0.leaf1", "node01": "s0.leaf2"}
    told = found(window(Alarm("", alert(switch="leaf2")), switches=switches))[0]
    assert [(one.node, one.switch) for one in told[0].suspects] == [("node01", "leaf2")]
    assert found(window(Alarm("", alert(switch="leaf9")), switches=switches)) == [[]]
    told = found(window(Alarm("", alert(switch="leaf9")), switches={"node00": "s0.leaf1"}))[0]
    assert [(one.node, one.switch) for one in told[0].suspects] == [("", "leaf9")]


def test_an_alarm_of_a_node_is_told_once_the_attempt_runs_there() -> None:
    one = Alarm("node01", alert(status="firing"))
    told = found(window(one, ranks=2), window(one, start=10))
    assert [len(anomalies) for anomalies in told] == [0, 1]


DOWN = "Nodes node01 not responding, setting DOWN"


@pytest.mark.parametrize(
    ("second", "node", "fields", "fault"),
    [
        (12, "node01", {"text": DOWN, "source": "slurm"}, True),
        (12, "node01", {"text": "Killing JobId=4 on failed node node01", "source": "slurm"}, True),
        (12, "node01", {"text": DOWN, "source": "alertmanager"}, False),
        (12, "node01", {"text": "Nodes node01 not responding", "source": "slurm"}, False),
        (12, "node01", {"text": "drained: maintenance", "source": "slurm"}, False),
        (12, "node07", {"text": DOWN, "source": "slurm"}, False),
        (12, "node01", {"text": DOWN, "source": "slurm", "precision_ns": 10**12}, False),
        (12, "node01", {"text": DOWN, "source": "slurm", "status": "resolved"}, False),
        (45, "node01", {"text": DOWN, "source": "slurm"}, False),
    ],
    ids=[
        "down",
        "failed",
        "another's word",
        "perhaps",
        "drained",
        "no node of it",
        "undated",
        "over",
        "after the ranks",
    ],
)
def test_that_the_scheduler_lost_a_node_is_a_fault_while_ranks_lived_there(
    second: float, node: str, fields: dict[str, Any], fault: bool
) -> None:
    def of(start: float, *alarms: Alarm) -> AttemptWindow:
        living: list[Window] = [summary(rank, start) for rank in range(4 if start < 20 else 2)]
        return closed(living, start, alarms=list(alarms))

    starts = [0.0, 10.0, 20.0, 30.0, 40.0]
    told = found(
        *(of(start, *[Alarm(node, alert(second, **fields))] * (start <= second < start + 10)) for start in starts)
    )
    flat = [one for found_then in told for one in found_then]
    grounds = [one.grounds for one in flat]
    assert ("node_fault" in grounds) == fault
    assert [one.severity for one in flat if one.grounds == "node_fault"] == ["warning"] * fault


def test_of_a_storm_the_worst_are_told() -> None:
    storm = [Alarm("node00", alert(name=f"A{n:05d}")) for n in range(5000)]
    storm.append(Alarm("node00", alert(name="Z", severity="critical")))
    (told,) = found(window(*storm))
    assert len(told) == MOST_A_WINDOW
    assert told[0].text.startswith("node00: Z")


@pytest.mark.parametrize(
    ("fields", "area", "layer", "place"),
    [
        ({"name": "GpuXidError", "text": ""}, "hardware", "hardware", "n1"),
        ({"name": "NodeFilesystemFull", "text": ""}, "data", "platform", "n1"),
        ({"name": "InfinibandLinkFlap", "text": "", "device": "mlx5_0:1"}, "network", "platform", "mlx5_0:1 of n1"),
        ({"text": "", "switch": "leaf3", "device": "port 7"}, "network", "platform", "port 7 of switch leaf3"),
        ({"text": "slow", "storage": "scratch"}, "data", "platform", "storage scratch on n1"),
        ({"text": DOWN, "source": "slurm"}, "hardware", "platform", "n1"),
        ({"name": "KubeletDown", "text": "gone"}, "unknown", "platform", "n1"),
    ],
)
def test_what_an_alarm_means(fields: dict[str, Any], area: str, layer: str, place: str) -> None:
    one = alert(**fields)
    assert (area_of(one), layer_of(one), said_place("n1", one)) == (area, layer, place)
    assert says_node_gone(one) == (fields.get("source") == "slurm")
