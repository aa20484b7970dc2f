"""Lines a second of masking and mining, and of the whole log path, beside drain3; and how well both group lines.

    python tests/benchmarks/templates.py [--lines N] [--baselines FOLDER] [--corpora FOLDER] [--only NAME ...]

Both sides see the same lines, their variables fresh in every line, in one process, one after another. Grouping accuracy
is measured on the labelled lines. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from producers.batches import Arrival
from producers.inputs import Inputs
from producers.publish import publish
from producers.recording import Recording
from schemas.events import Batch, Log
from schemas.identity import Identity
from schemas.results import SignatureCount, Window
from streams.config import StreamConfig
from streams.driver import Driver
from streams.lines.facts import Facts, facts_of_all
from streams.log.memory import MemoryLog
from streams.templates import TemplateBook, TemplateState

SHARED = Path(__file__).resolve().parents[3] / "shared"
SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
WINDOW_LINES = 10_000
RANKS, PER_BATCH = 8, 100
SIGNATURES = 100_000
WHO = Identity(job="bench", node="node00", rank=0)


def mined(texts: Sequence[str]) -> tuple[TemplateBook, list[str]]:
    """Mask by batches and mine by windows as the stages do; the signature of each line."""
    book, found = TemplateBook(TemplateState(), "bench", SIGNATURES), []
    for begin in range(0, len(texts), WINDOW_LINES):
        counts: dict[str, SignatureCount] = {}
        for text, facts in masked(texts[begin : begin + WINDOW_LINES]):
            found.append(facts.signature)
            if facts.signature not in counts:
                counts[facts.signature] = SignatureCount(
                    signature=facts.signature, masked=facts.masked, count=1, first=BASE, last=BASE, example=text
                )
        book.learn([_window(begin, list(counts.values()))])
    return book, found


def masked(texts: Sequence[str]) -> Iterator[tuple[str, Facts]]:
    for begin in range(0, len(texts), PER_BATCH):
        batch = texts[begin : begin + PER_BATCH]
        yield from zip(batch, facts_of_all(batch), strict=True)


def _window(number: int, counts: list[SignatureCount]) -> Window:
    return Window(id=str(number), identity=WHO, start=BASE, end=BASE + SECOND, signatures=counts)


def recording(texts: Sequence[str]) -> Recording:
    """The lines as batches of several ranks, a second for each round."""
    arrivals = []
    for number, begin in enumerate(range(0, len(texts), PER_BATCH)):
        when = BASE + number // RANKS * SECOND
        who = Identity(job="bench", node="node00", rank=number % RANKS)
        events = [
            Log(time=when + at, stream="stdout", text=text) for at, text in enumerate(texts[begin : begin + PER_BATCH])
        ]
        batch = Batch(producer="bench", boot="0", seq=number, identity=who, events=[*events])
        arrivals.append(Arrival(when, batch))
    return Recording(job="bench", arrivals=arrivals, inputs=Inputs(files=0, records=len(texts), unused=[]))


def cpu_s(work: Callable[[], object]) -> float:
    """Processor time of this process, which others on the machine disturb less than the clock."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measured(folder: Path, lines: int, drain3: Any) -> dict[str, float]:
    contents, truth = drain3.labelled(folder)
    theirs = drain3.miner()
    found = [theirs.add_log_message(one)["cluster_id"] for one in contents]
    book, signatures = mined(contents)
    groups = [book.template_of(signature) for signature in signatures]
    timed = drain3.corpus(contents, lines)
    theirs = drain3.miner()
    took = cpu_s(lambda: [theirs.add_log_message(one) for one in timed])
    facts = cpu_s(lambda: mined(timed))
    log = MemoryLog(1)
    publish(recording(timed), log, until=None, closing_ns=StreamConfig().closing_ns)
    driver = Driver(log, StreamConfig())
    path = cpu_s(driver.run)
    return {
        "drain3_lines_s": round(lines / took),
        "lines_s": round(lines / facts),
        "path_lines_s": round(lines / path),
        "ratio": round(took / facts, 1),
        "ratio_path": round(took / path, 1),
        "drain3_accuracy": round(drain3.grouping_accuracy(truth, found), 4),
        "accuracy": round(drain3.grouping_accuracy(truth, groups), 4),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lines", type=int, default=100_000)
    arguments.add_argument("--baselines", type=Path, default=SHARED / "tools" / "baselines")
    arguments.add_argument("--corpora", type=Path, default=SHARED / "data" / "loghub-2k" / "original")
    arguments.add_argument("--only", nargs="+", default=[])
    given = arguments.parse_args()
    sys.path.insert(0, str(given.baselines))
    import drain3_lines

    rows = {}
    for folder in sorted(one for one in given.corpora.iterdir() if one.is_dir()):
        if given.only and folder.name not in given.only:
            continue
        rows[folder.name] = measured(folder, given.lines, drain3_lines)
        print(folder.name, rows[folder.name], flush=True)
    medians = {key: statistics.median(row[key] for row in rows.values()) for key in ("ratio", "ratio_path", "lines_s")}
    means = {
        key: round(statistics.mean(row[key] for row in rows.values()), 4) for key in ("accuracy", "drain3_accuracy")
    }
    print(json.dumps({"bench": "templates", "lines": given.lines, **medians, **means, "corpora": rows}))


if __name__ == "__main__":
    main()
