"""Tables as Markdown and as one HTML page that needs nothing else.

Knows text and cells only: no record, no score.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

__all__ = ["Cell", "Column", "Row", "Table", "to_html", "to_markdown"]


class Cell(NamedTuple):
    """A text, and whether it is to stand out."""

    text: str
    is_best: bool = False


class Column(NamedTuple):
    """A heading, whether numbers stand under it, and whether texts that may need more than a line."""

    name: str
    is_number: bool = False
    is_long: bool = False


class Row(NamedTuple):
    """Cells under one heading within a table; the first names the row."""

    section: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    group : str
        Heading that it stands under, together with its neighbours of the same group.
    title : str
    columns : tuple of Column
    rows : tuple of Row
        Rows of one section follow each other.
    notes : tuple of str
        Sentences below it.
    """

    group: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def to_markdown(tables: Sequence[Table], *, title: str = "Benchmark report") -> str:
    r"""Write tables as Markdown with pipes.

    Parameters
    ----------
    tables : sequence of Table
    title : str, default="Benchmark report"

    Returns
    -------
    str

    Examples
    --------
    >>> from pnp_gcd.benchmark.rendering import Cell, Column, Row, Table, to_markdown
    >>> columns = (Column("method"), Column("All", is_number=True))
    >>> rows = (Row("run here", (Cell("a|b"), Cell("75.4", is_best=True))),)
    >>> print(to_markdown([Table("Own data sets", "digits", columns, rows)]))
    # Benchmark report
    <BLANKLINE>
    ## Own data sets
    <BLANKLINE>
    ### digits
    <BLANKLINE>
    | method | All |
    |:---|---:|
    | *run here* |  |
    | a\|b | **75.4** |
    <BLANKLINE>
    """
    lines = [f"# {_escape_markdown(title)}", ""]
    for group, members in groupby(tables, key=lambda table: table.group):
        lines += [f"## {_escape_markdown(group)}", ""]
        for table in members:
            lines += [f"### {_escape_markdown(table.title)}", ""]
            lines.append(_to_line(_escape_markdown(column.name) for column in table.columns))
            lines.append(
                "|" + "|".join("---:" if column.is_number else ":---" for column in table.columns) + "|"
            )
            for section, rows in groupby(table.rows, key=lambda row: row.section):
                if section:
                    lines.append(
                        _to_line([f"*{_escape_markdown(section)}*", *[""] * (len(table.columns) - 1)])
                    )
                lines += [_to_line(map(_to_markdown_cell, row.cells)) for row in rows]
            lines.append("")
            lines += [f"- {_escape_markdown(note)}" for note in table.notes]
            lines += [""] * bool(table.notes)
    return "\n".join(lines)


def to_html(tables: Sequence[Table], *, title: str = "Benchmark report") -> str:
    """Write tables as one HTML page, with its style inside and nothing from elsewhere.

    Parameters
    ----------
    tables : sequence of Table
    title : str, default="Benchmark report"

    Returns
    -------
    str

    Examples
    --------
    >>> from pnp_gcd.benchmark.rendering import Cell, Column, Row, Table, to_html
    >>> page = to_html([Table("Own", "<b>", (Column("method"),), (Row("run here", (Cell("pnp"),)),))])
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    body = [f"<h1>{html.escape(title)}</h1>"]
    for group, members in groupby(tables, key=lambda table: table.group):
        body += ["<section>", f"<h2>{html.escape(group)}</h2>"]
        for table in members:
            body += _to_html_table(table)
        body.append("</section>")
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>"
    )
    content = "\n".join(body)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<main>\n{content}\n</main>\n'
        "</body>\n</html>\n"
    )


def _to_html_table(table: Table) -> Iterator[str]:
    name = html.escape(table.title)
    yield f'<div class="box" role="region" tabindex="0" aria-label="{name}">'
    yield f"<table>\n<caption>{name}</caption>"
    headings = (
        f'<th scope="col"{_align(column)}>{html.escape(column.name)}</th>' for column in table.columns
    )
    yield f"<thead><tr>{''.join(headings)}</tr></thead>"
    for section, rows in groupby(table.rows, key=lambda row: row.section):
        yield "<tbody>"
        if section:
            span = f'scope="rowgroup" colspan="{len(table.columns)}"'
            yield f'<tr class="section"><th {span}><span>{html.escape(section)}</span></th></tr>'
        for row in rows:
            cells = "".join(
                f"<td{_align(column)}>{_to_html_cell(cell)}</td>"
                for cell, column in zip(row.cells[1:], table.columns[1:], strict=True)
            )
            yield f'<tr><th scope="row">{_to_html_cell(row.cells[0])}</th>{cells}</tr>'
        yield "</tbody>"
    yield "</table>\n</div>"
    if table.notes:
        yield "<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in table.notes) + "</ul>"


def _to_html_cell(cell: Cell) -> str:
    text = html.escape(cell.text)
    return f"<strong>{text}</strong>" if cell.is_best else text


def _align(column: Column) -> str:
    return ' class="number"' if column.is_number else ' class="long"' if column.is_long else ""


def _to_markdown_cell(cell: Cell) -> str:
    text = _escape_markdown(cell.text)
    return f"**{text}**" if cell.is_best else text


def _to_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: within a line, in a table's cell or not."""
    text = re.sub(r"\s+", " ", text).strip()
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\\", "&#92;")
    text = re.sub(r"([|`*\[\]$~])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # n_clusters needs no backslash


_STYLE = """
:root { color-scheme: light dark; --ink: #1d232a; --paper: #ffffff; --faint: #5b6672; --line: #d5dbe1;
  --band: #f1f4f7; --accent: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --paper: #14181d; --faint: #9aa6b2;
  --line: #343c45; --band: #1e242b; --accent: #7db7f0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 100rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-bottom: .25rem;
  border-bottom: 2px solid var(--accent); }
.box { overflow-x: auto; margin: 1rem 0 .5rem; border: 1px solid var(--line); border-radius: 6px; }
.box:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 650; padding: .6rem .6rem .3rem; }
th, td { padding: .3rem .5rem; text-align: left; vertical-align: top; white-space: nowrap; }
th.number, td.number { text-align: right; }
td.long { white-space: normal; min-width: 10rem; max-width: 24rem; overflow-wrap: break-word; }
thead th { color: var(--faint); font-weight: 600; }
tbody tr { border-top: 1px solid var(--line); }
tbody th[scope=row], thead th:first-child { position: sticky; left: 0; background: var(--paper); }
tbody th[scope=row] { font-weight: 400; white-space: normal; min-width: 12rem; max-width: 22rem;
  overflow-wrap: break-word; }
tr.section th { background: var(--band); color: var(--faint); font-weight: 600; white-space: normal; }
tr.section span { display: inline-block; position: sticky; left: .6rem; max-width: calc(100vw - 4rem); }
td strong { font-weight: 700; color: var(--accent); }
ul { margin: .5rem 0 2rem; padding-left: 1.25rem; color: var(--faint); font-size: .875rem;
  max-width: 60rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) { main { padding: 1rem .75rem 3rem; } th, td { padding: .3rem .45rem; }
  tbody th[scope=row] { min-width: 7.5rem; max-width: 9rem;
  overflow-wrap: anywhere; } }
@media print { .box { overflow: visible; } }
"""
