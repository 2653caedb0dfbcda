"""Choose geometry, graph and number of classes from the labelled rows, by hiding some.

Every setting is tried with known classes hidden, counts the classes it would report, and is
scored by how well the rows held back were found again at that count. Knows arrays and codes: no
torch, no class names, no truth about unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.clustering import EdgeWeights, GraphSettings
from pnp_gcd.counting import (
    ClassCount,
    CountingTrial,
    combine_counts,
    count_by_size,
    count_new_classes,
)
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.geometry import Geometry, Reduction, Whitening, fit_geometry
from pnp_gcd.grouping import (
    Communities,
    find_communities,
    group_communities,
    make_finer,
    n_searched,
    smallest_class,
)
from pnp_gcd.hiding import FoundAgain, Hiding, hide_classes, hold_back_halves, score_found
from pnp_gcd.merging import ClassSizes
from pnp_gcd.neighbours import Neighbours, find_neighbours
from pnp_gcd.refinement import refine_rows
from pnp_gcd.sizing import (
    N_LOOKED_AT,
    LabelMixture,
    LookingKnown,
    describe_sizes,
    estimate_sizes,
    expect_known_part,
    look_known,
    read_labels,
    split_shares,
)

__all__ = ["Calibration", "Request", "calibrate", "default_neighbours", "find_edge"]

# Numbers of neighbours to climb along, from the second one on.
_NEIGHBOUR_GRID = (5, 8, 14, 24, 40)
_FIRST = 1
# Part of all edges that a candidate threshold cuts, and candidate resolutions.
_CUT_PART = 0.15
_RESOLUTIONS = (0.7, 1.4)
# Rows up to which thresholds and resolutions are compared: they seldom win, and of many rows each takes long.
_FEW_ROWS = 5000
# Labelled rows, beyond one a class, per column from which on directions can be weighed one by one.
_ROWS_PER_COLUMN = 0.75
# Labelled neighbours of labelled rows from which on sizes of classes are read off them.
_FEWEST_SEEN = 10
# Unlabelled rows, and rows held back, that are asked how known they look.
_MAX_ASKED = 1500
# Known classes from which on one hiding is enough to compare settings.
_MANY_CLASSES = 30
# A setting has to score better by this much than one that was tried before it: so much differs by chance.
_MARGIN = 0.05
# Balanced groups are of the same communities, so that less of a difference is chance.
_BALANCE_MARGIN = 0.003


@dataclass(frozen=True)
class Request:
    """What is asked for; None is chosen here.

    The names are those of :class:`~pnp_gcd.PNPDiscoverer`; ``whitenings`` are candidates,
    simplest first.
    """

    n_neighbors: int | None = None
    similarity_threshold: float | None = None
    resolution: float | None = None
    edge_weights: EdgeWeights = "shared"
    whitenings: Sequence[Whitening] | None = None
    temperature: float = 0.1

    def first_graph(self, n_neighbors: int) -> GraphSettings:
        """Return what is asked for, else all edges at the plain resolution."""
        return GraphSettings(
            n_neighbors, self.similarity_threshold or 0.0, self.resolution or 1.0, self.edge_weights
        )


@dataclass(frozen=True)
class Calibration:
    """The settings chosen and the evidence for them.

    Attributes
    ----------
    geometry : Geometry
        Fitted on all rows with all labels.
    graph : GraphSettings
    count : ClassCount or None
        New classes; None where no label can tell.
    usual : ClassSizes or None
        How many rows a class has, by the known ones.
    cut_part : float or None
        Part of the edges that the threshold chosen cuts; None if it cuts none, or was asked for.
    is_balanced : bool
        Whether hidden classes were found better with groups balanced by their sizes.
    accuracy : float or None
        Part of unlabelled rows expected to get their class, None where nothing could be hidden.
    table : list of dict
        A row per setting tried: ``whitening``, ``n_neighbors``, ``similarity_threshold``,
        ``resolution``, ``is_balanced``, ``n_communities``, ``n_classes`` (the number it would report),
        ``n_hidden`` (classes hidden), ``known`` and ``novel`` (how well visible and hidden
        classes were found again, 0 to 1), ``score``, their mean, and ``recall``, the part of the
        true neighbours that were found, on a sample of the rows.
    """

    geometry: Geometry
    graph: GraphSettings
    count: ClassCount | None = None
    usual: ClassSizes | None = None
    cut_part: float | None = None
    is_balanced: bool = False
    accuracy: float | None = None
    table: list[dict[str, Any]] = field(default_factory=list)


class _Setting(NamedTuple):
    whitening: Whitening
    graph: GraphSettings
    is_balanced: bool = False

    @property
    def unbalanced(self) -> _Setting:
        """The same communities, merged and left as they are."""
        return self._replace(is_balanced=False)


class _Result(NamedTuple):
    setting: _Setting
    score: float
    counted: ClassCount
    found: list[FoundAgain]
    n_communities: float


def find_edge(calibration: Calibration) -> Literal["smallest", "largest"] | None:
    """Tell whether more or fewer neighbours were better up to the end of what is tried."""
    tried, chosen = {row["n_neighbors"] for row in calibration.table}, calibration.graph.n_neighbors
    if len(tried) < 2 or chosen not in (_NEIGHBOUR_GRID[0], _NEIGHBOUR_GRID[-1]):
        return None
    return "smallest" if chosen == _NEIGHBOUR_GRID[0] else "largest"


def default_neighbours(n_rows: int) -> int:
    """Return the neighbours to use where no label can tell: 15, fewer for very few rows."""
    return max(1, min(15, n_rows // 4, n_rows - 1))


def calibrate(
    reduction: Reduction,
    codes: NDArray[np.int64],
    request: Request,
    *,
    seed: int,
    report: Callable[[dict[str, Any]], object] = lambda row: None,
) -> Calibration:
    """Choose what is not asked for.

    Parameters
    ----------
    reduction : Reduction
        The rows that will be clustered, labelled and unlabelled.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    request : Request
    seed : int
    report : callable
        Called with each row of the table as it is made.
    """
    hidings = hide_classes(codes, seed) if (codes < 0).any() else []
    if not hidings:
        return _without_hiding(reduction, codes, request)
    whitenings = request.whitenings or _possible_whitenings(codes, reduction.coordinates.shape[1])
    search = _Search(reduction, codes, request, hidings, whitenings[0], seed, report)
    best = search.confirm(search.choose(whitenings))
    whitening, graph, is_balanced = best.setting
    geometry = fit_geometry(reduction, codes, whitening=whitening)
    return Calibration(
        geometry,
        graph,
        best.counted,
        search.usual,
        cut_part=_CUT_PART if request.similarity_threshold is None and graph.similarity_threshold else None,
        is_balanced=is_balanced,
        accuracy=search.expected_accuracy(best),
        table=search.table,
    )


def _without_hiding(reduction: Reduction, codes: NDArray[np.int64], request: Request) -> Calibration:
    """Settle for defaults; one known class still tells how many rows a class has."""
    whitening: Whitening = request.whitenings[0] if request.whitenings else "soft-total"
    graph = request.first_graph(request.n_neighbors or default_neighbours(len(codes)))
    geometry = fit_geometry(reduction, codes, whitening=whitening)
    count = usual = None
    n_known = int(codes.max(initial=-1)) + 1
    if n_known and (codes < 0).any():
        features = geometry.apply_to_coordinates(reduction.coordinates)
        neighbours = find_neighbours(features, n_searched(1, len(features)))
        mixture = read_labels(neighbours, codes, n_known)
        count = count_by_size(mixture)
        usual = describe_sizes(mixture, estimate_sizes(mixture, count.n_new))
    return Calibration(geometry, graph, count, usual)


def _possible_whitenings(codes: NDArray[np.int64], width: int) -> list[Whitening]:
    """Return the geometries to compare: label-based ones need pairs of rows, and one of them many."""
    sizes = np.bincount(codes[codes >= 0])
    if (sizes >= 4).sum() < 2:
        return ["soft-total", None]
    if (sizes - 1).sum() < _ROWS_PER_COLUMN * width:
        return ["soft-within", "within", "soft-total"]
    return ["discriminant", "soft-within", "soft-total"]


def _expect_known_rows(
    reduction: Reduction, codes: NDArray[np.int64], mixture: LabelMixture, whitening: Whitening, seed: int
) -> float | None:
    """Return how many unlabelled rows are of known classes, by labels held back and a sample of the rows."""
    rng, unlabelled = np.random.default_rng(seed), np.flatnonzero(codes < 0)
    sample = rng.permutation(unlabelled)[:_MAX_ASKED]
    stands_for = estimate_sizes(mixture, count_by_size(mixture).n_new) - mixture.n_labelled
    looks = []
    for hiding in hold_back_halves(codes, seed):
        held = rng.permutation(np.flatnonzero(hiding.held >= 0))[:_MAX_ASKED]
        own = hiding.held[held]
        weights = stands_for[own] / np.bincount(own, minlength=len(stands_for))[own]
        geometry = fit_geometry(reduction, hiding.visible, whitening=whitening)
        features = geometry.apply_to_coordinates(reduction.coordinates)
        asked = np.concatenate([held, sample])
        neighbours = find_neighbours(features, min(N_LOOKED_AT, len(features) - 1), asked)
        scores = look_known(neighbours, hiding.visible)
        looks.append(LookingKnown(scores[: len(held)], scores[len(held) :], weights))
    part = expect_known_part(looks)
    return None if part is None else part * len(unlabelled)


class _Search:
    """One neighbour search per geometry, re-sliced for every number of neighbours."""

    def __init__(
        self,
        reduction: Reduction,
        codes: NDArray[np.int64],
        request: Request,
        hidings: list[Hiding],
        first: Whitening,
        seed: int,
        report: Callable[[dict[str, Any]], object],
    ) -> None:
        self.reduction, self.codes, self.request, self.seed = reduction, codes, request, seed
        self.hidings, self.report = hidings, report
        self.n_known = int(codes.max()) + 1
        self.n_compared = 1 if self.n_known >= _MANY_CLASSES else 2
        limit = max(2, (len(codes) - 1) // 3)
        self.grid = [k for k in _NEIGHBOUR_GRID if k <= limit] or [limit]
        if request.n_neighbors is not None:
            self.grid = [request.n_neighbors]
        self.table: list[dict[str, Any]] = []
        self._seen: dict[tuple[Whitening, int], tuple[NDArray[np.float32], Neighbours]] = {}
        self._found: dict[tuple[_Setting, int], Communities] = {}
        seen = read_labels(self._features("soft-total", 0)[1], codes, self.n_known)
        n_expected = _expect_known_rows(reduction, codes, seen, first, seed)
        self.mixture: LabelMixture = seen._replace(n_expected=n_expected)
        self.by_size = count_by_size(self.mixture)
        sizes = estimate_sizes(self.mixture, self.by_size.n_new)
        # Of so few labelled neighbours no size can be read.
        tells_sizes = self.mixture.n_seen >= _FEWEST_SEEN
        self.usual = describe_sizes(self.mixture, sizes) if tells_sizes else None

    def choose(self, whitenings: Sequence[Whitening]) -> _Setting:
        """Climb along the neighbours in the first geometry, then try other geometries and graphs there."""
        first = self.request.first_graph(self.grid[min(_FIRST, len(self.grid) - 1)])
        best = self._climb(self._make_finer(_Setting(whitenings[0], first)))
        for whitening in whitenings[1:]:
            best = self._better(best, best.setting._replace(whitening=whitening))
        for graph in self._other_graphs(best.setting):
            best = self._better(best, _Setting(best.setting.whitening, graph))
        return best.setting

    def confirm(self, setting: _Setting) -> _Result:
        """Try the chosen setting with every hiding: its count is the one reported.

        And once more with groups balanced, of the same communities.
        """
        plain = self._weigh(setting, len(self.hidings))
        if self.usual is None or not plain.found:
            return self._note(plain)
        balanced = self._weigh(setting._replace(is_balanced=True), len(self.hidings), plain.counted)
        is_better = balanced.score > plain.score + _BALANCE_MARGIN
        other, chosen = (plain, balanced) if is_better else (balanced, plain)
        self._note(other)
        return self._note(chosen)  # the last row of the table

    def expected_accuracy(self, result: _Result) -> float | None:
        """Return the part of unlabelled rows expected to get their class, None where no trial had an edge."""
        if not result.found:
            return None
        n_labelled = np.bincount(self.codes[self.codes >= 0], minlength=self.n_known)
        n_known_rows = (n_labelled / split_shares(self.mixture, result.counted.n_new) - n_labelled).sum()
        part = float(np.clip(n_known_rows / (self.codes < 0).sum(), 0.0, 1.0))
        known = np.mean([found.known_accuracy for found in result.found])
        novel = np.mean([found.novel_accuracy for found in result.found])
        return float(part * known + (1.0 - part) * novel)

    def _make_finer(self, setting: _Setting) -> _Setting:
        """Lower the resolution, unless it was asked for, until there are communities enough to merge."""
        if self.request.resolution is not None or self.usual is None:
            return setting
        try:
            graph, _ = make_finer(
                lambda graph: self._communities(setting._replace(graph=graph), 0),
                setting.graph,
                self.n_known + self.by_size.n_new,
            )
        except EmptyGraphError:
            return setting
        return setting._replace(graph=graph)

    def _climb(self, start: _Setting) -> _Result:
        """Return the best result along the grid, going up from ``start`` or, if that is worse, down."""
        best = self._try(start, self.n_compared)
        at = self.grid.index(start.graph.n_neighbors)
        for path in (self.grid[at + 1 :], self.grid[:at][::-1]):
            for n_neighbors in path:
                setting = start._replace(graph=replace(start.graph, n_neighbors=n_neighbors))
                better = self._better(best, setting)
                if better is best:
                    break
                best = better
            if best.setting != start:
                break
        return best

    def _other_graphs(self, setting: _Setting) -> list[GraphSettings]:
        graphs: list[GraphSettings] = []
        if len(self.codes) > _FEW_ROWS:
            return graphs
        if self.request.similarity_threshold is None:
            edges = self._features(setting.whitening, 0)[1].nearest(setting.graph.n_neighbors)
            graphs.append(replace(setting.graph, similarity_threshold=edges.cut_at(_CUT_PART)))
        if self.request.resolution is None:
            base = setting.graph.resolution
            graphs += [replace(setting.graph, resolution=base * factor) for factor in _RESOLUTIONS]
        return graphs

    def _better(self, best: _Result, setting: _Setting) -> _Result:
        tried = self._try(setting, self.n_compared)
        return tried if tried.score > best.score + _MARGIN else best

    def _try(self, setting: _Setting, n_hidings: int) -> _Result:
        """Count and score one setting over some hidings, and note it in the table."""
        return self._note(self._weigh(setting, n_hidings))

    def _weigh(self, setting: _Setting, n_hidings: int, counted: ClassCount | None = None) -> _Result:
        """Count, unless that was done, and score one setting over some hidings."""
        try:
            communities = [self._communities(setting, which) for which in range(n_hidings)]
        except EmptyGraphError:
            return _Result(setting, 0.0, ClassCount(0.0, 0.0), [], 0.0)
        min_size = smallest_class(setting.graph.n_neighbors)
        count = self._count(communities, min_size) if counted is None else counted
        share = split_shares(self.mixture, count.n_new)
        n_classes = self.n_known + round(count.n_new)
        found = [
            self._judge(setting, which, communities[which], n_classes, min_size, share)
            for which in range(n_hidings)
        ]
        score = float(np.mean([judged.score for judged in found]))
        n_communities = float(np.mean([c.path.n_communities for c in communities]))
        return _Result(setting, score, count, found, n_communities)

    def _count(self, communities: list[Communities], min_size: int) -> ClassCount:
        """Count the new classes, by hidden ones and by sizes."""
        trials = [
            CountingTrial(hiding, found.homes, found.ownership, found.path)
            for hiding, found in zip(self.hidings, communities, strict=False)
        ]
        by_hiding = count_new_classes(trials, self.mixture, min_size=min_size)
        return by_hiding if self.usual is None else combine_counts(by_hiding, self.by_size)

    def _judge(
        self,
        setting: _Setting,
        which: int,
        communities: Communities,
        n_classes: int,
        min_size: int,
        share: NDArray[np.float64],
    ) -> FoundAgain:
        hiding, (features, neighbours) = self.hidings[which], self._features(setting.whitening, which)
        usual = self._usual_of(hiding)
        grouping = group_communities(
            communities,
            n_known=hiding.n_visible,
            min_size=min_size,
            n_classes=n_classes,
            usual=usual if setting.is_balanced else None,
        )
        rows = refine_rows(
            features,
            neighbours,
            hiding.visible,
            grouping.rows,
            grouping.n_classes,
            temperature=self.request.temperature,
            known_sizes=None if usual is None else usual.known,
            n_rounds=1,  # enough to compare settings
        )
        return score_found(hiding, rows, grouping.n_classes, share[hiding.order])

    def _note(self, result: _Result) -> _Result:
        whitening, graph, is_balanced = result.setting
        found = result.found
        row = {
            "whitening": whitening,
            "n_neighbors": graph.n_neighbors,
            "similarity_threshold": graph.similarity_threshold,
            "resolution": graph.resolution,
            "is_balanced": is_balanced,
            "n_communities": result.n_communities,
            "n_classes": self.n_known + round(result.counted.n_new),
            "n_hidden": self.hidings[0].n_hidden,
            "known": float(np.mean([judged.known for judged in found])) if found else 0.0,
            "novel": float(np.mean([judged.novel for judged in found])) if found else 0.0,
            "score": result.score,
            "recall": self._features(whitening, 0)[1].recall,
        }
        self.table.append(row)
        self.report(row)
        return result

    def _communities(self, setting: _Setting, which: int) -> Communities:
        key = (setting.unbalanced, which)
        if key not in self._found:
            self._found[key] = self._find(setting, which)
        return self._found[key]

    def _find(self, setting: _Setting, which: int) -> Communities:
        hiding, (features, neighbours) = self.hidings[which], self._features(setting.whitening, which)
        return find_communities(
            features,
            hiding.visible,
            setting.graph,
            n_known=hiding.n_visible,
            seed=self.seed,
            usual=self._usual_of(hiding),
            neighbours=neighbours,
        )

    def _usual_of(self, hiding: Hiding) -> ClassSizes | None:
        """Return how many rows a class has, of known ones those that stay visible."""
        if self.usual is None:
            return None
        return self.usual._replace(known=self.usual.known[hiding.order[: hiding.n_visible]])

    def _features(self, whitening: Whitening, which: int) -> tuple[NDArray[np.float32], Neighbours]:
        """Return features and neighbours; a geometry never sees the labels it will be scored on."""
        key = (whitening, which if whitening in ("discriminant", "within", "soft-within") else 0)
        if key not in self._seen:
            geometry = fit_geometry(self.reduction, self.hidings[which].visible, whitening=whitening)
            features = geometry.apply_to_coordinates(self.reduction.coordinates)
            self._seen[key] = (features, find_neighbours(features, n_searched(max(self.grid), len(features))))
        return self._seen[key]
