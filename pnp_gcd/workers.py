"""The workers of one fit: what they tell each other, and how they share rows and gradients.

Every worker is given the same rows and draws the same batches; it encodes those rows alone that are its own.
Knows processes, arrays and tensors: no labels, no losses, no epochs.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import WorkerLostError, WorkerMismatchError

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["ALONE", "World", "handling", "is_lost", "run_any", "shorten"]

_Value = TypeVar("_Value")

# What errors of a broken connection say, besides being torch's DistError.
_SIGNS = ("gloo", "nccl", "closed by peer", "reset by peer", "broken pipe")


@dataclass
class Bond:
    """What may change of a group of processes.

    Attributes
    ----------
    is_broken : bool
        Whether a fit left it half-way: what comes over the wire then belongs to something else.
    shared : BaseException or None
        The last error that every worker raises, after which the group is whole.
    stage : str
        What is being done.
    checkpoint_dir : path or None
        Where the fit that is running keeps its state.
    """

    is_broken: bool = False
    shared: BaseException | None = None
    stage: str = "between two fits"
    checkpoint_dir: str | os.PathLike[str] | None = None


@dataclass(frozen=True)
class World:
    """The workers of a fit, as one of them sees them. Alone, every method does nothing.

    Attributes
    ----------
    rank : int
        Number of this worker, from 0.
    size : int
        Number of workers.
    n_local : int
        Workers on this machine.
    has_gpu : bool
        Whether each worker has a GPU of its own.
    """

    rank: int = 0
    size: int = 1
    n_local: int = 1
    has_gpu: bool = False
    bond: Bond = field(default_factory=Bond, repr=False, compare=False)

    @property
    def is_first(self) -> bool:
        """Whether this worker is the one that calibrates, clusters, writes and speaks."""
        return self.rank == 0

    # --- values --------------------------------------------------------------------------------------------

    def broadcast(self, value: _Value) -> _Value:
        """Return the first worker's value."""
        if self.size == 1:
            return value
        from torch import distributed

        held = [value if self.is_first else None]
        distributed.broadcast_object_list(held, src=0)
        return held[0]  # type: ignore[return-value]

    def gather(self, value: _Value) -> list[_Value]:
        """Return every worker's value, in the order of their numbers."""
        if self.size == 1:
            return [value]
        from torch import distributed

        held: list[Any] = [None] * self.size
        distributed.all_gather_object(held, value)
        return held

    def on_first(self, function: Callable[[], _Value]) -> _Value:
        """Return what ``function`` returns on the first worker, the only one to call it; so with an error."""
        if self.size == 1:
            return function()
        value, error = _try(function) if self.is_first else (None, None)
        value, sent = self.broadcast((value, _as_sent(error)))
        self._raise_shared(error or sent)
        return value  # type: ignore[return-value]

    def together(self, function: Callable[[], _Value]) -> _Value:
        """Return what ``function`` returns here; an error on one worker is raised on all."""
        if self.size == 1:
            return function()
        value, error = _try(function)
        errors = [sent for sent in self.gather(_as_sent(error)) if sent is not None]
        self._raise_shared(error or (errors[0] if errors else None))
        return value  # type: ignore[return-value]

    def agree(self, facts: dict[str, str]) -> None:
        """Raise on every worker unless all have the same facts."""
        first, *others = self.gather(facts)
        for rank, told in enumerate(others, start=1):
            names = [name for name in {**first, **told} if first.get(name) != told.get(name)]
            if names:
                self._raise_shared(
                    WorkerMismatchError(
                        f"Worker {rank} does not have the same {' and '.join(names)} as worker 0. Every "
                        "worker has to call fit with the same rows, labels and parameters: read the same "
                        "files in the same order, and draw with a fixed seed."
                    )
                )

    def _raise_shared(self, error: BaseException | None) -> None:
        if error is not None:
            self.bond.shared = error
            raise error

    # --- rows ----------------------------------------------------------------------------------------------

    def owners(self, n_rows: int) -> NDArray[np.int64]:
        """Return which worker each of ``n_rows`` rows belongs to: they are dealt like cards."""
        return np.arange(n_rows) % self.size

    def mine(self, owners: NDArray[np.int64]) -> slice | NDArray[np.int64]:
        """Return the places of this worker's own rows."""
        return slice(None) if self.size == 1 else np.flatnonzero(owners == self.rank)

    def join(self, part: Tensor, owners: NDArray[np.int64]) -> Tensor:
        """Return the rows of all workers, in the order of ``owners``, from the own ones of each.

        Every worker is taken to compute the same loss from them. Gradients flow to its own rows alone,
        times the number of workers, by which :meth:`share_gradients` divides.

        Parameters
        ----------
        part : Tensor of shape (m, …)
            This worker's rows.
        owners : ndarray of shape (n,)
        """
        if self.size == 1:
            return part
        import torch
        from torch import distributed

        counts = np.bincount(owners, minlength=self.size)
        own = part.detach()
        padded = own.new_zeros((int(counts.max()), *own.shape[1:]))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        distributed.all_gather(parts, padded)
        pieces = [rows[:count] for rows, count in zip(parts, counts.tolist(), strict=True)]
        if part.requires_grad:
            part.register_hook(lambda gradient: gradient * self.size)
        pieces[self.rank] = part
        place = np.empty(len(owners), dtype=np.int64)
        place[np.argsort(owners, kind="stable")] = np.arange(len(owners))
        return torch.cat(pieces)[torch.from_numpy(place).to(part.device)]

    def join_rows(self, part: NDArray[Any], owners: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of all workers as :meth:`join` does, as an array; a worker may have none."""
        if self.size == 1:
            return part
        import torch

        kinds = [kind for kind in self.gather((part.shape[1:], part.dtype) if len(part) else None) if kind]
        if not kinds:
            return part
        shape, dtype = kinds[0]
        own = np.ascontiguousarray(part.reshape(len(part), *shape), dtype=dtype)
        joined: NDArray[Any] = self.join(torch.from_numpy(own), owners).numpy()
        return joined

    def share_gradients(self, network: nn.Module) -> nn.Module:
        """Return a network whose gradients are the mean over all workers."""
        if self.size == 1:
            return network
        from torch.nn.parallel import DistributedDataParallel

        # Buffers stay as they are. torch 2.15 has another word for it.
        names = inspect.signature(DistributedDataParallel).parameters
        word = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
        options: dict[str, Any] = {word: False}
        return DistributedDataParallel(network, **options)

    # --- running -------------------------------------------------------------------------------------------

    def note(self, stage: str) -> None:
        """Remember what is being done, for the message if a worker is lost."""
        self.bond.stage = stage

    def choose_device(self, device: str) -> str:
        """Return where this worker's backbone computes: of "auto", what every worker has."""
        if self.size == 1 or device == "cpu" or self.has_gpu:
            return device
        if device == "auto":
            return "cpu"
        raise ValueError(
            f'device="{device}" needs a GPU of CUDA for each of the {self.n_local} workers on this machine. '
            'Start as many workers as there are GPUs, or pass device="cpu".'
        )

    @contextlib.contextmanager
    def hold_interrupts(self) -> Iterator[Callable[[bool], bool]]:
        """Let Ctrl-C wait until all workers are at the same place.

        Yields a function to call at such a place, with whether the first worker wants to stop. It tells
        all whether it does, and raises KeyboardInterrupt on all if one of them was interrupted. A second
        Ctrl-C does not wait. Alone, Ctrl-C is as ever.
        """
        if self.size == 1:
            yield lambda wants_stop: wants_stop
            return
        pressed: list[int] = []

        def hold(number: int, frame: Any) -> None:
            if pressed:
                raise KeyboardInterrupt
            pressed.append(number)

        def decide(wants_stop: bool) -> bool:
            votes = self.gather((wants_stop, bool(pressed)))
            if any(is_pressed for _, is_pressed in votes):
                self._raise_shared(KeyboardInterrupt())
            return votes[0][0]

        with handling(signal.SIGINT, signal.default_int_handler, hold):
            yield decide

    def lose(self, why: str) -> WorkerLostError:
        """Return the error to raise when the others are gone."""
        folder = self.bond.checkpoint_dir
        if folder is None:
            advice = (
                "Nothing of the fit was kept: pass checkpoint_dir= and an integer random_state, and it can "
                "go on where it stopped."
            )
        else:
            advice = (
                f'Worker 0 keeps the state after every epoch in checkpoint_dir="{os.fspath(folder)}": '
                "start the same program again, or let torchrun --max-restarts do so, and the fit goes on "
                "from there."
            )
        slow = " If it was only slow, raise timeout= of process_group." if "timed out" in why.lower() else ""
        return WorkerLostError(
            f"Worker {self.rank} of {self.size} lost another one, {self.bond.stage} ({why}). torchrun's "
            f"summary names the one that ended first, and its own output says why.{slow} {advice}"
        )


ALONE = World()


def _try(function: Callable[[], _Value]) -> tuple[_Value | None, Exception | None]:
    try:
        return function(), None
    except WorkerLostError:
        raise
    except Exception as error:
        if is_lost(error):
            raise
        return None, error


def _as_sent(error: Exception | None) -> Exception | None:
    """Return an error as the others can have it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def is_lost(error: BaseException) -> bool:
    """Tell whether an error means that a connection is gone."""
    from torch import distributed

    if isinstance(error, distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def shorten(message: str) -> str:
    """Return what a message of torch says, without its own file and its advice."""
    first = message.strip().splitlines()[0] if message.strip() else "no reason given"
    return re.sub(r"^\[\S*?\.(cc|cpp|h):\d+\]\s*", "", first).split(". ")[0].rstrip(".")


@contextlib.contextmanager
def handling(number: signal.Signals, expected: Any, handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle a signal, where the program does not do so itself; one that ``stays`` is not taken back."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(number) is not expected:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        if not getattr(handler, "stays", False):
            signal.signal(number, expected)


def run_any(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return what a network makes of rows (m, …), which may be none: its gradients are then 0."""
    if len(inputs):
        return network(inputs)
    return network(inputs.new_zeros((1, *inputs.shape[1:])))[:0]
