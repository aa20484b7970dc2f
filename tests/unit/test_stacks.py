"""What threads are in, and when two samples stand at one place."""

from __future__ import annotations

import pytest
from detection_support import (
    ALL_REDUCE,
    BACKWARD,
    BARRIER,
    FIXED,
    GETITEM,
    LOADER_WAIT,
    MAIN,
    OWN,
    SAVE,
    TORCH,
    WORKER_IDLE,
    at,
    sample,
    stack,
)
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Frame
from schemas.results import StackSpan
from streams.stacks import SharedFrames, activity_of, function_of, is_main, place, spans_of, telling

RECOMPUTED = [
    MAIN,
    Frame("Block.forward", "/workspace/model.py", 40),
    Frame("checkpoint", f"{TORCH}/utils/checkpoint.py", 490),
    Frame("CheckpointFunction.forward", f"{TORCH}/utils/checkpoint.py", 264),
    Frame("Attention.forward", "/workspace/model.py", 12),
]


@pytest.mark.parametrize(
    ("frames", "activity"),
    [
        (ALL_REDUCE, "communication"),
        (BARRIER, "communication"),
        ([MAIN, Frame("recv_forward", "/w/megatron/core/pipeline_parallel/p2p_communication.py", 5)], "communication"),
        ([MAIN, Frame("ncclAllReduce", "libnccl.so.2")], "communication"),
        ([MAIN, Frame("c10d::ProcessGroupGloo::allreduce", "libtorch_cpu.so")], "communication"),
        (BACKWARD, "engine"),
        ([MAIN, Frame("synchronize", f"{TORCH}/cuda/__init__.py", 985)], "engine"),
        (LOADER_WAIT, "data"),
        (GETITEM, "data"),
        (SAVE, "checkpoint"),
        (
            [MAIN, Frame("save_checkpoint", "/workspace/train.py", 9), Frame("write", "/workspace/disk.py", 1)],
            "checkpoint",
        ),
        (OWN, "own"),
        ([MAIN], "own"),
        # Own code may call what it does by any name; where it reads, it reads.
        ([MAIN, Frame("all_gather_files", "/workspace/files.py", 3), Frame("read", "/workspace/files.py", 9)], "own"),
        ([MAIN, Frame("all_reduce_grads", "/workspace/comm.py", 3)], "communication"),
        # A library's innermost frame may wait for the device, unseen; further out it says nothing.
        ([MAIN, Frame("clip_grad_norm_", f"{TORCH}/nn/utils/clip_grad.py", 60)], "engine"),
        ([MAIN, Frame("start_grad_sync", "/w/megatron/core/distributed/param_and_grad_buffer.py", 9)], "engine"),
        ([MAIN, Frame("_call_impl", f"{TORCH}/nn/modules/module.py", 1), Frame("f", "/workspace/model.py", 2)], "own"),
        ([MAIN, Frame("hipStreamSynchronize", "libamdhip64.so")], "engine"),
        ([MAIN, Frame("cuEventSynchronize", "libcuda.so.1")], "engine"),
        ([MAIN, Frame("read", "/venv/lib/python3.11/site-packages/urllib3/response.py", 4)], "own"),
        ([], "unobserved"),
    ],
)
def test_the_innermost_frame_that_says_anything_decides(frames: list[Frame], activity: str) -> None:
    assert activity_of(frames) == activity


def test_activation_checkpointing_is_no_saving_of_a_checkpoint() -> None:
    assert activity_of(RECOMPUTED) == "own"


def test_an_idle_loader_is_idle_but_an_idle_trainer_is_what_it_waits_for() -> None:
    assert stack(WORKER_IDLE, 1, process_type="dataloader").activity == "idle"
    assert stack(GETITEM, 1, process_type="dataloader").activity == "data"
    assert stack(LOADER_WAIT, 1).activity == "data"


def test_classes_and_enclosing_functions_fold_to_the_last_name() -> None:
    assert function_of(Frame("_exception_logger.<locals>.wrapper", "f")) == "wrapper"
    qualified = [Frame("Thread.run", "threading.py", 5)]
    plain = [Frame("run", "threading.py", 5)]
    assert stack(qualified, 1).identity == stack(plain, 1).identity


def test_the_line_tells_positions_apart_but_not_places() -> None:
    here, there = stack([Frame("f", "a.py", 1)], 1), stack([Frame("f", "a.py", 2)], 1)
    assert here.identity == there.identity
    assert here.position != there.position


def test_consecutive_samples_at_one_position_fold_and_moving_on_breaks_the_span() -> None:
    spans = spans_of(
        [sample(OWN, at(1)), sample(OWN, at(2)), sample(ALL_REDUCE, at(3)), sample(OWN, at(4)), sample(OWN, at(5))]
    )
    assert [(span.samples, span.first, span.last) for span in spans] == [
        (2, at(1), at(2)),
        (1, at(3), at(3)),
        (2, at(4), at(5)),
    ]


