"""What a run could judge is said, so that nothing found is no all-clear where nothing could be."""

from __future__ import annotations

import pytest
from detection_support import gauge, summary
from streams_support import Script, run, worker, written_log

from schemas.codec import encode, headers
from schemas.identity import Identity
from schemas.results import gauges_of
from streams.judged import Judged, judged, said
from streams.log.memory import MemoryLog

STEP = "iteration {step:8d}/ 500 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5E+00 |"
TIMERS = "time (ms) | forward-compute: 100.00 | backward-compute: 80.00"


def found(*, ranks: int, printing: int, nobody: bool, timers: bool) -> Judged:
    script = Script("judged", flush_s=2)
    script.start(ranks)
    script.alive(ranks, 0, 20)
    who = [worker("judged", rank) for rank in range(printing)]
    who += [Identity(job="judged", node="", rank_reason="no line says it")] if nobody else []
    for one in who:
        for step in range(1, 21):
            script.log(one, step, STEP.format(step=step))
            if timers:
                script.log(one, step + 0.1, TIMERS)
    script.log(Identity(job="judged", node="node0"), 1, "hello")
    log = written_log(script.recording)
    run(log)
    return judged(log)


@pytest.mark.parametrize(
    ("ranks", "printing", "nobody", "timers", "words"),
    [
        (
            2,
            1,
            False,
            True,
            "2 ranks known; iterations 1-20 of 1 rank; loss, pace; timers backward_compute_ms, forward_compute_ms of 1 "
            "rank; metrics",
        ),
        (
            0,
            0,
            True,
            True,
            "no rank is known; iterations 1-20 of a worker whose rank is not known; loss, pace; "
            "no timers of ranks' own work, so none could be found to be slow by them",
        ),
        (
            0,
            0,
            False,
            False,
            "no rank is known; no iteration was read, so neither pace nor numerics could be judged; "
            "no timers of ranks' own work, so none could be found to be slow by them",
        ),
    ],
)
def test_what_was_judged_is_said(ranks: int, printing: int, nobody: bool, timers: bool, words: str) -> None:
    assert said(found(ranks=ranks, printing=printing, nobody=nobody, timers=timers)) == words


@pytest.mark.parametrize("columns", [True, False])
def test_metrics_count_in_windows_that_do_not_pack_them(columns: bool) -> None:
    rows = [gauge("power_w", 1.0)]
    told = summary(0, 0, **({"gauge_columns": gauges_of(rows)} if columns else {"gauges": rows}))
    log = MemoryLog(1)
    log.append("windows", b"judged|0|0", encode(told), headers("window"), 0)
    assert judged(log).layers == {"metrics": 1}
