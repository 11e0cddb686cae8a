# SPDX-License-Identifier: Apache-2.0
"""Tables that break no word and lose none: in a narrow terminal, the columns that matter least are left out, or each row is a
list.

Each column gets an exact width here, because Rich crops a table without a mark if its columns have only least widths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

GAP = 3  # between the columns of a table
ANY_BLANK = r"\s+(?!→)"  # but not before an arrow, which ends a line


class Column(NamedTuple):
    """A column of a table. If not all fit, the one with the highest rank is left out; rank 0 always stays."""

    head: str
    right: bool = False  # figures, which are never broken
    rank: int = 0
    breaks_after: str = ""  # a cell continues on the next line after this character and a blank; "" at any blank

    def pieces(self, cell: str) -> list[str]:
        """Returns the pieces of a cell that must not be broken."""
        if self.right:
            return [cell]
        return re.split(rf"(?<={re.escape(self.breaks_after)})\s+" if self.breaks_after else ANY_BLANK, cell)

    def least_width(self, cells: Iterable[str]) -> int:
        """Returns the width of the widest piece."""
        return max((cell_len(piece) for cell in (self.head, *cells) for piece in self.pieces(cell)), default=0)

    def wrapped(self, cell: Text, width: int) -> Text:
        """Returns a cell with a line break before each piece that does not fit into its line: Rich breaks at any blank."""
        if not self.breaks_after:
            return cell
        lines = [""]
        for piece in self.pieces(cell.plain):
            longer = f"{lines[-1]} {piece}".lstrip()
            lines[-1:] = [longer] if cell_len(longer) <= width else [lines[-1], piece]
        return Text("\n".join(lines), style=cell.style)


class Fit(NamedTuple):
    """A column that has room: its place in the rows, its least width and that of its longest cell."""

    place: int
    column: Column
    least: int
    most: int


def fitting(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[Fit]:
    """Returns the columns that have room; none if those of rank 0 do not fit."""
    fits = []
    for place, column in enumerate(columns):
        cells = [row[place].plain for row in rows]
        fits.append(Fit(place, column, column.least_width(cells), max(map(cell_len, (column.head, *cells)))))
    while sum(fit.least + GAP for fit in fits) - GAP > width:
        last = max(fits, key=lambda fit: fit.column.rank)
        if not last.column.rank:
            return []
        fits.remove(last)
    return fits


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int, *, is_ruled: bool = True
) -> Grid | None:
    """Returns a table of at most this width, with a line below its head or without; None if the columns of rank 0 do not fit."""
    fits = fitting(columns, rows, width)
    if not fits:
        return None
    grid = Grid(box=box.SIMPLE_HEAD if is_ruled else None, pad_edge=False, show_edge=False, padding=(0, 1))
    room = width + GAP - sum(fit.least + GAP for fit in fits)
    widths = []
    for fit in fits:
        wider = min(fit.most - fit.least, room)
        room -= wider
        widths.append(fit.least + wider)
        grid.add_column(
            fit.column.wrapped(Text(fit.column.head), widths[-1]),
            justify="right" if fit.column.right else "left",
            overflow="fold",
            width=widths[-1],
        )
    for row in rows:
        grid.add_row(*(fit.column.wrapped(row[fit.place], width) for fit, width in zip(fits, widths, strict=True)))
    return grid


def row_lines(columns: Sequence[Column], row: Sequence[Text]) -> Grid:
    """Returns a row for a narrow terminal: a line for each column that has a value."""
    lines = Grid.grid(padding=(0, 1))
    lines.add_column(overflow="fold", style="dim")
    lines.add_column(overflow="fold")
    for column, value in zip(columns, row, strict=True):
        if value:
            lines.add_row(column.head, value)
    return lines


def fitted(columns: Sequence[Column], rows: Iterable[Sequence[Text | str]], width: int) -> RenderableType:
    """Returns the rows as a table of at most this width, else as lists. A column without a cell in any row is left out."""
    texts = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    if texts:
        filled = [any(row[place].plain for row in texts) for place in range(len(columns))]
        columns, texts = list(compress(columns, filled)), [list(compress(row, filled)) for row in texts]
    grid = table(columns, texts, width)
    return Group(*(part for row in texts for part in (row_lines(columns, row), Text()))) if grid is None else grid
