"""Draw what happened in training, epoch by epoch.

Knows the history's rows: no estimator's inside, no rows of data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import open_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["TrainingHistoryDisplay"]

_COUNTS = {
    "n_communities": "communities",
    "n_active": "classes",
    "n_prototypes": "prototypes",
    "n_taken": "possible classes with rows",
}
_NO_LOSS = {"epoch", "seconds", "recall", *_COUNTS}
_MARKERS = ("o", "^", "s", "D", "v", "P")
_MOST_MARKERS = 20


class TrainingHistoryDisplay:
    """Every loss by epoch, and below it the communities, classes and prototypes found.

    Use :meth:`from_estimator` to make one, or pass a history and call :meth:`plot`.

    Parameters
    ----------
    history : list of dict
        A row per epoch, as in ``history_``.

    Attributes
    ----------
    ax_ : ndarray of shape (2,), matplotlib Axes
        The losses and the numbers.
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        By the names of the history: "total", "distillation", …, "n_communities", "n_active", …

    Examples
    --------
    >>> from pnp_gcd.plotting import TrainingHistoryDisplay
    >>> history = [{"epoch": 0, "total": 6.5, "n_active": 10}, {"epoch": 1, "total": 6.1, "n_active": 11}]
    >>> display = TrainingHistoryDisplay(history).plot()
    >>> display.lines_["total"].get_ydata().tolist()
    [6.5, 6.1]
    """

    ax_: NDArray[Any]
    figure_: Figure
    lines_: dict[str, Line2D]

    def __init__(self, history: Sequence[Mapping[str, float]]) -> None:
        self.history = history

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | Sequence[Axes] | NDArray[Any] | None = None, **kwargs: Any
    ) -> TrainingHistoryDisplay:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        ax, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        TrainingHistoryDisplay
        """
        canvas.check_drawing()
        return cls(open_estimator(estimator, "history_").model.history_).plot(ax=ax, **kwargs)

    def plot(
        self, *, ax: Axes | Sequence[Axes] | NDArray[Any] | None = None, **kwargs: Any
    ) -> TrainingHistoryDisplay:
        """Draw losses and numbers.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of two Axes, or None, default=None
            Two axes, for the losses and for the numbers; one axes, which is divided in two; or None for a
            new figure.
        **kwargs
            Passed to the axes' ``plot``, for every line.

        Returns
        -------
        TrainingHistoryDisplay
        """
        if not len(self.history):
            raise ValueError(
                "history_ is empty: the model was not trained. Fit it with max_iter of 1 or more to see its "
                "losses."
            )
        losses = {name: name for name in self.history[0] if name not in _NO_LOSS}
        counts = {name: title for name, title in _COUNTS.items() if name in self.history[0]}
        above, below = panels = canvas.open_panels(ax, 2, (7.6, 5.6))
        self.ax_ = np.array(panels, dtype=object)
        self.figure_ = above.figure  # type: ignore[assignment]
        self.lines_ = {}
        self._draw_lines(above, losses, kwargs)
        self._draw_lines(below, counts, {"drawstyle": "steps-post", **kwargs})
        values = [row[name] for row in self.history for name in losses]
        if values and min(values) > 0 and max(values) > 10 * min(values):
            above.set_yscale("log")
            above.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            above.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
        above.margins(y=0.08)
        below.set_ylim(bottom=0)
        above.set_ylabel("loss, mean of batches", color=canvas.INK)
        below.set_ylabel("number", color=canvas.INK)
        below.set_xlabel("epoch", color=canvas.INK)
        return self

    def _draw_lines(self, panel: Axes, names: Mapping[str, str], kwargs: dict[str, Any]) -> None:
        epochs = [row.get("epoch", place) for place, row in enumerate(self.history)]
        for place, (name, title) in enumerate(names.items()):
            is_total = name == "total"
            style = {
                "color": canvas.INK if is_total else canvas.SERIES_COLOURS[place],
                "linewidth": 2.2 if is_total else 1.4,
                "marker": _MARKERS[place % len(_MARKERS)],
                "markersize": 4.5,
                "markevery": -(-len(epochs) // _MOST_MARKERS),
                "label": title,
            }
            (self.lines_[name],) = panel.plot(
                epochs, [row[name] for row in self.history], **canvas.merge_style(style, kwargs)
            )
        canvas.polish(panel)
        panel.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        panel.grid(axis="y", color="#e4e8ec", linewidth=0.8)
        canvas.put_legend(panel, [self.lines_[name] for name in names], list(names.values()))
