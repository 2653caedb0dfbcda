"""Draw the analyses: bars, lines, curves, maps; a panel for each data set.

Knows numbers and names only. Draws on what ``plotting.canvas`` gives it, the door for matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.plotting.canvas import INK, SERIES_COLOURS, list_hues, make_figure
from pnp_gcd.projection import project_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Map", "draw_bars", "draw_curves", "draw_grouped_bars", "draw_lines", "draw_maps"]

_N_DRAWN = 2000
_WIDTH = 4.6


class Map(NamedTuple):
    """Features (n, d) of rows, their true classes (n,), and whether these are known (n,)."""

    features: NDArray[np.float32]
    classes: NDArray[Any]
    is_known: NDArray[np.bool_]


def draw_bars(values: Mapping[str, Mapping[str, float]], axis: str, *, percent: bool = False) -> Figure:
    """Draw lying bars, one for each name, a panel for each data set.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        By panel and bar.
    axis : str
        What the length of a bar is.
    percent : bool, default=False
        Whether values are parts of 1, to be drawn as per cent.

    Returns
    -------
    Figure
    """
    scale = 100 if percent else 1
    n_bars = max(len(bars) for bars in values.values())
    figure, panels = _make_panels(list(values), height=1.1 + 0.36 * n_bars)
    for place, (panel, bars) in enumerate(zip(panels, values.values(), strict=True)):
        lengths = [scale * value for value in bars.values()]
        drawn = panel.barh(list(bars), lengths, color=SERIES_COLOURS[: len(bars)], height=0.7)
        panel.bar_label(drawn, fmt=_format_number, padding=3, fontsize=8, color=INK)
        panel.invert_yaxis()
        panel.set_xlim(0, max([length for length in lengths if np.isfinite(length)], default=1) * 1.16)
        panel.set_xlabel(axis)
        panel.tick_params(axis="y", length=0, labelleft=place == 0)
    return figure


def draw_lines(
    values: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    axis: str,
    upright: str,
    *,
    percent: bool = False,
    is_log: bool = False,
) -> Figure:
    """Draw lines over a setting, a panel for each data set.

    Parameters
    ----------
    values : mapping of str to mapping of str to sequence of pairs
        By panel and line: x and y of its points. A line called "true" is dashed.
    axis, upright : str
        What x and y are.
    percent : bool, default=False
    is_log : bool, default=False
        Draw both on logarithmic scales.

    Returns
    -------
    Figure
    """
    scale = 100 if percent else 1
    figure, panels = _make_panels(list(values), height=3.4)
    names = list(next(iter(values.values())))
    for panel, lines in zip(panels, values.values(), strict=True):
        for colour, (name, points) in zip(SERIES_COLOURS, lines.items(), strict=False):
            x, y = np.array(points).T
            is_true = name == "true"
            panel.plot(
                x,
                scale * y,
                label=name,
                color=INK if is_true else colour,
                linestyle="--" if is_true else "-",
                marker="" if is_true else "o",
                markersize=4,
                linewidth=1.4,
            )
        ticks = sorted({x for points in lines.values() for x, _ in points})
        if is_log:
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "235" else "")
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_xticks([], minor=True)
        panel.set_xlabel(axis)
    panels[0].set_ylabel(upright)
    if len(names) > 1:
        _add_legend(figure, panels[0], len(names))
    return figure


def draw_grouped_bars(values: Mapping[str, Mapping[str, Mapping[str, float]]], upright: str) -> Figure:
    """Draw groups of standing bars, a panel for each data set.

    Parameters
    ----------
    values : mapping of str to mapping of str to mapping of str to float
        By panel, group and bar; parts of 1, drawn as per cent.
    upright : str

    Returns
    -------
    Figure
    """
    figure, panels = _make_panels(list(values), height=3.2)
    for panel, groups in zip(panels, values.values(), strict=True):
        names = list(next(iter(groups.values())))
        width = 0.8 / len(names)
        for place, name in enumerate(names):
            heights = [100 * bars[name] for bars in groups.values()]
            at = np.arange(len(groups)) + (place - (len(names) - 1) / 2) * width
            drawn = panel.bar(at, heights, width * 0.94, label=name, color=SERIES_COLOURS[place])
            panel.bar_label(drawn, fmt=_format_number, padding=2, fontsize=7, color=INK)
        panel.set_xticks(np.arange(len(groups)), list(groups))
        panel.margins(y=0.14)
    panels[0].set_ylabel(upright)
    _add_legend(figure, panels[0], len(names))
    return figure


def draw_curves(values: Mapping[str, Mapping[str, NDArray[Any]]], axis: str, upright: str) -> Figure:
    """Draw numbers class by class, a panel for each data set below the other.

    Parameters
    ----------
    values : mapping of str to mapping of str to ndarray
        By panel and curve; the first curve of each is the truth.
    axis, upright : str

    Returns
    -------
    Figure
    """
    figure, panels = _make_panels(list(values), height=2.6, is_stacked=True)
    for panel, curves in zip(panels, values.values(), strict=True):
        for place, (name, numbers) in enumerate(curves.items()):
            colour = (INK, *SERIES_COLOURS)[place]
            width = 1.6 if place == 0 else 1.0
            panel.step(
                np.arange(len(numbers)), numbers, where="mid", label=name, color=colour, linewidth=width
            )
        panel.set_ylabel(upright)
        panel.margins(x=0.01)
    panels[-1].set_xlabel(axis)
    _add_legend(figure, panels[0], len(curves))
    return figure


def draw_maps(maps: Mapping[str, Map]) -> Figure:
    """Draw rows in two dimensions by t-SNE, two panels a line.

    Parameters
    ----------
    maps : mapping of str to Map
        By title.

    Returns
    -------
    Figure
    """
    figure, panels = _make_panels(list(maps), height=4.4, n_columns=2)
    for panel, one in zip(panels, maps.values(), strict=True):
        rows = np.random.default_rng(0).permutation(len(one.classes))[:_N_DRAWN]
        places = project_rows(one.features[rows])
        _, codes = np.unique(one.classes, return_inverse=True)
        colours = list_hues(int(codes.max()) + 1)[codes[rows]]
        is_known = one.is_known[rows]
        for is_drawn, marker, size, name in (
            (is_known, "o", 7, "known class"),
            (~is_known, "^", 9, "novel class"),
        ):
            panel.scatter(
                places[is_drawn, 0],
                places[is_drawn, 1],
                c=colours[is_drawn],
                s=size,
                marker=marker,
                linewidths=0,
                label=name,
            )
        panel.set_axis_off()
    _add_legend(figure, panels[0], 2)
    return figure


def _make_panels(
    titles: Sequence[str], *, height: float, is_stacked: bool = False, n_columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a titled panel for each data set, side by side or below each other."""
    columns = 1 if is_stacked else min(n_columns or len(titles), len(titles), 3)
    lines = -(-len(titles) // columns)
    figure = make_figure(((8.6 if is_stacked else _WIDTH * columns), height * lines + 0.4))
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel in grid[len(titles) :]:
        panel.set_visible(False)
    panels = list(grid[: len(titles)])
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, fontsize=10, color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(which="both", labelsize=8, colors=INK)
    return figure, panels


def _add_legend(figure: Figure, panel: Axes, n_names: int) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(n_names, 4), frameon=False, fontsize=9
    )


def _format_number(value: float) -> str:
    return f"{value:.1f}" if value < 100 and value != round(value) else f"{value:.0f}"
