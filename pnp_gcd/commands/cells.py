"""Tables of text as CSV that spreadsheets show and never execute.

Spreadsheets take a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break for a formula.
Such cells are written with a leading apostrophe; ``restore_cell`` takes exactly that one off again.

Knows cells: no items, no classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

__all__ = ["guard_cell", "restore_cell", "to_csv"]

# Apostrophes in front of such a character count too: else "'=x" would come back as "=x".
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_SPECIAL = re.compile(r'[,"\r\n]')


def guard_cell(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from pnp_gcd.commands.cells import guard_cell, restore_cell
    >>> guard_cell("=1+1"), guard_cell("rose"), restore_cell(guard_cell("=1+1"))
    ("'=1+1", 'rose', '=1+1')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def restore_cell(cell: str) -> str:
    """Return the text that ``guard_cell`` was given.

    Parameters
    ----------
    cell : str

    Returns
    -------
    str
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def to_csv(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return guarded cells under the names of their columns.

    Parameters
    ----------
    names : sequence of str
    rows : iterable of sequence of str

    Returns
    -------
    str
    """
    lines = (",".join(_quote(guard_cell(cell)) for cell in row) for row in chain([names], rows))
    return "\n".join(lines) + "\n"


def _quote(cell: str) -> str:
    """Put a cell in quotes that has to be; csv.writer leaves a lone carriage return without."""
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell
