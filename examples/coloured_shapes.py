"""Discover new kinds of pictures with a network that runs anywhere.

Draws discs, squares, triangles and stars in several colours, gives labels to some kinds only, and lets
PNPDiscoverer find the others. The network is a tiny one with random weights, so that nothing has to be
downloaded and a minute is enough: pictures this simple need no more. For photographs take a pretrained
backbone, as examples/image_folder.py does.

    python examples/coloured_shapes.py
"""

import numpy as np
from PIL import Image, ImageDraw

from pnp_gcd import PNPDiscoverer
from pnp_gcd.metrics import split_cluster_accuracy

KINDS = {  # colour, corners, and how far the notches between corners reach in
    "red disc": ((215, 45, 45), 48, 1.0),
    "green triangle": ((50, 170, 75), 3, 1.0),
    "blue square": ((45, 85, 215), 4, 1.0),
    "yellow star": ((235, 200, 40), 5, 0.4),
    "purple square": ((150, 60, 190), 4, 1.0),
    "cyan disc": ((40, 190, 205), 48, 1.0),
    "black star": ((25, 25, 30), 5, 0.4),
    "orange triangle": ((240, 130, 30), 3, 1.0),
}
LABELLED = ["red disc", "green triangle", "blue square", "yellow star", "purple square"]


def draw(kind: str, rng: np.random.Generator, size: int = 64) -> np.ndarray:
    """Return one picture (size, size, 3): place, size, angle, shade and background are random."""
    colour, n_corners, notch = KINDS[kind]
    picture = Image.new("RGB", (size, size), tuple(rng.integers(190, 256, size=3).tolist()))
    radius, angle = rng.uniform(15, 24), rng.uniform(0, 2 * np.pi)
    centre = rng.uniform(radius, size - radius, size=2)
    turns = angle + np.pi * np.arange(2 * n_corners) / n_corners
    # Half way along a straight side, a corner of the inner circle is where the side already is.
    inner = notch * np.cos(np.pi / n_corners) if notch == 1.0 else notch
    reach = radius * np.where(np.arange(2 * n_corners) % 2, inner, 1.0)
    corners = centre + reach[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
    shade = np.clip(np.array(colour) + rng.normal(0, 12, size=3), 0, 255).astype(int)
    ImageDraw.Draw(picture).polygon([tuple(corner) for corner in corners], fill=tuple(shade.tolist()))
    return np.asarray(picture)


def main() -> None:
    """Draw, hide, discover, and count what was right."""
    rng = np.random.default_rng(0)
    names = np.repeat(list(KINDS), 40)
    images = np.stack([draw(name, rng) for name in names])
    has_label = np.isin(names, LABELLED) & (rng.random(len(names)) < 0.5)

    model = PNPDiscoverer(
        backbone="test_byobnet",  # tiny; any timm name goes here
        backbone_weights=None,  # random; "auto" would download pretrained ones
        image_size=64,
        random_state=0,
        verbose=1,
    )
    model.fit(images[has_label], names[has_label], images[~has_label])

    truth = names[~has_label]
    print(f"{has_label.sum()} labelled pictures of {len(LABELLED)} kinds, {len(truth)} without a label")
    print(f"found {model.n_clusters_} kinds, {len(model.novel_classes_)} of them new (truly {len(KINDS)})")
    for name in model.novel_classes_:
        kinds, counts = np.unique(truth[model.unlabelled_labels_ == name], return_counts=True)
        print(f"  {name}: {counts.sum():3d} pictures, mostly {kinds[counts.argmax()]}")
    score = split_cluster_accuracy(truth, model.unlabelled_labels_, LABELLED)
    print(f"right: {score.all:.0%} of all, {score.known:.0%} of known kinds, {score.novel:.0%} of new ones")

    new_pictures = np.stack([draw(kind, rng) for kind in ("red disc", "black star", "orange triangle")])
    print("never seen before:", ", ".join(model.predict(new_pictures)))


if __name__ == "__main__":
    main()
