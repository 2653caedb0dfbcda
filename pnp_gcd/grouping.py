"""Find communities, merge them into classes, and tell known from new.

Evidence comes from the labelled rows and the neighbour graph. Knows features, codes and
communities: no class names, no torch, no truth about unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.balancing import balance_groups
from pnp_gcd.clustering import Clustering, GraphSettings, cluster_neighbours
from pnp_gcd.merging import (
    FAR_LINK_NEIGHBOURS,
    LINK_NEIGHBOURS,
    ClassSizes,
    MergePath,
    Ownership,
    count_links,
    find_merges,
    own_communities,
)
from pnp_gcd.neighbours import Neighbours, find_neighbours
from pnp_gcd.parting import part_communities

__all__ = [
    "Communities",
    "Grouping",
    "find_communities",
    "group_communities",
    "make_finer",
    "n_searched",
    "name_groups",
    "smallest_class",
    "vote_for_communities",
]

# Communities per class that merging starts from, and parts of the resolution to get them by.
_COMMUNITIES_PER_CLASS = 3.0
_FINER = (1.0, 0.7, 0.5)
# Below this resolution communities fall to single rows.
_FINEST = 0.35
# Classes lie apart if at most this part of all edges joins two of them.
_FEW_EDGES = 1e-3
# Part of a community's own rows that the distance gate would turn away.
_FARTHEST_PART = 0.05


class Grouping(NamedTuple):
    """Communities merged into classes.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        Class of each row's community: 0 … n_known − 1 known, from n_known on new (largest
        first), −1 where the community is too small to be a class.
    n_classes : int
        Known classes, found or not, and new ones.
    """

    rows: NDArray[np.int64]
    n_classes: int


class Communities(NamedTuple):
    """Communities and all ways to merge them.

    Attributes
    ----------
    homes : ndarray of shape (n,), int64
        Community of each row, −1 for a row that belongs to none.
    neighbours : Neighbours
        Of the rows that were clustered.
    clustered : ndarray of shape (n,), bool
        Those rows; others voted for a near community, or for none.
    ownership : Ownership
    path : MergePath
    """

    homes: NDArray[np.int64]
    neighbours: Neighbours
    clustered: NDArray[np.bool_]
    ownership: Ownership
    path: MergePath

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each community."""
        return np.bincount(self.homes[self.homes >= 0], minlength=self.path.n_communities)

    def count_far_links(self) -> NDArray[np.float64]:
        """Return a symmetric (K, K) count of edges to near and farther neighbours between communities."""
        homes = self.homes[self.clustered]
        return count_links(self.neighbours, homes, self.path.n_communities, n_neighbors=FAR_LINK_NEIGHBOURS)


