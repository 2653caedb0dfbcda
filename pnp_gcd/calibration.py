"""Choose geometry, neighbours, threshold and merging from the labelled rows, by hiding some.

Part of the known classes is hidden whole, and part of the rows of the others; a setting is
scored by how well it finds both again. Hiding whole classes is what lets the score see
discovery: a setting that finds no new class at all can still recognise the known ones.

Knows arrays and codes: no torch, no class names, no truth about unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pnp_gcd.clustering import Clustering, cluster_neighbours
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.geometry import Geometry, Reduction, Whitening, fit_geometry
from pnp_gcd.labelling import Grouping, name_groups
from pnp_gcd.matching import count_overlap
from pnp_gcd.merging import LINK_NEIGHBOURS, MergePath, Ownership, count_links, find_merges, own_communities
from pnp_gcd.neighbours import Neighbours, find_neighbours

__all__ = ["Calibration", "GraphSettings", "calibrate", "default_neighbours", "smallest_class"]

_NEIGHBOUR_GRID = (5, 8, 14, 24, 40, 64)
# Neighbours at which communities are small and pure.
_FINE_NEIGHBOURS = 8
# Classes to hide in all, one after another, before a score is trusted; and rounds at most.
_ENOUGH_HIDDEN = 20
_MAX_ROUNDS = 3
# Points of a merge path that are scored.
_N_CUTS = 24
# Part of all edges that a candidate threshold cuts.
_THRESHOLD_QUANTILES = (0.1, 0.25)
# A more complicated setting has to score better by this much.
_MARGIN = 0.01


@dataclass(frozen=True)
class GraphSettings:
    """What decides a neighbour graph, its communities and their merging.

    ``merge_cut`` is in neighbour edges per pair of rows; infinite merges nothing but the
    communities of one known class.
    """

    n_neighbors: int
    similarity_threshold: float = 0.0
    resolution: float = 1.0
    merge_cut: float = float("inf")


@dataclass(frozen=True)
class Calibration:
    """The settings chosen and the evidence for them.

    Attributes
    ----------
    geometry : Geometry
        Fitted on all rows with all labels.
    graph : GraphSettings
    table : list of dict
        A row per setting tried: ``whitening``, ``n_neighbors``, ``similarity_threshold``,
        ``merge_cut``, ``n_communities``, ``n_classes``, ``n_hidden`` (classes hidden),
        ``known`` and ``novel`` (how well visible and hidden classes were found again, 0 to 1)
        and ``score``, their mean.
    """

    geometry: Geometry
    graph: GraphSettings
    table: list[dict[str, Any]] = field(default_factory=list)


class _Hiding(NamedTuple):
    """Labels with some hidden. Classes are renumbered: visible ones first, hidden ones after.

    ``visible`` goes to the method, ``everyone`` and ``held`` (rows not shown) to the score;
    ``order`` gives the original code of each new one.
    """

    visible: NDArray[np.int64]
    everyone: NDArray[np.int64]
    held: NDArray[np.int64]
    n_visible: int
    n_hidden: int
    order: NDArray[np.int64]


class _Trial(NamedTuple):
    """One setting under one hiding, ready to be cut anywhere along its merge path."""

    hiding: _Hiding
    clustering: Clustering
    ownership: Ownership
    path: MergePath


def smallest_class(n_neighbors: int) -> int:
    """Return the size below which a community is no class: the graph's scale is its neighbours'."""
    return max(2, n_neighbors // 4)


def default_neighbours(n_rows: int) -> int:
    """Return the neighbours to use where no label can tell: 15, fewer for very few rows."""
    return max(1, min(15, n_rows // 4, n_rows - 1))


def calibrate(
    reduction: Reduction,
    codes: NDArray[np.int64],
    *,
    n_neighbors: int | None,
    similarity_threshold: float | None,
    resolution: float,
    merge_cut: float | None = None,
    whitenings: Sequence[Whitening] | None,
    seed: int,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
) -> Calibration:
    """Choose what is not given.

    Parameters
    ----------
    reduction : Reduction
        The rows that will be clustered, labelled and unlabelled.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    n_neighbors, similarity_threshold : number or None
        None is chosen here.
    resolution : float
    merge_cut : float or None
        None is chosen here.
    whitenings : sequence or None
        Candidates, simplest first; None for those that the labels allow.
    seed : int
    report : callable
        Called with each row of the table as it is made.
    """
    search = _Search(reduction, codes, n_neighbors, similarity_threshold, resolution, merge_cut, seed, report)
    candidates = list(whitenings) if whitenings is not None else search.possible_whitenings()
    if search.hidings and (codes < 0).any():
        graph, whitening = search.choose(candidates)
    else:
        chosen = n_neighbors or default_neighbours(len(codes))
        cut = float("inf") if merge_cut is None else merge_cut
        graph = GraphSettings(chosen, similarity_threshold or 0.0, resolution, cut)
        whitening = candidates[0]
    return Calibration(fit_geometry(reduction, codes, whitening=whitening), graph, search.table)


class _Search:
    """One neighbour search per geometry, re-sliced for every number of neighbours."""

    def __init__(
        self,
        reduction: Reduction,
        codes: NDArray[np.int64],
        n_neighbors: int | None,
        similarity_threshold: float | None,
        resolution: float,
        merge_cut: float | None,
        seed: int,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self.reduction, self.codes = reduction, codes
        self.threshold, self.resolution, self.seed = similarity_threshold, resolution, seed
        self.merge_cut, self.report = merge_cut, report
        limit = max(2, (len(codes) - 1) // 3)
        grid = [k for k in _NEIGHBOUR_GRID if k <= limit] or [limit]
        self.grid = grid if n_neighbors is None else [n_neighbors]
        self.hidings = _hide_classes(codes, seed)
        self.table: list[dict[str, Any]] = []
        self._known_features: dict[tuple[Whitening, int], tuple[NDArray[np.float32], Neighbours]] = {}
        self.labelled_share = self._labelled_share() if self.hidings and (codes < 0).any() else np.ones(0)

    def possible_whitenings(self) -> list[Whitening]:
        """Return the geometries to compare: label-based ones need classes with pairs of rows."""
        if not self.hidings:
            return ["soft-total"]
        counts = np.bincount(self.codes[self.codes >= 0])
        if (counts >= 4).sum() < 2:
            return ["soft-total", None]
        return ["soft-within", "within", "soft-total"]

    def choose(self, whitenings: list[Whitening]) -> tuple[GraphSettings, Whitening]:
        """Climb along the neighbours in the first geometry, then try others there, then thresholds."""
        threshold = self.threshold or 0.0
        whitening, best = whitenings[0], self._climb(whitenings[0], threshold)
        for other in whitenings[1:]:
            tried = self._score(other, best["n_neighbors"], threshold)
            if tried["score"] > best["score"] + _MARGIN:
                whitening, best = other, tried
        if self.threshold is None:
            edges = self._features(whitening, 0)[1].nearest(best["n_neighbors"]).similarities
            for quantile in _THRESHOLD_QUANTILES:
                threshold = max(0.0, float(np.quantile(edges, quantile)))
                tried = self._score(whitening, best["n_neighbors"], threshold)
                if tried["score"] > best["score"] + _MARGIN:
                    best = tried
        return (
            GraphSettings(
                best["n_neighbors"], best["similarity_threshold"], self.resolution, best["merge_cut"]
            ),
            whitening,
        )

    def _climb(self, whitening: Whitening, threshold: float) -> dict[str, Any]:
        """Return the best row along the grid, stopping two steps past a peak."""
        best, behind = self._score(whitening, self.grid[0], threshold), 0
        for n_neighbors in self.grid[1:]:
            tried = self._score(whitening, n_neighbors, threshold)
            best, behind = (tried, 0) if tried["score"] > best["score"] else (best, behind + 1)
            if behind == 2:
                break
        return best

    def _score(self, whitening: Whitening, n_neighbors: int, threshold: float) -> dict[str, Any]:
        """Score one setting at the best point of its merge path, and note it in the table."""
        row: dict[str, Any] = {
            "whitening": whitening,
            "n_neighbors": n_neighbors,
            "similarity_threshold": threshold,
            "n_hidden": self.hidings[0].n_hidden,
        }
        try:
            trials = [self._try(whitening, n_neighbors, threshold, i) for i in range(len(self.hidings))]
        except EmptyGraphError:
            found = {"merge_cut": np.inf, "n_communities": 0, "n_classes": 0, "known": 0.0, "novel": 0.0}
        else:
            found = self._best_cut(trials, smallest_class(n_neighbors))
        row |= found
        row["score"] = (row["known"] + row["novel"]) / 2
        self.table.append(row)
        self.report(row)
        return row

    def _best_cut(self, trials: list[_Trial], min_size: int) -> dict[str, Any]:
        """Return the lowest merge cut that scores, over all hidings, within a standard error of the best.

        Splitting a class that has no label costs nothing in the score, so that what the labelled
        rows cannot tell apart is decided for fewer classes.
        """
        cuts = _candidate_cuts(trials[0].path) if self.merge_cut is None else [self.merge_cut]
        results = np.mean([[self._judge(trial, cut, min_size) for cut in cuts] for trial in trials], axis=0)
        scores = results[:, :2].mean(axis=1)
        n_held = int((self.codes >= 0).sum())
        doubt = float(np.sqrt(scores.max() * (1 - scores.max()) / n_held))  # one standard error
        chosen = int(np.flatnonzero(scores >= scores.max() - doubt)[-1])
        known, novel, n_classes = (float(v) for v in results[chosen])
        return {
            "merge_cut": cuts[chosen],
            "n_communities": float(np.mean([t.clustering.n_communities for t in trials])),
            "n_classes": n_classes,
            "known": known,
            "novel": novel,
        }

    def _judge(self, trial: _Trial, cut: float, min_size: int) -> tuple[float, float, int]:
        sizes = np.bincount(trial.clustering.labels, minlength=trial.clustering.n_communities)
        grouping = name_groups(
            trial.path.groups_above(cut),
            trial.clustering.labels,
            sizes,
            trial.ownership.owner,
            n_known=trial.hiding.n_visible,
            min_size=min_size,
        )
        known, novel = _found_again(trial.hiding, grouping, self.labelled_share[trial.hiding.order])
        return known, novel, grouping.n_classes

    def _try(self, whitening: Whitening, n_neighbors: int, threshold: float, which: int) -> _Trial:
        hiding = self.hidings[which]
        features, neighbours = self._features(whitening, which)
        clustering = self._cluster(features, neighbours.nearest(n_neighbors), threshold)
        n_communities = clustering.n_communities
        ownership = own_communities(hiding.visible, clustering.labels, hiding.n_visible, n_communities)
        sizes = np.bincount(clustering.labels, minlength=n_communities)
        links = count_links(neighbours, clustering.labels, n_communities)
        return _Trial(hiding, clustering, ownership, find_merges(links, sizes, ownership))

    def _cluster(self, features: NDArray[np.float32], neighbours: Neighbours, threshold: float) -> Clustering:
        return cluster_neighbours(
            features,
            neighbours,
            similarity_threshold=threshold,
            resolution=self.resolution,
            seed=self.seed,
        )

    def _features(self, whitening: Whitening, which: int) -> tuple[NDArray[np.float32], Neighbours]:
        """Return features and neighbours; a geometry never sees the labels it will be scored on."""
        key = (whitening, which if whitening in ("within", "soft-within") else 0)
        if key not in self._known_features:
            geometry = fit_geometry(self.reduction, self.hidings[which].visible, whitening=whitening)
            features = geometry.apply_to_coordinates(self.reduction.coordinates)
            widest = min(max(*self.grid, LINK_NEIGHBOURS), len(features) - 1)
            self._known_features[key] = (features, find_neighbours(features, widest))
        return self._known_features[key]

    def _labelled_share(self) -> NDArray[np.float64]:
        """Return, for each known class, which part of its rows is labelled.

        Read off small and therefore pure communities: a labelled row's neighbours there are
        its class, so the labelled part of its community is that of its class.
        """
        features, neighbours = self._features("soft-total", 0)
        fine = self._cluster(features, neighbours.nearest(_FINE_NEIGHBOURS), 0.0)
        labelled = self.codes >= 0
        sizes = np.bincount(fine.labels, minlength=fine.n_communities)
        share = np.bincount(fine.labels[labelled], minlength=fine.n_communities) / sizes
        seen, codes = share[fine.labels[labelled]], self.codes[labelled]
        return np.array([np.median(seen[codes == code]) for code in range(codes.max() + 1)])


def _candidate_cuts(path: MergePath) -> list[float]:
    """Return no merging at all, and points spread along the path's merges."""
    strength = path.strength[np.isfinite(path.strength)]
    if not len(strength):
        return [float("inf")]
    spread = np.unique(np.linspace(0, len(strength) - 1, _N_CUTS).astype(int))
    return [float("inf"), *(float(v) for v in strength[spread])]


