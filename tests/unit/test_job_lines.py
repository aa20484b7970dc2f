"""Lines that frameworks print when they begin tell what the job is."""

from __future__ import annotations

import time
from typing import Any

import job_samples
import msgspec
import pytest

from producers.job_lines import told_by

OWN = "each run's own"


def told(texts: list[str]) -> dict[str, Any] | None:
    found = told_by(texts, "x")
    if found is None:
        return None
    event = msgspec.to_builtins(found.facts.event(0))
    return {name: value for name, value in event.items() if name not in ("time", "time_source", "source")}


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "megatron": (
        job_samples.MEGATRON_LINES,
        {
            "framework": "megatron",
            "versions": {"cuda": "12.4", "nccl": "2.21.5"},
            "layout": {"tp": 2},
            "environment": {"NCCL_ALGO": "Tree"},
            "hyperparameters": {"adam_beta1": "0.9", "webhook_secret": "***"},
            "world_size": 16,
            "model_sizes": {"num_layers": "32"},
            "data": {"data_path": "/data/corpus"},
            "flags": {"bf16": "true"},
            "left_out": {OWN: 1, "secret": 1},
        },
    ),
    "hugging face": (
        job_samples.HUGGING_FACE_LINES,
        {
            "framework": "huggingface",
            "layout": {"micro_batch": 8},
            "hyperparameters": {"hub_token": "***", "learning_rate": "5e-05"},
            "model_sizes": {"architectures": "LlamaForCausalLM", "hidden_size": "4096", "num_hidden_layers": "32"},
            "flags": {"bf16": "true"},
            "left_out": {OWN: 2, "secret": 1},
        },
    ),
    "torchtitan": (
        job_samples.TITAN_LINES,
        {
            "framework": "torchtitan",
            "layout": {"micro_batch": 8, "tp": 2},
            "hyperparameters": {"training.seq_len": "8192"},
            "model_sizes": {"model.flavor": "8B", "model.name": "llama3", "parameters": "8030261248"},
        },
    ),
    "verl": (
        job_samples.VERL_LINES,
        {
            "framework": "verl",
            "layout": {"tp": 2},
            "hyperparameters": {
                "actor_rollout_ref.actor.optim.lr": "1e-06",
                "actor_rollout_ref.actor.ppo_mini_batch_size": "256",
            },
            "model_sizes": {"actor_rollout_ref.model.path": "/models/qwen"},
            "data": {"data.train_files": "/data/gsm8k (it's)"},
            "scale": {"gpus_per_node": "8", "nodes": "2"},
        },
    ),
    "nemo": (
        job_samples.NEMO_LINES,
        {
            "framework": "nemo",
            "layout": {"micro_batch": 4},
            "hyperparameters": {"trainer.precision": "bf16"},
            "model_sizes": {"model.hidden_size": "768", "model.num_layers": "12"},
            "scale": {"gpus_per_node": "8", "nodes": "2"},
        },
    ),
    "deepspeed": (
        job_samples.DEEPSPEED_LINES,
        {
            "framework": "deepspeed",
            "layout": {"global_batch": 32, "micro_batch": 4},
            "command": ["python3", "-u", "-m", "deepspeed.launcher.launch", "t.py"],
            "environment": {"NCCL_IB_HCA": "mlx5"},
            "hyperparameters": {"gradient_clipping": "1.0", "zero_optimization.stage": "3"},
            "launch": {"launcher": "deepspeed", "script": "t.py"},
            "flags": {"zero_enabled": "true"},
            "left_out": {OWN: 1},
        },
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("merged", [False, True])
def test_each_form_is_told_whether_its_lines_are_records_of_their_own_or_one(form: str, merged: bool) -> None:
    text, expected = FORMS[form]
    assert told([text] if merged else text.split("\n")) == expected


@pytest.mark.parametrize(
    ("line", "facet", "expected"),
    [
        ("+ torchrun --nnodes=2 train.py --api-key abcd", "launch", {"launcher": "torchrun", "script": "train.py"}),
        ("PyTorch version: 2.5.1+cu124", "versions", {"torch": "2.5.1+cu124"}),
        ("torch version .................... 2.1.0", "versions", {"torch": "2.1.0"}),
        ("Number of trainable parameters = 1,234,567", "model_sizes", {"parameters": "1234567"}),
        ("trainer: building model: 98880 parameters, DDP", "model_sizes", {"parameters": "98880"}),
        ("trainer: initialized process group backend=gloo world_size=8", "hyperparameters", {"backend": "gloo"}),
        ("Environment: NCCL_ALGO=Ring", "environment", {"NCCL_ALGO": "Ring"}),
    ],
)
def test_single_lines(line: str, facet: str, expected: dict[str, str]) -> None:
    found = told(["hello", line])
    assert found is not None
    assert found[facet] == expected


@pytest.mark.parametrize(
    "texts",
    [
        *([], [""], ["iteration 1/ 2 | lm loss: 3"], ["config: {"], ["{'data': "], ["NCCL version"], ["+ ls -la"]),
        *(
            ["TrainingArguments("],
            ["Running with args: {'a': (1,}"],
            ["json = {"] * 50,
            ["Model config XConfig {", "}"],
        ),
    ],
)
def test_what_tells_nothing_is_nothing(texts: list[str]) -> None:
    found = told(texts)
    assert found is None or found == {"framework": "huggingface"}


def test_a_block_without_an_end_does_not_swallow_the_log() -> None:
    found = told(["json = {"] + ["step 1"] * 10_000 + ["NCCL version 2.21.5"])
    assert found == {"versions": {"nccl": "2.21.5"}}


@pytest.mark.parametrize(
    "text",
    [
        "{'data': " + "[" * 90 + "]" * 90 + "}",
        "{'data': " + "(" * 60_000,
        "Running with args: {" + "'a': {" * 99 + "}" * 100,
        "Running with args: {" + '"' * 60_000,
        "+ " + "torchrun " * 8000,
        "------ arguments ------\n" * 5000,
        "Environment: A=" + "x" * 60_000,
    ],
)
def test_hostile_lines_end_soon(text: str) -> None:
    began = time.monotonic()
    assert told([text] * 3) == told([text] * 3)
    assert time.monotonic() - began < 20
