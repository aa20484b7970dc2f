"""Which printed names mean the same: one name over all frameworks, for whoever asks over several of them.

Readings keep the name that their line prints, since detectors and stored rows go by it, and no value is carried twice.
This table says what a printed name is called in common, and how its number becomes one of the common unit. Rates are
per accelerator, as those who print them have it.
"""

from __future__ import annotations

import msgspec


class Common(msgspec.Struct, frozen=True):
    """A common name; a printed value times ``factor`` is in its unit, or ``factor`` divided by it where ``inverse``."""

    name: str
    factor: float = 1.0
    inverse: bool = False


LOSS, GRAD_NORM, LR, STEP_TIME = "loss", "grad_norm", "lr", "step_time_s"

COMMON: dict[str, Common] = {
    "loss": Common(LOSS),
    "lm_loss": Common(LOSS),
    "reduced_train_loss": Common(LOSS),
    "train_loss": Common(LOSS),
    "grad_norm": Common(GRAD_NORM),
    "actor/grad_norm": Common(GRAD_NORM),
    "lr": Common(LR),
    "learning_rate": Common(LR),
    "actor/lr": Common(LR),
    "elapsed_time_per_iteration_ms": Common(STEP_TIME, 1e-3),
    "train_step_timing_in_s": Common(STEP_TIME),
    "timing_s/step": Common(STEP_TIME),
    "s_per_it": Common(STEP_TIME),
    "it_per_s": Common(STEP_TIME, inverse=True),
    "tps": Common("tokens_per_s"),
    "perf/throughput": Common("tokens_per_s"),
    "tflops": Common("tflops"),
    "throughput_per_gpu_(tflop/s/gpu)": Common("tflops"),
    "mfu_percent": Common("mfu", 0.01),
    "perf/mfu/actor": Common("mfu"),
    "skipped": Common("skipped"),
    "number_of_skipped_iterations": Common("skipped"),
    "number_of_nan_iterations": Common("nan"),
    "global_batch_size": Common("global_batch_size"),
}
"""Common names by printed name."""


def in_common(name: str, value: float) -> tuple[str, float] | None:
    """The common name and value of a reading; null where it has none."""
    common = COMMON.get(name)
    if common is None or (common.inverse and value == 0):
        return None
    return common.name, common.factor / value if common.inverse else common.factor * value
