# SPDX-License-Identifier: Apache-2.0
"""Output for a terminal: as wide as it is and in color. A pipe gets plain text of a fixed width, without trailing blanks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.reports.terminal.command import Command

INDENT = 2
LABEL, GAP = 8, 1  # columns of the names of details, and after them
PIPE_WIDTH = 100  # columns, if COLUMNS is not set
WIDTH_LEAST, WIDTH_MOST = 20, 10_000  # columns that COLUMNS may ask for
STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def make_console(out: IO[str]) -> Console:
    """Returns a console for a terminal, or for a pipe as wide as COLUMNS."""
    width = None
    if not out.isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() and WIDTH_LEAST <= int(columns) <= WIDTH_MOST else PIPE_WIDTH
    return Console(file=out, width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)


def print_parts(out: IO[str], make: Callable[[Console], Iterable[RenderableType]]) -> None:
    """Prints the parts that `make` returns for a console."""
    plain = out if out.isatty() else StringIO()
    console = make_console(plain)
    for part in make(console):
        console.print(part, crop=False)  # the terminal wraps a word that is wider
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


def with_code(text: str, style: str = "") -> Text:
    """Returns a text in which settings and commands are bold, in place of backticks; those of several words get quotes, too."""
    styled = Text(style=style)
    for number, part in enumerate(printable(text).split("`")):
        if number % 2:
            quote = "" if " " not in part else '"' if "'" in part else "'"
            styled.append(f"{quote}{part}{quote}", style="bold")
        else:
            styled.append(part)
    return styled


def detail_lines(row: Mapping[str, object], names: Sequence[str], *head: Text) -> Grid:
    """Returns a line for each of these columns of a finding that is known: name and text. `head` is the first line."""
    lines = Grid.grid(padding=(0, GAP))
    lines.add_column(no_wrap=True, min_width=LABEL)
    lines.add_column(overflow="fold")
    if head:
        lines.add_row(*head)
    for name in names:
        if row[name]:
            style = "dim" if name in ("evidence", "filter") else ""
            value = row[name]
            text = value if isinstance(value, Command) else with_code(str(value), style)
            lines.add_row(Text(name, style="dim"), text)
    return lines


def last_lines(row: Mapping[str, str], command: Command, width: int) -> Iterator[RenderableType]:
    """Yields what ends a screen. A command with a word wider than its column begins at the margin, so that it can be pasted."""
    column = width - LABEL - GAP
    if max(map(len, command.lines(column))) <= column:
        yield detail_lines({**row, "Next": command}, (*row, "Next"))
        return
    yield detail_lines(row, tuple(row))
    yield Text("Next", style="dim")
    yield Segments([Segment(f"{line}\n") for line in command.lines(width)])  # a Text would be folded
