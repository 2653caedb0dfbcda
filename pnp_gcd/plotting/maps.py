"""Draw rows on a plane, coloured by class.

Knows places and labels: not how rows are laid out, which is ``projection``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import ClassRows, open_estimator, read_classes
from pnp_gcd.projection import project_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Annotation

__all__ = ["DiscoveryMapDisplay"]

_MARKERS = {True: "o", False: "^"}
# Classes beyond the named ones: shades of one colour for known and one for novel, for neighbours to differ.
_OTHER_SHADES = {
    True: ("#8fa3b8", "#b3c0cd", "#a1b6c4", "#c3cad2"),
    False: ("#d9b38c", "#e8cfae", "#d6bfa3", "#ecdcc4"),
}
# Rows of a class that say where it is densest, and how far they see on a map from −1 to 1.
_N_FOR_CENTRE = 400
_SIGHT = 0.2
# A class that spreads less than this would be hidden by its name, which stands above it.
_SMALL = 0.05


class DiscoveryMapDisplay:
    """Rows on a plane, coloured by class: circles for known classes, triangles for novel ones.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    places : ndarray of shape (n_rows, 2)
        Where rows lie, as of :func:`~pnp_gcd.projection.project_rows`; rows that are NaN are not drawn.
    labels : array-like of shape (n_rows,)
        Their classes. −1, "-1", None and NaN mark rows without class, drawn as grey crosses.
    known_classes : array-like of shape (n_known,)
        Every other class is novel.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib PathCollection
        "known", "novel" and, where there are any, "none": the rows, in the order of ``places``.
    text_ : dict of class to matplotlib Annotation
        The names written on the map: those of the classes of the legend, where they fit.
    legend_ : matplotlib Legend or None

    See Also
    --------
    pnp_gcd.projection.project_rows : Lays rows out on a plane.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.plotting import DiscoveryMapDisplay
    >>> features = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
    >>> labels = np.repeat(["cat", "dog", "novel_0"], 20)
    >>> display = DiscoveryMapDisplay.from_predictions(features, labels, known_classes=["cat", "dog"])
    >>> {kind: len(points.get_offsets()) for kind, points in display.points_.items()}
    {'known': 40, 'novel': 20}
    """

    ax_: Axes
    figure_: Figure
    points_: dict[str, PathCollection]
    text_: dict[Any, Annotation]
    legend_: Legend | None

    def __init__(self, places: NDArray[np.floating], labels: ArrayLike, *, known_classes: ArrayLike) -> None:
        self.places = places
        self.labels = labels
        self.known_classes = known_classes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_landmarks: int = 3000,
        random_state: int | np.random.RandomState | None = 0,
        max_named: int = 12,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> DiscoveryMapDisplay:
        """Draw rows where their learnt features put them, coloured by the class predicted.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_rows, n_features), or images
        n_landmarks, random_state
            As for :func:`~pnp_gcd.projection.project_rows`.
        max_named, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        DiscoveryMapDisplay
        """
        canvas.check_drawing()
        model, _ = fitted = open_estimator(estimator, "inspect")
        seen = model.inspect(fitted.prepare(X))
        is_read = np.isfinite(seen.probabilities).all(axis=1)
        labels = model.classes_[seen.probabilities[is_read].argmax(axis=1)]
        places = project_rows(seen.features[is_read], n_landmarks=n_landmarks, random_state=random_state)
        display = cls(places, labels, known_classes=model.known_classes_)
        return display.plot(max_named=max_named, ax=ax, legend_kw=legend_kw, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        features: ArrayLike,
        y_pred: ArrayLike,
        *,
        known_classes: ArrayLike,
        n_landmarks: int = 3000,
        random_state: int | np.random.RandomState | None = 0,
        max_named: int = 12,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> DiscoveryMapDisplay:
        """Draw rows where their features put them, coloured by any labels, for example the truth.

        Parameters
        ----------
        features : array-like of shape (n_rows, n_features)
            As of ``transform``.
        y_pred : array-like of shape (n_rows,)
        known_classes : array-like of shape (n_known,)
        n_landmarks, random_state
            As for :func:`~pnp_gcd.projection.project_rows`.
        max_named, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        DiscoveryMapDisplay
        """
        canvas.check_drawing()
        if len(np.asarray(features)) != len(np.asarray(y_pred)):
            raise ValueError(
                f"features has {len(np.asarray(features))} rows but y_pred has {len(np.asarray(y_pred))}. "
                "Pass one label per row."
            )
        places = project_rows(features, n_landmarks=n_landmarks, random_state=random_state)
        display = cls(places, y_pred, known_classes=known_classes)
        return display.plot(max_named=max_named, ax=ax, legend_kw=legend_kw, **kwargs)

    def plot(
        self,
        *,
        max_named: int = 12,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> DiscoveryMapDisplay:
        """Draw the map.

        Parameters
        ----------
        max_named : int, default=12
            Classes with a colour and a name of their own, 0 to 12. If there are more classes, the largest
            known and the largest novel ones are named, and the others drawn in pale shades.
        ax : matplotlib Axes or None, default=None
            Where to draw; None opens a new figure.
        legend_kw : dict or None, default=None
            Passed to the axes' ``legend``, which is right of the axes: leave room for it, for example by
            a figure with ``layout="constrained"``.
        **kwargs
            Passed to the axes' ``scatter``, such as ``s`` or ``alpha``.

        Returns
        -------
        DiscoveryMapDisplay
        """
        if not 0 <= max_named <= len(canvas.CLASS_COLOURS):
            raise ValueError(
                f"max_named={max_named!r} must be from 0 to {len(canvas.CLASS_COLOURS)}: more colours "
                "cannot be told apart."
            )
        rows = read_classes(self.labels, self.known_classes, name="labels")
        look = _choose_look(rows, max_named)
        self.ax_ = canvas.open_axes(ax, (8.2, 6.0))
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self._scatter(rows, look, kwargs)
        self.ax_.set(xticks=[], yticks=[])
        self.ax_.set_aspect("equal", anchor="NE")  # shrinks away from the legend, which has its room then
        self.ax_.spines[:].set_visible(False)
        handles, names, headings = _list_legend(rows, look)
        self.legend_ = None
        if handles:
            self.legend_ = canvas.put_legend(self.ax_, handles, names, headings=headings, **(legend_kw or {}))
        self._write_names(rows, look)
        return self

    def _scatter(self, rows: ClassRows, look: _Look, kwargs: dict[str, Any]) -> None:
        """Draw known rows, novel ones upon them, and rows of named classes upon all others."""
        box = self.ax_.get_window_extent()
        room = (min(box.width, box.height) / self.figure_.dpi / 5.0) ** 2
        size = room * float(np.clip(40_000 / max(1, len(rows.codes)), 5.0, 36.0))
        is_known = np.append(rows.is_known, False)[rows.codes]
        colours = np.array([*look.colours, canvas.GREY])[rows.codes]
        self.points_ = {}
        for kind, is_drawn, marker, scale in (
            ("known", (rows.codes >= 0) & is_known, _MARKERS[True], 1.0),
            ("novel", (rows.codes >= 0) & ~is_known, _MARKERS[False], 1.2),
            ("none", rows.codes < 0, "x", 0.8),
        ):
            if kind == "none" and not is_drawn.any():
                continue
            style: dict[str, Any] = {
                "c": colours[is_drawn],
                "s": scale * size,
                "marker": marker,
                "linewidth": 0.8 if kind == "none" else 0.25,
                "zorder": 2.0,
            }
            if kind != "none":
                style["edgecolors"] = "white"
            self.points_[kind] = self.ax_.scatter(
                *self.places[is_drawn].T, **canvas.merge_style(style, kwargs)
            )

    def _write_names(self, rows: ClassRows, look: _Look) -> None:
        """Write the name of each named class where it is densest, largest first, where there is room."""
        self.text_ = {}
        self.ax_.apply_aspect()  # for names to be measured where they will be
        taken: list[Any] = []
        for code in sorted(look.named, key=lambda code: -rows.sizes[code]):
            here = self.places[(rows.codes == code) & np.isfinite(self.places).all(axis=1)]
            if not len(here):
                continue
            (x, y), spread = _find_centre(here)
            is_small = spread < _SMALL
            text = self.ax_.annotate(
                canvas.show_name(rows.classes[code], 16),
                (x, y + 1.5 * spread * is_small),
                (0, 5 * is_small),
                textcoords="offset points",
                ha="center",
                va="bottom" if is_small else "center",
                fontsize=10,
                fontweight="bold",
                color=canvas.INK,
                zorder=4,
            )
            canvas.outline(text)
            box = text.get_window_extent().padded(2)
            if any(box.overlaps(other) for other in taken):
                text.remove()
                continue
            taken.append(box)
            self.text_[rows.classes[code]] = text


class _Look(NamedTuple):
    """The colour of each class, and the codes of those with a name of their own."""

    colours: list[str]
    named: list[int]


def _choose_look(rows: ClassRows, max_named: int) -> _Look:
    """Give the largest classes colours of their own, known and novel ones alike, the others pale shades."""
    by_size = [int(code) for code in np.argsort(-rows.sizes, kind="stable") if rows.sizes[code]]
    kinds = {kind: [code for code in by_size if rows.is_known[code] == kind] for kind in (True, False)}
    n_novel = min(len(kinds[False]), max(max_named - max_named // 2, max_named - len(kinds[True])))
    named = sorted([*kinds[True][: max_named - n_novel], *kinds[False][:n_novel]])
    colours = [
        _OTHER_SHADES[bool(is_known)][code % len(_OTHER_SHADES[True])]
        for code, is_known in enumerate(rows.is_known)
    ]
    for code, colour in zip(named, canvas.CLASS_COLOURS, strict=False):
        colours[code] = colour
    return _Look(colours, named)


def _list_legend(rows: ClassRows, look: _Look) -> tuple[list[Any], list[str], list[int]]:
    """Return markers and names, known classes under one heading and novel ones under another."""
    handles: list[Any] = []
    names: list[str] = []
    headings: list[int] = []
    for is_known, title in ((True, "known"), (False, "novel")):
        drawn = np.flatnonzero((rows.is_known == is_known) & (rows.sizes > 0))
        if not len(drawn):
            continue
        headings.append(len(names))
        handles.append(canvas.make_marker("none", ""))
        names.append(f"{len(drawn)} {title} class{'es' if len(drawn) > 1 else ''}")
        own = [code for code in look.named if rows.is_known[code] == is_known]
        handles += [canvas.make_marker(look.colours[code], _MARKERS[is_known]) for code in own]
        names += [canvas.show_name(rows.classes[code]) for code in own]
        n_others = len(drawn) - len(own)
        if n_others:
            handles.append(canvas.make_marker(_OTHER_SHADES[is_known][0], _MARKERS[is_known]))
            names.append(f"{n_others} other{'s' if n_others > 1 else ''}" if own else "all of them")
    if (rows.codes < 0).any():
        handles.append(canvas.make_marker(canvas.GREY, "x", markeredgewidth=1))
        names.append("no class")
    return handles, names, headings


def _find_centre(places: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """Return the middle of the rows where a class is densest, and how far they spread around it."""
    some = places[:: -(-len(places) // _N_FOR_CENTRE)].astype(np.float64)
    distances = ((some[:, None] - some[None]) ** 2).sum(axis=2)
    near = np.exp(-distances / _SIGHT**2)
    best = near[near.sum(axis=1).argmax()]
    centre = best @ some / best.sum()
    return centre, float(np.sqrt(best @ ((some - centre) ** 2).sum(axis=1) / best.sum()))
