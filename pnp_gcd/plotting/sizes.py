"""Draw how many rows each class has.

Knows labels: no rows, no features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import hide_missing, open_estimator, read_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

__all__ = ["ClassSizesDisplay"]


class ClassSizesDisplay:
    """A bar for each class, as long as it has rows: known classes plain, novel ones hatched.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    sizes : ndarray of shape (n_classes,)
        Rows of each class.
    classes : array-like of shape (n_classes,)
        Their names.
    is_known : ndarray of shape (n_classes,), bool

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib BarContainer
        "known" and "novel", largest classes first; a kind without classes is left out.

    Examples
    --------
    >>> from pnp_gcd.plotting import ClassSizesDisplay
    >>> found = ["cat", "cat", "novel_0", "novel_0", "novel_0"]
    >>> display = ClassSizesDisplay.from_predictions(found, known_classes=["cat", "dog"])
    >>> [int(bar.get_width()) for bar in display.bars_["known"]]
    [2, 0]
    """

    ax_: Axes
    figure_: Figure
    bars_: dict[str, BarContainer]

    def __init__(self, sizes: NDArray[np.integer], classes: ArrayLike, is_known: NDArray[np.bool_]) -> None:
        self.sizes = sizes
        self.classes = classes
        self.is_known = is_known

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        max_named: int = 40,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> ClassSizesDisplay:
        """Draw the sizes of the classes that rows are predicted to be in.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_rows, n_features), images, or None, default=None
            None counts the unlabelled rows of the fit, as in ``unlabelled_labels_``.
        max_named, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        ClassSizesDisplay
        """
        canvas.check_drawing()
        needs = "known_classes_" if X is not None else "unlabelled_labels_"
        model, _ = fitted = open_estimator(estimator, needs)
        labels = model.unlabelled_labels_ if X is None else model.predict(fitted.prepare(X))
        if not len(labels):
            raise ValueError("The fit had no unlabelled rows to count. Pass rows as X.")
        return cls.from_predictions(
            hide_missing(labels, model, name="y_pred"),  # of images that were skipped
            known_classes=model.known_classes_,
            max_named=max_named,
            ax=ax,
            legend_kw=legend_kw,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_pred: ArrayLike,
        *,
        known_classes: ArrayLike,
        max_named: int = 40,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> ClassSizesDisplay:
        """Draw the sizes of classes.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            −1, "-1", None and NaN mark rows without class, which are not counted.
        known_classes : array-like of shape (n_known,)
            Drawn even where they have no row.
        max_named, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        ClassSizesDisplay
        """
        canvas.check_drawing()
        rows = read_classes(y_pred, known_classes)
        if not rows.classes:
            raise ValueError("y_pred and known_classes hold no class. Pass at least one labelled row.")
        display = cls(rows.sizes, rows.classes, rows.is_known)
        return display.plot(max_named=max_named, ax=ax, legend_kw=legend_kw, **kwargs)

    def plot(
        self,
        *,
        max_named: int = 40,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> ClassSizesDisplay:
        """Draw the bars: known classes, then novel ones, each kind largest first.

        Parameters
        ----------
        max_named : int, default=40
            Up to so many classes bars lie, with the class's name and its rows written beside them.
            More classes have standing bars without names, in the same order.
        ax : matplotlib Axes or None, default=None
            Where to draw; None opens a new figure.
        legend_kw : dict or None, default=None
            Passed to the axes' ``legend``, which is above the bars.
        **kwargs
            Passed to the axes' ``barh`` or ``bar``.

        Returns
        -------
        ClassSizesDisplay
        """
        sizes, is_known = np.asarray(self.sizes), np.asarray(self.is_known, dtype=bool)
        order = np.lexsort((-sizes, ~is_known))
        has_names = len(order) <= max_named
        figsize = (6.8, 1.3 + 0.27 * max(4, len(order))) if has_names else (8.6, 3.8)
        self.ax_ = canvas.open_axes(ax, figsize)
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        self.bars_ = {}
        for kind, colour, hatch in (
            ("known", canvas.KNOWN, None),
            ("novel", canvas.NOVEL, canvas.NOVEL_HATCH),
        ):
            places = np.flatnonzero(is_known[order] == (kind == "known"))
            if not len(places):
                continue
            n_rows = int(sizes[order][places].sum())
            style = {
                "color": colour,
                "hatch": hatch,
                "edgecolor": "white",
                "linewidth": 0.6 if has_names else 0.0,
                "label": f"{len(places)} {kind}: {n_rows:,} rows",
            }
            draw = self.ax_.barh if has_names else self.ax_.bar
            thickness = 0.78 if has_names else 1.0
            self.bars_[kind] = draw(
                places, sizes[order][places].astype(float), thickness, **canvas.merge_style(style, kwargs)
            )
        canvas.polish(self.ax_)
        self._label_axes(order, has_names)
        legend = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.01), "ncols": 2, **(legend_kw or {})}
        bars = list(self.bars_.values())
        canvas.put_legend(self.ax_, bars, [str(bar.get_label()) for bar in bars], **legend)
        return self

    def _label_axes(self, order: NDArray[np.intp], has_names: bool) -> None:
        """Name the classes, or say in which order they stand."""
        ax = self.ax_
        if not has_names:
            ax.set_xlim(-0.5, len(order) - 0.5)
            ax.set_xlabel("classes: known, then novel, largest first", color=canvas.INK)
            ax.set_ylabel("rows", color=canvas.INK)
            ax.grid(axis="y", color="#e4e8ec", linewidth=0.8)
            return
        names = list(self.classes)  # type: ignore[arg-type]
        ax.set_yticks(np.arange(len(order)), [canvas.show_name(names[code]) for code in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("rows", color=canvas.INK)
        ax.margins(x=0.1)
        for bars in self.bars_.values():
            ax.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8, color=canvas.INK)
