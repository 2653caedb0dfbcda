"""What a person does with a fitted ``PNPDiscoverer``: keep it, name what it found, and go on from there.

Knows the estimator's face only: files are in ``persistence``, classes in ``curation``, no torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

__all__ = ["KeptModel"]


class KeptModel:
    """The methods of :class:`~pnp_gcd.PNPDiscoverer` that keep or change a fitted model."""

    def save(
        self, path: str | os.PathLike[str], *, include_backbone: bool = False, overwrite: bool = False
    ) -> None:
        """Write the fitted model into a folder: arrays as safetensors, all else as JSON, no code.

        The folder appears when it is complete. See :doc:`the guide </persistence>`.

        Parameters
        ----------
        path : str or path
            The folder to make.
        include_backbone : bool, default=False
            Of images: keep the frozen weights of the backbone too. Without them the folder is small, and
            ``load`` reads them from where ``fit`` did, and refuses others.
        overwrite : bool, default=False
            Replace a model that was saved there before. Any other folder is left alone.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import make_blobs
        >>> from pnp_gcd import PNPDiscoverer
        >>> X, y = make_blobs(120, n_features=8, centers=3, random_state=0)
        >>> known = y[:90] < 2
        >>> model = PNPDiscoverer(max_iter=1, random_state=0).fit(X[:90][known], y[:90][known], X[90:])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     again = PNPDiscoverer.load(f"{folder}/model")
        >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        from pnp_gcd.persistence import save_model

        check_is_fitted(self)
        save_model(self, path, include_backbone=include_backbone, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the fitted model that :meth:`save` has written; nothing in its files is executed.

        Parameters
        ----------
        path : str or path
            The folder.

        Returns
        -------
        PNPDiscoverer
            It answers as the saved one did, to the last bit on the same machine and versions.

        Raises
        ------
        ModelFileError
            If the folder is damaged, forged, newer than this version, or the weights of its backbone are
            missing or others.
        """
        from pnp_gcd.persistence import load_model

        return load_model(cls, path)

    def rename_classes(self, mapping: Mapping[Any, Any]) -> Self:
        """Give classes the names that a person has for them, in this model.

        New classes that were named are confirmed, see ``confirmed_classes_``; they are still new to
        ``novelty_score``. Known classes can be renamed too. All attributes follow; an error changes nothing.

        Parameters
        ----------
        mapping : dict
            New names by old ones; two classes may swap theirs. Names are all strings or all numbers: where
            labels are numbers and some class shall be a word, name every class,
            ``{c: str(c) for c in model.classes_} | {10: "orchid"}``; a class that is then "3" in place of 3
            is not confirmed by that.

        Returns
        -------
        self : PNPDiscoverer

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from pnp_gcd import PNPDiscoverer
        >>> X, y = make_blobs(120, n_features=8, centers=3, random_state=0)
        >>> names = y.astype(str)
        >>> known = y[:90] < 2
        >>> model = PNPDiscoverer(max_iter=1, random_state=0)
        >>> model = model.fit(X[:90][known], names[:90][known], X[90:])
        >>> model.rename_classes({"novel_0": "orchid"}).classes_.tolist()
        ['0', '1', 'orchid']
        """
        from pnp_gcd.curation import rename_classes

        check_is_fitted(self)
        rename_classes(self, mapping)
        return self

    def merge_classes(self, groups: Iterable[Iterable[Any]], names: Sequence[Any] | None = None) -> Self:
        """Make one class of several that a person knows to be one, in this model.

        The probability of the merged class is the sum of those of its parts; all others stay as they
        were. With a known class among them it is a known class, else a new one that is confirmed.
        ``n_clusters_`` and both ends of ``n_clusters_interval_`` shrink. An error changes nothing.

        Parameters
        ----------
        groups : list of lists of classes
            Each of two classes or more.
        names : list or None, default=None
            A name for each merged class; None keeps that of the known class, else of the first that a
            person has named, else of the first. Two known classes need one.

        Returns
        -------
        self : PNPDiscoverer

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from pnp_gcd import PNPDiscoverer
        >>> X, y = make_blobs(160, n_features=8, centers=4, random_state=0)
        >>> model = PNPDiscoverer(4, max_iter=1, random_state=0).fit(X[y < 2], y[y < 2], X[y >= 2])
        >>> model.classes_
        array([0, 1, 2, 3])
        >>> model.merge_classes([[1, 3]]).classes_
        array([0, 1, 2])
        """
        from pnp_gcd.curation import merge_classes

        check_is_fitted(self)
        merge_classes(self, groups, names)
        return self

    @property
    def confirmed_classes_(self) -> NDArray[Any]:
        """Known classes, and new ones that a person has named or merged."""
        from pnp_gcd.curation import list_confirmed

        check_is_fitted(self)
        return list_confirmed(self)

    def confirm(self: Any, X: ArrayLike, *, min_probability: float = 0.5) -> NDArray[Any]:
        """Return labels of rows for a next fit, in which confirmed classes are known ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images
        min_probability : float, default=0.5
            Rows whose class is less probable get no label.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predicted class where it is one of ``confirmed_classes_``, else the missing label: ready
            as y of ``fit(X, y, X_more)``.
        """
        from pnp_gcd.curation import confirm_rows

        check_is_fitted(self)
        features = self._features(X)
        return confirm_rows(
            self, self.classes_[self._choose(features)], self._probabilities(features), min_probability
        )
