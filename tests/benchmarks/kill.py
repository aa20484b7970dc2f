"""Kills rank worker, job worker and sink again and again, at steps and at random moments, and counts what is lost.

    python tests/benchmarks/kill.py [--rounds N] [--seed N]

Each round is a deployment of its own. In the end what the topics say and what ClickHouse shows are compared with a run
in memory. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import kafka_support
from kafka_pipeline import Pipeline, folded, pipeline
from kafka_rows import expected_rows, losses, shown_at
from streams_support import JOBS, JUDGED, said

from producers.recording import Recording
from rankwatch import diagnose

TOPICS = ("windows", *JUDGED)
DYING = str(Path(__file__).parents[1] / "kafka_dying.py")
STEPS = {
    "rank": ("append", "flush", "snapshot", "commit", "committed"),
    "job": ("append", "flush", "snapshot", "commit", "committed"),
    "fleet": ("flush", "snapshot", "commit", "committed"),
    "sink": ("insert", "inserted", "commit", "committed"),
}
KILLS = 6
"""Kills a round."""


class Round:
    """One deployment and its four processes, which die now and then."""

    def __init__(self, live: Pipeline, dsn: str, chance: random.Random) -> None:
        self.live = live
        self.kills: Counter[str] = Counter()
        self._chance = chance
        self._commands = {
            "rank": ("worker", "--stage", "rank"),
            "job": ("worker", "--stage", "job"),
            "fleet": ("worker", "--stage", "fleet"),
            "sink": ("sink", "--clickhouse", dsn),
        }
        self.running = {name: self._start(name) for name in self._commands}

    def _start(self, name: str, step: str = "") -> subprocess.Popen[str]:
        if not step:
            return self.live.start(*self._commands[name])
        os.environ["DIE_AT"] = step
        return self.live.start(*self._commands[name], program=(DYING,))

    def kill_one(self) -> None:
        """A process dies at a step that it comes to, or at any moment, and begins again."""
        name = self._chance.choice(sorted(self.running))
        self._end(name)
        step = self._chance.choice(STEPS[name])
        dying = self._start(name, f"{step}:{self._chance.randint(1, 12)}")
        try:
            dying.wait(self._chance.uniform(4.0, 12.0))
            self.kills[f"{name} at {step}"] += 1
        except subprocess.TimeoutExpired:
            os.kill(dying.pid, signal.SIGKILL)
            dying.wait(30)
            self.kills[f"{name} at any moment"] += 1
        self.running[name] = self._start(name)

    def _end(self, name: str) -> None:
        if self.running[name].poll() is None:
            self.running[name].kill()
            self.running[name].wait(30)
            self.kills[f"{name} at any moment"] += 1

    def settle(self, dsn: str, expected: dict[str, list[str]]) -> tuple[int, int, int]:
        """Let the sink catch up, end it, and compare; it gets a few tries to be through."""
        found = (1, 0, 0)
        for _ in range(12):
            time.sleep(3)
            self.running["sink"].terminate()
            self.running["sink"].wait(60)
            found = losses(expected, shown_at(dsn))
            if found == (0, 0, 0):
                break
            self.running["sink"] = self._start("sink")
        return found


def one_round(
    address: str, root: Path, seed: int, recording: Recording, wanted: dict[str, list[bytes]]
) -> dict[str, Any]:
    chance = random.Random(seed)
    dsn = f"chdb://{root / 'live'}"
    rows = expected_rows(recording, root / "expected")
    with pipeline(address, root, partitions=2) as live:
        one = Round(live, dsn, chance)
        for _ in live.publish_in(KILLS, recording):
            one.kill_one()
        said_in_the_end = live.until_said(wanted)
        results = sum(len(set(found) ^ set(wanted[topic])) for topic, found in said_in_the_end.items())
        lost, others, twice = one.settle(dsn, rows)
    return {"seed": seed, "kills": dict(one.kills), "lost": lost, "others": others, "twice": twice, "results": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    recording = JOBS["two at once"]()
    wanted = folded(said(diagnose.run(recording).log, TOPICS))
    total: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        broker = kafka_support.Broker(Path(name) / "kafka")
        broker.start()
        try:
            for seed in range(arguments.seed, arguments.seed + arguments.rounds):
                place = Path(name) / str(seed)
                place.mkdir()
                found = one_round(broker.address, place, seed, recording, wanted)
                print(json.dumps(found), flush=True)
                kills.update(found.pop("kills"))
                total.update({key: value for key, value in found.items() if key != "seed"})
        finally:
            broker.stop(kill=True)
    print(
        json.dumps(
            {
                "bench": "kill",
                "rounds": arguments.rounds,
                "kills": sum(kills.values()),
                "by": dict(sorted(kills.items())),
                "rows_lost": total["lost"],
                "rows_differing": total["others"],
                "rows_twice": total["twice"],
                "results_differing": total["results"],
            }
        )
    )


if __name__ == "__main__":
    main()
