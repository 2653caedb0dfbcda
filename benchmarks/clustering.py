"""The clustering step beside the way it is usually written: search, graph, Infomap.

    python benchmarks/clustering.py [--rows 25000,100000] [--columns 768] [--neighbors 10] [--repeats 3]

The usual way searches with faiss's flat index, goes over the edges in a Python loop, and hands them to
Infomap one by one (``add_link``); modules are read back node by node. Ours is ``cluster_neighbours`` with
weights by cosine, once after exact search and once after search in cells. All see the same made-up rows,
clouds of 100 rows each, and the same threshold. All take turns, as often as there are repeats, each time with
another seed. Prints median seconds of every part, the ratio of the medians to the usual way's, the recall of
cells on rows drawn anew, and the agreement (adjusted Rand index) of every partition with the usual way's
first, beside that of the usual way with itself under its other seeds. On a machine that does other work too,
OMP_NUM_THREADS=1 gives ratios that can be trusted.
"""

from __future__ import annotations

import argparse
import statistics
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


def run_usually(rows: NDArray[np.float32], n_neighbors: int, seed: int) -> Timed:
    (similarities, indices), search = timed(lambda: search_flat(rows, n_neighbors))
    labels, rest = timed(lambda: group_usually(similarities, indices, seed + 1))
    return Timed(labels, search, rest)


def run_ours(
    rows: NDArray[np.float32], n_neighbors: int, engine: Engine, seed: int
) -> tuple[Timed, Neighbours]:
    found, search = timed(lambda: find_neighbours(rows, n_neighbors, engine=engine))
    settings = GraphSettings(n_neighbors, THRESHOLD, edge_weights="cosine")
    clustering, rest = timed(lambda: cluster_neighbours(rows, found, settings, seed=seed))
    return Timed(clustering.labels, search, rest), found


def tell(name: str, runs: list[Timed], usual: list[Timed]) -> str:
    """Return a line of seconds and, where the runs are not the usual way's own, of the comparison."""
    search, rest = (statistics.median(getattr(run, part) for run in runs) for part in ("search", "rest"))
    line = f"  {name}: search {search:.2f} s, graph and Infomap {rest:.2f} s"
    if runs is usual:
        others = [adjusted_rand_score(usual[0].labels, run.labels) for run in usual[1:]]
        return line + f", ARI {min(others, default=1.0):.4f} at least with itself"
    ratio = statistics.median(run.total for run in usual) / statistics.median(run.total for run in runs)
    agreement = min(adjusted_rand_score(usual[0].labels, run.labels) for run in runs)
    return line + f", {ratio:.1f} times as fast, ARI {agreement:.4f} at least"


def compare(rows: NDArray[np.float32], n_neighbors: int, n_repeats: int, engines: list[Engine]) -> None:
    usual: list[Timed] = []
    ours: dict[Engine, list[Timed]] = {engine: [] for engine in engines}
    found = {}
    for seed in range(n_repeats):
        usual.append(run_usually(rows, n_neighbors, seed))
        for engine, runs in ours.items():
            timing, found[engine] = run_ours(rows, n_neighbors, engine, seed)
            runs.append(timing)
    print(tell("usual way", usual, usual), flush=True)
    drawn = np.sort(np.random.default_rng(9).choice(len(rows), 1000, replace=False))
    true = find_neighbours(rows, n_neighbors, drawn)
    for engine, runs in ours.items():
        recall = measure_recall(found[engine].indices[drawn], true.indices)
        print(f"{tell(engine, runs, usual)}, recall {recall:.4f}", flush=True)


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
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    # faiss first: infomap's results crash the interpreter if faiss is imported after it is used
    search_flat(make_clouds(1000, 16, 1.0, 0), 5)
    run_ours(make_clouds(1000, 16, 1.0, 0), 5, "cells", 0)
    for n_rows in (int(number) for number in options.rows.split(",")):
        print(f"{n_rows} rows of {options.columns} columns, k={options.neighbors}", flush=True)
        rows = make_clouds(n_rows, options.columns, options.spread, 0)
        compare(
            rows, options.neighbors, options.repeats, ["exact", "cells"] if n_rows <= 60_000 else ["cells"]
        )


if __name__ == "__main__":
    main()
