"""Student and teacher probers: an encoder and a memory of prototypes each.

Knows the two networks and their memories: no optimiser, no losses, no files.
"""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pnp_gcd.matching import match_by_similarity

__all__ = ["PotentialPrototypes", "Prober", "Teacher", "make_teacher", "refresh_memory", "update_teacher"]

PotentialPrototypes = Literal["trainable", "frozen"] | None
Teacher = Literal["ema", "epoch"] | None


class Prober(nn.Module):
    """An encoder with a memory of prototypes (the paper's f and m).

    Parameters
    ----------
    encoder : nn.Module
    memory : Tensor of shape (K^t, d)

    Attributes
    ----------
    memory : nn.Parameter of shape (K^t, d)
        Cluster prototypes and potential ones.
    is_active : Tensor of shape (K^t,), bool
        True for rows that stand for a cluster found in this epoch.
    """

    is_active: Tensor

    def __init__(self, encoder: nn.Module, memory: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = nn.Parameter(functional.normalize(memory, dim=1))
        self.register_buffer("is_active", torch.zeros(len(memory), dtype=torch.bool))

    @property
    def n_active(self) -> int:
        """Number of prototypes that stand for a cluster."""
        return int(self.is_active.sum())


def make_teacher(student: Prober) -> Prober:
    """Return a copy of ``student`` that shares no storage with it and takes no gradient."""
    teacher = copy.deepcopy(student)
    teacher.requires_grad_(False)
    return teacher


def refresh_memory(
    student: Prober,
    teacher: Prober | None,
    centroids: NDArray[np.float32],
    *,
    potential_prototypes: PotentialPrototypes,
    spare: NDArray[np.float32],
) -> NDArray[np.int64]:
    """Write cluster prototypes into the memory, and copy it to the teacher.

    A cluster takes the row it had in the epoch before: centroids are matched to all rows of
    the memory by similarity. Rows that no cluster takes are potential prototypes and keep
    what they learnt; without potential prototypes they are dropped.

    Parameters
    ----------
    centroids : ndarray of shape (K^e, d)
    potential_prototypes : {"trainable", "frozen"} or None
    spare : ndarray of shape (m, d)
        Rows to add, so that the memory holds all clusters and its wanted potential rows.

    Returns
    -------
    ndarray of shape (K^t,), int64
        For each row of the new memory the row of the old one it goes on from, −1 if new.
    """
    old = functional.normalize(student.memory.detach(), dim=1)
    origin = np.arange(len(old))
    if len(spare):
        old = torch.cat([old, torch.from_numpy(spare)])
        origin = np.concatenate([origin, np.full(len(spare), -1)])
    row_of = match_by_similarity(old.numpy(), centroids)
    memory = old.clone()
    memory[row_of] = torch.from_numpy(centroids)
    active = torch.zeros(len(memory), dtype=torch.bool)
    active[row_of] = True
    if potential_prototypes is None:
        kept = active.nonzero()[:, 0]
        memory, active, origin = memory[kept], active[kept], origin[kept.numpy()]
    for prober in (student, teacher):
        if prober is not None:
            _write_memory(prober, memory, active)
    return origin


def _write_memory(prober: Prober, memory: Tensor, active: Tensor) -> None:
    if prober.memory.shape == memory.shape:
        prober.memory.data.copy_(memory)
    else:
        prober.memory = nn.Parameter(memory.clone(), requires_grad=prober.memory.requires_grad)
    prober.is_active = active.clone()


@torch.no_grad()
def update_teacher(teacher: Prober, student: Prober, momentum: float) -> None:
    """Move the teacher, encoder and memory, towards the student: Θ_t ← ω·Θ_t + (1−ω)·Θ."""
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.lerp_(fast, 1.0 - momentum)
