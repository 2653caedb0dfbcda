"""The small worlds that several test files look at."""

import os
import signal
from typing import NamedTuple

# Tests side by side get one thread each: two that spin for the same core take many times as long.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A job that a shell started in the background ignores Ctrl-C, and so would every test of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before infomap: imported after it, faiss makes infomap crash the interpreter (both are SWIG modules that
# share one type table). test_clustering.py tests that in a process of its own.
import faiss  # noqa: F401
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs


class World(NamedTuple):
    """Rows of known classes, half of them labelled, and of new classes, none of them labelled."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    has_label: NDArray[np.bool_]

    @property
    def labelled(self):
        return self.X[self.has_label], self.y[self.has_label]

    @property
    def rest(self):
        return self.X[~self.has_label]

    @property
    def truth(self):
        return self.y[~self.has_label]

    @property
    def stacked(self):
        """Labelled rows first, then the pool, with −1 for it."""
        rows, y = self.labelled
        return np.concatenate([rows, self.rest]), np.concatenate([y, np.full(len(self.rest), -1)])


def make_world(n_rows=240, n_classes=4, n_known=2, *, width=8, seed=0):
    """Return blobs that nobody could confuse: known classes are 0 … n_known − 1."""
    rng = np.random.default_rng(seed)
    centres = 12 * np.linalg.qr(rng.normal(size=(width, width)))[0][:n_classes]
    X, y = make_blobs(n_rows, centers=centres, cluster_std=1.0, random_state=seed)
    return World(X, y.astype(np.int64), (y < n_known) & (rng.random(n_rows) < 0.5))


@pytest.fixture(scope="session")
def world():
    return make_world()


@pytest.fixture(scope="session")
def many_known():
    """Six classes, four known: enough to hide some while calibrating."""
    return make_world(300, 6, 4, seed=1)
