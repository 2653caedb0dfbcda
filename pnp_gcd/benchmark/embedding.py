"""Turn a data set's images or texts into feature vectors, once, for methods that see nothing else.

Knows files and estimators' names: no method, no classes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.benchmark.records import digest_file, digest_rows, write_arrays
from pnp_gcd.datasets import DiscoveryDataset
from pnp_gcd.geometry import unit_rows

__all__ = ["embed_dataset"]

_N_TFIDF_COLUMNS = 256


def embed_dataset(
    dataset: DiscoveryDataset,
    features: Mapping[str, Any],
    *,
    root: str | None,
    cache: Path | None,
    verbose: int = 0,
) -> DiscoveryDataset:
    """Return the data set with feature vectors in place of its images or texts.

    Parameters
    ----------
    dataset : DiscoveryDataset
    features : mapping
        ``{"backbone": NAME, "weights": FILE or "auto" or None, "image_size": N}`` for images;
        ``{"embedder": "tfidf"}`` or ``{"embedder": "module:function"}`` for texts, a function from a list
        of texts to an array of shape (n_texts, n_columns); ``{"scale": "unit"}`` for feature vectors, which
        puts rows on the unit sphere.
    root : str or None
        Folder of the data.
    cache : path or None
        Folder that keeps features for the next run.
    verbose : int, default=0

    Returns
    -------
    DiscoveryDataset
        Of kind "features". Features of training rows never depend on classes, nor on which are known.
    """
    if features == {"scale": "unit"} and dataset.kind == "features":
        return replace(dataset, X=unit_rows(dataset.X), X_test=unit_rows(dataset.X_test))
    if dataset.kind == "features":
        raise ValueError(
            f"features={dict(features)} has nothing to do: {dataset.name} is feature vectors already."
        )
    file = None if cache is None else cache / f"{_name(dataset, features, root)}.npz"
    if file is not None and file.exists():
        with np.load(file) as arrays:
            X, X_test = arrays["X"], arrays["X_test"]
    else:
        embed = _embed_images if dataset.kind == "images" else _embed_texts
        X, X_test = embed(dataset, features, verbose)
        if file is not None:
            write_arrays({"X": X, "X_test": X_test}, file)
    return replace(dataset, kind="features", X=X, X_test=X_test)


def _embed_images(
    dataset: DiscoveryDataset, features: Mapping[str, Any], verbose: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    from pnp_gcd import ImageEmbedder

    if "backbone" not in features:
        raise ValueError(
            f"{dataset.name} is images: features={dict(features)} needs a backbone. Name one of timm's."
        )
    embedder = ImageEmbedder(
        features["backbone"],
        backbone_weights=features.get("weights", "auto"),
        image_size=features.get("image_size"),
        verbose=verbose,
    ).fit(dataset.X[:1])
    X = embedder.transform(dataset.X)
    return X, embedder.transform(dataset.X_test) if len(dataset.X_test) else X[:0]


def _embed_texts(
    dataset: DiscoveryDataset, features: Mapping[str, Any], verbose: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    name = features.get("embedder")
    if not isinstance(name, str) or (name != "tfidf" and ":" not in name):
        raise ValueError(
            f"{dataset.name} is texts: embedder={name!r} must be 'tfidf' or 'module:function', which "
            "turns a list of texts into an array with a row for each."
        )
    if name == "tfidf":
        return _embed_by_words(dataset)
    module, _, function = name.partition(":")
    try:
        embed = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"embedder={name!r} cannot be imported: {error}.") from error
    X = np.asarray(embed(dataset.X.tolist()), dtype=np.float32)
    if X.ndim != 2 or len(X) != len(dataset.X):
        raise ValueError(
            f"embedder={name!r} gave shape {X.shape} for {len(dataset.X)} texts. Return a row for each."
        )
    return X, np.asarray(embed(dataset.X_test.tolist()), dtype=np.float32) if len(dataset.X_test) else X[:0]


def _embed_by_words(dataset: DiscoveryDataset) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weigh words and pairs of words by how rare they are, and keep the directions that vary most."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    table = words.fit_transform(dataset.X.tolist())
    directions = TruncatedSVD(min(_N_TFIDF_COLUMNS, min(table.shape) - 1), random_state=0)
    X = directions.fit_transform(table).astype(np.float32)
    if not len(dataset.X_test):
        return X, X[:0]
    return X, directions.transform(words.transform(dataset.X_test.tolist())).astype(np.float32)


def _name(dataset: DiscoveryDataset, features: Mapping[str, Any], root: str | None) -> str:
    """Name the features by what they come from: rows, network and its weights."""
    weights = features.get("weights")
    content = digest_file(weights) if weights and Path(str(weights)).is_file() else None
    told = [dict(features), content, digest_rows(dataset.X, root), digest_rows(dataset.X_test, root)]
    return f"{dataset.name}-{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]}"
