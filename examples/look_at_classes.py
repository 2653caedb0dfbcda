"""See what was discovered: a map of the classes, their sizes, the errors, and how the model came to them.

Five of the ten digits have names. A fit finds the others, and the displays of ``pnp_gcd.plotting`` show what
it found, in the way of scikit-learn's: ``from_estimator`` draws a display of its own, ``ax=`` puts several on
one figure, ``figure_`` saves it.

Run: ``python examples/look_at_classes.py [FOLDER]``. Needs matplotlib: ``pip install "pnp-gcd[plots]"``.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

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

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="look_at_classes_"))
folder.mkdir(parents=True, exist_ok=True)

split = load_digits_split(n_known=5, random_state=0)
X = split.X_unlabelled
model = PNPDiscoverer(random_state=0).fit(split.X_labelled, WORDS[split.y_labelled], X)
print(f"{model.n_clusters_} classes found, {len(model.novel_classes_)} of them new")

# What a user has: rows without truth. One figure for all of it.
figure = Figure(figsize=(14, 9), layout="constrained")
axes = figure.subplots(2, 2)
DiscoveryMapDisplay.from_estimator(model, X, ax=axes[0, 0])
ClassSizesDisplay.from_estimator(model, ax=axes[0, 1])
NoveltyHistogramDisplay.from_estimator(model, X, ax=axes[1, 0])
TrainingHistoryDisplay.from_estimator(model, ax=axes[1, 1])
figure.savefig(folder / "classes.png", dpi=100)

# How the settings were chosen, in a figure of its own.
CalibrationTableDisplay.from_estimator(model).figure_.savefig(folder / "calibration.png", dpi=100)

# Where the truth is known, which errors were made.
errors = PredictionBiasDisplay.from_estimator(model, X, WORDS[split.y_unlabelled])
errors.figure_.savefig(folder / "errors.png", dpi=100)
print(f"of all rows, {100 * errors.bias.false_old:.1f} % are new but were taken for a known class")

print(f"classes.png, calibration.png and errors.png are in {folder}")
