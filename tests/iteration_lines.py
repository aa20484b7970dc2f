# ruff: noqa: E501 (lines stand here as they are printed)
"""Iteration lines as the frameworks print them, with what they say; most values are invented, the shapes are real."""

from __future__ import annotations

from typing import Any

import msgspec

FRAMEWORKS = {
    "megatron": " [2026-05-27 07:58:10.261551] iteration {step:8d}/    4000 | consumed samples:           64 | elapsed time per iteration (ms): 121899.8 | throughput per GPU (TFLOP/s/GPU): 400.1 | learning rate: 1.875000E-05 | global batch size:    64 | lm loss: 1.252221E+01 | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "deepspeed": "[2026-05-27 07:58:10,261] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[6e-05], mom=[(0.9, 0.95)]",
    "nemo": "[NeMo I 2025-04-11 14:46:18 nemo_logging:393] Training epoch 0, iteration {step}/99 | lr: 0.0001 | global_batch_size: 512 | global_step: {step} | reduced_train_loss: 10.99 | train_step_timing in s: 1.21 | consumed_samples: 5120",
    "torchtitan": "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - \x1b[31mstep: {step:2d}  \x1b[32mloss:  3.24405  \x1b[38;2;180;60;0mgrad_norm:  0.8319  \x1b[38;2;54;234;195mmemory:  9.46GiB(64.99%)  \x1b[34mtps: 7,282  \x1b[36mtflops: 0.52  \x1b[35mmfu: 0.17%\x1b[39m",
    "huggingface": "{{'loss': '2.345', 'grad_norm': '0.83', 'learning_rate': '5e-05', 'epoch': '0.1'}}",
    "lightning": "Epoch 0:   6%|▋         | {step}/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6, v_num=95nc]",
    "verl": "(TaskRunner pid=222265) step:{step} - global_seqlen/min:419336 - actor/pg_loss:-0.003 - actor/grad_norm:nan - perf/mfu/actor:0.41 - training/global_step:{step} - timing_s/gen:29.641 - timing_s/step:96.551",
    "openrlhf": "INFO 11-29 12:00:00 ppo_trainer.py:547] ✨ Global step {step}: {{'policy_loss': -0.012, 'actor_lr': 9e-07, 'lr': 9e-07, 'reward': 0.5}}",
    "plain": "2026-11-29 18:15:13,942 [INFO] [rank 6] trainer: step {step} timers (ms): data 11.5 compute 125.3 total 4545.6",
}
"""A line of each framework for iteration ``step``."""


class Sample(msgspec.Struct, frozen=True):
    """A line and what it says: readings by name, what is not finite by its name."""

    label: str
    text: str
    readings: dict[str, Any]
    iteration: int | None = None
    total: int | None = None
    place: str = "printed"


_HF = {"loss": 2.345, "grad_norm": 0.83, "learning_rate": 5e-05}

