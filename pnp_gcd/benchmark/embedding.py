"""Turn a data set's images or texts into feature vectors, once, for methods that see nothing else.

Knows files and estimators' names: no method, no classes.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.benchmark.records import digest_file, digest_texts, write_arrays
from pnp_gcd.datasets import DiscoveryDataset
from pnp_gcd.geometry import unit_rows
from pnp_gcd.text_features import WordFeatures

__all__ = ["digest_inputs", "embed_dataset"]


def embed_dataset(
    dataset: DiscoveryDataset,
    features: Mapping[str, Any],
    *,
    data_digest: str = "",
    cache: Path | None = None,
    renew: bool = False,
    verbose: int = 0,
) -> DiscoveryDataset:
    """Return the data set with feature vectors in place of its images or texts.

    Parameters
    ----------
    dataset : DiscoveryDataset
    features : mapping
        ``{"backbone": NAME, "weights": FILE or "auto" or None, "image_size": N}`` for images;
        ``{"embedder": "tfidf"}`` or ``{"embedder": "module:function"}`` for texts, a function from a list
        of texts to an array of shape (n_texts, n_columns). ``"scale": "unit"``, beside them or alone, puts
        rows on the unit sphere.
    data_digest : str, default=""
        By which the data are known in the cache.
    cache : path or None, default=None
        Folder that keeps features for the next run.
    renew : bool, default=False
        Compute them even if they are there.
    verbose : int, default=0

    Returns
    -------
    DiscoveryDataset
        Of kind "features". Features never depend on classes, nor on which are known. Those of "tfidf" depend
        on all training texts, among them rows that a split may draw as unseen.
    """
    source = {name: value for name, value in features.items() if name != "scale"}
    if features.get("scale") not in (None, "unit"):
        raise ValueError(f"scale={features['scale']!r} must be 'unit', or be left out.")
    if source and dataset.kind == "features":
        raise ValueError(
            f"features={dict(features)} has nothing to do: {dataset.name} is feature vectors already."
        )
    if source or dataset.kind != "features":
        X, X_test = _compute(dataset, source, data_digest, cache, renew, verbose)
        dataset = replace(dataset, kind="features", X=X, X_test=X_test)
    if "scale" in features:
        dataset = replace(dataset, X=unit_rows(dataset.X), X_test=unit_rows(dataset.X_test))
    return dataset


def digest_inputs(*told: Mapping[str, Any] | None) -> dict[str, str]:
    """Return digests of the files that settings name: weights, and the module of an embedder.

    Parameters
    ----------
    *told : mapping or None
        Parameters of a method, or how features are made.

    Returns
    -------
    dict
        From what it is to its SHA-256; names that are no files are left out.
    """
    found = {}
    for values in told:
        for name in ("weights", "backbone_weights"):
            path = (values or {}).get(name)
            if path and Path(str(path)).is_file():
                found[name] = digest_file(path)
        module, _, function = str((values or {}).get("embedder", "")).partition(":")
        if function and (file := _find_module(module)) is not None:
            found["embedder"] = digest_file(file)
    return found


def _find_module(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None and spec.origin and Path(spec.origin).is_file() else None


def _compute(
    dataset: DiscoveryDataset,
    features: Mapping[str, Any],
    data_digest: str,
    cache: Path | None,
    renew: bool,
    verbose: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return features of training and test rows, from the cache if they are there."""
    told = [data_digest, dict(features), digest_inputs(features)]
    name = f"{dataset.name}-{digest_texts(json.dumps(told, sort_keys=True))[:16]}.npz"
    file = None if cache is None else cache / name
    if file is not None and file.exists() and not renew:
        with np.load(file) as arrays:
            return arrays["X"], arrays["X_test"]
    embed = _embed_images if dataset.kind == "images" else _embed_texts
    X, X_test = embed(dataset, features, verbose)
    if file is not None:
        write_arrays({"X": X, "X_test": X_test}, file)
    return X, X_test


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
    features = WordFeatures.fit(dataset.X.tolist())
    X = features.transform(dataset.X.tolist())
    return X, features.transform(dataset.X_test.tolist()) if len(dataset.X_test) else X[:0]
