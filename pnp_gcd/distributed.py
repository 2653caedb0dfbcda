"""One fit by several processes that torchrun has started: join them, and leave them when one is gone.

Knows processes and signals: no rows, no networks.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import secrets
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pnp_gcd.exceptions import DiscoveryWarning, WorkerLostError
from pnp_gcd.workers import ALONE, World, handling, is_lost, shorten

__all__ = ["process_group", "take_part"]

_NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# A fit in another thread or in a forked process, as joblib starts them, is no part of the group.
_HERE = threading.local()


def _current() -> World:
    world, process = getattr(_HERE, "entered", (ALONE, 0))
    return world if process == os.getpid() else ALONE


@contextlib.contextmanager
def process_group(*, timeout: float = 1800.0, needs_torchrun: bool = True) -> Iterator[World]:
    """Let the fits inside run on all the processes that torchrun has started.

    Every process has to run the same fits in the same order, with the same rows, labels and parameters.
    Connects by gloo, and where every worker has a GPU of its own also by NCCL. Fits in other threads
    or processes, such as those of a search with ``n_jobs``, run on their own. See :doc:`the guide
    </distributed>`.

    Parameters
    ----------
    timeout : float, default=1800
        Seconds for which a worker waits for another: longer than calibrating or clustering once takes.
    needs_torchrun : bool, default=True
        Whether it is an error if torchrun has not started this process. If not, it is then a group of one.

    Yields
    ------
    World
        ``rank``, ``size`` and ``is_first`` of this process.

    Examples
    --------
    >>> from pnp_gcd.distributed import process_group
    >>> with process_group(needs_torchrun=False) as world:  # model.fit(...) goes here
    ...     world.is_first, world.size
    (True, 1)
    """
    missing = [name for name in _NEEDED if name not in os.environ]
    if missing and not needs_torchrun:
        yield ALONE
        return
    if missing:
        raise RuntimeError(
            f"process_group() finds no {missing[0]} in the environment: torchrun has not started this "
            "process. Run torchrun --nproc-per-node 2 program.py, or pass needs_torchrun=False."
        )
    if _current() is not ALONE:
        raise RuntimeError("process_group() was entered already in this thread. Enter it once.")
    from torch import distributed

    if distributed.is_initialized():
        raise RuntimeError("There is a process group of torch already. Leave it before process_group().")
    world = _connect(timeout)
    _HERE.entered = (world, os.getpid())
    teller = _Teller(world)
    try:
        with handling(signal.SIGTERM, signal.SIG_DFL, teller), teller.listening():
            yield world
            if not world.bond.is_broken:
                with _translated(world):
                    world.gather(None)  # nobody leaves while another one is still reading
    finally:
        del _HERE.entered
        _leave(world)
        world.bond.shared = None  # its frames hold on to networks, and these to the group and its threads
        gc.collect()


def _connect(timeout: float) -> World:
    import torch

    # Before there is a group: its functions hold on to the one that they find, and to its threads, which
    # then now and then abort the process as it ends.
    import torch.distributed.nn.functional
    from torch import distributed
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]
    from torch.distributed.rendezvous import rendezvous

    number = {name: int(os.environ[name]) for name in _NEEDED if name != "MASTER_ADDR"}
    has_gpu = torch.cuda.is_available() and number["LOCAL_WORLD_SIZE"] <= torch.cuda.device_count()
    if has_gpu:
        torch.cuda.set_device(number["LOCAL_RANK"])
    world = World(number["RANK"], number["WORLD_SIZE"], number["LOCAL_WORLD_SIZE"], has_gpu)
    limit = timedelta(seconds=timeout)
    try:
        store, rank, size = next(rendezvous("env://", timeout=limit))
        store.set_timeout(limit)
        met = PrefixStore(_meet(store, rank, size, timeout), store)
        backend = "cpu:gloo,cuda:nccl" if has_gpu else "gloo"
        distributed.init_process_group(backend, store=met, rank=rank, world_size=size, timeout=limit)
    except (RuntimeError, TimeoutError) as error:
        if not (isinstance(error, TimeoutError) or is_lost(error)):
            raise
        world.note("while it waited for the others to begin")
        raise world.lose(shorten(str(error))) from error
    return world


def _meet(store: Any, rank: int, size: int, timeout: float) -> str:
    """Return a word that the workers of this start share, and no others.

    torchrun keeps one store over its restarts, in which addresses of workers that are gone still stand.
    """
    if rank:
        mine = secrets.token_hex(8)
        store.set(f"pnp_gcd/here/{rank}", mine)
        word = store.get(f"pnp_gcd/word/{mine}").decode()  # waits
        store.add(f"pnp_gcd/met/{word}", 1)
        return word
    word, began = secrets.token_hex(8), time.monotonic()
    while (n_met := store.add(f"pnp_gcd/met/{word}", 0)) < size - 1:
        for other in range(1, size):
            if store.check([f"pnp_gcd/here/{other}"]):  # answers also those that are gone, who do not mind
                store.set(f"pnp_gcd/word/{store.get(f'pnp_gcd/here/{other}').decode()}", word)
        if time.monotonic() - began > timeout:
            raise TimeoutError(f"timed out with {1 + n_met} of {size} workers here")
        time.sleep(0.02)
    return word


def _leave(world: World) -> None:
    """Close the connections, which the others then notice."""
    from torch import distributed

    world.bond.is_broken = True
    if distributed.is_initialized():
        distributed.destroy_process_group()


class _Teller:
    """Handles SIGTERM, which torchrun sends to the others when a worker has ended: say so and clean up.

    Where that was said already, one SIGTERM is let pass, also after the group: the process ends by its error.
    """

    def __init__(self, world: World) -> None:
        self.world, self.has_told, self.stays = world, False, False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Remember whether a worker was lost."""
        try:
            yield
        except WorkerLostError:
            self.has_told = self.stays = True
            raise

    def __call__(self, number: int, frame: Any) -> None:
        if self.has_told:
            signal.signal(number, signal.SIG_DFL)
            return
        self.has_told = True
        raise self.world.lose("it was told to end, as torchrun does when another worker has ended")


@contextlib.contextmanager
def take_part(checkpoint_dir: str | os.PathLike[str] | None) -> Iterator[World]:
    """Yield the workers of a fit: all of the group that this thread has entered, else this process alone.

    Only the first one warns and logs. A connection that breaks is a WorkerLostError. After an error that
    only this worker knows of, the group is left, so that the others do not wait for it.
    """
    world = _current()
    if world.size == 1:
        yield world
        return
    if world.bond.is_broken:
        raise WorkerLostError(
            "An earlier fit in this process_group() ended half-way, and the workers are no longer in step. "
            "Leave the group, and start the program again."
        )
    world.bond.checkpoint_dir, world.bond.stage = checkpoint_dir, "while it read its input"
    with _translated(world), contextlib.nullcontext() if world.is_first else _hushed():
        yield world
    world.bond.checkpoint_dir, world.bond.stage = None, "after a fit"


@contextlib.contextmanager
def _translated(world: World) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if error is world.bond.shared:
            raise
        _leave(world)
        if isinstance(error, Exception) and not isinstance(error, WorkerLostError) and is_lost(error):
            raise world.lose(shorten(str(error))) from error
        raise


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Let the package neither warn nor log."""
    logger = logging.getLogger("pnp_gcd")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            logger.setLevel(level)
