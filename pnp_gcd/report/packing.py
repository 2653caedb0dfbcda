"""Findings as the JSON that a page reads: rows as typed arrays, items while they fit.

Knows plain data: no model, no file, no markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.report.gathering import FAR_BELOW, SAME_FROM, UNSURE_BELOW, ClassFinding, Findings
from pnp_gcd.report.items import Items
from pnp_gcd.report.judging import Verdict
from pnp_gcd.report.thumbnails import make_sheets, make_thumbnails

__all__ = ["pack_findings", "to_safe_json"]

# Characters that items of all rows, pictures on cards and pictures of the map may need.
_TEXT_BUDGET = 12_000_000
_THUMBNAIL_BUDGET = 6_000_000
_SHEET_BUDGET = 3_000_000
# Characters of one item: on a card, and in the list of all rows at most and at least.
_LONGEST_SHOWN = 600
_LENGTHS = (300, 160, 80, 40)
_N_COLUMNS = 8
_LONGEST_CELL = 120
_LONGEST_LABEL = 300
# Pictures that are opened for the map's sheets at most: to open one takes milliseconds.
_MOST_TILES = 4096
_STEPS = 65535
_CELL_MARK = "\x1f"


def pack_findings(findings: Findings, items: Items, *, title: str) -> dict[str, Any]:
    """Return what the page reads, as values that JSON has.

    Parameters
    ----------
    findings : Findings
    items : Items
    title : str

    Returns
    -------
    dict
    """
    rows = findings.rows
    shown = _list_shown(findings)
    classes = [_pack_class(finding) for finding in findings.classes]
    return {
        "title": title,
        "digest": _digest(classes),
        "nRows": len(rows.codes),
        "limits": {"unsure": UNSURE_BELOW, "far": FAR_BELOW, "same": SAME_FROM},
        "interval": list(findings.interval),
        "nAsked": findings.n_asked,
        "rows": {
            "x": _pack_steps(rows.places[:, 0], -1.0, 1.0),
            "y": _pack_steps(rows.places[:, 1], -1.0, 1.0),
            "code": _pack_codes(rows.codes),
            "second": _pack_codes(rows.seconds),
            "p": _pack_steps(rows.probability, 0.0, 1.0, limit=UNSURE_BELOW),
            "p2": _pack_steps(rows.second_probability, 0.0, 1.0),
            "typicality": _pack_steps(rows.typicality, 0.0, 1.0, limit=FAR_BELOW),
        },
        "given": _pack_flags(rows.is_given) if rows.is_given.any() else None,
        "classes": classes,
        "doubtful": list(findings.doubtful),
        "items": _pack_items(items, shown),
        "pictures": _pack_pictures(items, shown, len(rows.codes)),
        "history": _pack_table(findings.history),
        "calibration": _pack_table(findings.calibration),
        "truth": None if findings.verdict is None else _pack_verdict(findings.verdict),
    }


def to_safe_json(content: Any) -> str:
    r"""Return JSON that is text to an HTML parser, whatever strings it holds, and can be written as UTF-8.

    Examples
    --------
    >>> from pnp_gcd.report.packing import to_safe_json
    >>> print(to_safe_json(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Markup, the two line ends that JavaScript knows and JSON does not, halves of surrogate pairs, and
    # characters that HTML parsers replace.
    return re.sub(
        "[<>&\u2028\u2029\ud800-\udfff\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ufeff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        text,
    )


def _digest(classes: list[dict[str, Any]]) -> str:
    """Return what the page knows its own classes by, when a browser has kept names for several pages."""
    return hashlib.sha256(to_safe_json(classes).encode("utf-8")).hexdigest()[:16]


def _pack_steps(
    values: NDArray[Any], low: float, high: float, *, limit: float | None = None
) -> dict[str, Any]:
    """Pack numbers in steps of a 65,535th of their range; 0 where there is none.

    Rounding takes no number to the other side of ``limit``: the page counts what lies below it.
    """
    filled = np.nan_to_num(values.astype(np.float64), nan=low)
    steps = np.rint((np.clip(filled, low, high) - low) / (high - low) * _STEPS)
    if limit is not None:
        first = np.ceil((limit - low) / (high - low) * _STEPS)
        steps = np.where(filled < limit, np.minimum(steps, first - 1), np.maximum(steps, first))
    return {"type": "u2", "data": _to_base64(steps.astype("<u2"))}


def _pack_codes(codes: NDArray[np.int64]) -> dict[str, Any]:
    is_small = len(codes) == 0 or int(codes.max()) < 2**15
    return {
        "type": "i2" if is_small else "i4",
        "data": _to_base64(codes.astype("<i2" if is_small else "<i4")),
    }


def _pack_flags(flags: NDArray[np.bool_]) -> dict[str, Any]:
    return {"type": "u1", "data": _to_base64(flags.astype("u1"))}


def _to_base64(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _pack_class(finding: ClassFinding) -> dict[str, Any]:
    return {
        "label": _shorten(str(finding.label), _LONGEST_LABEL),
        # As names.json writes it: a browser would round large integers.
        "key": json.dumps(_to_plain(finding.label)),
        "isText": isinstance(finding.label, str),
        "isKnown": finding.is_known,
        "isConfirmed": finding.is_confirmed,
        "size": finding.size,
        "nUnsure": finding.n_unsure,
        "confidence": _to_plain(finding.confidence),
        "colour": finding.colour,
        "typical": list(finding.typical),
        "doubtful": list(finding.doubtful),
        "near": [[near.code, round(near.overlap, 4), round(near.cosine, 4)] for near in finding.near],
        "traits": [[_shorten(trait.text, _LONGEST_CELL), trait.detail] for trait in finding.traits],
    }


def _list_shown(findings: Findings) -> list[int]:
    """Return the rows that the page shows without being asked, each once, the most wanted first."""
    rows = [row for finding in findings.classes for row in finding.typical[:1]]
    rows += findings.doubtful
    rows += [row for finding in findings.classes for row in (*finding.typical, *finding.doubtful)]
    return list(dict.fromkeys(rows))


def _pack_items(items: Items, shown: list[int]) -> dict[str, Any]:
    """Pack the items of all rows while they fit, and those on cards at more length."""
    n_rows = len(items.columns[0][1]) if items.columns else len(items.texts)
    if items.kind == "ids" and items.texts == [f"row {row}" for row in range(n_rows)]:
        return {"kind": "ids", "columns": [], "all": None, "shown": {}, "length": 0, "isNumbered": True}
    names = [_shorten(name, _LONGEST_CELL) for name, _ in items.columns]
    texts = _CellTexts(items) if items.kind == "table" else items.texts
    packed: list[str] | None = None
    length = 0
    for length in _LENGTHS:
        packed = [_shorten(texts[row], length) for row in range(n_rows)]
        if len(to_safe_json(packed).encode("utf-8")) <= _TEXT_BUDGET:
            break
        packed = None
    longer = {
        str(row): _shorten(texts[row], _LONGEST_SHOWN)
        for row in shown
        if packed is None or len(texts[row]) > length
    }
    return {
        "kind": items.kind,
        "columns": names[:_N_COLUMNS],
        "nColumns": len(names),
        "all": packed,
        "shown": longer,
        "length": length if packed is not None else 0,
        "isNumbered": False,
    }


class _CellTexts:
    """Rows of a table as texts: the first cells, with a mark between them."""

    def __init__(self, items: Items) -> None:
        self._items = items

    def __getitem__(self, row: int) -> str:
        cells = self._items.cells(row, _N_COLUMNS)
        return _CELL_MARK.join(_shorten(cell.replace(_CELL_MARK, " "), _LONGEST_CELL) for cell in cells)


def _pack_pictures(items: Items, shown: list[int], n_rows: int) -> dict[str, Any] | None:
    if items.images is None:
        return None
    thumbnails = make_thumbnails(items.images, shown, budget=_THUMBNAIL_BUDGET)
    rows = np.arange(n_rows)
    if n_rows > _MOST_TILES:
        rows = np.sort(np.random.default_rng(0).choice(n_rows, _MOST_TILES, replace=False))
    sheets = make_sheets(items.images, rows, budget=_SHEET_BUDGET)
    return {
        "thumbnails": {str(row): address for row, address in thumbnails.items()},
        "nShown": len(shown),
        "tile": sheets.tile,
        "across": sheets.across,
        "sheets": list(sheets.pictures),
        "rows": _pack_codes_wide(np.array(sheets.rows, dtype=np.int64)),
        "nTiles": len(sheets.rows),
    }


def _pack_codes_wide(rows: NDArray[np.int64]) -> dict[str, Any]:
    return {"type": "i4", "data": _to_base64(rows.astype("<i4"))}


def _pack_table(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    rows = list(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "columns": [str(name) for name in columns],
        "rows": [[_to_plain(row.get(name)) for name in columns] for row in rows],
    }


def _pack_verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "nRows": verdict.n_rows,
        "nGiven": verdict.n_given,
        "nFound": verdict.n_found,
        "accuracy": [_to_plain(part) for part in verdict.accuracy],
        "named": [_to_plain(part) for part in verdict.named],
        "bias": [_to_plain(part) for part in verdict.bias],
        "intraClass": _to_plain(verdict.intra_class),
        "countError": _to_plain(verdict.count_error),
        "classes": [
            {
                "label": _shorten(str(one.label), _LONGEST_LABEL),
                "isKnown": one.is_known,
                "nRows": one.n_rows,
                "nCorrect": one.n_correct,
                "match": one.match,
            }
            for one in verdict.classes
        ],
        "rowCodes": _pack_codes(verdict.row_codes),
        "counts": [[int(value) for value in entry] for entry in verdict.counts],
    }


def _to_plain(value: Any) -> Any:
    """Return a value that JSON has: numbers that are none become null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