def smallest_class(n_neighbors: int) -> int:
    """Return the size below which a community is no class: the graph's scale is its neighbours'."""
    return max(2, n_neighbors // 4)


def n_searched(n_neighbors: int, n_rows: int) -> int:
    """Return how many neighbours to search for: enough for the graph and for links between communities."""
    return min(max(n_neighbors, FAR_LINK_NEIGHBOURS), n_rows - 1)


def find_communities(
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    settings: GraphSettings,
    *,
    n_known: int,
    seed: int,
    usual: ClassSizes | None = None,
    clustered: NDArray[np.bool_] | None = None,
    neighbours: Neighbours | None = None,
) -> Communities:
    """Cluster rows and read the labels: which communities are known, which may merge.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    settings : GraphSettings
    n_known : int
    seed : int
    usual : ClassSizes or None
        How many rows a class usually has, if that is known.
    clustered : ndarray of shape (n,), bool, or None
        Rows to cluster; None for all. Others vote for a near community.
    neighbours : Neighbours or None
        Of the clustered rows, if they are already known.
    """
    clustered = np.ones(len(features), dtype=bool) if clustered is None else clustered
    members = features[clustered]
    if neighbours is None:
        neighbours = find_neighbours(members, n_searched(settings.n_neighbors, len(members)))
    clustering = cluster_neighbours(members, neighbours, settings, seed=seed)
    labels = clustering.labels
    if usual is not None:
        labels = part_communities(members, labels, codes[clustered], usual)
    homes = np.empty(len(features), dtype=np.int64)
    homes[clustered] = labels
    if not clustered.all():
        homes[~clustered] = vote_for_communities(features[~clustered], clustering, members)
    at_home = homes >= 0
    n_communities = int(labels.max(initial=-1)) + 1
    ownership = own_communities(codes[at_home], homes[at_home], n_known, n_communities, usual=usual)
    sizes = np.bincount(homes[at_home], minlength=n_communities)
    links = count_links(neighbours, labels, n_communities)
    path = find_merges(links, sizes, ownership, usual=usual)
    return Communities(homes, neighbours, clustered, ownership, path)


def make_finer(
    find: Callable[[GraphSettings], Communities], graph: GraphSettings, n_classes: float
) -> tuple[GraphSettings, Communities]:
    """Lower the resolution, down to a limit, until there are communities enough for ``n_classes``.

    A class that shares its community with another cannot be told from it by merging.
    """
    for factor in _FINER:
        if factor < 1.0 and graph.resolution * factor < _FINEST:
            break
        finer = replace(graph, resolution=graph.resolution * factor)
        found = find(finer)
        if found.path.n_communities >= _COMMUNITIES_PER_CLASS * n_classes:
            break
    return finer, found


def vote_for_communities(
    features: NDArray[np.float32], clustering: Clustering, members: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return the nearest community of each row of ``features``, −1 where even that one is too far.

    The distance gate: a row has to be as near to the centroid as all but the farthest twentieth of
    the community's own ``members`` are. A known class that the pool does not hold then claims no
    community.
    """
    own = np.einsum("ij,ij->i", members, clustering.centroids[clustering.labels])
    gate = np.array(
        [np.quantile(own[clustering.labels == i], _FARTHEST_PART) for i in range(clustering.n_communities)]
    )
    cosines = features @ clustering.centroids.T
    nearest = cosines.argmax(axis=1)
    is_near = cosines[np.arange(len(features)), nearest] >= gate[nearest]
    return np.where(is_near, nearest, -1)


def group_communities(
    communities: Communities,
    *,
    n_known: int,
    min_size: int,
    n_classes: int | None = None,
    interval: tuple[int, int] | None = None,
    cut: float = float("inf"),
    usual: ClassSizes | None = None,
) -> Grouping:
    """Merge communities into classes and tell known from new.

    Parameters
    ----------
    communities : Communities
    n_known : int
    min_size : int
        Smaller groups without an owner are no class.
    n_classes : int or None
        Merging goes on until as near as it can to this number of classes, and no more are kept.
    interval : tuple of int or None
        Lowest and highest number of classes: the one between them at which no edge joins two classes any
        more is taken instead, if there is one.
    cut : float
        Without ``n_classes``, communities merge while they have at least this many neighbour edges
        per pair of rows; infinite merges nothing but the communities of one known class.
    usual : ClassSizes or None
        With ``n_classes``, how many rows classes have: groups are balanced by it once they are merged.
    """
    path, owner, sizes = communities.path, communities.ownership.owner, communities.sizes
    n_merges = path.merges_above(cut)
    if n_classes is None:
        usual = None
    else:
        counts = _count_new(path, sizes, owner, min_size)
        n_merges = _merges_for(path, n_merges, counts, n_classes - n_known)
        n_last = n_known + int(counts[-1])
        # What merging all that is linked leaves; of a wide interval no less than half the number counted.
        is_plausible = interval is not None and max(interval[0], n_classes / 2) <= n_last <= interval[1]
        if is_plausible and _fall_apart(communities):
            n_merges, n_classes, usual = len(path.kept), n_last, None
    if usual is None:
        group = path.groups_after(n_merges)
    else:
        links, ownership = communities.count_far_links(), communities.ownership
        group = balance_groups(path, n_merges, links, sizes, ownership, usual, min_size=min_size)
    if not n_known and not len(_new_groups(group, sizes, owner, min_size)):
        min_size = 1  # without known classes something has to be a class
    max_new = None if n_classes is None else n_classes - n_known
    return name_groups(
        group, communities.homes, sizes, owner, n_known=n_known, min_size=min_size, max_new=max_new
    )


def _count_new(
    path: MergePath, sizes: NDArray[np.int64], owner: NDArray[np.int64], min_size: int
) -> NDArray[np.int64]:
    """Return the number of new classes (m + 1,) before and after every merge."""
    total, is_owned = sizes.astype(np.int64), owner >= 0
    alive = np.ones(len(sizes), dtype=bool)
    count = int((~is_owned & (total >= min_size)).sum())
    counts = [count]
    for kept, dropped in zip(path.kept, path.dropped, strict=True):
        before = [alive[i] and not is_owned[i] and total[i] >= min_size for i in (kept, dropped)]
        total[kept] += total[dropped]
        is_owned[kept] |= is_owned[dropped]
        alive[dropped] = False
        count += int(not is_owned[kept] and total[kept] >= min_size) - int(sum(before))
        counts.append(count)
    return np.array(counts, dtype=np.int64)


def _merges_for(path: MergePath, n_merges: int, counts: NDArray[np.int64], n_new: int) -> int:
    """Return the merges, nearest to ``n_merges``, that leave ``n_new`` new classes; else the best count.

    Merges that the labels ask for are never undone. Pieces first grow to the size of a class, and their
    number with them: it is the fall after that which counts.
    """
    n_forced = int(np.isinf(path.strength).sum())
    start = n_forced + int(counts[n_forced:].argmax())
    gap = np.abs(counts[start:] - n_new)
    nearest = np.flatnonzero(gap == gap.min()) + start
    return int(nearest[np.abs(nearest - n_merges).argmin()])


def _fall_apart(communities: Communities) -> bool:
    """Tell whether, with all merges made, hardly any edge leads from one group to another."""
    path = communities.path
    group = path.groups_after(len(path.kept))[communities.homes[communities.clustered]]
    near = communities.neighbours.nearest(LINK_NEIGHBOURS).indices
    return bool((group[near] != group[:, None]).mean() <= _FEW_EDGES)


def _new_groups(
    group: NDArray[np.int64], sizes: NDArray[np.int64], owner: NDArray[np.int64], min_size: int
) -> NDArray[np.int64]:
    """Return the groups that are new classes, largest first."""
    n_communities = len(group)
    total = np.bincount(group, weights=sizes, minlength=n_communities)
    owned = np.zeros(n_communities, dtype=bool)
    owned[group[owner >= 0]] = True
    new = np.flatnonzero(~owned & (total >= min_size))
    out: NDArray[np.int64] = new[np.lexsort((new, -total[new]))]
    return out


def name_groups(
    group: NDArray[np.int64],
    homes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    owner: NDArray[np.int64],
    *,
    n_known: int,
    min_size: int,
    max_new: int | None = None,
) -> Grouping:
    """Give groups numbers: a known class its code, new ones from ``n_known`` on, the largest first.

    ``max_new`` keeps no more new ones than that.
    """
    new = _new_groups(group, sizes, owner, min_size)[:max_new]
    named = np.full(len(group), -1, dtype=np.int64)
    owned = owner >= 0
    named[group[owned]] = owner[owned]
    named[new] = n_known + np.arange(len(new))
    return Grouping(np.where(homes >= 0, named[group][homes], -1), n_known + len(new))
