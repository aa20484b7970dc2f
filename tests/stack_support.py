"""Classes of threads for the tests of pictures."""

from __future__ import annotations

from rankwatch.stackviews.picture import Picture
from schemas.events import Frame
from streams.stack_classes import Sample, classes_of

STEP = Frame("step", "/srv/train.py", 40)
REDUCE = Frame("all_reduce", "/py/site-packages/torch/distributed/distributed_c10d.py", 2799)
NEXT = Frame("__next__", "/py/site-packages/torch/utils/data/dataloader.py", 630)
IDLE = Frame("get", "/usr/lib/python3.11/multiprocessing/queues.py", 113)
READ = Frame("read", "/srv/files.py", 12)
HOSTILE = "</title><script>alert(1)</script>\x00\x1b[31m\ud800;\n\u202e&\"'|@0-3 ]]>"


def sample(rank: int, *frames: Frame, kind: str = "trainer", thread: str = "MainThread", failure: str = "") -> Sample:
    return Sample(rank=rank, role="", process_type=kind, thread=thread, frames=list(frames), failure=failure)


def picture(samples: list[Sample], ranks: int, *lines: str) -> Picture:
    classes = classes_of(samples, dict.fromkeys(range(ranks), ""))
    return Picture(title="job a, attempt 0", lines=list(lines), classes=classes, samples=samples)


def hang() -> Picture:
    """Rank 2 of four is in its data loader, which reads; rank 4 could not be sampled."""
    samples = [sample(rank, STEP, NEXT if rank == 2 else REDUCE) for rank in range(4)]
    loaders = [sample(rank, READ if rank == 2 else IDLE, kind="dataloader") for rank in range(4)]
    return picture([*samples, *loaders, sample(4, failure="Permission denied")], 5, "ranks 0-1,3 in all_reduce")


def hostile() -> Picture:
    """Names that try to end what they stand in, or to run."""
    frames = (Frame(HOSTILE, f"{HOSTILE}.py", 3), Frame("名前" * 40, "名.py"), Frame("x" * 5000, f"{'y' * 5000}.py", 2))
    return picture([sample(rank, *frames[: 2 + rank], thread=HOSTILE) for rank in range(2)], 2, HOSTILE)


def deep(frames: int = 500) -> Picture:
    """Eight ranks in a recursion, one of which stops early."""
    stack = [Frame(f"call_{at}", "/srv/tree.py", at) for at in range(frames)]
    return picture([sample(rank, *(stack[:-20] if rank == 5 else stack)) for rank in range(8)], 8)
