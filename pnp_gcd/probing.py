"""Probe: find the classes in the features as they are now.

Communities of the neighbour graph, merged into classes, refined row by row. Knows features, codes
and settings: no torch, no class names, no truth about unlabelled rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.clustering import GraphSettings
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.grouping import (
    Communities,
    Grouping,
    find_communities,
    group_communities,
    make_finer,
    n_searched,
    smallest_class,
)
from pnp_gcd.merging import ClassSizes
from pnp_gcd.neighbours import find_neighbours
from pnp_gcd.refinement import refine_rows

__all__ = ["Probe", "ProbeSettings", "probe_classes"]


@dataclass(frozen=True)
class ProbeSettings:
    """How to find classes.

    Attributes
    ----------
    graph : GraphSettings
    n_classes : int or None
        How many classes to merge communities into, known ones included.
    interval : tuple of int or None
        Lowest and highest number of classes instead, if classes lie wholly apart at one between them.
    usual : ClassSizes or None
        How many rows a class usually has.
    is_balanced : bool
        Whether groups are balanced by that.
    merge_cut : float
        Without ``n_classes``, neighbour edges per pair of rows that communities of one class have.
    cluster_on : {"all", "unlabelled"}
    temperature : float
        Of the softmax over class means.
    cut_part : float or None
        Part of the edges that the threshold is to cut, in these features; None keeps the graph's threshold.
    may_drop_threshold : bool
        Whether to go without the threshold where it leaves no edge at all.
    may_make_finer : bool
        Whether to lower the resolution where there are too few communities to merge.
    """

    graph: GraphSettings
    n_classes: int | None = None
    interval: tuple[int, int] | None = None
    usual: ClassSizes | None = None
    is_balanced: bool = False
    merge_cut: float = float("inf")
    cluster_on: Literal["all", "unlabelled"] = "all"
    temperature: float = 0.1
    cut_part: float | None = None
    may_drop_threshold: bool = True
    may_make_finer: bool = False


class Probe(NamedTuple):
    """Classes found.

    Attributes
    ----------
    grouping : Grouping
    homes : ndarray of shape (n,), int64
        Community of each row, −1 for none.
    n_communities : int
    recall : float
        Part of the true neighbours that the search found, on a sample.
    """

    grouping: Grouping
    homes: NDArray[np.int64]
    n_communities: int
    recall: float = 1.0


def probe_classes(
    features: NDArray[np.float32], codes: NDArray[np.int64], settings: ProbeSettings, *, seed: int
) -> Probe:
    """Find the classes of ``features`` (n, d).

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    settings : ProbeSettings
    seed : int
        Seeds Infomap's search.
    """
    n_known = int(codes.max(initial=-1)) + 1
    clustered = np.ones(len(features), dtype=bool)
    if settings.cluster_on == "unlabelled" and (codes < 0).sum() > 1:  # one row alone has no neighbours
        clustered = codes < 0
    graph = replace(settings.graph, n_neighbors=min(settings.graph.n_neighbors, int(clustered.sum()) - 1))
    communities = _find(features, codes, replace(settings, graph=graph), clustered, seed)
    least = smallest_class(graph.n_neighbors)
    if settings.usual is not None:
        least = max(least, int(settings.usual.smallest))
    grouping = group_communities(
        communities,
        n_known=n_known,
        min_size=least,
        n_classes=settings.n_classes,
        interval=settings.interval,
        cut=settings.merge_cut,
        usual=settings.usual if settings.is_balanced else None,
    )
    rows = grouping.rows.copy()
    rows[clustered] = refine_rows(
        features[clustered],
        communities.neighbours,
        codes[clustered],
        grouping.rows[clustered],
        grouping.n_classes,
        temperature=settings.temperature,
        known_sizes=None if settings.usual is None else settings.usual.known,
    )
    return Probe(
        Grouping(rows, grouping.n_classes),
        communities.homes,
        communities.path.n_communities,
        communities.neighbours.recall,
    )


def _find(
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    settings: ProbeSettings,
    clustered: NDArray[np.bool_],
    seed: int,
) -> Communities:
    """Find communities; finer ones, or without the threshold, where that is needed and allowed."""
    graph = settings.graph
    neighbours = find_neighbours(features[clustered], n_searched(graph.n_neighbors, int(clustered.sum())))
    if settings.cut_part is not None:  # similarities change as features do
        graph = replace(
            graph, similarity_threshold=neighbours.nearest(graph.n_neighbors).cut_at(settings.cut_part)
        )

    def find(graph: GraphSettings) -> Communities:
        return find_communities(
            features,
            codes,
            graph,
            n_known=int(codes.max(initial=-1)) + 1,
            seed=seed,
            usual=settings.usual,
            clustered=clustered,
            neighbours=neighbours,
        )

    try:
        if settings.may_make_finer and settings.n_classes is not None:
            return make_finer(find, graph, settings.n_classes)[1]
        return find(graph)
    except EmptyGraphError:
        if not settings.may_drop_threshold:
            raise
    return find(replace(graph, similarity_threshold=0.0))
