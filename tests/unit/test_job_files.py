"""Files that tell of a job are known by what lies in them, and told in facets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import job_samples
import msgspec
import pytest

from producers import job_files
from producers.job_facts import JobFacts
from producers.scan import Source

BOMB = "a: &a {lr: 1, bf16: true, num_layers: 2}\n" + "".join(
    f"a{at + 1}: &a{at + 1}\n  <<: [*a{at or ''}, *a{at or ''}]\n" for at in range(40)
)
LAUGHS = "l0: &l0 {lr: 1, bf16: true, num_layers: 2}\n" + "".join(
    f"l{at + 1}: &l{at + 1} [{', '.join([f'*l{at}'] * 9)}]\n" for at in range(12)
)
CYCLE = "a: &a\n  lr: 1\n  bf16: true\n  num_layers: 2\n  again: *a\n"


def read(folder: Path, content: str | bytes, name: str = "x") -> dict[str, Any] | None:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    facts = job_files.read(Source(path=path, file=name, size=path.stat().st_size))
    if facts is None:
        return None
    told = msgspec.to_builtins(facts.event(0))
    return {name: value for name, value in told.items() if name not in ("time", "time_source", "source")}


COMMAND = [
    *("srun", "torchrun", "--nnodes=$SLURM_NNODES", "--nproc-per-node", "8", "pretrain_gpt.py"),
    *("--num-layers", "32", "--hidden-size", "4096", "--data-path", "/data/corpus-2024-10-01"),
    *("--num-workers", "2", "--lr", "3e-4", "--bf16", "--tensor-model-parallel-size", "2"),
]
OWN = "each run's own"
SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "launch script": (
        job_samples.SCRIPT,
        {
            "layout": {"tp": 2},
            "command": COMMAND,
            "environment": {"NCCL_ALGO": "Tree", "OMP_NUM_THREADS": "8", "WANDB_API_KEY": "***"},
            "hyperparameters": {"lr": "3e-4"},
            "model_sizes": {"hidden_size": "4096", "num_layers": "32"},
            "data": {"data_path": "/data/corpus-2024-10-01", "num_workers": "2"},
            "launch": {"file": "x", "launcher": "torchrun", "script": "pretrain_gpt.py", "tasks_per_node": "1"},
            "flags": {"bf16": "true"},
            "scale": {"gpus_per_node": "8", "nodes": "4"},
            "labels": {"job_name": "gpt7b", "queue": "h100", "team": "language"},
            "left_out": {OWN: 4, "secret": 1},
        },
    ),
    "environment": (
        job_samples.ENVIRONMENT,
        {
            "environment": {"HF_TOKEN": "***", "NCCL_DEBUG": "INFO", "PATH": "~/bin:/usr/bin"},
            "left_out": {OWN: 2, "secret": 1},
        },
    ),
    "pip": (
        job_samples.PIP,
        {"versions": {"my-pkg": "0123456789abcdef", "numpy": "1.26.4", "torch": "2.5.1", "wheel": "local"}},
    ),
    "conda": (job_samples.CONDA, {"versions": {"nccl": "2.21.5.1", "python": "3.11.9"}}),
    "nvidia-smi": (
        job_samples.SMI,
        {
            "versions": {"cuda_driver": "12.4", "driver": "550.54.15"},
            "scale": {"gpu": "NVIDIA H100 80GB HBM3", "gpus_per_node": "2"},
        },
    ),
    "git log": (f"commit {'4f' * 20}\nAuthor: B <b@x>\nDate:   Mon\n\n    why\n", {"code": {"commit": "4f" * 20}}),
    "git status": (
        "On branch main\nChanges not staged for commit:\n  modified: x\n",
        {"code": {"branch": "main", "dirty": "true"}},
    ),
    "git remote": ("origin\tgit@example.org:x/y.git (fetch)\n", {"code": {"repository": "example.org/x/y"}}),
    "git describe": ("v1.2-3-gabcdef0-dirty\n", {"code": {"describe": "v1.2-3-gabcdef0", "dirty": "true"}}),
    "scontrol": (
        job_samples.SCONTROL,
        {
            "launch": {"file": "launch.sbatch", "tasks": "32"},
            "scale": {"nodes": "4"},
            "labels": {"job_name": "gpt7b", "qos": "high", "queue": "h100", "team": "language"},
        },
    ),
    "pod": (
        job_samples.POD,
        {
            "command": ["torchrun", "--nnodes=2", "train.py", "--lr", "3e-4"],
            "environment": {"API_KEY": "***", "NCCL_ALGO": "Ring"},
            "hyperparameters": {"lr": "3e-4"},
            "launch": {"image": "registry.example/train:24.05", "launcher": "torchrun", "script": "train.py"},
            "scale": {"gpus_per_node": "8", "nodes": "2"},
            "labels": {"namespace": "research", "priority": "high", "queue": "big", "team": "language"},
            "left_out": {OWN: 1, "secret": 1},
        },
    ),
    "nemo": (
        job_samples.NEMO,
        {
            "framework": "nemo",
            "layout": {"micro_batch": 4, "tp": 2},
            "hyperparameters": {
                "model.optim.lr": "1e-4",
                "model.optim.name": "adam",
                "trainer.max_steps": "100",
                "trainer.precision": "bf16",
            },
            "model_sizes": {"model.num_layers": "32"},
            "data": {"model.data.data_prefix": "1, /data/a", "model.data.num_workers": "2"},
            "scale": {"gpus_per_node": "8", "nodes": "4"},
            "left_out": {OWN: 2, "secret": 1},
        },
    ),
    "torchtitan": (
        job_samples.TITAN,
        {
            "framework": "torchtitan",
            "layout": {"micro_batch": 8, "tp": 2},
            "hyperparameters": {
                "optimizer.lr": "0.0003",
                "parallelism.data_parallel_shard_degree": "-1",
                "training.seq_len": "8192",
            },
            "model_sizes": {"model.flavor": "8B", "model.name": "llama3"},
        },
    ),
    "deepspeed": (
        job_samples.DEEPSPEED,
        {
            "framework": "deepspeed",
            "layout": {"micro_batch": 4},
            "hyperparameters": {"gradient_clipping": "1.0", "train_batch_size": "auto", "zero_optimization.stage": "3"},
            "flags": {"bf16.enabled": "true"},
        },
    ),
    "hugging face": (
        job_samples.HUGGING_FACE,
        {
            "framework": "huggingface",
            "versions": {"transformers": "4.46.0"},
            "model": "org/llama-8b",
            "model_sizes": {
                "architectures": "LlamaForCausalLM",
                "hidden_size": "4096",
                "num_hidden_layers": "32",
                "num_key_value_heads": "8",
            },
            "hyperparameters": {"torch_dtype": "bfloat16"},
        },
    ),
    "verl": (
        job_samples.VERL,
        {
            "framework": "verl",
            "layout": {"global_batch": 1024},
            "hyperparameters": {
                "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": "4",
                "actor_rollout_ref.actor.optim.lr": "1e-6",
                "actor_rollout_ref.actor.ppo_mini_batch_size": "256",
                "actor_rollout_ref.rollout.temperature": "1.0",
                "actor_rollout_ref.rollout.tensor_model_parallel_size": "2",
            },
            "model_sizes": {"actor_rollout_ref.model.path": "/models/qwen"},
            "data": {"data.prompt_key": "prompt", "data.train_files": "/data/gsm8k"},
            "scale": {"gpus_per_node": "8", "nodes": "2"},
            "left_out": {OWN: 1},
        },
    ),
    "own": (
        job_samples.OWN,
        {
            "framework": "inhouse",
            "layout": {"tp": 2},
            "command": ["torchrun", "train.py"],
            "environment": {"NCCL_ALGO": "Tree"},
            "world_size": 16,
            "code": {"commit": "4f0c2d9"},
            "labels": {"team": "language"},
            "left_out": {OWN: 1},
        },
    ),
}


@pytest.mark.parametrize("form", SAMPLES)
def test_each_form_is_known_by_what_lies_in_it(tmp_path: Path, form: str) -> None:
    content, told = SAMPLES[form]
    assert read(tmp_path, content) == told


@pytest.mark.parametrize("name", ["commit.txt", "git_rev", "HEAD"])
def test_a_hash_alone_is_a_commit_where_the_name_says_so(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, "4f" * 20, name) == {"code": {"commit": "4f" * 20}}
    assert read(tmp_path, "4f" * 20, "key") is None


@pytest.mark.parametrize(
    "content",
    [
        *("", "\n\n", "hello\nworld\n", '{"rank": 2, "node": "n", "seed": 14, "world_size": 8, "nodes": 4}'),
        '{"dp_size": 4, "pp_size": 4, "tp_size": 2, "slowdown": {"0": 1.97, "1": 1.01}}',
        *('{"lr": ', "[model\nlr = ", "lr: [1\nbf16: {", "x=1\ny=2\nz=3\n", "#!/bin/bash\necho hello\n", "a\tb\n"),
        *(b"\x00\x01\x02" * 100, b"\xff\xfe" + b"lr\xff: 1\n" * 3, b"PK\x03\x04", "lr: !!python/object:os.system {}\n"),
    ],
)
def test_what_tells_nothing_of_a_job_is_left(tmp_path: Path, content: str | bytes) -> None:
    assert read(tmp_path, content) is None


@pytest.mark.parametrize(
    "content",
    [
        *(
            BOMB,
            LAUGHS,
            CYCLE,
            "{" * 50_000,
            "[" * 50_000,
            "a: " * 20_000,
            "lr: " + "9" * 6000 + "\nbf16: 1\nfp16: 2\n",
        ),
        '{"lr": 1, "bf16": true, "num_layers": ' + "[" * 900 + "]" * 900 + "}",
        "#!/bin/bash\n" + "export A=$A$A$A\n" * 1000 + "torchrun x.py $A\n",
        "#!/bin/bash\n" + "A=(" * 3000 + "\n" + '"' * 3001,
        "#!/bin/bash\ntorchrun " + "\\\n" * 20_000 + "x.py",
        "A_B=" + "x" * 900_000 + "\nC_D=1\nE_F=2\n",
        "".join(f"V{at}_X=1\n" for at in range(19_000)),
        "".join(f"p{at}==1\n" for at in range(19_000)),
        "lr: 1\nbf16: 1\nnum_layers: !!set {? a, ? b}\n",
        b"export A_TOKEN=\xff\xfe\nexport B_C=\xff\nexport D_E=1\n",
    ],
)
def test_hostile_files_end_soon_and_bounded(tmp_path: Path, content: str | bytes) -> None:
    began = time.monotonic()
    told = read(tmp_path, content)
    assert time.monotonic() - began < 20
    assert told == read(tmp_path, content)
    assert len(msgspec.json.encode(told)) < 400_000


def test_what_is_too_big_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, job_samples.DEEPSPEED + " " * job_files.MOST_BYTES) is None


def test_what_a_source_tells_fits_one_record(tmp_path: Path) -> None:
    lists = "".join(f"V{at:04}_{'X' * 100}={chr(1) * 390}\n" for at in range(600))
    path = tmp_path / "env"
    path.write_text(lists)
    facts = job_files.read(Source(path=path, file="env", size=path.stat().st_size))
    assert facts is not None
    event = facts.event(0)
    assert event.left_out["too many"] > 0
    assert len(msgspec.json.encode(event)) < 1_000_000


def test_in_a_list_of_a_configuration_one_item_may_name_what_the_next_is() -> None:
    facts = JobFacts("config.yaml")
    facts.settings({"extra_args": ["--db-password", "hunter2", "--lr", "3"], "blend": [1, "x"], "none": []})
    event = facts.event(0)
    assert event.hyperparameters == {"extra_args": "--db-password, ***, --lr, 3"}
    assert (event.data, event.left_out) == ({"blend": "1, x"}, {"secret": 1})


@pytest.mark.parametrize(
    ("file", "text", "labels"),
    [
        ("job.json", '{"labels": {"team": "speech"}}', {"team": "speech"}),
        ("run/job.json", '{"job": "a", "labels": {"team": "speech"}, "owner": "me"}', {"team": "speech"}),
        (
            "about.json",
            '{"job": "a", "launch": {"launcher": "srun"}, "labels": {"team": "speech"}}',
            {"team": "speech"},
        ),
        ("about.json", '{"labels": {"team": "speech"}}', None),
        ("about.json", '{"labels": {"team": "speech"}, "launch": {}, "startsAt": "now"}', None),
        ("job.json", '{"labels": "speech"}', None),
        ("job.json", '{"loss": 2.0}', None),
    ],
)
def test_a_description_of_a_job_is_told_by_its_facets_or_by_its_name(
    file: str, text: str, labels: dict[str, str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    found = job_files.read(Source(path, file, len(text)))
    assert (None if found is None else found.event(0).labels) == labels
    assert found is None or found.event(0).left_out == ({"unknown name": 1} if "owner" in text else {})


def test_what_is_a_secret_under_one_name_is_hidden_under_all() -> None:
    facts = JobFacts("run.sh")
    facts.words(["train.py", "-p", "hunter2-x", "--password", "hunter2-x", "--user-key", "me"])
    for name, value in (("p", "hunter2-x"), ("password", "hunter2-x"), ("user_key", "me"), ("user", "me")):
        facts.setting(name, value)
    event = facts.event(0)
    assert event.command == ["train.py", "-p", "***", "--password", "***", "--user-key", "***"]
    assert event.hyperparameters == {"p": "***", "password": "***", "user_key": "***", "user": "me"}
