"""What is known of a job as one line of text."""

from __future__ import annotations

from schemas.identity import shortened
from schemas.jobs import JobDescription

AXES = ("tp", "pp", "dp", "cp", "ep")
LONGEST = 160


def job_line(description: JobDescription) -> str:
    """``megatron, 16 ranks, tp 2, pp 4, model gpt-7b``; empty where nothing of that is known."""
    world, model = description.world_size, description.model.get("name", "")
    parts = [
        description.framework,
        "" if world is None else f"{world} rank{'s' if world > 1 else ''}",
        *(f"{axis} {description.layout[axis]}" for axis in AXES if description.layout.get(axis, 1) > 1),
        f"model {model}" if model else "",
    ]
    return shortened(", ".join(part for part in parts if part), LONGEST)
