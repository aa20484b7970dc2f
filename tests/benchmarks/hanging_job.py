"""A synthetic job of any size that hangs: what its producers send, batch by batch, the same for the same seed.

Iterations of 2.5 s, the last at second 18.5; then one rank stays outside communication, its loader in a read, and all
others wait for it. Stacks are sampled three times, 5 s apart, flight recorders dumped once. A few samples fail, of a
few ranks there is none, and a few never come.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

from schemas.events import Batch, Collective, Event, Frame, Heartbeat, Log, Metric, Stack, Topology
from schemas.identity import Identity, rank_ranges
from schemas.ids import stable_id
from schemas.topics import RAW_TOPICS
from streams.log.partition import partition_of

SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
WINDOWS = 5
"""Of ten seconds each: two train, one is silent, two hold samples."""
SAMPLED = (31.0, 36.0, 41.0)
DUMPED = 37.0
STEPS = (1.0, 3.5, 6.0, 8.5, 11.0, 13.5, 16.0, 18.5)
PER_NODE, TENSOR, STAGES = 8, 8, 4
DEEP = 64
"""One rank in so many has a stack of ``DEEP_FRAMES`` frames."""
DEEP_FRAMES = 500
SITE = "/opt/venv/lib/python3.11/site-packages"


def _frames(*rows: str) -> list[Frame]:
    """Frames from ``function file line``."""
    return [
        Frame(function, f"{SITE}/{file}" if file[0] != "/" else file, int(line))
        for function, file, line in map(str.split, rows)
    ]


_ENTRY = _frames(
    "<module> /workspace/pretrain.py 310",
    "main /workspace/pretrain.py 288",
    "wrapper torch/distributed/elastic/multiprocessing/errors/__init__.py 357",
    "pretrain megatron/training/training.py 755",
    "train megatron/training/training.py 2024",
)
_LAYER = _frames(
    "Module._call_impl torch/nn/modules/module.py 1762",
    "Module._wrapped_call_impl torch/nn/modules/module.py 1751",
    "TransformerLayer.forward megatron/core/transformer/transformer_layer.py 412",
    "SelfAttention.forward megatron/core/transformer/attention.py 658",
)
_WAIT = _frames(
    "linear_with_allreduce megatron/core/tensor_parallel/layers.py 640",
    "reduce_from_group megatron/core/tensor_parallel/mappings.py 38",
    "_exception_logger.<locals>.wrapper torch/distributed/c10d_logger.py 83",
    "all_reduce torch/distributed/distributed_c10d.py 2806",
)
_NO_BATCH = _frames(
    "train_step megatron/training/training.py 1130",
    "get_batch /workspace/pretrain.py 84",
    "_BaseDataLoaderIter.__next__ torch/utils/data/dataloader.py 733",
    "_MultiProcessingDataLoaderIter._next_data torch/utils/data/dataloader.py 1491",
    "Queue.get /usr/lib/python3.11/multiprocessing/queues.py 113",
    "_PollLikeSelector.select /usr/lib/python3.11/selectors.py 415",
)
_LOADER = _frames(
    "<module> <string> 1",
    "spawn_main /usr/lib/python3.11/multiprocessing/spawn.py 122",
    "Process._bootstrap /usr/lib/python3.11/multiprocessing/process.py 314",
    "_worker_loop torch/utils/data/_utils/worker.py 349",
)
_READS = _frames(
    "_MapDatasetFetcher.fetch torch/utils/data/_utils/fetch.py 52",
    "Tokens.__getitem__ /workspace/tokens.py 71",
    "read_shard /workspace/tokens.py 40",
)
_IDLE = _frames(
    "Queue.get /usr/lib/python3.11/multiprocessing/queues.py 113", "select /usr/lib/python3.11/selectors.py 415"
)
_POOL = _frames(
    "Thread._bootstrap /usr/lib/python3.11/threading.py 1002",
    "Thread._bootstrap_inner /usr/lib/python3.11/threading.py 1045",
    "Thread.run /usr/lib/python3.11/threading.py 982",
    "_worker /usr/lib/python3.11/concurrent/futures/thread.py 81",
)
_PINS = _frames(
    "Thread._bootstrap /usr/lib/python3.11/threading.py 1002",
    "Thread.run /usr/lib/python3.11/threading.py 982",
    "_pin_memory_loop torch/utils/data/_utils/pin_memory.py 55",
    "Queue.get /usr/lib/python3.11/multiprocessing/queues.py 113",
    "select /usr/lib/python3.11/selectors.py 415",
)


class HangingJob:
    """``ranks`` must be a multiple of 32: tensor groups of 8, four pipeline stages, the rest data parallel.

    With ``hostile`` every stack has 500 frames and each process that is sampled 200 threads.
    """

    def __init__(self, ranks: int, seed: int = 1, *, hostile: bool = False) -> None:
        self.ranks = ranks
        self.name = f"bench-{ranks}"
        self.partitions = max(ranks // 128, 1)
        self.hostile = hostile
        odd = random.Random(seed).sample(range(ranks), 15)
        self.outside, self.failed, self.unsampled, self.absent = odd[0], set(odd[1:7]), set(odd[7:12]), set(odd[12:])
        self._numbers = count()
        self._waits = [*_ENTRY, *_LAYER * 8, *_WAIT]
        self._deep = [*_ENTRY, *_LAYER * ((DEEP_FRAMES - 9) // 4), *_WAIT]
        block = ranks // STAGES
        self._tensor = [list(range(first, first + TENSOR)) for first in range(0, ranks, TENSOR)]
        self._data = [
            list(range(stage * block + one, (stage + 1) * block, TENSOR))
            for stage in range(STAGES)
            for one in range(TENSOR)
        ]
        self._world = list(range(ranks))

    def batches(self, partition: int, window: int) -> Iterator[tuple[str, Batch[Event]]]:
        """(raw topic, batch) of the workers and nodes of one partition in one window."""
        for rank in range(self.ranks):
            who = self._identity(rank)
            if rank not in self.absent and self._is_home(who, partition):
                for topic, events in self._events(rank, window).items():
                    if events:
                        yield topic, self._batch(who, events)
        for node in range(self.ranks // PER_NODE):
            agent = Identity(job=self.name, node=node_of(node * PER_NODE), rank_reason="agent of a node")
            if self._is_home(agent, partition):
                pids = [
                    pid_of(rank) for rank in range(node * PER_NODE, (node + 1) * PER_NODE) if rank not in self.absent
                ]
                beats = [Heartbeat(time=at(10 * window + second), pids=pids) for second in (2, 6)]
                yield "heartbeats", self._batch(agent, [*beats])

    def sampled(self) -> Iterator[tuple[int, Batch[Event]]]:
        """Each rank with all its threads in the last sample, ranks without one left out."""
        for rank in range(self.ranks):
            if rank not in self.absent | self.unsampled:
                yield rank, self._batch(self._identity(rank), self._sample(rank, SAMPLED[-1]))

    def _identity(self, rank: int) -> Identity:
        return Identity(job=self.name, node=node_of(rank), rank=rank, local_rank=rank % PER_NODE)

    def _is_home(self, who: Identity, partition: int) -> bool:
        return partition_of(who.key.encode(), self.partitions) == partition

    def _batch(self, who: Identity, events: list[Event]) -> Batch[Event]:
        return Batch(producer="bench", boot="0", seq=next(self._numbers), identity=who, events=events)

    def _events(self, rank: int, window: int) -> dict[str, list[Event]]:
        begin, end = 10 * window, 10 * window + 10
        found: dict[str, list[Event]] = {topic: [] for topic in RAW_TOPICS}
        if window == 0:
            found["topology"].append(Topology(time=at(0.2), pid=pid_of(rank), world_size=self.ranks))
        found["logs"] = [
            self._line(rank, step, second) for step, second in enumerate(STEPS, 1) if begin <= second < end
        ]
        for second in (begin + 1, begin + 6):
            for name, value in (("cpu_percent", 97.5), ("ctx_switches", 40.0 * second), ("rss_bytes", 4e10)):
                found["metrics"].append(Metric(time=at(second), name=name, value=value, pid=pid_of(rank)))
        for moment in SAMPLED:
            if begin <= moment < end and rank not in self.unsampled:
                found["stacks"] += self._sample(rank, moment)
        if begin <= DUMPED < end:
            found["collectives"] = self._dump(rank)
        return found

    def _line(self, rank: int, step: int, second: float) -> Log:
        took = 2200 + (rank * 7 + step * 3) % 5
        text = f"step {step} timers (ms): forward_compute {took:.1f} data_load {20 + rank % 3} allreduce_wait 90.5"
        return Log(time=at(second + rank % 97 / 1000), stream="stdout", text=text, iteration=step)

    def _sample(self, rank: int, second: float) -> list[Event]:
        """Three threads of the trainer, five of its loader."""
        main = [*_ENTRY, *_NO_BATCH] if rank == self.outside else self._deep if self._is_deep(rank) else self._waits
        reads = [*_LOADER, *(_READS if rank == self.outside else _IDLE)]
        threads = [(0, "MainThread", main), (0, "Thread-1 (_pin_memory_loop)", _PINS), (0, "Thread-2 (_worker)", _POOL)]
        threads += [(1, "MainThread", reads), *((1, f"pool_{number}", _POOL) for number in range(4))]
        if self.hostile:
            threads += [(0, f"made up {number}", self._deep) for number in range(197)]
        time = at(second + rank % 89 / 1000)
        if rank in self.failed:
            return [Stack(time=time, process_type="trainer", pid=pid_of(rank), failure="timed out after 10 s")]
        return [
            Stack(
                time=time,
                process_type="dataloader" if loads else "trainer",
                pid=pid_of(rank) + 100_000 * loads,
                thread=thread,
                frames=frames,
            )
            for loads, thread, frames in threads
        ]

    def _is_deep(self, rank: int) -> bool:
        return self.hostile or rank % DEEP == 0

    def _dump(self, rank: int) -> list[Event]:
        """The world's barrier at the start, and the latest operations of the rank's tensor, data and stage groups."""
        block = self.ranks // STAGES
        stage, mine, theirs = rank // block, rank // TENSOR, self.outside // TENSOR
        waits = "tensor" if mine == theirs else "data" if stage == self.outside // block else "send"
        pair = [rank, rank + block] if stage + 1 < STAGES else [rank - block, rank]
        stuck = rank == self.outside
        data = self._data[stage * TENSOR + rank % TENSOR]
        return [
            *self._operations("world", self._world, "barrier", 0, 1, waits=False),
            *self._operations(
                "tensor", self._tensor[mine], "all_reduce", 640, 8, waits=waits == "tensor" and not stuck
            ),
            *self._operations("data", data, "reduce_scatter", 80, 8, waits=waits == "data"),
            *self._operations("stage", pair, f"send {pair[0]}->{pair[1]}", 320, 6, waits=waits == "send", sends=True),
        ]

    def _operations(
        self, name: str, ranks: list[int], operation: str, last: int, kept: int, *, waits: bool, sends: bool = False
    ) -> Iterator[Event]:
        said = rank_ranges(ranks)
        group = f"{name}:{said if len(said) <= 60 else f'{len(ranks)} ranks from {ranks[0]}, {stable_id(said)[:6]}'}"
        for sequence in range(last - kept + 1, last + 1 + waits):
            yield Collective(
                time=at(DUMPED),
                group=group,
                ranks=ranks,
                sequence=sequence,
                operation=operation,
                state="started" if sequence > last else "completed",
                input_sizes=[[4096, 1, 8192]],
                dtype="BFloat16",
                created=at(18.6) + (sequence - last) * 1_000_000,
                point_to_point=sends,
            )


def at(second: float) -> int:
    return BASE + round(second * SECOND)


def node_of(rank: int) -> str:
    return f"node{rank // PER_NODE:04d}"


def pid_of(rank: int) -> int:
    return 10_000 + rank % PER_NODE
