"""Small data that ships with scikit-learn, split as category discovery meets it.

Knows arrays and labels: no torch, no estimator.
"""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.utils import check_random_state

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.splits import DiscoveryData, draw_split

__all__ = ["load_digits", "load_digits_split"]


def load_digits() -> DiscoveryDataset:
    """Load scikit-learn's handwritten digits as a data set whose classes can be hidden.

    Returns
    -------
    DiscoveryDataset
        Pixels from 0 to 16 in 64 columns, as scikit-learn has them; labels from 0 to 9.

    Examples
    --------
    >>> from pnp_gcd.datasets import load_digits
    >>> data = load_digits().split(seed=0)  # half of the classes known, a tenth of the rows unseen
    >>> len(data.known_classes), len(data.X_unseen)
    (5, 180)
    """
    from sklearn import datasets

    X, y = datasets.load_digits(return_X_y=True)
    return DiscoveryDataset("digits", "features", X, y, X[:0], y[:0], classes=np.arange(10))


def load_digits_split(
    *,
    n_known: int = 5,
    labelled: float = 0.5,
    unseen: float = 0.1,
    random_state: int | np.random.RandomState | None = 0,
) -> DiscoveryData:
    """Load scikit-learn's handwritten digits with some of the ten classes hidden.

    Parameters
    ----------
    n_known : int, default=5
        Number of digits that have labels, from 1 to 10. Which ones is drawn by ``random_state``.
    labelled : float, default=0.5
        Part of the rows of each known class that keep their label, after the unseen rows were
        taken out; at least one row. Above 0 and below 1.
    unseen : float, default=0.1
        Part of all rows kept out of both the labelled rows and the pool. From 0 to below 1.
    random_state : int, RandomState or None, default=0
        Draws the known classes and the rows. The global random state is not touched.

    Returns
    -------
    DiscoveryData
        Pixels from 0 to 16 in 64 columns, as scikit-learn has them; labels from 0 to 9.

    Examples
    --------
    >>> from pnp_gcd.datasets import load_digits_split
    >>> data = load_digits_split(n_known=5, random_state=0)
    >>> data.known_classes.size, data.X_labelled.shape[1]
    (5, 64)
    >>> len(data.X_labelled) + len(data.X_unlabelled) + len(data.X_unseen)
    1797
    >>> set(data.y_labelled.tolist()) == set(data.known_classes.tolist())
    True
    >>> len(set(data.y_unlabelled.tolist()))
    10
    """
    digits = load_digits()
    if not isinstance(n_known, numbers.Integral) or not 1 <= n_known <= 10:
        raise ValueError(
            f"n_known={n_known!r} must be an integer from 1 to 10, the number of classes. "
            "Pass fewer than 10 to leave classes to discover."
        )
    if random_state is None:  # fresh entropy: check_random_state would take the global state
        random_state = int(np.random.SeedSequence().generate_state(1)[0])
    split = draw_split(digits.y, int(n_known), labelled, unseen, check_random_state(random_state))
    return split.take(digits.X, digits.y)
