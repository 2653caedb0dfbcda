"""Merge communities that are pieces of one class.

Infomap cuts a class into pieces when the graph is fine. Pieces of one class stay linked by
many neighbour edges per pair of rows; how many is enough is learnt elsewhere, from known
classes. Knows communities, edges and owners (known-class codes): no features, no torch, no
class names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pnp_gcd.matching import count_overlap, match_by_overlap
from pnp_gcd.neighbours import Neighbours

__all__ = [
    "FAR_LINK_NEIGHBOURS",
    "LINK_NEIGHBOURS",
    "ClassSizes",
    "MergePath",
    "Ownership",
    "count_links",
    "find_merges",
    "own_communities",
]

# Edges of a row that count as links between communities.
LINK_NEIGHBOURS = 20
# So many, where pieces of one class that lie apart shall still be linked.
FAR_LINK_NEIGHBOURS = 40
# A community is a known class's if its labelled share is at least this part of the usual one.
_SHARE_GATE = 0.45
# A community is surely new if a known class would show so few labels less often than this.
_SURELY_NEW = 0.05
# Logarithm of the factor by which classes of one size may seem to differ in it.
_LEAST_WIDTH = 0.3
# Groups smaller than usual by more widths than this are leftovers, not classes.
_N_WIDTHS = 3.0


class Ownership(NamedTuple):
    """What the labelled rows say about each community.

    Attributes
    ----------
    owner : ndarray of shape (K,), int64
        Known class that the community belongs to, −1 for none.
    is_new : ndarray of shape (K,), bool
        True where a known class would almost surely have shown more labels. A community
        with neither an owner nor this mark is too small to tell.
    """

    owner: NDArray[np.int64]
    is_new: NDArray[np.bool_]


class ClassSizes(NamedTuple):
    """How many rows a class usually has.

    Attributes
    ----------
    mean, spread : float
        Mean and standard deviation of the logarithm of a class's rows.
    shift : float
        By how much the mean of new classes may differ from that.
    known : ndarray of shape (n_known,)
        Rows of each known class, labelled or not.
    """

    mean: float
    spread: float
    shift: float
    known: NDArray[np.float64]

    @property
    def width(self) -> float:
        """Logarithm of the factor by which a group may differ from the usual size without surprise."""
        return float(np.hypot(2.0 * np.hypot(self.spread, self.shift), _LEAST_WIDTH))

    @property
    def smallest(self) -> float:
        """Rows below which a group is hardly a class."""
        return float(np.exp(self.mean - _N_WIDTHS * self.width))

    def allow(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 for groups of usual size or below, and less the larger a group is beyond that."""
        beyond = np.maximum(np.log(np.maximum(sizes, 1.0)) - self.mean, 0.0) / self.width
        out: NDArray[np.float64] = np.exp(-0.5 * beyond**2)
        return out


class MergePath(NamedTuple):
    """Merges in the order they are made, best linked first.

    Attributes
    ----------
    n_communities : int
    kept, dropped : ndarray of shape (m,), int64
        The community that takes over, and the one that ends.
    strength : ndarray of shape (m,), float64
        Neighbour edges per pair of rows between the two, less where both together are larger
        than a class usually is; infinite for merges that the labels ask for.
    """

    n_communities: int
    kept: NDArray[np.int64]
    dropped: NDArray[np.int64]
    strength: NDArray[np.float64]

    def groups_above(self, cut: float) -> NDArray[np.int64]:
        """Return the group (one of its communities) of each community, merging while strength ≥ cut."""
        return self.groups_after(self.merges_above(cut))

    def merges_above(self, cut: float) -> int:
        """Return how many merges come before the first that is weaker than ``cut``."""
        below = np.flatnonzero(self.strength < cut)
        return int(below[0]) if len(below) else len(self.strength)

    def groups_after(self, n_merges: int) -> NDArray[np.int64]:
        """Return the group of each community after the first ``n_merges`` merges."""
        group = np.arange(self.n_communities)
        # Backwards, the community that takes over already points to where it ends up itself.
        for kept, dropped in zip(self.kept[:n_merges][::-1], self.dropped[:n_merges][::-1], strict=True):
            group[dropped] = group[kept]
        return group


