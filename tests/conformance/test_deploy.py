"""What lies in deploy/ fits the program: its commands parse, its queries run, its files are there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import CounterMetricFamily

from rankwatch.cli import parser
from sinks.clickhouse import Client, open_client
from sinks.metrics import WAITING
from sinks.migrate import migrate
from streams.metrics import DECLARED

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("image") == "rankwatch:local"}
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "rankwatch.json").read_text())


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_that_exists(name: str) -> None:
    parser().parse_args(OURS[name]["command"])


def test_every_part_of_the_pipeline_is_a_service() -> None:
    assert {"kafka", "clickhouse", "topics", "worker", "sink", "feed", "grafana"} <= SERVICES.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_only_for_services_that_exist(name: str) -> None:
    assert SERVICES[name].get("depends_on", {}).keys() <= SERVICES.keys()


def test_what_is_mounted_and_copied_is_there() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert [place for place in mounted if place.startswith(".") and not (DEPLOY / place).exists()] == []
    assert {place for place in mounted if not place.startswith(".")} == COMPOSE["volumes"].keys()
    copied = [
        line.split()[1:-1]
        for line in (DEPLOY / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
    ]
    allowed = (ROOT / ".dockerignore").read_text().split()
    for place in (name for names in copied for name in names):
        assert (ROOT / place).exists() and f"!{place}" in allowed, place


def test_the_image_holds_what_the_program_needs_in_the_versions_that_are_tested() -> None:
    def pins(place: Path) -> set[str]:
        return {line.split(" ")[0] for line in place.read_text().splitlines() if "==" in line and line[0] != " "}

    runtime = pins(DEPLOY / "runtime.lock")
    assert runtime < pins(ROOT / "requirements.lock")
    assert not [pin for pin in runtime if pin.startswith(("pytest==", "mypy==", "ruff=="))]
    assert [pin for pin in runtime if pin.startswith("faust-streaming==")]


def test_published_ports_are_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)


def test_prometheus_asks_for_metrics_and_labels_that_workers_have() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus/rankwatch.rules.yaml").read_text())["groups"][0]["rules"]
    counters = {CounterMetricFamily: "_total"}
    known = {one.name + counters.get(one.kind, ""): {"stage", "partition", one.label} for one in DECLARED}
    known[WAITING[0]] = set()
    assert "RankwatchSilent" in {rule["alert"] for rule in rules}
    for rule in rules:
        asked = re.findall(r"(rankwatch_\w+)(?:\{(\w+)=)?", rule["expr"])
        assert asked and {name for name, _ in asked} <= known.keys(), rule
        labels = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        labels |= {label for _, label in asked if label}
        assert all(labels <= known[name] for name, _ in asked), rule


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with open_client(f"chdb://{tmp_path_factory.mktemp('deploy') / 'db'}") as opened:
        migrate(opened)
        yield opened


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_a_panel_asks_what_the_tables_can_answer(panel: dict[str, Any], client: Client) -> None:
    for target in panel["targets"]:
        client.query(target["rawSql"])
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/clickhouse.yaml").read_text())["datasources"]
    assert panel["datasource"]["uid"] in {source["uid"] for source in sources}
