# SPDX-License-Identifier: Apache-2.0
"""`wiretale compare`: answers first, then the captures, losses, clocks and delays that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from wiretale.analyzer.compare.answers import answers
from wiretale.analyzer.compare.loss_location import PLACES
from wiretale.analyzer.printable import printable
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, plural, show_count, show_duration, show_share
from wiretale.reports.phrases import ASSUMPTION, clock_line, delay_text, stage_name
from wiretale.reports.terminal.console import grid_of, print_parts, section

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay

CAPTURE_HEADS = ("point", "capture", "packets", "from (UTC)", "duration", "dropped")
DELAY_HEADS = ("from", "to", "packets", "min", "median", "p90", "p99", "max", "jitter", "±")


def capture_row(point: CapturePoint) -> tuple[RenderableType, ...]:
    """Returns the row of a capture point."""
    start, span = "no times", UNKNOWN
    if point.first_ns is not None and point.last_ns is not None:
        start, span = show_time(point.first_ns), show_duration(point.last_ns - point.first_ns)
    name = Text(printable(point.name))
    return point.role, name, show_count(point.packets), start, span, show_count(point.dropped)


def ledger_rows(ledger: Ledger) -> Iterator[tuple[RenderableType, ...]]:
    """Yields a row for each stage, and one for each place of loss."""
    for stage in ledger.stages:
        missed = show_count(stage.missed) if stage.missed else ""
        share = show_share(stage.had, ledger.sent)
        yield stage_name(stage.role), show_count(stage.had), show_count(stage.seen), missed, share
    for place, count in ledger.lost.items():
        name = Text(f"lost {PLACES[place]}".replace("lost never", "never"), style="yellow")
        yield name, show_count(count), "", "", show_share(count, ledger.sent)


def extras(ledger: Ledger) -> Iterator[str]:
    """Yields the lines below a ledger."""
    if ledger.copies:
        yield f"{plural(ledger.copies, 'copy', 'copies')} more, made by the network"
    if ledger.incomplete:
        yield f"{plural(ledger.incomplete, 'lost datagram')} of which some fragments arrived"
    yield from ledger.notes


def delay_row(delay: Delay) -> tuple[str, ...]:
    """Returns the row of the one-way delays of a hop."""
    shown = (delay_text(delay.summary[name]) for name in ("min", "median", "p90", "p99", "max", "jitter"))
    error = delay_text(delay.error_ns) if delay.absolute else "above the minimum"
    return delay.start, delay.end, show_count(delay.summary["packets"]), *shown, error


def comparison_parts(comparison: Comparison) -> Iterator[RenderableType]:
    """Yields the sections."""
    roles = [point.role for point in comparison.points]
    for sentence in answers(comparison):
        yield Text(printable(sentence), style="bold")
    yield section("Captures", grid_of(CAPTURE_HEADS, (2, 4, 5), map(capture_row, comparison.points)))
    for ledger in comparison.ledgers:
        lines = [Text(printable(line)) for line in extras(ledger)]
        grid = grid_of(("stage", ledger.unit, "seen", "missed", "of sent"), (1, 2, 3, 4), ledger_rows(ledger))
        yield section(ledger.title[0].upper() + ledger.title[1:], grid, *lines)
    if comparison.clocks:
        yield section("Clocks", *(Text(clock_line(clock, roles)) for clock in comparison.clocks))
    if any(clock.evidence == "both" for clock in comparison.clocks):
        yield Text(f"  {ASSUMPTION}")
    if comparison.delays:
        yield section("One-way delay", grid_of(DELAY_HEADS, range(2, 10), map(delay_row, comparison.delays)))
    if comparison.notes:
        yield section("Doubts", *(Text(printable(note)) for note in comparison.notes))


def print_comparison(comparison: Comparison, out: IO[str]) -> None:
    """Prints the comparison."""
    print_parts(out, lambda console: comparison_parts(comparison))