def own_communities(
    codes: NDArray[np.int64],
    homes: NDArray[np.int64],
    n_known: int,
    n_communities: int,
    *,
    usual: ClassSizes | None = None,
) -> Ownership:
    """Read the labelled rows: which communities belong to known classes, which to none.

    Each known class is matched with one community by its labelled rows (Hungarian). The
    labelled share there tells what share to expect of the class; a further community with
    about that share belongs to the class most of its labels name.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    homes : ndarray of shape (n,)
        Community of each row.
    usual : ClassSizes or None
        How many rows classes have, if that is known.
    """
    labelled = codes >= 0
    evidence = count_overlap(codes[labelled], homes[labelled], n_known, n_communities)
    matched = match_by_overlap(codes[labelled], homes[labelled], n_known, n_communities)
    if not (matched >= 0).any():
        return Ownership(np.full(n_communities, -1, dtype=np.int64), np.ones(n_communities, dtype=bool))
    sizes = np.bincount(homes, minlength=n_communities)
    n_labels = evidence.sum(axis=1)
    share = _expected_share(evidence, matched, sizes)
    # The match decides unless most of the community's labels name another class.
    agreed = (matched >= 0) & (2 * evidence[np.arange(n_communities), matched] >= n_labels)
    owner = np.where(agreed, matched, evidence.argmax(axis=1))
    owner[n_labels < _SHARE_GATE * share[owner] * sizes] = -1
    owner[n_labels == 0] = -1
    # The most sparsely labelled class decides what could still be a known one.
    least = share.min()
    if usual is not None:
        n_labelled = np.bincount(codes[labelled], minlength=n_known)
        least = min(least, (n_labelled / usual.known)[n_labelled > 0].min())
    is_new = (owner < 0) & (binom.cdf(n_labels, sizes, least) < _SURELY_NEW)
    return Ownership(owner.astype(np.int64), is_new)


