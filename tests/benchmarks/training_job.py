"""A synthetic job of any size that trains: what the rank stage says of its windows, the same for the same seed.

Iterations of 2.5 s, their timers and loss printed by every rank; fifty metrics a rank, sampled twice in a window: the
process's own, its device's and its network adapters'. Each node's agent lists the processes that it sees; with
``by_node`` it is what tells the devices' metrics, by their PCI ids, as exporters do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hanging_job import BASE, PER_NODE, SECOND, node_of, pid_of

from schemas.events import Event, Heartbeat, Log, Metric, Topology
from schemas.identity import Identity
from schemas.results import Progress, Window
from streams.config import StreamConfig
from streams.packing import with_packs
from streams.stages.worker import WorkerState, summarise

STEP_S = 2.5
STEPS = 4
"""In each window."""
PHASES = {"forward_compute": 700.0, "backward_compute": 1400.0, "data_load": 24.0, "allreduce_wait": 95.0}
"""Timers of a step (ms)."""
OWN = {
    "cpu_percent": 97.0,
    "ctx_switches": 4.2e4,
    "ctx_switches_forced": 310.0,
    "fds": 512.0,
    "io_read_bytes": 8.1e9,
    "io_write_bytes": 2.3e8,
    "io_wait_seconds": 12.0,
    "major_faults": 18.0,
    "minor_faults": 9.4e6,
    "process_running": 1.0,
    "rss_bytes": 4.1e10,
    "shm_bytes": 6.4e9,
    "threads": 214.0,
    "cpu_user_seconds": 8.8e4,
    "cpu_system_seconds": 4.1e3,
    "python_gc_seconds": 31.0,
    "python_heap_bytes": 2.2e9,
    "cuda_allocated_bytes": 5.9e10,
    "cuda_reserved_bytes": 7.1e10,
    "cuda_retries": 0.0,
    "loader_queue": 7.5,
    "host_load": 61.0,
    "host_memory_free_bytes": 9.7e11,
    "host_swap_bytes": 0.0,
    "net_receive_bytes": 3.3e10,
    "net_transmit_bytes": 3.1e10,
    "tcp_retransmits": 40.0,
    "nfs_read_bytes": 7.7e9,
    "nfs_latency_seconds": 0.004,
    "page_cache_bytes": 2.6e11,
}
OF_DEVICE = {
    "gpu_clock_hertz": 1.74e9,
    "gpu_ecc_corrected": 0.0,
    "gpu_energy_joules": 4.4e8,
    "gpu_memory_clock_hertz": 2.62e9,
    "gpu_memory_temperature": 71.0,
    "gpu_memory_used_bytes": 7.3e10,
    "gpu_nvlink_receive_bytes": 8.9e12,
    "gpu_nvlink_transmit_bytes": 8.9e12,
    "gpu_pcie_receive_bytes": 2.1e11,
    "gpu_pcie_replays": 0.0,
    "gpu_pcie_transmit_bytes": 1.9e11,
    "gpu_power_watts": 655.0,
    "gpu_sm_active": 0.83,
    "gpu_temperature": 63.0,
    "gpu_tensor_active": 0.47,
    "gpu_utilization": 98.0,
}
OF_ADAPTER = {"port_receive_bytes": 6.2e12, "port_transmit_bytes": 6.2e12, "port_state": 4.0, "symbol_errors": 0.0}
UNITS = ("bytes", "hertz", "joules", "percent", "seconds", "watts")
METRICS = len(OWN) + len(OF_DEVICE) + len(OF_ADAPTER)
SAMPLES = (2, 7)
CONFIG = StreamConfig()


class TrainingJob:
    """``ranks`` must be a multiple of 128; the rank stage had ``ranks`` / 128 partitions."""

    def __init__(self, ranks: int, seed: int = 1, *, by_node: bool = False) -> None:
        self.ranks = ranks
        self.by_node = by_node
        self.name = f"train-{ranks}"
        self.partitions = ranks // 128
        self._random = np.random.default_rng(seed)
        self._states = [WorkerState() for _ in range(ranks)]

    def window(self, number: int) -> Iterator[Window | Progress]:
        """What lies in the log of one window, in order; windows must be asked for one after another."""
        for rank in range(self.ranks):
            yield self._summary(rank, number)
        for node in range(self.ranks // PER_NODE):
            yield self._agent(node, number)
        for partition in range(self.partitions):
            yield Progress(partition=partition, end=BASE + (number + 1) * CONFIG.window_ns)

    def _summary(self, rank: int, number: int) -> Window:
        who = Identity(
            job=self.name,
            attempt="0",
            cluster="bench",
            node=node_of(rank),
            rank=rank,
            local_rank=rank % PER_NODE,
            process_type="trainer",
            device=f"cuda:{rank % PER_NODE}",
        )
        found = sorted([*self._lines(rank, number), *self._samples(rank, number)], key=lambda event: event.time)
        if number == 0:
            nccl = f"NCCL INFO ncclCommInitRank rank {rank} nranks {self.ranks} busId {_bus(rank):x}000 - Init COMPLETE"
            said = [Log(time=BASE, stream="stdout", text=nccl)] if self.by_node else []
            began = Topology(time=BASE, pid=pid_of(rank), world_size=self.ranks, process_type="trainer")
            found = [began, *said, *found]
        told, _ = summarise(who, self._states[rank], found, BASE // CONFIG.window_ns + number, CONFIG)
        return with_packs(told)

    def _agent(self, node: int, number: int) -> Window:
        name = node_of(node * PER_NODE)
        who = Identity(job=self.name, attempt="0", cluster="bench", node=name, rank_reason="agent of a node")
        ranks = range(node * PER_NODE, (node + 1) * PER_NODE)
        found: list[Event] = [
            Heartbeat(time=_at(number, second), pids=[pid_of(rank) for rank in ranks]) for second in range(10)
        ]
        if self.by_node:
            for rank in ranks:
                found += self._sampled(number, {f"00000000:{_bus(rank):02X}:00.0": OF_DEVICE}, None)
        found.sort(key=lambda event: event.time)
        told, _ = summarise(who, WorkerState(), found, BASE // CONFIG.window_ns + number, CONFIG)
        return with_packs(told)

    def _lines(self, rank: int, number: int) -> Iterator[Event]:
        """Each step's timers and its loss; now and then a word of the allocator."""
        jitter = self._random.normal(1.0, 0.01, (STEPS, len(PHASES))).tolist()
        for place in range(STEPS):
            step, time = number * STEPS + place + 1, _at(number, place * STEP_S + 1.0 + rank % 97 / 1000)
            took = " ".join(
                f"{name} {usual * times:.2f}"
                for (name, usual), times in zip(PHASES.items(), jitter[place], strict=True)
            )
            yield Log(time=time, stream="stdout", text=f"step {step} timers (ms): {took}", iteration=step)
            text = (
                f" iteration {step:8d}/   50000 | elapsed time per iteration (ms): {STEP_S * 1e3 + step % 3:.1f} |"
                f" lm loss: {2.5 - step / 1e4:.6E} | grad norm: {1 + step % 7 / 100:.3f} |"
            )
            yield Log(time=time + 1_000_000, stream="stdout", text=text, iteration=step)
        if (rank + number) % 16 == 0:
            text = f"INFO allocator: {rank % 7 + 1} cached blocks of pool {rank % 3} released"
            yield Log(time=_at(number, 9), stream="stderr", text=text)

    def _samples(self, rank: int, number: int) -> Iterator[Event]:
        devices = {"": OWN, f"mlx5_{rank % PER_NODE}": OF_ADAPTER}
        if not self.by_node:
            devices[f"gpu{rank % PER_NODE}"] = OF_DEVICE
        return self._sampled(number, devices, pid_of(rank))

    def _sampled(self, number: int, devices: dict[str, dict[str, float]], pid: int | None) -> Iterator[Event]:
        jitter = self._random.normal(1.0, 0.02, (len(SAMPLES), METRICS)).tolist()
        named = [(name, device, usual) for device, metrics in devices.items() for name, usual in metrics.items()]
        for second, times in zip(SAMPLES, jitter, strict=True):
            for (name, device, usual), one in zip(named, times, strict=False):
                value = usual if name in ("process_running", "port_state") else float(f"{usual * one:.4g}")
                unit = next((unit for unit in UNITS if name.endswith(unit)), "")
                yield Metric(
                    time=_at(number, second),
                    name=name,
                    value=value,
                    unit=unit,
                    device=device or None,
                    pid=pid,
                )


def _bus(rank: int) -> int:
    """Number of the PCI bus of a rank's device."""
    bus: int = 16 * (rank % PER_NODE) + 11
    return bus


def _at(number: int, second: float) -> int:
    time: int = BASE + number * CONFIG.window_ns + round(second * SECOND)
    return time