LINES = [
    Sample(
        "megatron",
        FRAMEWORKS["megatron"].format(step=1),
        {
            "elapsed_time_per_iteration_ms": 121899.8,
            "throughput_per_gpu_(tflop/s/gpu)": 400.1,
            "learning_rate": 1.875e-05,
            "global_batch_size": 64,
            "lm_loss": 12.52221,
            "loss_scale": 1.0,
            "grad_norm": 0.231,
            "number_of_skipped_iterations": 0,
            "number_of_nan_iterations": 0,
        },
        1,
        4000,
    ),
    Sample(
        "megatron old, overflowing",
        " iteration       10/  500000 | consumed samples: 80 | elapsed time per iteration (ms): 12.5 | load_balancing_loss: 1.2E-02 | lm loss: NaN | loss scale: 4294967296.0 | num zeros: 12 | params norm: inf |",
        {
            "consumed_samples": 80,
            "elapsed_time_per_iteration_ms": 12.5,
            "load_balancing_loss": 0.012,
            "lm_loss": "nan",
            "loss_scale": 4294967296,
            "num_zeros": 12,
            "params_norm": "inf",
        },
        10,
        500000,
    ),
    Sample(
        "megatron validation",
        " validation loss at iteration 1000 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 | ",
        {"lm_loss_value": 2.1, "lm_loss_ppl": 8.2},
        1000,
    ),
    Sample(
        "megatron timers over ranks",
        "(min, max) time across ranks (ms):\n    forward-backward ...............................: (1061.24, 1063.80)\n    optimizer ......................................: (40.10, 41.20)",
        {
            "across_ranks/forward_backward_min_ms": 1061.24,
            "across_ranks/forward_backward_max_ms": 1063.8,
            "across_ranks/optimizer_min_ms": 40.1,
            "across_ranks/optimizer_max_ms": 41.2,
        },
        place="present",
    ),
    Sample(
        "megatron timer over ranks, by itself",
        "    forward-backward ...............................: (1061.24, 1063.80)",
        {"across_ranks/forward_backward_min_ms": 1061.24, "across_ranks/forward_backward_max_ms": 1063.8},
        place="present",
    ),
    Sample(
        "megatron longest timers",
        "max time across ranks (ms):\n    save-checkpoint ................................: 24895.13",
        {"across_ranks/save_checkpoint_max_ms": 24895.13},
        place="present",
    ),
    Sample(
        "megatron timers of all ranks",
        "times across ranks (ms):\n  forward-compute:\n     rank  0: 12.30\n     rank  1: 14.70\n  optimizer:\n     rank  0: 3.00\n     rank  1: 2.00",
        {
            "across_ranks/forward_compute_min_ms": 12.3,
            "across_ranks/forward_compute_max_ms": 14.7,
            "across_ranks/optimizer_min_ms": 2,
            "across_ranks/optimizer_max_ms": 3,
        },
        place="present",
    ),
    Sample(
        "megatron old timers",
        "time (ms) | forward: 35650.91 | backward-compute: 12.5 | optimizer: 3",
        {"forward_ms": 35650.91, "backward_compute_ms": 12.5, "optimizer_ms": 3},
        place="present",
    ),
    Sample(
        "megatron fork with equals signs",
        " iteration=        1/  317892 | consumed_samples=         768 | elapsed_time_per_iteration_ms=29570.0 | learning_rate=9.4372e-09 | lm loss=11.167250 | grad_norm=6.363 |",
        {
            "consumed_samples": 768,
            "elapsed_time_per_iteration_ms": 29570,
            "learning_rate": 9.4372e-09,
            "lm_loss": 11.16725,
            "grad_norm": 6.363,
        },
        1,
        317892,
    ),
    Sample("deepspeed", FRAMEWORKS["deepspeed"].format(step=10), {"skipped": 0, "lr": 6e-05}, 10),
    Sample(
        "deepspeed timer",
        "[2023-07-24 13:21:33,260] [INFO] [timer.py:215:stop] epoch=0/micro_step=8/global_step=1, RunningAvgSamplesPerSec=199.08122946828823, CurrSamplesPerSec=216.75, MemAllocated=0.06GB, MaxMemAllocated=1.68GB",
        {
            "running_avg_samples_per_sec": 199.08122946828823,
            "curr_samples_per_sec": 216.75,
            "mem_allocated_gb": 0.06,
            "max_mem_allocated_gb": 1.68,
        },
        1,
    ),
    Sample(
        "deepspeed wall clock",
        "[2024-09-16 22:59:19,600] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | optimizer_allgather: 1.05 | optimizer_step: 77.19",
        {"optimizer_allgather_ms": 1.05, "optimizer_step_ms": 77.19},
        place="present",
    ),
    Sample(
        "nemo, whose second number is of the epoch",
        FRAMEWORKS["nemo"].replace("iteration {step}", "iteration 9").format(step=109),
        {"lr": 0.0001, "global_batch_size": 512, "reduced_train_loss": 10.99, "train_step_timing_in_s": 1.21},
        109,
    ),
    Sample(
        "torchtitan",
        FRAMEWORKS["torchtitan"].format(step=4),
        {
            "loss": 3.24405,
            "grad_norm": 0.8319,
            "memory_gib": 9.46,
            "memory_percent": 64.99,
            "tps": 7282,
            "tflops": 0.52,
            "mfu_percent": 0.17,
        },
        4,
    ),
    Sample(
        "torchtitan without mfu",
        "step: 14  loss:  nan  memory:  9.46GiB(64.99%)  tps: 1,007,282  tflops: 0.52  mfu: N/A",
        {"loss": "nan", "memory_gib": 9.46, "memory_percent": 64.99, "tps": 1007282, "tflops": 0.52},
        14,
    ),
    Sample(
        "torchtitan validation",
        "validate step: 14  loss:  3.1  memory:  9.46GiB(64.99%)  tps: 7,282",
        {"validate_loss": 3.1, "validate_memory_gib": 9.46, "validate_memory_percent": 64.99, "validate_tps": 7282},
        14,
    ),
    Sample("hugging face 5", FRAMEWORKS["huggingface"].format(step=0), _HF, place="next"),
    Sample(
        "hugging face 4",
        "{'loss': 2.345, 'grad_norm': 0.83, 'learning_rate': 5e-05, 'epoch': 0.1}",
        _HF,
        place="next",
    ),
    Sample(
        "hugging face behind its bar",
        "  2%|▏         | 10/500 [00:05<04:10,  1.96it/s]   {'loss': nan, 'grad_norm': -inf, 'epoch': 0.1}",
        {"loss": "nan", "grad_norm": "-inf"},
        10,
        500,
    ),
    Sample(
        "hugging face evaluation",
        "{'eval_loss': '2.1', 'eval_runtime': '12.3', 'eval_samples_per_second': '40.1', 'epoch': '1.0'}",
        {"eval_loss": 2.1, "eval_runtime": 12.3, "eval_samples_per_second": 40.1},
        place="present",
    ),
    Sample(
        "hugging face end",
        "{'train_runtime': 120.5, 'train_samples_per_second': 8.3, 'train_loss': 1.9, 'epoch': 3.0}",
        {"train_runtime": 120.5, "train_samples_per_second": 8.3, "train_loss": 1.9},
        place="present",
    ),
    Sample("json", '{"step": 12, "loss": 2.5, "lr": 1e-4}', {"loss": 2.5, "lr": 1e-4}, 12),
    Sample("lightning", FRAMEWORKS["lightning"].format(step=32040), {"it_per_s": 1.37, "loss": 2.6}, 32040),
    Sample(
        "lightning, slow",
        "Epoch 3/9:  50%|█████     | 5/10 [00:12<00:12,  2.50s/it, v_num=0, train_loss=nan, val_acc=0.5]",
        {"s_per_it": 2.5, "train_loss": "nan", "val_acc": 0.5},
        5,
    ),
    Sample(
        "verl",
        FRAMEWORKS["verl"].format(step=34),
        {
            "global_seqlen/min": 419336,
            "actor/pg_loss": -0.003,
            "actor/grad_norm": "nan",
            "perf/mfu/actor": 0.41,
            "timing_s/gen": 29.641,
            "timing_s/step": 96.551,
        },
        34,
    ),
    Sample(
        "verl with numpy's numbers",
        "step:3 - val-core/openai/gsm8k/acc/mean@1:np.float64(0.71) - critic/kl:1e-05",
        {"val_core/openai/gsm8k/acc/mean@1": 0.71, "critic/kl": 1e-05},
        3,
    ),
    Sample(
        "deepspeed, a step that overflowed",
        "[2024-09-11 17:52:18,030] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        {"loss_scale": 32768},
        place="present",
    ),
    Sample(
        "apex, a step that overflowed",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.52587890625e-05",
        {"loss_scale": 1.52587890625e-05},
        place="present",
    ),
    Sample(
        "fairseq, a step that overflowed",
        "2021-03-08 12:33:12 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 2.0",
        {"loss_scale": 2},
        place="present",
    ),
    Sample(
        "openrlhf",
        FRAMEWORKS["openrlhf"].format(step=12),
        {"policy_loss": -0.012, "actor_lr": 9e-07, "lr": 9e-07, "reward": 0.5},
        12,
    ),
    Sample(
        "plain", FRAMEWORKS["plain"].format(step=37), {"data_ms": 11.5, "compute_ms": 125.3, "total_ms": 4545.6}, 37
    ),
    Sample(
        "a loop of one's own",
        "2026-11-29 18:15:13,942 [INFO] [rank 6] trainer: step 50: loss 1.2",
        {"loss": 1.2},
        50,
    ),
    Sample("a loop without marks", "step 50 loss nan lr 1e-4", {"loss": "nan", "lr": 1e-4}, 50),
    Sample("a loop that logs", "INFO:root:STEP 50 | loss=1.2 | 31 samples", {"loss": 1.2}, 50),
    Sample("a loop that says its length", "Step [50/600], Loss: 1.2 (avg 1.3)", {"loss": 1.2}, 50, 600),
    Sample(
        "nanogpt",
        "iter 100: loss 3.4567, time 123.45ms, mfu -100.00%",
        {"loss": 3.4567, "time_ms": 123.45, "mfu_percent": -100},
        100,
    ),
    Sample(
        "nanogpt evaluation",
        "step 2000: train loss 1.7648, val loss inf",
        {"train_loss": 1.7648, "val_loss": "inf"},
        2000,
    ),
    Sample("with equals signs", "Iteration 50, loss = 1.2, grad norm = 0.5", {"loss": 1.2, "grad_norm": 0.5}, 50),
    Sample(
        "plain between bars",
        "[node03 rank 11] step 1 | compute: 132.4 ms | load:12ms | mfu: 41.2% | tokens: 1,024",
        {"compute_ms": 132.4, "load_ms": 12, "mfu_percent": 41.2, "tokens": 1024},
        1,
    ),
]
