"""What is each run's own is left out or put in one form; what says something stays."""

from __future__ import annotations

import pytest

from producers.own_values import in_one_form, is_own_name, is_own_option, is_own_variable


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("/home/bob/code/train.py", "~/code/train.py"),
        ("/root:/usr/bin", "~:/usr/bin"),
        ("/tmp/torch_x1/log", "<tmp>"),
        ("node00:29500", "node00:<port>"),
        ("10.0.0.1:29500", "<ip>"),
        ("ckpt/2026-11-29_18-15-43/x", "ckpt/<time>/x"),
        ("run-20261129_181543", "run-<time>"),
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "<id>"),
        ("/data/crawl-2024-10-01/shard", "/data/crawl-2024-10-01/shard"),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "nvcr.io/nvidia/pytorch:24.05-py3"),
        ("2.21.5", "2.21.5"),
        ("/mnt/data/home", "/mnt/data/home"),
        ("4096", "4096"),
    ],
)
def test_values_have_one_form(value: str, form: str) -> None:
    assert in_one_form(value) == form


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *(("local_rank", True), ("train.output_dir", True), ("wandb_project", True), ("exp_manager.name", True)),
        *(("lr", False), ("seed", False), ("load", False), ("data_path", False), ("rank_loss", False)),
    ],
)
def test_settings(name: str, own: bool) -> None:
    assert is_own_name(name) is own


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *(("RANK", True), ("HOSTNAME", True), ("SLURM_JOB_ID", True), ("X_SERVICE_PORT", True), ("SSH_TTY", True)),
        *(("NCCL_ALGO", False), ("PATH", False), ("CUDA_VISIBLE_DEVICES", False), ("OMP_NUM_THREADS", False)),
    ],
)
def test_variables(name: str, own: bool) -> None:
    assert is_own_variable(name) is own


def test_options_of_launchers() -> None:
    assert is_own_option("--rdzv-endpoint")
    assert is_own_option("--output_dir")
    assert not is_own_option("--nnodes")
