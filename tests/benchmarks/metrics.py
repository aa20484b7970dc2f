"""Average precision of the per-rank metric score, sample by sample, beside a streaming EWMA and a PCA with training.

    python tests/benchmarks/metrics.py [--data FOLDER] [--only NAME ...]

Machines of the Server Machine Dataset: one sample a minute, labels by operators. The score and the EWMA see the test
part alone, one sample after another; the PCA has learnt from the training part. Points count as they are labelled, no
segment is adjusted. A table is printed, and the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streams.bands import BandConfig, Bands

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "smd-subset"
SCALE = 1e6
SMALLEST = 1e-3
"""The least spread of a metric, for EWMA and PCA; the data lie between 0 and 1."""
ALPHAS = (0.1, 0.01, 0.001)
KEPT_VARIANCE = 0.9
Samples = NDArray[np.float64]
COLUMNS = {
    "random": "share of labelled minutes",
    **{f"ewma_{alpha}": f"EWMA {alpha}" for alpha in ALPHAS},
    "pca": "PCA, trained",
    "ours": "ours",
}


def ours(test: Samples) -> Samples:
    """The product's score with the product's settings; a machine is one rank."""
    config, bands = BandConfig(), Bands.new(test.shape[1], 1)
    found = np.empty(len(test))
    for index, sample in enumerate(test.astype(np.float32)):
        bands.take(sample[:, None], config)
        found[index] = bands.scores(config)[0]
    return found


def ewma(test: Samples, alpha: float) -> Samples:
    """The largest deviation of any metric from its running mean, in running standard deviations."""
    mean, variance = test[0].copy(), np.zeros(test.shape[1])
    found = np.empty(len(test))
    for index, sample in enumerate(test):
        apart = sample - mean
        found[index] = np.max(np.abs(apart) / np.maximum(np.sqrt(variance), SMALLEST))
        mean += alpha * apart
        variance = (1 - alpha) * (variance + alpha * apart * apart)
    return found


def pca(train: Samples, test: Samples) -> Samples:
    """What the components that hold most of the training part's variance leave over of each sample."""
    center, spread = train.mean(axis=0), np.maximum(train.std(axis=0), SMALLEST)
    _, values, vectors = np.linalg.svd((train - center) / spread, full_matrices=False)
    held = np.cumsum(values**2) / np.sum(values**2)
    kept = vectors[: int(np.searchsorted(held, KEPT_VARIANCE)) + 1]
    standard = (test - center) / spread
    found: Samples = ((standard - standard @ kept.T @ kept) ** 2).sum(axis=1)
    return found


def average_precision(scores: Samples, labels: NDArray[np.int8]) -> float:
    """The area under precision over recall, by steps; points of equal score count together."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(labels[order])
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    recall = hits[last] / hits[-1]
    return float(np.sum(np.diff(recall, prepend=0) * hits[last] / (last + 1)))


def measured(file: Path) -> dict[str, float]:
    """The average precision of each on one machine."""
    data = np.load(file)
    train, test, labels = data["train_e6"].T / SCALE, data["test_e6"].T / SCALE, data["test_label"]
    began = time.process_time()
    found = {"ours": average_precision(ours(test), labels)}
    took = time.process_time() - began
    found |= {f"ewma_{alpha}": average_precision(ewma(test, alpha), labels) for alpha in ALPHAS}
    found |= {"pca": average_precision(pca(train, test), labels), "random": float(labels.mean())}
    return {name: round(value, 4) for name, value in found.items()} | {"us": round(took / len(test) * 1e6)}


def line_of(name: str, row: dict[str, float]) -> str:
    return f"| {name} | " + " | ".join(f"{row[key]:.3f}" for key in COLUMNS) + " |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=DATA)
    arguments.add_argument("--only", nargs="+", default=[])
    given = arguments.parse_args()
    print("| machine | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    rows = {}
    for file in sorted(given.data.glob("machine-*.npz")):
        if not given.only or file.stem in given.only:
            rows[file.stem] = measured(file)
            print(line_of(file.stem, rows[file.stem]), flush=True)
    means = {key: round(statistics.mean(row[key] for row in rows.values()), 4) for key in COLUMNS}
    print(line_of("mean", means))
    # The strongest of the baseline's settings is what it is held against.
    best = max(means[f"ewma_{alpha}"] for alpha in ALPHAS)
    result = {"ours": means["ours"], "ewma": best, "pca": means["pca"], "ratio": round(means["ours"] / best, 2)}
    print(json.dumps({"bench": "metrics", **result, "machines": rows}))


if __name__ == "__main__":
    main()
