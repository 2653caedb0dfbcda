"""Draw the way of the data through one epoch. Writes epoch.svg and epoch.png beside this file.

Run: ``python docs/figures/epoch.py``
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

mpl.rcParams["svg.hashsalt"] = "pnp_gcd"  # the same drawing gives the same file
mpl.rcParams["svg.fonttype"] = "path"  # looks alike whatever fonts the reader has
mpl.rcParams["font.family"] = "DejaVu Sans"

INK = "#26323f"
KIND = {
    "rows": "#e8edf2",
    "probe": "#fbe3c6",
    "student": "#cfe5f7",
    "teacher": "#dcd6f2",
    "loss": "#d7ecd3",
}


def draw_box(axes, centre, size, text, kind, *, is_bold=False):
    """Draw a rounded box with text in its middle; return its centre and size."""
    (x, y), (w, h) = centre, size
    axes.add_patch(
        FancyBboxPatch(
            (x - w / 2, y - h / 2),
            w,
            h,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=KIND[kind],
            edgecolor=INK,
            linewidth=1.1,
        )
    )
    weight = "bold" if is_bold else "normal"
    axes.text(x, y, text, ha="center", va="center", fontsize=9.5, color=INK, linespacing=1.35, weight=weight)
    return centre, size


def draw_arrow(axes, start, end, text=None, *, offset=(0.0, 0.0), bend=0.0, is_dashed=False):
    """Draw an arrow between two points, with an optional word beside its middle."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=13,
            color=INK,
            linewidth=1.2,
            linestyle=(0, (4, 3)) if is_dashed else "solid",
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=0,
            shrinkB=0,
        )
    )
    if text:
        x, y = (start[0] + end[0]) / 2 + offset[0], (start[1] + end[1]) / 2 + offset[1]
        axes.text(
            x, y, text, ha="center", va="center", fontsize=9, color=INK, style="italic", linespacing=1.3
        )


def draw_epoch(axes):
    """Top: probing, once an epoch. Bottom: training, once a batch."""
    axes.text(0.1, 9.05, "Probe: once an epoch", fontsize=12, weight="bold", color=INK)
    size = (2.45, 1.15)
    y = 7.95
    draw_box(axes, (1.3, y), size, "all rows\non the unit sphere", "rows")
    draw_box(axes, (4.15, y), size, "student encoder\nno noise", "student")
    draw_box(axes, (7.0, y), size, "neighbour graph\n→ Infomap", "probe")
    draw_box(axes, (9.85, y), size, "communities\nmerged into classes", "probe")
    draw_box(axes, (12.7, y), size, "mean direction\nof each class", "probe")
    for left in (1.3, 4.15, 7.0, 9.85):
        draw_arrow(axes, (left + 1.225, y), (left + 1.625, y))

    memory = (12.7, 5.3)
    draw_arrow(axes, (12.7, 7.37), (12.7, 5.98), "each class keeps\nits row of old", offset=(-1.15, 0.05))
    draw_box(axes, memory, (2.45, 1.35), "prototype memory\nclusters found +\npotential prototypes", "probe")

    axes.text(0.1, 6.15, "Train: once a batch", fontsize=12, weight="bold", color=INK)
    draw_box(axes, (1.3, 3.35), (2.3, 1.5), "batch, half labelled\ntwo noisy views\nof each row", "rows")
    draw_box(axes, (4.7, 4.75), (2.4, 1.1), "teacher encoder", "teacher")
    draw_box(axes, (4.7, 3.0), (2.4, 1.1), "student encoder", "student")
    draw_arrow(axes, (2.45, 3.75), (3.5, 4.6))
    draw_arrow(axes, (2.45, 3.2), (3.5, 3.05))
    draw_arrow(axes, (4.7, 3.55), (4.7, 4.2), "EMA", offset=(0.42, 0.0), is_dashed=True)

    draw_box(axes, (8.2, 4.75), (2.7, 1.1), "distillation\nand mean entropy", "loss")
    draw_box(axes, (8.2, 3.0), (2.7, 1.1), "known classes:\ncross-entropy", "loss")
    draw_box(axes, (8.2, 1.25), (2.7, 1.1), "contrastive terms\nthrough the head h", "loss")
    draw_arrow(axes, (5.9, 4.75), (6.85, 4.85))
    draw_arrow(axes, (5.9, 3.3), (6.85, 4.4))
    draw_arrow(axes, (5.9, 3.0), (6.85, 3.0))
    draw_arrow(axes, (5.9, 2.7), (6.85, 1.55))
    draw_arrow(axes, (11.475, 5.2), (9.55, 4.9), "both copies", offset=(0.0, 0.3))

    draw_box(axes, (12.7, 3.0), (2.3, 1.1), "weighted sum\none SGD step", "loss", is_bold=True)
    draw_arrow(axes, (9.55, 4.45), (11.55, 3.3))
    draw_arrow(axes, (9.55, 3.0), (11.55, 3.0))
    draw_arrow(axes, (9.55, 1.25), (11.55, 2.7))
    draw_arrow(axes, (12.7, 3.55), (12.7, 4.62), "moves\nprototypes", offset=(0.72, 0.0), is_dashed=True)
    # The step goes back to the student, under everything.
    axes.plot([12.7, 12.7, 4.7], [2.45, 0.3, 0.3], color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    draw_arrow(axes, (4.7, 0.3), (4.7, 2.45), is_dashed=True)
    axes.text(
        9.0,
        0.06,
        "moves the student and the head",
        ha="center",
        va="center",
        fontsize=9,
        style="italic",
        color=INK,
    )


def main():
    """Draw and save the figure."""
    figure, axes = plt.subplots(figsize=(11.5, 7.6))
    axes.set_xlim(0, 14.1)
    axes.set_ylim(-0.2, 9.4)
    axes.axis("off")
    draw_epoch(axes)
    here = Path(__file__).parent
    figure.savefig(here / "epoch.svg", bbox_inches="tight", metadata={"Date": None})
    figure.savefig(here / "epoch.png", bbox_inches="tight", dpi=110)


if __name__ == "__main__":
    main()
