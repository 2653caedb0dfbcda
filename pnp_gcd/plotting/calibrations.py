"""Draw what calibration tried, and what it chose.

Knows the table's rows: not how settings are tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pnp_gcd.plotting import canvas
from pnp_gcd.plotting.reading import open_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

__all__ = ["CalibrationTableDisplay"]

# Columns of the table that are written beside it, with their headings.
_COLUMNS = {
    "whitening": "whitening",
    "n_neighbors": "neighbors",
    "similarity_threshold": "threshold",
    "resolution": "resolution",
    "is_balanced": "balanced",
    "n_classes": "classes",
}
_MARKS = {
    "known": ("o", canvas.KNOWN, "known classes found again"),
    "novel": ("^", canvas.NOVEL, "hidden classes found again"),
    "score": ("D", canvas.INK, "score, their mean"),
}


class CalibrationTableDisplay:
    """Every setting that calibration tried, how it scored, and which one was chosen.

    A line per setting, in the order of trying. Use :meth:`from_estimator` to make one, or pass a table and
    call :meth:`plot`. Parameters are stored as attributes.

    Parameters
    ----------
    table : list of dict
        A row per setting, as in ``calibration_``.
    chosen : int or None, default=-1
        Which row is the chosen setting. A fit tries it once more at the end, with every hiding: its row is
        the last. None marks no row.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib PathCollection
        "known", "novel" and "score".
    chosen_ : matplotlib Rectangle or None
        The band behind the chosen setting.

    Examples
    --------
    >>> from pnp_gcd.plotting import CalibrationTableDisplay
    >>> first = {"whitening": "within", "n_neighbors": 8, "known": 0.9, "novel": 0.7, "score": 0.8}
    >>> second = {**first, "n_neighbors": 14, "novel": 0.8, "score": 0.85}
    >>> display = CalibrationTableDisplay([first, second]).plot()
    >>> [label.get_text().split() for label in display.ax_.get_yticklabels()]
    [['whitening', 'neighbors'], ['within', '8'], ['within', '14']]
    """

    ax_: Axes
    figure_: Figure
    points_: dict[str, PathCollection]
    chosen_: Rectangle | None

    def __init__(self, table: Sequence[Mapping[str, Any]], *, chosen: int | None = -1) -> None:
        self.table = table
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, legend_kw: dict[str, Any] | None = None, **kwargs: Any
    ) -> CalibrationTableDisplay:
        """Draw the table of a fitted model.

        Parameters
        ----------
        estimator : PNPDiscoverer, or a Pipeline or search that ends in one
            Fitted.
        ax, legend_kw, **kwargs
            As for :meth:`plot`.

        Returns
        -------
        CalibrationTableDisplay
        """
        canvas.check_drawing()
        table = open_estimator(estimator, "calibration_").model.calibration_
        return cls(table).plot(ax=ax, legend_kw=legend_kw, **kwargs)

    def plot(
        self, *, ax: Axes | None = None, legend_kw: dict[str, Any] | None = None, **kwargs: Any
    ) -> CalibrationTableDisplay:
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None opens a new figure.
        legend_kw : dict or None, default=None
            Passed to the axes' ``legend``, which is above the table.
        **kwargs
            Passed to the axes' ``scatter``, for all marks.

        Returns
        -------
        CalibrationTableDisplay
        """
        if not len(self.table):
            raise ValueError(
                "The table of calibration_ is empty: nothing was tried. Fit with unlabelled rows and with "
                "two known classes or more, of which one can be hidden."
            )
        chosen = self._find_chosen()
        self.ax_ = canvas.open_axes(ax, (8.6, 1.5 + 0.3 * len(self.table)))
        self.figure_ = self.ax_.figure  # type: ignore[assignment]
        places = np.arange(len(self.table))
        self.chosen_ = None
        if chosen is not None:
            self.chosen_ = self.ax_.axhspan(
                chosen - 0.5, chosen + 0.5, color="#fff1d6", linewidth=0, zorder=0
            )
        values = {name: np.array([float(row[name]) for row in self.table]) for name in _MARKS}
        self.ax_.hlines(places, values["known"], values["novel"], color="#c5ccd3", linewidth=1.6, zorder=1)
        self.points_ = {}
        for name, (marker, colour, title) in _MARKS.items():
            style = {"color": colour, "marker": marker, "s": 36, "linewidth": 0, "zorder": 3, "label": title}
            self.points_[name] = self.ax_.scatter(values[name], places, **canvas.merge_style(style, kwargs))
        self._write_settings(chosen)
        legend = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.01), "ncols": 3, **(legend_kw or {})}
        canvas.put_legend(
            self.ax_, list(self.points_.values()), [title for _, _, title in _MARKS.values()], **legend
        )
        return self

    def _find_chosen(self) -> int | None:
        if self.chosen is None:
            return None
        if not -len(self.table) <= self.chosen < len(self.table):
            raise ValueError(
                f"chosen={self.chosen!r} must be a row of the table, which has {len(self.table)}, or None."
            )
        return self.chosen % len(self.table)

    def _write_settings(self, chosen: int | None) -> None:
        """Write the settings as columns of tick labels, below a line of headings."""
        ax = self.ax_
        columns = [name for name in _COLUMNS if name in self.table[0]]
        cells = [[_COLUMNS[name] for name in columns]]
        cells += [[_show_value(row[name]) for name in columns] for row in self.table]
        widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
        lines = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells
        ]
        canvas.polish(ax)
        ax.set_yticks(np.arange(-1, len(self.table)), lines, family="monospace", fontsize=8)
        ax.set_ylim(len(self.table) - 0.5, -1.5)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="#e4e8ec", linewidth=0.8)
        labels = ax.get_yticklabels()
        labels[0].set_color(canvas.GREY)
        if chosen is not None:
            labels[chosen + 1].set_fontweight("bold")
            ax.annotate(
                "chosen",
                (1.0, chosen),
                xycoords=("axes fraction", "data"),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                fontweight="bold",
                color=canvas.INK,
            )
        ax.set_xlabel("part found again", color=canvas.INK)


def _show_value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
