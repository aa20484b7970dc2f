"""A corpus dealt out anew over ranks, partitions and time has the same signatures and the same templates."""

from __future__ import annotations

import csv
import random

import pytest
from streams_support import SHARED, at, put, run, tick, worker

from schemas.codec import decode
from schemas.events import Batch, Log
from schemas.ports import Entry
from streams.log.memory import MemoryLog

CORPORA = SHARED.parent / "loghub-2k/original"
NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace")
OWN = [
    *(f"session opened for user {name} by login" for name in NAMES),
    *(f"loading shard {number} from /data/{number}.bin" for number in range(20)),
    *(f"no route from proxy host {host} to store" for host in ("gateway", "10.2.7.9", "node17")),
    "the job was told to run but its start is not due for a long while: ignoring",
    "the job was told to run but its start is not due for a long while: skipping",
    "NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008",
    "saved checkpoint",
]
RANKS, SECONDS = 4, 60


def own() -> list[str]:
    return OWN


def loghub(name: str) -> list[str]:
    folder = CORPORA / name
    if not folder.is_dir():
        pytest.skip("the public corpora are not here")
    with next(folder.glob("*_structured.csv")).open(newline="", encoding="utf-8", errors="replace") as file:
        return [row["Content"] for row in csv.DictReader(file)]


def templates(texts: list[str], seed: int) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """The last word on each signature: id, text and signatures of its template."""
    chance = random.Random(seed)
    dealt: dict[int, list[Log]] = {rank: [] for rank in range(RANKS)}
    for text in chance.sample(texts, len(texts)):
        dealt[chance.randrange(RANKS)].append(Log(time=at(chance.random() * SECONDS), stream="stdout", text=text))
    log = MemoryLog(chance.choice((1, 2, 3)))
    for seq, (rank, found) in enumerate(sorted(dealt.items())):
        put(log, Batch(producer="p", boot="b", seq=seq, identity=worker("job", rank), events=[*found]))
    tick(log, SECONDS + 60)
    run(log)
    said: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for entry in sorted(entries(log, "templates"), key=lambda entry: entry.time):
        one = decode("template", entry.value)
        said |= {signature: (one.id, one.text, tuple(one.signatures)) for signature in one.signatures}
    return said


def entries(log: MemoryLog, topic: str) -> list[Entry]:
    parts = range(log.partitions(topic))
    return [entry for number in parts for entry in log.read(topic, number, 0, log.end(topic, number))]


@pytest.mark.parametrize("corpus", ["own", "OpenSSH", "Proxifier", "Thunderbird"])
def test_how_lines_are_dealt_out_changes_neither_signatures_nor_templates(corpus: str) -> None:
    texts = own() if corpus == "own" else loghub(corpus)
    expected = templates(texts, 0)
    assert 1 < len({id_ for id_, _, _ in expected.values()}) < len(expected)
    for seed in (1, 2, 3):
        assert templates(texts, seed) == expected, seed
