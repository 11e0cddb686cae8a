# SPDX-License-Identifier: Apache-2.0
"""`wiretale compare`: answers first, then the captures, losses, clocks and delays that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from wiretale.analyzer.compare.answers import answers
from wiretale.analyzer.printable import printable
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import show_count
from wiretale.reports.phrases import ASSUMPTION, clock_line, delay_row, ledger_notes, ledger_rows, point_duration
from wiretale.reports.terminal.console import grid_of, indented, print_parts, section

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.loss_location import Ledger

CAPTURE_HEADS = ("point", "capture", "packets", "from (UTC)", "duration", "dropped")
DELAY_HEADS = ("hop", "packets", "min", "median", "p90", "p99", "max", "jitter", "error")


def capture_row(point: CapturePoint) -> tuple[RenderableType, ...]:
    """Returns the row of a capture point."""
    start = "no times" if point.first_ns is None else show_time(point.first_ns)
    name = Text(printable(point.name))
    return point.role, name, show_count(point.packets), start, point_duration(point), show_count(point.dropped)


def ledger_section(ledger: Ledger) -> RenderableType:
    """Returns stages and losses of a ledger; losses are coloured."""
    rows: list[tuple[RenderableType, ...]] = []
    for number, (name, *cells) in enumerate(ledger_rows(ledger)):
        rows.append((Text(name, style="yellow" if number >= len(ledger.stages) else ""), *cells))
    grid = grid_of(("stage", ledger.unit, "seen", "missed", "of sent"), (1, 2, 3, 4), rows)
    lines = [Text(printable(line)) for line in ledger_notes(ledger)]
    return section(ledger.title[0].upper() + ledger.title[1:], grid, *lines)


def comparison_parts(comparison: Comparison) -> Iterator[RenderableType]:
    """Yields the sections."""
    roles = [point.role for point in comparison.points]
    for sentence in answers(comparison):
        yield Text(printable(sentence), style="bold")
    yield section("Captures", grid_of(CAPTURE_HEADS, (2, 4, 5), map(capture_row, comparison.points)))
    yield from map(ledger_section, comparison.ledgers)
    if comparison.clocks:
        yield section("Clocks", *(Text(clock_line(clock, roles)) for clock in comparison.clocks))
    if any(clock.evidence == "both" for clock in comparison.clocks):
        yield indented(Text(ASSUMPTION))
    if comparison.delays:
        yield section("One-way delay", grid_of(DELAY_HEADS, range(1, 9), map(delay_row, comparison.delays)))
    if comparison.notes:
        yield section("Doubts", *(Text(printable(note)) for note in comparison.notes))


def print_comparison(comparison: Comparison, out: IO[str]) -> None:
    """Prints the comparison."""
    print_parts(out, lambda console: comparison_parts(comparison))