def _hide_classes(codes: NDArray[np.int64], seed: int) -> list[_Hiding]:
    """Hide one half of the classes, then the other; again in other halves where classes are few.

    Half of the rows of visible classes are hidden too.
    """
    n_known = int(codes.max(initial=-1)) + 1
    if n_known < 2:
        return []
    rng = np.random.default_rng(seed)
    hidings = []
    for _ in range(int(np.clip(np.ceil(_ENOUGH_HIDDEN / n_known), 1, _MAX_ROUNDS))):
        order = rng.permutation(n_known)
        halves = (order[: n_known // 2], order[n_known // 2 :])
        hidings += [_hide(codes, np.sort(hidden), n_known, rng) for hidden in halves]
    return hidings


def _hide(
    codes: NDArray[np.int64], hidden: NDArray[np.int64], n_known: int, rng: np.random.Generator
) -> _Hiding:
    shown = np.setdiff1d(np.arange(n_known), hidden)
    order = np.concatenate([shown, hidden])
    renumber = np.empty(n_known, dtype=np.int64)
    renumber[order] = np.arange(n_known)
    everyone = np.where(codes >= 0, renumber[codes], -1)
    # Every second labelled row, in random order, of each visible class stays visible.
    shuffled = rng.permutation(len(codes))
    by_class = shuffled[np.argsort(everyone[shuffled], kind="stable")]
    by_class = by_class[(everyone[by_class] >= 0) & (everyone[by_class] < len(shown))]
    first = np.searchsorted(everyone[by_class], everyone[by_class])
    is_shown = np.zeros(len(codes), dtype=bool)
    is_shown[by_class[(np.arange(len(by_class)) - first) % 2 == 0]] = True
    visible = np.where(is_shown, everyone, -1)
    held = np.where(is_shown, -1, everyone)
    return _Hiding(visible, everyone, held, len(shown), len(hidden), order)


def _found_again(
    hiding: _Hiding, grouping: Grouping, labelled_share: NDArray[np.float64]
) -> tuple[float, float]:
    """Return how well visible and hidden classes were found again: recall times precision.

    The truth is known for labelled rows only, but a class that swallowed unlabelled rows of
    another shows: it has more rows than its labelled ones, divided by the labelled share of
    their classes, account for.
    """
    n_true, n_found = hiding.n_visible + hiding.n_hidden, grouping.n_classes
    n_all = np.bincount(hiding.everyone[hiding.everyone >= 0], minlength=n_true)
    rows = np.bincount(hiding.held[hiding.held >= 0], minlength=n_true)
    # Rows that were shown, to the geometry and as evidence, have no part in the score.
    not_shown = np.maximum(n_all / labelled_share - (n_all - rows), rows)
    held = count_overlap(hiding.held, grouping.rows, n_true, n_found).T
    expected = held * (not_shown / np.maximum(rows, 1))[:, None]
    counted = grouping.rows[(grouping.rows >= 0) & (hiding.visible < 0)]
    sizes = np.bincount(counted, minlength=n_found)
    precision = expected / np.maximum(np.maximum(sizes, expected.sum(axis=0)), 1e-9)
    measure = precision * held / np.maximum(rows, 1)[:, None]
    shown = np.arange(hiding.n_visible)
    known = np.average(measure[shown, shown], weights=rows[shown] + 1e-9)
    new = measure[hiding.n_visible :, hiding.n_visible :]
    pairs = linear_sum_assignment(new, maximize=True)
    gained = np.zeros(hiding.n_hidden)
    gained[pairs[0]] = new[pairs]
    return float(known), float(np.average(gained, weights=rows[hiding.n_visible :]))
