"""Draw every display of ``pnp_gcd.plotting``. Writes plot_*.png beside this file.

The digits with five of ten classes hidden, and two hundred clouds of points for what many classes look like.

Run: ``python docs/figures/plots.py``
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import make_blobs

mpl.use("Agg")
from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.plotting import (
    CalibrationTableDisplay,
    ClassSizesDisplay,
    DiscoveryMapDisplay,
    NoveltyHistogramDisplay,
    PredictionBiasDisplay,
    TrainingHistoryDisplay,
)

WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def draw_digits():
    """Return the displays of a model of digits, by the name of their file."""
    split = load_digits_split(random_state=0)
    model = PNPDiscoverer(random_state=0)
    model.fit(split.X_labelled, WORDS[split.y_labelled], split.X_unlabelled)
    X, truth = split.X_unlabelled, WORDS[split.y_unlabelled]
    return {
        "map": DiscoveryMapDisplay.from_estimator(model, X),
        "history": TrainingHistoryDisplay.from_estimator(model),
        "calibration": CalibrationTableDisplay.from_estimator(model),
        "sizes": ClassSizesDisplay.from_estimator(model),
        "bias": PredictionBiasDisplay.from_estimator(model, X, truth),
        "novelty": NoveltyHistogramDisplay.from_estimator(model, X, truth),
    }


def draw_many_classes():
    """Return the displays of two hundred classes, of which half are known."""
    rng = np.random.default_rng(0)
    sizes = rng.permutation((60 / np.arange(1, 201) ** 0.4).astype(int) + 3)
    points, codes = make_blobs(sizes, n_features=24, cluster_std=3.4, random_state=0)
    labels = np.array([f"bird {code}" if code < 100 else f"novel_{code - 100}" for code in range(200)])[codes]
    known = np.unique(labels[codes < 100])
    return {
        "map_many": DiscoveryMapDisplay.from_predictions(points, labels, known_classes=known),
        "sizes_many": ClassSizesDisplay.from_predictions(labels, known_classes=known),
    }


def main():
    """Draw and save."""
    for name, display in {**draw_digits(), **draw_many_classes()}.items():
        path = Path(__file__).parent / f"plot_{name}.png"
        display.figure_.savefig(path, dpi=100)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
