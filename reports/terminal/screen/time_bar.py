# SPDX-License-Identifier: Apache-2.0
"""Where the time went, as a bar of letters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from wiretale.analyzer.units import show_duration
from wiretale.reports.terminal.console import INDENT, indented
from wiretale.reports.time_account import NAMED, PARTS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.reports.time_account import TimeAccount

MARGIN, BAR_LEAST = 20, 40  # columns
SHARE_LEAST = 0.01  # of a part that gets a cell
GAP = "   "  # between the entries of the legend
#: letter and style of each part
SIGNS = {
    "connecting": ("o", "bright_cyan"),
    "client": ("c", "yellow"),
    "server": ("s", "magenta"),
    "loss": ("l", "red"),
    "queue": ("q", "dark_orange"),
    "path": ("p", "bright_blue"),
    "window": ("w", "cyan"),
    "send_buffer": ("b", "blue"),
    "transfer": ("t", "green"),
    "unknown": ("?", "bright_white"),
    "idle": (".", "bright_black"),
}


def widths(times: Sequence[float], width: int) -> list[int]:
    """Returns the cells of each part: none below SHARE_LEAST, else at least one; the largest part takes the rest.

    >>> widths([0.001, 1, 3], 40)
    [0, 10, 30]
    """
    total_ns = math.fsum(times)
    cells = [max(round(width * ns / total_ns), 1) if ns >= SHARE_LEAST * total_ns else 0 for ns in times]
    cells[times.index(max(times))] += width - sum(cells)
    return cells


def wrapped(entries: Sequence[Text], width: int) -> Iterator[Text]:
    """Yields lines of at most this width, none of which breaks an entry."""
    line = Text()
    for entry in entries:
        if line and line.cell_len + len(GAP) + entry.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, GAP if line else "", entry)
    yield line


def legend_of(account: TimeAccount, most: int) -> list[Text]:
    """Returns the entries of the legend, the largest part first."""
    named, left_ns = account.named(most)
    legend = [Text.assemble(SIGNS[name], f" {PARTS[name]} {show_duration(ns)}") for name, ns in named.items()]
    return [*legend, Text(f"other {show_duration(left_ns)}")] if left_ns else legend


def short_legend(account: TimeAccount, width: int, lines: int) -> list[Text]:
    """Returns the legend with as many entries as these lines have room for."""
    forms = (list(wrapped(legend_of(account, most), width)) for most in range(NAMED, 0, -1))
    return next((form for form in forms if len(form) <= lines), [])


def time_lines(account: TimeAccount, width: int, lines: int) -> Iterator[RenderableType]:
    """Yields title, bar and a legend of some lines."""
    yield Text.assemble(("Where the time went", "bold"), (f"{GAP}{account.base}", "dim"))
    cells = widths(list(account.parts.values()), max(width - MARGIN, BAR_LEAST))
    signs = zip(map(SIGNS.__getitem__, account.parts), cells, strict=True)
    yield indented(Text.assemble(*((letter * count, style) for (letter, style), count in signs)))
    yield from map(indented, short_legend(account, width - INDENT, lines))
