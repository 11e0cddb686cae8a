# SPDX-License-Identifier: Apache-2.0
"""Where the time went, as a bar of letters: the time account of all flows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from wiretale.analyzer.findings.exchanges.turns import OVERLAP
from wiretale.analyzer.units import show_duration
from wiretale.reports.terminal.console import INDENT, indented

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.findings.exchanges.turns import Turns

MARGIN, BAR_LEAST = 20, 40  # columns
LIFE_LEAST = 0.2  # of the capture: the time account says little about a stream beside it
SHARE_LEAST = 0.01  # of a part that gets a cell
NAMED, NAMED_LEAST = 5, 0.005  # parts in the legend, and the least share of each
GAP = "   "  # between the entries of the legend


class Part(NamedTuple):
    """A part of the time account, as the bar and its legend show it."""

    name: str
    letter: str
    words: str
    style: str


#: in the order of the bar
PARTS = (
    Part("connecting", "o", "connecting", "bright_cyan"),
    Part("client", "c", "client", "yellow"),
    Part("server", "s", "server", "magenta"),
    Part("loss", "l", "loss", "red"),
    Part("queue", "q", "queue", "dark_orange"),
    Part("path", "p", "path", "bright_blue"),
    Part("window", "w", "window", "cyan"),
    Part("send_buffer", "b", "send buffer", "blue"),
    Part("transfer", "t", "transfer", "green"),
    Part("unknown", "?", "unknown", "bright_white"),
    Part("idle", ".", "idle", "bright_black"),
)

#: kinds of exchanges without a time account of their flow, by the part that their waits count as
BESIDE = {"connecting": "connect", "server": "dns"}


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


def legend_of(drawn: Sequence[tuple[Part, float]], waited_ns: float, most: int = NAMED) -> list[Text]:
    """Returns the entries of the legend, the largest part first."""
    ranked = sorted(drawn, key=lambda entry: -entry[1])
    named = [entry for entry in ranked[:most] if entry[1] >= NAMED_LEAST * waited_ns]
    legend = [Text.assemble((part.letter, part.style), f" {part.words} {show_duration(ns)}") for part, ns in named]
    left_ns = math.fsum(ns for _, ns in ranked[len(named) :])
    return [*legend, Text(f"other {show_duration(left_ns)}")] if left_ns >= NAMED_LEAST * waited_ns > 0 else legend


def short_legend(drawn: Sequence[tuple[Part, float]], waited_ns: float, width: int, lines: int) -> list[Text]:
    """Returns the legend with as many entries as these lines have room for."""
    forms = (list(wrapped(legend_of(drawn, waited_ns, most), width)) for most in range(NAMED, 0, -1))
    return next((form for form in forms if len(form) <= lines), [])


def time_parts(turns: Turns, answer_ns: float, width: int, lines: int) -> Iterator[RenderableType]:
    """Yields title, bar and a legend of some lines; nothing if most of the time is unknown.

    Idle time is drawn if the answer is about more time (`answer_ns`) than that in which somebody waited.
    """
    beside = {part: turns.waited_beside_ns(kind) for part, kind in BESIDE.items()}
    waits = {part: ns + beside.get(part, 0.0) for part, ns in turns.waits.items()}
    waited_ns, capture_ns = math.fsum(waits.values()), turns.capture_ns
    times = {**waits, "unknown": turns.unknown_ns, "idle": turns.idle_ns if answer_ns > waited_ns else 0.0}
    drawn = [(part, times[part.name]) for part in PARTS if times[part.name] > 0]
    if waited_ns + turns.idle_ns + turns.unknown_ns < LIFE_LEAST * capture_ns or not drawn:
        return
    several = ", summed over flows that overlap, in " if waited_ns > OVERLAP * capture_ns else " of "
    base = f"{show_duration(waited_ns)}{several}{show_duration(capture_ns)}"
    yield Text.assemble(("Where the time went", "bold"), (f"{GAP}{base}", "dim"))
    cells = widths([ns for _, ns in drawn], max(width - MARGIN, BAR_LEAST))
    bar = [(part.letter * count, part.style) for (part, _), count in zip(drawn, cells, strict=True)]
    yield indented(Text.assemble(*bar))
    yield from map(indented, short_legend(drawn, waited_ns, width - INDENT, lines))
