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
from wiretale.reports.terminal.console import INDENT, indented, print_parts, section
from wiretale.reports.terminal.fitted import Column, fitted

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.loss_location import Ledger

CAPTURE_COLUMNS = (
    *(Column("point"), Column("capture"), Column("packets", True), Column("from (UTC)", rank=2)),
    *(Column("duration", True, 1), Column("dropped", True)),
)
DELAY_COLUMNS = (
    *(Column("hop"), Column("packets", True, 5), Column("min", True), Column("median", True), Column("p90", True, 4)),
    *(Column("p99", True, 2), Column("max", True, 1), Column("jitter", True, 3), Column("error", True)),
)


def capture_row(point: CapturePoint) -> tuple[str, ...]:
    """Returns the row of a capture point."""
    start = "no times" if point.first_ns is None else show_time(point.first_ns)
    counts = (show_count(point.packets), start, point_duration(point), show_count(point.dropped))
    return point.role, printable(point.name), *counts


def ledger_section(ledger: Ledger, width: int) -> RenderableType:
    """Returns stages and losses of a ledger; losses are colored."""
    rows: list[tuple[Text | str, ...]] = []
    for number, (name, *cells) in enumerate(ledger_rows(ledger)):
        rows.append((Text(name, style="yellow" if number >= len(ledger.stages) else ""), *cells))
    heads = (ledger.unit, "seen", "missed", "of sent")
    grid = fitted([Column("stage"), *(Column(head, True) for head in heads)], rows, width)
    lines = [Text(printable(line)) for line in ledger_notes(ledger)]
    return section(ledger.title[0].upper() + ledger.title[1:], grid, *lines)


def comparison_parts(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """Yields the sections."""
    roles = [point.role for point in comparison.points]
    for sentence in answers(comparison):
        yield Text(printable(sentence[:1].upper() + sentence[1:]), style="bold")
    yield section("Captures", fitted(CAPTURE_COLUMNS, map(capture_row, comparison.points), width))
    yield from (ledger_section(ledger, width) for ledger in comparison.ledgers)
    if comparison.clocks:
        yield section("Clocks", *(Text(clock_line(clock, roles)) for clock in comparison.clocks))
    if any(clock.evidence == "both" for clock in comparison.clocks):
        yield indented(Text(ASSUMPTION))
    if comparison.delays:
        yield section("One-way delay", fitted(DELAY_COLUMNS, map(delay_row, comparison.delays), width))
    if comparison.notes:
        yield section("Caveats", *(Text(printable(note)) for note in comparison.notes))


def print_comparison(comparison: Comparison, out: IO[str]) -> None:
    """Prints the comparison."""
    print_parts(out, lambda console: comparison_parts(comparison, console.width - INDENT))
