"""What is known of a job fits a line."""

from __future__ import annotations

import pytest

from rankwatch.text_job import LONGEST, job_line
from schemas.jobs import JobDescription


@pytest.mark.parametrize(
    ("description", "line"),
    [
        (JobDescription(), ""),
        (JobDescription(world_size=1), "1 rank"),
        (
            JobDescription(
                framework="megatron", world_size=16, layout={"pp": 4, "tp": 2, "cp": 1}, model={"name": "m"}
            ),
            "megatron, 16 ranks, tp 2, pp 4, model m",
        ),
        (JobDescription(framework="x" * 500), "x" * (LONGEST - 1) + "…"),
    ],
)
def test_a_job_in_a_line(description: JobDescription, line: str) -> None:
    assert job_line(description) == line
