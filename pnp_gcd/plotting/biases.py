"""Draw where wrong predictions went: to known classes or to novel ones.

Knows truth and predictions: no rows, no features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pnp_gcd.labels import drop_unlabelled
from pnp_gcd.metrics import PredictionBias, prediction_bias
from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import open_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

__all__ = ["PredictionBiasDisplay"]

# Whose rows they are (True: a known class's), and where they went.
_TITLES = {
    "true_old": (True, "taken for another known class"),
    "false_new": (True, "taken for a novel class"),
    "false_old": (False, "taken for a known class"),
    "true_new": (False, "taken for another novel class"),
}


class PredictionBiasDisplay:
    """The four kinds of error between known and novel classes, in per cent of all rows.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    bias : PredictionBias
        As of :func:`~pnp_gcd.metrics.prediction_bias`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
        Rows of known classes taken for another known class (``true_old``) and for a novel one
        (``false_new``), rows of novel classes taken for a known one (``false_old``) and for another novel
        one (``true_new``), in this order.
    text_ : list of matplotlib Annotation
        The numbers beside the bars.

    See Also
    --------
    pnp_gcd.metrics.prediction_bias : The numbers.

    Examples
    --------
    >>> from pnp_gcd.plotting import PredictionBiasDisplay
    >>> truth, found = ["cat", "cat", "dog", "emu"], [7, 7, 3, 7]
    >>> display = PredictionBiasDisplay.from_predictions(truth, found, known_classes=["cat"])
    >>> [float(bar.get_width()) for bar in display.bars_]
    [0.0, 0.0, 25.0, 0.0]
    """

    ax_: Axes
    figure_: Figure
    bars_: BarContainer
    text_: list[Annotation]

    def __init__(self, bias: PredictionBias) -> None:
        self.bias = bias

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Axes | None = None, **kwargs: Any
    ) -> PredictionBiasDisplay:
        """Draw the errors of a fitted model's predictions.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_rows, n_features), or images
        y : array-like of shape (n_rows,)
            The truth. Rows marked as unlabelled are left out.
        ax, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        PredictionBiasDisplay
        """
        canvas.check_drawing()
        model, _ = fitted = open_estimator(estimator, "known_classes_")
        known = np.asarray(model.known_classes_)
        has_label, truth = drop_unlabelled(y, getattr(model, "missing_label", "auto"), known=known)
        predicted = np.asarray(model.predict(fitted.prepare(X)))
        if len(predicted) != len(has_label):
            raise ValueError(
                f"y has {len(has_label)} labels for {len(predicted)} rows of X. Pass one per row."
            )
        return cls.from_predictions(truth, predicted[has_label], known_classes=known, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        known_classes: ArrayLike,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> PredictionBiasDisplay:
        """Draw the errors of predictions, or of clusters by any names.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
        y_pred : array-like of shape (n_rows,)
        known_classes : array-like of shape (n_known,)
        ax, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        PredictionBiasDisplay
        """
        canvas.check_drawing()
        return cls(prediction_bias(y_true, y_pred, known_classes)).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> PredictionBiasDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None opens a new figure.
        **kwargs
            Passed to the axes' ``barh``.

        Returns
        -------
        PredictionBiasDisplay
        """
        self.ax_ = canvas.open_axes(ax, (7.4, 2.9))
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        widths = [100 * float(getattr(self.bias, name)) for name in _TITLES]
        is_known = [of_known for of_known, _ in _TITLES.values()]
        style = {
            "color": [canvas.KNOWN if known else canvas.NOVEL for known in is_known],
            "hatch": ["" if known else canvas.NOVEL_HATCH for known in is_known],
            "edgecolor": "white",
            "linewidth": 0.6,
        }
        names = [f"{'known' if known else 'novel'} row\n{title}" for known, title in _TITLES.values()]
        self.bars_ = self.ax_.barh(names, widths, 0.7, **canvas.merge_style(style, kwargs))
        self.text_ = self.ax_.bar_label(
            self.bars_, [f"{width:.1f} %" for width in widths], padding=3, fontsize=9, color=canvas.INK
        )
        canvas.polish(self.ax_)
        self.ax_.invert_yaxis()
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlim(0, max(1.0, 1.16 * max(widths)))
        self.ax_.set_xlabel("wrong rows, % of all", color=canvas.INK)
        right = max(0.0, 100 - sum(widths))
        self.ax_.set_title(f"{right:.1f} % of rows are right", loc="left", fontsize=10, color=canvas.INK)
        return self
