"""Which series say how training itself goes, by their names: losses, gradient norms, loss scales, skipped steps.

Megatron prints ``lm_loss``, ``grad_norm``, ``loss_scale`` and ``number_of_skipped_iterations`` (since its last report),
DeepSpeed ``skipped`` (since the beginning) and the loss scale that it goes on with, verl ``actor/grad_norm``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from streams.lines.names import LOSS, in_common
from streams.view import AttemptView

Kind = Literal["loss", "other_loss", "gradient", "none"]

_GRADIENT = re.compile(r"grad_?norm")
_SCALE = re.compile(r"(?:^|[/_])loss_scale$")
_SKIPPED = re.compile(r"(?:^|[/_])skipped$")
_SKIPPED_NOW = re.compile(r"(?:^|_)skipped_iterations$")
_WATCHED = re.compile(
    r"loss(?!_scale)|grad_?norm|perplexity|ppl|(?:act|activations?|outputs?|hidden(?:_states?)?|logits?)_?norm"
)
_OTHER_LOSS = re.compile(r"loss(?:_value)?$")
_NO_LOSS = re.compile(r"kl|entropy|across_ranks/")


@lru_cache(maxsize=4096)
def is_gradient(name: str) -> bool:
    """Whether it is a norm of gradients."""
    return _GRADIENT.search(name) is not None


@lru_cache(maxsize=4096)
def is_scale(name: str) -> bool:
    """Whether it is the loss scale of training in half precision."""
    return _SCALE.search(name) is not None


@lru_cache(maxsize=4096)
def counts_skipped(name: str) -> bool:
    """Whether it counts skipped steps since the beginning."""
    return _SKIPPED.search(name) is not None


@lru_cache(maxsize=4096)
def tells_skipped(name: str) -> bool:
    """Whether it counts the steps skipped since the last report."""
    return _SKIPPED_NOW.search(name) is not None


def is_watched(name: str, unit: str) -> bool:
    """Whether a value that is no number means that training has gone wrong."""
    return _is_watched(name) and unit not in ("ms", "s")


@lru_cache(maxsize=4096)
def concerns(name: str) -> bool:
    """Whether a series is any of those: of many metrics few are."""
    return _is_watched(name) or is_gradient(name) or is_scale(name) or counts_skipped(name) or tells_skipped(name)


@lru_cache(maxsize=4096)
def _is_watched(name: str) -> bool:
    return _WATCHED.search(name) is not None


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Kind:
    """What a series tells of training: the loss itself, a part of it or another's loss, the norm of gradients."""
    if is_gradient(name):
        return "none" if name.endswith(("_ms", "_s")) else "gradient"
    if in_common(name, 1.0) == (LOSS, 1.0):
        return "loss"
    return "other_loss" if _OTHER_LOSS.search(name) and not _NO_LOSS.search(name) else "none"


def stages_of(view: AttemptView) -> dict[int, int]:
    """Each rank's pipeline stage, where there are several and every rank has one."""
    stages = {rank: view.coordinates(rank).get("pp") for rank in view.members}
    known = {rank: stage for rank, stage in stages.items() if isinstance(stage, int)}
    return known if len(known) == len(stages) and len(set(known.values())) > 1 else {}


def earliest_stage(view: AttemptView, name: str, showing: list[int], fine: list[int]) -> list[int]:
    """The ranks of the pipeline stage that something went through first, of those that are ``showing`` it at one step.

    Values go from the first stage to the last, gradients back. Empty where it shows in several replicas, where the
    stage before was not seen to be ``fine``, or, at the beginning, where no other replica was: then it may have come
    from elsewhere, and where ranks hold several stages. Without stages the only one that shows it.
    """
    order = {rank: -stage if is_gradient(name) else stage for rank, stage in stages_of(view).items()}
    if not order:
        several = any(isinstance(view.coordinates(rank).get("pp"), list) for rank in view.members)
        return showing if len(showing) == 1 and not several else []
    replicas = {rank: str([view.coordinates(rank).get(axis) for axis in ("dp", "cp", "ep")]) for rank in order}
    first = min(order[rank] for rank in showing)
    own = {replicas[rank] for rank in showing}
    before = [at for rank, at in order.items() if at < first and replicas[rank] in own]
    if before:
        seen = any(order[rank] == max(before) and replicas[rank] in own for rank in fine)
    else:
        seen = any(order[rank] == first for rank in fine)
    return [rank for rank in showing if order[rank] == first] if len(own) == 1 and seen else []
