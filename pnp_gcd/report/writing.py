"""``write_report``: findings and assets to one file that needs nothing else.

Knows files and markup: what the page says is in ``assets``, what it is told comes from ``packing``.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pnp_gcd.atomic_files import replace_file
from pnp_gcd.report.gathering import check_model, gather_findings
from pnp_gcd.report.items import read_items
from pnp_gcd.report.judging import read_given
from pnp_gcd.report.packing import pack_findings, to_safe_json

if TYPE_CHECKING:
    from pnp_gcd.fitted import Inspection

__all__ = ["write_report"]

# In the order in which they build on each other.
_SCRIPTS = (
    "base.js",
    "names.js",
    "camera.js",
    "painting.js",
    "pointing.js",
    "map.js",
    "legend.js",
    "card.js",
    "cards.js",
    "tables.js",
    "charts.js",
    "truth.js",
    "main.js",
)
_TITLE = "What was found"
_LONGEST_TITLE = 200


def write_report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    items: Any = None,
    truth: Any = None,
    given: Any = None,
    overwrite: bool = False,
    title: str | None = None,
    random_state: int | np.random.RandomState | None = 0,
    inspection: Inspection | None = None,
) -> Path:
    """Write one HTML page that shows what a fitted model found in rows.

    The page opens in any browser, without a server or a network: a map of all rows, a card for each
    class with its most typical and most doubtful items, rows worth a label next, and how the model was
    fitted. A person can name classes on it, mark some as the same, and save that as ``names.json`` for
    :func:`read_names`. See :doc:`the guide </report>`.

    Parameters
    ----------
    model : fitted PNPDiscoverer
    X : array-like of shape (n_rows, n_features), or images
        Rows to show, usually the pool.
    path : str or path
        The file to write; its folder must exist.
    items : None, sequence of texts, images or data frame, default=None
        What each row of X is to a person: texts; pictures as paths, PIL images or an array (n, height,
        width) or (n, height, width, 3) of uint8, or floats from 0 to 1; columns of a table; or ids. None
        takes X itself where it holds images, and numbers the rows otherwise.
    truth : array-like of shape (n_rows,) or None, default=None
        True classes, where they are known, to score what was found; gaps as in y of ``fit``.
        Rows that were ``given`` a label are left out of all scores.
    given : array-like of shape (n_rows,) or None, default=None
        The label that each row had in ``fit``, where X holds labelled rows too; gaps as in y of ``fit``. Such
        a row is shown under that class, with the probability of that class, is never unsure, and is never
        worth a label next. Labels are those of ``classes_``.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.
    title : str or None, default=None
        Heading of the page.
    random_state : int, RandomState or None, default=0
        Draws the map.
    inspection : Inspection or None, default=None
        What ``model.inspect(X)`` has said already; of images it need not be asked twice.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pnp_gcd import PNPDiscoverer
    >>> from pnp_gcd.datasets import load_digits_split
    >>> from pnp_gcd.report import write_report
    >>> split = load_digits_split(random_state=0)
    >>> model = PNPDiscoverer(max_iter=0, random_state=0)
    >>> model = model.fit(split.X_labelled, split.y_labelled, split.X_unlabelled)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, split.X_unlabelled, f"{folder}/digits.html", truth=split.y_unlabelled).name
    'digits.html'
    """
    target = _check_target(path, overwrite)
    heading = _check_title(title)
    check_model(model)
    if items is None and getattr(model, "backbone", None) is not None:
        items = X
    n_rows = _count_rows(X)
    _check_length(truth, n_rows, "truth")
    _check_length(given, n_rows, "given")
    given_codes = None if given is None else read_given(model, given)
    shown = read_items(items, n_rows)
    seen = model.inspect(X) if inspection is None else inspection
    findings = gather_findings(model, seen, shown, truth=truth, given=given_codes, random_state=random_state)
    page = assemble_page(to_safe_json(pack_findings(findings, shown, title=heading)), title=heading)
    _write_whole(target, page.encode("utf-8"), overwrite=overwrite)
    return target


def _check_target(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Refuse a path that cannot be written to before any work is done."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"path={str(target)!r} is a folder. Pass a file in it, such as report.html.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(target)!r} lies in the folder {str(target.parent)!r}, which does not exist. "
            "Make it first, or choose another."
        )
    if target.exists() and not overwrite:
        raise _there_already(target)
    return target


def _there_already(target: Path) -> FileExistsError:
    return FileExistsError(
        f"path={str(target)!r} is there already. Pass overwrite=True to replace it, or another path."
    )


def _check_title(title: str | None) -> str:
    if title is None:
        return _TITLE
    if not isinstance(title, str):
        raise TypeError(f"title={title!r} must be a text or None, got {type(title).__name__}.")
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"


def _count_rows(X: Any) -> int:
    """Return the number of rows of X before the model has seen them: what does not fit is told at once."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    if not hasattr(X, "__len__"):
        raise TypeError(f"X is a {type(X).__name__}, which has no number of rows. Pass an array or a list.")
    return len(X)


def _check_length(labels: Any, n_rows: int, name: str) -> None:
    if labels is not None and len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} entries, but X has {n_rows} rows. Pass one class for each row, "
            "in order, and None where it is not known."
        )


def assemble_page(data: str, *, title: str) -> str:
    """Put style, scripts and data into the page; only these very scripts and styles may run in it."""
    style = _read_asset("page.css")
    script = "'use strict';\n(() => {\n" + "\n".join(map(_read_asset, _SCRIPTS)) + "\n})();\n"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        "style": style,
        "data": data,
        "script": script,
    }
    page = _read_asset("page.html")
    pieces = page.split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _read_asset(name: str) -> str:
    text = resources.files("pnp_gcd.report").joinpath("assets", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _write_whole(target: Path, content: bytes, *, overwrite: bool) -> None:
    """Put the page in its place at once, so that no half of it is ever seen."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)
        if target.exists() and not overwrite:  # another has written it meanwhile
            raise _there_already(target)

    replace_file(target, write)
