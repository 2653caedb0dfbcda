"""A model for tests of pages: fitted in no time, saying what it is told to."""

import numpy as np
from sklearn.base import BaseEstimator

from pnp_gcd.fitted import Inspection

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "a\ud800b",
    "\x00\x01\x1f\u2028\u2029&amp;",
    "%%script%%",
    "x" * 10_000,
    "",
]


class FakeModel(BaseEstimator):
    """A fitted model that says what it is told to, about any rows."""

    n_clusters = None
    missing_label = "auto"
    backbone = None

    def __init__(self, classes=("cat", "novel_0"), n_known=1, probabilities=None):
        self.classes, self.n_known, self.probabilities = classes, n_known, probabilities

    def fit(self):
        labels = np.array(self.classes, dtype=object)
        self.classes_ = labels if isinstance(self.classes[0], str) else np.array(self.classes)
        self.known_classes_, self.novel_classes_ = np.split(self.classes_, [self.n_known])
        self.n_clusters_ = len(self.classes)
        self.n_clusters_interval_ = (self.n_clusters_, self.n_clusters_ + 1)
        self.prototypes_ = np.eye(self.n_clusters_, 16, dtype=np.float32)
        self.prototype_labels_ = self.classes_
        self.history_, self.calibration_ = [], []
        return self

    def inspect(self, X):
        n_rows, n_classes = len(X), len(self.classes)
        probabilities = self.probabilities
        if probabilities is None:
            probabilities = np.full((n_rows, n_classes), 0.1 / max(n_classes - 1, 1))
            probabilities[np.arange(n_rows), np.arange(n_rows) % n_classes] = 0.9
        features = np.asarray(probabilities, dtype=np.float32) @ np.eye(n_classes, 16, dtype=np.float32)
        noise = np.random.default_rng(0).normal(size=features.shape, scale=0.03)
        features = np.asarray(features + noise, dtype=np.float32)
        return Inspection(features, np.asarray(probabilities), np.full(n_rows, 0.5))
