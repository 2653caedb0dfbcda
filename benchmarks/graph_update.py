"""The neighbour graph updated between epochs, beside building it anew: seconds and recall.

    OMP_NUM_THREADS=1 python benchmarks/graph_update.py [--sizes 13000x256,50000x128] [--moves 0.1]

Made-up rows, clouds of 100 rows each, move a little, as features do while a network learns: every row towards
the centre of its cloud, and at random. ``--moves`` says by how much of the way, and how long the random part
is. Compared with building anew as a fit does it (exact up to 60,000 rows, then in cells):

    old graph        the neighbours from before the move, as they are
    one round        the best of the old neighbours, of the rows that had a row as neighbour, and of the
                     neighbours of all these; only these are compared
    two rounds       the same again from there
    old cells        cells with the centres from before the move (200,000 rows)

Prints seconds, and the recall on 500 rows that were compared with all others. 5 minutes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from numpy.typing import NDArray

from pnp_gcd import cells
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import Neighbours, find_neighbours, measure_recall
from pnp_gcd.rounded import compare_some

ROWS_PER_CLOUD, N_ASKED, BLOCK = 100, 500, 4096


def make_moving(
    n_rows: int, n_columns: int, move: float, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return rows before and after a move."""
    rng = np.random.default_rng(seed)
    centres = unit_rows(rng.standard_normal((n_rows // ROWS_PER_CLOUD, n_columns), dtype=np.float32))
    own = centres[rng.integers(len(centres), size=n_rows)]
    before = unit_rows(own + rng.standard_normal(own.shape, dtype=np.float32) / np.sqrt(n_columns))
    noise = rng.standard_normal(own.shape, dtype=np.float32) / np.sqrt(n_columns)
    return before, unit_rows((1 - move) * before + move * own + move * noise)


def add_asking(indices: NDArray[np.int32], n_more: int) -> NDArray[np.int32]:
    """Put beside the neighbours of each row some of the rows that have it as theirs; itself where few do."""
    n_rows, k = indices.shape
    targets, sources = indices.ravel(), np.repeat(np.arange(n_rows, dtype=np.int32), k)
    order = np.argsort(targets, kind="stable")
    begins = np.searchsorted(targets[order], np.arange(n_rows))
    place = np.arange(len(order)) - begins[targets[order]]
    some = place < n_more
    more = np.repeat(np.arange(n_rows, dtype=np.int32)[:, None], n_more, axis=1)
    more[targets[order][some], place[some]] = sources[order][some]
    return np.column_stack([indices, more])


def update(rows: NDArray[np.float32], indices: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return better neighbours: the best of the old ones, of those that ask, and of the old ones of these."""
    k, tensor = indices.shape[1], torch.from_numpy(rows)
    near, old = torch.from_numpy(add_asking(indices, k // 2)).long(), torch.from_numpy(indices).long()
    found = torch.empty(old.shape, dtype=torch.int32)
    for start in range(0, len(rows), BLOCK):
        part = torch.arange(start, min(start + BLOCK, len(rows)))
        candidates = torch.cat([near[part], old[near[part]].flatten(1)], dim=1).sort(dim=1).values
        cosines = compare_some(tensor, part, candidates)
        cosines[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -torch.inf
        cosines[candidates == part[:, None]] = -torch.inf
        found[part] = candidates.gather(1, cosines.topk(k, dim=1).indices).int()
    return found.numpy()


def compare(n_rows: int, n_columns: int, k: int, move: float) -> None:
    before, after = make_moving(n_rows, n_columns, move)
    old = find_neighbours(before, k)
    drawn = np.sort(np.random.default_rng(1).choice(n_rows, N_ASKED, replace=False))
    true = find_neighbours(after, k, drawn).indices

    def show(name: str, began: float, indices: NDArray[np.int32]) -> None:
        seconds = time.perf_counter() - began
        recall = measure_recall(indices[drawn], true)
        print(f"  {name:<12} {seconds:7.2f} s  recall {recall:.3f}", flush=True)

    print(f"{n_rows} x {n_columns}, k={k}, moved by {move:g}", flush=True)
    began = time.perf_counter()
    show("built anew", began, find_neighbours(after, k).indices)
    show("old graph", time.perf_counter(), old.indices)
    began = time.perf_counter()
    once = update(after, old.indices)
    show("one round", began, once)
    show("two rounds", began, update(after, once))
    if n_rows > 60_000:
        show("old cells", *search_old_cells(before, after, old, true, drawn))


def search_old_cells(
    before: NDArray[np.float32],
    after: NDArray[np.float32],
    old: Neighbours,
    true: NDArray[np.int32],
    drawn: NDArray[np.int64],
) -> tuple[float, NDArray[np.int32]]:
    """Search in cells whose centres were learnt before the move; learning them is not counted."""
    k = old.indices.shape[1]
    centres = cells.build_cells(torch.from_numpy(before), least_rows=k + 1).centres
    began, rows = time.perf_counter(), torch.from_numpy(after)
    kept = cells.sort_rows(rows, centres)
    asked, neighbours = torch.from_numpy(drawn), torch.from_numpy(true.astype(np.int64))
    n_probes, _ = cells.plan_probes(kept, rows, asked, neighbours, recall=0.97)
    return began, cells.search_cells(rows, kept, k, n_probes)[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="13000x256,50000x128,200000x128")
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--moves", default="0.1,0.3")
    options = parser.parse_args()
    find_neighbours(make_moving(1000, 16, 0.1)[0], 5)
    for size in options.sizes.split(","):
        n_rows, n_columns = (int(number) for number in size.split("x"))
        for move in options.moves.split(","):
            compare(n_rows, n_columns, options.neighbors, float(move))


if __name__ == "__main__":
    main()
