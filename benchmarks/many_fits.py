"""Fit many small models in one process and print the memory, files and threads that it has.

``python benchmarks/many_fits.py --fits 1000`` prints a line for every 100 fits. Each model is asked once and
forgotten; what grows from line to line after the first few is a leak.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from pnp_gcd import PNPDiscoverer


def resident_bytes() -> int:
    """Return the memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def count_temporary() -> int:
    """Return how many folders of ours there are in the folder for temporary files."""
    return len(list(Path(tempfile.gettempdir()).glob("pnp_gcd[-_]*")))


def fit_once(seed: int, n_rows: int) -> None:
    """Fit and ask a model of a few rows."""
    X, y = make_blobs(n_rows, centers=9 * np.eye(4, 5), random_state=seed)
    y[(y > 1) | (np.arange(n_rows) % 2 == 0)] = -1
    PNPDiscoverer(4, max_iter=2, n_neighbors=5, random_state=seed).fit(X, y).predict(X)


def main() -> None:
    """Run the fits that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--rows", type=int, default=60)
    arguments = parser.parse_args()
    start, before = time.perf_counter(), count_temporary()
    print("fits  MB resident  open files  threads  temporary folders  seconds")
    for number in range(arguments.fits + 1):
        if number in (0, 10) or number % arguments.every == 0:
            gc.collect()
            print(
                f"{number:4d}  {resident_bytes() / 2**20:11.1f}  {len(os.listdir('/proc/self/fd')):10d}  "
                f"{threading.active_count():7d}  {count_temporary() - before:17d}  "
                f"{time.perf_counter() - start:7.0f}",
                flush=True,
            )
        fit_once(number, arguments.rows)


if __name__ == "__main__":
    main()
