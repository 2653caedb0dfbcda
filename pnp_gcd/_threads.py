"""How many threads a fit computes with.

Knows sizes only. Threads wait for each other by spinning: on a machine that does other work too, small
products then take ten times as long with two threads as with one, and gain nothing where it is idle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["each_by_one_thread", "sensible_threads"]

# Numbers in all rows below which more than one thread does not pay.
_SMALL = 1 << 20


@contextlib.contextmanager
def sensible_threads(n_numbers: int) -> Iterator[None]:
    """Compute with one thread where there is little to compute, else with as many as are set."""
    if n_numbers >= _SMALL:
        yield
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    with threadpool_limits(limits=1):
        yield


def each_by_one_thread(task: Callable[[int], object], n_tasks: int, *, is_shared: bool = True) -> None:
    """Call ``task(0)`` … ``task(n_tasks − 1)``, several at a time, each computing with one thread.

    For many small products of torch: threads that share one of them wait for each other longer than they
    compute. Without ``is_shared``, one call after the other.
    """
    import torch

    n_threads = torch.get_num_threads()
    if not is_shared or n_threads < 2 or n_tasks < 2:
        for number in range(n_tasks):
            task(number)
        return
    from concurrent.futures import ThreadPoolExecutor

    def run(first: int) -> None:
        torch.set_num_threads(1)  # of this thread alone
        for number in range(first, n_tasks, n_threads):
            task(number)

    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(run, first) for first in range(n_threads)]:
            done.result()
