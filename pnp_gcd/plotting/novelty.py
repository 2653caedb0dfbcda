"""Draw how novel rows look, those of known classes beside those of novel ones.

Knows scores and labels: no rows, no features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import hide_missing, open_estimator, read_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

__all__ = ["NoveltyHistogramDisplay"]


class NoveltyHistogramDisplay:
    """Histogram of novelty scores: rows of known classes beside rows of novel ones.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    novelty : ndarray of shape (n_rows,)
        As of ``novelty_score``; rows that are NaN are not counted.
    is_novel : ndarray of shape (n_rows,), bool
        Whether a row's class is novel.
    source : {"true", "predicted"}, default="true"
        Where ``is_novel`` comes from; it is said in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib BarContainer
        "known" and "novel".
    bins_ : ndarray
        Borders of the bars.

    Examples
    --------
    >>> from pnp_gcd.plotting import NoveltyHistogramDisplay
    >>> scores, truth = [0.1, 0.2, 0.9], ["cat", "cat", "emu"]
    >>> display = NoveltyHistogramDisplay.from_predictions(truth, scores, known_classes=["cat"], bins=2)
    >>> {kind: [int(bar.get_height()) for bar in bars] for kind, bars in display.bars_.items()}
    {'known': [2, 0], 'novel': [0, 1]}
    """

    ax_: Axes
    figure_: Figure
    bars_: dict[str, BarContainer]
    bins_: NDArray[np.float64]

    def __init__(
        self,
        novelty: NDArray[np.floating],
        is_novel: NDArray[np.bool_],
        *,
        source: Literal["true", "predicted"] = "true",
    ) -> None:
        self.novelty = novelty
        self.is_novel = is_novel
        self.source = source

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        bins: Any = 25,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> NoveltyHistogramDisplay:
        """Draw the novelty scores of rows.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_rows, n_features), or images
        y : array-like of shape (n_rows,) or None, default=None
            The truth; rows marked as unlabelled are left out. None tells known and novel rows by the class
            predicted.
        bins, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        NoveltyHistogramDisplay
        """
        canvas.check_drawing()
        model, _ = fitted = open_estimator(estimator, "novelty_score")
        rows = fitted.prepare(X)
        return cls._from_labels(
            hide_missing(model.predict(rows) if y is None else y, model, name="y"),
            model.novelty_score(rows),
            model.known_classes_,
            "predicted" if y is None else "true",
        ).plot(bins=bins, ax=ax, legend_kw=legend_kw, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        novelty: ArrayLike,
        *,
        known_classes: ArrayLike,
        source: Literal["true", "predicted"] = "true",
        bins: Any = 25,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> NoveltyHistogramDisplay:
        """Draw novelty scores that were made before.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Classes; rows labelled −1, "-1", None or NaN are left out.
        novelty : array-like of shape (n_rows,)
            As of ``novelty_score``.
        known_classes : array-like of shape (n_known,)
        source : {"true", "predicted"}, default="true"
            What ``y_true`` is; it is said in the legend.
        bins, ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        NoveltyHistogramDisplay
        """
        canvas.check_drawing()
        display = cls._from_labels(y_true, novelty, known_classes, source)
        return display.plot(bins=bins, ax=ax, legend_kw=legend_kw, **kwargs)

    @classmethod
    def _from_labels(
        cls,
        labels: ArrayLike,
        novelty: ArrayLike,
        known_classes: ArrayLike,
        source: Literal["true", "predicted"],
    ) -> NoveltyHistogramDisplay:
        rows = read_classes(labels, known_classes, name="y" if source == "true" else "y_pred")
        scores = np.asarray(novelty, dtype=np.float64)
        if scores.shape != rows.codes.shape:
            raise ValueError(
                f"novelty has shape {scores.shape} but there are {len(rows.codes)} labels. "
                "Pass one score and one label per row."
            )
        has_class = rows.codes >= 0
        if not has_class.any():
            raise ValueError("No row has a class. Pass labels of which some are not −1, None or NaN.")
        is_novel = ~rows.is_known[rows.codes[has_class]]
        return cls(scores[has_class], is_novel, source=source)

    def plot(
        self,
        *,
        bins: Any = 25,
        ax: Axes | None = None,
        legend_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> NoveltyHistogramDisplay:
        """Draw both histograms, novel rows upon known ones.

        Parameters
        ----------
        bins : int, array-like or str, default=25
            As for :func:`numpy.histogram_bin_edges`, from 0 to 1.
        ax : matplotlib Axes or None, default=None
            Where to draw; None opens a new figure.
        legend_kw : dict or None, default=None
            Passed to the axes' ``legend``, which is above the bars.
        **kwargs
            Passed to the axes' ``hist``, such as ``density=True``, or ``stacked=False`` for bars side by
            side.

        Returns
        -------
        NoveltyHistogramDisplay
        """
        novelty, is_novel = np.asarray(self.novelty, dtype=np.float64), np.asarray(self.is_novel, dtype=bool)
        is_there = np.isfinite(novelty)
        self.bins_ = np.histogram_bin_edges(novelty[is_there], bins, range=(0.0, 1.0))
        self.ax_ = canvas.open_axes(ax, (7.4, 3.6))
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        rows = [novelty[is_there & ~is_novel], novelty[is_there & is_novel]]
        word = "truly" if self.source == "true" else "predicted"
        style: dict[str, Any] = {
            "color": [canvas.KNOWN, canvas.NOVEL],
            "label": [f"{word} known: {len(rows[0]):,} rows", f"{word} novel: {len(rows[1]):,} rows"],
            "stacked": True,
            "rwidth": 0.92,
        }
        _, _, bars = self.ax_.hist(rows, self.bins_.tolist(), **canvas.merge_style(style, kwargs))
        self.bars_ = dict(zip(("known", "novel"), bars, strict=True))  # type: ignore[arg-type]
        for bar in self.bars_["novel"]:
            bar.set(hatch=canvas.NOVEL_HATCH, edgecolor="white", linewidth=0)
        canvas.polish(self.ax_)
        self.ax_.set_xlim(self.bins_[0], self.bins_[-1])
        self.ax_.grid(axis="y", color="#e4e8ec", linewidth=0.8)
        self.ax_.set_xlabel("novelty score", color=canvas.INK)
        self.ax_.set_ylabel("density" if kwargs.get("density") else "rows", color=canvas.INK)
        legend = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.01), "ncols": 2, **(legend_kw or {})}
        canvas.put_legend(self.ax_, list(self.bars_.values()), style["label"], **legend)
        return self
