"""Traces of PyTorch's profiler for tests: written ones, and faults planted into copies of real ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Events = list[dict[str, Any]]
BASE = 1_764_417_600_000_000_000
"""2025-11-29T12:00:00Z"""
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MAIN, DEVICE = 4711, 0


def call(name: str, category: str, start: float, duration: float, *, thread: int = MAIN, **args: Any) -> dict[str, Any]:
    """One call, times in microseconds."""
    process = DEVICE if category in ("kernel", "gpu_memcpy") else MAIN
    found = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration}
    return found | ({"args": args} if args else {})


def steps_of(
    count: int = 6,
    *,
    slow: dict[str, float] | None = None,
    waits: float = 2_000,
    first: int = 10,
    noise: Sequence[float] = (0.0,),
) -> Events:
    """Steps of 20 ms and more: the loader and the forward pass on the CPU, kernels, then an all-reduce of ``waits`` us.

    ``slow`` are more microseconds by function, ``noise`` is added to the kernels step by step.
    """
    more = slow or {}
    found: Events = []
    at = 1_000.0
    for step in range(count):
        begun = at
        load = 3_000 + more.get("augment", 0)
        found.append(call("/opt/venv/lib/site/train/data.py(41): augment", "python_function", at, load))
        at += load
        launch = 1_000 + more.get("cudaMalloc", 0)
        found.append(call("aten::linear", "cpu_op", at, launch + 500))
        found.append(call("cudaMalloc", "cuda_runtime", at + 100, launch))
        at += launch + 500
        gemm = 9_000 + more.get("gemm", 0) + noise[step % len(noise)]
        found.append(call("cudaDeviceSynchronize", "cuda_runtime", at, gemm + 2_000))
        found.append(call("sm90_xmma_gemm_bf16", "kernel", at, gemm, thread=7))
        found.append(call("vectorized_elementwise_kernel<4>", "kernel", at + gemm, 2_000, thread=7))
        at += gemm + 2_000
        wait = max(waits - noise[step % len(noise)], 100)
        found.append(call(ALL_REDUCE, "kernel", at, wait, thread=20))
        at += wait
        found.append(call("Optimizer.step#AdamW.step", "user_annotation", at, 1_500))
        at += 1_500
        found.append(call(f"ProfilerStep#{first + step}", "user_annotation", begun, at - begun))
    return found


def trace(events: Events, rank: int | None = 0, world: int | None = 8, *, base: int = BASE) -> dict[str, Any]:
    """The file's object; a rank of null leaves ``distributedInfo`` out."""
    info = {"backend": "nccl", "rank": rank, "world_size": world}
    told = {} if rank is None else {"distributedInfo": info}
    return {"schemaVersion": 1, **told, "traceEvents": events, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}


def write_trace(path: Path, value: dict[str, Any]) -> Path:
    """Write a trace, packed where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(value).encode()
    path.write_bytes(gzip.compress(raw, 1, mtime=0) if path.suffix == ".gz" else raw)
    return path


def read_real(path: Path, least_us: float = 20) -> dict[str, Any]:
    """A real trace without what no reader looks at, and without shorter calls of the CPU but launches."""
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    events: Events = []
    for event in found["traceEvents"]:
        told = event.get("args", {})
        launch = {"args": {"correlation": told["correlation"]}} if "correlation" in told else {}
        if event.get("ph") == "X" and (event["cat"] in ON_DEVICE or event["dur"] >= least_us or launch):
            names = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
            events.append({name: event[name] for name in names if name in event} | launch)
    return found | {"traceEvents": events}


def inserted(value: dict[str, Any], delays: dict[float, dict[str, Any]]) -> dict[str, Any]:
    """The trace with calls put in at moments: what begins there or later moves, what runs there takes longer."""
    moments = sorted(delays)

    def moved(time: float) -> float:
        return float(sum(delays[at]["dur"] for at in moments if at <= time))

    events: Events = []
    for event in value["traceEvents"]:
        start, end = event["ts"], event["ts"] + event.get("dur", 0)
        if event.get("cat") in ON_DEVICE:
            # The device does what it has been given; only what is not launched yet comes later.
            events.append(event | {"ts": start + moved(start)})
        else:
            last = moved(end - 1e-3) if end > start else moved(start)
            events.append(event | {"ts": start + moved(start), "dur": end - start + last - moved(start)})
    for at in moments:
        events.append(delays[at] | {"ts": at + sum(delays[one]["dur"] for one in moments if one < at)})
    return value | {"traceEvents": events}


def idle_moments(value: dict[str, Any]) -> list[float]:
    """A moment of each step at which the device does nothing and has nothing to do for longest."""
    kernels = sorted(
        (event["ts"], event["ts"] + event["dur"]) for event in value["traceEvents"] if event.get("cat") in ON_DEVICE
    )
    found = []
    for step in value["traceEvents"]:
        if not step["name"].startswith("ProfilerStep#"):
            continue
        reach, best = step["ts"], (0.0, step["ts"])
        for start, end in kernels:
            if start > step["ts"] + step["dur"]:
                break
            if start > reach:
                best = max(best, (start - reach, reach))
            reach = max(reach, end)
        found.append(best[1] + best[0] / 2)
    return sorted(found)


def of_rank(value: dict[str, Any], rank: int, world: int) -> dict[str, Any]:
    """The same trace as another rank's."""
    return value | {"distributedInfo": value.get("distributedInfo", {}) | {"rank": rank, "world_size": world}}
