"""What ``rename`` and ``merge`` share: classes by their text, and a folder that is changed as a whole.

Knows a model's classes and folder: no items.
"""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pnp_gcd.commands.assignments import COLUMNS, rewrite_classes
from pnp_gcd.commands.bundles import (
    ASSIGNMENTS,
    INPUTS,
    MODEL,
    PIECES,
    REPORT,
    WORDS,
    Bundle,
    check_folder,
    check_model,
)
from pnp_gcd.commands.cells import to_csv
from pnp_gcd.commands.label_files import is_integer
from pnp_gcd.commands.outputs import StagedFolder

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer

__all__ = ["Saved", "find_class", "merge_group", "read_names", "save_curated", "tell_saved"]

_BACKBONE = "backbone.safetensors"


class Saved(NamedTuple):
    """What was written.

    Attributes
    ----------
    path : Path
        Folder of the model.
    n_items : int or None
        Rows of its assignments.csv whose class has another name now; None without such a file.
    has_old_report : bool
        Whether the folder's page still shows the names of before.
    """

    path: Path
    n_items: int | None
    has_old_report: bool


def find_class(model: PNPDiscoverer, text: str) -> Any:
    """Return the class that is written so.

    Parameters
    ----------
    model : PNPDiscoverer
    text : str

    Returns
    -------
    object
    """
    names = {str(value): value for value in model.classes_.tolist()}
    if text not in names:
        close = difflib.get_close_matches(text, names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "The column class of assignments.csv lists them."
        some = ", ".join(map(repr, list(names)[:8])) + (", …" if len(names) > 8 else "")
        raise ValueError(f"{text!r} is no class of the model, which has {some}. {hint}")
    return names[text]


def read_names(model: PNPDiscoverer, texts: Sequence[str]) -> list[Any]:
    """Return new names as the model's classes are written: as integers if they are, and all names can be.

    Else the model's classes become texts too, all of them, so that they can be sorted together; that
    confirms none of them.

    Parameters
    ----------
    model : PNPDiscoverer
    texts : sequence of str

    Returns
    -------
    list
    """
    texts = [text.strip() for text in texts]
    if "" in texts:
        raise ValueError("a class is given an empty name. Write one behind the =.")
    classes = model.classes_.tolist()
    if all(isinstance(value, str) for value in classes):
        return list(texts)
    if model.classes_.dtype.kind in "iu" and all(map(is_integer, texts)):
        return [int(text) for text in texts]
    model.rename_classes({value: str(value) for value in classes})
    return list(texts)


def merge_group(model: PNPDiscoverer, group: Sequence[Any], name: Any = None) -> Any:
    """Make one class of a group, and return what it is called.

    Parameters
    ----------
    model : PNPDiscoverer
        Changed in place.
    group : sequence
        Of classes.
    name : object or None
        Of the one class; None leaves it to the model.

    Returns
    -------
    object
    """
    others = set(model.classes_.tolist()) - set(group)
    model.merge_classes([list(group)], names=None if name is None else [name])
    (left,) = set(model.classes_.tolist()) - others
    return left


def save_curated(bundle: Bundle, names: Mapping[str, str], out: Path | None, *, force: bool) -> Saved:
    """Write the model whose classes were renamed or merged, and its assignments with it.

    Parameters
    ----------
    bundle : Bundle
    names : mapping
        From text to text: what the classes are called now.
    out : Path or None
        Folder to write; None replaces the pieces of the bundle's own.
    force : bool
        Whether pieces of ``out`` may be replaced.

    Returns
    -------
    Saved
    """
    model = bundle.model
    has_backbone = (bundle.model_path / _BACKBONE).exists()
    if bundle.folder is None:  # a model alone, saved from Python
        target = bundle.model_path if out is None else out
        model.save(target, include_backbone=has_backbone, overwrite=force or out is None)
        return Saved(target, None, False)
    if out is not None:
        check_folder(out, force=force)
    else:
        check_model(bundle.folder)
    target = bundle.folder if out is None else out
    with StagedFolder(target) as staged:
        model.save(staged.path / MODEL, include_backbone=has_backbone)
        n_items = _write_assignments(bundle, names, staged.path)
        if out is not None:
            for name in (INPUTS, WORDS):
                if (bundle.folder / name).exists():
                    shutil.copyfile(bundle.folder / name, staged.path / name)
        staged.commit(remove=() if out is None else PIECES)
    return Saved(target, n_items, (target / REPORT).exists())


def _write_assignments(bundle: Bundle, names: Mapping[str, str], folder: Path) -> int | None:
    assert bundle.folder is not None
    old = bundle.folder / ASSIGNMENTS
    if not old.exists():
        return None
    known = {str(value) for value in bundle.model.known_classes_.tolist()}
    before = rewrite_classes(old, lambda name: name, known.__contains__)
    rows = rewrite_classes(old, lambda name: names.get(name, name), known.__contains__)
    (folder / ASSIGNMENTS).write_text(to_csv(COLUMNS, rows), encoding="utf-8", newline="")
    return sum(new[1] != was[1] for new, was in zip(rows, before, strict=True))


def tell_saved(saved: Saved, record: dict[str, Any], *, as_json: bool) -> str:
    """Return what is printed: what was done, and what is left to do.

    Parameters
    ----------
    saved : Saved
    record : dict
        What was done.
    as_json : bool

    Returns
    -------
    str
    """
    record = {"model": str(saved.path), **record, "items": saved.n_items}
    if as_json:
        return json.dumps(record, indent=2, ensure_ascii=False)
    lines = [f"{old} is now {new}" for old, new in record["renamed"].items() if old != new]
    if saved.n_items is None:
        lines.append(f"Written to {saved.path}: {MODEL}")
    else:
        lines.append(
            f"Written to {saved.path}: {MODEL}, {ASSIGNMENTS} ({saved.n_items} items under another name)"
        )
    if saved.has_old_report:
        page = saved.path / REPORT
        lines.append(
            f"{page} shows the names of before: pnp-gcd report {saved.path} ITEMS --out {page} --force"
        )
    return "\n".join(lines)
