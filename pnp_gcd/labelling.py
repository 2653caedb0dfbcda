"""Turn communities into classes: prototypes, and the class each stands for.

Evidence comes from the labelled rows alone. Knows features, codes and communities: no class
names, no torch, no truth about unlabelled rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.clustering import Clustering, mean_directions
from pnp_gcd.merging import MergePath, count_links, find_merges, own_communities
from pnp_gcd.neighbours import Neighbours

__all__ = [
    "Grouping",
    "Labelling",
    "classify_rows",
    "group_communities",
    "label_groups",
    "name_groups",
    "score_classes",
    "vote_for_communities",
]

# Rows scored at once; bounds memory.
_BLOCK_ROWS = 4096
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


class Labelling(NamedTuple):
    """Prototypes and the class each stands for.

    Attributes
    ----------
    prototypes : ndarray of shape (P, d), float32
        Unit-length rows; a class may have several.
    classes : ndarray of shape (P,), int64
        0 … n_known − 1 are the known classes, n_known … n_classes − 1 the new ones.
    n_known, n_classes : int
    """

    prototypes: NDArray[np.float32]
    classes: NDArray[np.int64]
    n_known: int
    n_classes: int


def score_classes(
    features: NDArray[np.float32], labelling: Labelling, temperature: float
) -> NDArray[np.float64]:
    """Return log-scores (n, n_classes): log Σ exp(cosine / temperature) over each class's prototypes.

    Their softmax is the paper's p^s, summed over the prototypes of a class.
    """
    # Double precision, so that a row's scores do not depend on its place among the rows.
    logits = features.astype(np.float64) @ labelling.prototypes.T.astype(np.float64) / temperature
    top = logits.max(axis=1, keepdims=True)
    order = np.argsort(labelling.classes, kind="stable")  # every class has a prototype
    starts = np.searchsorted(labelling.classes[order], np.arange(labelling.n_classes))
    sums = np.add.reduceat(np.exp(logits - top)[:, order], starts, axis=1)
    # 1e-300 keeps a class that is infinitely far away finite.
    out: NDArray[np.float64] = np.log(sums + 1e-300) + top
    return out


def classify_rows(
    features: NDArray[np.float32], labelling: Labelling, temperature: float
) -> NDArray[np.int64]:
    """Return the most probable class of each row."""
    found = np.empty(len(features), dtype=np.int64)
    for start in range(0, len(features), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        found[block] = score_classes(features[block], labelling, temperature).argmax(axis=1)
    return found


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
    codes: NDArray[np.int64],
    homes: NDArray[np.int64],
    clustered: NDArray[np.bool_],
    neighbours: Neighbours,
    *,
    n_known: int,
    cut: float,
    min_size: int = 2,
    n_clusters: int | None = None,
    at_most: int | None = None,
) -> Grouping:
    """Merge communities into classes and tell known from new.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    homes : ndarray of shape (n,)
        Community of each row, −1 for a row that belongs to none.
    clustered : ndarray of shape (n,), bool
        Rows that were clustered; others voted for a near community, or for none.
    neighbours : Neighbours
        Of the clustered rows.
    n_known : int
    cut : float
        Communities merge while they have at least this many neighbour edges per pair of rows.
    min_size : int
        Smaller groups without an owner are no class.
    n_clusters : int or None
        If given, merging stops earlier or later than ``cut`` says, to come as near as it can to
        this number of classes, and no more than this are kept.
    at_most : int or None
        If given and ``cut`` would leave more classes than this, merging goes on.
    """
    n_communities = int(homes.max()) + 1
    at_home = homes >= 0
    sizes = np.bincount(homes[at_home], minlength=n_communities)
    ownership = own_communities(codes[at_home], homes[at_home], n_known, n_communities)
    path = find_merges(count_links(neighbours, homes[clustered], n_communities), sizes, ownership)
    n_merges = path.merges_above(cut)
    if n_clusters is not None:
        n_merges = _merges_for(path, n_merges, sizes, ownership.owner, min_size, n_clusters - n_known)
    elif at_most is not None:
        enough = _merges_for(path, n_merges, sizes, ownership.owner, min_size, at_most - n_known)
        n_merges = max(n_merges, enough)
    group = path.groups_after(n_merges)
    if not n_known and not len(_new_groups(group, sizes, ownership.owner, min_size)):
        min_size = 1  # without known classes something has to be a class
    max_new = None if n_clusters is None else n_clusters - n_known
    return name_groups(
        group, homes, sizes, ownership.owner, n_known=n_known, min_size=min_size, max_new=max_new
    )


def _merges_for(
    path: MergePath,
    n_merges: int,
    sizes: NDArray[np.int64],
    owner: NDArray[np.int64],
    min_size: int,
    n_new: int,
) -> int:
    """Return the merges, nearest to ``n_merges``, that leave ``n_new`` new classes; else the best count.

    Merges that the labels ask for are never undone.
    """
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
    n_forced = int(np.isinf(path.strength).sum())
    gap = np.abs(np.array(counts[n_forced:]) - n_new)
    nearest = np.flatnonzero(gap == gap.min()) + n_forced
    return int(nearest[np.abs(nearest - n_merges).argmin()])


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


def label_groups(
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    grouping: Grouping,
    homes: NDArray[np.int64],
    *,
    n_known: int,
    n_clusters: int | None = None,
    temperature: float = 0.1,
) -> Labelling:
    """Give each class its prototypes: its mean direction and those of its communities.

    Labelled rows speak for the mean of a known class. New classes that win no row are
    dropped, unless ``n_clusters`` asks for an exact number; the rest are numbered by size.
    """
    rows = np.where(codes >= 0, codes, grouping.rows)
    in_class = (rows >= 0) & (homes >= 0)
    labelled = codes >= 0
    speaks = labelled | (rows >= n_known)
    means = mean_directions(features[speaks], rows[speaks], grouping.n_classes)
    # A community that is split between classes speaks for each with its rows of that class.
    pairs, piece = np.unique(np.column_stack([homes[in_class], rows[in_class]]), axis=0, return_inverse=True)
    pieces = mean_directions(features[in_class], piece.ravel(), len(pairs))
    several = np.bincount(pairs[:, 1], minlength=grouping.n_classes)[pairs[:, 1]] > 1
    labelling = Labelling(
        np.concatenate([means, pieces[several]]),
        np.concatenate([np.arange(grouping.n_classes), pairs[several, 1]]),
        n_known,
        grouping.n_classes,
    )
    if n_clusters is not None and labelling.n_classes < n_clusters:
        labelling = _add_classes(features[~labelled], labelling, n_clusters)
    return _order_by_size(features[~labelled], labelling, temperature, keep_all=n_clusters is not None)


def _add_classes(features: NDArray[np.float32], labelling: Labelling, n_clusters: int) -> Labelling:
    """Start new classes from the rows least like any prototype, until there are ``n_clusters``."""
    prototypes = labelling.prototypes
    best = (features @ prototypes.T).max(axis=1) if len(prototypes) else np.full(len(features), -1.0)
    for _ in range(n_clusters - labelling.n_classes):
        farthest = int(best.argmin())
        prototypes = np.concatenate([prototypes, features[farthest][None]])
        best = np.maximum(best, features @ features[farthest])
    added = np.arange(labelling.n_classes, n_clusters)
    return Labelling(prototypes, np.concatenate([labelling.classes, added]), labelling.n_known, n_clusters)


def _order_by_size(
    features: NDArray[np.float32], labelling: Labelling, temperature: float, *, keep_all: bool
) -> Labelling:
    """Renumber new classes by the unlabelled rows they win, largest first; drop those that win none."""
    n_known, n_classes = labelling.n_known, labelling.n_classes
    if n_classes == n_known:
        return labelling
    won = np.bincount(classify_rows(features, labelling, temperature), minlength=n_classes)[n_known:]
    order = np.lexsort((np.arange(len(won)), -won))
    if not keep_all:
        order = order[won[order] > 0]
    rank = np.full(n_classes, -1, dtype=np.int64)
    rank[:n_known] = np.arange(n_known)
    rank[n_known + order] = n_known + np.arange(len(order))
    classes = rank[labelling.classes]
    kept = classes >= 0
    return Labelling(labelling.prototypes[kept], classes[kept], n_known, n_known + len(order))
