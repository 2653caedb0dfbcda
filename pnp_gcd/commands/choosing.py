"""Turn the arguments of ``discover`` into a recipe for items and parameters of the estimator.

Knows arguments: no files are read here, except to see whether a folder is there.
"""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any

from pnp_gcd.commands.arguments import UsageError
from pnp_gcd.commands.recipes import Recipe

__all__ = ["DEFAULT_BACKBONE", "DEFAULT_IMAGE_SIZE", "choose_parameters", "choose_recipe"]

DEFAULT_BACKBONE = "vit_small_patch14_dinov2.lvd142m"
DEFAULT_IMAGE_SIZE = 126  # its own 518 pixels would take twenty times as long

# Parameters that have an option of their own, or that would break what the command promises.
_OPTIONS = {
    "n_clusters": "--n-clusters",
    "random_state": "--seed",
    "verbose": "--progress or --quiet",
    "on_interrupt": "--keep-on-interrupt",
    "backbone": "--backbone",
    "backbone_weights": "--backbone-weights",
    "image_size": "--image-size",
    "missing_label": "empty cells in --labels",
}


def choose_recipe(arguments: argparse.Namespace) -> Recipe:
    """Return how items are to be read; options that do not go together raise a UsageError.

    Parameters
    ----------
    arguments : Namespace

    Returns
    -------
    Recipe
        Its columns are still to be found if none were named.
    """
    kind, given = _name_kind(arguments), vars(arguments)
    allowed = {
        "images": {"backbone", "backbone_weights", "image_size", "sort_images"},
        "texts": {"text_column", "embedder"},
        "table": {"features"},
        "embeddings": {"features"},
    }[kind]
    for name in (
        "backbone",
        "backbone_weights",
        "image_size",
        "sort_images",
        "text_column",
        "embedder",
        "features",
    ):
        if given[name] is not None and name not in allowed:
            raise UsageError(f"--{name.replace('_', '-')} has nothing to do with {kind}. Leave it away.")
    _check_labels(arguments)
    if kind != "texts":
        return Recipe(kind, id_column=arguments.id_column, columns=_read_columns(arguments))
    return Recipe(kind, text_column=arguments.text_column, embedder=_choose_embedder(arguments.embedder))


def choose_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of ``PNPDiscoverer`` that the arguments ask for.

    Parameters
    ----------
    arguments : Namespace

    Returns
    -------
    dict
    """
    from pnp_gcd import PNPDiscoverer

    parameters: dict[str, Any] = {"random_state": arguments.seed, "n_clusters": arguments.n_clusters}
    parameters["on_interrupt"] = "keep" if arguments.keep_on_interrupt else "raise"
    if arguments.images is not None:
        is_default = arguments.backbone is None
        size = arguments.image_size
        weights = arguments.backbone_weights or "auto"
        if weights not in ("auto", "none") and not Path(weights).is_file():
            raise UsageError(
                f"--backbone-weights {weights!r} is no file. Pass one of .pth or .safetensors, or none."
            )
        parameters |= {
            "backbone": DEFAULT_BACKBONE if is_default else arguments.backbone,
            "backbone_weights": None if weights == "none" else weights,
            "image_size": DEFAULT_IMAGE_SIZE if is_default and size is None else size,
        }
    known = PNPDiscoverer().get_params()
    for name, value in arguments.set or ():
        if name in _OPTIONS:
            raise UsageError(f"--set {name}={value} is not for --set. Use {_OPTIONS[name]}.")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else "docs/api.md lists them."
            raise UsageError(f"--set {name}={value}: PNPDiscoverer has no parameter {name!r}. {hint}")
        parameters[name] = value
    return parameters


def _name_kind(arguments: argparse.Namespace) -> Any:
    if arguments.images is not None:
        return "images"
    if arguments.embeddings is not None:
        return "embeddings"
    if (arguments.text_column is None) == (arguments.features is None):
        raise UsageError(
            f"--table {str(arguments.table)!r} needs to be told what to read: --text-column NAME for texts, "
            "or --features NAMES for columns of numbers."
        )
    return "texts" if arguments.text_column is not None else "table"


def _check_labels(arguments: argparse.Namespace) -> None:
    is_folders = arguments.labels == "folders"
    if is_folders and arguments.images is None:
        raise UsageError('--labels folders is for --images. Pass a table with the columns "id" and "label".')
    source = arguments.embeddings or arguments.table
    has_column = source is not None and source.suffix.lower() not in (".npy", ".npz")
    if arguments.labels is None and (arguments.label_column is None or not has_column):
        raise UsageError(
            "no labels are given. Pass --labels FILE, a table with the columns id and label"
            + (", or --labels folders." if arguments.images is not None else ".")
            + (" If they are a column of the items' own table: --label-column NAME." if has_column else "")
        )


def _read_columns(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    if arguments.features is None:
        return None
    names = tuple(name.strip() for name in arguments.features.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--features {arguments.features!r} must be names that differ, with commas between.")
    return names


def _choose_embedder(name: str | None) -> str:
    if name is None:
        raise UsageError(
            "texts need --embedder: tfidf, which needs nothing, or the folder of a sentence-transformers "
            "model, "
            'which knows meanings and needs pip install "pnp-gcd[texts]".'
        )
    if name == "tfidf":
        return name
    if not Path(name).is_dir():
        raise UsageError(
            f"--embedder {name!r} is neither tfidf nor a folder. Save a sentence-transformers model once "
            "(SentenceTransformer(NAME).save(FOLDER)) and pass its folder; nothing is downloaded here."
        )
    return str(Path(name).resolve())
