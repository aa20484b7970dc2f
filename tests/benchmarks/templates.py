"""Lines a second of masking and mining, and of the whole log path, beside drain3; and how well both group lines.

    python tests/benchmarks/templates.py [--lines N] [--baselines FOLDER] [--corpora FOLDER] [--only NAME ...]

Both sides see the same lines, their variables fresh in every line, one after another, each in a process of its own that
has seen none before. Grouping accuracy is measured on the labelled lines. A table is printed, and the last line is one
JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
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
from streams.lines.signature import MASKS_ID
from streams.log.memory import MemoryLog
from streams.mining import DEPTH, ENOUGH, MANY, SIMILARITY
from streams.templates import TemplateBook, TemplateState

SHARED = Path(__file__).resolve().parents[3] / "shared"
SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
WINDOW_LINES = 10_000
RANKS, PER_BATCH = 8, 100
SIGNATURES = 100_000
WHO = Identity(job="bench", node="node00", rank=0)
COLUMNS = {
    "drain3_lines_s": "drain3, lines/s",
    "lines_s": "masking and mining, lines/s",
    "ratio": "ratio",
    "path_lines_s": "whole path, lines/s",
    "ratio_path": "ratio",
    "drain3_accuracy": "drain3, accuracy",
    "accuracy": "accuracy",
}


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


def drain3_of(baselines: Path) -> Any:
    sys.path.insert(0, str(baselines))
    return importlib.import_module("drain3_lines")


def timed(side: str, baselines: Path, folder: Path, lines: int) -> float:
    """Seconds of processor time of one side over the lines of a corpus."""
    drain3 = drain3_of(baselines)
    texts = drain3.corpus(drain3.labelled(folder)[0], lines)
    if side == "drain3":
        miner = drain3.miner()
        return cpu_s(lambda: [miner.add_log_message(one) for one in texts])
    if side == "lines":
        return cpu_s(lambda: mined(texts))
    log = MemoryLog(1)
    publish(recording(texts), log, until=None, closing_ns=StreamConfig().closing_ns)
    return cpu_s(Driver(log, StreamConfig()).run)


def accuracies(drain3: Any, folder: Path) -> dict[str, float]:
    contents, truth = drain3.labelled(folder)
    miner = drain3.miner()
    theirs = [miner.add_log_message(one)["cluster_id"] for one in contents]
    book, signatures = mined(contents)
    ours = [book.template_of(signature) for signature in signatures]
    found = {"drain3_accuracy": theirs, "accuracy": ours}
    return {side: round(drain3.grouping_accuracy(truth, groups), 4) for side, groups in found.items()}


def measured(folder: Path, lines: int, baselines: Path) -> dict[str, float]:
    took = {}
    for side in ("drain3", "lines", "path"):
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            took[side] = alone.submit(timed, side, baselines, folder, lines).result()
    return {
        "drain3_lines_s": round(lines / took["drain3"]),
        "lines_s": round(lines / took["lines"]),
        "path_lines_s": round(lines / took["path"]),
        "ratio": round(took["drain3"] / took["lines"], 1),
        "ratio_path": round(took["drain3"] / took["path"], 1),
        **accuracies(drain3_of(baselines), folder),
    }


def line_of(name: str, row: dict[str, float]) -> str:
    return f"| {name} | " + " | ".join(f"{row.get(key, ''):,}" if row.get(key) else "" for key in COLUMNS) + " |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lines", type=int, default=100_000)
    arguments.add_argument("--baselines", type=Path, default=SHARED / "tools" / "baselines")
    arguments.add_argument("--corpora", type=Path, default=SHARED / "data" / "loghub-2k" / "original")
    arguments.add_argument("--only", nargs="+", default=[])
    given = arguments.parse_args()
    print(
        f"{given.lines} lines a corpus; drain3 as its baseline sets it; ours: similarity {SIMILARITY}, depth {DEPTH},"
    )
    print(f"a variable where more than {MANY} words stand in one place and {ENOUGH} others around it; masks {MASKS_ID}")
    print("| corpus | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    rows = {}
    for folder in sorted(one for one in given.corpora.iterdir() if one.is_dir()):
        if not given.only or folder.name in given.only:
            rows[folder.name] = measured(folder, given.lines, given.baselines)
            print(line_of(folder.name, rows[folder.name]), flush=True)
    medians = {key: statistics.median(row[key] for row in rows.values()) for key in ("ratio", "ratio_path", "lines_s")}
    means = {
        key: round(statistics.mean(row[key] for row in rows.values()), 4) for key in ("accuracy", "drain3_accuracy")
    }
    print(line_of("median; accuracy: mean", medians | means))
    print(json.dumps({"bench": "templates", "lines": given.lines, **medians, **means, "corpora": rows}))


if __name__ == "__main__":
    main()
