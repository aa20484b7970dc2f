"""What a collector exposes, read back as Prometheus reads it."""

from __future__ import annotations

from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def exposed(collector: Collector) -> str:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


def samples(text: str) -> Samples:
    """Samples by name and labels; each may stand there once."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name, tuple(sorted(sample.labels.items()))
            assert name not in found, f"{name} twice"
            found[name] = sample.value
    return found


def declared(text: str, word: str) -> Counter[str]:
    """How often each metric has its HELP or TYPE line; counters without their ending."""
    names = [line.split()[2] for line in text.splitlines() if line.startswith(f"# {word} ")]
    return Counter(name.removesuffix("_total") for name in names)


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]
