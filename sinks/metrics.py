"""The sink's own metrics: each is declared once, with what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sinks.live import LiveSink
from sinks.sink import Place

LAG = ("rankwatch_lag_entries", "Entries of the log that are not read yet")
ENTRIES = ("rankwatch_entries", "Entries of the log read")
ROWS = ("rankwatch_rows", "Rows inserted, by table")
RETRIES = ("rankwatch_retries", "Tries that ClickHouse or Kafka refused and that were made again")
GONE = ("rankwatch_gone_entries", "Entries that the log did not keep long enough to be read")
WAITING = ("rankwatch_sink_waits", "1 while nothing can be stored: ClickHouse or Kafka is away, or was never reached")
HELD = ("rankwatch_held_entries", "Entries read and not stored yet")


class SinkMetrics(Collector):
    """Reads the metrics of a sink when it is asked for them; null is one that has not reached its database yet.

    ``waits`` says whether nothing can be stored, ``lags`` how much is unread, by place, ``gone`` how many entries were
    missing where it read on.
    """

    def __init__(
        self,
        sink: Callable[[], LiveSink | None],
        waits: Callable[[], bool],
        lags: Callable[[], Mapping[Place, int]],
        gone: Callable[[], int] = lambda: 0,
    ) -> None:
        self._sink = sink
        self._waits = waits
        self._lags = lags
        self._gone = gone

    def collect(self) -> Iterable[Metric]:
        """All samples as of now."""
        yield GaugeMetricFamily(*WAITING, value=float(self._waits()))
        sink = self._sink()
        if sink is None:
            return
        lag = GaugeMetricFamily(*LAG, labels=["stage", "partition", "topic"])
        for (topic, partition), entries in sorted(self._lags().items()):
            lag.add_metric(["sink", str(partition), topic], entries)
        yield lag
        rows = CounterMetricFamily(*ROWS, labels=["table"])
        for table, count in sorted(sink.counts.items()):
            rows.add_metric([table], count)
        yield rows
        yield CounterMetricFamily(*ENTRIES, value=sink.entries)
        yield CounterMetricFamily(*RETRIES, value=sink.retries)
        yield CounterMetricFamily(*GONE, value=self._gone())
        yield GaugeMetricFamily(*HELD, value=sink.held)
