"""Whole jobs in start-up, warm-up, checkpoint, evaluation and shutdown: quiet there pages nobody, and hides no hang."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from quiet_jobs import HANGS, QUIET
from streams_support import Script

from rankwatch import diagnose
from schemas.results import Incident


def paging(script: Script) -> list[Incident]:
    return [one for one in diagnose.run(script.recording).incidents if one.severity != "info"]


@pytest.mark.parametrize("make", QUIET.values(), ids=QUIET)
def test_a_phase_that_is_quiet_pages_nobody(make: Callable[[], Script]) -> None:
    assert [(one.attempt, one.symptom, one.summary) for one in paging(make())] == []


@pytest.mark.parametrize(("make", "named"), HANGS.values(), ids=HANGS)
def test_a_hang_in_such_a_phase_is_found(make: Callable[[], Script], named: list[int]) -> None:
    (found,) = paging(make())
    assert (found.symptom, found.severity, found.status) == ("hang", "critical", "open")
    assert [suspect.rank for suspect in found.suspects] == named
