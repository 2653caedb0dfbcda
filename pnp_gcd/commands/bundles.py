"""The folder that ``discover`` writes: a model, how its items are read, and what was found.

Knows the names of files in it: no classes, no arguments.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pnp_gcd.commands.items import Items, embed_items, read_items
from pnp_gcd.commands.outputs import check_parent
from pnp_gcd.commands.recipes import Recipe, read_recipe
from pnp_gcd.datasets.tables import UNREADABLE
from pnp_gcd.model_files import FILE_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.text_features import WordFeatures

__all__ = [
    "ASSIGNMENTS",
    "INPUTS",
    "MODEL",
    "PIECES",
    "REPORT",
    "SORTED",
    "WORDS",
    "Bundle",
    "check_folder",
    "check_model",
    "open_bundle",
]

MODEL, INPUTS, WORDS = "model", "inputs.json", "words.npz"
ASSIGNMENTS, REPORT, SORTED = "assignments.csv", "report.html", "sorted"
PIECES = (MODEL, INPUTS, WORDS, ASSIGNMENTS, REPORT, SORTED)


@dataclass(frozen=True)
class Bundle:
    """A model, and what is known of its items.

    Parameters
    ----------
    folder : Path or None
        That ``discover`` wrote; None for a model that was saved from Python.
    model_path : Path
        Of the model itself.
    model : PNPDiscoverer
    recipe : Recipe
    """

    folder: Path | None
    model_path: Path
    model: PNPDiscoverer
    recipe: Recipe

    def read(self, sources: Sequence[Path], *, id_column: str | None = None, verbose: int = 0) -> Items:
        """Read items as the model needs them."""
        items = read_items(sources, self.recipe, id_column=id_column, is_kept=True)
        embedder = self.recipe.embedder
        if embedder not in (None, "tfidf") and not os.path.isdir(embedder):
            raise FileNotFoundError(
                f"the texts of {str(self.folder)!r} were embedded by {embedder!r}, which is not there any "
                f"more. Put it back, or write its new place into {INPUTS}."
            )
        words = self._read_words() if embedder == "tfidf" else None
        items = embed_items(items, words=words, device=self.model.device, verbose=verbose)
        self._check_width(items, sources[0])
        return items

    def _read_words(self) -> WordFeatures:
        assert self.folder is not None
        return read_words(self.folder / WORDS)

    def _check_width(self, items: Items, source: Path) -> None:
        if items.recipe.kind == "images":
            return
        width, expected = items.rows.shape[-1], self.model.n_features_in_
        if width != expected:
            raise ValueError(
                f"{str(source)!r} has {width} columns of features, but the model in {str(self.model_path)!r} "
                f"was fitted on {expected}. Pass items that were embedded alike."
            )


def open_bundle(path: Path) -> Bundle:
    """Load a model from the folder that ``discover`` wrote, or that ``PNPDiscoverer.save`` did.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Bundle
    """
    from pnp_gcd import PNPDiscoverer

    if not path.is_dir():
        what = "a file" if path.is_file() else "not there"
        raise FileNotFoundError(f"MODEL {str(path)!r} is {what}. Pass the --out folder of pnp-gcd discover.")
    if path.name == MODEL and (path.parent / INPUTS).is_file():
        path = path.parent
    if (path / INPUTS).exists():
        recipe = read_recipe(path / INPUTS)
        return Bundle(path, path / MODEL, PNPDiscoverer.load(path / MODEL), recipe)
    model = PNPDiscoverer.load(path)
    columns = None
    if hasattr(model, "feature_names_in_"):
        columns = tuple(model.feature_names_in_.tolist())
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # taken by name
    kind = Recipe("images") if model.backbone is not None else Recipe("embeddings", columns=columns)
    return Bundle(None, path, model, kind)


def check_folder(out: Path, *, force: bool) -> None:
    """Refuse a folder that cannot be written, or whose files might be lost.

    Parameters
    ----------
    out : Path
    force : bool
        Whether what ``discover`` wrote may be replaced.
    """
    if out.is_file():
        raise FileExistsError(f"--out {str(out)!r} is a file. Name a folder.")
    if out.is_dir() and any(out.iterdir()):
        if not force:
            raise FileExistsError(
                f"--out {str(out)!r} is there already, and not empty. Name another folder, or pass --force."
            )
        if not (out / INPUTS).is_file():
            raise FileExistsError(
                f"--out {str(out)!r} was not written by discover: it has no {INPUTS}. Name another folder; "
                "--force replaces only what discover wrote."
            )
        check_model(out)
    check_parent(out, "--out")


def check_model(folder: Path) -> None:
    """Refuse to replace a model in whose folder lies something else, which would be lost.

    Parameters
    ----------
    folder : Path
        That ``discover`` wrote.
    """
    model = folder / MODEL
    foreign = sorted(set(os.listdir(model)) - set(FILE_NAMES)) if model.is_dir() else []
    if foreign:
        raise FileExistsError(
            f"{str(model)!r} holds {', '.join(foreign[:3])}, which no command wrote there and which would be "
            "lost. Move it away, or name another folder: --out."
        )


def read_words(path: Path) -> WordFeatures:
    """Read the words that texts are weighed by."""
    from pnp_gcd.text_features import WordFeatures

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return WordFeatures.from_arrays({name: arrays[name] for name in arrays.files})
    except UNREADABLE as error:
        raise ValueError(
            f"{str(path)!r} cannot be read: {error}. Put the file back that discover wrote, or run it again."
        ) from error


def write_words(words: WordFeatures, path: Path) -> None:
    """Write the words that texts are weighed by."""
    arrays: dict[str, Any] = words.to_arrays()
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
