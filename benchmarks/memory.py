"""Peak of memory of the neighbour graph, and of Infomap on it.

    python benchmarks/memory.py [--rows 37500] [--columns 64] [--neighbors 2000,40] [--infomap]

    python benchmarks/memory.py --fit [--rows 10000,100000,1000000] [--columns 128]

Every number of neighbours is tried in a process of its own. Prints by how much the peak rises while
neighbours are searched and the graph is built, and with --infomap while its communities are found, per edge
and in all; and how well these agree with the classes of the made-up rows, for resolutions that give larger
communities. With --fit the peak of whole fits to rows in memory and to an array on disk, beside the formula
of docs/scaling.md. 3 minutes; with --infomap 15, and some 6 GiB; with --fit 20.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from pnp_gcd import PNPDiscoverer
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


def expect_fit(n_rows: int, n_columns: int, max_samples: int = 50_000) -> float:
    """Return the GiB that a fit to rows of single precision should stay below, beyond rows in memory."""
    m, p = min(n_rows, max_samples), min(n_columns, 256)
    sample = 32 * m * n_columns + m * (6 * (4 * p + 480) + 56 * 40)
    return (0.9 * 2**30 + sample + 64 * n_rows + (1 << 28)) / 2**30


def measure_fit(n_rows: int, n_columns: int, *, is_on_disk: bool) -> None:
    """Fit in this process and print its peak beside the formula."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 100
    centres = rng.normal(scale=0.7, size=(100, n_columns)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.npy")
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns))
        for start in range(0, n_rows, 10_000):
            part = slice(start, min(start + 10_000, n_rows))
            rows[part] = centres[y[part]] + rng.standard_normal((part.stop - start, n_columns))
        rows.flush()
        X = np.load(path, mmap_mode="r" if is_on_disk else None)
        del rows
        labels = np.where((y < 50) & (rng.random(n_rows) < 0.5), y, -1)
        before, began = held(), time.perf_counter()
        PNPDiscoverer(random_state=0).fit(X, labels)
    where = "on disk" if is_on_disk else "in memory"
    size = 0.0 if is_on_disk else n_rows * n_columns * 4 / 2**30
    print(
        f"{n_rows} rows of {n_columns} columns {where}: peak {held():.2f} GiB of its own, {before:.2f} "
        f"before the fit; formula {expect_fit(n_rows, n_columns) + size:.2f} GiB; "
        f"{time.perf_counter() - began:.0f} s",
        flush=True,
    )


def held() -> float:
    """Return the GiB of this process's own memory at its peak, or the peak of all where Linux does not tell.

    Pages of a file that is read as an array count in the peak, though the system may take them back.
    """
    try:
        with open("/proc/self/status") as lines:
            of_files = next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))
    except (OSError, StopIteration):
        of_files = 0
    return peak() - of_files / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default=None)
    parser.add_argument("--columns", type=int, default=None)
    parser.add_argument("--neighbors", default="2000,40")
    parser.add_argument("--infomap", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        sizes = [int(part) for part in (options.rows or "10000,100000,1000000").split(",")]
        if options.one is not None:
            measure_fit(abs(options.one), options.columns or 128, is_on_disk=options.one < 0)
            return
        for size in sizes:
            for one in (size, -size):
                subprocess.run([sys.executable, *sys.argv, f"--one={one}"], check=True)
        return
    options.rows, options.columns = int(options.rows or 37_500), options.columns or 64
    if options.one is not None:
        measure(options.one, options)
        return
    for n_neighbors in options.neighbors.split(","):
        subprocess.run([sys.executable, *sys.argv, "--one", n_neighbors], check=True)


if __name__ == "__main__":
    main()
