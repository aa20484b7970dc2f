"""A worker's own metrics: each is declared once, with what it means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from streams.counts import SIZES
from streams.live import LiveStages
from streams.runner import Runner
from streams.watchdog import Vitals

NS = 1e9


class _Declared(NamedTuple):
    """A metric: a family of samples with these labels behind ``stage`` and ``partition``."""

    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    name: str
    meaning: str
    label: str = ""


_G, _C = GaugeMetricFamily, CounterMetricFamily
DECLARED = (
    _Declared(_G, "rankwatch_lag_entries", "Entries of the log that are not taken in yet", "topic"),
    _Declared(
        _G, "rankwatch_closed_window_seconds", "Progress: end of the last window closed, event time as Unix time"
    ),
    _Declared(_G, "rankwatch_open_windows", "Windows that hold something and are not closed"),
    _Declared(_G, "rankwatch_held_bytes", "Bytes of entries that open windows hold"),
    _Declared(_G, "rankwatch_skew_seconds", "How far an event of the open windows ran ahead of its partition's ticks"),
    _Declared(_C, "rankwatch_entries", "Entries of the log taken in"),
    _Declared(_C, "rankwatch_windows", "Windows closed"),
    _Declared(_C, "rankwatch_late_events", "Events that stood behind the tick that closed their window"),
    _Declared(_C, "rankwatch_dropped_events", "Events that a window left out or re-timed, by reason", "reason"),
    _Declared(_C, "rankwatch_duplicate_batches", "Batches that came a second time and were dropped"),
    _Declared(_C, "rankwatch_dead_letters", "Records that could not be read, summed up or appended"),
    _Declared(_C, "rankwatch_gone_entries", "Entries that the log did not keep long enough to be read"),
)
"""All metrics of a worker but the sizes of batches."""

BATCH_BYTES = ("rankwatch_batch_bytes", "Sizes of the log's entries, a batch of events each")


class WorkerMetrics(Collector):
    """Reads the metrics of a worker's stages when it is asked for them, of all stages together.

    One collector for all: a metric may be declared only once in what a scrape reads.
    """

    def __init__(self, stages: Sequence[tuple[LiveStages, Vitals]]) -> None:
        self._stages = tuple(stages)

    def collect(self) -> Iterable[Metric]:
        """All samples as of now."""
        families = {one.name: self._family(one) for one in DECLARED}
        sizes = HistogramMetricFamily(*BATCH_BYTES, labels=["stage"])
        for live, vitals in self._stages:
            # Copies: the stages go on, or are taken away, while they are read.
            runners = sorted(live.runners.copy().items())
            for number, runner in runners:
                labels = [live.stage, str(number)]
                for name, more, value in _samples(runner):
                    families[name].add_metric([*labels, *more], value)
            for (topic, number), lag in sorted(vitals.lags.items()):
                families["rankwatch_lag_entries"].add_metric([live.stage, str(number), topic], lag)
            _add_sizes(sizes, live.stage, [runner for _, runner in runners])
        yield from families.values()
        yield sizes

    @staticmethod
    def _family(one: _Declared) -> CounterMetricFamily | GaugeMetricFamily:
        return one.kind(one.name, one.meaning, labels=["stage", "partition", *([one.label] if one.label else [])])


def _add_sizes(family: HistogramMetricFamily, stage: str, runners: list[Runner]) -> None:
    total, buckets = 0, []
    for bound in (*SIZES, 0):
        total += sum(runner.counts.sizes[bound] for runner in runners)
        buckets.append((str(float(bound)) if bound else "+Inf", total))
    family.add_metric([stage], buckets, sum(runner.counts.bytes for runner in runners))


def _samples(runner: Runner) -> Iterator[tuple[str, list[str], float]]:
    standing, counts = runner.stage.standing, runner.counts
    if standing.closed is not None:
        yield "rankwatch_closed_window_seconds", [], standing.closed / NS
    yield "rankwatch_open_windows", [], standing.open_windows
    yield "rankwatch_held_bytes", [], standing.held_bytes
    yield "rankwatch_skew_seconds", [], standing.ahead_ns / NS
    yield "rankwatch_entries", [], counts.entries
    yield "rankwatch_windows", [], counts.windows
    yield "rankwatch_late_events", [], counts.late_events
    yield "rankwatch_duplicate_batches", [], standing.duplicates
    yield "rankwatch_dead_letters", [], counts.dead_letters
    yield "rankwatch_gone_entries", [], counts.gone
    for reason, count in sorted(counts.dropped.copy().items()):
        yield "rankwatch_dropped_events", [reason], count
