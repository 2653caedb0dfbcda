"""How many threads a fit computes with.

Knows sizes only. Threads wait for each other by spinning: on a machine that does other work too, small
products then take ten times as long with two threads as with one, and gain nothing where it is idle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["sensible_threads"]

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
