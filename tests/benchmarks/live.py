"""Events a second from topics to ClickHouse rows: our workers and sink beside a plain and a batched Faust pipeline.

    python tests/benchmarks/live.py [--events N] [--baselines FOLDER] [--corpora FOLDER]

All three read the same lines from the same broker, one after another, and store them in a ClickHouse of their own.
What lies there is compared before a ratio is printed. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import kafka_support
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_pipeline import Pipeline, free_address, metrics_at, pipeline

from producers.batches import Arrival
from producers.inputs import Inputs
from producers.recording import Recording
from schemas.events import Batch, Log
from schemas.identity import Identity
from sinks.clickhouse import open_client

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPORA = ("HDFS", "Spark", "Hadoop", "BGL")
RANKS, PER_BATCH, PARTITIONS = 64, 100, 4
SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
SUMS = "SELECT count(), sum(cityHash64(text)), sum(cityHash64(text, toInt32(rank)))"


def lines(baselines: Path, corpora: Path, count: int) -> list[str]:
    """Lines of four corpora in turn, the variables of each fresh."""
    sys.path.insert(0, str(baselines))
    from drain3_lines import corpus, labelled

    share = -(-count // len(CORPORA))
    parts = [corpus(labelled(corpora / name)[0], share, seed=1) for name in CORPORA]
    return [line for group in zip(*parts, strict=True) for line in group][:count]


def batches(texts: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """(rank, event time, lines), one batch a rank and second."""
    for number in range(0, len(texts), PER_BATCH):
        turn = number // PER_BATCH
        second, rank = divmod(turn, RANKS)
        yield rank, BASE + second * SECOND, texts[number : number + PER_BATCH]


def recording(texts: list[str]) -> Recording:
    arrivals = []
    for seq, (rank, when, found) in enumerate(batches(texts)):
        who = Identity(job="bench", node=f"node{rank // 8:02d}", rank=rank)
        events = [Log(time=when + at, stream="stdout", text=text) for at, text in enumerate(found)]
        arrivals.append(Arrival(when, Batch(producer="bench", boot="0", seq=seq, identity=who, events=events)))
    return Recording(job="bench", arrivals=arrivals, inputs=Inputs(files=0, records=len(texts), unused=[]))


def fill(address: str, topic: str, texts: list[str], *, batched: bool) -> None:
    """The baselines' topic: one event a record, or one array of them."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": address, "compression.type": "lz4", "linger.ms": 50})
    for rank, when, found in batches(texts):
        node = f"node{rank // 8:02d}"
        events = [
            {"ts": when + at, "job": "bench", "rank": rank, "node": node, "text": text} for at, text in enumerate(found)
        ]
        for value in [events] if batched else events:
            while True:
                try:
                    producer.produce(topic, json.dumps(value), f"bench|{rank}")
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    producer.flush()


def baseline(address: str, folder: Path, place: Path, count: int, *, batched: bool) -> dict[str, Any]:
    """Run the frozen baseline over its topic; returns what it prints."""
    environment = {
        **os.environ,
        "BROKER": address,
        "TOPIC": "batched" if batched else "plain",
        "EVENTS": str(count),
        "CLICKHOUSE": f"chdb://{place}",
        "BATCHED": "1" if batched else "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "faust", "-A", "plain_faust", "--datadir", str(place) + ".faust"]
    command += ["worker", "-l", "warn", "--without-web"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    # Faust turns what is printed into lines of its log.
    found = re.findall(r'\{"bench".*?\}', done.stdout + done.stderr)
    if not found:
        raise SystemExit(f"the baseline failed: {(done.stdout + done.stderr)[-2000:]}")
    said: dict[str, Any] = json.loads(found[-1])
    return said


def ours(address: str, root: Path, texts: list[str]) -> dict[str, Any]:
    """Two rank workers, a job worker and the sink as processes, until every line is a row."""
    wanted = recording(texts)
    with pipeline(address, root, partitions=PARTITIONS) as live:
        live.publish(wanted)
        stages = ("rank", "rank", "job")
        places = [free_address() for _ in (*stages, "sink")]
        for stage, place in zip(stages, places, strict=False):
            live.start("worker", "--stage", stage, "--listen", place)
        sink = live.start("sink", "--clickhouse", f"chdb://{root / 'ours'}", "--listen", places[-1])
        began = until(live, places[0], "rankwatch_entries_total", 1)
        before = [cpu_seconds(process.pid) for process in live.processes]
        ended = until(live, places[-1], 'rankwatch_rows_total{table="logs"}', len(texts))
        used = [cpu_seconds(process.pid) - start for process, start in zip(live.processes, before, strict=True)]
        sink.terminate()
        sink.wait(60)
    took = ended - began
    each = [round(one / len(texts) * 1e6, 1) for one in used]
    print(
        f"ours, us CPU an event: rank workers {each[0]} + {each[1]}, job worker {each[2]}, sink {each[3]}", flush=True
    )
    return {"events_s": round(len(texts) / took), "cpu_us_per_event": round(sum(each), 1)}


def until(live: Pipeline, address: str, name: str, least: float) -> float:
    """When a counter, summed over its labels, has come that far."""
    for _ in range(6000):
        try:
            samples = metrics_at(address)
        except OSError:
            samples = {}
        if sum(value for key, value in samples.items() if key.startswith(name)) >= least:
            return time.perf_counter()
        if any(process.poll() is not None for process in live.processes):
            break
        time.sleep(0.1)
    raise SystemExit(f"{name} did not reach {least}\n{live.printed()}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, its start included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sums(place: Path, table: str) -> list[Any]:
    with open_client(f"chdb://{place}") as client:
        return list(client.query(f"{SUMS} FROM {table}").result_rows[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--baselines", type=Path, default=SHARED / "tools" / "baselines")
    parser.add_argument("--corpora", type=Path, default=SHARED / "data" / "loghub-2k" / "original")
    arguments = parser.parse_args()
    texts = lines(arguments.baselines, arguments.corpora, arguments.events)
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        root = Path(name)
        broker = kafka_support.Broker(root / "kafka")
        broker.start()
        try:
            fill(broker.address, "plain", texts, batched=False)
            fill(broker.address, "batched", texts, batched=True)
            sides = {
                "plain": baseline(broker.address, arguments.baselines, root / "plain", len(texts), batched=False),
                "batched": baseline(broker.address, arguments.baselines, root / "batched", len(texts), batched=True),
                "ours": ours(broker.address, root, texts),
            }
        finally:
            broker.stop(kill=True)
        stored = {"plain": sums(root / "plain", "plain"), "batched": sums(root / "batched", "plain")}
        stored["ours"] = sums(root / "ours", "logs FINAL")
    for side, found in sides.items():
        print(
            f"{side}: {found['events_s']} events/s, {found['cpu_us_per_event']} us CPU an event; stored {stored[side]}"
        )
    if not stored["plain"] == stored["batched"] == stored["ours"]:
        raise SystemExit("the three did not store the same lines")
    rates = {side: found["events_s"] for side, found in sides.items()}
    print(
        json.dumps(
            {
                "bench": "live",
                "events": len(texts),
                "events_s": rates,
                "cpu_us_per_event": {side: found["cpu_us_per_event"] for side, found in sides.items()},
                "ratio": round(rates["ours"] / rates["plain"], 2),
                "ratio_batched": round(rates["ours"] / rates["batched"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
