"""What the calls of a Kineto trace are: own work or communication, of the device or not, and how they are called."""

from __future__ import annotations

import re
from collections import Counter

from producers.loaders import Part
from producers.rows import printable
from producers.sketch import Kind
from schemas.ids import stable_id

LONGEST_NAME = 120
FOLLOWED = 0.1
"""Of the calls of the CPU."""
_GPU = frozenset({"kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_CPU = frozenset({"cpu_op", "operator", "user_annotation", "python_function"})
_DRIVER = re.compile(r"(?:runtime|driver|overhead)$")
_COMMUNICATION_KERNEL = re.compile(
    r"[nrhcm]ccl|oneccl|nvshmem|rocshmem|hcom_|cross_device_reduce|multimem_|userbuffers|deep_?ep|mscclpp"
    r"|(?<!warp)(?<!block)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
"""Kernels of collective libraries: ``ncclKernel_*`` and ``ncclDevKernel_*``, as RCCL calls its own too, those of HCCL,
CNCL, oneCCL and NVSHMEM, and those over peers' memory of PyTorch, vLLM, FlashInfer, Transformer Engine and DeepEP."""
_COMMUNICATION_CALL = re.compile(
    r"c10d::|(?:nccl|gloo|mpi|ucc|hccl|cncl|xccl):|record_param_comms|distributed_c10d|ProcessGroup|TCPStore"
    r"|\bbarrier\b|_allgather_base|_reduce_scatter_base"
    r"|(?:cuda|hip)(?:Stream|Event|Device)Synchronize|threading\.py\(\d{1,7}\): (?:wait|acquire)"
    r"|\bray\.get|ray/_private/worker\.py\(\d{1,7}\): get|shm_broadcast|acquire_read",
    re.IGNORECASE,
)
"""Calls of collective libraries, and calls in which a process waits: nobody can see for whom."""
_WAIT = re.compile(r"threading\.py\(\d{1,7}\): (?:wait|acquire)|<built-in method acquire of _thread\.R?[Ll]ock")
_LOADER = re.compile(
    r"\bDataLoader\b|(?:^|[/_])data_?(?:loader|prefetcher)\w{0,40}\.py\(|torch/utils/data/|tensorflow/python/data/"
    r"|(?:^|/)(?:torchdata|webdataset|ffcv|nvidia/dali)/"
)
"""Calls that take a batch, by their file or by the profiler's own mark."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_PATH = re.compile(r"/?(?:[^/\s]{1,128}/){2,64}(?=[^/\s]{1,128}/[^/\s]{1,128}\.py\(\d{1,7}\))")
"""Folders in front of the last one of a Python function's file: they tell how a node is set up."""


def function_of(name: str, category: str) -> tuple[str, Kind, bool] | None:
    """Name, kind and whether it runs on the device; null for what is no call, as spans of annotations on the device."""
    category = category.lower()
    said = said_of(name)
    if category in _GPU:
        return said, "collective" if _COMMUNICATION_KERNEL.search(name) else "gpu", True
    if category in _CPU:
        return said, "collective" if _COMMUNICATION_CALL.search(name) else "python", False
    if _DRIVER.search(category):
        return said, "os", False
    return None


def part_of(name: str, kind: Kind) -> Part:
    """What a call of the CPU tells of loading: that it loads, waits, or talks to others."""
    if _WAIT.search(name):
        return "wait"
    if kind == "collective":
        return "talk"
    return "loader" if kind == "python" and _LOADER.search(name) else ""


def source_of(category: str) -> str:
    """Which of the profiler's activities a call is of."""
    if category in _GPU:
        return "gpu"
    if category == "python_function":
        return "python"
    return "cpu" if category in _CPU else "driver"


def recorded_of(counts: Counter[str]) -> list[str]:
    """The kinds of calls that a profiler was told to record: where it follows Python, that calls as often as operators.

    A few such calls are somebody's own marks.
    """
    some = {kind for kind, count in counts.items() if count}
    if counts["python"] < FOLLOWED * (counts["cpu"] + counts["python"]):
        some.discard("python")
    return sorted(some)


def said_of(name: str) -> str:
    """A function's name without what differs between processes, cut where it is long; two never become one by that."""
    said = _PATH.sub("", _ADDRESS.sub("0x", printable(name[:4_096])))
    said = " ".join(said.split()) or "(no name)"
    return said if len(said) <= LONGEST_NAME else f"{said[: LONGEST_NAME - 8]}~{stable_id(said)[:7]}"