def _expected_share(
    evidence: NDArray[np.int64], matched: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return which part of its rows each known class shows labelled in the community it was matched with.

    No more than the share of all matched communities together: a small one may be labelled by luck.
    """
    at = np.flatnonzero(matched >= 0)
    together = evidence[at].sum() / max(sizes[at].sum(), 1)
    share = np.full(evidence.shape[1], together)
    share[matched[at]] = np.minimum(evidence[at, matched[at]] / np.maximum(sizes[at], 1), together)
    return share


def count_links(
    neighbours: Neighbours,
    homes: NDArray[np.int64],
    n_communities: int,
    *,
    n_neighbors: int = LINK_NEIGHBOURS,
) -> NDArray[np.float64]:
    """Return a symmetric (K, K) count of neighbour edges between communities."""
    targets = neighbours.nearest(n_neighbors).indices
    sources = np.repeat(homes, targets.shape[1])
    cells = sources * n_communities + homes[targets.ravel()]
    links = np.bincount(cells, minlength=n_communities**2).reshape(n_communities, n_communities)
    return (links + links.T).astype(np.float64)


def find_merges(
    links: NDArray[np.float64],
    sizes: NDArray[np.int64],
    ownership: Ownership,
    *,
    usual: ClassSizes | None = None,
    n_left: int = 1,
) -> MergePath:
    """Order the merges: communities of one known class first, then by links per pair of rows.

    Communities of different known classes never meet, nor does a surely new one meet a known
    class. Two that together are much larger than a class is usually (``usual``) merge late. Ends when
    ``n_left`` groups are left or no pair may merge.
    """
    links, totals = links.copy(), sizes.astype(np.float64)
    kept, dropped = _join_owned(links, totals, ownership.owner)
    strength = [np.inf] * len(kept)
    state = _Groups(links, totals, ownership, usual, np.array(dropped, dtype=np.int64))
    while state.n_left > n_left:
        into, gone, how_strong = state.best_pair()
        if how_strong <= 0:
            break
        state.merge(into, gone)
        kept.append(into)
        dropped.append(gone)
        strength.append(how_strong)
    return MergePath(
        len(sizes),
        np.array(kept, dtype=np.int64),
        np.array(dropped, dtype=np.int64),
        np.array(strength, dtype=np.float64),
    )


def _join_owned(
    links: NDArray[np.float64], sizes: NDArray[np.float64], owner: NDArray[np.int64]
) -> tuple[list[int], list[int]]:
    """Add the communities of each known class to its largest one, in place; return the merges."""
    kept: list[int] = []
    dropped: list[int] = []
    for code in np.unique(owner[owner >= 0]):
        pieces = np.flatnonzero(owner == code)
        first = pieces[sizes[pieces].argmax()]
        rest = pieces[pieces != first]
        links[first] += links[rest].sum(axis=0)
        links[:, first] += links[:, rest].sum(axis=1)
        sizes[first] += sizes[rest].sum()
        kept += [int(first)] * len(rest)
        dropped += rest.tolist()
    return kept, dropped


class _Groups:
    """Average-link agglomeration with a cached best partner per group."""

    def __init__(
        self,
        links: NDArray[np.float64],
        sizes: NDArray[np.float64],
        ownership: Ownership,
        usual: ClassSizes | None,
        gone: NDArray[np.int64],
    ) -> None:
        self.links, self.sizes, self.usual = links, np.maximum(sizes, 1.0), usual
        self.owner, self.is_new = ownership.owner.copy(), ownership.is_new.copy()
        self.alive = np.ones(len(sizes), dtype=bool)
        self.alive[gone] = False
        self.partner = np.zeros(len(sizes), dtype=np.int64)
        self.best = np.full(len(sizes), -np.inf)
        for group in np.flatnonzero(self.alive):
            self._refresh(int(group))

    @property
    def n_left(self) -> int:
        return int(self.alive.sum())

    def best_pair(self) -> tuple[int, int, float]:
        first = int(np.where(self.alive, self.best, -np.inf).argmax())
        second = int(self.partner[first])
        into, gone = (first, second) if self.sizes[first] >= self.sizes[second] else (second, first)
        return into, gone, float(self.best[first])

    def merge(self, into: int, gone: int) -> None:
        self.links[into] += self.links[gone]
        self.links[:, into] += self.links[:, gone]
        self.sizes[into] += self.sizes[gone]
        self.owner[into] = max(self.owner[into], self.owner[gone])
        self.is_new[into] |= self.is_new[gone]
        self.alive[gone] = False
        self.best[gone] = -np.inf
        touched = self.alive & ((self.partner == into) | (self.partner == gone))
        touched[into] = True
        for group in np.flatnonzero(touched):
            self._refresh(int(group))
        gained = self.strengths(into)
        better = self.alive & (gained > self.best)
        better[into] = False
        self.best[better], self.partner[better] = gained[better], into

    def strengths(self, group: int) -> NDArray[np.float64]:
        """Return how strongly ``group`` may merge with each other one; −inf where it may not."""
        strength = self.links[group] / (self.sizes[group] * self.sizes)
        if self.usual is not None:
            strength *= self.usual.allow(self.sizes[group] + self.sizes)
        owner, is_new = self.owner[group], self.is_new[group]
        if owner >= 0:
            strength[(self.owner >= 0) & (self.owner != owner)] = -np.inf
            strength[self.is_new] = -np.inf
        elif is_new:
            strength[self.owner >= 0] = -np.inf
        strength[~self.alive] = -np.inf
        strength[group] = -np.inf
        return strength

    def _refresh(self, group: int) -> None:
        strength = self.strengths(group)
        self.partner[group] = int(strength.argmax())
        self.best[group] = strength[self.partner[group]]
