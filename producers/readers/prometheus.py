"""Scrapes in Prometheus' text format, one or many in a file: dcgm-exporter, node_exporter, and plain samples of others.

A sample belongs to the node and device that its labels name. Of node_exporter what says something of a job is kept;
histograms and summaries are left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from producers.exposition import Exposed, declared, exposed, labels_of
from producers.inputs import Unused
from producers.lines import read_lines
from producers.measured import Measured, Sample
from producers.samples import said_time
from producers.scan import Source
from schemas.measures import measure_of

_SURE = re.compile(r"# (?:TYPE|HELP) \S|(?i:DCGM_)\w{1,200}\{|node_[a-z]\w{1,200}(?:\{| [0-9.])")
_SHARE = 80
"""Percent of the lines of a file that must be of the format."""
MOST_SERIES = 50_000
LONGEST_KEPT = 1_000
LONGEST_LABEL = 200
_CLOCK, _HOST = "node_time_seconds", "node_uname_info"
_OTHERS = re.compile(r"(?:node|go|process|promhttp|python|scrape|dcgm_exporter|net_conntrack)_|up$|DCGM_FI_DRIVER")
"""What exporters say of themselves, and what of a host says nothing of a job."""
_NODES = ("Hostname", "hostname", "nodename", "node", "host", "exported_node", "instance")
_GPUS = ("pci_bus_id", "UUID", "uuid", "gpu_uuid", "device")
_PARTS = {"GPU_I_ID": "mig", "nvlink": "nvlink"}
"""What of a GPU or a switch a sample is of, by label: each is a series of its own."""
_IGNORED = frozenset(
    (
        *_NODES,
        *_GPUS,
        *("gpu", "GPU_I_PROFILE", "GPU_I_ID", "modelName", "model_name", "DCGM_FI_DRIVER_VERSION", "hpc_job", "job"),
        *("namespace", "pod", "pod_name", "pod_namespace", "pod_uid", "container", "container_name", "cluster"),
        *("exported_namespace", "exported_pod", "exported_container", "exported_instance", "exported_job"),
        *("err_code", "err_msg", "port", "service", "endpoint", "__name__", "controller"),
    )
)
"""Labels that tell whose a sample is; by any other one name stands for several metrics."""
_DISTRIBUTIONS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}

NOT_ASKED = "metrics of exporters and hosts that nothing here asks for"
DISTRIBUTION = "samples of histograms and summaries"
LABELLED = "samples whose labels make several metrics of one name"
BROKEN = "not a line of Prometheus' text format, or of a time that cannot be"


def recognised(texts: Sequence[str]) -> bool:
    """Whether sampled lines are a scrape. A number behind a word is not enough: logs have such lines."""
    shown = [text for text in texts if text.strip()]
    if not any(_SURE.match(text) for text in shown):
        return False
    fitting = sum(text.startswith("#") or exposed(text) is not None or said_time(text) is not None for text in shown)
    return fitting * 100 >= _SHARE * len(shown)


class _Series(msgspec.Struct, frozen=True):
    """Whose the samples of one name and labels are, or why they are left out."""

    name: str
    node: str = ""
    device: str = ""
    counter: bool = False
    left_out: str = ""


def read(source: Source) -> Measured:
    """The samples of a file. Raises OSError."""
    reading = _Reading(source.file)
    for line in read_lines(source.path):
        reading.take(line.number, line.text)
    return reading.done()


class _Reading:
    """A file being read: its scrapes one after another."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._samples: list[Sample] = []
        self._types: dict[str, str] = {}
        self._series: dict[tuple[str, str], _Series] = {}
        self._addresses: dict[str, str] = {}
        self._left_out: dict[str, tuple[int, int]] = {}
        # Of the scrape that is being read: where it begins, its series, its time and its host.
        self._begun = 0
        self._there: set[tuple[str, str]] = set()
        self._latest = ("", "")
        self._time: int | None = None
        self._host = ""

    def take(self, number: int, text: str) -> None:
        """Take in one line."""
        if text.startswith("#"):
            self._comment(text)
            return
        sample = exposed(text)
        if sample is None:
            time = said_time(text.strip())
            if time is None:
                self._leave_out(BROKEN, number)
            else:
                self._next_scrape(time)
            return
        key = (sample.name, sample.labels)
        if sample.time is None:
            self._begin_anew_at(key)
        series = self._series.get(key) or self._known(key)
        if series.name == _CLOCK:
            self._time = self._time or said_time(f"{sample.value:.6f}")
        elif series.name == _HOST:
            self._host = series.node or self._host
        elif series.left_out:
            self._leave_out(series.left_out, number)
        else:
            self._samples.append(self._sample(number, series, sample))

    def _sample(self, number: int, series: _Series, sample: Exposed) -> Sample:
        return Sample(
            line=number,
            time=sample.time,
            node=series.node,
            device=series.device,
            name=series.name,
            value=sample.value,
            counter=series.counter,
        )

    def _begin_anew_at(self, key: tuple[str, str]) -> None:
        """No scrape has a series twice, so one that comes again is of the next; a line that is doubled is not."""
        if key in self._there and key != self._latest:
            self._next_scrape(None)
        self._there.add(key)
        self._latest = key

    def _comment(self, text: str) -> None:
        if text.startswith("# TYPE"):
            named = declared(text.rstrip())
            if named is not None and len(self._types) < MOST_SERIES:
                self._types[named[0]] = named[1]
        elif text.rstrip() == "# EOF":
            self._next_scrape(None)
        elif (time := said_time(text.lstrip("# ").rstrip())) is not None:
            self._next_scrape(time)

    def _next_scrape(self, time: int | None) -> None:
        """Ends a scrape: what of it has no time or node gets that of the whole."""
        if self._time is not None or self._host:
            for at in range(self._begun, len(self._samples)):
                one = self._samples[at]
                if one.time is None or not one.node:
                    self._samples[at] = msgspec.structs.replace(
                        one, time=one.time or self._time, node=one.node or self._host
                    )
        self._begun, self._time, self._host = len(self._samples), time, ""
        self._there.clear()

    def _leave_out(self, reason: str, line: int) -> None:
        first, count = self._left_out.get(reason, (line, 0))
        self._left_out[reason] = first, count + 1

    def _known(self, key: tuple[str, str]) -> _Series:
        name, printed = key
        labels = labels_of(printed)
        if labels is None or not (name or "__name__" in labels):
            found = _Series(name, left_out=BROKEN)
        else:
            short = {label: value[:LONGEST_LABEL] for label, value in labels.items()}
            found = self._placed(name or short["__name__"], short)
        if len(self._series) < MOST_SERIES and len(printed) <= LONGEST_KEPT:
            self._series[key] = found
        return found

    def _placed(self, name: str, labels: dict[str, str]) -> _Series:
        node = _node(labels)
        measure = measure_of(name)
        if name in (_CLOCK, _HOST):
            return _Series(name, node=node)
        if measure is None and _OTHERS.match(name):
            return _Series(name, left_out=NOT_ASKED)
        if self._is_distribution(name, labels):
            return _Series(name, left_out=DISTRIBUTION)
        if measure is None and not labels.keys() <= _IGNORED:
            return _Series(name, left_out=LABELLED)
        kind = self._types.get(name) or self._types.get(name.removesuffix("_total"), "")
        counter = measure.counter if measure else kind == "counter" or (not kind and name.endswith("_total"))
        return _Series(name, node=node, device=self._device(name, labels), counter=counter)

    def _is_distribution(self, name: str, labels: dict[str, str]) -> bool:
        if "le" in labels or "quantile" in labels:
            return True
        return any(
            name.endswith(suffix) and self._types.get(name[: len(name) - len(suffix)]) == kind
            for kind, suffixes in _DISTRIBUTIONS.items()
            for suffix in suffixes
        )

    def _device(self, name: str, labels: dict[str, str]) -> str:
        if name.startswith("node_infiniband_"):
            return ":".join(part for part in (labels.get("device"), labels.get("port")) if part)
        if name[:5].upper() == "DCGM_":
            return self._gpu(labels)
        return labels.get("device") or labels.get("controller") or (f"gpu{labels['gpu']}" if "gpu" in labels else "")

    def _gpu(self, labels: dict[str, str]) -> str:
        device = next((labels[name] for name in _GPUS if labels.get(name)), "")
        device = device or (f"nvidia{labels['gpu']}" if labels.get("gpu") else labels.get("nvswitch", ""))
        uuid = labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid")
        if uuid and labels.get("pci_bus_id"):
            self._addresses[uuid] = labels["pci_bus_id"]
        part = next((f"/{word}{labels[label]}" for label, word in _PARTS.items() if labels.get(label)), "")
        return device + part

    def done(self) -> Measured:
        """All samples; a GPU that some lines name by its UUID alone has the PCI id that others tell of it."""
        self._next_scrape(None)
        samples = self._samples
        if self._addresses:
            samples = [self._addressed(one) for one in samples]
        unused = [Unused(self._file, line, why, count) for why, (line, count) in self._left_out.items()]
        return Measured(self._file, samples, unused)

    def _addressed(self, sample: Sample) -> Sample:
        gpu, slash, part = sample.device.partition("/")
        if gpu not in self._addresses:
            return sample
        return msgspec.structs.replace(sample, device=f"{self._addresses[gpu]}{slash}{part}")


def _node(labels: dict[str, str]) -> str:
    """The node that labels name; an address alone is no node's name."""
    for name in _NODES:
        told = labels.get(name, "")
        host = told.rpartition(":")[0] if name == "instance" and ":" in told else told
        if host and host != "localhost" and not _is_address(host):
            return host
    return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
