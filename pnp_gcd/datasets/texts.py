"""Questions and their intents: BANKING77, CLINC150, StackOverflow.

Knows tables of texts: no embedding, no estimator.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.layouts import Layout, Part, find_folder
from pnp_gcd.datasets.tables import make_text_array, read_table

__all__ = ["load_banking77", "load_clinc150", "load_stackoverflow"]


def load_banking77(
    root: str | os.PathLike[str], *, join_dev: bool = False, partial: bool = False
) -> DiscoveryDataset:
    """Load BANKING77: 13,083 questions of bank customers, of 77 intents.

    Parameters
    ----------
    root : str or path
        The folder of ``train.tsv``, ``test.tsv`` and perhaps ``dev.tsv``, each with the columns ``text`` and
        ``label``; or the one that holds it as ``banking`` or ``banking77``.
    join_dev : bool, default=False
        Let the rows of ``dev.tsv`` join those of ``train.tsv``. By default they stay out.
    partial : bool, default=False
        Take a copy of which rows are missing.

    Returns
    -------
    DiscoveryDataset
        Texts; which classes are known is drawn.
    """
    return _load("banking77", "BANKING77", root, ("banking", "banking77"), (77, 13_083), join_dev, partial)


def load_clinc150(
    root: str | os.PathLike[str], *, join_dev: bool = False, partial: bool = False
) -> DiscoveryDataset:
    """Load CLINC150: 22,500 requests to an assistant, of 150 intents; without those out of scope.

    Parameters
    ----------
    root : str or path
        The folder of ``train.tsv``, ``test.tsv`` and perhaps ``dev.tsv``, each with the columns ``text`` and
        ``label``; or the one that holds it as ``clinc`` or ``clinc150``. Rows with the label ``oos`` are left
        out.
    join_dev, partial
        As for `load_banking77`.

    Returns
    -------
    DiscoveryDataset
        Texts; which classes are known is drawn.
    """
    return _load("clinc150", "CLINC150", root, ("clinc", "clinc150"), (150, 22_500), join_dev, partial)


def load_stackoverflow(
    root: str | os.PathLike[str], *, join_dev: bool = False, partial: bool = False
) -> DiscoveryDataset:
    """Load StackOverflow: 20,000 titles of questions, of 20 tags.

    Parameters
    ----------
    root : str or path
        The folder of ``train.tsv``, ``test.tsv`` and perhaps ``dev.tsv``, each with the columns ``text`` and
        ``label``; or the one that holds it as ``stackoverflow``.
    join_dev, partial
        As for `load_banking77`.

    Returns
    -------
    DiscoveryDataset
        Texts; which classes are known is drawn.
    """
    return _load("stackoverflow", "StackOverflow", root, ("stackoverflow",), (20, 20_000), join_dev, partial)


def _load(
    name: str,
    title: str,
    root: str | os.PathLike[str],
    folders: tuple[str, ...],
    expected: tuple[int, int],
    join_dev: bool,
    partial: bool,
) -> DiscoveryDataset:
    drawing = ("train.tsv, test.tsv, perhaps dev.tsv: a line «text<TAB>label», then one for each row",)
    folder = find_folder(root, Layout(title, folders, ("train.tsv", "test.tsv"), drawing))
    train, test = _read_part(folder / "train.tsv"), _read_part(folder / "test.tsv")
    has_dev = (folder / "dev.tsv").is_file()
    dev = _read_part(folder / "dev.tsv") if has_dev else Part(train.X[:0], train.y[:0])
    if join_dev and not has_dev:
        raise FileNotFoundError(
            f"join_dev=True needs {str(folder / 'dev.tsv')!r}, which is missing. Leave join_dev out."
        )
    classes = np.unique(np.concatenate([train.y, dev.y, test.y]))
    found = (len(classes), len(train.y) + len(dev.y) + len(test.y))
    if found != expected and not partial:
        raise ValueError(
            f"root={str(root)!r} has {found[1]} rows of {found[0]} classes in all files of {title}, but "
            f"{expected[1]} of {expected[0]} are published. Complete the copy, or pass partial=True to take "
            "what is there: results are then not comparable."
        )
    if join_dev:
        texts = train.X.tolist() + dev.X.tolist()
        train = Part(make_text_array(texts), np.concatenate([train.y, dev.y]))
    return DiscoveryDataset(name, "texts", *train, *test, classes=classes)


def _read_part(path: Path) -> Part:
    """Read a table; quotes are those of CSV, or, where they cannot be, part of the texts."""
    try:
        table = read_table(path)
    except ValueError as error:
        if not isinstance(error.__cause__, csv.Error):
            raise
        table = read_table(path, has_quotes=False)
    rows = zip(table.column("text", "text"), table.column("label", "label"), strict=True)
    kept = [(text, label) for text, label in rows if label != "oos"]
    return Part(make_text_array([text for text, _ in kept]), np.array([label for _, label in kept], np.str_))
