"""A labelled data set as category discovery uses it: rows to discover in, and how they are split.

Knows arrays and labels: no files, no torch, no estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets.splits import DiscoveryData, make_discovery_split

__all__ = ["DiscoveryDataset"]

_DRAWN_UNSEEN = 0.1


@dataclass(frozen=True, eq=False)
class DiscoveryDataset:
    """A labelled data set whose classes and labels can be hidden.

    Attributes
    ----------
    name : str
        Such as ``"cub200"``; for data of your own the name of the file or folder.
    kind : {"images", "texts", "features"}
        What a row is.
    X : ndarray of shape (n_rows, ...)
        Rows to discover in: the official training images or texts, or all of your rows. Paths, texts (str),
        pixels (n_rows, height, width, 3) as uint8, or features (n_rows, n_features).
    y : ndarray of shape (n_rows,)
        Their true classes.
    X_test, y_test : ndarray
        The official test rows, which no fit should see. May be empty.
    classes : ndarray of shape (n_classes,)
        All classes, in the data set's own order.
    known_classes : ndarray of shape (n_known,) or None
        The classes with labels by the field's protocol, in the data set's order; None where they are drawn.
    preset : str or None
        The name under which :func:`pnp_gcd.presets.paper` has the paper's settings, if it has any.
    """

    name: str
    kind: Literal["images", "texts", "features"]
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    classes: NDArray[Any]
    known_classes: NDArray[Any] | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        """Refuse rows without labels and labels without rows."""
        for rows, labels, part in ((self.X, self.y, ""), (self.X_test, self.y_test, "_test")):
            if len(rows) != len(labels):
                raise ValueError(
                    f"X{part} of {self.name!r} has {len(rows)} rows, but y{part} {len(labels)} labels. "
                    "Pass one label for each row."
                )

    def split(
        self,
        seed: int = 0,
        *,
        known: float | int | Sequence[Any] | NDArray[Any] | None = None,
        labelled: float | int = 0.5,
        unseen: float | None = None,
    ) -> DiscoveryData:
        """Hide classes and labels.

        Parameters
        ----------
        seed : int, default=0
            Draws what is drawn: labelled rows, and classes and unseen rows where they are not given.
        known : float, int, sequence of labels or None, default=None
            As for `make_discovery_split`. None: ``known_classes``, or half of the classes, drawn.
        labelled : float or int, default=0.5
            As for `make_discovery_split`.
        unseen : float or None, default=None
            None: the official test rows if there are any, else a tenth of the rows, drawn. A float: that part
            of ``X`` is drawn, and the official test rows are not used.

        Returns
        -------
        DiscoveryData

        Examples
        --------
        >>> from pnp_gcd.datasets import load_dataset
        >>> digits = load_dataset("digits")
        >>> data = digits.split(seed=0, known=[0, 1, 2])
        >>> data.known_classes.tolist(), len(data.X_unseen)
        ([0, 1, 2], 180)
        """
        takes_test = unseen is None and len(self.X_test) > 0
        drawn = _DRAWN_UNSEEN if unseen is None else unseen
        split = make_discovery_split(
            self.y,
            known=self._find_known() if known is None else known,
            labelled=labelled,
            unseen=0.0 if takes_test else drawn,
            seed=seed,
        )
        data = split.take(self.X, self.y)
        return replace(data, X_unseen=self.X_test, y_unseen=self.y_test) if takes_test else data

    def _find_known(self) -> float | NDArray[Any]:
        """Return the protocol's classes, of a partial copy those that are there."""
        if self.known_classes is None:
            return 0.5
        there = self.known_classes[np.isin(self.known_classes, self.y)]
        if len(there) == 0:
            raise ValueError(
                f"{self.name!r} has no row of a class that its protocol knows, such as "
                f"{self.known_classes[:3].tolist()}. Pass known=."
            )
        return there
