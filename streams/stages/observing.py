"""A window's way through the detectors of an attempt: one that fails must not silence the others."""

from __future__ import annotations

from typing import Any

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.registry import JobDetector
from streams.stages.dead_letters import dead_letter_output, failed_detector
from streams.stages.outputs import Output
from streams.view import AttemptView


def observed(
    detectors: list[JobDetector[Any, Any]], view: AttemptView, window: AttemptWindow, stage: str
) -> tuple[list[Anomaly], list[Output]]:
    """What the detectors find in a window, and a dead letter for each that fails: it begins anew, in its place.

    What a detector that fails would have found is as if it had never been told, and no name rests on what is missing;
    without the others a job would be watched by nobody, in each window in which one fails.
    """
    found: list[Anomaly] = []
    failures: list[Output] = []
    for at, detector in enumerate(detectors):
        try:
            found += detector.observe(view, window)
        except Exception as error:
            detectors[at] = type(detector)(detector.config)
            letter = failed_detector(f"{window.job}|{window.attempt}", detector.name, window.end, stage, error)
            failures.append(dead_letter_output(letter, window.end))
    return found, failures
