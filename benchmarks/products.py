"""Products of matrices and the best of many columns: torch's way beside the package's.

    OMP_NUM_THREADS=1 python benchmarks/products.py [--rows 13000] [--columns 128,256,768]
        [--neighbors 20] [--repeats 5]

Compares one block of rows with all rows, as a search for neighbours does: by ``@`` and ``topk`` of torch, and
by ``pnp_gcd.products``. Both in turn, in one run. Prints the CPU seconds of the quickest repeat, so that
other work on the machine counts little, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from pnp_gcd.products import multiply, take_best

BLOCK = 2048


def quickest(functions: list[Callable[[], object]], n_repeats: int) -> list[float]:
    """Return the CPU seconds of each function's quickest call, called in turn."""
    best = [float("inf")] * len(functions)
    for _ in range(n_repeats):
        for place, function in enumerate(functions):
            began = time.process_time()
            function()
            best[place] = min(best[place], time.process_time() - began)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=13_000)
    parser.add_argument("--columns", default="128,256,768")
    parser.add_argument("--neighbors", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for width in map(int, options.columns.split(",")):
        rows = torch.nn.functional.normalize(
            torch.randn(options.rows, width, generator=torch.Generator().manual_seed(0)), dim=1
        )
        queries, cosines = rows[:BLOCK], rows[:BLOCK] @ rows.T
        room = torch.empty_like(cosines)
        theirs, ours = quickest(
            [lambda q=queries, r=rows: q @ r.T, lambda q=queries, r=rows, o=room: multiply(q, r, out=o)],
            options.repeats,
        )
        ratio = f"{theirs / ours:.1f} times"
        print(f"{width} columns: product by torch {theirs:.3f} s, by NumPy {ours:.3f} s, {ratio}")
        theirs, ours = quickest(
            [
                lambda c=cosines: c.topk(options.neighbors, dim=1),
                lambda c=cosines: take_best(c, options.neighbors),
            ],
            options.repeats,
        )
        ratio = f"{theirs / ours:.1f} times"
        print(f"  best {options.neighbors}: topk {theirs:.3f} s, by groups {ours:.3f} s, {ratio}")


if __name__ == "__main__":
    main()
