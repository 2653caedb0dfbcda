"""Learning rate, teacher momentum and teacher temperature as functions of progress.

Knows numbers only: no torch, no optimiser, no loop. Progress is the share of the run that is done, from 0 to
1, so every horizon follows the run's own length.
"""

from __future__ import annotations

import math

__all__ = ["cosine_learning_rate", "teacher_momentum", "teacher_temperature"]


def cosine_learning_rate(progress: float, *, start: float, final_fraction: float = 1e-3) -> float:
    """Let the learning rate fall along half a cosine.

    Parameters
    ----------
    progress : float, in [0, 1]
        Share of the run that is done.
    start : float
        Learning rate at progress 0.
    final_fraction : float, default=1e-3
        Learning rate at progress 1, as a fraction of ``start``.

    Returns
    -------
    float

    """
    return _cosine_between(start, start * final_fraction, progress)


def teacher_momentum(progress: float, *, low: float, high: float) -> float:
    """Share of the teacher that survives one update, rising along half a cosine.

    ω(t) = ω_max − (1 − ω_min)·(cos(πt) + 1)/2, the paper's formula with its bracket put right. It ends at
    ω_max but starts at ω_max − (1 − ω_min), which is ω_min only if ω_max = 1: the paper's 0.7 and 0.99 give
    0.69 at t = 0 and 0.99 at t = 1. Where the formula falls below 0, the momentum is 0.

    Parameters
    ----------
    progress : float, in [0, 1]
        Share of the run that is done, t.
    low : float
        The paper's ω_min; ``0 <= low <= high``.
    high : float
        The paper's ω_max; ``high <= 1``.

    Returns
    -------
    float
        In [0, ``high``].

    """
    if not 0 <= low <= high <= 1:
        raise ValueError(f"teacher momentum low={low}, high={high} must satisfy 0 <= low <= high <= 1.")
    return max(0.0, high - (1 - low) * _falling_cosine(progress))


def teacher_temperature(
    epoch: float, n_epochs: int, *, start: float, end: float, warmup_fraction: float = 0.15
) -> float:
    """Move the teacher's temperature along half a cosine during the warm-up, then hold it.

    Parameters
    ----------
    epoch : float
        Epochs done, from 0; may be fractional.
    n_epochs : int
        Length of the run in epochs.
    start : float
        Temperature at epoch 0.
    end : float
        Temperature from epoch ``warmup_fraction * n_epochs`` on.
    warmup_fraction : float, default=0.15
        Share of the run given to the warm-up, in [0, 1]; the paper takes 30 epochs of 200. With 0 the
        temperature is ``end`` throughout.

    Returns
    -------
    float

    """
    if not 0 <= warmup_fraction <= 1:
        raise ValueError(f"warmup_fraction={warmup_fraction} must lie in [0, 1].")
    if epoch < 0:
        raise ValueError(f"epoch={epoch} must be at least 0.")
    warmup = warmup_fraction * n_epochs
    if epoch >= warmup:
        return end
    return _cosine_between(start, end, epoch / warmup)


def _cosine_between(start: float, end: float, progress: float) -> float:
    """Go from ``start`` at progress 0 to ``end`` at progress 1 along half a cosine."""
    return end + (start - end) * _falling_cosine(progress)


def _falling_cosine(progress: float) -> float:
    """Half a cosine from 1 at progress 0 to 0 at progress 1."""
    if not 0 <= progress <= 1:
        raise ValueError(f"progress={progress} must lie in [0, 1].")
    return (math.cos(math.pi * progress) + 1) / 2
