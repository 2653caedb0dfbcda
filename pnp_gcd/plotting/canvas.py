"""Figures, axes, colours and texts for all drawings: the one door for matplotlib.

Knows how things look: no labels of rows, no estimator. matplotlib is imported when something is drawn, its
settings are read and never written, and the current figure stays the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = [
    "CLASS_COLOURS",
    "GREY",
    "INK",
    "KNOWN",
    "NOVEL",
    "NOVEL_HATCH",
    "SERIES_COLOURS",
    "check_drawing",
    "list_hues",
    "make_figure",
    "make_marker",
    "merge_style",
    "open_axes",
    "open_panels",
    "outline",
    "polish",
    "put_legend",
    "show_name",
]

INK = "#26323f"
GREY = "#8a949e"
KNOWN, NOVEL = "#4c78a8", "#e07b39"
NOVEL_HATCH = "///"
SERIES_COLOURS = (
    *("#4c78a8", "#e07b39", "#4a9a6f", "#8a64ad", "#b8525a"),
    *("#6f7d8c", "#b0902c", "#3f8f9e", "#a05195"),
)
# Found by search: no two come close to each other for any of the usual kinds of colour blindness either.
CLASS_COLOURS = (
    *("#507ca8", "#e37c32", "#14c9b0", "#6d41b7", "#b72314", "#b7c67c"),
    *("#e3a8f2", "#32417c", "#7c2323", "#a87cf2", "#b76d6d", "#6d3250"),
)
# Two spellings of one setting; matplotlib refuses or mixes up a call that has both.
_ALIASES = (
    ("c", "color"),
    ("c", "facecolors"),
    ("linewidth", "linewidths"),
    ("linewidth", "lw"),
    ("linewidths", "lw"),
    ("linestyle", "ls"),
    ("edgecolor", "edgecolors"),
    ("edgecolor", "ec"),
    ("color", "facecolor"),
    ("color", "fc"),
    ("markersize", "ms"),
)


def check_drawing() -> None:
    """Raise if nothing can be drawn, and say how to mend that."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Pictures need matplotlib, which is not installed. Install it: pip install "pnp-gcd[plots]".'
        ) from error


def open_axes(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    """Return ``ax``, or the axes of a new figure that pyplot shows while the current figure stays."""
    if ax is None:
        return _open_figure(1, figsize)[0]
    if not hasattr(ax, "get_xlim"):
        raise TypeError(
            f"ax={type(ax).__name__} must be one matplotlib Axes, or None for a new figure. "
            "Of an array of axes pass one, for example ax[0]."
        )
    return ax


def open_panels(
    ax: Axes | Sequence[Axes] | NDArray[Any] | None, n_panels: int, figsize: tuple[float, float]
) -> list[Axes]:
    """Return as many axes: those of ``ax``, parts of the one axes that it is, or of a new figure.

    Parameters
    ----------
    ax : Axes, array-like of Axes or None
    n_panels : int
    figsize : tuple of float
        Of a new figure.
    """
    if ax is None:
        return _open_figure(n_panels, figsize)
    if not isinstance(ax, Sequence | np.ndarray):
        ax.set_axis_off()
        height = 1 / (n_panels + 0.3 * (n_panels - 1))
        starts = [1 - height - 1.3 * height * panel for panel in range(n_panels)]
        return [ax.inset_axes((0.0, start, 1.0, height)) for start in starts]
    panels = list(np.asarray(ax, dtype=object).ravel())
    if len(panels) != n_panels or not all(hasattr(panel, "get_xlim") for panel in panels):
        raise ValueError(
            f"ax holds {len(panels)} axes, but {n_panels} are drawn on. "
            f"Pass {n_panels} axes, one axes to be divided, or None for a new figure."
        )
    return panels


def _open_figure(n_panels: int, figsize: tuple[float, float]) -> list[Axes]:
    check_drawing()
    import matplotlib.pyplot as plt

    current = plt.gcf().number if plt.get_fignums() else None
    _, grid = plt.subplots(n_panels, 1, figsize=figsize, layout="constrained", squeeze=False)
    if current is not None:
        plt.figure(current)
    return list(grid.ravel())


def make_figure(figsize: tuple[float, float]) -> Figure:
    """Return a figure of which pyplot knows nothing, to be saved to a file."""
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def polish(ax: Axes) -> None:
    """Take away the frame's upper and right side, and make what is left quiet."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(which="both", colors=INK, labelsize=9)
    ax.set_axisbelow(True)


def make_marker(colour: Any, marker: str, **style: Any) -> Artist:
    """Return one marker for a legend."""
    from matplotlib.lines import Line2D

    settings = {"markersize": 7, "markeredgewidth": 0, "linestyle": "none", **style}
    return Line2D([], [], marker=marker, color=colour, **settings)


def put_legend(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], *, headings: Sequence[int] = (), **kwargs: Any
) -> Legend:
    """Put a legend right of the axes; names are shown as they are, those at ``headings`` in bold."""
    settings = {
        "loc": "upper left",
        "bbox_to_anchor": (1.01, 1.0),
        "frameon": False,
        "fontsize": 9,
        "labelcolor": INK,
        "handletextpad": 0.4,
        "borderaxespad": 0.0,
    }
    # Names go in afterwards: a legend leaves out what begins with an underscore.
    legend = ax.legend(list(handles), ["." for _ in names], **{**settings, **kwargs})
    for place, (text, name) in enumerate(zip(legend.get_texts(), names, strict=True)):
        text.set_text(name)
        if place in headings:
            text.set_fontweight("bold")
    return legend


def outline(text: Artist, colour: str = "white", width: float = 2.5) -> None:
    """Draw a line around letters, so that they can be read on any ground."""
    from matplotlib.patheffects import withStroke

    text.set_path_effects([withStroke(linewidth=width, foreground=colour)])


def show_name(name: Any, longest: int = 24) -> str:
    """Return a class's name on one line, cut where it is too long, none of it read as a formula."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = text[: longest - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def merge_style(ours: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """Return our settings, those that were given in place of ours, whichever way they are spelt."""
    given = dict(given or {})
    dropped = {
        name
        for pair in _ALIASES
        for name, other in (pair, pair[::-1])
        if other in given and name not in given
    }
    return {**{name: value for name, value in ours.items() if name not in dropped}, **given}


def list_hues(n_hues: int) -> NDArray[np.float64]:
    """Return colours that differ from their neighbours in the list."""
    from matplotlib.colors import hsv_to_rgb

    hue = (np.arange(n_hues) * 0.618034) % 1
    saturation = 0.55 + 0.35 * (np.arange(n_hues) % 2)
    return hsv_to_rgb(np.column_stack([hue, saturation, 0.7 + 0.15 * (np.arange(n_hues) % 3) / 2]))
