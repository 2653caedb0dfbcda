"""Small pictures for a page: one for each row on a card, and sheets of tiny ones for the map.

Knows images and bytes: no model, no page. PIL stays behind ``pnp_gcd.images``.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import BadImageError
from pnp_gcd.images import Images, read_images

__all__ = ["Sheets", "make_sheets", "make_thumbnails"]

_SIDE = 112
_TILE = 48
_TILES_ACROSS = 16
_QUALITY = 72
# Pictures smaller than this are kept as they are: JPEG would smear their pixels.
_SMALL = 40


@dataclass(frozen=True)
class Sheets:
    """Tiny pictures of many rows.

    Attributes
    ----------
    tile : int
        Side of one, in pixels.
    across : int
        Pictures side by side on a sheet, and below each other.
    pictures : tuple of str
        Data addresses of the sheets.
    rows : tuple of int
        The row of each place, sheet by sheet, line by line.
    """

    tile: int
    across: int
    pictures: tuple[str, ...]
    rows: tuple[int, ...]


def make_thumbnails(images: Images, rows: Iterable[int], *, budget: int) -> dict[int, str]:
    """Return data addresses of small pictures, by row, until they need ``budget`` characters.

    Pictures that cannot be read are left out.
    """
    made: dict[int, str] = {}
    n_used = 0
    for row in rows:
        if row in made:
            continue
        picture = _open(images, row)
        if picture is None:
            continue
        picture.thumbnail((_SIDE, _SIDE))
        address = _encode(picture, is_small=max(picture.size) <= _SMALL)
        if n_used + len(address) > budget:
            break
        made[row] = address
        n_used += len(address)
    return made


def make_sheets(images: Images, rows: NDArray[np.int64], *, budget: int) -> Sheets:
    """Return sheets of the pictures of ``rows``, in their order, until they need ``budget`` characters."""
    first = next((picture for row in rows if (picture := _open(images, int(row))) is not None), None)
    tile = _TILE if first is None else min(_TILE, max(first.size))
    n_tiles = _TILES_ACROSS**2
    sheets: list[str] = []
    kept: list[int] = []
    for start in range(0, len(rows), n_tiles):
        part = rows[start : start + n_tiles]
        address = _encode(_lay_out(images, part, tile), is_small=tile <= _SMALL)
        if sum(map(len, sheets)) + len(address) > budget:
            break
        sheets.append(address)
        kept += [int(row) for row in part]
    return Sheets(tile, _TILES_ACROSS, tuple(sheets), tuple(kept))


def _lay_out(images: Images, rows: NDArray[np.int64], tile: int) -> Any:
    """Return one sheet; a picture that cannot be read leaves its place blank."""
    n_lines = -(-len(rows) // _TILES_ACROSS)
    sheet = np.full((n_lines * tile, _TILES_ACROSS * tile, 3), 255, dtype=np.uint8)
    for place, row in enumerate(rows):
        picture = _open(images, int(row))
        if picture is None:
            continue
        picture.thumbnail((tile, tile))
        pixels = np.asarray(picture)
        top = place // _TILES_ACROSS * tile + (tile - pixels.shape[0]) // 2
        left = place % _TILES_ACROSS * tile + (tile - pixels.shape[1]) // 2
        sheet[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return read_images(sheet[None]).open(0)


def _open(images: Images, row: int) -> Any:
    try:
        return images.open(row)
    except BadImageError:
        return None


def _encode(picture: Any, *, is_small: bool) -> str:
    """Return a picture as a data address: without loss where it is small, as JPEG otherwise."""
    buffer = io.BytesIO()
    if is_small:
        picture.save(buffer, "PNG", optimize=True)
    else:
        picture.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    kind = "png" if is_small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
