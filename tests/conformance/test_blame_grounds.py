"""What detectors give as grounds and what blame makes of them agree, and no decision of blame goes untested."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from blame_table import TABLE
from detection_support import SYMPTOM, anomaly, situation

import streams.detectors  # noqa: F401  (registers all detectors)
from streams.detectors.registry import JobDetector, registered
from streams.incidents import blame, counterfactual, crash, hang, profiled, slowness, standstill
from streams.incidents.blame import decide
from streams.incidents.decision import Reason
from streams.incidents.grounds import DECIDED_ON, ONLY_TOLD

MODULES = (blame, counterfactual, crash, hang, profiled, slowness, standstill)
DECIDING = [one for one in registered("job") if not one.supporting]


@pytest.mark.parametrize("detector", DECIDING, ids=lambda one: one.name)
def test_blame_knows_the_grounds_of_every_detector(detector: type[JobDetector[Any, Any]]) -> None:
    assert detector.grounds, "it says of no grounds that it gives them"
    assert detector.grounds <= DECIDED_ON | ONLY_TOLD


def test_some_detector_gives_all_grounds_that_blame_knows() -> None:
    assert frozenset().union(*(one.grounds for one in DECIDING)) == DECIDED_ON | ONLY_TOLD
    assert not DECIDED_ON & ONLY_TOLD


def test_findings_of_the_tables_are_such_as_detectors_give() -> None:
    given = {one.name: one.grounds for one in DECIDING}
    assert all(grounds in given[detector] for grounds, (detector, *_) in SYMPTOM.items() if detector in given)
    assert SYMPTOM.keys() >= DECIDED_ON


@contextmanager
def returning() -> Iterator[set[tuple[str, int]]]:
    """The lines that run in the modules of blame, as they run."""
    files = {str(module.__file__) for module in MODULES}
    ran: set[tuple[str, int]] = set()

    def within(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            ran.add((frame.f_code.co_filename, frame.f_lineno))
        return within

    def entering(frame: FrameType, event: str, argument: object) -> Any:
        return within if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(entering)
    try:
        yield ran
    finally:
        sys.settrace(before)


def returns(module: ModuleType) -> set[tuple[str, int]]:
    """All places at which the module's functions decide something."""
    file = str(module.__file__)
    return {(file, one.lineno) for one in ast.walk(ast.parse(Path(file).read_text())) if isinstance(one, ast.Return)}


def test_some_row_of_the_table_comes_to_every_decision() -> None:
    with returning() as ran:
        reasons = {decide(anomalies, known).reason for _, _, _, anomalies, known in TABLE}
    assert reasons == set(Reason)
    missed = sorted(set().union(*map(returns, MODULES)) - ran)
    assert [f"{Path(file).name}:{line}" for file, line in missed] == []


@pytest.mark.parametrize("grounds", sorted(DECIDED_ON))
def test_a_finding_alone_is_decided_on_with_a_reason(grounds: str) -> None:
    assert decide([anomaly(grounds, severity="warning")], situation()).reason in Reason
