"""Rows a second of ``predict`` beside its bare matrix products, on many rows.

    python benchmarks/predict.py [--rows 1000000] [--columns 128,384] [--repeats 3] [--seed 0]

A model is fitted once to 6,000 made-up rows of 100 classes. The bare products are torch's, in blocks of 4,096
rows, with the same weights: into the geometry, through the two layers of the adapter, with the prototypes and
with the class means; no exponentials, no normalising, no labels. Both go over the same rows in turn, with as
many threads as torch is set to. Prints every repeat, the ratio of the medians, and by how much the peak of
memory rose while ``predict`` ran over an array on disk.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pnp_gcd import PNPDiscoverer

N_CLASSES, N_FITTED, BLOCK = 100, 6000, 4096


def run_bare(model: PNPDiscoverer, rows: torch.Tensor) -> None:
    """Multiply rows with all that ``predict`` multiplies them with."""
    geometry, labelling, adapter = model._geometry, model._labelling, model.encoder_
    into = torch.from_numpy(geometry.axes @ geometry.scaling)
    prototypes = torch.from_numpy(labelling.prototypes).T
    axes, directions = (torch.from_numpy(part) for part in labelling.discriminant)
    with torch.inference_mode():
        for start in range(0, len(rows), BLOCK):
            placed = rows[start : start + BLOCK] @ into
            features = (placed @ adapter.expand.weight.T) @ adapter.contract.weight.T
            features @ prototypes
            (features @ axes) @ directions.T


def measure(rows: NDArray[np.float32], model: PNPDiscoverer, n_repeats: int) -> None:
    tensor, ours, bare = torch.from_numpy(rows), [], []
    for repeat in range(1, n_repeats + 1):
        began = time.perf_counter()
        model.predict(rows)
        between = time.perf_counter()
        run_bare(model, tensor)
        ours.append(len(rows) / (between - began))
        bare.append(len(rows) / (time.perf_counter() - between))
        print(f"  repeat {repeat}: predict {ours[-1]:,.0f} rows/s, bare {bare[-1]:,.0f} rows/s", flush=True)
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"  ratio of the medians {ratio:.2f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model.predict(np.load(path, mmap_mode="r"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  on disk: {rows.nbytes / 2**20:.0f} MiB of rows, peak rose by {(peak - before) / 2**10:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", default="128,384")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for n_columns in (int(number) for number in options.columns.split(",")):
        rng = np.random.default_rng(options.seed)
        centres = rng.standard_normal((N_CLASSES, n_columns), dtype=np.float32)
        y = rng.integers(N_CLASSES, size=N_FITTED)
        X = centres[y] + rng.standard_normal((N_FITTED, n_columns), dtype=np.float32)
        is_known = (y < N_CLASSES // 2) & (np.arange(N_FITTED) % 2 == 0)
        model = PNPDiscoverer(max_iter=1, random_state=options.seed)
        model.fit(X[is_known], y[is_known], X[~is_known])
        rows = np.tile(X, (-(-options.rows // N_FITTED), 1))[: options.rows]
        print(
            f"{len(rows):,} rows of {n_columns} columns, {len(model.prototypes_)} prototypes of "
            f"{model.n_clusters_} classes, {torch.get_num_threads()} threads"
        )
        measure(rows, model, options.repeats)


if __name__ == "__main__":
    main()
