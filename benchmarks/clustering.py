"""The clustering step beside the way it is usually written: search, graph, Infomap.

    python benchmarks/clustering.py [--rows 25000,100000] [--columns 768] [--neighbors 10] [--seeds 3]

The usual way searches with faiss's flat index, goes over the edges in a Python loop, and hands them to
Infomap one by one (``add_link``); modules are read back node by node. Ours is ``cluster_neighbours`` with
weights by cosine, once after exact search and once after search in cells. All see the same made-up rows,
clouds of 100 rows each, and the same threshold. Prints seconds of every part in one run, their ratios to the
usual way, the recall of cells on rows drawn anew, and the agreement (adjusted Rand index) of every partition
with the usual way's, beside that of the usual way with itself under other seeds. On a machine that does
other work too, OMP_NUM_THREADS=1 gives ratios that can be trusted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import infomap
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from pnp_gcd.clustering import GraphSettings, cluster_neighbours
from pnp_gcd.neighbours import Engine, Neighbours, find_neighbours, measure_recall

ROWS_PER_CLOUD = 100
THRESHOLD = 0.3


class Timed(NamedTuple):
    """What came out, and the seconds of search and of the rest."""

    labels: NDArray[np.int64]
    search: float
    rest: float

    @property
    def total(self) -> float:
        """Seconds of both."""
        return self.search + self.rest


def make_clouds(n_rows: int, n_columns: int, spread: float, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_rows // ROWS_PER_CLOUD, n_columns), dtype=np.float32)
    rows = centres[rng.integers(len(centres), size=n_rows)]
    rows += spread * rng.standard_normal(rows.shape, dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    out = function()
    return out, time.perf_counter() - began


def search_flat(rows: NDArray[np.float32], n_neighbors: int) -> tuple[Any, Any]:
    """Search with faiss; a row is among its own neighbours."""
    import faiss

    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    similarities, indices = index.search(rows, n_neighbors + 1)
    return similarities, indices


def group_usually(similarities: Any, indices: Any, seed: int) -> NDArray[np.int64]:
    """Go over the edges one by one."""
    network = infomap.Infomap(silent=True, two_level=True, directed=True, num_trials=1, seed=seed)
    single = set(range(len(indices)))
    for row in range(len(indices)):
        for cosine, other in zip(similarities[row], indices[row], strict=True):
            if other != row and cosine > THRESHOLD:
                network.add_link(row, int(other), float(cosine))
                single -= {row, int(other)}
    for row in single:
        network.add_node(row)
    network.run()
    labels = np.empty(len(indices), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old name; the new one crashes where faiss is imported too
        modules = network.get_modules()
    for row, module in modules.items():
        labels[row] = module
    return labels


def run_ours(rows: NDArray[np.float32], n_neighbors: int, engine: Engine) -> tuple[Timed, Neighbours]:
    found, search = timed(lambda: find_neighbours(rows, n_neighbors, engine=engine))
    settings = GraphSettings(n_neighbors, THRESHOLD, edge_weights="cosine")
    clustering, rest = timed(lambda: cluster_neighbours(rows, found, settings, seed=0))
    return Timed(clustering.labels, search, rest), found


def compare(rows: NDArray[np.float32], n_neighbors: int, n_seeds: int, *, is_exact_timed: bool) -> None:
    (similarities, indices), search = timed(lambda: search_flat(rows, n_neighbors))
    labels, rest = timed(lambda: group_usually(similarities, indices, 1))
    usual = Timed(labels, search, rest)
    print(f"  usual way: search {search:.2f} s, graph and Infomap {rest:.2f} s", flush=True)
    others = [group_usually(similarities, indices, seed) for seed in range(2, n_seeds + 1)]
    itself = min(adjusted_rand_score(labels, other) for other in others)
    print(f"  usual way under other seeds: ARI {itself:.4f} at least, {len(np.unique(labels))} communities")
    for engine in ("exact", "cells") if is_exact_timed else ("cells",):
        ours, found = run_ours(rows, n_neighbors, engine)
        agreement = adjusted_rand_score(usual.labels, ours.labels)
        recall = ""
        if engine == "cells":
            drawn = np.random.default_rng(9).choice(len(rows), 1000, replace=False)
            true = find_neighbours(rows, n_neighbors, np.sort(drawn))
            recall = f", recall {measure_recall(found.indices[np.sort(drawn)], true.indices):.4f}"
        print(
            f"  {engine}: search {ours.search:.2f} s, graph and Infomap {ours.rest:.2f} s, "
            f"{usual.total / ours.total:.1f} times as fast, ARI {agreement:.4f}{recall}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="25000,100000")
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--neighbors", type=int, default=10)
    parser.add_argument(
        "--spread", type=float, default=1.0, help="of rows inside a cloud; of centres it is 1"
    )
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    # faiss first: infomap's results crash the interpreter if faiss is imported after it is used
    search_flat(make_clouds(1000, 16, 1.0, 0), 5)
    run_ours(make_clouds(1000, 16, 1.0, 0), 5, "cells")
    for n_rows in (int(number) for number in options.rows.split(",")):
        print(f"{n_rows} rows of {options.columns} columns, k={options.neighbors}", flush=True)
        rows = make_clouds(n_rows, options.columns, options.spread, 0)
        compare(rows, options.neighbors, options.seeds, is_exact_timed=n_rows <= 60_000)


if __name__ == "__main__":
    main()
