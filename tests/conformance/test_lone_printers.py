"""One rank of a job prints its framework's lines, as is normal: nothing follows from that.

Every other rank only lives. For five minutes nothing may be found; once the lines stop while the processes go on, that
is one hang, and nobody is named, since lines alone do not tell who it is.
"""

from __future__ import annotations

import pytest
from iteration_lines import FRAMEWORKS
from streams_support import Script, records, run, worker, written_log

from streams.log.memory import MemoryLog

RANKS = 8
PRINTER = {"megatron": RANKS - 1}
STEP_S = {"huggingface": 15, "verl": 12}
TIMERS = "time (ms) | forward-compute: {took:.2f} | backward-compute: 80.00 | optimizer: 3.00"


def job(framework: str, seconds: int, alive: int, ranks: int = RANKS) -> MemoryLog:
    """The job's log: it prints for ``seconds`` and its processes are sampled for ``alive``."""
    script = Script(framework, flush_s=2)
    script.start(ranks)
    script.alive(ranks, 0, alive, every=5)
    who = worker(framework, min(PRINTER.get(framework, 0), ranks - 1))
    every = STEP_S.get(framework, 2)
    for step, second in enumerate(range(3, seconds, every), 1):
        line = FRAMEWORKS[framework].format(step=step)
        script.log(who, second + 0.1, line.replace("grad_norm:nan", "grad_norm:0.5").replace("96.551", "12.003"))
        if framework in ("megatron", "deepspeed"):
            # One rank's own work takes longer and longer; no peer prints any to hold it against.
            script.log(who, second + 0.2, TIMERS.format(took=100.0 if step < 60 else 190.0))
            script.log(who, second + 0.3, "    forward-backward ..........: (100.10, 200.20)")
    return written_log(script.recording)


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_a_healthy_job_of_which_one_rank_prints_gives_no_finding(framework: str) -> None:
    log = job(framework, 300, 300)
    run(log)
    assert [(one.detector, one.text) for one in records(log, "anomalies")] == []
    phases = {one.phase for one in records(log, "windows") if one.identity.rank == PRINTER.get(framework, 0)}
    assert "train" in phases


@pytest.mark.parametrize("ranks", [2, RANKS])
def test_without_any_samples_the_others_silence_is_no_finding_either(ranks: int) -> None:
    log = job("torchtitan", 300, 0, ranks)
    run(log)
    assert [(one.detector, one.text) for one in records(log, "anomalies")] == []


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_the_same_job_that_stops_is_one_hang_that_names_nobody(framework: str) -> None:
    log = job(framework, 120, 300)
    run(log)
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    (hang,) = latest.values()
    assert (hang.symptom, hang.severity, hang.suspects) == ("hang", "critical", [])
    assert {one.detector for one in records(log, "anomalies")} == {"no_iteration"}
