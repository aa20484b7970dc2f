"""What a timer's name says that it measures."""

from __future__ import annotations

import pytest

from streams.timers import is_of_data, kind_of_timer, scale_ns


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("data_ms", "own"),
        ("forward_ms", "own"),
        ("compute_ms", "own"),
        ("data_load_s", "own"),
        ("timing_s/reward", "own"),
        ("allreduce_ms", "wait"),
        ("grads_all_reduce_ms", "wait"),
        ("p2p_wait_ms", "wait"),
        ("forward_recv_ms", "wait"),
        ("grad_norm_ms", "wait"),
        ("barrier_s", "wait"),
        ("params_all_gather_ms", "wait"),
        ("backward_ms", "mixed"),
        ("optimizer_ms", "mixed"),
        ("something_ms", "mixed"),
        ("total_ms", "total"),
        ("timing_s/step", "total"),
        ("elapsed_time_per_iteration_ms", "total"),
        ("lm_loss", "none"),
        ("across_ranks/forward_compute_max_ms", "none"),
        ("it_per_s", "none"),
        ("s_per_it", "none"),
        ("grad_norm", "none"),
        ("data", "none"),
        ("learning_rate", "none"),
        ("DATA_MS", "own"),
        ("fwd_ms", "own"),
        ("fwd_microstep_ms", "own"),
        ("bwd_ms", "mixed"),
        ("bwd_inner_microstep_ms", "mixed"),
        ("step_microstep_ms", "mixed"),
        ("fwd_bwd_ms", "mixed"),
        ("bwd_allreduce_microstep_ms", "wait"),
        ("bwd_microstep_ms", "none"),
    ],
)
def test_a_name_says_what_a_timer_measures(name: str, kind: str) -> None:
    assert kind_of_timer(name) == kind


def test_forward_and_backward_in_one_timer_hold_the_wait_for_the_neighbours() -> None:
    # Megatron's ``forward-backward`` spans the pipeline's sends and receives: victims are slow in it too.
    assert kind_of_timer("forward_backward_ms") == "mixed"


@pytest.mark.parametrize("name", ["tokens_per_s", "generated_tokens_per_s", "samples_per_s", "data_mb_per_s"])
def test_a_rate_is_no_timer(name: str) -> None:
    assert kind_of_timer(name) == "none"


@pytest.mark.parametrize(("name", "scale"), [("data_ms", 10**6), ("data_s", 10**9), ("timing_s/step", 10**9)])
def test_units_scale_to_nanoseconds(name: str, scale: int) -> None:
    assert scale_ns(name) == scale


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("data", True),
        ("dataloader", True),
        ("data-loading", True),
        ("prefetch_batch", True),
        ("tokenize", True),
        ("collate_fn", True),
        ("load_shard", True),
        ("torch/utils/data/dataloader.py: __next__", True),
        ("generate_tokens", False),
        ("forward_offload", False),
        ("forward_preload", False),
        ("data_parallel_forward", False),
        ("token_embedding", False),
        ("load_balance", False),
    ],
)
def test_what_loads_data_by_its_name(name: str, told: bool) -> None:
    assert is_of_data(name) is told
