"""The engines that search for neighbours, and faiss's graph index, side by side: seconds and recall.

    OMP_NUM_THREADS=1 python benchmarks/engines.py [--sizes 20000x128,100000x128] [--neighbors 15] [--hnsw]

Made-up rows, clouds of 100 rows each. Exact search, cells, and faiss's inverted file are engines of
``find_neighbours``. With --hnsw also faiss's HNSW (32 links, searched to depths 32, 64 and 128), which is
none: building it is counted apart. Recall is measured on 500 rows. 1 minute, 5 with --hnsw.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from graph_update import N_ASKED, make_moving
from numpy.typing import NDArray

from pnp_gcd.neighbours import find_neighbours, measure_recall

LINKS, DEPTHS = 32, (32, 64, 128)


def compare(rows: NDArray[np.float32], k: int, *, with_hnsw: bool) -> None:
    drawn = np.sort(np.random.default_rng(1).choice(len(rows), N_ASKED, replace=False))
    true = find_neighbours(rows, k, drawn).indices
    for engine in ("exact", "cells", "faiss"):
        began = time.perf_counter()
        found = find_neighbours(rows, k, engine=engine)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        recall = measure_recall(found.indices[drawn], true)
        print(f"  {engine:<12} {seconds:7.2f} s  recall {recall:.3f}", flush=True)
    if with_hnsw:
        search_hnsw(rows, k, drawn, true)


def search_hnsw(rows: NDArray[np.float32], k: int, drawn: NDArray[np.int64], true: NDArray[np.int32]) -> None:
    import faiss

    began = time.perf_counter()
    index = faiss.IndexHNSWFlat(rows.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(rows)
    built = time.perf_counter() - began
    for depth in DEPTHS:
        began = time.perf_counter()
        index.hnsw.efSearch = depth
        _, indices = index.search(rows, k + 1)
        seconds = time.perf_counter() - began
        # A row is its own nearest; where it was not found, one neighbour too many counts.
        recall = np.mean([len(set(a) & set(b)) for a, b in zip(indices[drawn], true, strict=True)]) / k
        print(f"  HNSW {depth:<7} {built + seconds:7.2f} s, {built:.2f} s to build  recall {recall:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="20000x128,100000x128")
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--hnsw", action="store_true")
    options = parser.parse_args()
    for size in options.sizes.split(","):
        n_rows, n_columns = (int(number) for number in size.split("x"))
        print(f"{n_rows} x {n_columns}, k={options.neighbors}", flush=True)
        compare(make_moving(n_rows, n_columns, 0.0)[0], options.neighbors, with_hnsw=options.hnsw)


if __name__ == "__main__":
    main()
