"""Read items: images of a folder, texts of a table, embeddings of an array or a table.

Knows files and their names: no labels, no model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.commands.cells import restore_cell
from pnp_gcd.commands.recipes import Recipe
from pnp_gcd.commands.tables import DataTable, open_table
from pnp_gcd.datasets.folders import list_images
from pnp_gcd.datasets.tables import UNREADABLE

__all__ = ["Items", "embed_items", "read_items"]

_ARRAY_SUFFIXES = (".npy", ".npz")


@dataclass(frozen=True)
class Items:
    """Items as they were read.

    Parameters
    ----------
    ids : list of str
        No two alike.
    rows : array or list
        Paths of images, texts, or features: (n_items, n_columns) or (n_items, n_views, n_columns).
    shown : object
        What a report shows of them, see ``write_report``.
    recipe : Recipe
        As given, with the columns that were found.
    """

    ids: list[str]
    rows: Any
    shown: Any
    recipe: Recipe


def read_items(
    sources: Sequence[Path],
    recipe: Recipe,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    is_kept: bool = False,
) -> Items:
    """Read items of the kind that a recipe tells.

    Parameters
    ----------
    sources : sequence of Path
        A folder or several files of images; else one file, or "-" for a table from standard input.
    recipe : Recipe
        Its ``id_column`` serves if it is there; without one, rows are numbered from 0.
    id_column : str or None, default=None
        One that has to be there.
    label_column : str or None, default=None
        Column that is no feature, even if it holds numbers.
    is_kept : bool, default=False
        Whether the recipe was kept beside a model, so that no option can change it.

    Returns
    -------
    Items
        Texts are not embedded yet.
    """
    if recipe.kind == "images":
        return _read_images(sources, recipe)
    if len(sources) > 1:
        raise ValueError(
            f"{len(sources)} files of items were named, but {recipe.kind} come from one. Join them."
        )
    path = sources[0]
    if recipe.kind == "embeddings" and path.suffix.lower() in _ARRAY_SUFFIXES:
        return _read_arrays(path, recipe, id_column)
    table = open_table(path)
    if id_column is not None:
        table.check(id_column, "--id-column")
    else:
        wanted = recipe.id_column or "id"
        id_column = wanted if wanted in table.names else None
    cells = table.texts(id_column) if id_column is not None else None
    ids = _name_rows(cells, table.n_rows, path, table)
    recipe = replace(recipe, id_column=id_column)
    if recipe.text_column is not None:
        _check_column(table, recipe.text_column, "--text-column", is_kept)
        texts = table.texts(recipe.text_column)
        return Items(ids, texts, texts, recipe)
    for name in recipe.columns or ():
        _check_column(table, name, "--features", is_kept)
    return _read_vectors(table, ids, recipe, label_column)


def embed_items(items: Items, *, words: Any = None, device: str = "auto", verbose: int = 0) -> Items:
    """Turn texts into features; other items pass as they are.

    Parameters
    ----------
    items : Items
    words : WordFeatures or None
        For the embedder "tfidf".
    device, verbose
        For sentence models.

    Returns
    -------
    Items
    """
    if items.recipe.kind != "texts":
        return items
    if items.recipe.embedder == "tfidf":
        return replace(items, rows=words.transform(items.rows))
    from pnp_gcd.text_features import embed_sentences

    rows = embed_sentences(items.rows, str(items.recipe.embedder), device=device, verbose=verbose)
    return replace(items, rows=rows)


def _read_images(sources: Sequence[Path], recipe: Recipe) -> Items:
    """List images by their paths below a folder, or as they were named."""
    if len(sources) == 1 and sources[0].is_dir():
        root = sources[0]
        paths = list_images(root)
        if not paths:
            raise ValueError(f"{str(root)!r} has no image in it, by their endings. Name a folder that has.")
        ids = [Path(os.path.relpath(path, root)).as_posix() for path in paths]
    else:
        for source in sources:
            if not source.is_file():
                what = "a folder beside other items" if source.is_dir() else "neither a folder nor a file"
                raise FileNotFoundError(f"{str(source)!r} is {what}. Pass one folder of images, or files.")
        paths = [str(source) for source in sources]
        ids = [source.as_posix() for source in sources]
    for name in ids:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the file name {os.fsencode(name)!r} is no UTF-8. Rename the file.") from None
    _check_differ(ids, lambda row: f"place {row + 1} of the items")
    return Items(ids, np.array(paths), paths, recipe)


def _read_arrays(path: Path, recipe: Recipe, id_column: str | None) -> Items:
    arrays = _load_arrays(path)
    X = arrays.get("X")
    if X is None:
        others = [name for name in arrays if name not in (id_column, recipe.id_column, "id")]
        if len(others) != 1:
            raise ValueError(
                f"{str(path)!r} has the arrays {sorted(arrays)}, of which none is called X. Write the "
                "embeddings as X."
            )
        X = arrays[others[0]]
    if X.ndim not in (2, 3) or X.dtype.kind not in "fiu" or 0 in X.shape:
        raise ValueError(
            f"{str(path)!r} holds an array of the shape {X.shape} and type {X.dtype}. Write numbers of the "
            "shape (n_items, n_columns), or (n_items, n_views, n_columns)."
        )
    X = X.astype(np.float32) if X.dtype == np.float16 else X  # half precision is for disks
    bad = np.flatnonzero(~np.isfinite(X).reshape(len(X), -1).all(axis=1))
    if len(bad):
        raise ValueError(f"{str(path)!r} has no finite numbers in row {bad[0]}. Mend or remove the row.")
    if id_column is not None and id_column not in arrays:
        raise ValueError(
            f"--id-column {id_column!r} is no array of {str(path)!r}, which has {sorted(arrays)}. Leave it "
            "away to number rows from 0."
        )
    name = id_column or recipe.id_column or "id"
    cells = [str(value) for value in arrays[name].tolist()] if name in arrays else None
    if cells is not None and len(cells) != len(X):
        raise ValueError(
            f"{str(path)!r} has {len(cells)} ids in {name!r} for {len(X)} rows. Write one for each."
        )
    ids = _name_rows(cells, len(X), path, None)
    recipe = replace(recipe, id_column=name if cells is not None else None)
    return Items(ids, X, None if cells is None else ids, recipe)


def _load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read arrays; nothing in the file is executed."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise FileNotFoundError(
            f"{str(path)!r} is {what}. Pass an array that ends in .npy or .npz, or a table."
        )
    if not path.stat().st_size:
        raise ValueError(f"{str(path)!r} is empty. Write it with np.save or np.savez.")
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return {"X": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except UNREADABLE as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as an array: {error}. Write it with np.save or np.savez, without "
            "arrays of objects."
        ) from error


def _check_column(table: DataTable, name: str, option: str, is_kept: bool) -> None:
    if is_kept:
        table.check(name, advice="The model was made with a column of this name: rename yours in the table.")
    else:
        table.check(name, option)


def _read_vectors(table: DataTable, ids: list[str], recipe: Recipe, label_column: str | None) -> Items:
    columns = recipe.columns
    if columns is None:
        columns = tuple(table.numeric_names([recipe.id_column, label_column]))
        if not columns:
            raise ValueError(
                f"{str(table.path)!r} has no column of numbers, but {table.names[:8]}. Write embeddings into "
                "columns, or name the column of texts: --table FILE --text-column NAME."
            )
    rows = table.numbers(columns)
    if recipe.kind == "table":
        shown: Any = {name: table.texts(name) for name in table.names}
    else:
        shown = None if recipe.id_column is None else ids
    return Items(ids, rows, shown, replace(recipe, columns=tuple(columns)))


def _name_rows(cells: list[str] | None, n_rows: int, path: Path, table: DataTable | None) -> list[str]:
    if cells is None:
        return [str(row) for row in range(n_rows)]
    ids = [restore_cell(cell) for cell in cells]

    def place(row: int) -> str:
        return f"{str(path)!r}, {table.line(row) if table is not None else f'row {row}'}"

    if "" in ids:
        raise ValueError(
            f"{place(ids.index(''))}, has no id. Give every row one, or name another --id-column."
        )
    _check_differ(ids, place)
    return ids


def _check_differ(ids: list[str], place: Any) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in first:
            raise ValueError(
                f"the id {name!r} occurs twice: {place(first[name])}, and {place(row)}. Every item needs its "
                "own."
            )
        first[name] = row
