"""Show discovery on points of the plane. Writes toy.svg and toy.png beside this file.

Three of six clouds have labels for half of their points. The middle picture shows Infomap's
communities on the rows as they come; the right one the classes that a fit returns.

Run: ``python docs/figures/toy.py``
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from pnp_gcd import PNPDiscoverer
from pnp_gcd.clustering import cluster_features
from pnp_gcd.geometry import fit_geometry, reduce_rows

mpl.rcParams["svg.hashsalt"] = "pnp_gcd"
mpl.rcParams["svg.fonttype"] = "path"  # looks alike whatever fonts the reader has
mpl.rcParams["font.family"] = "DejaVu Sans"

KNOWN = ["#1f77b4", "#d1495b", "#2e8b57"]
NOVEL = ["#e6a117", "#7b4fa3", "#17a2b8", "#8c564b", "#e377c2"]
N_NEIGHBORS = 12


def make_clouds(rng):
    """Return points (n, 2), their cloud and which of them have labels."""
    centres = np.array([[-4.2, 1.8], [0.0, 4.0], [4.2, 1.6], [3.1, -3.0], [-2.9, -3.2], [0.1, -0.3]])
    stretch = np.array([[0.8, 0.5], [0.9, 0.5], [0.5, 0.9], [0.9, 0.6], [0.6, 0.8], [0.55, 0.55]])
    cloud = np.repeat(np.arange(6), 90)
    points = centres[cloud] + stretch[cloud] * rng.normal(size=(len(cloud), 2))
    return points, cloud, (cloud < 3) & (rng.random(len(cloud)) < 0.5)


def find_communities(points, labels):
    """Cluster the points once, as the first probe of a fit does before it merges."""
    reduction = reduce_rows(points)
    geometry = fit_geometry(reduction, labels, whitening="soft-total")
    return cluster_features(geometry.apply(points), n_neighbors=N_NEIGHBORS).labels


def main():
    """Fit, draw and save the figure."""
    points, cloud, has_label = make_clouds(np.random.default_rng(0))
    labels = np.where(has_label, cloud, -1)
    communities = find_communities(points, labels)
    model = PNPDiscoverer(n_neighbors=N_NEIGHBORS, whitening="soft-total", random_state=0)
    model.fit(points[has_label], cloud[has_label], points[~has_label])
    found = np.empty(len(points), dtype=int)
    found[has_label], found[~has_label] = cloud[has_label], model.unlabelled_labels_

    figure, panels = plt.subplots(1, 3, figsize=(12.5, 4.6), sharex=True, sharey=True)
    first, second, third = panels
    first.scatter(*points[~has_label].T, s=14, color="#b5bcc4", label="no label")
    for code, colour in enumerate(KNOWN):
        first.scatter(*points[labels == code].T, s=18, color=colour, label=f"label {code}")
    first.set_title("What comes in")

    wheel = plt.get_cmap("tab20").colors
    for community in range(communities.max() + 1):
        here = communities == community
        second.scatter(*points[here].T, s=14, color=wheel[community % len(wheel)])
    second.set_title(f"{communities.max() + 1} communities of the neighbour graph")

    for label in model.classes_:
        here = found == label
        is_known = label in model.known_classes_
        colour = KNOWN[label] if is_known else NOVEL[(label - len(KNOWN)) % len(NOVEL)]
        name = f"known {label}" if is_known else f"new {label}"
        third.scatter(*points[here].T, s=14, color=colour, label=name)
    third.set_title(f"{model.n_clusters_} classes: {len(model.novel_classes_)} are new")

    for axes in panels:
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_color("#c9d0d7")
    for axes in (first, third):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncol=3, frameon=False, fontsize=9)
    figure.tight_layout()
    here = Path(__file__).parent
    figure.savefig(here / "toy.svg", bbox_inches="tight", metadata={"Date": None})
    figure.savefig(here / "toy.png", bbox_inches="tight", dpi=110)
    print(f"{communities.max() + 1} communities, {model.n_clusters_} classes")


if __name__ == "__main__":
    main()
