# SPDX-License-Identifier: Apache-2.0
"""Output for a terminal: as wide as it is and in colour. A pipe gets plain text of a fixed width, without trailing blanks."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Sequence
from io import StringIO
from typing import IO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

INDENT = 2
PIPE_WIDTH = 160  # columns, if COLUMNS is not set
WIDTH_LEAST, WIDTH_MOST = 20, 10_000  # columns that COLUMNS may ask for
STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def make_console(out: IO[str], width: int | None = None) -> Console:
    """Returns a console for a terminal, or for a pipe as wide as COLUMNS."""
    if width is None and not out.isatty():
        asked = os.environ.get("COLUMNS", "")
        width = int(asked) if asked.isdecimal() and WIDTH_LEAST <= int(asked) <= WIDTH_MOST else PIPE_WIDTH
    return Console(file=out, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)


def print_parts(out: IO[str], make: Callable[[Console], Iterable[RenderableType]], width: int | None = None) -> None:
    """Prints the parts that `make` returns for a console."""
    plain = out if out.isatty() else StringIO()
    console = make_console(plain, width)
    for part in make(console):
        console.print(part)
    if isinstance(plain, StringIO):  # rich pads tables to the width, which only a terminal needs
        out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())


def title(text: str) -> Text:
    """Returns a heading."""
    return Text(f"\n{text}", style="bold underline")


def indented(part: RenderableType) -> Padding:
    """Returns a part that begins two columns to the right."""
    return Padding(part, (0, 0, 0, INDENT))


def section(heading: str, *parts: RenderableType) -> RenderableType:
    """Returns a heading with its parts."""
    return Group(title(heading), *map(indented, parts))


def grid_of(heads: Sequence[str], right: Container[int], rows: Iterable[Sequence[RenderableType]]) -> Grid:
    """Returns a table; `right` has the numbers of the columns that are aligned to the right."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, head in enumerate(heads):
        grid.add_column(head, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid
