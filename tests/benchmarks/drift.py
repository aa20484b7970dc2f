"""Step times and losses of healthy jobs through both stages: what is said of them, and of shifts planted into them.

    python tests/benchmarks/drift.py [--table FILE] [--only WORD] [--show]

Each series of ``megatron-golden`` becomes a job of its own, whose iteration lines Megatron would have printed, one rank
for all. None of those jobs failed, but many really slowed down for a while. Then the same series with a shift planted
where the reference is known: such data are synthetic. A table is printed, and the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import streams.detectors  # noqa: F401  (registers all detectors)
from schemas.codec import decode, encode, headers
from schemas.events import Batch, Log, Tick
from schemas.identity import Identity
from schemas.results import Anomaly
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig
from streams.driver import Driver
from streams.log.memory import MemoryLog

TABLE = Path(__file__).resolve().parents[3] / "shared/data/megatron-golden/iteration_time.csv.gz"
SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
CONFIG = StreamConfig()
SETTLED = 30
"""Steps behind which a shift is planted at the earliest: warm-up and reference lie before."""
PLANTED = 300
"""Steps of a series that shifts are planted in; the longest ones have ten thousand."""
WARM_UP = 5


class Step(NamedTuple):
    """One reported step: its iteration, duration in seconds and loss, where there is one."""

    iteration: int
    seconds: float
    loss: str


class Said(NamedTuple):
    """What was said of one series: incidents' severities by symptom, and the iterations at which losses rose.

    ``found`` and ``warned`` are how many steps had been reported when the drift was first found and warned of,
    ``onset`` the iteration from which it is said to stand, ``up`` whether a loss was said to stay up.
    """

    incidents: list[tuple[str, str]]
    spikes: list[int]
    up: bool
    found: int | None
    warned: int | None
    onset: int | None


class Plant(NamedTuple):
    """By which factors a step is longer and its loss higher, so many steps after the shift was planted."""

    longer: Callable[[int], float]
    higher: Callable[[int], float]


PLANTS = {
    "sudden_15": Plant(lambda since: 1.15 if since >= 0 else 1.0, lambda since: 2.0 if since == 0 else 1.0),
    "sudden_30": Plant(lambda since: 1.3 if since >= 0 else 1.0, lambda since: 2.0 if since >= 0 else 1.0),
    "trend_1": Plant(lambda since: 1.01 ** min(max(since + 1, 0), 100), lambda since: 1.0),
}
"""With the first shift the loss is twice as high in one step, with the second from then on."""


def series_of(table: Path, word: str) -> list[tuple[str, list[Step]]]:
    """Each series with its name, in the order of the table."""
    found: dict[str, list[Step]] = {}
    with gzip.open(table, "rt") as file:
        for row in csv.DictReader(file):
            name = f"{row['test_case']} {row['environment']}"
            if word in name and row["iteration_time_s"]:
                found.setdefault(name, []).append(
                    Step(int(row["step"]), float(row["iteration_time_s"]), row["lm_loss"])
                )
    return list(found.items())


def times_of(steps: Sequence[Step]) -> list[int]:
    """When each step's line is printed (ns); where not every step is reported, those between take no time here."""
    return [BASE + round(seconds * SECOND) for seconds in accumulate(step.seconds for step in steps)]


