"""Rows of comparisons: a job beside the jobs of a library."""

from __future__ import annotations

from typing import Any

from schemas import codec
from schemas.comparison import Comparison
from sinks.rows.common import Block, single


def comparison_block(found: Comparison, run_id: str) -> Block:
    """One row; settings that go with symptoms are as long as all associations together have settings."""
    told = [(one, setting) for one in found.associations for setting in one.settings]
    return single(
        "comparisons",
        {
            "run_id": run_id,
            "job": found.job,
            "attempt": found.attempt,
            "id": found.id,
            "ts": found.start,
            "window_end": found.end,
            "library": found.library,
            "verdict": found.verdict,
            "chosen": found.chosen,
            **_jobs(found),
            "shown_kinds": [one.kind for one in found.shows],
            "shown_texts": [one.text for one in found.shows],
            "symptoms": found.symptoms,
            "setting_facets": [one.facet for one in found.settings],
            "setting_names": [one.name for one in found.settings],
            "setting_values": [one.here for one in found.settings],
            "setting_others": [", ".join(one.there) for one in found.settings],
            "goes_with_symptoms": [one.symptom for one, _ in told],
            "goes_with_facets": [setting.facet for _, setting in told],
            "goes_with_names": [setting.name for _, setting in told],
            "goes_with_values": [setting.here for _, setting in told],
            "goes_with_having": [one.having for one, _ in told],
            "goes_with_having_shown": [one.having_shown for one, _ in told],
            "goes_with_others": [one.others for one, _ in told],
            "goes_with_others_shown": [one.others_shown for one, _ in told],
            "caution": found.caution,
            "json": codec.encode(found).decode(),
        },
    )


def _jobs(found: Comparison) -> dict[str, Any]:
    return {
        "library_jobs": [one.id for one in found.jobs],
        "likenesses": [one.likeness for one in found.jobs],
        "certainties": [one.certainty for one in found.jobs],
        "baseline": [one.id for one in found.jobs if one.baseline],
        "reasons": [one.reason for one in found.jobs],
    }
