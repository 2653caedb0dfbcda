"""How equal a fit by several processes is to one by a single process, and how long both take.

    OMP_NUM_THREADS=1 python benchmarks/distributed.py [--workers 2 3] [--what rows pictures]
        [--rows 1000] [--pictures 100]

Rows: 16 overlapping classes in 64 columns, 8 of them known, half of their rows labelled. Pictures: discs of
four colours behind timm's test_vit with random weights, of which the last block learns, with activations
kept and computed anew. Each fit runs in processes of its own, on this machine. Prints, for each number of
workers, the part of labels that is equal, the largest difference in features and in losses, whether all
workers ended with the same model to the last bit, and seconds of ``fit`` in the first worker. The ratio of
seconds says little where workers share the cores.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("rows", "pictures", "pictures, nothing kept")


def make_rows(n_rows: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(16, size=n_rows)
    X = (0.5 * rng.normal(size=(16, 64)))[y] + rng.normal(size=(n_rows, 64))
    has_label = (y < 8) & (rng.random(n_rows) < 0.5)
    return X[has_label], y[has_label], X[~has_label]


def make_pictures(n_pictures: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    colours = np.array([[220, 40, 40], [40, 200, 60], [50, 70, 220], [230, 210, 50]])
    y = rng.integers(4, size=n_pictures)
    rows, columns = np.mgrid[:40, :40]
    X = rng.integers(90, 160, size=(n_pictures, 1, 1, 1), dtype=np.uint8) + np.zeros((40, 40, 3), np.uint8)
    for place, colour in enumerate(y):
        centre, radius = rng.uniform(14, 26, size=2), rng.uniform(8, 13)
        inside = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2
        X[place][inside] = np.clip(colours[colour] + rng.normal(0, 10, 3), 0, 255)
    has_label = (y < 3) & (rng.random(n_pictures) < 0.5)
    return X[has_label], y[has_label], X[~has_label]


def fit(kind: str, out: str, size: int) -> None:
    """Fit, as one of the workers or alone, and write what was found."""
    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.distributed import process_group

    model = PNPDiscoverer(random_state=0)
    if kind == "rows":
        X, y, pool = make_rows(size)
    else:
        X, y, pool = make_pictures(size)
        model.set_params(
            backbone="test_vit",
            backbone_weights=None,
            image_size=32,
            device="cpu",
            n_cached_views=2,
            batch_size=64,
            cache_size="1GB" if kind == "pictures" else 0,
        )
    with process_group(needs_torchrun=False) as world:
        began = time.perf_counter()
        model.fit(X, y, pool)
        seconds = time.perf_counter() - began
        found = {
            "labels": np.concatenate([model.labels_, model.unlabelled_labels_]),
            "features": model.transform(np.concatenate([X, pool])),
            "losses": np.array([row["total"] for row in model.history_]),
            "prototypes": model.prototypes_,
            "seconds": seconds,
        }
        Path(out, f"{world.rank}.pickle").write_bytes(pickle.dumps(found))


def run(kind: str, size: int, n_workers: int) -> list[dict[str, Any]]:
    """Return what each worker found; one worker is a plain process."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_workers}"]
        command = [sys.executable, *(launcher if n_workers > 1 else []), __file__]
        command += ["--fit", kind, "--out", folder, "--size", str(size)]
        environment = {"OMP_NUM_THREADS": "1"} | dict(os.environ)
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(ran.stderr)
        return [pickle.loads(Path(folder, f"{rank}.pickle").read_bytes()) for rank in range(n_workers)]


def differ(found: dict[str, Any], other: dict[str, Any], name: str) -> float:
    if found[name].shape != other[name].shape:
        return float("nan")
    return float(np.abs(found[name] - other[name]).max())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--what", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--pictures", type=int, default=100)
    for name in ("--fit", "--out", "--size"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        fit(given.fit, given.out, int(given.size))
        return
    print("| what | workers | equal labels | features | losses | workers alike | seconds |")
    print("|---|---|---|---|---|---|---|")
    for kind in given.what:
        size = given.rows if kind == "rows" else given.pictures
        (alone,) = run(kind, size, 1)
        print(f"| {kind} | 1 | | | | | {alone['seconds']:.1f} |", flush=True)
        for n_workers in given.workers:
            found = run(kind, size, n_workers)
            equal = float((found[0]["labels"] == alone["labels"]).mean())
            alike = all(
                differ(one, found[0], name) == 0 for one in found for name in ("features", "prototypes")
            )
            print(
                f"| {kind} | {n_workers} | {equal:.2%} | {differ(found[0], alone, 'features'):.1g} | "
                f"{differ(found[0], alone, 'losses'):.1g} | {'yes' if alike else 'no'} | "
                f"{found[0]['seconds']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