def test_threads_and_processes_fold_apart() -> None:
    spans = spans_of(
        sample(OWN, at(second), pid=pid, thread=thread)
        for second in range(3)
        for pid, thread in ((1, "MainThread"), (1, "pin_memory"), (2, "MainThread"))
    )
    assert [(span.pid, span.thread, span.samples) for span in spans] == [
        (1, "MainThread", 3),
        (1, "pin_memory", 3),
        (2, "MainThread", 3),
    ]
    assert [is_main(span) for span in spans] == [True, False, True]


def test_a_failed_sample_is_a_span_of_its_own_with_its_reason() -> None:
    spans = spans_of(
        [
            sample(OWN, at(1)),
            sample([], at(2), failure="permission denied"),
            sample([], at(3), failure="permission denied"),
            sample([], at(4), failure="no such process"),
            sample(OWN, at(5)),
        ]
    )
    assert [(span.activity, span.failure, span.samples) for span in spans] == [
        ("own", "", 1),
        ("unobserved", "permission denied", 2),
        ("unobserved", "no such process", 1),
        ("own", "", 1),
    ]


@FIXED
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from([1, 2])), max_size=30))
def test_no_sample_is_lost_or_counted_twice(samples: list[tuple[int, int]]) -> None:
    places = [OWN, ALL_REDUCE, []]
    spans = spans_of(
        sample(places[which], at(second), pid=pid, failure="" if places[which] else "gone")
        for second, (which, pid) in enumerate(samples)
    )
    assert sum(span.samples for span in spans) == len(samples)
    assert all(span.first <= span.last for span in spans)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (ALL_REDUCE, "all_reduce (distributed_c10d.py:3252) under train2.py:105"),
        (OWN, "wait_for_shard_server (train2.py:62)"),
        (LOADER_WAIT, "__next__ (dataloader.py:741) under train.py:120"),
        (BACKWARD, "backward (autograd/__init__.py:395) under train.py:133"),
        (WORKER_IDLE, "_worker_loop (worker.py:334)"),
        (
            [Frame("_all_gather_base", f"{TORCH}/distributed/distributed_c10d.py", 9)],
            "_all_gather_base (distributed_c10d.py:9)",
        ),
        ([Frame("_f", "/srv/train.py", 3)], "_f (train.py:3)"),
        ([Frame("f" * 500, "/srv/" + "x" * 500, 3)], f"{'f' * 79}… ({'x' * 79}…:3)"),
        ([Frame("ncclAllReduce", "libnccl.so.2")], "ncclAllReduce (libnccl.so.2)"),
        ([Frame("select", "/usr/lib/python3.11/selectors.py", 415)], "select (selectors.py:415)"),
        ([], "no frames"),
    ],
)
def test_a_place_is_said_as_people_say_it(frames: list[Frame], said: str) -> None:
    assert place(frames) == said


def threads(*told: str) -> list[StackSpan]:
    """Spans from ``process type/thread/second``, idle where the thread's name says so."""
    spans = []
    for number, one in enumerate(told):
        process_type, thread, second = one.split("/")
        frames = WORKER_IDLE if thread.startswith("idle") else OWN
        spans.append(stack(frames, float(second), process_type=process_type, thread=thread, pid=number))
    return spans


@pytest.mark.parametrize(
    ("told", "most", "kept"),
    [
        (["trainer/a/1", "trainer/MainThread/1"], 2, [0, 1]),
        (["trainer/a/1", "trainer/b/1", "trainer/MainThread/1"], 2, [0, 2]),
        (["dataloader/MainThread/1", "trainer/a/1", "trainer/MainThread/1"], 2, [0, 2]),
        (["dataloader/MainThread/1", "dataloader/MainThread/1", "trainer/MainThread/1"], 1, [2]),
        (["dataloader/idle/1", "dataloader/a/1", "dataloader/b/1"], 2, [1, 2]),
        (["trainer/MainThread/1", "trainer/MainThread/3", "trainer/MainThread/2"], 2, [1, 2]),
        ([], 2, []),
    ],
)
def test_where_not_all_threads_have_room_main_threads_stay(told: list[str], most: int, kept: list[int]) -> None:
    assert telling(threads(*told), most) == kept


def test_a_failed_sample_of_a_trainer_is_not_left_out_for_other_threads() -> None:
    failed = stack([], 1, failure="timed out", thread="")
    assert telling([*threads("trainer/a/1", "trainer/b/1", "dataloader/MainThread/1"), failed], 1) == [3]


def test_equal_frames_of_many_ranks_are_kept_once_and_no_others() -> None:
    shared = SharedFrames()
    given = [stack(list(frames), 1, pid=pid) for pid, frames in enumerate((ALL_REDUCE, ALL_REDUCE, OWN, OWN))]
    # The same Python frames, so the same position; but a sampler that shows native ones as well.
    given.append(stack([*ALL_REDUCE, Frame("ncclAllReduce", "libnccl.so.2")], 1, pid=4))
    found = [*shared.of(given[:3]), *shared.of(given[3:])]
    assert found == given
    assert len({id(span.frames) for span in found}) == 3
