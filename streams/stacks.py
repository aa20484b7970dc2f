"""Stacks: what a thread is doing, and whether two samples of it are at the same place.

Samplers differ in how they tell one and the same stack: some qualify names, some shorten paths, some show the frames
of native code between those of Python. So a frame's identity is the last part of its function's name and of its
file's, and a stack's is that of its Python frames, where it has any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from schemas.events import MAIN_THREAD, Frame, Stack
from schemas.identity import shortened
from schemas.ids import stable_id
from schemas.results import Activity, StackSpan

_COMMUNICATION = re.compile(
    r"torch/distributed/(?:distributed_c10d|c10d_logger|_functional_collectives|rpc)|"
    r"(?:^|/)lib(?:nccl|rccl|mpi)\b|(?:^|/)(?:mpi4py|horovod|deepspeed/comm|megatron/core/pipeline_parallel/p2p_communication)"
)
_COMMUNICATION_FUNCTION = re.compile(r"nccl|gloo|(?:^|_)all_?(?:reduce|gather|to_all)|reduce_scatter|^WorkNCCL|c10d::")
_ENGINE = re.compile(r"torch/autograd/(?:graph|__init__)|torch/cuda/(?:__init__|streams)")
_ENGINE_FUNCTION = re.compile(r"(?:Stream|Event|Device)_?Synchronize|^cuda\w*Synchronize$|_engine_run_backward")
_DEVICE = re.compile(
    r"(?:^|/)(?:torch|torch_npu|torch_xla|megatron|deepspeed|transformer_engine|apex|flash_attn|deep_ep|colossalai|"
    r"accelerate|lightning|pytorch_lightning|transformers|nemo|vllm|ray)/"
)
"""Libraries whose innermost frame may wait for the device, for others through it, or for a handle, unseen."""
_DATA = re.compile(r"torch/utils/data/|(?:^|/)(?:webdataset|streaming/base|datasets)/|dataloader", re.IGNORECASE)
_RECOMPUTE = re.compile(r"torch/utils/checkpoint|activation_checkpoint|/random\.py$")
_CHECKPOINT = re.compile(r"checkpoint|torch/serialization|dist_checkpointing|safetensors", re.IGNORECASE)
_IDLE_LEAVES = frozenset({"select", "poll", "wait", "get", "_worker", "accept", "recv_bytes", "_recv"})

_STANDARD = re.compile(
    r"^<(?:frozen |built-in)|/python\d\.\d+/(?!site-packages/|dist-packages/)|\.so(?:\.|$)|"
    # As py-spy prints them: without the folder that they were imported from.
    r"^(?:(?:threading|selectors|socket|ssl|queue|subprocess|runpy)\.py$|(?:multiprocessing|concurrent/futures|asyncio)/)"
)
_LIBRARY = re.compile(r"(?:site|dist)-packages/|^(?:torch|numpy|megatron|deepspeed|lightning|transformers)/")

SHOWN_FRAMES = 24
MOST_SPANS = 64
"""Of one worker at a time; which threads are left out beyond that is said by ``telling``."""
LONGEST_NAME = 80
"""Characters of a function's or a file's name that are said."""


def function_of(frame: Frame) -> str:
    """The frame's function without its class or enclosing functions."""
    return frame.function.rsplit(".", 1)[-1]


def frame_name(frame: Frame) -> str:
    """What makes a frame the same one in two stacks: the last part of its function's name and of its file's."""
    return f"{function_of(frame)} {frame.file.rpartition('/')[2]}"


@lru_cache(maxsize=1 << 14)
def _activity_of_frame(function: str, file: str, *, innermost: bool) -> Activity | None:
    """Of a function without its class; the ranks of a job stand in the same few thousand frames.

    What the job's own code calls a function of its own says nothing of what is done further in.
    """
    telling = innermost or not (file.endswith(".py") and _is_own_file(file))
    if _COMMUNICATION.search(file) or (telling and _COMMUNICATION_FUNCTION.search(function)):
        return "communication"
    if _ENGINE.search(file) or _ENGINE_FUNCTION.search(function):
        return "engine"
    if _DATA.search(file):
        return "data"
    if _RECOMPUTE.search(file):
        # Activation checkpointing computes anew in the backward pass; it saves nothing.
        return None
    if _CHECKPOINT.search(file) or "checkpoint" in function.lower():
        return "checkpoint"
    return "engine" if innermost and _DEVICE.search(file) else None


def activity_of(frames: list[Frame]) -> Activity:
    """What the thread is in: the innermost frame that says anything decides; ``own`` if none does.

    ``engine`` is a wait for the device or the autograd engine, inside which communication cannot be seen.
    """
    if not frames:
        return "unobserved"
    inner = python_frames(frames)[-1]
    for frame in reversed(frames):
        activity = _activity_of_frame(function_of(frame), frame.file, innermost=frame is inner)
        if activity is not None:
            return activity
    return "own"


def is_idle(frames: list[Frame]) -> bool:
    """Whether a thread that serves others has nothing to do: it waits for work."""
    return bool(frames) and function_of(python_frames(frames)[-1]) in _IDLE_LEAVES


def python_frames(frames: list[Frame]) -> list[Frame]:
    """The frames that every sampler shows: those of Python, or all where there are none."""
    return [frame for frame in frames if _is_python(frame)] or frames


def _is_python(frame: Frame) -> bool:
    return frame.file.endswith(".py") or (frame.file.startswith("<") and frame.file != "<built-in>")


