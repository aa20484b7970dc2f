# ruff: noqa: E501 (real lines stand here as they are printed)
"""Fatal lines: what is a rank's own trouble, what a victim passes on, and what is no trouble at all."""

from __future__ import annotations

import pytest
from detection_support import fatal, traceback

from schemas.results import Fatal

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
GLOO = "/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp"
CLOSED = (
    f"RuntimeError: [{GLOO}/pair.cc:553] Connection closed by peer [127.0.0.1]:11662. This is typically caused by a "
    "remote worker crashing. Check the logs of the remote worker before reporting an error. GLHF! 🏖️"
)
TIMED_OUT = f"RuntimeError: [{GLOO}/unbound_buffer.cc:129] Timed out waiting 25000ms for send operation to complete"
WATCHDOG = (
    "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 "
    "milliseconds before timing out."
)
DIRECT = "\n\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
LOADER_FRAMES = f'  File "{TORCH}/utils/data/_utils/worker.py", line 351, in _worker_loop\n    data = fetch()\n'


def must(text: str, *, trained: bool = True) -> Fatal:
    found = fatal(text, trained=trained)
    assert found is not None, f"nothing fatal in {text!r}"
    return found


@pytest.mark.parametrize(
    ("text", "rule", "symptom"),
    [
        (traceback(CLOSED), "peer_lost", "crash"),
        (traceback(TIMED_OUT), "collective_timeout", "hang"),
        (traceback(TIMED_OUT.replace("send", "recv")), "collective_timeout", "hang"),
        (WATCHDOG, "collective_timeout", "hang"),
        ("[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(", "collective_timeout", "hang"),
        ("terminate called after throwing an instance of 'c10::DistBackendError'", "process_group", "crash"),
        (traceback("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2027, unhandled system error"), "process_group", "crash"),
        (traceback("torch.distributed.DistNetworkError: The client socket has timed out after 60s"), "process_group", "crash"),
        (traceback("torch.distributed.DistBackendError: [3] is setting up NCCL communicator: Socket Timeout"), "peer_lost", "crash"),
        (traceback("RuntimeError: NCCL communicator was aborted on rank 5."), "peer_lost", "crash"),
        (traceback("ConnectionResetError: [Errno 104] Connection reset by peer"), "peer_lost", "crash"),
        (traceback("BrokenPipeError: [Errno 32] Broken pipe"), "peer_lost", "crash"),
        (traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 23463 got signal: 15"), "terminated", "crash"),
        (traceback("ValueError: bad shard") + DURING + traceback(CLOSED), "peer_lost", "crash"),
    ],
)  # fmt: skip
def test_what_a_lost_or_late_peer_causes_names_nobody(text: str, rule: str, symptom: str) -> None:
    found = must(text)
    assert (found.role, found.rule, found.symptom) == ("cascade", rule, symptom)


@pytest.mark.parametrize(
    ("text", "trained", "symptom", "area"),
    [
        (traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."), True, "memory", "memory"),
        (traceback("torch.cuda.OutOfMemoryError: CUDA out of memory."), True, "memory", "memory"),
        (traceback("RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 70368744177664 bytes."), True, "memory", "memory"),
        (traceback("MemoryError"), True, "memory", "memory"),
        (traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered"), True, "crash", "hardware"),
        (traceback("KeyError: 'model.tensor_model_parallel_size'"), False, "crash", "configuration"),
        (traceback("KeyError: 'tokens'"), True, "crash", "code"),
        (traceback("ValueError: expected sequence of length 64 at dim 1 (got 63) in shard /data/shard_00045.bin"), True, "crash", "data"),
        (traceback("KeyError: 'tokens'", LOADER_FRAMES), True, "crash", "data"),
        (traceback("RuntimeError: DataLoader worker (pid(s) 1234) exited unexpectedly"), True, "crash", "data"),
        (traceback("RuntimeError: checkpoint is corrupt"), True, "crash", "checkpoint"),
        (traceback("AssertionError"), True, "crash", "code"),
        (traceback("RuntimeError: CUDA error: an illegal memory access was encountered"), True, "crash", "code"),
        (traceback("ValueError: a") + DIRECT + traceback("RuntimeError: step failed"), True, "crash", "code"),
    ],
)  # fmt: skip
def test_an_error_of_its_own_is_a_candidate_with_its_area(text: str, trained: bool, symptom: str, area: str) -> None:
    found = must(text, trained=trained)
    assert (found.role, found.symptom, found.area) == ("candidate", symptom, area)


@pytest.mark.parametrize("chain", [DIRECT, DURING])
def test_a_victim_that_wraps_the_loss_of_its_peer_is_a_victim_still(chain: str) -> None:
    # ``except RuntimeError as error: raise TrainingFailed(...) from error`` is the commonest handler there is.
    assert must(traceback(CLOSED) + chain + traceback("RuntimeError: training step 40 failed")).role == "cascade"


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-29 18:15:13,942 [INFO] [rank 0] trainer: starting remote worker pool with 4 processes",
        "2026-11-29 18:15:13,942 [WARNING] [rank 0] set expandable_segments to avoid CUDA out of memory",
        "[INFO] MemoryError handling: micro batch size is reduced on demand",
        "2026-11-29 18:15:13,942 - INFO - no hardware failure found in pre-flight checks",
        "step 37 timers (ms): data 11.5 forward 127.0",
        " iteration        1/     110 | lm loss: nan |",
        "",
    ],
)  # fmt: skip
def test_a_line_that_only_speaks_of_trouble_is_none(line: str) -> None:
    found = fatal(line)
    assert found is None or found.role == "advice", found


def test_a_fatal_line_is_told_by_its_words_whatever_stands_before_it() -> None:
    for prefix in ("", "[rank3]:", "2026-11-29 18:15:13,942 [INFO] [rank 6] "):
        assert must(f"{prefix}NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus").rule == "gpu_hardware"


def test_the_same_error_on_two_ranks_has_one_signature_and_a_bounded_text() -> None:
    one = must(traceback("ValueError: got 63 in /data/a.bin"))
    two = must(traceback("ValueError: got 61 in /data/b.bin"))
    assert one.signature == two.signature != must(traceback("ValueError: other")).signature
    assert len(must(traceback("ValueError: " + "x" * 3000)).text) <= 500
