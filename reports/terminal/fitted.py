# SPDX-License-Identifier: Apache-2.0
"""Tables that break no word: in a narrow terminal, the columns that matter least are left out, or each row is a list."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from wiretale.reports.terminal.console import GAP, grid_of


def least_width(words: Iterable[str]) -> int:
    """Returns the width of the longest word, with an arrow that follows it: words must not be broken."""
    return max(len(piece) for text in words for piece in re.split(r"\s+(?!→)", text))


def fit_columns(widths: Sequence[int], spare: Sequence[int], width: int) -> list[int]:
    """Returns the columns that fit, without the first of `spare`; none if the others do not fit."""
    for left_out in range(len(spare) + 1):
        places = [place for place in range(len(widths)) if place not in spare[:left_out]]
        if sum(widths[place] + GAP for place in places) - GAP <= width:
            return places
    return []


def row_lines(heads: Sequence[str], row: Sequence[Text]) -> Grid:
    """Returns a row for a narrow terminal: a line for each column that has a value."""
    lines = Grid.grid(padding=(0, 1))
    lines.add_column(no_wrap=True, style="dim")
    lines.add_column(overflow="fold")
    for head, value in zip(heads, row, strict=True):
        if value:
            lines.add_row(head, value)
    return lines


def fitted(
    heads: Sequence[str], right: Container[int], rows: Sequence[Sequence[Text]], spare: Sequence[int], width: int
) -> list[RenderableType]:
    """Returns a table for a terminal of this width. `right` has the numbers of the columns that are aligned to the right,
    `spare` those that may be left out, the first one first."""
    columns = [[head, *(row[place].plain for row in rows)] for place, head in enumerate(heads)]
    least = [least_width(texts) for texts in columns]
    places = fit_columns(least, spare, width)
    if not places:
        return [part for row in rows for part in (row_lines(heads, row), Text())]
    shown = [[row[place] for place in places] for row in rows]
    grid = grid_of([heads[place] for place in places], [i for i, place in enumerate(places) if place in right], shown)
    room = width - sum(least[place] + GAP for place in places) + GAP
    for column, place in zip(grid.columns, places, strict=True):  # Rich would divide the room without regard to words
        more = min(max(map(len, columns[place])) - least[place], room)
        column.width = least[place] + more
        room -= more
    return [grid]