def _span_of(event: Stack) -> StackSpan:
    activity = activity_of(event.frames)
    if event.process_type != "trainer" and is_idle(event.frames):
        activity = "idle"
    telling = python_frames(event.frames)
    names = [frame_name(frame) for frame in telling]
    places = [f"{name} {frame.line}" for name, frame in zip(names, telling, strict=True)]
    return StackSpan(
        process_type=event.process_type,
        pid=event.pid,
        thread=event.thread,
        activity=activity,
        identity=stable_id("stack", *names),
        position=stable_id("stack", *places),
        frames=event.frames[-SHOWN_FRAMES:],
        first=event.time,
        last=event.time,
        samples=1,
        failure=event.failure,
        outer=max(0, len(event.frames) - SHOWN_FRAMES),
    )


def spans_of(events: Iterable[Stack]) -> list[StackSpan]:
    """One worker's samples, in order of time, folded where consecutive ones of a thread stand at one position."""
    spans: list[StackSpan] = []
    latest: dict[tuple[int, str], tuple[int, Stack]] = {}
    for event in events:
        thread = (event.pid, event.thread)
        at, before = latest.get(thread, (-1, None))
        if before is not None and _alike(before, event):
            spans[at] = joined(
                spans[at], msgspec.structs.replace(spans[at], first=event.time, last=event.time, samples=1)
            )
            continue
        span = _span_of(event)
        if before is not None and spans[at].position == span.position and spans[at].failure == span.failure:
            spans[at] = joined(spans[at], span)
        else:
            at = len(spans)
            spans.append(span)
        latest[thread] = (at, event)
    return spans


def _alike(one: Stack, other: Stack) -> bool:
    """Whether two samples of a thread show the same, so that nothing has to be found out anew."""
    return one.frames == other.frames and one.failure == other.failure


def telling(spans: Sequence[StackSpan], most: int = MOST_SPANS) -> list[int]:
    """Places of at most so many spans, in their order, for what has no room for all.

    The main threads of trainers come first, then those of other processes; then who is at work, and later samples.
    """
    if len(spans) <= most:
        return list(range(len(spans)))
    order = sorted(range(len(spans)), key=lambda at: (*_weight(spans[at]), -spans[at].last, at))
    return sorted(order[:most])


def _weight(span: StackSpan) -> tuple[bool, bool, bool]:
    trains = span.process_type == "trainer" and (is_main(span) or bool(span.failure))
    return not trains, not is_main(span), span.activity == "idle"


class SharedFrames:
    """Keeps what equal stacks show once: ranks of a job mostly stand where others stand."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], StackSpan] = {}

    def of(self, spans: list[StackSpan]) -> list[StackSpan]:
        """The same spans, made of an earlier one where they show the same at another time, or in another process."""
        return [self._shared(span) for span in spans]

    def _shared(self, span: StackSpan) -> StackSpan:
        known = self._known.setdefault((span.position, span.process_type, span.thread), span)
        if known is span:
            return span
        own = {"pid": span.pid, "first": span.first, "last": span.last, "samples": span.samples}
        made = msgspec.structs.replace(known, **own)
        return made if made == span else span


def joined(before: StackSpan, after: StackSpan) -> StackSpan:
    """Two spans of one thread at one position as one; what two samplers see at one time was seen once."""
    return msgspec.structs.replace(
        before,
        first=min(before.first, after.first),
        last=max(before.last, after.last),
        samples=before.samples + (after.samples if after.last > before.last else 0),
    )


def is_main(span: StackSpan) -> bool:
    """Whether the span is of the main thread of a process."""
    return span.thread == MAIN_THREAD


def is_own(frame: Frame) -> bool:
    """Whether the frame is of the job's own code, neither of Python's standard library nor of a package."""
    return _is_own_file(frame.file)


def _is_own_file(file: str) -> bool:
    return not (_STANDARD.search(file) or _LIBRARY.search(file))


def place(frames: list[Frame]) -> str:
    """Where a thread is, as people say it: ``recv (distributed_c10d.py:2799) under forward (train.py:94)``.

    The innermost frame outside the standard library, and the innermost one of the job's own code.
    """
    telling = [frame for frame in frames if not _STANDARD.search(frame.file)] or frames
    own = [frame for frame in telling if not _LIBRARY.search(frame.file)]
    shown = [_known_by_name(telling)] if telling else []
    shown += [frame for frame in own[-1:] if frame is not telling[-1]]
    return " under ".join(_said(frame) for frame in shown) or "no frames"


def _known_by_name(frames: list[Frame]) -> Frame:
    """The innermost frame; inside a library the innermost of which its users know the name.

    Communication is told apart by its innermost name, whether or not anybody calls it by that.
    """
    if _activity_of_frame(function_of(frames[-1]), frames[-1].file, innermost=True) == "communication":
        return frames[-1]
    for frame in reversed(frames):
        if not _LIBRARY.search(frame.file):
            break
        function = function_of(frame)
        if not function.startswith("_") or function.endswith("__"):
            return frame
    return frames[-1]


def _said(frame: Frame) -> str:
    folder, _, name = frame.file.rpartition("/")
    if name == "__init__.py":
        name = f"{folder.rpartition('/')[2]}/{name}"
    where = shortened(name, LONGEST_NAME) + (f":{frame.line}" if frame.line else "")
    function = shortened(function_of(frame), LONGEST_NAME)
    return where if function == "<module>" else f"{function} ({where})"
