"""Files of metrics: what tells them apart, whose samples they hold, and what is left out of bad ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from producers.exposition import Exposed, declared, exposed, labels_of
from producers.measured import TWICE, UNTIMED, ZONELESS
from producers.readers import nvidia_smi, prometheus
from producers.readers.system import node_named
from producers.recording import Recording, UnreadableRecording, read_recording
from schemas.events import Metric
from schemas.measures import LOST

MS = 1_764_417_600_000
T = MS * 1_000_000
GPU = 'DCGM_FI_DEV_GPU_TEMP{{gpu="{gpu}",pci_bus_id="00000000:{gpu}B:00.0",Hostname="{node}"}} {value}{time}'


def line(value: float = 60, second: float | None = 0, gpu: int = 3, node: str = "gpu3") -> str:
    time = "" if second is None else f" {MS + int(second * 1000)}"
    return GPU.format(gpu=gpu, node=node, value=value, time=time)


def read(tmp_path: Path, files: Mapping[str, str | bytes]) -> Recording:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_recording(tmp_path)


def found(recording: Recording) -> list[tuple[str, float, float | None]]:
    """Node, second and value of each metric, in the order of the log."""
    return [
        (arrival.batch.identity.node, (event.time - T) / 1e9, event.value)
        for arrival in recording.arrivals
        for event in arrival.batch.events
        if isinstance(event, Metric)
    ]


def notes(recording: Recording) -> dict[str, int]:
    return {note.reason: note.count for note in recording.inputs.unused}


@pytest.mark.parametrize(
    ("text", "sample"),
    [
        ("a 1", Exposed("a", "", 1.0, None)),
        ('a{b="c"} 1.5e3 1764417600000', Exposed("a", 'b="c"', 1500.0, T)),
        ('a{b="}"} 2 1764417600', Exposed("a", 'b="}"', 2.0, T)),
        ("a 2 1764417600.25", Exposed("a", "", 2.0, T + 250_000_000)),
        ('{"a.b"} -Inf', Exposed("", '"a.b"', float("-inf"), None)),
        ('a{b=" # {"} 3', Exposed("a", 'b=" # {"', 3.0, None)),
        ('a_total 3 # {trace_id="1"} 0.5', Exposed("a_total", "", 3.0, None)),
        ("a 1 99999999999999999", None),
        ("a 1 -5", None),
        ("a 1_0", None),
        ("a 0x10", None),
        ("a", None),
        ("{} 1", None),
        ("a 1 2 3", None),
        ("2025-11-29 12:00:00 iteration 1", None),
        ("", None),
        ("a{" + "b" * 100_000, None),
    ],
)
def test_a_line_is_a_sample_or_is_not(text: str, sample: Exposed | None) -> None:
    assert exposed(text) == sample


@pytest.mark.parametrize(
    ("printed", "labels"),
    [
        ("", {}),
        ('a="1",b="2",', {"a": "1", "b": "2"}),
        (' a = "1" , b="2" ', {"a": "1", "b": "2"}),
        (r'a="\\ \" \n \x"', {"a": '\\ " \n \\x'}),
        ('"my.name",a="1"', {"__name__": "my.name", "a": "1"}),
        ('"a.b"="1"', {"a.b": "1"}),
        ('a="1",a="2"', None),
        ('a="1', None),
        ("a=1", None),
        ('a="1" b="2"', None),
        (",", None),
    ],
)
def test_labels_are_read_or_are_broken(printed: str, labels: dict[str, str] | None) -> None:
    assert labels_of(printed) == labels


def test_types_are_declared_in_comments() -> None:
    assert declared("# TYPE a_total counter") == ("a_total", "counter")
    assert declared('# TYPE "a.b" gauge ') == ("a.b", "gauge")
    assert declared("# HELP a_total counter") is None


@pytest.mark.parametrize(
    ("texts", "is_scrape", "is_table"),
    [
        (["# HELP a b", "# TYPE a gauge", "a 1"], True, False),
        ([line()], True, False),
        (["loss 2.5", "step 3"], False, False),
        (["# TYPE a gauge", "Traceback (most recent call last):", "  File x", "ValueError: y"], False, False),
        (["timestamp, index, temperature.gpu"], False, True),
        (["index, uuid, name"], False, False),
        (["name, age, index"], False, False),
        (["time, loss, step"], False, False),
        (["0, P0, 69"], False, False),
        ([], False, False),
    ],
)
def test_files_are_told_by_what_lies_in_them(texts: list[str], is_scrape: bool, is_table: bool) -> None:
    assert (prometheus.recognised(texts), nvidia_smi.recognised(texts)) == (is_scrape, is_table)


def test_time_that_goes_back_leaves_every_sample_at_its_own(tmp_path: Path) -> None:
    recording = read(tmp_path, {"a.prom": "\n".join(line(n, second) for n, second in enumerate((0, 10, -3600, 20)))})
    assert found(recording) == [("gpu3", -3600, 2), ("gpu3", 0, 0), ("gpu3", 10, 1), ("gpu3", 20, 3)]
    assert notes(recording) == {}


def test_of_two_exporters_of_one_gpu_the_first_counts_where_their_times_are_the_same(tmp_path: Path) -> None:
    exported = line(61).replace("gpu=", 'exported_pod="w",job="dcgm",gpu=')
    recording = read(tmp_path, {"a.prom": line(60), "b.prom": f"{exported}\n{line(62, 5)}"})
    assert found(recording) == [("gpu3", 0, 60), ("gpu3", 5, 62)]
    assert notes(recording) == {TWICE: 1}


@pytest.mark.parametrize(
    ("file", "beside", "second"),
    [
        ("s.prom", {"when.jsonl": json.dumps({"file": "s.prom", "captured": T / 1e9 + 7})}, 7),
        ("s_20251129T120009.prom", {}, 9),
        ("20251129T120009/s.prom", {}, 9),
        ("s.prom", {"other.prom": line(1, 11, gpu=4)}, 11),
    ],
)
def test_a_scrape_without_times_has_that_of_a_table_or_its_path(
    tmp_path: Path, file: str, beside: dict[str, str], second: float
) -> None:
    recording = read(tmp_path, {file: line(60, None), "m.jsonl": row(11)} | beside)
    mine = [
        (event.time, event.time_source)
        for arrival in recording.arrivals
        for event in arrival.batch.events
        if isinstance(event, Metric) and event.value == 60
    ]
    assert mine == [(T + int(second * 1e9), "inferred" if second == 11 else "captured")]
    assert (UNTIMED in notes(recording)) is (second == 11)


def row(second: float) -> str:
    return json.dumps({"ts": T / 1e9 + second, "node": "gpu3", "rank": 0, "cpu_percent": 1.0})


def started() -> str:
    return json.dumps({"rank": 0, "local_rank": 0, "node": "gpu3", "pid": 7, "ts": T / 1e9})


def test_without_any_time_nothing_can_be_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match=r"nothing in .* has a time or can be given one"):
        read(tmp_path, {"s.prom": line(60, None)})


@pytest.mark.parametrize(
    ("host", "node"),
    [
        ("gpu3", "gpu3"),
        ("gpu3.cluster.local", "gpu3"),
        ("gpu4", "gpu4"),
        ("10.0.0.3", "gpu3"),
        ("localhost", "gpu3"),
        ("a\\nb", "a?b"),
    ],
)
def test_a_host_is_the_node_that_others_know(tmp_path: Path, host: str, node: str) -> None:
    recording = read(tmp_path, {"dcgm.prom": line(60, 5, node=host), "pids.jsonl": started()})
    assert [one for one in found(recording) if one[2] == 60] == [(node, 5, 60)]


@pytest.mark.parametrize(
    ("files", "nodes"),
    [
        (("smi-node07.prom", "smi-node08.prom"), ("node07", "node08")),
        (("node07/1.prom", "Node08/1.prom"), ("node07", "Node08")),
        (("dcgm-alpha.prom", "dcgm-beta.prom"), ("alpha", "beta")),
        (("a\x1b.prom", "b.prom"), ("a?", "b")),
        (("node07/node08.prom", "b.prom"), ("node07/node08.prom", "b.prom")),
        (("node_exporter.prom", "nodes3a.prom"), ("node_exporter", "nodes3a")),
    ],
)
def test_samples_that_name_no_node_never_mix(tmp_path: Path, files: tuple[str, str], nodes: tuple[str, str]) -> None:
    recording = read(tmp_path, {file: line(60 + at, 5, node="") for at, file in enumerate(files)})
    assert sorted(found(recording)) == sorted((node, 5, 60 + at) for at, node in enumerate(nodes))
    assert TWICE not in notes(recording)


@pytest.mark.parametrize(
    ("file", "node"),
    [
        ("dmesg/node001.log", "node001"),
        ("dmesg-host-7.log", "host-7"),
        ("node1/node2/dmesg.log", ""),
        ("node001x/dmesg.log", ""),
        ("dmesg/latest.log", ""),
    ],
)
def test_a_path_may_say_itself_that_it_is_of_a_node(file: str, node: str) -> None:
    assert node_named("", file, []) == node
    assert node_named("told", file, []) == "told"
    assert node_named("", f"gpu3/{file}", ["gpu3", "gpu4"]) == "gpu3"


@pytest.mark.parametrize(
    "content",
    [
        b"# TYPE a gauge\na 1 1764417600000\n\xff\xfe{ \x00\x00 1\n" + b"x" * 200_000 + b"\na 2 1764417601000",
        b"# TYPE a gauge\r\na 1 1764417600000\r\na 2 1764417601000\r\n",
        b'# TYPE a gauge\na 1 1764417600000\na{b="' + b"\\" * 9_999 + b"\na 2 1764417601000",
    ],
)
def test_broken_lines_cost_themselves_alone(tmp_path: Path, content: bytes) -> None:
    more = "".join(f"\na 3 {MS + second * 1000}" for second in range(2, 20)).encode()
    recording = read(tmp_path, {"a.prom": content + more})
    assert [value for *_, value in found(recording)] == [1.0, 2.0, *[3.0] * 18]


def test_an_empty_file_of_a_port_and_one_that_says_nothing_are_noted(tmp_path: Path) -> None:
    port = "gpu3/sys/class/infiniband/mlx5_0/ports/1"
    files = {f"{port}/state": "", f"{port}/rate": "\x00", f"{port}/phys_state": "5: LinkUp\n", "m.jsonl": row(0)}
    recording = read(tmp_path, {**files})
    names = [
        event.name for arrival in recording.arrivals for event in arrival.batch.events if isinstance(event, Metric)
    ]
    assert "infiniband_phys_state" in names
    assert notes(recording)["not the value of a port"] == 1


def test_what_else_the_kernel_tells_of_an_adapter_is_known_and_measures_nothing(tmp_path: Path) -> None:
    adapter = "gpu3/sys/class/infiniband/mlx5_0"
    others = ("fw_ver", "ports/1/gids/0", "ports/1/link_layer", "ports/1/gid_attrs/types/3")
    recording = read(tmp_path, {f"{adapter}/{name}": "x" for name in others} | {"m.jsonl": row(0)})
    assert notes(recording) == {}


def test_a_gpu_that_is_lost_says_so_instead_of_its_values(tmp_path: Path) -> None:
    head = "timestamp, pci.bus_id, temperature.gpu"
    rows = [f"2025/11/29 12:00:0{n}.000, 00000000:3B:00.0, {cell}" for n, cell in enumerate(("60", "[GPU is lost]"))]
    recording = read(tmp_path, {"smi.csv": "\n".join([head, *rows])})
    assert found(recording) == [("", 0, 0), ("", 0, 60), ("", 1, 1)]
    assert notes(recording) == {"cells that say [GPU is lost]": 1}


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["60, 1", "E, E", "E, E", "E, E", "60, 1"], [0, None, 1, 1, 0]),
        (["60, 1", "E, E", "60, 1", "E, E"], [0, None, 0, None]),
        (["60, N", "E, N", "E, N"], [0, None, 1]),
        (["60, 1", "N, N", "N, N"], [0, 0, 0]),
        (["60, 1", "E, 1", "E, 1"], [0, 0, 0]),
        (["E, E", "E, E"], [None, 1]),
    ],
)
def test_a_gpu_of_which_nothing_can_be_read_any_more(tmp_path: Path, cells: list[str], told: list[int | None]) -> None:
    head = "timestamp, pci.bus_id, temperature.gpu, memory.used"
    said = [cell.replace("E", "[Unknown Error]").replace("N", "[N/A]") for cell in cells]
    rows = [f"2025/11/29 12:00:0{n}.000, 00000000:3B:00.0, {cell}" for n, cell in enumerate(said)]
    recording = read(tmp_path, {"smi.csv": "\n".join([head, *rows])})
    events = [event for arrival in recording.arrivals for event in arrival.batch.events if isinstance(event, Metric)]
    seen = {(event.time - T) // 10**9: event.value for event in events if event.name == LOST}
    assert [seen.get(second) for second in range(len(cells))] == told


def test_a_gpu_that_is_lost_with_its_id_is_known_by_its_number(tmp_path: Path) -> None:
    head = "timestamp, index, pci.bus_id, temperature.gpu"
    gpu = "00000000:3B:00.0"
    cells = (("3", gpu, "60"), ("3", "[GPU requires reset]", "[GPU requires reset]"), ("4", "[N/A]", "60"))
    rows = [f"2025/11/29 12:00:0{n}.000, {', '.join(own)}" for n, own in enumerate(cells)]
    recording = read(tmp_path, {"smi.csv": "\n".join([head, *rows])})
    assert devices(recording) == {gpu: 3, "nvidia4": 2}


def devices(recording: Recording) -> Counter[str | None]:
    """How many samples there are of each device."""
    return Counter(
        event.device for arrival in recording.arrivals for event in arrival.batch.events if isinstance(event, Metric)
    )


def test_each_link_of_a_gpu_is_a_series_of_its_own(tmp_path: Path) -> None:
    name = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
    links = [f'{name}{{UUID="GPU-a",nvlink="{link}",Hostname="gpu3"}} {link} {MS}' for link in range(2)]
    address = f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-a",pci_bus_id="0:3B:00.0",Hostname="gpu3"}} 60 {MS}'
    of_switch = f'{name}{{nvlink="5",nvswitch="nvswitch1",Hostname="gpu3"}} 0 {MS}'
    recording = read(tmp_path, {"a.prom": "\n".join([*links, address, of_switch])})
    assert devices(recording) == {
        "0:3B:00.0/nvlink0": 1,
        "0:3B:00.0/nvlink1": 1,
        "0:3B:00.0": 1,
        "nvswitch1/nvlink5": 1,
    }
    assert notes(recording) == {}


@pytest.mark.parametrize(("hour", "noted"), [("12", False), ("20", True)])
def test_local_times_beside_the_rest_of_a_recording_are_noted(tmp_path: Path, hour: str, noted: bool) -> None:
    table = f"timestamp, index, temperature.gpu\n2025/11/29 {hour}:00:05.000, 0, 60\n"
    recording = read(tmp_path, {"smi.csv": table, "m.jsonl": f"{row(0)}\n{row(10)}"})
    assert (ZONELESS in notes(recording)) is noted


def test_rows_of_json_have_base_units_too(tmp_path: Path) -> None:
    columns = {"DCGM_FI_DEV_FB_USED": 1, "infiniband_link_downed": 7, "gpu": 2, "ts": T / 1e9, "node": "gpu3"}
    columns["DCGM_FI_DEV_FB_FREE"] = 2147483632
    recording = read(tmp_path, {"m.jsonl": json.dumps(columns)})
    events = [event for arrival in recording.arrivals for event in arrival.batch.events if isinstance(event, Metric)]
    assert [(one.name, one.value, one.unit, one.device, one.counter) for one in events] == [
        ("DCGM_FI_DEV_FB_FREE", 2147483632.0, "count", "2", False),
        ("DCGM_FI_DEV_FB_USED", 2.0**20, "bytes", "2", False),
        ("infiniband_link_downed", 7.0, "count", "2", True),
    ]