def written(steps: Sequence[Step], times: Sequence[int]) -> MemoryLog:
    """The lines as a log, one batch a window, and the ticks that close it."""
    log = MemoryLog(1)
    identity = Identity(job="golden", rank=7, node="node00", local_rank=7)
    lines: dict[int, list[Log]] = {}
    for step, time in zip(steps, times, strict=True):
        lines.setdefault(time // CONFIG.window_ns, []).append(_line(step, time, steps[-1].iteration + 1000))
    for number, window in enumerate(sorted(lines)):
        batch = Batch(producer="p", boot="b", seq=number, identity=identity, events=lines[window])
        log.append("logs", identity.key.encode(), encode(batch), headers("log"), lines[window][-1].time)
        end = (window + 1) * CONFIG.window_ns + CONFIG.lateness_ns
        for topic in RAW_TOPICS:
            log.append(topic, b"", encode(Tick(time=end)), headers("tick"), end, 0)
    return log


def _line(step: Step, time: int, total: int) -> Log:
    loss = f" lm loss: {float(step.loss):.6E} |" if step.loss else ""
    text = (
        f" iteration {step.iteration:8d}/{total:8d} | elapsed time per iteration (ms): {step.seconds * 1000:.1f} |"
        f"{loss} number of skipped iterations:   0 | number of nan iterations:   0 |"
    )
    return Log(time=time, stream="stdout", text=text)


def said_of(steps: Sequence[Step], since: int = 0) -> Said:
    """Run both stages over a series; what was found before ``since`` reported steps does not count as found."""
    times = times_of(steps)
    log = written(steps, times)
    Driver(log, CONFIG).run()
    if log.end("dead-letters", 0):
        raise RuntimeError("a window was lost")
    anomalies = [decode("anomaly", value) for value in _values(log, "anomalies")]
    latest = {one.id: one for one in (decode("incident", value) for value in _values(log, "incidents"))}
    drifts = [one for one in anomalies if one.detector == "job_drift" and _done(times, one) > since]
    warnings = [one for one in drifts if one.severity == "warning"]
    return Said(
        incidents=sorted((one.symptom, one.severity) for one in latest.values()),
        spikes=sorted({one.iteration or 0 for one in anomalies if one.detector == "loss_spike"}),
        up=any(one.grounds == "stays_up" for one in anomalies),
        found=_done(times, drifts[0]) if drifts else None,
        warned=_done(times, warnings[0]) if warnings else None,
        onset=drifts[0].iteration if drifts else None,
    )


def _done(times: Sequence[int], one: Anomaly) -> int:
    """How many steps had been reported when the window ended in which something was found."""
    return sum(time < one.end for time in times)


def _values(log: MemoryLog, topic: str) -> Iterator[bytes]:
    for number in range(log.partitions(topic)):
        for entry in log.read(topic, number, 0, log.end(topic, number)):
            yield bytes(entry.value)


def warmed(steps: Sequence[Step]) -> list[Step]:
    """The series as if its first steps had been like the others."""
    usual = statistics.median(step.seconds for step in steps)
    return [step._replace(seconds=usual) if at < WARM_UP else step for at, step in enumerate(steps)]


def judged(named: tuple[str, list[Step]]) -> dict[str, Any]:
    """All that is to be known of one series."""
    name, steps = named
    healthy = said_of(steps)
    some = steps[:PLANTED]
    place = max(SETTLED, len(some) * 6 // 10)
    result: dict[str, Any] = {"name": name, "steps": len(steps), "healthy": healthy, "planted": {}}
    if any(severity == "warning" for _, severity in healthy.incidents):
        result["warmed"] = said_of(warmed(steps))
    if len(some) < place + 10:
        return result
    for plant, factor in PLANTS.items():
        changed = [_planted(step, at - place, factor) for at, step in enumerate(some)]
        lasts = sum(step.seconds for step in changed[place:])
        result["planted"][plant] = (said_of(changed, place), place, some[place], lasts)
    return result


def _planted(step: Step, since: int, plant: Plant) -> Step:
    loss = f"{float(step.loss) * plant.higher(since)}" if step.loss else ""
    return Step(step.iteration, step.seconds * plant.longer(since), loss)


def planted_figures(results: list[dict[str, Any]], plant: str) -> dict[str, Any]:
    """The share of planted shifts that is found, and warned of where it lasts long enough; delays in steps."""
    told = [(*one["planted"][plant], one) for one in results if plant in one["planted"]]
    # What was found at that place without a plant is no detection.
    clean = [one for one in told if one[4]["healthy"].found is None]
    found = [one for one in clean if one[0].found is not None]
    lasting = [one for one in clean if one[3] >= 90]
    warned = [one for one in lasting if one[0].warned is not None]
    return {
        "series": len(clean),
        "found": round(len(found) / len(clean), 3) if clean else None,
        "median_delay_steps": _middle([one[0].found - one[1] for one in found]),
        "median_onset_off": _middle([abs(one[0].onset - one[2].iteration) for one in found]),
        "lasting_90_s": len(lasting),
        "warned": round(len(warned) / len(lasting), 3) if lasting else None,
    }


def loss_figures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The shares of planted losses that are found: one step alone, and from a step on."""
    told = [
        (one["planted"][plant][0], one["planted"][plant][2], plant)
        for one in results
        for plant in ("sudden_15", "sudden_30")
        if plant in one["planted"] and one["planted"][plant][2].loss
    ]
    brief = [step.iteration in said.spikes and not said.up for said, step, plant in told if plant == "sudden_15"]
    lasting = [step.iteration in said.spikes and said.up for said, step, plant in told if plant == "sudden_30"]
    return {
        "series": len(brief),
        "one_step_found": round(sum(brief) / len(brief), 3) if brief else None,
        "lasting_found": round(sum(lasting) / len(lasting), 3) if lasting else None,
    }


def _middle(values: list[int]) -> float | None:
    return statistics.median(values) if values else None


def figures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the last line."""
    incidents = [one for result in results for one in result["healthy"].incidents]
    warnings = [one for one in results if any(severity == "warning" for _, severity in one["healthy"].incidents)]
    by_warm_up = [one for one in warnings if len(one["warmed"].incidents) < len(one["healthy"].incidents)]
    return {
        "series": len(results),
        "steps": sum(one["steps"] for one in results),
        "critical_incidents": sum(severity == "critical" for _, severity in incidents),
        "series_with_a_warning": len(warnings),
        "warning_share": round(len(warnings) / len(results), 4),
        "warnings_by_warm_up": len(by_warm_up),
        "hints": sum(one["healthy"].found is not None for one in results),
        "loss_spikes": sum(len(one["healthy"].spikes) for one in results),
        "losses_said_to_stay_up": sum(one["healthy"].up for one in results),
        "planted_losses": loss_figures(results),
        "planted": {plant: planted_figures(results, plant) for plant in PLANTS},
    }


def main() -> int:
    """Run all series, print what was said of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", type=Path, default=TABLE, help="the table of series")
    parser.add_argument("--only", default="", metavar="WORD", help="series whose names hold this word")
    parser.add_argument("--show", action="store_true", help="print the series with an incident or a hint")
    options = parser.parse_args()
    if not options.table.exists():
        print(f"rankwatch: {options.table} is not there", file=sys.stderr)
        return 2
    named = series_of(options.table, options.only)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(judged, named, chunksize=4))
    for one in results:
        healthy = one["healthy"]
        if options.show and (healthy.incidents or healthy.found is not None or healthy.spikes):
            print(one["name"], one["steps"], healthy)
    found = figures(results)
    for name, value in [*found.items(), *found["planted"].items()]:
        if name != "planted":
            print(f"{name:24} {value}")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
