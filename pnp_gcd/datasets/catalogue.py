"""All data sets by name.

Knows loaders only.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from pnp_gcd.datasets.cifar import load_cifar10, load_cifar100
from pnp_gcd.datasets.class_folders import load_herbarium19, load_imagenet100
from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.photographs import (
    load_cub200,
    load_fgvc_aircraft,
    load_oxford_pets,
    load_stanford_cars,
)
from pnp_gcd.datasets.tables import load_arrays, load_csv, load_image_folder
from pnp_gcd.datasets.texts import load_banking77, load_clinc150, load_stackoverflow
from pnp_gcd.datasets.toy import load_digits

__all__ = ["DATASETS", "DiscoveryDataset", "load_dataset"]

DATASETS: dict[str, Callable[..., DiscoveryDataset]] = {
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    "imagenet100": load_imagenet100,
    "herbarium19": load_herbarium19,
    "cub200": load_cub200,
    "stanford_cars": load_stanford_cars,
    "fgvc_aircraft": load_fgvc_aircraft,
    "oxford_pets": load_oxford_pets,
    "banking77": load_banking77,
    "clinc150": load_clinc150,
    "stackoverflow": load_stackoverflow,
    "arrays": load_arrays,
    "csv": load_csv,
    "folder": load_image_folder,
}
"""Loaders by the names that :func:`load_dataset` takes."""


def load_dataset(name: str, root: str | os.PathLike[str] | None = None, **options: Any) -> DiscoveryDataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of ``DATASETS``: a published data set, or ``"arrays"``, ``"csv"`` or ``"folder"`` for your own.
    root : str, path or None
        Where it is on disk; nothing is downloaded. None for ``"digits"``, which ships with scikit-learn.
    **options
        Of the loader, such as ``label="intent"`` for ``"csv"``.

    Returns
    -------
    DiscoveryDataset

    Examples
    --------
    >>> from pnp_gcd.datasets import load_dataset
    >>> digits = load_dataset("digits")
    >>> digits.X.shape, len(digits.classes), digits.known_classes
    ((1797, 64), 10, None)
    """
    if name not in DATASETS:
        raise ValueError(f"name={name!r} is no data set. Pass one of {', '.join(DATASETS)}.")
    loader = DATASETS[name]
    parameters = list(inspect.signature(loader).parameters)
    if name == "digits":
        if root is not None:
            raise ValueError(
                f"root={str(root)!r} is not read: the digits ship with scikit-learn. Leave it out."
            )
    elif root is None:
        raise ValueError(
            f"root=None says not where {name!r} is. Pass its {parameters[0]}: nothing is downloaded."
        )
    known_options = parameters if name == "digits" else parameters[1:]
    unknown = [option for option in options if option not in known_options]
    if unknown:
        raise ValueError(
            f"{unknown[0]}={options[unknown[0]]!r} is no option of {name!r}, which takes "
            f"{', '.join(known_options) or 'none'}."
        )
    return loader(**options) if name == "digits" else loader(root, **options)
