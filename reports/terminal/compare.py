# SPDX-License-Identifier: Apache-2.0
"""Several capture points compared, in the terminal: `wiretale compare`."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import IO, TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.text import Text

from wiretale.analyzer.compare.answers import answers
from wiretale.analyzer.compare.loss_location import PLACES
from wiretale.analyzer.printable import printable
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, plural, show_count, show_duration, show_share
from wiretale.reports.compare_words import ASSUMPTION, clock_line, delay_text, stage_name
from wiretale.reports.terminal.analyze import make_console, section
from wiretale.reports.terminal.verify import plain_grid

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage
    from wiretale.analyzer.compare.loss_location import Ledger


def captures_block(vantage: Vantage) -> RenderableType:
    """What was captured where."""
    grid = plain_grid(("point", "capture", "packets", "from (UTC)", "lasts", "dropped"), (2, 4, 5))
    for point in vantage.points:
        timed = point.first_ns is not None and point.last_ns is not None
        grid.add_row(
            point.role,
            Text(printable(point.name)),
            show_count(point.packets),
            show_time(point.first_ns) if timed and point.first_ns is not None else "no times",
            show_duration(point.last_ns - point.first_ns) if timed and point.last_ns and point.first_ns else UNKNOWN,
            "not told" if point.dropped is None else show_count(point.dropped),
        )
    return grid


def ledger_block(ledger: Ledger) -> RenderableType:
    """The stages, and what was lost between them."""
    grid = plain_grid(("stage", ledger.unit, "seen", "missed", "of sent"), (1, 2, 3, 4))
    for stage in ledger.stages:
        name = stage_name(stage.role)
        seen = show_count(stage.seen)
        grid.add_row(
            name,
            show_count(stage.had),
            seen,
            show_count(stage.missed) if stage.missed else "",
            show_share(stage.had, ledger.sent),
        )
    for place, count in ledger.lost.items():
        grid.add_row(
            Text(f"lost {PLACES[place]}".replace("lost never", "never"), style="yellow"),
            show_count(count),
            "",
            "",
            show_share(count, ledger.sent),
        )
    return grid


def extras(ledger: Ledger) -> Iterator[str]:
    """What stands under a ledger."""
    if ledger.copies:
        yield f"{plural(ledger.copies, 'copy', 'copies')} more, made by the network"
    if ledger.incomplete:
        yield f"{plural(ledger.incomplete, 'datagram')} among the lost of which some fragments arrived"
    yield from ledger.notes


def delays_block(vantage: Vantage) -> RenderableType:
    """One-way delays."""
    grid = plain_grid(("from", "to", "packets", "min", "median", "p90", "p99", "max", "jitter", "±"), range(2, 10))
    for delay in vantage.delays:
        s = delay.summary
        grid.add_row(
            delay.start,
            delay.end,
            show_count(s["packets"]),
            *(delay_text(s[name]) for name in ("min", "median", "p90", "p99", "max", "jitter")),
            delay_text(delay.error_ns) if delay.absolute else "above the least",
        )
    return grid


def print_sections(vantage: Vantage, console: Console) -> None:
    """Answers first, then what they rest on."""
    roles = [point.role for point in vantage.points]
    for sentence in answers(vantage):
        console.print(Text(printable(sentence), style="bold"))
    console.print(section("Captures", captures_block(vantage)))
    for ledger in vantage.ledgers:
        lines = [Text(printable(line)) for line in extras(ledger)]
        console.print(section(ledger.title[0].upper() + ledger.title[1:], ledger_block(ledger), *lines))
    if vantage.clocks:
        console.print(section("Clocks", *(Text(clock_line(clock, roles)) for clock in vantage.clocks)))
    if any(clock.evidence == "both" for clock in vantage.clocks):
        console.print(Text(f"  {ASSUMPTION}"))
    if vantage.delays:
        console.print(section("One-way delay", delays_block(vantage)))
    if vantage.notes:
        console.print(section("Doubts", *(Text(printable(note)) for note in vantage.notes)))


def print_comparison(vantage: Vantage, out: IO[str]) -> None:
    """Writes what an engineer wants to know; in colour on a terminal."""
    if out.isatty():
        print_sections(vantage, make_console(out))
        return
    plain = StringIO()
    print_sections(vantage, make_console(plain))
    out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())
