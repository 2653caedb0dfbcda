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
from pnp_gcd.neighbours import find_nearest

__all__ = [
    "PotentialPrototypes",
    "Prober",
    "Teacher",
    "count_taken",
    "make_teacher",
    "refresh_memory",
    "update_teacher",
    "write_memory",
]

# A cluster of this cosine with one of the epoch before is that cluster.
_SAME_CLUSTER = 0.5
# Rows, as a part of what a cluster's prototype has, at which a potential one may stand for a class.
_TAKEN_PART = 0.5

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

    A cluster takes the row it had in the epoch before: centroids are matched by similarity to the
    rows that were clusters, and those left over to potential ones. Rows that no cluster takes are
    potential prototypes and keep what they learnt; without potential prototypes they are dropped.

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
    old = functional.normalize(student.memory.detach(), dim=1).cpu()
    origin = np.arange(len(old))
    if len(spare):
        old = torch.cat([old, torch.from_numpy(spare)])
        origin = np.concatenate([origin, np.full(len(spare), -1)])
    was_active = np.zeros(len(old), dtype=bool)
    was_active[: len(student.is_active)] = student.is_active.cpu().numpy()
    row_of = _match_rows(old.numpy(), was_active, centroids)
    # A row that becomes another cluster than it was, or first becomes one, starts afresh.
    goes_on = np.einsum("ij,ij->i", old.numpy()[row_of], centroids) >= _SAME_CLUSTER
    origin[row_of[~(was_active[row_of] & goes_on)]] = -1
    memory = old.clone()
    memory[row_of] = torch.from_numpy(centroids)
    active = torch.zeros(len(memory), dtype=torch.bool)
    active[row_of] = True
    if potential_prototypes is None:
        kept = active.nonzero()[:, 0]
        memory, active, origin = memory[kept], active[kept], origin[kept.numpy()]
    for prober in (student, teacher):
        if prober is not None:
            write_memory(prober, memory, active)
    return origin


def _match_rows(
    old: NDArray[np.float32], was_active: NDArray[np.bool_], centroids: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return the memory row of each centroid: the cluster it was, else a potential row, else any left."""
    row_of = np.full(len(centroids), -1, dtype=np.int64)
    is_free = np.ones(len(old), dtype=bool)
    for candidates, gate in ((was_active, _SAME_CLUSTER), (~was_active, -1.0), (is_free, -1.0)):
        left, rows = np.flatnonzero(row_of < 0), np.flatnonzero(candidates & is_free)
        found = match_by_similarity(old[rows], centroids[left], min_similarity=gate)
        row_of[left[found >= 0]] = rows[found[found >= 0]]
        is_free[row_of[row_of >= 0]] = False
    return row_of


def write_memory(prober: Prober, memory: Tensor, active: Tensor) -> None:
    """Write a memory and which of its rows are clusters; of another size, the memory is a new parameter."""
    if prober.memory.shape == memory.shape:
        prober.memory.data.copy_(memory)
    else:
        device = prober.memory.device
        prober.memory = nn.Parameter(memory.clone().to(device), requires_grad=prober.memory.requires_grad)
    prober.is_active = active.clone().to(prober.memory.device)


def count_taken(prober: Prober, features: NDArray[np.float32]) -> int:
    """Return how many potential prototypes took members: classes that clustering may have missed.

    A row of ``features`` (n, d) goes to the nearest prototype, cluster or potential. A potential one
    counts if it gets at least half of what clusters get in the median.
    """
    is_active = prober.is_active.cpu().numpy()
    if is_active.all() or not is_active.any():
        return 0
    memory = functional.normalize(prober.memory.detach(), dim=1).cpu().numpy()
    nearest = find_nearest(features, memory, 1).indices[:, 0]  # in blocks: rows times prototypes are many
    sizes = np.bincount(nearest, minlength=len(memory))
    least = max(_TAKEN_PART * float(np.median(sizes[is_active])), 1.0)
    return int((sizes[~is_active] >= least).sum())


@torch.no_grad()
def update_teacher(teacher: Prober, student: Prober, momentum: float) -> None:
    """Move the teacher, encoder and memory, towards the student: Θ_t ← ω·Θ_t + (1−ω)·Θ."""
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.lerp_(fast, 1.0 - momentum)
