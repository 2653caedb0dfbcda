"""Peak of memory of the neighbour graph, and of Infomap on it.

    python benchmarks/memory.py [--rows 37500] [--columns 64] [--neighbors 2000,40] [--infomap]

Every number of neighbours is tried in a process of its own. Prints by how much the peak rises while
neighbours are searched and the graph is built, and with --infomap while its communities are found, per edge
and in all; and how well these agree with the classes of the made-up rows, for resolutions that give larger
communities.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from pnp_gcd.clustering import GraphSettings, build_graph, cluster_neighbours
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import find_neighbours

N_CLASSES = 15
RESOLUTIONS = (1.0, 2.0, 4.0)


def peak() -> float:
    """Return the peak of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(n_neighbors: int, options: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=options.rows)
    rows = unit_rows(
        rng.normal(size=(N_CLASSES, options.columns))[y] + rng.normal(size=(options.rows, options.columns))
    )
    small = find_neighbours(rows[:500], 20)  # imports are not counted
    cluster_neighbours(rows[:500], small, GraphSettings(20))
    before, began = peak(), time.perf_counter()
    found = find_neighbours(rows, n_neighbors)
    searched = peak()
    graph = build_graph(found, GraphSettings(n_neighbors))
    n_edges = len(graph.targets)
    print(
        f"{options.rows} rows, k={n_neighbors}: {n_edges:,} edges, peak of the search "
        f"{searched - before:.2f} GiB, with the graph {peak() - before:.2f} GiB, "
        f"{time.perf_counter() - began:.0f} s",
        flush=True,
    )
    del graph
    for resolution in RESOLUTIONS if options.infomap else ():
        before, began = peak(), time.perf_counter()
        clustering = cluster_neighbours(rows, found, GraphSettings(n_neighbors, resolution=resolution))
        print(
            f"  Infomap, resolution {resolution:g}: peak {peak():.2f} GiB, "
            f"{(peak() - before) * 2**30 / n_edges:.0f} bytes an edge more than before, "
            f"{clustering.n_communities} communities, ARI with the classes "
            f"{adjusted_rand_score(y, clustering.labels):.3f}, {time.perf_counter() - began:.0f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=37_500)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--neighbors", default="2000,40")
    parser.add_argument("--infomap", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        measure(options.one, options)
        return
    for n_neighbors in options.neighbors.split(","):
        subprocess.run([sys.executable, *sys.argv, "--one", n_neighbors], check=True)


if __name__ == "__main__":
    main()
